// Mixtape in C++17, over the C headers: scopes end with their block, errors are exceptions, and options need
// no size. All objects stay those of the C headers, owned by the innermost scope (mixtape/object.h).
//
//   mix::scope scope;
//   mix_layer *dense = mix::with(mix_dense_with, [](auto &o) { o.units = 64; o.activation = "relu"; });
//   mix_tensor *y = mix::call(dense, x);
#ifndef MIXTAPE_HPP
#define MIXTAPE_HPP

#include <mixtape/mixtape.h>

#include <stdexcept>
#include <string>
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
  scope() : scope_((check(), check(mix_scope_begin()))) {}
  ~scope() { mix_scope_end(scope_); }
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
template <class Type> struct same { using type = Type; };
template <class Type> using same_t = typename same<Type>::type;

template <class Options, class Fill> options<Options> filled(Fill &fill) {
  options<Options> result;
  fill(static_cast<Options &>(result));
  return result;
}
} // namespace detail

// with(mix_dense_with, [](auto &o) { o.units = 64; }) calls a function of options, which the lambda fills in.
// What the function takes before them comes between: with(mix_model_fit_with, model, [&](auto &o) { ... }).
template <class Result, class Options, class Fill,
          class = std::enable_if_t<std::is_invocable_v<Fill &, Options &>>>
Result with(Result (*function)(const Options *), Fill &&fill) {
  const auto o = detail::filled<Options>(fill);
  return check(function(&o));
}
template <class Result, class First, class Options, class Fill,
          class = std::enable_if_t<std::is_invocable_v<Fill &, Options &>>>
Result with(Result (*function)(First, const Options *), detail::same_t<First> first, Fill &&fill) {
  const auto o = detail::filled<Options>(fill);
  return check(function(first, &o));
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
