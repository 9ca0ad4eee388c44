/* Models from files of Keras at the command line: what the file chooses and what options change, arrays by
 * name, outputs, pictures, and what is wrong with a file or its data. The recorded models are in
 * test_reference_models.c. */
#include "base/alloc.h"
#include "base/json.h"
#include "cli/program.h"
#include "formats/zip_members.h"
#include "support/picture.h"
#include "support/skip.h"
#include <mixtape/saving.h>
#include <sys/stat.h>
#include <zip.h>

enum { ROWS = 8 };
static char nested[512], scaled[512]; /* files of tests/saving/files, of tf_keras */

static const char *extract(const char *generation, const char *name) {
  static char path[512];
  char archive[1024];
  size_t size;
  snprintf(archive, sizeof archive, "%s/saving/files/%s.zip", getenv("MIXTAPE_TESTS_DIR"), generation);
  snprintf(path, sizeof path, "%s/%s-%s", test_folder, generation, name);
  MIX_SCOPE {
    void *bytes = mix_zip_read(mix_zip_open(archive), name, SIZE_MAX - 1, &size);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
    mix_free(bytes);
  }
  return path;
}

/* Rows of numbers that are multiples of 1/8; classes are 0 or 1. */
static mix_tensor *numbers(int64_t rows, int64_t columns, mix_dtype dtype) {
  double values[ROWS * 8];
  for (int64_t i = 0; i < rows * columns; i++) values[i] = (double)(i * 5 % 13) / 8 - 0.5;
  if (!mix_dtype_is_floating(dtype))
    for (int64_t i = 0; i < rows * columns; i++) values[i] = (double)(i % 2);
  return mix_tensor_from_doubles(values, dtype, columns ? MIX_SHAPE(rows, columns) : MIX_SHAPE(rows));
}

typedef struct array {
  const char *name;
  int64_t rows, columns;
  mix_dtype dtype;
} array;

static const char *write_arrays(const char *name, int count, const array *arrays) {
  MIX_SCOPE {
    const char *names[8];
    mix_tensor *tensors[8];
    for (int i = 0; i < count; i++) {
      names[i] = arrays[i].name;
      tensors[i] = numbers(arrays[i].rows, arrays[i].columns, arrays[i].dtype);
    }
    assert_int_equal(mix_npz_save(in_folder(name), count, names, tensors), MIX_OK);
  }
  return in_folder(name);
}
#define ARRAYS(file, ...)                                                                                    \
  write_arrays(file, sizeof((const array[]){__VA_ARGS__}) / sizeof(array), (const array[]){__VA_ARGS__})

static char data[512]; /* for `nested`: two inputs, two outputs */

static int setup(void **state) {
  if (folder_begin(state)) return -1;
  snprintf(nested, sizeof nested, "%s", extract("tf_keras", "nested.keras"));
  snprintf(scaled, sizeof scaled, "%s", extract("tf_keras", "scaled.keras"));
  snprintf(data, sizeof data, "%s",
           ARRAYS("data.npz", {"x_0", ROWS, 4, MIX_FLOAT32}, {"x_1", ROWS, 4, MIX_FLOAT64},
                  {"y_0", ROWS, 2, MIX_FLOAT32}, {"y_1", ROWS, 1, MIX_FLOAT32}));
  return 0;
}

static mix_shape written_shape(const char *path, const char *name, mix_dtype *dtype) {
  mix_shape shape = {0};
  MIX_SCOPE {
    mix_tensor *array = mix_npz_require(mix_npz_open(path), name);
    assert_non_null(array);
    shape = mix_tensor_shape(array);
    *dtype = mix_tensor_dtype(array);
  }
  return shape;
}

/* ---- what the file says ---- */

static void the_file_chooses_generation_loss_and_optimizer(void **state) {
  (void)state;
  static const char *const files[][2] = {{"keras3", "nested.keras"},
                                         {"tf_keras", "nested.keras"},
                                         {"keras3", "nested.h5"},
                                         {"tf_keras", "nested.h5"}};
  for (int i = 0; i < 4; i++) {
    assert_code(run_program("train", "--model", extract(files[i][0], files[i][1]), "--data", data,
                            "--batch-size", "8", "--epochs", "2", "--verbose", "0", "--no-shuffle", "--json",
                            "--step-log", in_folder("log.jsonl")),
                0);
    json_t *object = printed_object(), *history = json_object_get(object, "history");
    assert_string_equal(json_string_value(json_object_get(object, "policy")), "float32");
    assert_non_null(json_object_get(history, "left_loss"));
    assert_non_null(json_object_get(history, "loss"));
    json_t *lines = lines_of(in_folder("log.jsonl"));
    assert_int_equal(json_array_size(lines), 2);
    assert_true(number_in(json_object_get(json_array_get(lines, 1), "loss")) > 0);
    json_decref(lines);
    json_decref(object);
  }
}

static double first_loss(const char *option, const char *value) {
  assert_code(run_program("train", "--model", nested, "--data", data, "--batch-size", "8", "--steps", "1",
                          "--no-shuffle", "--verbose", "0", "--step-log", in_folder("log.jsonl"), option,
                          value),
              0);
  json_t *lines = lines_of(in_folder("log.jsonl"));
  const double loss = number_in(json_object_get(json_array_get(lines, 0), "loss"));
  json_decref(lines);
  return loss;
}

static void options_come_before_the_file(void **state) {
  (void)state;
  const double own = first_loss("--seed", "1");
  assert_true(first_loss("--loss", "mean_absolute_error") != own);
  assert_true(first_loss("--optimizer", "sgd:learning_rate=0.5") == own);
  assert_code(run_program("train", "--model", nested, "--data", data, "--optimizer", "sgd:momentun=1"), 2);
  assert_has(program_err, "momentum");
  assert_code(run_program("evaluate", "--model", nested, "--data", data, "--metrics", "mae", "--json",
                          "--verbose", "0"),
              0);
  json_t *object = printed_object();
  assert_non_null(json_object_get(json_object_get(object, "test"), "left_mae"));
  json_decref(object);
}

static void the_loss_scale_is_the_files_or_the_options(void **state) {
  (void)state;
  static const struct {
    const char *scale;
    double expected; /* 0: none */
  } rows[] = {{"auto", 32768}, {"none", 0}, {"8", 8}, {"dynamic:64", 64}};
  char path[512];
  snprintf(path, sizeof path, "%s",
           ARRAYS("one.npz", {"x", ROWS, 4, MIX_FLOAT32}, {"y", ROWS, 2, MIX_FLOAT32}));
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_code(run_program("train", "--model", nested, "--data", data, "--batch-size", "8", "--policy",
                            "mixed_float16", "--steps", "1", "--verbose", "0", "--loss-scale", rows[i].scale,
                            "--step-log", in_folder("log.jsonl")),
                0);
    json_t *lines = lines_of(in_folder("log.jsonl")),
           *scale = json_object_get(json_array_get(lines, 0), "loss_scale");
    if (rows[i].expected)
      assert_true(number_in(scale) == rows[i].expected || number_in(scale) == rows[i].expected / 2);
    else
      assert_null(scale);
    json_decref(lines);
  }
}

/* Layers compute in 16 bits; outputs are float32, under the names of the layers before with _float32. */
static void a_policy_beside_a_file_is_that_of_its_float32_layers(void **state) {
  (void)state;
  static const char *const options[][2] = {{"--policy", "mixed_bfloat16"}, {"--dtype", "bf16"}};
  mix_dtype dtype;
  for (int i = 0; i < 2; i++) {
    assert_code(run_program("summary", "--model", nested, options[i][0], options[i][1]), 0);
    assert_has(program_out, "left_float32 (Activation)");
    assert_has(program_err, "Policy: mixed_bfloat16 (left_float32 float32, right_float32 float32)");
  }
  assert_code(run_program("predict", "--model", nested, "--data", data, "--dtype", "bf16", "--output",
                          in_folder("mixed.npz")),
              0);
  assert_code(run_program("predict", "--model", nested, "--data", data, "--output", in_folder("out.npz")), 0);
  MIX_SCOPE {
    double mixed[ROWS * 2], plain[ROWS * 2], largest = 0, distance = 0;
    mix_tensor_read(mix_npz_get(mix_npz_open(in_folder("mixed.npz")), "y_0"), MIX_FLOAT64, mixed, ROWS * 2);
    mix_tensor_read(mix_npz_get(mix_npz_open(in_folder("out.npz")), "y_0"), MIX_FLOAT64, plain, ROWS * 2);
    for (int i = 0; i < ROWS * 2; i++) {
      largest = fmax(largest, fabs(plain[i]));
      distance = fmax(distance, fabs(plain[i] - mixed[i]));
    }
    /* bfloat16 has 8 bits, and there are fewer than ten roundings on the way */
    assert_true(distance > 0 && distance < 10 * largest / 256);
  }
  written_shape(in_folder("mixed.npz"), "y_0", &dtype);
  assert_int_equal(dtype, MIX_FLOAT32);
}

/* ---- arrays ---- */

static void arrays_have_several_names(void **state) {
  (void)state;
  static const char *const files[][2] = {
      {"x", "y"}, {"x_0", "y_0"}, {"x_train", "y_train"}, {"x_0_train", "y"}};
  double losses[4];
  for (int i = 0; i < 4; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s",
             ARRAYS("names.npz", {files[i][0], ROWS, 4, MIX_FLOAT32}, {files[i][1], ROWS, 2, MIX_FLOAT32}));
    assert_code(run_program("evaluate", "--model", scaled, "--data", path, "--verbose", "0", "--json"), 0);
    json_t *object = printed_object();
    losses[i] = number_in(json_object_get(json_object_get(object, "test"), "loss"));
    json_decref(object);
    assert_true(losses[i] == losses[0]);
  }
}

static void test_data_are_evaluated_and_weights_weigh(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s",
           ARRAYS("parts.npz", {"x_train", ROWS, 4, MIX_FLOAT32}, {"y_train", ROWS, 2, MIX_FLOAT32},
                  {"x_test", 4, 4, MIX_FLOAT32}, {"y_test", 4, 2, MIX_FLOAT32}));
  assert_code(run_program("train", "--model", scaled, "--data", path, "--verbose", "0", "--json"), 0);
  json_t *object = printed_object();
  assert_non_null(json_object_get(object, "test"));
  json_decref(object);
  snprintf(path, sizeof path, "%s",
           ARRAYS("weights.npz", {"x", ROWS, 4, MIX_FLOAT32}, {"y", ROWS, 2, MIX_FLOAT32},
                  {"sample_weight", ROWS, 0, MIX_INT64}));
  assert_code(run_program("evaluate", "--model", scaled, "--data", path, "--verbose", "0"), 0);
  char weighted[64], plain[64];
  assert_int_equal(sscanf(program_out, "Test loss: %63s", weighted), 1);
  assert_code(run_program("evaluate", "--model", scaled, "--data", in_folder("names.npz"), "--verbose", "0"),
              0);
  assert_int_equal(sscanf(program_out, "Test loss: %63s", plain), 1);
  assert_string_not_equal(weighted, plain);
}

static void arrays_that_do_not_fit_are_named(void **state) {
  (void)state;
  static const struct {
    int count;
    array arrays[4];
    const char *parts[3];
  } rows[] = {{1,
               {{"x_0", ROWS, 4, MIX_FLOAT32}},
               {"no array x_1", "input 2 of 2 of the model, 'two', (rows, 4)", "x_0"}},
              {1,
               {{"x", ROWS, 4, MIX_FLOAT32}},
               {"no array x_0", "input 1 of 2 of the model, 'one', (rows, 4)", "x"}},
              {2,
               {{"x_0", ROWS, 4, MIX_FLOAT32}, {"x_1", ROWS, 5, MIX_FLOAT32}},
               {"x_1 is (8, 5)", "'two', (rows, 4)", "expected"}},
              {2,
               {{"x_0", ROWS, 4, MIX_FLOAT32}, {"x_1", 7, 4, MIX_FLOAT32}},
               {"x_1 has 7 rows", "arrays before it 8", "'two'"}},
              {3,
               {{"x_0", ROWS, 4, MIX_FLOAT32}, {"x_1", ROWS, 4, MIX_FLOAT32}, {"x_2", ROWS, 4, MIX_FLOAT32}},
               {"x_2 has no place in the model", "'two'", "input 2 of 2"}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *path = write_arrays("bad.npz", rows[i].count, rows[i].arrays);
    assert_code(
        run_program("predict", "--model", nested, "--data", path, "--output", in_folder("bad-out.npz")), 1);
    for (int part = 0; part < 3; part++) assert_has(program_err, rows[i].parts[part]);
  }
  assert_code(run_program("train", "--model", nested, "--data",
                          ARRAYS("bad.npz", {"x_0", ROWS, 4, MIX_FLOAT32}, {"x_1", ROWS, 4, MIX_FLOAT32},
                                 {"y_0", ROWS, 2, MIX_FLOAT32})),
              1);
  assert_has(program_err,
             "no array y_1 for output 2 of 2 of the model, 'right', (rows, 1), nor one of that name");
}

/* ---- outputs ---- */

static void outputs_go_to_an_npz_or_an_npy(void **state) {
  (void)state;
  mix_dtype dtype;
  assert_code(run_program("predict", "--model", nested, "--data", data, "--output", in_folder("two.npz")), 0);
  assert_true(mix_shape_equal(written_shape(in_folder("two.npz"), "y_0", &dtype), MIX_SHAPE(ROWS, 2)));
  assert_true(mix_shape_equal(written_shape(in_folder("two.npz"), "y_1", &dtype), MIX_SHAPE(ROWS, 1)));
  assert_code(run_program("predict", "--model", nested, "--data", data, "--output", in_folder("two.npy")), 2);
  assert_has(program_err, "the model has 2 outputs");
  assert_code(run_program("predict", "--model", nested, "--data", data), 2);
  assert_has(program_err, "--output FILE.npz");
  assert_code(run_program("predict", "--model", scaled, "--data", in_folder("names.npz"), "--output",
                          in_folder("one.npz")),
              0);
  assert_true(mix_shape_equal(written_shape(in_folder("one.npz"), "y", &dtype), MIX_SHAPE(ROWS, 2)));
  assert_code(run_program("predict", "--model", scaled, "--data", in_folder("names.npz"), "--output",
                          in_folder("one.npy")),
              0);
  MIX_SCOPE {
    assert_true(mix_shape_equal(mix_tensor_shape(mix_npy_load(in_folder("one.npy"))), MIX_SHAPE(ROWS, 2)));
  }
}

static void weights_are_saved_and_loaded(void **state) {
  (void)state;
  char first[1 << 12];
  assert_code(run_program("train", "--model", nested, "--data", data, "--epochs", "3", "--verbose", "0",
                          "--save", in_folder("w.npz")),
              0);
  assert_code(run_program("evaluate", "--model", nested, "--data", data, "--verbose", "0"), 0);
  snprintf(first, sizeof first, "%.1000s", program_out);
  assert_code(run_program("evaluate", "--model", nested, "--data", data, "--verbose", "0", "--init-weights",
                          in_folder("w.npz")),
              0);
  assert_string_not_equal(program_out, first);
  assert_code(
      run_program("evaluate", "--model", nested, "--data", data, "--verbose", "0", "--init-weights", nested),
      0);
  assert_string_equal(program_out, first);
}

/* ---- pictures ---- */

static void models_are_drawn(void **state) {
  (void)state;
  static char text[1 << 16];
  static const char *const layers[] = {"one (InputLayer)", "shared (Dense), call 2", "left (Dense)"};
  static const char *const ends[] = {"m.dot", "m.svg"};
  const int count = system("dot -V >/dev/null 2>&1") ? 1 : 2;
  for (int i = 0; i < count; i++) {
    assert_code(run_program("summary", "--model", nested, "--output", in_folder(ends[i])), 0);
    assert_string_equal(program_out, "");
    read_text(in_folder(ends[i]), text, sizeof text);
    for (int layer = 0; layer < 3; layer++) assert_has(text, layers[layer]);
  }
  if (count == 1) { SKIP("graphviz is not installed"); }
  assert_has(text, "</svg>\n");
  assert_code(run_program("summary", "--model", nested, "--output", in_folder("m.png")), 0);
  picture p = read_picture(in_folder("m.png"));
  assert_true(pixels_of(&p, 0xc9dcf2) > 10000);
  free(p.pixels);
}

/* Names are cut between characters, after 48 of them. */
static void long_names_of_many_letters_are_drawn(void **state) {
  (void)state;
  static char text[1 << 14];
  char name[2 * 60 + 1] = "", expected[200] = "\"";
  for (int i = 0; i < 60; i++) strcat(name, "\xc3\xa9");
  strncat(expected, name, 2 * 48);
  strcat(expected, " (Dense)");
  MIX_SCOPE {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(2));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 1, .name = name), x));
    assert_int_equal(mix_model_save(model, in_folder("letters.keras")), MIX_OK);
  }
  assert_code(run_program("summary", "--model", in_folder("letters.keras"), "--output", in_folder("l.dot")),
              0);
  read_text(in_folder("l.dot"), text, sizeof text);
  assert_has(text, expected);
}

/* ---- other commands ---- */

static void every_command_takes_a_file(void **state) {
  (void)state;
  assert_code(run_program("numerics", "--model", nested, "--data", data, "--steps", "2"), 0);
  assert_has(program_out, "Numerics of 2 steps");
  assert_code(run_program("amp", "explain", "--model", nested), 0);
  assert_has(program_out, "MatMul");
  assert_code(run_program("amp", "explain", "--model", nested, "--policy", "mixed_float16"), 0);
  assert_has(program_out, "mixed_float16");
  assert_code(run_program("train", "--model", nested, "--data", data, "--policy", "mixed_float16",
                          "--graph-rewrite", "float16"),
              2);
  assert_code(run_program("amp", "explain", "--model", extract("tf_keras", "policies.keras")), 0);
  assert_has(program_out, "mixed_float16");
  assert_code(run_program("bench", "--model", nested, "--quick", "--json"), 0);
  json_t *object = printed_object();
  json_t *rows = json_object_get(json_object_get(object, "model_steps"), "policies");
  assert_int_equal(json_array_size(rows), 3);
  assert_true(number_in(json_object_get(json_array_get(rows, 0), "speed")) == 1);
  json_decref(object);
  assert_code(run_program("bench", "--advise", "--model", nested, "--dtype", "fp16"), 0);
  assert_has(program_out, "under mixed_float16");
}

static void images_take_the_shape_of_the_input(void **state) {
  (void)state;
  assert_code(run_program("predict", "--model", nested, "--data", "digits", "--output", in_folder("d.npz")),
              1);
  assert_has(program_err, "784 values each; the model takes (rows, 4)");
}

/* ---- bad files ---- */

/* A file of one config in an archive is written by hand: `layer` is the second layer's object. */
static const char *file_with(const char *layer) {
  static char text[4096];
  snprintf(
      text, sizeof text,
      "{\"class_name\": \"Sequential\", \"keras_version\": \"3.0.0\", "
      "\"config\": {\"name\": \"m\", \"layers\": ["
      "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 4], \"name\": \"in\"}}, %s]}}",
      layer);
  const char *path = in_folder("bad.keras");
  FILE *file = fopen(in_folder("config.json"), "w");
  fputs(text, file);
  fclose(file);
  char command[2048];
  snprintf(command, sizeof command,
           "cd '%s' && python3 -c \"import zipfile; z = zipfile.ZipFile('bad.keras', 'w'); "
           "z.write('config.json'); "
           "z.writestr('model.weights.h5', zipfile.ZipFile('%s').read('model.weights.h5'))\"",
           test_folder, nested);
  assert_int_equal(system(command), 0);
  return path;
}

static void unknown_layers_are_named_with_their_place(void **state) {
  (void)state;
  const char *path =
      file_with("{\"class_name\": \"MyLayer\", \"registered_name\": \"my>MyLayer\", \"module\": \"my\", "
                "\"config\": {\"name\": \"mine\"}}");
  assert_code(run_program("summary", "--model", path), 1);
  static const char *const parts[] = {"'MyLayer'", "'mine'", "config.layers[1]", "mix_register_layer"};
  for (int i = 0; i < 4; i++) assert_has(program_err, parts[i]);
  path = file_with("{\"class_name\": \"Lambda\", \"module\": \"keras.layers\", \"config\": {\"name\": \"f\", "
                   "\"function\": {\"class_name\": \"__lambda__\", \"config\": {\"code\": \"4wEAAAA=\"}}}}");
  assert_code(run_program("summary", "--model", path), 1);
  assert_has(program_err, "Lambda");
  assert_has(program_err, "Python");
}

/* `nested` as if it had not been compiled. */
static const char *uncompiled(void) {
  char command[2048];
  snprintf(command, sizeof command,
           "cd '%s' && python3 -c \"import json, zipfile; i = zipfile.ZipFile('%s'); "
           "c = json.loads(i.read('config.json')); del c['compile_config']; "
           "z = zipfile.ZipFile('plain.keras', 'w'); z.writestr('config.json', json.dumps(c)); "
           "z.writestr('model.weights.h5', i.read('model.weights.h5'))\"",
           test_folder, nested);
  assert_int_equal(system(command), 0);
  return in_folder("plain.keras");
}

static void a_model_without_a_loss_needs_the_option(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s", uncompiled());
  assert_code(run_program("train", "--model", path, "--data", data), 1);
  assert_has(program_err, "saved without a loss, and none is given; expected --loss NAME");
  assert_code(run_program("train", "--model", path, "--data", data, "--loss", "mse", "--verbose", "0"), 0);
  assert_code(run_program("predict", "--model", path, "--data", data, "--output", in_folder("p.npz")), 0);
}

static void add(zip_t *archive, const char *name, const void *bytes, size_t size) {
  assert_true(zip_file_add(archive, name, zip_source_buffer(archive, bytes, size, 0), 0) >= 0);
}

/* `nested` with another text in its config, in a file of that name. */
static void change_nested(const char *name, const char *from, const char *to) {
  size_t size, weights_size;
  MIX_SCOPE {
    mix_zip *zip = mix_zip_open(nested);
    char *config = mix_zip_read(zip, "config.json", SIZE_MAX - 1, &size), *at = strstr(config, from);
    void *weights = mix_zip_read(zip, "model.weights.h5", SIZE_MAX - 1, &weights_size);
    char *changed = malloc(size + strlen(to) + 1);
    assert_true(at && changed && weights);
    sprintf(changed, "%.*s%s%s", (int)(at - config), config, to, at + strlen(from));
    zip_t *archive = zip_open(in_folder(name), ZIP_CREATE | ZIP_TRUNCATE, NULL);
    assert_non_null(archive);
    add(archive, "config.json", changed, strlen(changed));
    add(archive, "model.weights.h5", weights, weights_size);
    assert_int_equal(zip_close(archive), 0);
    free(changed);
    mix_free(config);
    mix_free(weights);
  }
}

/* Objects of Python in the arguments of compile: refused with their place, unless an option replaces them. */
static void options_replace_what_nobody_knows(void **state) {
  (void)state;
  static const struct {
    const char *from, *to, *place, *option, *instead;
  } rows[] = {{"\"loss\": \"mse\"", "\"loss\": \"mine\"",
               "compile_config.loss (not read with .no_loss of mix_model_load, or --loss NAME", "--loss",
               "mse"},
              {"\"class_name\": \"Adam\"", "\"class_name\": \"Newton\"",
               "compile_config.optimizer (not read with .no_optimizer of mix_model_load, or --optimizer NAME",
               "--optimizer", "adam"},
              {"\"mae\"", "{\"class_name\": \"Mine\", \"config\": {}}",
               "compile_config.metrics (not read with .no_metrics of mix_model_load, or --metrics NAME",
               "--metrics", "mse"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char path[512];
    snprintf(path, sizeof path, "%s", in_folder("changed.keras"));
    change_nested("changed.keras", rows[i].from, rows[i].to);
    assert_code(run_program("train", "--model", path, "--data", data, "--verbose", "0"), 1);
    assert_has(program_err, rows[i].place);
    assert_null(strstr(strstr(program_err, "compile_config") + 1, "compile_config"));
    assert_code(run_program("train", "--model", path, "--data", data, "--verbose", "0", rows[i].option,
                            rows[i].instead),
                0);
    assert_null(strstr(program_err, "the state of the optimizer"));
    assert_code(run_program("predict", "--model", path, "--data", data, "--output", in_folder("p.npz")), 0);
    assert_code(run_program("convert", path, in_folder("p2.npz")), 0);
    assert_code(run_program("convert", path, in_folder("p2.h5")), 1);
    assert_has(program_err, rows[i].option);
    assert_code(run_program("convert", path, in_folder("p2.h5"), rows[i].option, rows[i].instead), 0);
    assert_code(run_program("train", "--model", in_folder("p2.h5"), "--data", data, "--verbose", "0"), 0);
    assert_code(run_program("convert", path, in_folder("p2.keras"), "--no-compile"), 0);
    assert_code(run_program("train", "--model", in_folder("p2.keras"), "--data", data, "--verbose", "0"), 1);
    assert_has(program_err, "without a loss");
    assert_code(run_program("summary", "--model", path), !strcmp(rows[i].option, "--optimizer"));
  }
}

static void other_files_are_refused(void **state) {
  (void)state;
  FILE *file = fopen(in_folder("text.keras"), "w");
  fputs("no archive", file);
  fclose(file);
  assert_code(run_program("summary", "--model", in_folder("text.keras")), 1);
  assert_has(program_err, "neither an archive (.keras) nor HDF5 (.h5)");
  assert_code(run_program("train", "--model", in_folder("missing.keras"), "--data", data), 1);
  assert_has(program_err, "missing.keras");
  assert_int_equal(mkfifo(in_folder("pipe.keras"), 0600), 0); /* which nobody writes to */
  assert_code(run_program("summary", "--model", in_folder("pipe.keras")), 1);
  assert_has(program_err, "pipe.keras: not a regular file");
  assert_code(run_program("summary", "--model", extract("tf_keras", "nested.weights.h5")), 1);
  assert_has(program_err, "--model MODEL --init-weights FILE");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_file_chooses_generation_loss_and_optimizer),
      cmocka_unit_test(options_come_before_the_file),
      cmocka_unit_test(the_loss_scale_is_the_files_or_the_options),
      cmocka_unit_test(a_policy_beside_a_file_is_that_of_its_float32_layers),
      cmocka_unit_test(arrays_have_several_names),
      cmocka_unit_test(test_data_are_evaluated_and_weights_weigh),
      cmocka_unit_test(arrays_that_do_not_fit_are_named),
      cmocka_unit_test(outputs_go_to_an_npz_or_an_npy),
      cmocka_unit_test(weights_are_saved_and_loaded),
      cmocka_unit_test(models_are_drawn),
      cmocka_unit_test(long_names_of_many_letters_are_drawn),
      cmocka_unit_test(every_command_takes_a_file),
      cmocka_unit_test(images_take_the_shape_of_the_input),
      cmocka_unit_test(unknown_layers_are_named_with_their_place),
      cmocka_unit_test(a_model_without_a_loss_needs_the_option),
      cmocka_unit_test(options_replace_what_nobody_knows),
      cmocka_unit_test(other_files_are_refused),
  };
  return cmocka_run_group_tests_name("model files", tests, setup, folder_end);
}
