/* `mixtape quantize`: arguments, what it writes, and that training goes on from its files. */
#include "cli/program.h"

static void write_model(const char *path, const char *semantics, bool train) {
  MIX_SCOPE {
    mix_set_semantics(semantics);
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
    mix_tensor *y = mix_call(mix_dense(3, .activation = "relu", .name = "first"), x);
    mix_model *model = mix_model_new(x, mix_call(mix_dense(2, .name = "second"), y));
    mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.25), .metrics = {"mae"});
    if (train)
      mix_model_train_on_batch(model, mix_fill(MIX_SHAPE(6, 4), 1, MIX_FLOAT32),
                               mix_fill(MIX_SHAPE(6, 2), 1, MIX_FLOAT32));
    mix_model_save(model, path);
    if (mix_error()) fail_msg("%s", mix_error_message());
    mix_set_semantics("keras3");
  }
}

static const char *policy_in(const char *path, const char *layer, int64_t *history) {
  mix_model *model = mix_model_load(path);
  if (mix_error()) fail_msg("%s", mix_error_message());
  mix_policy *policy = mix_layer_policy(mix_model_get_layer(model, layer));
  if (history) *history = mix_policy_amax_history_length(policy);
  return mix_policy_name(policy);
}

/* A model that was trained before trains from the beginning, under its own settings. */
static void every_kind_of_file(void **state) {
  (void)state;
  static const char *const kinds[] = {"q.keras", "q.h5"};
  char in[512], out[512];
  snprintf(in, sizeof in, "%s", in_folder("model.keras"));
  write_model(in, "keras3", true);
  for (int k = 0; k < 2; k++) {
    snprintf(out, sizeof out, "%s", in_folder(kinds[k]));
    assert_code(run_program("quantize", in, out, "--mode", "float8"), 0);
    MIX_SCOPE {
      int64_t history;
      assert_string_equal(policy_in(out, "first", &history), "float8_from_float32");
      assert_int_equal(history, 1024);
      mix_model *model = mix_model_load(out);
      assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(model)), 0);
      assert_string_equal(mix_optimizer_class_name(mix_model_optimizer(model)), "Adam");
    }
    assert_code(run_program("train", "--model", out, "--data", "synthetic", "--steps", "3", "--verbose", "0",
                            "--save", in_folder("trained.keras")),
                0);
    assert_code(run_program("train", "--model", in_folder("trained.keras"), "--data", "synthetic", "--steps",
                            "2", "--verbose", "0"),
                0);
  }
  assert_code(run_program("quantize", in, in_folder("q.npz"), "--mode", "float8"), 0);
  assert_code(run_program("quantize", in, in_folder("q.weights.h5"), "--mode=float8"), 0);
  MIX_SCOPE {
    mix_npz *npz = mix_npz_open(in_folder("q.npz"));
    assert_int_equal(mix_npz_count(npz), 16);
    assert_string_equal(mix_npz_name(npz, 2), "first/inputs_scale");
    mix_model *model = mix_model_load(in_folder("q.keras"));
    assert_int_equal(mix_model_load_weights(model, in_folder("q.weights.h5")), MIX_OK);
  }
}

static void filters_and_histories(void **state) {
  (void)state;
  const char *in = in_folder("model.keras"), *out = in_folder("q.keras");
  write_model(in, "keras3", false);
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--filter", "none", "--filter", "^fi",
                          "--amax-history", "16"),
              0);
  MIX_SCOPE {
    int64_t history;
    assert_string_equal(policy_in(out, "first", &history), "float8_from_float32");
    assert_int_equal(history, 16);
    assert_string_equal(policy_in(out, "second", NULL), "float32");
  }
  assert_code(run_program("quantize", out, in_folder("again.keras"), "--mode", "float8", "--filter", "first"),
              1);
  assert_has(program_err, "already quantized");
}

static void what_is_refused(void **state) {
  (void)state;
  char in[512], out[512];
  snprintf(in, sizeof in, "%s", in_folder("model.keras"));
  snprintf(out, sizeof out, "%s", in_folder("q.keras"));
  write_model(in, "keras3", false);
  assert_code(run_program("quantize", in, out), 2);
  assert_has(program_err, "--mode int8, int4 or float8");
  assert_code(run_program("quantize", in, "--mode", "float8"), 2);
  assert_has(program_err, "two files");
  assert_code(run_program("quantize", in, out, out, "--mode", "float8"), 2);
  assert_code(run_program("quantize", in, out, "--mode"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--filter"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--amax-history", "0"), 2);
  assert_has(program_err, "1 or more");
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--amax-history", "many"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--blocks", "4"), 2);
  assert_has(program_err, "no such option");
  assert_code(run_program("quantize", in, out, "--mode", "int4", "--block-size", "0"), 2);
  assert_has(program_err, "expected -1, or a number of 1 or more");
  assert_code(run_program("quantize", in, out, "--mode", "int4", "--block-size", "x"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--weight-range", "5"), 2);
  assert_has(program_err, "two integers with a comma between");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--input-range", "1,2,3"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--input-range", "0,0"), 2);
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--weight-range", "0,0"), 2);
  assert_has(program_err,
             "--weight-range: expected two integers with a comma between, the smaller one first");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--input-epsilon", "-1"), 2);
  assert_has(program_err, "a number of 0 or more");
  assert_code(run_program("quantize", in, in_folder("q.onnx"), "--mode", "float8"), 2);
  assert_code(run_program("quantize", in, in_folder("none/q.keras"), "--mode", "float8"), 1);
  assert_code(run_program("quantize", in_folder("none.keras"), out, "--mode", "float8"), 1);
  assert_code(run_program("quantize", in, out, "--mode", "float9"), 1);
  assert_has(program_err, "none of int8, float8, int4, gptq and awq");
  assert_code(run_program("quantize", in, out, "--mode", "gptq/4/128"), 1);
  assert_has(program_err, "none of int8, float8, int4, gptq and awq");
  assert_code(run_program("quantize", in, out, "--mode", "ternary"), 1);
  assert_has(program_err, "not supported");
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--block-size", "4"), 1);
  assert_has(program_err, "options of int8 and int4");
  assert_code(run_program("quantize", in, out, "--mode", "int4", "--block-size", "-2"), 1);
  assert_has(program_err, "block_size is -2");
  assert_code(run_program("quantize", in, out, "--mode", "int4", "--inputs"), 1);
  assert_has(program_err, "do not go together");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--weights-only", "--inputs"), 1);
  assert_has(program_err, "give one");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--weight-range=-200,127"), 1);
  assert_has(program_err, "value_range is (-200, 127)");
  assert_code(run_program("quantize", in, out, "--mode", "float8", "--filter", "["), 1);
  assert_has(program_err, "no regular expression");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--filter", "thrid"), 1);
  assert_has(program_err, "--filter \"thrid\" is found in the name of no layer that has the mode");
  assert_has(program_err, "\"thrid\" is found in no layer's name");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--filter", "input"), 1);
  assert_has(program_err, "no layer was quantized");
  assert_code(run_program("quantize", in, out, "--mode", "int8", "--weight-range=-1000,1000"), 1);
  assert_has(program_err, "value_range is (-1000, 1000)");
  assert_code(run_program("quantize", in, out, "--mode", "int4", "--block-size", "3000000000"), 1);
  assert_has(program_err, "a positive number up to 2147483647");
  assert_int_equal(access(out, F_OK), -1);
  write_model(in, "tf_keras", false);
  assert_code(run_program("quantize", in, out, "--mode", "float8"), 1);
  assert_has(program_err, "expected one of keras3");
  assert_code(run_program("quantize", "--help"), 0);
  assert_has(program_out, "usage: mixtape quantize IN OUT --mode int8|int4|float8");
}

#define QUANTIZE_TEST(function) cmocka_unit_test_setup_teardown(function, folder_begin, folder_end)

int main(void) {
  const struct CMUnitTest tests[] = {QUANTIZE_TEST(every_kind_of_file), QUANTIZE_TEST(filters_and_histories),
                                     QUANTIZE_TEST(what_is_refused)};
  return cmocka_run_group_tests_name("quantize", tests, NULL, NULL);
}
