// Mixtape in C++17, over the C headers: scopes end with their block, errors are exceptions, and options need
// no size. All objects stay those of the C headers, owned by the innermost scope (mixtape/object.h).
//
//   mix::scope scope;
//   mix_layer *dense = mix::with(mix_dense_with, [](auto &o) { o.units = 64; o.activation = "relu"; });
//   mix_tensor *y = mix::call(dense, x);
#ifndef MIXTAPE_HPP
#define MIXTAPE_HPP

#include <mixtape/mixtape.h>

#include <cstddef>
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

// MIX_SHAPE
template <class... Dims> mix_shape shape(Dims... dims) {
  static_assert(sizeof...(dims) <= sizeof(mix_shape::dims) / sizeof(int64_t), "too many dimensions");
  mix_shape result = {};
  result.rank = static_cast<int>(sizeof...(dims));
  int axis = 0;
  ((result.dims[axis++] = static_cast<int64_t>(dims)), ...);
  return result;
}

// mix_list_of
template <class... Objects> mix_list *list(Objects *...objects) {
  void *const items[] = {static_cast<void *>(objects)..., nullptr};
  return check(mix_list_new(static_cast<int>(sizeof...(objects)), items));
}

// mix_call, of a tensor or of a list
template <class Inputs> mix_tensor *call(mix_layer *layer, Inputs *inputs) {
  return with(mix_call_with, layer, [inputs](auto &o) { o.inputs = inputs; });
}

} // namespace mix
#endif
