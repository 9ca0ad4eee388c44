/* Models as JSON: what real Kerases wrote (models/record.py, and the reference models), text that no Keras
 * wrote, custom layers, and clones. */
#include "support/skip.h"
#include "base/alloc.h"
#include "base/error.h"
#include "model/support.h"
#include "nn/layers/operations/operation.h"
#include "nn/losses/loss.h"
#include "optim/optimizer.h"
#include "saving/model_json.h"
#include "support/expect.h"
#include "support/records.h"
#include <dirent.h>
#include <zip.h>

#define good(call) good_(call, __LINE__)
static void *good_(void *made, int line) {
  if (!made) fail_msg("line %d: %s", line, mix_error_message());
  return made;
}

/* ---- what Kerases wrote ---- */

/* Without what cannot be the same: the ids are addresses in Python's memory. */
static void without_ids(json_t *json) {
  const char *key;
  json_t *value;
  json_object_del(json, "shared_object_id");
  if (json_is_object(json)) json_object_foreach(json, key, value) without_ids(value);
  for (size_t i = 0; i < json_array_size(json); i++) without_ids(json_array_get(json, i));
}

/* Python keeps an integer that the user gave for a number; the library holds doubles. */
static bool same(const json_t *got, const json_t *expected) {
  if (json_is_number(got) && json_is_number(expected))
    return json_number_value(got) == json_number_value(expected);
  return json_equal((json_t *)got, (json_t *)expected);
}

/* The path of the first difference; NULL: they are equal. */
static const char *difference(const json_t *got, const json_t *expected, char *path, size_t size) {
  const char *key;
  json_t *value;
  size_t used = strlen(path);
  if (same(got, expected)) return NULL;
  if (json_is_object(got) && json_is_object(expected)) {
    json_object_foreach((json_t *)expected, key, value) {
      snprintf(path + used, size - used, "/%s", key);
      const char *found = difference(json_object_get(got, key), value, path, size);
      if (found) return found;
    }
    json_object_foreach((json_t *)got, key, value) {
      snprintf(path + used, size - used, "/%s", key);
      if (!json_object_get(expected, key)) return path;
    }
    path[used] = 0;
    return NULL;
  } else if (json_is_array(got) && json_array_size(got) == json_array_size(expected)) {
    for (size_t i = 0; i < json_array_size(got); i++) {
      snprintf(path + used, size - used, "/%zu", i);
      const char *found = difference(json_array_get(got, i), json_array_get(expected, i), path, size);
      if (found) return found;
    }
    path[used] = 0;
    return NULL;
  }
  return path;
}

static void expect_json(const char *name, const json_t *got, const json_t *expected) {
  char path[2000] = "";
  const char *found = difference(got, expected, path, sizeof path);
  if (found) fail_msg("%s: another value at %s", name, found);
}
static void expect_text(const char *name, const char *got, const char *expected) {
  json_t *a = good(mix_json_parse(good((void *)got), name)), *b = good(mix_json_parse(expected, name));
  expect_json(name, a, b);
  json_decref(a);
  json_decref(b);
}

static json_t *recorded(const char *name) {
  char file[128];
  snprintf(file, sizeof file, "saving/models/%s.json", name);
  return load_records(file, 0);
}

static mix_tensor *tensor_of(const json_t *array, mix_dtype dtype) {
  const json_t *shape = json_object_get(array, "shape"), *values = json_object_get(array, "values");
  mix_shape s = {.rank = (int)json_array_size(shape)};
  for (int i = 0; i < s.rank; i++) s.dims[i] = json_integer_value(json_array_get(shape, (size_t)i));
  size_t count = json_array_size(values);
  double *numbers = mix_scoped_memory((count + 1) * sizeof *numbers);
  for (size_t i = 0; i < count; i++) numbers[i] = json_number_value(json_array_get(values, i));
  return mix_tensor_from_doubles(numbers, dtype, s);
}
static mix_list *tensors_of(const json_t *arrays, mix_dtype dtype) {
  mix_list *list = mix_list_new(0, NULL);
  for (size_t i = 0; i < json_array_size(arrays); i++)
    mix_list_append(list, tensor_of(json_array_get(arrays, i), dtype));
  return list;
}

/* The bounds of the reference models, relative to the largest magnitude: outputs of 16-bit layers, others. */
static double bound_of(const char *text) {
  return strstr(text, "bfloat16") ? 5e-2 : strstr(text, "float16") ? 1e-2 : 1e-5;
}

static void expect_near(const char *name, mix_tensor *got, mix_tensor *expected, double bound) {
  int64_t count = mix_shape_size(mix_tensor_shape(expected));
  double largest = 0;
  assert_int_equal(mix_shape_size(mix_tensor_shape(got)), count);
  for (int64_t i = 0; i < count; i++) largest = fmax(largest, fabs(at(expected, i)));
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(at(got, i) - at(expected, i)) <= bound * largest))
      fail_msg("%s: result %lld is %g; expected %g", name, (long long)i, at(got, i), at(expected, i));
}

static mix_list *outputs_of(mix_model *model, const json_t *record) {
  mix_dtype dtype = strstr(json_string_value(json_object_get(record, "name")), "words") ? MIX_INT32 : F32;
  mix_list *inputs = tensors_of(json_object_get(record, "inputs"), dtype);
  mix_list *weights = tensors_of(json_object_get(record, "weights"), F32);
  assert_int_equal(mix_model_set_weights(model, weights), MIX_OK);
  void *x = mix_list_count(inputs) > 1 ? (void *)inputs : mix_list_get(inputs, 0);
  mix_predict_options options = {.size = sizeof options, .x = x};
  return good(mix_model_predict_with(model, &options));
}

/* Text to model to text; with the weights of Keras the model predicts what Keras predicted; so does a clone,
 * with the same bits. */
static void check_recorded(const char *name) {
  json_t *record = recorded(name);
  const char *text = json_string_value(json_object_get(record, "text"));
  mix_model *model = good(mix_model_from_json(text));
  assert_ptr_equal(mix_model_layer(model)->semantics,
                   strstr(name, "keras3") ? &mix_semantics_keras3 : &mix_semantics_tf_keras);
  expect_text(name, mix_model_to_json(model), text);
  char *written = mix_strdup(mix_model_to_json(model));
  mix_model *again = good(mix_model_from_json(written, .no_compile = true));
  mix_model *clone = good(mix_model_clone(again));
  char *uncompiled = mix_strdup(mix_model_to_json(again));
  expect_text(name, mix_model_to_json(clone), uncompiled);
  if (json_object_get(record, "outputs")) {
    mix_list *expected = tensors_of(json_object_get(record, "outputs"), F32);
    mix_list *got = outputs_of(model, record), *cloned = outputs_of(clone, record);
    assert_int_equal(mix_list_count(got), mix_list_count(expected));
    for (int i = 0; i < mix_list_count(got); i++) {
      expect_near(name, mix_list_get(got, i), mix_list_get(expected, i), bound_of(text));
      expect_near(name, mix_list_get(cloned, i), mix_list_get(got, i), 0);
    }
  }
  mix_free(written);
  mix_free(uncompiled);
  json_decref(record);
}

static const char *const names[] = {"sequential",
                                    "sequential-built",
                                    "sequential-open",
                                    "several",
                                    "dictionary",
                                    "nested",
                                    "nested-sequential",
                                    "policies",
                                    "mixed",
                                    "norms",
                                    "noise",
                                    "merges",
                                    "words",
                                    "scaled",
                                    "attention",
                                    "applications"};

static void M05_recorded_models(void **state) {
  (void)state;
  char name[80];
  static const char *const current[] = {"tf_keras", "keras3", "experimental"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    for (int g = 0; g < 2; g++)
      MIX_SCOPE { /* whatever the current semantics */
        mix_set_semantics(current[(i + (size_t)g) % 3]);
        snprintf(name, sizeof name, "%s-%s", g ? "keras3" : "tf_keras", names[i]);
        check_recorded(name);
      }
}

/* The config of an archive, which the caller frees; NULL: the file is none. */
static char *archive_config(const char *path) {
  struct zip_stat status;
  zip_t *archive = zip_open(path, ZIP_RDONLY, NULL);
  if (!archive) return NULL;
  assert_int_equal(zip_stat(archive, "config.json", 0, &status), 0);
  char *text = mix_calloc(1, (size_t)status.size + 1);
  zip_file_t *file = zip_fopen(archive, "config.json", 0);
  assert_int_equal(zip_fread(file, text, status.size), status.size);
  zip_fclose(file);
  zip_close(archive);
  return text;
}

/* A class of a layer in this object that the library lacks; NULL: it has all. */
static const char *missing_class(const json_t *object) {
  const char *name = json_string_value(json_object_get(object, "class_name")), *missing = NULL;
  const json_t *config = json_object_get(object, "config"), *layers = json_object_get(config, "layers");
  bool found = !strcmp(name, "InputLayer") || !strcmp(name, "Functional") || !strcmp(name, "Sequential");
  if (!found && !mix_layer_kind_named(name) && !mix_keras_operation_named(name)) return name;
  static const char *const inner[] = {"layer", "backward_layer", "cell"};
  for (size_t i = 0; i < json_array_size(layers) && !missing; i++)
    missing = missing_class(json_array_get(layers, i));
  for (size_t i = 0; i < sizeof inner / sizeof *inner && !missing; i++)
    if (json_is_object(json_object_get(config, inner[i])))
      missing = missing_class(json_object_get(config, inner[i]));
  return missing;
}

/* Keras's own archives: all whose layers the library has are read and written with the same value. The
 * others are refused by the name of a class. */
static void reference_models(void **state) {
  (void)state;
  char folder[600], path[900];
  int read = 0, files = 0;
  const char *root = getenv("MIXTAPE_REFERENCE_DIR");
  snprintf(folder, sizeof folder, "%s/models", root ? root : "/nonexistent");
  DIR *directory = opendir(folder);
  if (!directory) SKIP("MIXTAPE_REFERENCE_DIR has no models");
  for (struct dirent *entry; (entry = readdir(directory));) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 6, ".keras")) continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    char *text = good(archive_config(path));
    json_t *json = good(mix_json_parse(text, "test"));
    const char *missing = missing_class(json);
    MIX_SCOPE {
      mix_model *model = mix_model_from_json(text);
      files++, read += model != NULL;
      if (missing) {
        expect_refused(model, MIX_VALUE_ERROR, "not supported");
      } else {
        json_t *written = good(mix_model_archive_json(good(model)));
        without_ids(json);
        expect_json(entry->d_name, written, json);
        json_decref(written);
      }
    }
    json_decref(json);
    mix_free(text);
  }
  closedir(directory);
  assert_true(files >= 300);
  assert_true(read >= 21);
}

/* ---- models of this library against Keras's text ---- */

static mix_model *towers(void) {
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(4), .name = "left"),
             *b = mix_input(.shape = MIX_SHAPE(4), .name = "right");
  mix_layer *tower = mix_dense(5, .activation = "tanh", .name = "tower");
  mix_tensor *x = mix_call(tower, a), *y = mix_call(tower, b);
  mix_tensor *both = mix_call(mix_concatenate(.name = "both"), mix_list_of(x, y));
  return mix_model_new(mix_list_of(a, b),
                       mix_list_of(mix_call(mix_dense(2, .name = "one"), both),
                                   mix_call(mix_add_layer(.name = "two"), mix_list_of(x, y))),
                       .name = "towers");
}

static void models_of_c_are_written_as_keras_does(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    json_t *several = recorded(g ? "keras3-several" : "tf_keras-several");
    json_t *chain = recorded(g ? "keras3-sequential" : "tf_keras-sequential");
    json_t *built = recorded(g ? "keras3-sequential-built" : "tf_keras-sequential-built");
    mix_set_semantics(g ? "keras3" : "tf_keras");
    mix_clear_names();
    /* tf_keras rounds the options of regularizers to floatx */
    mix_model *model = towers();
    mix_model_compile(model, .losses = {"mse", "mae"}, .loss_weights = {1, 0.5},
                      .optimizer = mix_sgd(0.1, .momentum = 0.9));
    expect_text("several", mix_model_to_json(model), json_string_value(json_object_get(several, "text")));
    mix_layer *input = mix_tensor_history(mix_input(.shape = MIX_SHAPE(8)), NULL)->layer;
    model = mix_sequential(
        mix_list_of(input, mix_dense(6, .activation = "relu", .name = "first"), mix_dropout(0.25),
                    mix_dense(4, .no_bias = true,
                              .kernel_regularizer = mix_regularizer_new("l2", .l2 = g ? 0.01 : 0.01f)),
                    mix_activation("softmax", .dtype = "float32")),
        .name = "chain");
    mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 8));
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer_name = "adam",
                      .metrics = {"accuracy"});
    expect_text("sequential", mix_model_to_json(model), json_string_value(json_object_get(chain, "text")));
    mix_clear_names();
    model = mix_sequential(
        mix_list_of(mix_dense(3, .dtype = "mixed_bfloat16"), mix_layer_normalization(), mix_dense(2)));
    mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 5));
    expect_text("built", mix_model_to_json(model), json_string_value(json_object_get(built, "text")));
    json_decref(several);
    json_decref(chain);
    json_decref(built);
  }
}

/* The text itself, as Python's json.dumps writes it. */
static void the_text_is_pythons(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{\"a\": [0.1, 1e-07, 1.0, 32768.0, 100000.0, 1e+16, 123456789012345.0, 0.0001, -2.5, 5e-324]}",
      "[null, true, false, 3, \"x\\n\\u00E4\", {}, []]", "0.05000000074505806"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    json_t *json = good(mix_json_parse(texts[i], "test"));
    char *text = mix_json_python_text(json);
    assert_string_equal(text, texts[i]);
    mix_free(text);
    json_decref(json);
  }
  json_t *record = recorded("keras3-several");
  const char *text = json_string_value(json_object_get(record, "text"));
  assert_string_equal(mix_model_to_json(good(mix_model_from_json(text))), text);
  json_decref(record);
}

/* ---- compile ---- */

static void compile_settings_come_back(void **state) {
  (void)state;
  json_t *record = recorded("keras3-several");
  const char *text = json_string_value(json_object_get(record, "text"));
  mix_model *model = good(mix_model_from_json(text));
  assert_non_null(mix_model_optimizer(model));
  assert_near(mix_optimizer_learning_rate(mix_model_optimizer(model)), 0.1, 1e-8);
  assert_true(model->state->loss_weights[1] == 0.5);
  assert_string_equal(model->state->losses[1]->kind->name, "mean_absolute_error");
  assert_null(mix_model_optimizer(good(mix_model_from_json(text, .no_compile = true))));
  json_decref(record);
  /* losses and metrics under the names of outputs */
  record = recorded("keras3-dictionary");
  json_t *json = good(mix_json_parse(json_string_value(json_object_get(record, "text")), "test"));
  json_object_set_new(
      json, "compile_config",
      good(json_pack("{s:s,s:{s:s},s:{s:f},s:{s:s,s:[s,s]}}", "optimizer", "sgd", "loss", "x", "mse",
                     "loss_weights", "x", 0.0, "metrics", "sum", "mae", "x", "mae", "mse")));
  char *changed = mix_json_text(json);
  model = good(mix_model_from_json(changed));
  assert_null(model->state->losses[0]);
  assert_string_equal(model->state->losses[1]->kind->name, "mean_squared_error");
  assert_true(model->state->loss_weights[1] == 0);
  assert_int_equal(model->state->metric_count, 3);
  json_t *written = good(mix_model_archive_json(model)), *got = json_object_get(written, "compile_config");
  json_object_del(got, "optimizer");
  json_object_del(json_object_get(json, "compile_config"), "optimizer");
  expect_json("compile_config", got, json_object_get(json, "compile_config"));
  json_decref(written);
  json_decref(json);
  json_decref(record);
  mix_free(changed);
}

/* What compile was given by this library's own options, in Keras's forms. */
static void compile_settings_are_written(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_model *model = towers();
  mix_model_compile(model, .loss_objects = mix_list_of(mix_loss_new("mse"), NULL), .metrics = {"mae"},
                    .weighted_metric_objects = mix_list_of(mix_metric_new("mse", .name = "w"), NULL),
                    .jit_compile = true, .optimizer = mix_loss_scale_optimizer(mix_sgd(0.5)));
  json_t *json = good(mix_model_archive_json(model)), *config = json_object_get(json, "compile_config");
  char *text = mix_json_python_text(config);
  static const char *const parts[] = {
      "{\"optimizer\": {\"module\": \"keras.optimizers\", \"class_name\": \"LossScaleOptimizer\"",
      "\"loss\": [{\"module\": \"keras.losses\", \"class_name\": \"MeanSquaredError\"",
      "\"loss_weights\": null, \"metrics\": [[\"mae\"], [\"mae\"]], \"weighted_metrics\": [{",
      "{\"module\": \"keras.metrics\", \"class_name\": \"MeanSquaredError\", \"config\": {\"name\": \"w\"",
      "null], \"run_eagerly\": false, \"steps_per_execution\": 1, \"jit_compile\": true}"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    if (!strstr(text, parts[i])) fail_msg("%s is not in %s", parts[i], text);
  mix_free(text);
  text = mix_json_text(json);
  mix_model *again = good(mix_model_from_json(text));
  assert_true(again->state->given.jit_compile && again->state->losses[0] && !again->state->losses[1]);
  expect_text("again", mix_model_to_json(again), text);
  mix_free(text);
  json_decref(json);
}

/* HDF5 files of tf_keras have the output's name before that of a metric. */
static void metrics_lose_the_name_of_their_output(void **state) {
  (void)state;
  mix_set_semantics("tf_keras");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3));
  mix_model *model = mix_model_new(
      x, mix_list_of(mix_call(mix_dense(1, .name = "a"), x), mix_call(mix_dense(1, .name = "a_b"), x)));
  json_t *json = good(mix_json_parse(good((void *)mix_model_to_json(model)), "test"));
  static const char metric[] =
      "[{\"class_name\": \"MeanMetricWrapper\", \"config\": {\"name\": \"%s\", \"fn\": "
      "\"mean_squared_error\"}}]";
  char first[200], second[200], both[500];
  snprintf(first, sizeof first, metric, "a_m");
  snprintf(second, sizeof second, metric, "a_b_m");
  snprintf(both, sizeof both, "{\"optimizer\": \"sgd\", \"loss\": \"mse\", \"metrics\": [%s, %s]}", first,
           second);
  mix_json_set(json, "compile_config", good(mix_json_parse(both, "test")));
  char *text = mix_json_text(json);
  mix_tensor *label = mix_fill(MIX_SHAPE(2, 1), 1, MIX_FLOAT32);
  mix_logs *logs =
      mix_model_evaluate(good(mix_model_from_json(text)), mix_fill(MIX_SHAPE(2, 3), 1, MIX_FLOAT32),
                         mix_list_of(label, label), .verbose = MIX_SILENT);
  assert_no_error();
  assert_string_equal(mix_logs_name(logs, 3), "a_m");
  assert_string_equal(mix_logs_name(logs, 4), "a_b_m");
  mix_free(text);
  json_decref(json);
}

/* M05: a model with a mixed_float16 layer scales its loss, as if that policy were the global one. */
static void a_mixed_layer_scales_the_loss(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    json_t *record = recorded(g ? "keras3-mixed" : "tf_keras-mixed");
    mix_model *model = good(mix_model_from_json(json_string_value(json_object_get(record, "text"))));
    assert_string_equal(mix_policy_name(mix_model_policy(model)), "mixed_float16");
    mix_model_compile(model, .loss = "mse", .optimizer_name = "adam");
    assert_true(mix_model_optimizer(model)->inner != NULL);
    mix_layer *layer = mix_model_get_layer(model, g ? "activation" : "activation");
    assert_string_equal(mix_policy_name(mix_layer_policy(layer)), "float32");
    json_decref(record);
  }
}

/* ---- custom layers ---- */

typedef struct scaled {
  double factor;
  mix_layer *inner;
} scaled;

static mix_list *scaled_call(mix_layer *layer, const mix_call_args *args) {
  scaled *self = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (self->inner) x = mix_call(self->inner, x);
  return mix_list_of(mix_multiply(x, mix_scalar_like(x, self->factor)));
}
static mix_status scaled_config(mix_layer *layer, mix_config *config) {
  scaled *self = mix_layer_data(layer);
  mix_config_number(config, "factor", self->factor);
  return mix_config_json(config, "inner", self->inner ? mix_layer_serialize(self->inner) : "null");
}
static mix_status scaled_from_config(mix_layer *layer, mix_config *config) {
  scaled *self = mix_layer_data(layer);
  self->factor = mix_config_get_number(config, "factor", 1);
  const char *inner = mix_config_get_json(config, "inner");
  if (inner)
    self->inner = mix_layer_add_layer(layer, mix_layer_deserialize(inner, mix_layer_semantics(layer)));
  return mix_error();
}
static const mix_layer_class scaled_class = {.size = sizeof(mix_layer_class),
                                             .name = "Scaled",
                                             .instance_size = sizeof(scaled),
                                             .call = scaled_call,
                                             .get_config = scaled_config,
                                             .from_config = scaled_from_config};

static mix_model *model_with_scaled(void) {
  mix_layer *layer = mix_layer_new(&scaled_class, .dtype = "float64", .not_trainable = true);
  scaled *self = mix_layer_data(layer);
  self->factor = 2.5;
  self->inner = mix_layer_add_layer(layer, mix_dense(3, .name = "inside"));
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2));
  return mix_model_new(x, mix_call(layer, x));
}

static void expect_scaled(mix_model *model) {
  mix_layer *layer = mix_model_get_layer(good(model), "scaled");
  scaled *self = mix_layer_data(layer);
  assert_true(self->factor == 2.5);
  assert_string_equal(mix_layer_name(self->inner), "inside");
  assert_false(mix_layer_trainable(layer));
  assert_string_equal(mix_policy_name(mix_layer_policy(layer)), "float64");
  assert_int_equal(mix_list_count(mix_model_weights(model)), 2);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 2), 1, 2);
  assert_non_null(mix_tensor_data(good(mix_model_call(model, x))));
}

static void custom_layers_come_back(void **state) {
  (void)state;
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(g ? "keras3" : "tf_keras");
    mix_clear_names();
    mix_model *model = model_with_scaled();
    char *text = mix_strdup(mix_model_to_json(model));
    assert_non_null(strstr(text, "{\"module\": null, \"class_name\": \"Scaled\""));
    assert_non_null(strstr(text, "\"registered_name\": \"Scaled\""));
    expect_refused(mix_model_from_json(text), MIX_VALUE_ERROR, "'Scaled'");
    expect_scaled(mix_model_clone(model)); /* needs no name */
    static const mix_layer_class *const classes[] = {&scaled_class, NULL};
    expect_scaled(mix_model_from_json(text, .custom_layers = classes));
    expect_refused(mix_model_from_json(text), MIX_VALUE_ERROR, "'Scaled'");
    mix_free(text);
  }
}

/* The registry lasts until mix_shutdown, so this test comes after those of unknown classes. */
static void registered_layers_come_back(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  assert_int_equal(mix_register_layer("shop", NULL, &scaled_class), MIX_OK);
  mix_model *model = model_with_scaled();
  const char *text = mix_model_to_json(model);
  assert_non_null(strstr(text, "\"registered_name\": \"shop>Scaled\""));
  expect_scaled(mix_model_from_json(text));
  mix_layer *layer = mix_model_get_layer(model, "scaled");
  layer = good(mix_layer_deserialize(mix_layer_serialize(layer), NULL));
  assert_true(((scaled *)mix_layer_data(layer))->factor == 2.5);
  /* a second registration replaces the first; another name is another entry */
  mix_layer_class other = scaled_class;
  other.name = "Other";
  assert_int_equal(mix_register_layer("shop", "Scaled", &other), MIX_OK);
  assert_string_equal(mix_layer_class_name(good(mix_layer_from_config("Scaled", "{}", NULL))), "Other");
  mix_register_layer("shop", "Scaled", &scaled_class);
  assert_int_equal(mix_register_layer(NULL, NULL, &other), MIX_OK);
  layer = good(mix_layer_deserialize("{\"class_name\": \"?\", \"registered_name\": \"Custom>Other\", "
                                     "\"config\": {\"name\": \"o\", \"factor\": 3}}",
                                     NULL));
  assert_true(((scaled *)mix_layer_data(layer))->factor == 3);
  expect_refused(mix_layer_from_config("Scaled", "{\"factor\": \"much\"}", NULL), MIX_TYPE_ERROR, "factor");
  mix_register_layer("a>b", NULL, &other);
  expect_error(MIX_VALUE_ERROR, "'>'");
  other.call = NULL;
  mix_register_layer("a", NULL, &other);
  expect_error(MIX_VALUE_ERROR, "call function");
  mix_register_layer("a", NULL, NULL);
  expect_error(MIX_TYPE_ERROR, "layer class");
}

/* ---- clones ---- */

static mix_layer *with_leaky_relu(void *context, mix_layer *layer) {
  ++*(int *)context;
  if (strcmp(mix_layer_class_name(layer), "Dense")) return mix_layer_clone(layer);
  return mix_dense(((const mix_dense_options *)mix_layer_data(layer))->units, .name = mix_layer_name(layer),
                   .activation = "relu");
}
static mix_layer *with_nothing(void *context, mix_layer *layer) { return (void)context, (void)layer, NULL; }

static void clones(void **state) {
  (void)state;
  mix_model *model = towers();
  mix_model *clone = good(mix_model_clone(model));
  expect_text("clone", mix_model_to_json(clone), mix_model_to_json(model));
  assert_ptr_not_equal(mix_model_get_layer(clone, "tower"), mix_model_get_layer(model, "tower"));
  assert_true(weight_at(clone, 0, 0) != weight_at(model, 0, 0)); /* drawn anew */
  assert_int_equal(mix_list_count(mix_model_weights(clone)), mix_list_count(mix_model_weights(model)));
  assert_null(mix_model_optimizer(clone));
  int calls = 0;
  clone = good(mix_model_clone(model, .clone_function = with_leaky_relu, .context = &calls));
  assert_int_equal(calls, 4); /* of a shared layer once, of inputs never */
  assert_non_null(strstr(mix_layer_config(mix_model_get_layer(clone, "tower")), "\"relu\""));
  expect_refused(mix_model_clone(model, .clone_function = with_nothing), MIX_TYPE_ERROR, "no layer for");
  mix_list *inputs =
      mix_list_of(mix_input(.shape = MIX_SHAPE(4), .name = "other"), mix_input(.shape = MIX_SHAPE(4)));
  clone = good(mix_model_clone(model, .inputs = inputs));
  good(mix_model_get_layer(clone, "other"));
  expect_refused(mix_model_clone(model, .inputs = mix_list_get(inputs, 0)), MIX_VALUE_ERROR, "1 inputs");
  mix_model *chain = mix_sequential(mix_list_of(mix_dense(2)));
  assert_false(mix_layer_built(mix_model_layer(good(mix_model_clone(chain)))));
  mix_model_build(chain, MIX_SHAPE(MIX_UNKNOWN, 3));
  assert_int_equal(mix_list_count(mix_model_weights(good(mix_model_clone(chain)))), 2);
  expect_refused(mix_model_clone(chain, .inputs = inputs), MIX_VALUE_ERROR, "sequential");
  expect_refused(mix_model_clone(NULL), MIX_TYPE_ERROR, "model");
}

static mix_tensor *twice(void *context, const mix_call_args *args) {
  (void)context;
  return mix_add(mix_call_input(args, 0), mix_call_input(args, 0));
}
static void clones_keep_functions(void **state) {
  (void)state;
  mix_model *model = mix_sequential(mix_list_of(mix_lambda(.function = twice)));
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(1, 1), 3);
  assert_true(at(mix_model_call(good(mix_model_clone(model)), x), 0) == 6);
  expect_refused(mix_model_from_json(mix_model_to_json(model)), MIX_VALUE_ERROR, "C function");
}

static void subclassed_models_are_refused(void **state) {
  (void)state;
  mix_model *model = mix_subclassed(mix_layer_new(&scaled_class));
  expect_refused(mix_model_to_json(model), MIX_UNSUPPORTED, "subclassed");
  expect_refused(mix_model_clone(model), MIX_UNSUPPORTED, "subclassed");
  expect_refused(mix_model_to_json(NULL), MIX_TYPE_ERROR, "model");
}

/* ---- other texts ---- */

/* Forms that older Kerases wrote. */
static void older_forms(void **state) {
  (void)state;
  mix_model *model = good(mix_model_from_json(
      "{\"class_name\": \"Sequential\", \"config\": [{\"class_name\": \"Dense\", \"config\": {\"name\": "
      "\"d\", "
      "\"batch_input_shape\": [null, 3], \"units\": 2, \"dtype\": \"float32\"}}], \"keras_version\": "
      "\"2.1.6\"}"));
  assert_int_equal(mix_list_count(mix_model_weights(model)), 2);
  model = good(mix_model_from_json(
      "{\"class_name\": \"Model\", \"config\": {\"name\": \"m\", \"layers\": [{\"name\": \"i\", "
      "\"class_name\": "
      "\"InputLayer\", \"config\": {\"batch_input_shape\": [null, 3], \"dtype\": \"float32\", \"name\": "
      "\"i\"}, "
      "\"inbound_nodes\": []}, {\"name\": \"d\", \"class_name\": \"Dropout\", \"config\": {\"name\": \"d\", "
      "\"rate\": 0.5}, \"inbound_nodes\": [[[\"i\", 0, 0, {\"training\": true}]]]}], \"input_layers\": "
      "[[\"i\", 0, 0]], \"output_layers\": [[\"d\", 0, 0]]}}"));
  const mix_functional *graph = mix_layer_data(mix_model_layer(model));
  assert_int_equal(graph->calls[1]->training, MIX_TRUE);
  /* the given semantics win over those of the text */
  model =
      good(mix_model_from_json("{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s\", \"layers\": "
                               "[{\"class_name\": \"Dense\", \"config\": {\"units\": 2, "
                               "\"dtype\": \"float32\"}}]}, \"keras_version\": \"2.13\"}",
                               .semantics = mix_semantics_named("keras3")));
  assert_non_null(strstr(mix_model_to_json(model), "DTypePolicy"));
}

/* ZerosLike and OnesLike of Keras 3 have the dtype of their tensor where the config has none. */
static void operations_have_their_dtype(void **state) {
  (void)state;
  static const char form[] =
      "{'class_name': 'Functional', 'keras_version': '3.15.0', 'config': {'name': 'm', 'layers': ["
      "{'class_name': 'InputLayer', 'config': {'batch_shape': [null, 3], 'dtype': 'int32', 'name': 'i'}, "
      "'inbound_nodes': []}, {'module': 'keras.src.ops.numpy', 'class_name': '%s', "
      "'config': {'name': 'z', 'dtype': %s}, 'inbound_nodes': [{'args': [{'class_name': '__keras_tensor__', "
      "'config': {'keras_history': ['i', 0, 0]}}], 'kwargs': {}}]}], 'input_layers': [['i', 0, 0]], "
      "'output_layers': [['z', 0, 0]]}}";
  static const struct {
    const char *text;
    mix_dtype dtype;
  } rows[] = {{"null", MIX_INT32},
              {"\"bool\"", MIX_BOOL},
              {"\"float32\"", MIX_FLOAT32},
              {"\"float16\"", MIX_FLOAT16},
              {"\"uint8\"", MIX_UINT8}};
  for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
    char text[1000], config[60];
    snprintf(text, sizeof text, form, i % 2 ? "OnesLike" : "ZerosLike", rows[i / 2].text);
    for (char *at = text; *at; at++)
      if (*at == '\'') *at = '"';
    mix_model *model = good(mix_model_from_json(text));
    mix_tensor *got = good(mix_model_call(model, mix_fill(MIX_SHAPE(2, 3), 7, MIX_INT32)));
    assert_int_equal(mix_tensor_dtype(got), rows[i / 2].dtype);
    assert_true(mix_tensor_item(mix_reduce_max(mix_cast(got, MIX_FLOAT32), (mix_axes){0}, false)) ==
                (double)(i % 2));
    snprintf(config, sizeof config, "{\"name\": \"z\", \"dtype\": %s}", rows[i / 2].text);
    assert_non_null(strstr(mix_model_to_json(model), config));
    mix_model *again = good(mix_model_clone(model));
    assert_string_equal(mix_model_to_json(again), mix_model_to_json(model));
    /* no policy: it stays where the layers of the file get another one */
    json_t *object = json_loads(text, 0, NULL);
    assert_true(mix_override_policy(object, "mixed_float16", mix_semantics_or_current(NULL)));
    char *replaced = json_dumps(object, 0);
    assert_non_null(strstr(replaced, config));
    free(replaced);
    json_decref(object);
  }
}

/* What each generation writes comes back as that generation, whatever the current one. */
static void texts_keep_their_generation(void **state) {
  (void)state;
  static const char *const generations[] = {"experimental", "tf_keras", "keras3"};
  for (int g = 0; g < 3; g++)
    for (int policy = 0; policy < 2; policy++)
      MIX_SCOPE {
        mix_set_semantics(generations[g]);
        mix_tensor *x = mix_input(.shape = MIX_SHAPE(3));
        mix_layer *dense = mix_dense(2, .dtype = policy ? "mixed_float16" : "float32");
        mix_model *model = good(mix_model_new(x, mix_call(dense, x)));
        mix_set_semantics(generations[(g + 1) % 3]);
        mix_model *again = good(mix_model_from_json(mix_model_to_json(model)));
        mix_layer *layer = mix_list_get(mix_model_layers(again), 1);
        assert_string_equal(mix_semantics_name(mix_layer_semantics(layer)), generations[g]);
        assert_string_equal(mix_model_to_json(again), mix_model_to_json(model));
      }
}

#define INPUT                                                                                                \
  "{\"name\": \"i\", \"class_name\": \"InputLayer\", \"config\": {\"name\": \"i\", "                         \
  "\"batch_shape\": [null, 3], \"dtype\": \"float32\"}, \"inbound_nodes\": []}"
#define TENSOR(history)                                                                                      \
  "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null, 3], \"dtype\": \"float32\", "       \
  "\"keras_history\": " history "}}"
#define RELU(name, args)                                                                                     \
  "{\"name\": \"" name "\", \"class_name\": \"ReLU\", \"config\": {\"name\": \"" name                        \
  "\"}, \"inbound_nodes\": [{\"args\": [" args "], \"kwargs\": {}}]}"
#define MODEL(layers, inputs, outputs)                                                                       \
  "{\"class_name\": \"Functional\", \"config\": {\"name\": \"m\", \"layers\": [" layers                      \
  "], \"input_layers\": " inputs ", \"output_layers\": " outputs "}}"

static void damaged_texts(void **state) {
  (void)state;
  static const struct {
    const char *text;
    mix_status status;
    const char *mentions;
  } rows[] = {
      {NULL, MIX_TYPE_ERROR, "no text"},
      {"{", MIX_VALUE_ERROR, "not valid JSON"},
      {"[]", MIX_VALUE_ERROR, "class_name is 'missing'"},
      {"{\"class_name\": 3}", MIX_VALUE_ERROR, "class_name is 'missing'"},
      {"{\"class_name\": \"Dense\", \"config\": {\"units\": 2}}", MIX_VALUE_ERROR, "class_name is 'Dense'"},
      {"{\"class_name\": \"Functional\"}", MIX_VALUE_ERROR, "no list of layers"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": 4}}", MIX_VALUE_ERROR, "no list of layers"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [3]}}", MIX_VALUE_ERROR,
       "class_name and config"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"name\": 3, \"layers\": []}}", MIX_TYPE_ERROR, "name"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [{\"class_name\": \"Conv9D\", "
       "\"config\": {}}]}}",
       MIX_VALUE_ERROR, "'Conv9D'"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [{\"class_name\": \"Dense\", \"config\": "
       "{\"units\": \"many\"}}]}}",
       MIX_TYPE_ERROR, "units"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [" RELU("a", "") ", " INPUT "]}}",
       MIX_VALUE_ERROR, "InputLayer is item 1"},
      {MODEL(INPUT, "3", "[\"i\", 0, 0]"), MIX_VALUE_ERROR, "where a tensor is expected"},
      {MODEL(INPUT, "[\"i\", 0, 0]", "[]"), MIX_VALUE_ERROR, "output_layers"},
      {MODEL(INPUT, "[\"i\", 0, 0]", "[\"x\", 0, 0]"), MIX_VALUE_ERROR, "layer 'x'"},
      {MODEL(INPUT, "[\"i\", 0, 0]", "[\"i\", 1, 0]"), MIX_VALUE_ERROR, "call 1 of layer 'i'"},
      {MODEL(INPUT, "[\"i\", 0, 0]", "[\"i\", -1, 0]"), MIX_VALUE_ERROR, "call -1 of layer 'i'"},
      {MODEL(INPUT, "[\"i\", 0, 0]", "[\"i\", 0, 9]"), MIX_VALUE_ERROR, "result 9 of layer 'i'"},
      {MODEL(INPUT ", " INPUT, "[\"i\", 0, 0]", "[\"i\", 0, 0]"), MIX_VALUE_ERROR,
       "two layers are named 'i'"},
      {MODEL(RELU("a", TENSOR("[\"b\", 0, 0]")) ", " RELU("b", TENSOR("[\"a\", 0, 0]")), "[\"a\", 0, 0]",
             "[\"b\", 0, 0]"),
       MIX_VALUE_ERROR, "form a circle"},
      {MODEL(RELU("a", TENSOR("[\"a\", 0, 0]")), "[\"a\", 0, 0]", "[\"a\", 0, 0]"), MIX_VALUE_ERROR,
       "form a circle"},
      {MODEL(INPUT ", " RELU("a", ""), "[\"i\", 0, 0]", "[\"a\", 0, 0]"), MIX_VALUE_ERROR, "no inputs"},
      {MODEL(INPUT ", " RELU("a", "4"), "[\"i\", 0, 0]", "[\"a\", 0, 0]"), MIX_VALUE_ERROR,
       "where a tensor is expected"},
      {MODEL(INPUT ", " RELU("a", "{\"class_name\": \"x\"}"), "[\"i\", 0, 0]", "[\"a\", 0, 0]"),
       MIX_VALUE_ERROR, "[layer, call, result]"},
      {MODEL(INPUT ", " RELU("a", "null"), "[\"i\", 0, 0]", "[\"a\", 0, 0]"), MIX_VALUE_ERROR, "no inputs"},
      {MODEL(INPUT ", {\"class_name\": \"ReLU\", \"config\": {}}", "[\"i\", 0, 0]", "[\"i\", 0, 0]"),
       MIX_VALUE_ERROR, "layer 1 has no name"},
      {MODEL(
           INPUT
           ", {\"name\": \"a\", \"class_name\": \"ReLU\", \"config\": {\"name\": \"a\"}, \"inbound_nodes\": "
           "[{\"args\": [" TENSOR("[\"i\", 0, 0]") "], \"kwargs\": {\"loud\": 1}}]}",
           "[\"i\", 0, 0]", "[\"a\", 0, 0]"),
       MIX_VALUE_ERROR, "argument 'loud'"},
      {MODEL("{\"name\": \"i\", \"class_name\": \"InputLayer\", \"config\": {}}", "[\"i\", 0, 0]",
             "[\"i\", 0, 0]"),
       MIX_VALUE_ERROR, "batch_shape"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [{\"class_name\": \"Dense\", \"config\": "
       "{\"units\": 2}}]}, \"compile_config\": {\"optimizer\": 3}}",
       MIX_TYPE_ERROR, "optimizer"},
      {"{\"class_name\": \"Sequential\", \"config\": {\"layers\": [{\"class_name\": \"BatchNormalization\", "
       "\"config\": {\"renorm\": true}}]}}",
       MIX_VALUE_ERROR, "renorm"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (mix_model_from_json(rows[i].text)) fail_msg("accepted: %s", rows[i].text);
    if (!mix_error()) fail_msg("no error: %s", rows[i].text);
    expect_error(rows[i].status, rows[i].mentions);
  }
}

/* Models in models, more than JSON's own depth allows, and as deep as it does. */
static void deep_texts(void **state) {
  (void)state;
  for (int depth = 100; depth <= 4000; depth += 3900) {
    mix_text text = {.grows = true};
    for (int i = 0; i < depth; i++)
      mix_text_put(&text, "{\"class_name\": \"Sequential\", \"config\": {\"layers\": [");
    for (int i = 0; i < depth; i++) mix_text_put(&text, "]}}");
    mix_model *model = mix_model_from_json(text.text);
    mix_free(text.text);
    if (depth == 100) {
      assert_int_equal(mix_list_count(mix_model_layers(good(model))), 1);
    } else {
      assert_null(model);
      expect_error(MIX_VALUE_ERROR, "not valid JSON");
    }
  }
}

/* Every seventh allocation fails once; that is the error, and nothing is lost. */
static void memory_runs_out(void **state) {
  (void)state;
  json_t *record = recorded("keras3-several");
  const char *text = json_string_value(json_object_get(record, "text"));
  bool failed = true;
  int64_t count = 0;
  for (; failed && count < 100000; count += 7) {
    mix_inject_allocation_failure(count);
    MIX_SCOPE {
      mix_model *model = mix_model_from_json(text);
      if (model && mix_model_clone(model)) mix_model_to_json(model);
    }
    mix_inject_allocation_failure(-1);
    failed = mix_error() != MIX_OK;
    if (failed && mix_error() != MIX_MEMORY_ERROR)
      fail_msg("allocation %lld: %s", (long long)count, mix_error_message());
    mix_error_clear();
  }
  assert_false(failed);
  assert_true(count > 100);
  json_decref(record);
}

static const char *policy_in(mix_list *layers, const char *name) {
  for (int i = 0; i < mix_list_count(layers); i++)
    if (!strcmp(mix_layer_name(mix_list_get(layers, i)), name))
      return mix_policy_name(mix_layer_policy(mix_list_get(layers, i)));
  return "no such layer";
}

/* A layer, a wrapper with what is in it, and a layer in a model; in each generation's form of a policy. */
static void layers_stay_float32(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  static const char *const kept[] = {"first", "both", "block/second", NULL};
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_set_global_policy("mixed_float16");
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(3, 4), .name = "x");
    mix_tensor *y = mix_call(mix_dense(.units = 4, .name = "first"), x);
    y = mix_call(mix_bidirectional(mix_lstm(.units = 2), .name = "both"), y);
    mix_tensor *in = mix_input(.shape = MIX_SHAPE(4), .name = "in");
    mix_tensor *out = mix_call(mix_dense(.units = 4, .name = "second"), in);
    out = mix_call(mix_dense(.units = 2, .name = "third"), out);
    mix_model *block = mix_model_new(in, out, .name = "block");
    mix_model *model = mix_model_new(x, mix_call(mix_model_layer(block), y));
    const char *text = mix_model_to_json(good(model));
    mix_model *made = good(mix_model_from_json(text, .float32_layers = kept));
    assert_string_equal(policy_in(mix_model_layers(made), "first"), "float32");
    assert_string_equal(policy_in(mix_model_layers(made), "both"), "float32");
    mix_list *inner = mix_layer_layers(mix_model_get_layer(made, "both"));
    assert_true(mix_list_count(inner) >= 2);
    for (int i = 0; i < mix_list_count(inner); i++)
      assert_string_equal(mix_policy_name(mix_layer_policy(mix_list_get(inner, i))), "float32");
    mix_list *in_block = mix_layer_layers(mix_model_get_layer(made, "block"));
    assert_string_equal(policy_in(in_block, "second"), "float32");
    assert_string_equal(policy_in(in_block, "third"), "mixed_float16");
    assert_null(mix_model_from_json(text, .float32_layers = (const char *const[]){"block/thid", NULL}));
    assert_error(MIX_VALUE_ERROR, "no layer 'block/thid'");
    assert_null(mix_model_from_json(text, .float32_layers = (const char *const[]){"second", NULL}));
    assert_error(MIX_VALUE_ERROR, "no layer 'second'");
    assert_null(mix_model_from_json(text, .float32_layers = (const char *const[]){"firts", NULL}));
    assert_error(MIX_VALUE_ERROR, "did you mean 'first'?");
  }
}

/* Keras 3 visits what was given by name in the order of the names, so that layers, and weights by their
 * places, come in another order than those given by position. */
static void tensors_by_name_order_the_layers(void **state) {
  (void)state;
#define RESULT_OF(layer)                                                                                     \
  "{\"class_name\": \"__keras_tensor__\", \"config\": {\"shape\": [null, 3, 4], \"dtype\": \"float32\", "    \
  "\"keras_history\": [\"" layer "\", 0, 0]}}"
#define PROJECTION(name)                                                                                     \
  "{\"module\": \"keras.layers\", \"class_name\": \"Dense\", \"config\": {\"name\": \"" name                 \
  "\", \"units\": 4}, "                                                                                      \
  "\"name\": \"" name "\", \"inbound_nodes\": [{\"args\": [" RESULT_OF("in") "], \"kwargs\": {}}]}, "
  static const struct {
    const char *call, *order;
  } rows[] = {{"\"args\": [], \"kwargs\": {\"query\": " RESULT_OF("q") ", \"value\": " RESULT_OF(
                   "v") ", \"key\": " RESULT_OF("k") "}",
               "in k q v att "},
              {"\"args\": [" RESULT_OF("q") "], \"kwargs\": {\"value\": " RESULT_OF(
                   "v") ", \"key\": " RESULT_OF("k") "}",
               "in q k v att "},
              {"\"args\": [" RESULT_OF("q") ", " RESULT_OF("v") ", " RESULT_OF("k") "], \"kwargs\": {}",
               "in q v k att "}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    static char text[8192];
    snprintf(
        text, sizeof text,
        "{\"class_name\": \"Functional\", \"keras_version\": \"3.15.1\", "
        "\"config\": {\"name\": \"m\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 3, 4], \"name\": \"in\"}, "
        "\"name\": \"in\", \"inbound_nodes\": []}, %s%s%s"
        "{\"module\": \"keras.layers\", \"class_name\": \"MultiHeadAttention\", "
        "\"config\": {\"name\": \"att\", "
        "\"num_heads\": 2, \"key_dim\": 3}, \"name\": \"att\", \"inbound_nodes\": [{%s}]}], "
        "\"input_layers\": [[\"in\", 0, 0]], \"output_layers\": [[\"att\", 0, 0]]}}",
        PROJECTION("q"), PROJECTION("v"), PROJECTION("k"), rows[i].call);
    mix_model *model = mix_model_from_json(text);
    for (int again = 0; again < 2; again++) {
      char order[64] = "";
      assert_no_error();
      for (int l = 0; l < mix_list_count(model->layer->layers); l++)
        snprintf(order + strlen(order), sizeof order - strlen(order), "%s ",
                 mix_layer_name(mix_list_get(model->layer->layers, l)));
      assert_string_equal(order, rows[i].order);
      model = mix_model_from_json(mix_model_to_json(model));
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(M05_recorded_models),
                                     TEST(tensors_by_name_order_the_layers),
                                     TEST(reference_models),
                                     TEST(models_of_c_are_written_as_keras_does),
                                     TEST(the_text_is_pythons),
                                     TEST(compile_settings_come_back),
                                     TEST(compile_settings_are_written),
                                     TEST(metrics_lose_the_name_of_their_output),
                                     TEST(a_mixed_layer_scales_the_loss),
                                     TEST(custom_layers_come_back),
                                     TEST(registered_layers_come_back),
                                     TEST(clones),
                                     TEST(clones_keep_functions),
                                     TEST(subclassed_models_are_refused),
                                     TEST(older_forms),
                                     TEST(operations_have_their_dtype),
                                     TEST(texts_keep_their_generation),
                                     TEST(damaged_texts),
                                     TEST(deep_texts),
                                     TEST(memory_runs_out),
                                     TEST(layers_stay_float32)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
