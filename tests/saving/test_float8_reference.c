/* The recorded float8 models: quantized here they are what Keras made of them, and they predict and train as
 * Keras did. */
#include "saving/float8_recordings.h"

/* By its path: in a layer of a file the scales come before the kernel, as in Keras. */
static mix_tensor *weight_at_path(mix_model *model, const char *path) {
  return mix_variable_true_value(variable_at(model, path));
}

/* Under 16 bits scales and histories alone. */
static void check_step(const recording *r, mix_model *model, int step) {
  char stem[16];
  snprintf(stem, sizeof stem, "step%d", step);
  mix_list *expected = model_arrays(r->npz, stem);
  for (int i = 0; i < mix_list_count(expected); i++)
    if (is_policy(r, "float32") || (is_policy(r, "mixed_bfloat16") && is_float8_state(r, i)))
      assert_close(r->name, stem, i, weight_at_path(model, recorded_path(r, i)), mix_list_get(expected, i),
                   bound_of(r, stem, 1e-4, 8e-2, 0));
}

/* The paths and values of Keras, to the bits. */
static void check_quantized(const recording *r, mix_model *model) {
  mix_list *expected = model_arrays(r->npz, "init");
  assert_int_equal(mix_list_count(mix_model_weights(model)), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(r->name, "init", i, weight_at_path(model, recorded_path(r, i)), mix_list_get(expected, i),
                 0);
}

static mix_tensor *widened(mix_tensor *x) { return mix_cast(mix_cast(x, MIX_BFLOAT16), MIX_FLOAT32); }

/* E21: the recorded convolution rounds once, and its two roundings here are at most a last bit away. Behind
 * it the layers hold the bound. */
static mix_list *predict_rounded_once(const recording *r, mix_model *model) {
  mix_tensor *x = mix_list_get(model_arrays(r->npz, "x"), 0),
             *y = mix_conv(widened(x), widened(weight_at_path(model, "conv/kernel")));
  y = mix_cast(mix_relu(mix_add(y, widened(weight_at_path(model, "conv/bias")))), MIX_BFLOAT16);
  assert_close(r->name, "convolution", 0, mix_call(mix_model_get_layer(model, "conv"), x), y, 0x1p-8);
  static const char *const rest[] = {"flat", "fc1", "fc2"};
  for (int i = 0; i < 3; i++) y = mix_call(mix_model_get_layer(model, rest[i]), y);
  return mix_list_of(y);
}

static void check_predictions(const recording *r, mix_model *model, const char *stem) {
  mix_list *made = rounds_once(r, stem) ? predict_rounded_once(r, model) : predict(r, model);
  assert_all_close(r, stem, made, model_arrays(r->npz, stem), output_bound(r, stem));
}

/* ---- training ---- */

static mix_list *inputs_of_step(const recording *r, int step) {
  mix_list *x = model_arrays(r->npz, "x");
  mix_tensor *factors = mix_npz_get(r->npz, "x_factors");
  if (!factors) return x;
  mix_list *scaled = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(x); i++) {
    mix_tensor *one = mix_list_get(x, i), *factor = mix_slice(factors, MIX_SHAPE(step % 12), MIX_SHAPE(1));
    mix_list_append(scaled, mix_multiply(one, mix_cast(factor, mix_tensor_dtype(one))));
  }
  return scaled;
}

/* E11: with all rules together. */
/* E14: one of the recordings accumulates. */
static void check_training(const recording *r, mix_model *model) {
  for (int step = 0; step < recorded_steps(r); step++)
    MIX_SCOPE {
      train_step(r, model, inputs_of_step(r, step), step, loss_bound(r));
      check_step(r, model, step + 1);
    }
}

/* ---- one recording ---- */

/* P11: the order of weights, quantized here. */
static void check_recording(const recording *r) {
  mix_model *model = mix_model_load(path_of(r, ".keras"));
  assert_no_error();
  check_predictions(r, model, "predict");
  mix_model_quantize(model, "float8", .filter = json_string_value(json_object_get(r->json, "filters")),
                     .amax_history_length = json_integer_value(json_object_get(r->json, "history")));
  assert_no_error();
  check_quantized(r, model);
  check_order(r, model);
  check_predictions(r, model, "after");
  model = mix_model_load(path_of(r, ".after.keras"));
  assert_no_error();
  check_quantized(r, model);
  check_training(r, model);
  check_predictions(r, model, "trained");
  check_saved(r, model);
  model = mix_model_load(path_of(r, ".trained.keras"));
  assert_no_error();
  check_predictions(r, model, "trained");
}

int main(void) { return run_recordings("float8 recordings", is_float8_recording, check_recording); }
