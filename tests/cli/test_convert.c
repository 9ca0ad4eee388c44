/* `mixtape convert`, and --save by the end of the name. */
#include "cli/program.h"

#include "base/json.h"
#include "saving/keras_file.h"

static mix_model *small(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(.units = 3, .activation = "relu", .name = "first"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 2, .name = "second"), y));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.25), .metrics = {"mae"});
  return model;
}

static mix_list *ones(int64_t columns) {
  return mix_list_of(mix_fill(MIX_SHAPE(6, columns), 1, MIX_FLOAT32));
}

static void write_trained(const char *path, const char *semantics) {
  MIX_SCOPE {
    mix_set_semantics(semantics);
    mix_model *model = small();
    mix_model_train_on_batch(model, ones(4), ones(2));
    mix_model_save(model, path);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void assert_same_weights(mix_model *a, mix_model *b) {
  assert_int_equal(mix_error(), MIX_OK);
  mix_list *x = mix_model_get_weights(a), *y = mix_model_get_weights(b);
  assert_int_equal(mix_list_count(x), mix_list_count(y));
  for (int i = 0; i < mix_list_count(x); i++) {
    const mix_shape shape = mix_tensor_shape(mix_list_get(x, i));
    assert_true(mix_shape_equal(shape, mix_tensor_shape(mix_list_get(y, i))));
    assert_memory_equal(mix_tensor_data(mix_list_get(x, i)), mix_tensor_data(mix_list_get(y, i)),
                        4 * (size_t)mix_shape_size(shape));
  }
}

static void every_kind_from_every_kind(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  static const char *const kinds[] = {"x.keras", "x.h5", "x.weights.h5", "x.npz"};
  for (int g = 0; g < 2; g++) {
    write_trained(in_folder("model.keras"), generations[g]);
    MIX_SCOPE {
      mix_model *model = mix_model_load(in_folder("model.keras"));
      for (int from = 0; from < 4; from++) {
        char in[512], out[512];
        snprintf(in, sizeof in, "%s", in_folder(kinds[from]));
        assert_code(run_program("convert", in_folder("model.keras"), in), 0);
        for (int to = 0; to < 4; to++) {
          snprintf(out, sizeof out, "%s/%d%s", test_folder, from, kinds[to]);
          assert_code(from < 2 ? run_program("convert", in, out)
                               : run_program("convert", in, "--model", in_folder("model.keras"), out),
                      0);
          mix_model *again = mix_model_load(to < 2 ? out : in_folder("model.keras"));
          if (to >= 2) mix_model_load_weights(again, out);
          assert_same_weights(model, again);
          if (to < 2) assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(again)), 1);
        }
      }
    }
  }
}

/* --semantics: into each kind of file of the other generation, and back to the bits. */
static const char *version_of(const char *path) {
  static char version[32];
  mix_keras_file file;
  assert_true(mix_keras_file_open(&file, path, true));
  snprintf(version, sizeof version, "%s", json_string_value(json_object_get(file.model, "keras_version")));
  mix_keras_file_close(&file);
  return version;
}

static void the_other_generation(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"};
  static const char *const kinds[] = {"x.keras", "x.h5", "x.weights.h5", "x.npz"};
  for (int g = 0; g < 2; g++) {
    write_trained(in_folder("model.keras"), generations[g]);
    assert_code(run_program("convert", in_folder("model.keras"), in_folder("other.keras"), "--semantics",
                            generations[!g]),
                0);
    assert_string_equal(program_err, "");
    MIX_SCOPE {
      mix_model *model = mix_model_load(in_folder("model.keras"));
      for (int k = 0; k < 4; k++) {
        char out[512];
        snprintf(out, sizeof out, "%s", in_folder(kinds[k]));
        assert_code(run_program("convert", in_folder("model.keras"), out, "--semantics", generations[!g]), 0);
        mix_model *again = mix_model_load(k < 2 ? out : in_folder("other.keras"));
        if (k >= 2) mix_model_load_weights(again, out);
        assert_same_weights(model, again);
        if (k < 2) assert_string_equal(version_of(out), g == 0 ? "2.21.0" : "3.15.1");
        assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(again)), 1);
      }
    }
  }
  assert_code(run_program("convert", in_folder("model.keras"), in_folder("y.keras"), "--semantics", "keras"),
              2);
  assert_has(program_err, "--semantics is keras3 or tf_keras");
}

/* The index and its shards, into weights and back. */
static void sharded_weights(void **state) {
  (void)state;
  write_trained(in_folder("model.keras"), "keras3");
  char model[512], index[512];
  snprintf(model, sizeof model, "%s", in_folder("model.keras"));
  snprintf(index, sizeof index, "%s", in_folder("w.weights.json"));
  assert_code(run_program("convert", model, index, "--max-shard-size", "5e-8"), 0);
  assert_int_equal(access(in_folder("w_00003.weights.h5"), F_OK), 0);
  assert_code(run_program("convert", index, in_folder("w.npz"), "--model", model), 0);
  assert_code(run_program("convert", index, in_folder("again.keras"), "--model", model), 0);
  MIX_SCOPE {
    mix_model *first = mix_model_load(model), *arrays = mix_model_load(model);
    mix_model_load_weights(arrays, in_folder("w.npz"));
    assert_same_weights(first, arrays);
    mix_model *again = mix_model_load(in_folder("again.keras"));
    assert_same_weights(first, again);
    assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(again)), 1);
  }
  assert_code(run_program("convert", index, in_folder("x.npz")), 2);
  assert_has(program_err, "--model FILE");
  assert_code(run_program("convert", model, index), 2);
  assert_has(program_err, "needs --max-shard-size GB");
  assert_code(run_program("convert", model, in_folder("x.npz"), "--max-shard-size", "1"), 2);
  assert_has(program_err, "belongs to a file that ends in .weights.json");
  assert_code(run_program("convert", model, index, "--max-shard-size", "0"), 2);
  assert_has(program_err, "a positive number of GB");
  assert_code(run_program("convert", model, index, "--max-shard-size", "1e-9"), 1);
  assert_has(program_err, "more than a shard of max_shard_size");
  assert_int_equal(remove(in_folder("w_00003.weights.h5")), 0);
  assert_code(run_program("convert", index, in_folder("x.npz"), "--model", model), 1);
  assert_has(program_err, "w_00003.weights.h5 is missing");
  assert_code(run_program("train", "--data", "synthetic", "--units", "4", "--steps", "1", "--semantics",
                          "keras3", "--save", in_folder("t.weights.json"), "--max-shard-size", "1"),
              0);
  assert_int_equal(access(in_folder("t_00000.weights.h5"), F_OK), 0);
  assert_code(run_program("train", "--data", "synthetic", "--max-shard-size", "1"), 2);
  assert_has(program_err, "belongs to a file that ends in .weights.json");
}

static void what_is_refused_before_any_work(void **state) {
  (void)state;
  write_trained(in_folder("model.keras"), "keras3");
  const char *model = in_folder("model.keras"), *npz = in_folder("w.npz");
  assert_code(run_program("convert", model, in_folder("model.tflite")), 2);
  assert_has(program_err, "ends in .keras, .weights.h5, .weights.json, .h5, .npz, .safetensors or .onnx");
  assert_code(run_program("convert", in_folder("no.keras"), in_folder("model.tflite")), 2);
  assert_code(run_program("convert", npz, in_folder("other.keras")), 2);
  assert_has(program_err, "--model FILE");
  assert_code(run_program("convert", model), 2);
  assert_has(program_err, "two files");
  assert_code(run_program("convert", model, npz, npz), 2);
  assert_code(run_program("convert", model, npz, "--model"), 2);
  assert_code(run_program("convert", model, npz, "--loss"), 2);
  assert_has(program_err, "--loss: its value is missing");
  assert_code(run_program("convert", model, npz, "--no-compile", "--loss", "mse"), 2);
  assert_has(program_err, "one or the other");
  assert_code(run_program("convert", model, npz, "--loss", "mse"), 2);
  assert_has(program_err, "weights alone");
  assert_code(run_program("convert", model, npz, "--compress"), 2);
  assert_has(program_err, "no such option");
  assert_int_equal(access(npz, F_OK), -1);
  assert_code(run_program("convert", model, in_folder("none/w.npz")), 1);
  assert_has(program_err, "cannot write");
  assert_code(run_program("convert", "--help"), 0);
  assert_has(program_out, "usage: mixtape convert IN OUT");
}

static void files_that_do_not_convert(void **state) {
  (void)state;
  write_trained(in_folder("model.keras"), "tf_keras");
  assert_code(run_program("convert", in_folder("none.keras"), in_folder("out.h5")), 1);
  assert_has(program_err, "none.keras");
  MIX_SCOPE {
    mix_model_save_weights(mix_model_load(in_folder("model.keras")), in_folder("weights.h5"));
    assert_int_equal(mix_error(), MIX_OK);
  }
  assert_code(run_program("convert", in_folder("weights.h5"), in_folder("out.keras")), 1);
  assert_has(program_err, "--model FILE");
  assert_int_equal(access(in_folder("out.keras"), F_OK), -1);
  assert_code(run_program("convert", in_folder("weights.h5"), in_folder("out.keras"), "--model",
                          in_folder("model.keras")),
              0);
}

/* The state of the file's optimizer stays. */
static void compile_settings_instead_of_the_files(void **state) {
  (void)state;
  write_trained(in_folder("model.keras"), "keras3");
  assert_code(run_program("convert", in_folder("model.keras"), in_folder("out.h5"), "--loss", "mae",
                          "--metrics", "mse"),
              0);
  MIX_SCOPE {
    mix_model *model = mix_model_load(in_folder("out.h5"));
    mix_logs *logs = mix_model_evaluate(
        model, ones(4), mix_list_of(mix_fill(MIX_SHAPE(6, 2), 3, MIX_FLOAT32)), .verbose = MIX_SILENT);
    assert_int_equal(mix_error(), MIX_OK);
    assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 1);
    assert_string_equal(mix_logs_name(logs, mix_logs_count(logs) - 1), "mse");
    assert_true(mix_logs_value(logs, 0) < mix_logs_value(logs, 1)); /* numbers further than 1 away */
  }
}

static mix_model *weighted(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_model *model = mix_model_new(x, mix_list_of(mix_call(mix_dense(.units = 2, .name = "left"), x),
                                                  mix_call(mix_dense(.units = 1, .name = "right"), x)));
  mix_model_compile(model, .loss = "mse", .loss_weights = {0.25, 3}, .optimizer = mix_sgd());
  return model;
}

/* --loss says nothing of the weights of the outputs. */
static void the_weights_of_losses_stay(void **state) {
  (void)state;
  static const char *const generations[] = {"keras3", "tf_keras"}, *const names[] = {"in.keras", "in.h5"};
  for (int i = 0; i < 4; i++)
    MIX_SCOPE {
      mix_set_semantics(generations[i % 2]);
      mix_model_save(weighted(), in_folder(names[i / 2]));
      assert_int_equal(mix_error(), MIX_OK);
      assert_code(run_program("convert", in_folder(names[i / 2]), in_folder("out.keras"), "--loss", "mae"),
                  0);
      mix_model *model = mix_model_load(in_folder("out.keras"));
      mix_list *zeros = mix_list_new(0, NULL), *weights = mix_model_get_weights(model);
      for (int w = 0; w < mix_list_count(weights); w++)
        mix_list_append(zeros, mix_zeros_like(mix_list_get(weights, w)));
      mix_model_set_weights(model, zeros);
      mix_list *labels =
          mix_list_of(mix_fill(MIX_SHAPE(6, 2), 2, MIX_FLOAT32), mix_fill(MIX_SHAPE(6, 1), 5, MIX_FLOAT32));
      mix_logs *logs = mix_model_evaluate(model, ones(4), labels, .verbose = MIX_SILENT);
      assert_int_equal(mix_error(), MIX_OK);
      assert_true(mix_logs_get(logs, "loss") == 0.25 * 2 + 3 * 5);
      /* one loss for all is refused by Keras 3 beside weights */
      mix_keras_file file;
      assert_true(mix_keras_file_open(&file, in_folder("out.keras"), true));
      json_t *loss = json_object_get(json_object_get(file.model, "compile_config"), "loss");
      assert_int_equal(json_array_size(loss), 2);
      mix_keras_file_close(&file);
    }
}

static void save_of_train(void **state) {
  (void)state;
  static const char *const names[] = {"out.keras", "out.h5", "out.weights.h5", "out.npz"};
  for (int i = 0; i < 4; i++) {
    assert_code(run_program("train", "--data", "digits", "--units", "8", "--steps", "2", "--verbose", "0",
                            "--policy", "mixed_float16", "--save", in_folder(names[i])),
                0);
    MIX_SCOPE {
      mix_model *model = mix_model_load(in_folder(i < 2 ? names[i] : names[0]));
      if (i >= 2) mix_model_load_weights(model, in_folder(names[i]));
      assert_int_equal(mix_error(), MIX_OK);
      assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 2);
    }
  }
  assert_code(run_program("train", "--save", in_folder("out.onnx")), 2);
  assert_has(program_err, "a name that ends in .keras");
  assert_code(run_program("train", "--data", "digits", "--units", "8", "--steps", "2", "--verbose", "0",
                          "--save", in_folder("out/")),
              2);
  assert_has(program_err, "no model of KerasHub");
}

static int end(void **state) {
  mix_error_clear();
  mix_shutdown();
  mix_set_semantics("tf_keras");
  return folder_end(state);
}

int main(void) {
#define CONVERT_TEST(function) cmocka_unit_test_setup_teardown(function, folder_begin, end)
  const struct CMUnitTest tests[] = {CONVERT_TEST(every_kind_from_every_kind),
                                     CONVERT_TEST(the_other_generation),
                                     CONVERT_TEST(sharded_weights),
                                     CONVERT_TEST(what_is_refused_before_any_work),
                                     CONVERT_TEST(files_that_do_not_convert),
                                     CONVERT_TEST(compile_settings_instead_of_the_files),
                                     CONVERT_TEST(the_weights_of_losses_stay),
                                     CONVERT_TEST(save_of_train)};
  return cmocka_run_group_tests_name("convert", tests, NULL, NULL);
}
