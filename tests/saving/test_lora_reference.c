/* The recorded LoRA models: with LoRA they begin, predict, train and are saved as in Keras (rows R of
 * docs/spec/lora.md). */
#include "saving/precision_recordings.h"

#include "model/model.h"
#include "optim/optimizer.h"
#include <mixtape/lora.h>

static bool is_lora_recording(const char *name) {
  static const char *const subset[] = {"lora-einsum_heads-float32", "lora-mlp-mixed_float16",
                                       "lora-int8-mlp"};
  return !strncmp(name, "lora-", 5) && is_in_subset(name, subset, sizeof subset / sizeof *subset);
}

static bool is_integer(const recording *r) { return json_object_get(r->json, "mode"); }

/* ---- bounds: README.md of the recordings ---- */

static double bound(const recording *r, double float32, double bfloat16, double float16) {
  return is_policy(r, "float32") ? float32 : is_policy(r, "mixed_bfloat16") ? bfloat16 : float16;
}

/* A rounding of an input may go the other way. */
static double output_bound_of(const recording *r) {
  return strstr(r->name, "int8") ? bound(r, 5e-3, 5e-2, 0) : bound(r, 1e-5, 5e-2, 1e-2);
}

static void check_predictions(const recording *r, mix_model *model, const char *stem) {
  mix_list *made = mix_model_predict(model, model_arrays(r->npz, "x"), .batch_size = r->examples);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, stem);
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(expected); i++)
    assert_close(r->name, stem, i, mix_list_get(made, i), mix_list_get(expected, i), output_bound_of(r));
}

/* "int8", "int4-block4", "int4-channel". */
static void quantize(const recording *r, mix_model *model) {
  const char *mode = json_string_value(json_object_get(r->json, "mode")), *block = strstr(mode, "block");
  char name[8];
  snprintf(name, sizeof name, "%.4s", mode);
  mix_model_quantize(model, name, .block_size = block ? atoi(block + 5) : strstr(mode, "channel") ? -1 : 0);
  assert_no_error();
}

/* ---- rows ---- */

static const json_t *recorded_variables(const recording *r) {
  return json_object_get(json_object_get(r->json, "after"), "variables");
}

/* R03: names, shapes, dtypes. R04: order and what trains. R09: the policy stays. */
static void check_variables(const recording *r, mix_model *model) {
  mix_list *variables = mix_model_weights(model);
  const json_t *expected = recorded_variables(r);
  assert_int_equal(mix_list_count(variables), json_array_size(expected));
  for (int i = 0; i < mix_list_count(variables); i++) {
    const mix_variable *variable = mix_list_get(variables, i);
    const json_t *of = json_array_get(expected, (size_t)i), *shape = json_object_get(of, "shape");
    assert_string_equal(variable->name, json_string_value(json_object_get(of, "path")));
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
  const json_t *losses = json_object_get(r->json, "losses");
  const int steps = (int)json_array_size(losses);
  char stem[16];
  for (int step = 0; step < steps; step++)
    MIX_SCOPE {
      mix_logs *logs = mix_model_train_on_batch(model, model_arrays(r->npz, "x"), model_arrays(r->npz, "y"));
      assert_no_error();
      const double got = mix_logs_get(logs, "loss"),
                   expected = json_number_value(json_array_get(losses, (size_t)step));
      if (!(fabs(got - expected) <= bound(r, 1e-5, 2e-2, 5e-3) * (step + 1) * fabs(expected)))
        fail_msg("%s: loss %d is %.9g; Keras has %.9g", r->name, step + 1, got, expected);
    }
  snprintf(stem, sizeof stem, "step%d", steps);
  if (!is_policy(r, "mixed_bfloat16")) check_weights(r, model, stem, bound(r, 5e-5, 0, 3e-2));
}

static const char *in_test_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", test_folder, name);
  return path;
}

/* R11: the file has the merged kernel in the compute dtype. R12: a and b of what is read are zeros. */
static void check_saved(const recording *r, mix_model *model) {
  const char *path = in_test_folder("trained.keras");
  mix_model_save(model, path);
  mix_model *again = mix_model_load(path), *theirs = mix_model_load(path_of(r, ".trained.keras"));
  assert_no_error();
  mix_list *ours = mix_model_weights(again), *expected = mix_model_weights(theirs);
  assert_int_equal(mix_list_count(ours), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(ours) && !is_policy(r, "mixed_bfloat16") && !is_integer(r); i++)
    assert_close(r->name, "saved weight", i, mix_variable_true_value(mix_list_get(ours, i)),
                 mix_variable_true_value(mix_list_get(expected, i)), bound(r, 5e-5, 0, 3e-2));
  for (int i = 0; i < mix_list_count(ours); i++)
    if (strstr(mix_variable_name(mix_list_get(ours, i)), "/lora_"))
      assert_true(mix_tensor_item(mix_reduce_max(mix_abs(mix_variable_true_value(mix_list_get(ours, i))),
                                                 MIX_ALL_AXES, false)) == 0);
  check_predictions(r, again, is_integer(r) ? "reloaded_trained" : "trained");
  check_predictions(r, theirs, is_integer(r) ? "reloaded_trained" : "trained");
}

/* An adapter makes the same model of the first file, to the bits; so does merging, but for roundings. */
static void check_adapter(const recording *r, mix_model *model) {
  const char *path = in_test_folder("adapter.npz");
  mix_list *x = model_arrays(r->npz, "x"), *before = mix_model_predict(model, x, .batch_size = r->examples);
  mix_model_save_lora(model, path);
  mix_model *again = mix_model_load(path_of(r, ".keras"), .no_compile = true);
  if (is_integer(r)) quantize(r, again);
  mix_model_load_lora(again, in_test_folder("adapter.npz"));
  assert_no_error();
  mix_list *after = mix_model_predict(again, x, .batch_size = r->examples);
  for (int i = 0; i < mix_list_count(before); i++)
    assert_close(r->name, "adapter", i, mix_list_get(after, i), mix_list_get(before, i), 0);
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
  check_saved(r, model);
  check_adapter(r, model);
}

int main(void) { return run_recordings("LoRA recordings", is_lora_recording, check_recording); }
