// What the macros of C do, a C++ caller does with options structs: this program fills some, links with the shared library and runs.
#include <mixtape/mixtape.h>

#include <cstdio>

namespace {

// A dense layer of ones under mixed_float16: (1, 3) of ones -> (1, 2) of threes, in float16.
bool calls_a_layer() {
  if (mix_set_global_policy("mixed_float16") != MIX_OK) return false;
  mix_dense_options options = mix_dense_defaults();
  options.units = 2;
  options.kernel_initializer = "ones";
  mix_layer *layer = mix_dense_with(&options);

  const double ones[] = {1, 1, 1};
  mix_shape shape = {};
  shape.rank = 2;
  shape.dims[0] = 1;
  shape.dims[1] = 3;
  mix_call_options call = {};
  call.size = sizeof call;
  call.inputs = mix_tensor_from_doubles(ones, MIX_FLOAT32, shape);
  mix_tensor *outputs = mix_call_with(layer, &call);
  double read[2] = {0, 0};
  return mix_tensor_dtype(outputs) == MIX_FLOAT16 && mix_tensor_read(outputs, MIX_FLOAT64, read, 2) == MIX_OK && read[0] == 3 &&
         read[1] == 3;
}

// One step of gradient descent: 2 - 0.5 * 1.
bool takes_a_step() {
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
  return mix_tensor_item(mix_variable_value(weight)) == 1.5;
}

} // namespace

int main() {
  mix_scope *scope = mix_scope_begin();
  const bool right = takes_a_step() && calls_a_layer() && mix_error() == MIX_OK;
  if (!right) std::fprintf(stderr, "a layer or a step is wrong (%s)\n", mix_error_message());
  mix_scope_end(scope);
  mix_shutdown();
  return right ? 0 : 1;
}
