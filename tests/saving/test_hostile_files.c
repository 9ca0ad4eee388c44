/* Files that are no models, are damaged, or mean harm: an error that names what is wrong, and no more memory
 * than the file may need. */
#include "model/support.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "support/expect.h"
#include "support/folder.h"
#include "support/sanitizer.h"
#include "support/skip.h"
#include <mixtape/lora.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

static char *config;  /* of a small model of Keras 3 */
static void *weights; /* its model.weights.h5 */
static size_t weights_size;

/* ---- making files ---- */

static void *member_of(const char *generation, const char *file, const char *member, size_t *size) {
  char path[1024];
  size_t inner_size;
  snprintf(path, sizeof path, "%s/saving/files/%s.zip", getenv("MIXTAPE_TESTS_DIR"), generation);
  void *inner = mix_zip_read(mix_zip_open(path), file, SIZE_MAX - 1, &inner_size);
  assert_non_null(inner);
  if (!member) return *size = inner_size, inner;
  void *bytes = mix_zip_read(mix_zip_open_memory(file, inner, inner_size), member, SIZE_MAX - 1, size);
  assert_non_null(bytes);
  mix_free(inner);
  return bytes;
}

static void add(zip_t *archive, const char *name, const void *bytes, size_t size, bool deflated) {
  const zip_int64_t index =
      zip_file_add(archive, name, zip_source_buffer(archive, bytes, size, 0), ZIP_FL_ENC_UTF_8);
  assert_true(index >= 0);
  zip_set_file_compression(archive, (zip_uint64_t)index, deflated ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0);
}

/* An archive of up to three members; `more` may be NULL. */
static const char *archive_of(const char *text, const void *hdf5, size_t size, const char *more) {
  const char *path = in_folder("model.keras");
  unlink(path);
  zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  assert_non_null(archive);
  if (text) add(archive, "config.json", text, strlen(text), false);
  if (hdf5) add(archive, "model.weights.h5", hdf5, size, false);
  if (more) add(archive, more, "x", 1, false);
  assert_int_equal(zip_close(archive), 0);
  return path;
}

static const char *model_of(const char *text) { return archive_of(text, weights, weights_size, NULL); }

/* A copy of the config with the first `from` replaced; to be freed. */
static char *config_with(const char *from, const char *to) {
  char *at = strstr(config, from), *made = malloc(strlen(config) + strlen(to) + 1);
  assert_non_null(at);
  sprintf(made, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
  return made;
}

static void expect_config_refused(const char *from, const char *to, mix_status status, const char *mentions) {
  char *text = config_with(from, to);
  mix_status got = mix_model_load(model_of(text)) ? MIX_OK : mix_error();
  if (got == MIX_OK) fail_msg("accepted: %s", to);
  expect_error(status, mentions);
  free(text);
}

/* Bytes of the file with the path, changed at each place of `from`, which is as long as `to`. */
static void patch(const char *path, const char *from, const char *to, size_t size) {
  unsigned char bytes[1 << 16];
  FILE *file = fopen(path, "r+b");
  assert_non_null(file);
  const size_t count = fread(bytes, 1, sizeof bytes, file);
  for (size_t i = 0; i + size <= count; i++)
    if (!memcmp(bytes + i, from, size)) memcpy(bytes + i, to, size);
  rewind(file);
  assert_int_equal(fwrite(bytes, 1, count, file), count);
  fclose(file);
}

/* ---- files that are something else ---- */

static void what_is_no_file_of_keras(void **state) {
  (void)state;
  expect_refused(mix_model_load(NULL), MIX_TYPE_ERROR, "path is NULL");
  expect_refused(mix_model_load(in_folder("none.keras")), MIX_IO_ERROR, "none.keras");
  expect_refused(mix_model_load(test_folder), MIX_IO_ERROR, "a folder without config.json");
  FILE *file = fopen(in_folder("text.keras"), "w");
  fputs("no model, but a text", file);
  fclose(file);
  expect_refused(mix_model_load(in_folder("text.keras")), MIX_FORMAT_ERROR, "neither an archive");
  file = fopen(in_folder("empty.h5"), "w");
  fclose(file);
  expect_refused(mix_model_load(in_folder("empty.h5")), MIX_FORMAT_ERROR, "neither an archive");
}

/* root may read every file. */
static void files_that_may_not_be_read(void **state) {
  (void)state;
  static const char *const names[] = {"secret.keras", "secret.h5"};
  assert_int_equal(chmod(test_folder, 0755), 0);
  for (int i = 0; i < 2; i++) {
    FILE *file = fopen(in_folder(names[i]), "w");
    fputs("secret", file);
    fclose(file);
    assert_int_equal(chmod(in_folder(names[i]), 0), 0);
    const bool root = geteuid() == 0;
    if (root && seteuid(65534)) SKIP("root cannot become user 65534 here");
    mix_model *model = mix_model_load(in_folder(names[i]));
    if (root) assert_int_equal(seteuid(0), 0);
    assert_null(model);
    expect_error(MIX_IO_ERROR, "cannot be opened: Permission denied");
  }
}

static void members_that_are_missing(void **state) {
  (void)state;
  expect_refused(mix_model_load(archive_of(NULL, weights, weights_size, NULL)), MIX_FORMAT_ERROR,
                 "'config.json' is missing");
  expect_refused(mix_model_load(archive_of(config, NULL, 0, NULL)), MIX_FORMAT_ERROR,
                 "'model.weights.h5' is missing");
  expect_refused(mix_model_load(archive_of(config, NULL, 0, "model.weights.npz")), MIX_UNSUPPORTED,
                 "model.weights.npz");
  expect_refused(mix_model_load(archive_of("[1]", weights, weights_size, NULL)), MIX_FORMAT_ERROR,
                 "is no object");
  size_t size;
  void *whole = member_of("tf_keras", "old.legacy.h5", NULL, &size);
  FILE *file = fopen(in_folder("weights.h5"), "wb");
  fwrite(whole, 1, size, file);
  fclose(file);
  mix_free(whole);
  expect_refused(mix_model_load(in_folder("weights.h5")), MIX_FORMAT_ERROR, "mix_model_load_weights");
}

/* ---- archives that mean harm ---- */

static void names_that_climb(void **state) {
  (void)state;
  static const char *const names[] = {"../evil",   "/etc/evil", "a/../../evil",
                                      "assets/..", "a\\evil",   "C:evil"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    expect_refused(mix_model_load(archive_of(config, weights, weights_size, names[i])), MIX_FORMAT_ERROR,
                   "leads out of the archive");
  assert_non_null(mix_model_load(archive_of(config, weights, weights_size, "assets/..a/b..")));
}

static void two_members_of_one_name(void **state) {
  (void)state;
  const char *path = archive_of(config, weights, weights_size, "config.jsoN");
  patch(path, "config.jsoN", "config.json", 11);
  expect_refused(mix_model_load(path), MIX_FORMAT_ERROR, "two members are named 'config.json'");
}

/* A member that declares one GiB, of which next to nothing is stored. */
static void zip_bombs(void **state) {
  (void)state;
  static char zeros[12345];
  static const char declared[] = {0x39, 0x30, 0, 0}, bomb[] = {0, 0, 0, 0x40};
  const char *path = in_folder("bomb.keras");
  zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  add(archive, "config.json", config, strlen(config), true);
  add(archive, "model.weights.h5", zeros, sizeof zeros, true);
  assert_int_equal(zip_close(archive), 0);
  patch(path, declared, bomb, 4);
  expect_refused(mix_model_load(path), MIX_FORMAT_ERROR, "declares 1073741824 bytes");
}

/* Deflated, the text is a thousandth of its size; parsed, a hundred times it. */
static void configs_of_too_many_values(void **state) {
  (void)state;
  enum { COUNT = 2 << 20 };
  char *text = malloc(3 * COUNT + 64), *at = text;
  assert_non_null(text);
  at += sprintf(at, "{\"class_name\":\"Sequential\",\"layers\":[");
  for (int i = 0; i < COUNT; i++) at += sprintf(at, "{},");
  sprintf(at, "{}]}");
  expect_refused(mix_model_load(model_of(text)), MIX_FORMAT_ERROR, "too many values");
  free(text);
}

static void cut(const void *whole, size_t size, const char *name) {
  for (size_t length = 0; length < size; length += 1 + size / 97) {
    FILE *file = fopen(in_folder(name), "wb");
    fwrite(whole, 1, length, file);
    fclose(file);
    MIX_SCOPE {
      if (mix_model_load(in_folder(name))) fail_msg("%s: loads when cut to %zu bytes", name, length);
    }
    mix_error_clear();
  }
}

static void cut_files(void **state) {
  (void)state;
  size_t size;
  void *archive = member_of("keras3", "schedule.keras", NULL, &size);
  cut(archive, size, "cut.keras");
  mix_free(archive);
  void *hdf5 = member_of("keras3", "schedule.h5", NULL, &size);
  cut(hdf5, size - 1, "cut.h5");
  mix_free(hdf5);
}

/* ---- configs ---- */

static void classes_that_nobody_knows(void **state) {
  (void)state;
  expect_config_refused("\"class_name\": \"Dense\"", "\"class_name\": \"Whirl\"", MIX_VALUE_ERROR,
                        "there is no built-in layer class 'Whirl'");
  expect_config_refused("\"class_name\": \"Dense\"", "\"class_name\": \"Whirl\"", MIX_VALUE_ERROR,
                        "mix_register_layer (layer 'dense_1', config.layers[1])");
  expect_config_refused(
      "\"class_name\": \"Functional\"", "\"class_name\": \"MyModel\"", MIX_VALUE_ERROR,
      "class_name is 'MyModel'; expected Functional or Sequential, or a class of mix_register_model "
      "(a model whose call");
  expect_config_refused("\"class_name\": \"SGD\"", "\"class_name\": \"Newton\"", MIX_VALUE_ERROR, "Newton");
}

static void python_code(void **state) {
  (void)state;
  static const char lambda[] = "\"class_name\": \"Lambda\", \"config\": {\"name\": \"trick\", \"function\": "
                               "{\"class_name\": \"__lambda__\", \"config\": {\"code\": \"4wEAAAAA\"}}},"
                               "\"was\": {\"class_name\": \"Dense\"}, \"former\"";
  expect_config_refused("\"class_name\": \"Dense\", \"config\"", lambda, MIX_UNSUPPORTED,
                        "Python code, which is not run");
  expect_config_refused("\"class_name\": \"Dense\", \"config\"", lambda, MIX_UNSUPPORTED,
                        "(layer 'trick', config.layers[1])");
}

static void numbers_that_are_none(void **state) {
  (void)state;
  expect_config_refused("\"units\": 3", "\"units\": NaN", MIX_TYPE_ERROR,
                        "\"units\" is a number that is not finite; expected an integer");
  expect_config_refused("\"units\": 3", "\"units\": -3", MIX_VALUE_ERROR, "units");
  expect_config_refused("\"units\": 3", "\"units\": 3e400", MIX_VALUE_ERROR, "not valid JSON");
  expect_config_refused("\"units\": 3", "\"units\": 4611686018427387904", MIX_VALUE_ERROR, "");
}

/* The error names a remedy that works. */
static void weights_of_losses_that_are_none(void **state) {
  (void)state;
  static const char from[] = "\"loss_weights\": null", to[] = "\"loss_weights\": [\"heavy\"]";
  expect_config_refused(from, to, MIX_TYPE_ERROR,
                        "compile_config.loss_weights (not read with .no_loss of mix_model_load");
  char *text = config_with(from, to);
  assert_non_null(mix_model_load(model_of(text), .no_loss = true));
  assert_no_error();
  free(text);
}

/* Of the JSON, and of models in models. */
static void depth(void **state) {
  (void)state;
  enum { DEEP = 100000, MODELS = 500 };
  char *text = malloc(1 << 20), *at = text;
  for (int i = 0; i < DEEP; i++) *at++ = '[';
  *at = 0;
  expect_refused(mix_model_load(model_of(text)), MIX_VALUE_ERROR, "not valid JSON");
  at = text;
  for (int i = 0; i < MODELS; i++)
    at += sprintf(at, "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"s%d\", \"layers\": [", i);
  for (int i = 0; i < MODELS; i++) at += sprintf(at, "]}}");
  expect_refused(mix_model_load(model_of(text)), MIX_VALUE_ERROR, "100 deep");
  free(text);
}

/* Each model has the one before it twice, so that there are 3 2^18 - 2 layers. */
static void shared_models_of_models(void **state) {
  (void)state;
  enum { LEVELS = 18 };
#define MODEL "{\"class_name\": \"Sequential\", \"shared_object_id\": %d, \"config\": "
  char *text = malloc(1 << 14), *at = text;
  for (int i = LEVELS; i > 0; i--) at += sprintf(at, MODEL "{\"name\": \"s%d\", \"layers\": [", i, i);
  at += sprintf(at, MODEL "{\"name\": \"s0\", \"layers\": []}}", 0);
  for (int i = 1; i <= LEVELS; i++)
    at += sprintf(at,
                  ", {\"class_name\": \"Sequential\", \"config\": {\"name\": \"t%d\", \"layers\": [" MODEL
                  "{}}]}}]}}",
                  i, i - 1);
#undef MODEL
  expect_refused(mix_model_load(model_of(text)), MIX_VALUE_ERROR, "more than 100000 layers");
  free(text);
}

/* ---- weights ---- */

static void weights_of_another_model(void **state) {
  (void)state;
  expect_config_refused(
      "\"units\": 3", "\"units\": 5", MIX_VALUE_ERROR,
      "'dense_1/kernel' has shape (4, 5), but 'layers/dense/vars/0' in the file has (4, 3)");
  expect_config_refused(
      "\"use_bias\": true", "\"use_bias\": false", MIX_VALUE_ERROR,
      "'dense_1' has 1 variables (kernel (4, 3)), but 'layers/dense/vars' in the file has 2 "
      "((4, 3), (3))");
}

static mix_model *einsum_model(const char *equation, mix_shape output) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 6));
  return mix_model_new(x, mix_call(mix_einsum_dense(equation, .output_shape = output, .name = "fc"), x));
}

/* The config of the one model with the weights of the other. */
static mix_model *load_mixed(mix_model *configured, mix_model *stored) {
  size_t sizes[2];
  mix_model_save(configured, in_folder("configured.keras"));
  mix_model_save(stored, in_folder("stored.keras"));
  assert_int_equal(mix_error(), MIX_OK);
  char *text = mix_zip_read(mix_zip_open(in_folder("configured.keras")), "config.json", SIZE_MAX - 1, sizes);
  void *hdf5 =
      mix_zip_read(mix_zip_open(in_folder("stored.keras")), "model.weights.h5", SIZE_MAX - 1, sizes + 1);
  assert_true(text && hdf5);
  mix_model *model = mix_model_load(archive_of(text, hdf5, sizes[1], NULL));
  mix_free(text);
  mix_free(hdf5);
  return model;
}

/* Layers become what their weights are, if they can. */
static void integers_beside_a_config_of_floats(void **state) {
  (void)state;
  const mix_shape output = MIX_SHAPE(5, 4);
  mix_model *stored = einsum_model("abc,cd->abd", output);
  mix_model_quantize(stored, "int8");
  mix_model *model = load_mixed(einsum_model("abc,cd->abd", output), stored);
  assert_int_equal(mix_error(), MIX_OK);
  assert_int_equal(mix_tensor_dtype(mix_variable_value(mix_list_get(mix_model_weights(model), 0))), MIX_INT8);
  mix_model *with_lora = einsum_model("abc,cd->abd", output);
  mix_model_enable_lora(with_lora, 2);
  assert_non_null(model = load_mixed(with_lora, stored));
  assert_int_equal(mix_layer_lora_rank(mix_model_get_layer(model, "fc")), 2);
  assert_int_equal(mix_list_count(mix_model_weights(model)), 4); /* integers, scale, a and b */
  expect_refused(load_mixed(einsum_model("...c,cd->...d", MIX_SHAPE(4)), stored), MIX_TYPE_ERROR,
                 "has an ellipsis");
}

/* 4 GB that a config of 2 KB says: shapes are compared with the file's before their memory is used. */
static void weights_that_the_file_does_not_have(void **state) {
  (void)state;
  if (UNDER_SANITIZER) SKIP("a sanitizer fills what it gives");
  struct rusage usage;
  expect_config_refused("\"units\": 3", "\"units\": 200000000", MIX_VALUE_ERROR, "has shape (4, 200000000)");
  getrusage(RUSAGE_SELF, &usage);
  print_message("at most %ld MB\n", usage.ru_maxrss >> 10);
  assert_true(usage.ru_maxrss >> 10 < 100); /* 20 measured: a file of 2 KB and its texts */
}

static int warnings;
static void count_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING && strstr(message, "the state of the optimizer")) warnings++;
}

/* Another optimizer than the file's is a warning. */
static void state_of_another_optimizer(void **state) {
  (void)state;
  char *text = config_with("\"momentum\": 0.9", "\"momentum\": 0.0");
  mix_set_log_callback(count_warning, NULL);
  warnings = 0;
  mix_model *model = mix_model_load(model_of(text));
  assert_no_error();
  assert_non_null(model);
  assert_int_equal(warnings, 1);
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 0);
  free(text);
}

/* Of a model that was compiled and not trained there is no state to miss. */
static void state_of_an_optimizer_that_was_never_built(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3"}, *const files[] = {"new.keras", "new.h5"};
  mix_set_log_callback(count_warning, NULL);
  warnings = 0;
  for (int i = 0; i < 8; i++)
    MIX_SCOPE {
      mix_set_semantics(generations[i / 2 % 2]);
      mix_tensor *x = mix_input(.shape = MIX_SHAPE(3));
      mix_layer *dense = mix_dense(2, .dtype = i / 4 ? "mixed_float16" : "float32");
      mix_model *model = mix_model_new(x, mix_call(dense, x));
      mix_optimizer *adam = mix_adam();
      mix_model_compile(model, .loss = "mse", .optimizer = i / 4 ? mix_loss_scale_optimizer(adam) : adam);
      assert_int_equal(mix_model_save(model, in_folder(files[i % 2])), MIX_OK);
      assert_non_null(mix_model_load(in_folder(files[i % 2])));
      assert_no_error();
      if (warnings) fail_msg("%s, %s", generations[i / 2 % 2], files[i % 2]);
    }
}

static int begin(void **state) {
  config = member_of("keras3", "schedule.keras", "config.json", &(size_t){0});
  weights = member_of("keras3", "schedule.keras", "model.weights.h5", &weights_size);
  return folder_begin(state) || setup(state);
}
static int end(void **state) {
  mix_free(config);
  mix_free(weights);
  return teardown(state) || folder_end(state);
}

int main(void) {
#define FILES_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {FILES_TEST(what_is_no_file_of_keras),
                                     FILES_TEST(files_that_may_not_be_read),
                                     FILES_TEST(members_that_are_missing),
                                     FILES_TEST(names_that_climb),
                                     FILES_TEST(two_members_of_one_name),
                                     FILES_TEST(zip_bombs),
                                     FILES_TEST(configs_of_too_many_values),
                                     FILES_TEST(cut_files),
                                     FILES_TEST(classes_that_nobody_knows),
                                     FILES_TEST(python_code),
                                     FILES_TEST(numbers_that_are_none),
                                     FILES_TEST(depth),
                                     FILES_TEST(shared_models_of_models),
                                     FILES_TEST(weights_of_another_model),
                                     FILES_TEST(integers_beside_a_config_of_floats),
                                     FILES_TEST(weights_that_the_file_does_not_have),
                                     FILES_TEST(state_of_another_optimizer),
                                     FILES_TEST(state_of_an_optimizer_that_was_never_built),
                                     FILES_TEST(weights_of_losses_that_are_none)};
  return cmocka_run_group_tests_name("hostile files", tests, NULL, NULL);
}
