// What the macros of C do, a C++ caller does with options structs: this program fills some, links with the shared library and runs.
#include <mixtape/optimizer.h>
#include <mixtape/tensor.h>
#include <mixtape/variable.h>

#include <cmath>
#include <cstdio>

int main() {
  mix_scope *scope = mix_scope_begin();
  mix_variable_options options = {};
  options.size = sizeof options;
  options.initial_value = mix_scalar(2.0, MIX_FLOAT32);
  options.name = "weight";
  mix_variable *weight = mix_variable_with(&options);

  mix_sgd_options rule = mix_sgd_defaults();
  rule.learning_rate = 0.5;
  mix_optimizer *optimizer = mix_sgd_with(&rule);

  void *gradients[] = {mix_scalar(1.0, MIX_FLOAT32)};
  void *variables[] = {weight};
  mix_optimizer_apply_gradients(optimizer, mix_list_new(1, gradients), mix_list_new(1, variables));
  const double value = mix_tensor_item(mix_variable_value(weight));
  const bool right = mix_error() == MIX_OK && std::fabs(value - 1.5) == 0.0;
  if (!right) std::fprintf(stderr, "weight is %g; expected 1.5 (%s)\n", value, mix_error_message());
  mix_scope_end(scope);
  mix_shutdown();
  return right ? 0 : 1;
}
