/* The recorded LoRA models: with LoRA they begin, predict, train and are saved as in Keras (rows R of
 * docs/spec/lora.md). */
#include "saving/lora_recordings.h"

#include "model/model.h"
#include "optim/optimizer.h"
#include <mixtape/lora.h>

static void check_predictions(const recording *r, mix_model *model, const char *stem) {
  assert_all_close(r, stem, predict(r, model), model_arrays(r->npz, stem), output_bound(r));
}

static void quantize(const recording *r, mix_model *model) {
  const mix_quantize_options options = options_of(r);
  mix_model_quantize_with(model, &options);
  assert_no_error();
}

/* ---- rows ---- */

/* R03: names, shapes, dtypes. R04: order and what trains. R09: the policy stays. */
static void check_variables(const recording *r, mix_model *model) {
  mix_list *variables = mix_model_weights(model);
  const json_t *expected = json_object_get(json_object_get(r->json, "after"), "variables");
  assert_int_equal(mix_list_count(variables), json_array_size(expected));
  check_order(r, model);
  for (int i = 0; i < mix_list_count(variables); i++) {
    const mix_variable *variable = mix_list_get(variables, i);
    const json_t *of = recorded_variable(r, i), *shape = json_object_get(of, "shape");
    assert_string_equal(mix_dtype_name(variable->dtype), json_string_value(json_object_get(of, "dtype")));
    assert_int_equal(variable->trainable, json_is_true(json_object_get(of, "trainable")));
    assert_int_equal(variable->shape.rank, json_array_size(shape));
    for (int d = 0; d < variable->shape.rank; d++)
      assert_int_equal(variable->shape.dims[d], json_integer_value(json_array_get(shape, (size_t)d)));
  }
}

static void check_weights(const recording *r, mix_model *model, const char *stem, double within) {
  mix_list *expected = model_arrays(r->npz, stem), *variables = mix_model_weights(model);
  assert_int_equal(mix_list_count(expected), mix_list_count(variables));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(r->name, stem, i, mix_variable_true_value(mix_list_get(variables, i)),
                 mix_list_get(expected, i), within);
}

/* R05: forward and gradients; R07: the penalties of a and b. */
static void train(const recording *r, mix_model *model) {
  train_steps(r, model, loss_bound(r));
  if (compares_weights(r)) check_weights(r, model, last_step(r), weight_bound(r));
}

/* R11: the file has the merged kernel in the compute dtype. R12: a and b of what is read are zeros. */
static void check_merged(const recording *r, mix_model *model) {
  const char *path = in_folder("trained.keras");
  mix_model_save(model, path);
  mix_model *again = mix_model_load(path), *theirs = mix_model_load(path_of(r, ".trained.keras"));
  assert_no_error();
  mix_list *ours = mix_model_weights(again), *expected = mix_model_weights(theirs);
  assert_int_equal(mix_list_count(ours), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(ours) && compares_weights(r) && !is_integer(r); i++)
    assert_close(r->name, "saved weight", i, mix_variable_true_value(mix_list_get(ours, i)),
                 mix_variable_true_value(mix_list_get(expected, i)), weight_bound(r));
  for (int i = 0; i < mix_list_count(ours); i++)
    if (strstr(mix_variable_name(mix_list_get(ours, i)), "/lora_"))
      assert_true(mix_tensor_item(mix_reduce_max(mix_abs(mix_variable_true_value(mix_list_get(ours, i))),
                                                 MIX_ALL_AXES, false)) == 0);
  check_predictions(r, again, is_integer(r) ? "reloaded_trained" : "trained");
  check_predictions(r, theirs, is_integer(r) ? "reloaded_trained" : "trained");
}

/* An adapter makes the same model of the first file, to the bits; so does merging, but for roundings. */
static void check_adapter(const recording *r, mix_model *model) {
  const char *path = in_folder("adapter.npz");
  mix_list *before = predict(r, model);
  mix_model_save_lora(model, path);
  mix_model *again = mix_model_load(path_of(r, ".keras"), .no_compile = true);
  if (is_integer(r)) quantize(r, again);
  mix_model_load_lora(again, path);
  assert_no_error();
  assert_all_close(r, "adapter", predict(r, again), before, 0);
  mix_model_merge_lora(again);
  assert_no_error();
  check_predictions(r, again, is_integer(r) ? "reloaded_trained" : "trained");
}

static void check_recording(const recording *r) {
  const json_t *alpha = json_object_get(r->json, "alpha");
  mix_model *model = mix_model_load(path_of(r, ".keras"));
  assert_no_error();
  check_predictions(r, model, "predict");
  if (is_integer(r)) quantize(r, model);
  mix_model_enable_lora(model, json_integer_value(json_object_get(r->json, "rank")),
                        .alpha = alpha ? json_number_value(alpha) : 0);
  assert_no_error();
  if (!is_integer(r)) check_predictions(r, model, "predict"); /* b is zeros */
  check_variables(r, model);
  mix_model_load_weights(model, path_of(r, ".init.npz"));
  assert_no_error();
  check_weights(r, model, "init", 0);
  check_predictions(r, model, "after");
  mix_compile_options compile = model->state->given;
  json_t *optimizer = mix_optimizer_to_json(model->state->optimizer);
  compile.optimizer = mix_optimizer_from_json(optimizer, model->semantics);
  json_decref(optimizer);
  mix_model_compile_with(model, &compile);
  train(r, model);
  check_predictions(r, model, "trained");
  check_merged(r, model);
  check_adapter(r, model);
}

int main(void) { return run_recordings("LoRA recordings", is_lora_recording, check_recording); }
