// mixtape.hpp in C++20: options by designated initialisers, objects that are called, lists and data sets as
// ranges, and what each throws.
#include "run_tests.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ranges>
#include <vector>

namespace {

static_assert(std::ranges::forward_range<mix::items<mix_tensor>>);
static_assert(std::ranges::sized_range<mix::items<mix_tensor>>);
static_assert(std::ranges::input_range<mix::elements>);
static_assert(std::is_convertible_v<mix::handle<mix_layer>, mix_layer *>);

mix_tensor *numbers(std::initializer_list<double> values) {
  return mix::check(mix_tensor_from_doubles(std::data(values), MIX_FLOAT32,
                                            mix::shape(static_cast<int64_t>(values.size()) / 2, 2)));
}

double sum_of(mix_tensor *x) { return mix::check(mix_tensor_item(mix_reduce_sum(x, mix_axes{}, false))); }

// All forms make the same layer.
bool options_in_braces() {
  mix::scope scope;
  mix_tensor *x = numbers({1, 2});
  auto one = mix::dense({.units = 3, .kernel_initializer = "ones"});
  mix_layer *two = mix::with(mix_dense_with, {.units = 3, .kernel_initializer = "ones"});
  mix_layer *three = mix::with(mix_dense_with, [](auto &o) { o.units = 3, o.kernel_initializer = "ones"; });
  mix_tensor *zeros = mix::with(mix_activate_with, "relu", {.x = mix_negative(x)});
  return sum_of(one(x)) == 9 && sum_of(mix::call(two, x)) == 9 && sum_of(mix::call(three, x)) == 9 &&
         sum_of(zeros) == 0 && sum_of(mix::activate("relu", {.x = x})) == 3;
}

bool names_and_metrics_reach_the_library() {
  mix::scope scope;
  auto layer = mix::dense({.name = "mine", .units = 2});
  auto model = mix::sequential({.layers = mix::list(layer, mix::flatten())});
  mix::check(mix_model_build(model, mix::shape(MIX_UNKNOWN, 2)));
  model.compile({.loss = "mse", .metrics = {"mae", "mse"}});
  mix_tensor *x = numbers({1, 2, 3, 4});
  mix_history *history = model.fit(x, x, {.epochs = 2, .quiet = true});
  mix_logs *logs = mix::model_evaluate(model, {.x = x, .y = x, .quiet = true}),
           *same = model.evaluate(x, x, {.quiet = true});
  if (mix_logs_get(logs, "loss") != mix_logs_get(same, "loss") || mix_history_epochs(history) != 2)
    return false;
  mix_tensor *y = static_cast<mix_tensor *>(mix_list_get(model.predict(x), 0));
  if (mix_tensor_shape(y).dims[1] != 2) return false;
  return !std::strcmp(mix_layer_name(layer), "mine") && mix_logs_count(logs) == 3;
}

mix_list *twice(void *, mix_list *arguments) {
  return mix_list_new(1, std::vector<void *>{mix_add(static_cast<mix_tensor *>(mix_list_get(arguments, 0)),
                                                     static_cast<mix_tensor *>(mix_list_get(arguments, 0)))}
                             .data());
}

bool objects_are_called() {
  mix::scope scope;
  mix_tensor *x = numbers({1, 2, 3, 4});
  auto model = mix::sequential({.layers = mix::list(mix::dropout({.rate = 0.5}))});
  auto loss = mix::loss({.loss = "mse"});
  auto step = mix::function({.body = twice});
  auto add = mix::add_layer();
  const double dropped = sum_of(mix_cast(mix_equal(model(x, {.training = MIX_TRUE}), x), MIX_FLOAT32));
  return sum_of(model(x)) == 10 && dropped == 0 &&
         mix::check(mix_tensor_item(loss(x, mix_negative(x)))) == 30 &&
         sum_of(static_cast<mix_tensor *>(mix_list_get(step(x), 0))) == 20 &&
         sum_of(static_cast<mix_tensor *>(mix_list_get(step(mix::list(x)), 0))) == 20 &&
         sum_of(add(mix::list(x, x))) == 20;
}

bool lists_are_ranges() {
  mix::scope scope;
  mix_tensor *x = numbers({1, 2}), *y = numbers({3, 4});
  double sum = 0;
  for (mix_tensor *t : mix::items<mix_tensor>(mix::list(x, y))) sum += sum_of(t);
  mix::items<mix_tensor> range(mix::list(x, y));
  std::vector<mix_tensor *> all(range.begin(), range.end());
  const auto seven = std::ranges::find_if(range, [](mix_tensor *t) { return sum_of(t) == 7; });
  int none = 0;
  for ([[maybe_unused]] void *item : mix::items<void>(mix::list())) none++;
  for ([[maybe_unused]] void *item : mix::items<void>(nullptr)) none++;
  return sum == 10 && all == std::vector{x, y} && *seven == y && range.size() == 2 && none == 0;
}

mix_list *fails_at_two(void *, int64_t index) {
  if (index == 2) mix_error_record(MIX_VALUE_ERROR, "no third element");
  void *items[] = {mix_scalar(1, MIX_FLOAT32)};
  return index == 2 ? nullptr : mix_list_new(1, items);
}

bool data_sets_are_ranges() {
  mix::scope scope;
  double sum = 0;
  int batches = 0;
  mix_dataset *numbers = mix::check(mix_dataset_range(0, 10, 1));
  for (mix_list *batch : mix::elements(mix::dataset_batch({.dataset = numbers, .batch_size = 4}))) {
    sum += sum_of(mix_cast(static_cast<mix_tensor *>(mix_list_get(batch, 0)), MIX_FLOAT32));
    batches++;
  }
  int before = 0;
  try {
    for ([[maybe_unused]] mix_list *element :
         mix::elements(mix::dataset_from_generator({.generate = fails_at_two})))
      before++;
  } catch (const mix::error &e) {
    return sum == 45 && batches == 3 && before == 2 && std::strstr(e.what(), "no third element");
  }
  return false;
}

bool errors_are_thrown() {
  mix::scope scope;
  int thrown = 0;
  try {
    mix::dense({.units = -1});
  } catch (const mix::error &e) { thrown += e.status() == MIX_VALUE_ERROR; }
  try {
    mix::dense({.units = 2})(static_cast<mix_tensor *>(nullptr));
  } catch (const mix::error &) { thrown++; }
  try {
    mix::items<mix_tensor> range(mix::list(numbers({1, 2})));
    *++range.begin();
  } catch (const mix::error &) { thrown++; }
  try {
    mix::elements(nullptr);
  } catch (const mix::error &e) { thrown += e.status() == MIX_TYPE_ERROR; }
  return thrown == 4 && mix_error() == MIX_OK;
}

} // namespace

int main() {
  return run_tests({{"options_in_braces", options_in_braces},
                    {"names_and_metrics_reach_the_library", names_and_metrics_reach_the_library},
                    {"objects_are_called", objects_are_called},
                    {"lists_are_ranges", lists_are_ranges},
                    {"data_sets_are_ranges", data_sets_are_ranges},
                    {"errors_are_thrown", errors_are_thrown}});
}
