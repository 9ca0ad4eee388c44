/* The recorded models of int8 and int4: quantized here they have Keras's integers and scales, and they
 * predict and train as Keras did. */
#include "saving/integer_recordings.h"

/* Q05, Q08, Q09: names, shapes, dtypes and values; which of them train. */
static void check_quantized(const recording *r, mix_model *model) {
  mix_list *expected = model_arrays(r->npz, "init");
  assert_int_equal(mix_list_count(mix_model_weights(model)), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++) {
    mix_variable *variable = variable_at(model, recorded_path(r, i));
    mix_tensor *value = mix_variable_true_value(variable);
    check_dtype(r, i, value);
    assert_close(r->name, "init", i, value, mix_list_get(expected, i), init_bound(r, i));
    assert_true(mix_variable_trainable(variable) ==
                json_is_true(json_object_get(recorded_variable(r, i), "trainable")));
  }
}

static bool is_model(const json_t *layer) {
  const char *class_name = json_string_value(json_object_get(layer, "class"));
  return !strcmp(class_name, "Functional") || !strcmp(class_name, "Sequential");
}

/* P14. The policy of a model itself is not in its file. */
static void check_policies(const recording *r, mix_layer *layer) {
  const json_t *layers = json_object_get(json_object_get(r->json, "after"), "layers"), *one;
  size_t i;
  json_array_foreach(layers, i, one) {
    if (is_model(one) || strcmp(json_string_value(json_object_get(one, "name")), mix_layer_name(layer)))
      continue;
    assert_string_equal(mix_policy_name(mix_layer_matched_policy(layer)),
                        json_string_value(json_object_get(one, "policy")));
  }
  mix_list *inner = mix_layer_layers(layer);
  for (int k = 0; k < mix_list_count(inner); k++) check_policies(r, mix_list_get(inner, k));
}

static void check_predictions(const recording *r, mix_model *model, const char *stem) {
  assert_all_close(r, stem, predict(r, model), expected_outputs(r, stem), output_bound(r, stem));
}

static void train(const recording *r, mix_model *model) {
  train_steps(r, model, loss_bound(r));
  mix_list *expected = model_arrays(r->npz, last_step(r));
  for (int i = 0; i < mix_list_count(expected) && is_policy(r, "float32"); i++)
    assert_close(r->name, last_step(r), i, mix_variable_true_value(variable_at(model, recorded_path(r, i))),
                 mix_list_get(expected, i), weight_bound(r));
  if (recorded_steps(r)) check_predictions(r, model, "trained");
}

/* P11: the order of weights, of models quantized here and read. */
/* Q30: Keras's files of attention are read here. */
static void check_recording(const recording *r) {
  mix_model *model = mix_model_load(path_of(r, ".keras"));
  assert_no_error();
  check_predictions(r, model, "predict");
  const mix_quantize_options options = options_of(r);
  mix_model_quantize_with(model, &options);
  assert_no_error();
  check_quantized(r, model);
  check_order(r, model);
  check_policies(r, mix_model_layer(model));
  check_predictions(r, model, "after");
  check_saved(r, model);
  model = mix_model_load(path_of(r, ".after.keras"));
  assert_no_error();
  check_quantized(r, model);
  check_order(r, model);
  check_predictions(r, model, "after");
  train(r, model);
  check_saved(r, model);
}

int main(void) { return run_recordings("int8 and int4 recordings", is_integer_recording, check_recording); }
