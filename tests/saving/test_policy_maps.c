/* Files of models with policies by layer: the recorded cases map-* of MIXTAPE_REFERENCE_DIR/precision (its
 * README.md has the bounds). */
#include "model/support.h"
#include "nn/layer/layer.h"
#include "saving/model_json.h"
#include "support/folder.h"
#include "support/skip.h"

/* ---- the recorded cases ---- */

static const char *const cases[] = {"exact",   "regex", "att", "default16", "inner-path-misses",
                                    "float64", "float8"};
enum { CASES = sizeof cases / sizeof *cases };
/* Of map: "Keras from itself" is 2e-2 for outputs and 1.4e-2 for losses. */
static const double output_bound = 5e-2, loss_bound = 3e-2;

static const char *case_path(const char *name, const char *end) {
  static char paths[4][1024];
  static int next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/precision/map-%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return path;
}

static bool cases_are_here(void) {
  if (!getenv("MIXTAPE_REFERENCE_DIR")) return false;
  FILE *file = fopen(case_path("exact", ".json"), "rb");
  if (file) fclose(file);
  return file;
}

static double largest(mix_tensor *tensor, mix_tensor *other) {
  double found = 0;
  const int64_t count = mix_shape_size(mix_tensor_shape(tensor));
  for (int64_t i = 0; i < count; i++) found = fmax(found, fabs(at(tensor, i) - (other ? at(other, i) : 0)));
  return found;
}

static mix_tensor *recorded_array(const char *name, const char *array) {
  mix_tensor *tensor = mix_npz_get(mix_npz_open(case_path(name, ".npz")), array);
  assert_no_error();
  return tensor;
}

static void check_outputs(const char *name, mix_model *model) {
  mix_tensor *expected = recorded_array(name, "after_0"), *x = recorded_array(name, "x");
  mix_list *made = mix_model_predict(model, x, .batch_size = mix_tensor_shape(x).dims[0]);
  assert_no_error();
  const double error = largest(mix_list_get(made, 0), expected) / largest(expected, NULL);
  if (!(error <= output_bound)) fail_msg("%s: outputs are off by %g", name, error);
}

static void check_losses(const char *name, mix_model *model, const json_t *losses) {
  mix_tensor *x = recorded_array(name, "x"), *y = recorded_array(name, "y");
  assert_true(json_array_size(losses) > 1);
  for (size_t i = 0; i < json_array_size(losses); i++)
    MIX_SCOPE {
      const double expected = json_number_value(json_array_get(losses, i));
      mix_logs *logs = mix_model_train_on_batch(model, x, y);
      assert_no_error();
      const double got = mix_logs_get(logs, "loss");
      if (!(fabs(got - expected) <= loss_bound * (double)(i + 1) * fabs(expected)))
        fail_msg("%s: loss %zu is %.9g; Keras has %.9g", name, i + 1, got, expected);
    }
}

/* The recorded layer of that name, class and path. */
static const json_t *layer_row(const json_t *rows, const mix_layer *layer) {
  size_t i;
  const json_t *row;
  json_array_foreach((json_t *)rows, i, row) {
    const char *path = json_string_value(json_object_get(row, "path"));
    if (path && !strcmp(json_string_value(json_object_get(row, "name")), layer->name) &&
        !strcmp(json_string_value(json_object_get(row, "class")), layer->class.name) &&
        (!layer->map_path || !strcmp(path, layer->map_path)))
      return row;
  }
  return NULL;
}

/* The same paths and dtypes. Returns how many layers Keras has, too. */
static int check_layers(const char *name, const json_t *rows, const mix_layer *layer) {
  const json_t *row = layer_row(rows, layer);
  int found = row && layer->map_path;
  if (layer->map_path && !row) fail_msg("%s: Keras has no layer at %s", name, layer->map_path);
  if (found) {
    assert_string_equal(mix_policy_name(layer->policy), json_string_value(json_object_get(row, "policy")));
    assert_string_equal(mix_dtype_name(layer->compute), json_string_value(json_object_get(row, "compute")));
    assert_string_equal(mix_dtype_name(layer->variable), json_string_value(json_object_get(row, "variable")));
  }
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    found += check_layers(name, rows, mix_list_get(layer->layers, i));
  return found;
}

static void check_case(const char *name, mix_model *model) {
  assert_no_error();
  json_t *recorded = json_load_file(case_path(name, ".json"), 0, NULL);
  const json_t *rows = json_object_get(json_object_get(recorded, "after"), "layers");
  assert_int_equal(check_layers(name, rows, model->layer), 12); /* without the models outer, inner, tower */
  check_outputs(name, model);
  check_losses(name, model, json_object_get(recorded, "losses"));
  json_decref(recorded);
}

/* K15: the case float8 has att/.* in float8. */
static void K06_to_K09_files_with_maps(void **state) {
  (void)state;
  if (!cases_are_here()) SKIP("MIXTAPE_REFERENCE_DIR has no precision/map-exact.json");
  mix_set_accumulate("exact");
  for (int i = 0; i < CASES; i++)
    MIX_SCOPE { check_case(cases[i], mix_model_load(case_path(cases[i], ".after.keras"))); }
}

static mix_policy *recorded_map(const char *name) {
  json_t *json = json_load_file(case_path(name, ".policy-map.json"), 0, NULL);
  char *text = json_dumps(json, JSON_ENCODE_ANY);
  mix_policy *map = mix_policy_map_from_json(text);
  assert_no_error();
  free(text);
  json_decref(json);
  return map;
}

static void a_map_for_a_file_without_one(void **state) {
  (void)state;
  if (!cases_are_here()) SKIP("MIXTAPE_REFERENCE_DIR has no precision/map-exact.json");
  mix_set_accumulate("exact");
  for (int i = 0; i < CASES; i++)
    MIX_SCOPE {
      check_case(cases[i],
                 mix_model_load(case_path(cases[i], ".keras"), .policy_map = recorded_map(cases[i])));
    }
}

static bool same_bits(mix_model *a, mix_model *b, mix_tensor *x) {
  mix_tensor *of_a = mix_list_get(mix_model_predict(a, x), 0),
             *of_b = mix_list_get(mix_model_predict(b, x), 0);
  assert_no_error();
  return largest(of_a, of_b) == 0;
}

static void written_files_keep_them(void **state) {
  (void)state;
  if (!cases_are_here()) SKIP("MIXTAPE_REFERENCE_DIR has no precision/map-exact.json");
  for (int i = 0; i < CASES; i++)
    MIX_SCOPE {
      mix_model *model = mix_model_load(case_path(cases[i], ".keras"), .policy_map = recorded_map(cases[i]));
      assert_int_equal(mix_model_save(model, in_folder("map.keras")), MIX_OK);
      mix_model *read = mix_model_load(in_folder("map.keras"));
      assert_true(same_bits(model, read, recorded_array(cases[i], "x")));
      check_case(cases[i], read);
    }
}

/* ---- maps of our own ---- */

static mix_policy *map_of(const char *key, const char *policy) {
  mix_policy *map = mix_policy_map_new("float32");
  assert_int_equal(mix_policy_map_set_name(map, key, policy), MIX_OK);
  return map;
}

static mix_tensor *ramp(mix_shape shape) {
  double values[64];
  const int64_t count = mix_shape_size(shape);
  for (int64_t i = 0; i < count; i++) values[i] = (double)(i % 7) / 3 - 1;
  return mix_tensor_from_doubles(values, MIX_FLOAT32, shape);
}

static const mix_layer *layer_at(const mix_layer *layer, const char *path) {
  const mix_layer *found = layer->map_path && !strcmp(layer->map_path, path) ? layer : NULL;
  for (int i = 0; !found && i < mix_list_count(layer->layers); i++)
    found = layer_at(mix_list_get(layer->layers, i), path);
  return found;
}

static void expect_compute(mix_model *model, const char *path, mix_dtype dtype) {
  const mix_layer *layer = layer_at(model->layer, path);
  if (!layer) fail_msg("no layer at %s", path);
  if (layer->compute != dtype) fail_msg("%s computes in %s", path, mix_dtype_name(layer->compute));
}

/* A Sequential made here has its name before its layers', as in Python; one from a file has not, and the file
 * computes the same all the same. */
static void K06_sequential(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_policy *map = map_of("tower/a", "mixed_bfloat16");
  mix_model *model = mix_sequential(NULL, .name = "tower");
  mix_sequential_add(model, mix_dense(4, .name = "a", .policy = map));
  mix_sequential_add(model, mix_dense(2, .name = "b", .policy = map));
  mix_tensor *x = ramp((mix_shape){2, {3, 3}});
  assert_non_null(mix_model_predict(model, x));
  expect_compute(model, "tower/a", MIX_BFLOAT16);
  expect_compute(model, "tower/b", MIX_FLOAT32);
  assert_int_equal(mix_model_save(model, in_folder("tower.keras")), MIX_OK);
  mix_model *read = mix_model_load(in_folder("tower.keras"));
  expect_compute(read, "b", MIX_FLOAT32);
  assert_true(same_bits(model, read, x));
}

/* Layers that hold layers, as Keras 3.15.1 has their paths when they are made, and when a file of it is read.
 */
static mix_model *wrappers(mix_policy *map) {
  mix_tensor *in = mix_input(.shape = {2, {4, 3}}, .name = "in");
  mix_tensor *x = mix_call(
      mix_time_distributed(mix_dense(3, .name = "inner", .policy = map), .name = "td", .policy = map), in);
  x = mix_call(mix_bidirectional(mix_lstm(3, .name = "l", .return_sequences = true, .policy = map),
                                 .name = "bi", .policy = map),
               x);
  x = mix_call(mix_lstm(3, .name = "lstm", .return_sequences = true, .policy = map), x);
  x = mix_call(mix_activation("relu", .name = "act", .policy = map), x);
  mix_model *model = mix_model_new(in, x);
  assert_no_error();
  return model;
}

static void K06_layers_in_layers(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_policy *map = map_of("(td|bi|lstm)/.*", "mixed_bfloat16");
  assert_int_equal(mix_policy_map_set_name(map, "act", "mixed_bfloat16"), MIX_OK);
  mix_model *model = wrappers(map);
  expect_compute(model, "td", MIX_FLOAT32);
  expect_compute(model, "td/inner", MIX_BFLOAT16);
  expect_compute(model, "bi", MIX_FLOAT32);
  expect_compute(model, "bi/forward_l", MIX_BFLOAT16);
  expect_compute(model, "bi/backward_l", MIX_BFLOAT16);
  expect_compute(model, "bi/backward_l/lstm_cell", MIX_BFLOAT16);
  expect_compute(model, "lstm", MIX_FLOAT32);
  expect_compute(model, "lstm/lstm_cell", MIX_BFLOAT16);
  assert_null(layer_at(model->layer, "act"));
  assert_int_equal(mix_model_save(model, in_folder("wrappers.keras")), MIX_OK);
  mix_model *read = mix_model_load(in_folder("wrappers.keras"));
  assert_no_error();
  expect_compute(read, "lstm/lstm_cell", MIX_BFLOAT16);
  assert_true(same_bits(model, read, ramp((mix_shape){3, {2, 4, 3}})));
}

/* Every layer has the whole map; what is one object has one number from the second time on. */
static void K10_K12_objects_are_shared(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_policy *map = map_of("a", "mixed_bfloat16");
  assert_int_equal(mix_set_global_policy_object(map), MIX_OK);
  mix_tensor *in = mix_input(.shape = {1, {3}}, .name = "in");
  mix_tensor *x = mix_call(mix_dense(4, .name = "a"), in);
  mix_model *model = mix_model_new(in, mix_call(mix_dense(2, .name = "b"), x));
  mix_set_global_policy("float32");
  json_t *object = json_loads(mix_model_to_json(model), 0, NULL), *first, *second, *policies;
  json_t *layers = mix_json_layers(json_object_get(object, "config"));
  assert_int_equal(json_array_size(layers), 3);
  first = json_object_get(json_object_get(json_array_get(layers, 1), "config"), "dtype");
  second = json_object_get(json_object_get(json_array_get(layers, 2), "config"), "dtype");
  assert_true(mix_json_is_class(first, "DTypePolicyMap"));
  assert_null(json_object_get(first, "shared_object_id"));
  assert_int_equal(json_integer_value(json_object_get(second, "shared_object_id")), 1);
  policies = json_object_get(json_object_get(second, "config"), "policy_map");
  assert_int_equal(json_integer_value(json_object_get(json_object_get(policies, "a"), "shared_object_id")),
                   2);
  assert_string_equal(
      json_string_value(json_object_get(json_object_get(json_array_get(layers, 0), "config"), "dtype")),
      "float32");
  json_decref(object);
  mix_model *read = mix_model_from_json(mix_model_to_json(model));
  expect_compute(read, "a", MIX_BFLOAT16);
  expect_compute(read, "b", MIX_FLOAT32);
}

/* ---- keys that match nothing ---- */

static char warnings[4096];

static void take_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING)
    snprintf(warnings + strlen(warnings), sizeof warnings - strlen(warnings), "%s\n", message);
}

static void a_key_without_a_layer_is_a_warning(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_policy *map = map_of("dense_1", "mixed_bfloat16");
  assert_int_equal(mix_policy_map_set_name(map, "den.*", "mixed_float16"), MIX_OK);
  mix_tensor *in = mix_input(.shape = {1, {3}}, .name = "in");
  mix_tensor *x = mix_call(mix_dense(4, .name = "dense", .policy = map), in);
  mix_model *model = mix_model_new(in, x);
  mix_set_log_callback(take_warning, NULL);
  warnings[0] = 0;
  assert_int_equal(mix_model_compile(model, .loss = "mse"), MIX_OK);
  mix_set_log_callback(NULL, NULL);
  assert_string_equal(warnings, "model_compile: the key 'dense_1' of the policy map 'map_float32' matches no "
                                "layer; the paths of layers are: dense\n");
}

static void bad_maps_for_files(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_policy *map = map_of(".*", "mixed_bfloat16");
  mix_model *model = mix_sequential(NULL, .name = "s");
  mix_sequential_add(model, mix_dense(4, .name = "a"));
  mix_model_predict(model, ramp((mix_shape){2, {3, 3}}));
  assert_int_equal(mix_model_save(model, in_folder("plain.keras")), MIX_OK);
  assert_null(mix_model_load(in_folder("plain.keras"), .policy_map = map, .policy = "mixed_float16"));
  assert_error(MIX_VALUE_ERROR, "both policy 'mixed_float16' and a policy_map were given");
  assert_null(mix_model_load(in_folder("plain.keras"), .policy_map = mix_policy_new("float32")));
  assert_error(MIX_TYPE_ERROR, "expected a map");
  mix_policy_map_set_name(map, "a.?", "float32");
  assert_null(mix_model_load(in_folder("plain.keras"), .policy_map = map));
  assert_error(MIX_VALUE_ERROR, "the path 'a' matches several keys: ['.*', 'a.?']");
  mix_set_semantics("tf_keras");
  mix_model *old = mix_sequential(NULL, .name = "s");
  mix_sequential_add(old, mix_dense(4, .name = "a"));
  mix_model_predict(old, ramp((mix_shape){2, {3, 3}}));
  assert_int_equal(mix_model_save(old, in_folder("old.keras")), MIX_OK);
  assert_null(mix_model_load(in_folder("old.keras"), .policy_map = map));
  assert_error(MIX_VALUE_ERROR, "policies by layer are of Keras 3");
}

/* Before anything of a layer has changed; Keras has replaced its variables by then. */
static void K14_no_layer_with_a_map_is_quantized(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = mix_sequential(NULL, .name = "s");
  mix_sequential_add(model, mix_dense(4, .name = "a", .policy = map_of("s/a", "mixed_bfloat16")));
  mix_model_predict(model, ramp((mix_shape){2, {3, 3}}));
  assert_int_equal(mix_model_quantize(model, "float8"), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "layer 'a' has the policy 'map_float32', a map");
  assert_int_equal(mix_list_count(mix_model_weights(model)), 2);
}

static void tf_keras_has_no_maps(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = mix_sequential(NULL, .name = "s");
  mix_sequential_add(model, mix_dense(4, .name = "a", .policy = map_of("s/a", "mixed_bfloat16")));
  mix_model_predict(model, ramp((mix_shape){2, {3, 3}}));
  assert_int_equal(
      mix_model_save(model, in_folder("other.keras"), .semantics = mix_semantics_named("tf_keras")),
      MIX_UNSUPPORTED);
  assert_error(MIX_UNSUPPORTED,
               "the layer 'a' has the map 'map_float32'; save for keras3, or give the layer the "
               "policy 'mixed_bfloat16'");
}

/* Layers that are to stay float32 leave the map. */
static void float32_layers_leave_it(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = mix_sequential(NULL, .name = "s");
  mix_sequential_add(model, mix_dense(4, .name = "a"));
  mix_sequential_add(model, mix_dense(4, .name = "b"));
  mix_model_predict(model, ramp((mix_shape){2, {3, 3}}));
  assert_int_equal(mix_model_save(model, in_folder("plain.keras")), MIX_OK);
  mix_model *read = mix_model_load(in_folder("plain.keras"), .policy_map = map_of(".*", "mixed_bfloat16"),
                                   .float32_layers = (const char *const[]){"a", NULL});
  assert_no_error();
  expect_compute(read, "b", MIX_BFLOAT16);
  assert_null(layer_at(read->layer, "a"));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(K06_to_K09_files_with_maps),
                                     TEST(a_map_for_a_file_without_one),
                                     TEST(written_files_keep_them),
                                     TEST(K06_sequential),
                                     TEST(K06_layers_in_layers),
                                     TEST(K10_K12_objects_are_shared),
                                     TEST(a_key_without_a_layer_is_a_warning),
                                     TEST(bad_maps_for_files),
                                     TEST(K14_no_layer_with_a_map_is_quantized),
                                     TEST(tf_keras_has_no_maps),
                                     TEST(float32_layers_leave_it)};
  return cmocka_run_group_tests_name("policy maps", tests, folder_begin, folder_end);
}
