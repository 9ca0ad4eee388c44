// Mixtape in C++17 and C++20, over the C headers: scopes end with their block, errors are exceptions, options
// need no size, layers are called, lists and data sets are ranges. All objects stay those of the C headers,
// owned by the innermost scope (mixtape/object.h).
//
//   mix::scope scope;
//   auto dense = mix::dense({.units = 64, .activation = "relu"});  // C++20: members in the struct's order
//   mix_tensor *y = dense(x);
//   mix_layer *other = mix::with(mix_dense_with, [](auto &o) { o.units = 64; });  // C++17
#ifndef MIXTAPE_HPP
#define MIXTAPE_HPP

#include <mixtape/mixtape.h>

#include <cstddef>
#include <iterator>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace mix {

// The error that was pending on this thread; what() is its message. Throwing it cleared it.
class error : public std::runtime_error {
public:
  error(mix_status status, const std::string &message) : std::runtime_error(message), status_(status) {}
  mix_status status() const noexcept { return status_; }
  // "ValueError"
  const char *name() const noexcept { return mix_status_name(status_); }

private:
  mix_status status_;
};

// Throws the pending error, if there is one.
inline void check() {
  if (mix_error() == MIX_OK) return;
  const std::string message = mix_error_message();
  throw error(mix_error_take(nullptr, 0), message);
}

// check(mix_tensor_item(t)): the result of a call, or its error as an exception.
template <class Result> Result check(Result result) {
  check();
  return result;
}

// A scope that ends with its block, by an exception too.
class scope {
public:
  // The place where the scope stands is for the message on a later use of what it owned.
  explicit scope(const char *file = __builtin_FILE(), int line = __builtin_LINE())
      : scope_((check(), check(mix_scope_begin_at(file, line)))) {}
  ~scope() { mix_scope_end_block(&scope_); }
  scope(const scope &) = delete;
  scope &operator=(const scope &) = delete;

private:
  mix_scope *scope_;
};

// A reference that keeps an object beyond its scope.
template <class Object> class kept {
public:
  kept() = default;
  explicit kept(Object *object) : object_(static_cast<Object *>(mix_retain(object))) {}
  kept(const kept &other) : kept(other.object_) {}
  kept(kept &&other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  kept &operator=(kept other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~kept() { mix_release(object_); }
  Object *get() const noexcept { return object_; }

private:
  Object *object_ = nullptr;
};

// An options struct whose size is set: mix::options<mix_dense_options> o; o.units = 64;
template <class Options> struct options : Options {
  options() : Options() { this->size = sizeof(Options); }
};

namespace detail {
template <class Pointer> using options_of = std::remove_const_t<std::remove_pointer_t<Pointer>>;

// The last of `given` fills in the options; those before it are the function's first arguments.
template <class Result, class... Parameters, class Given, std::size_t... Before>
Result call_with(Result (*function)(Parameters...), Given given, std::index_sequence<Before...>) {
  constexpr std::size_t last = sizeof...(Before);
  using pointer = std::tuple_element_t<last, std::tuple<Parameters...>>;
  options<options_of<pointer>> filled;
  std::get<last>(given)(static_cast<options_of<pointer> &>(filled));
  return check(function(std::get<Before>(std::move(given))..., &filled));
}
} // namespace detail

// with(mix_dense_with, [](auto &o) { o.units = 64; }) calls a function of options, which the lambda fills in.
// What the function takes before them comes between, nullptr for none:
// with(mix_model_fit_with, model, [&](auto &o) { ... }).
template <class Result, class... Parameters, class... Given>
Result with(Result (*function)(Parameters...), Given &&...given) {
  static_assert(sizeof...(Parameters) == sizeof...(Given) && sizeof...(Given) > 0,
                "expected what the function takes before the options, and then a lambda that fills them in");
  return detail::call_with(function, std::forward_as_tuple(std::forward<Given>(given)...),
                           std::make_index_sequence<sizeof...(Parameters) - 1>());
}

namespace detail {
template <class Type> struct exactly { using type = Type; };
} // namespace detail

// The same with options in braces: with(mix_dense_with, {.units = 64}) in C++20.
template <class Result, class Options>
Result with(Result (*function)(const Options *), typename detail::exactly<Options>::type options) {
  options.size = sizeof options;
  return check(function(&options));
}
template <class Result, class First, class Options>
Result with(Result (*function)(First, const Options *), typename detail::exactly<First>::type first,
            typename detail::exactly<Options>::type options) {
  options.size = sizeof options;
  return check(function(first, &options));
}

// MIX_SHAPE
template <class... Dims> mix_shape shape(Dims... dims) {
  static_assert(sizeof...(dims) <= sizeof(mix_shape::dims) / sizeof(int64_t), "too many dimensions");
  mix_shape result = {};
  result.rank = static_cast<int>(sizeof...(dims));
  int axis = 0;
  ((result.dims[axis++] = static_cast<int64_t>(dims)), ...);
  return result;
}

// mix_call, of a tensor or of a list
template <class Inputs> mix_tensor *call(mix_layer *layer, Inputs *inputs) {
  return with(mix_call_with, layer, [inputs](auto &o) { o.inputs = inputs; });
}

// ---- objects that are called ----

// What a function of options gives where it makes something that is called: the pointer, which it converts
// to, and operator(). Like the pointer it owns nothing; mix::kept does.
template <class Object> class handle;

namespace detail {
template <class Object> class pointer {
public:
  pointer(Object *object = nullptr) : object_(object) {}
  operator Object *() const noexcept { return object_; }
  Object *get() const noexcept { return object_; }

private:
  Object *object_;
};

template <class Options> Options sized(Options options) {
  options.size = sizeof options;
  return options;
}
} // namespace detail

// dense(x), dense(list), attention(x, {.use_causal_mask = true})
template <> class handle<mix_layer> : public detail::pointer<mix_layer> {
public:
  using pointer::pointer;
  template <class Inputs> mix_tensor *operator()(Inputs *inputs, mix_call_options options = {}) const {
    options.inputs = inputs;
    options = detail::sized(options);
    return check(mix_call_with(get(), &options));
  }
};

// model(x), model(x, {.training = MIX_TRUE}), and what is done with models; y may be nullptr
template <> class handle<mix_model> : public detail::pointer<mix_model> {
public:
  using pointer::pointer;
  template <class Inputs> mix_tensor *operator()(Inputs *inputs, mix_model_call_options options = {}) const {
    options.inputs = inputs;
    options = detail::sized(options);
    return check(mix_model_call_with(get(), &options));
  }
  void compile(mix_compile_options options) const {
    options = detail::sized(options);
    check(mix_model_compile_with(get(), &options));
  }
  mix_history *fit(void *x, void *y, mix_fit_options options = {}) const {
    options.x = x;
    options.y = y;
    options = detail::sized(options);
    return check(mix_model_fit_with(get(), &options));
  }
  mix_logs *evaluate(void *x, void *y, mix_evaluate_options options = {}) const {
    options.x = x;
    options.y = y;
    options = detail::sized(options);
    return check(mix_model_evaluate_with(get(), &options));
  }
  mix_list *predict(void *x, mix_predict_options options = {}) const {
    options.x = x;
    options = detail::sized(options);
    return check(mix_model_predict_with(get(), &options));
  }
};

// loss(y_true, y_pred)
template <> class handle<mix_loss> : public detail::pointer<mix_loss> {
public:
  using pointer::pointer;
  mix_tensor *operator()(mix_tensor *y_true, mix_tensor *y_pred, mix_loss_call_options options = {}) const {
    options.y_pred = y_pred;
    options = detail::sized(options);
    return check(mix_loss_call_with(get(), y_true, &options));
  }
};

// step(list), step(x, y)
template <> class handle<mix_function> : public detail::pointer<mix_function> {
public:
  using pointer::pointer;
  mix_list *operator()(mix_list *arguments) const { return check(mix_function_call(get(), arguments)); }
  template <class... Tensors> mix_list *operator()(Tensors *...tensors) const;
};

// ---- functions of options, by name ----

namespace detail {
template <class Result> struct made { using type = Result; };
template <> struct made<mix_layer *> { using type = handle<mix_layer>; };
template <> struct made<mix_model *> { using type = handle<mix_model>; };
template <> struct made<mix_loss *> { using type = handle<mix_loss>; };
template <> struct made<mix_function *> { using type = handle<mix_function>; };

// Calls what takes `Before...` and then options, which braces may fill in.
template <auto function, class Type = decltype(function)> struct maker;
template <auto function, class Result, class Options> struct maker<function, Result (*)(const Options *)> {
  typename made<Result>::type operator()(Options options = {}) const {
    options = sized(options);
    return check(function(&options));
  }
};
template <auto function, class Result, class First, class Options>
struct maker<function, Result (*)(First, const Options *)> {
  typename made<Result>::type operator()(First first, Options options = {}) const {
    options = sized(options);
    return check(function(first, &options));
  }
};
template <auto function, class Result, class First, class Second, class Options>
struct maker<function, Result (*)(First, Second, const Options *)> {
  typename made<Result>::type operator()(First first, Second second, Options options = {}) const {
    options = sized(options);
    return check(function(first, second, &options));
  }
};
} // namespace detail

// mix::dense(...) is mix_dense_with; tests/api/makers.py writes the list.
#define MIX_MAKER(name) inline constexpr detail::maker<mix_##name##_with> name{};
// makers: begin
MIX_MAKER(activate)
MIX_MAKER(activation)
MIX_MAKER(activity_regularization)
MIX_MAKER(adadelta)
MIX_MAKER(adafactor)
MIX_MAKER(adagrad)
MIX_MAKER(adam)
MIX_MAKER(adamax)
MIX_MAKER(adamw)
MIX_MAKER(adaptive_average_pooling1d)
MIX_MAKER(adaptive_average_pooling2d)
MIX_MAKER(adaptive_average_pooling3d)
MIX_MAKER(adaptive_max_pooling1d)
MIX_MAKER(adaptive_max_pooling2d)
MIX_MAKER(adaptive_max_pooling3d)
MIX_MAKER(add_layer)
MIX_MAKER(additive_attention)
MIX_MAKER(alpha_dropout)
MIX_MAKER(attention)
MIX_MAKER(average)
MIX_MAKER(average_pooling1d)
MIX_MAKER(average_pooling2d)
MIX_MAKER(average_pooling3d)
MIX_MAKER(backup_and_restore)
MIX_MAKER(batch_normalization)
MIX_MAKER(bidirectional)
MIX_MAKER(call_outputs)
MIX_MAKER(callback)
MIX_MAKER(category_encoding)
MIX_MAKER(center_crop)
MIX_MAKER(checkpoint)
MIX_MAKER(cifar10_load)
MIX_MAKER(concatenate)
MIX_MAKER(constraint)
MIX_MAKER(conv)
MIX_MAKER(conv1d)
MIX_MAKER(conv1d_transpose)
MIX_MAKER(conv2d)
MIX_MAKER(conv2d_transpose)
MIX_MAKER(conv3d)
MIX_MAKER(conv3d_transpose)
MIX_MAKER(conv_lstm1d)
MIX_MAKER(conv_lstm2d)
MIX_MAKER(conv_lstm3d)
MIX_MAKER(conv_transpose)
MIX_MAKER(cropping1d)
MIX_MAKER(cropping2d)
MIX_MAKER(cropping3d)
MIX_MAKER(csv_dataset)
MIX_MAKER(csv_load)
MIX_MAKER(csv_logger)
MIX_MAKER(dataset_batch)
MIX_MAKER(dataset_cache)
MIX_MAKER(dataset_filter)
MIX_MAKER(dataset_from_generator)
MIX_MAKER(dataset_interleave)
MIX_MAKER(dataset_map)
MIX_MAKER(dataset_padded_batch)
MIX_MAKER(dataset_shuffle)
MIX_MAKER(dataset_window)
MIX_MAKER(decode_state)
MIX_MAKER(dense)
MIX_MAKER(depthwise_conv)
MIX_MAKER(depthwise_conv1d)
MIX_MAKER(depthwise_conv2d)
MIX_MAKER(digits_load)
MIX_MAKER(discretization)
MIX_MAKER(dot)
MIX_MAKER(dropout)
MIX_MAKER(dynamic_loss_scale)
MIX_MAKER(early_stopping)
MIX_MAKER(einsum_dense)
MIX_MAKER(elu_layer)
MIX_MAKER(embedding)
MIX_MAKER(enable_mixed_precision_graph_rewrite)
MIX_MAKER(flatten)
MIX_MAKER(ftrl)
MIX_MAKER(function)
MIX_MAKER(gaussian_dropout)
MIX_MAKER(gaussian_noise)
MIX_MAKER(generate)
MIX_MAKER(global_average_pooling1d)
MIX_MAKER(global_average_pooling2d)
MIX_MAKER(global_average_pooling3d)
MIX_MAKER(global_max_pooling1d)
MIX_MAKER(global_max_pooling2d)
MIX_MAKER(global_max_pooling3d)
MIX_MAKER(group_normalization)
MIX_MAKER(grouped_query_attention)
MIX_MAKER(gru)
MIX_MAKER(gru_cell)
MIX_MAKER(image_dataset_from_directory)
MIX_MAKER(initializer)
MIX_MAKER(input)
MIX_MAKER(lamb)
MIX_MAKER(lambda)
MIX_MAKER(layer)
MIX_MAKER(layer_add_weight)
MIX_MAKER(layer_enable_lora)
MIX_MAKER(layer_normalization)
MIX_MAKER(leaky_relu_layer)
MIX_MAKER(lion)
MIX_MAKER(locally_connected1d)
MIX_MAKER(locally_connected2d)
MIX_MAKER(loss)
MIX_MAKER(loss_call)
MIX_MAKER(loss_scale_optimizer)
MIX_MAKER(lstm)
MIX_MAKER(lstm_cell)
MIX_MAKER(masking)
MIX_MAKER(max_pooling1d)
MIX_MAKER(max_pooling2d)
MIX_MAKER(max_pooling3d)
MIX_MAKER(maximum_layer)
MIX_MAKER(metric)
MIX_MAKER(metric_add_variable)
MIX_MAKER(metric_update)
MIX_MAKER(minimum_layer)
MIX_MAKER(mnist_load)
MIX_MAKER(model)
MIX_MAKER(model_call)
MIX_MAKER(model_call_outputs)
MIX_MAKER(model_checkpoint)
MIX_MAKER(model_clone)
MIX_MAKER(model_compile)
MIX_MAKER(model_enable_lora)
MIX_MAKER(model_evaluate)
MIX_MAKER(model_export)
MIX_MAKER(model_fit)
MIX_MAKER(model_from_json)
MIX_MAKER(model_load)
MIX_MAKER(model_load_weights)
MIX_MAKER(model_predict)
MIX_MAKER(model_quantize)
MIX_MAKER(model_save)
MIX_MAKER(model_save_weights)
MIX_MAKER(model_test_on_batch)
MIX_MAKER(model_train_on_batch)
MIX_MAKER(multi_head_attention)
MIX_MAKER(multiply_layer)
MIX_MAKER(muon)
MIX_MAKER(nadam)
MIX_MAKER(normalization)
MIX_MAKER(numerics_report)
MIX_MAKER(numerics_run)
MIX_MAKER(permute)
MIX_MAKER(policy)
MIX_MAKER(policy_map)
MIX_MAKER(prelu)
MIX_MAKER(progbar_logger)
MIX_MAKER(random_brightness)
MIX_MAKER(random_contrast)
MIX_MAKER(random_crop)
MIX_MAKER(random_flip)
MIX_MAKER(random_rotation)
MIX_MAKER(random_translation)
MIX_MAKER(random_zoom)
MIX_MAKER(reduce_lr_on_plateau)
MIX_MAKER(regularizer)
MIX_MAKER(relu_layer)
MIX_MAKER(remat_scope_begin)
MIX_MAKER(repeat_vector)
MIX_MAKER(rescaling)
MIX_MAKER(reshape_layer)
MIX_MAKER(resizing)
MIX_MAKER(reversible_embedding)
MIX_MAKER(rms_normalization)
MIX_MAKER(rmsprop)
MIX_MAKER(rnn)
MIX_MAKER(scan)
MIX_MAKER(schedule_free_adamw)
MIX_MAKER(separable_conv1d)
MIX_MAKER(separable_conv2d)
MIX_MAKER(sequential)
MIX_MAKER(sgd)
MIX_MAKER(simple_rnn)
MIX_MAKER(simple_rnn_cell)
MIX_MAKER(simulate_products)
MIX_MAKER(softmax_layer)
MIX_MAKER(spatial_dropout1d)
MIX_MAKER(spatial_dropout2d)
MIX_MAKER(spatial_dropout3d)
MIX_MAKER(spectral_normalization)
MIX_MAKER(stacked_rnn_cells)
MIX_MAKER(subclassed)
MIX_MAKER(subtract_layer)
MIX_MAKER(tape_begin)
MIX_MAKER(tensorboard)
MIX_MAKER(thresholded_relu)
MIX_MAKER(time_distributed)
MIX_MAKER(trace_start)
MIX_MAKER(tune_precision)
MIX_MAKER(unit_normalization)
MIX_MAKER(up_sampling1d)
MIX_MAKER(up_sampling2d)
MIX_MAKER(up_sampling3d)
MIX_MAKER(variable)
MIX_MAKER(zero_padding1d)
MIX_MAKER(zero_padding2d)
MIX_MAKER(zero_padding3d)
// makers: end
#undef MIX_MAKER

// ---- lists and data sets ----

// mix_list_of
template <class... Objects> mix_list *list(const Objects &...objects) {
  void *const items[] = {static_cast<void *>(objects)..., nullptr};
  return check(mix_list_new(static_cast<int>(sizeof...(objects)), items));
}

// mix_dataset_from_tensors
template <class... Tensors> mix_dataset *dataset_from_tensors(Tensors *...tensors) {
  return check(mix_dataset_from_list(list(tensors...)));
}

template <class... Tensors> mix_list *handle<mix_function>::operator()(Tensors *...tensors) const {
  return (*this)(list(tensors...));
}

// The items of a list as a range: for (mix_tensor *t : mix::items<mix_tensor>(list)). The list has to live
// longer.
template <class Object> class items {
public:
  class iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Object *;
    using difference_type = std::ptrdiff_t;
    using pointer = Object *const *;
    using reference = Object *;

    iterator() = default;
    iterator(mix_list *list, int index) : list_(list), index_(index) {}
    Object *operator*() const { return static_cast<Object *>(check(mix_list_get(list_, index_))); }
    iterator &operator++() {
      index_++;
      return *this;
    }
    iterator operator++(int) {
      iterator before = *this;
      index_++;
      return before;
    }
    friend bool operator==(const iterator &a, const iterator &b) { return a.index_ == b.index_; }
    friend bool operator!=(const iterator &a, const iterator &b) { return a.index_ != b.index_; }

  private:
    mix_list *list_ = nullptr;
    int index_ = 0;
  };

  explicit items(mix_list *list) : list_(list), count_(list ? check(mix_list_count(list)) : 0) {}
  iterator begin() const { return iterator(list_, 0); }
  iterator end() const { return iterator(list_, count_); }
  std::size_t size() const { return static_cast<std::size_t>(count_); }

private:
  mix_list *list_;
  int count_;
};

// One pass over a data set: for (mix_list *batch : mix::elements(dataset)). An element lives until the next;
// an error of the pass is thrown.
class elements {
public:
  class iterator {
  public:
    using iterator_category = std::input_iterator_tag;
    using value_type = mix_list *;
    using difference_type = std::ptrdiff_t;
    using pointer = mix_list *const *;
    using reference = mix_list *;

    iterator() = default;
    explicit iterator(mix_iterator *pass) : pass_(pass) { ++*this; }
    mix_list *operator*() const { return element_; }
    iterator &operator++() {
      element_ = check(mix_iterator_next(pass_));
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator &a, const iterator &b) { return a.element_ == b.element_; }
    friend bool operator!=(const iterator &a, const iterator &b) { return a.element_ != b.element_; }

  private:
    mix_iterator *pass_ = nullptr;
    mix_list *element_ = nullptr;
  };

  explicit elements(mix_dataset *dataset) : pass_(check(mix_dataset_iterate(dataset))) {}
  iterator begin() const { return iterator(pass_); }
  iterator end() const { return iterator(); }

private:
  mix_iterator *pass_;
};

} // namespace mix
#endif
