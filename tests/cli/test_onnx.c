/* `mixtape convert` to ONNX: its options, and --verify with a library that stands for onnxruntime
 * (support/onnxruntime/fake.c), whose results are its first input. */
#include "cli/program.h"
#include "support/skip.h"

/* A model that computes what it is given, in the dtype of a policy. */
static void write_same(const char *policy) {
  MIX_SCOPE {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .name = "x");
    mix_layer *same = mix_activation("linear", .policy = mix_policy_new(policy));
    mix_tensor *y = mix_call(same, x);
    if (strcmp(policy, "float32")) y = mix_call(mix_activation("linear", .dtype = "float32"), y);
    mix_model_save(mix_model_new(x, y), in_folder("same.keras"));
    const float rows[] = {1, 2, 3, -4, 5, 6};
    mix_tensor *data = mix_tensor_from(rows, MIX_FLOAT32, MIX_SHAPE(2, 3));
    mix_npz_save(in_folder("data.npz"), 1, (const char *[]){"x"}, &data);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void assert_says(const char *text, const char *part) {
  if (!strstr(text, part)) fail_msg("no '%s' in:\n%s", part, text);
}

static void options_that_are_wrong(void **state) {
  (void)state;
  write_same("float32");
  const char *in = in_folder("same.keras"), *out = in_folder("same.onnx");
  static const struct {
    const char *option, *value, *says;
  } cases[] = {{"--opset", "seventeen", "--opset is a whole number"},
               {"--opset", "17.5", "--opset is a whole number"},
               {"--weights", "int8", "--weights is compute or float32"},
               {"--batch", "0", "--batch is a number of examples"},
               {"--attention", "flash", "--attention is products or operator"},
               {"--out-weight-map", "gpt2", "--out-weight-map is for an OUT in safetensors"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_code(run_program("convert", in, out, cases[i].option, cases[i].value), 2);
    assert_says(program_err, cases[i].says);
  }
  assert_code(run_program("convert", in, in_folder("other.keras"), "--widen"), 2);
  assert_says(program_err, "are for an OUT in ONNX");
  assert_code(run_program("convert", in, out, "--opset", "99"), 1);
  assert_says(program_err, "opset is 99; expected 17 to 23");
  assert_code(run_program("tune-precision", "--model", in, "--onnx", in_folder("x.keras")), 2);
  assert_says(program_err, "expected a name that ends in .onnx");
}

static void verified_by_onnxruntime(void **state) {
  (void)state;
  setenv("MIXTAPE_ONNXRUNTIME", getenv("MIXTAPE_FAKE_ONNXRUNTIME"), 1);
  write_same("float32");
  const char *in = in_folder("same.keras"), *out = in_folder("same.onnx"), *data = in_folder("data.npz");
  assert_code(run_program("convert", in, out, "--verify", data), 0);
  assert_says(program_out, "same.onnx: 2 rows by onnxruntime fake 1.0\n");
  assert_says(program_out, "output 0: differs by 0 at most (bound 6e-05, 1e-05 of the largest magnitude 6): "
                           "agrees\n");
  if (strstr(program_err, "fake onnxruntime")) fail_msg("%s", program_err);
  setenv("MIXTAPE_FAKE_APART", "0.25", 1);
  assert_code(run_program("convert", in, out, "--verify", data), 1);
  assert_says(program_out, "output 0: differs by 0.25 at most");
  assert_says(program_out, ": DIFFERS\n");
  setenv("MIXTAPE_FAKE_APART", "nan", 1);
  assert_code(run_program("convert", in, out, "--verify", data), 1);
  assert_says(program_out, ": DIFFERS\n");
  unsetenv("MIXTAPE_FAKE_APART");
  setenv("MIXTAPE_FAKE_REFUSES", "1", 1);
  assert_code(run_program("convert", in, out, "--verify", data), 1);
  assert_says(program_err, "same.onnx: onnxruntime fake 1.0: the fake has no kernel for this");
  unsetenv("MIXTAPE_FAKE_REFUSES");
  assert_code(run_program("convert", in, out, "--batch", "3", "--verify", data), 1);
  assert_says(program_err, "the data have 2 rows, and --batch is 3");
  assert_code(run_program("convert", in, out, "--batch", "2", "--verify", data), 0);
  setenv("MIXTAPE_ONNXRUNTIME", in, 1);
  assert_code(run_program("convert", in, out, "--verify", data), 1);
  assert_says(program_err, "same.keras', which cannot be loaded as onnxruntime's library");
  unsetenv("MIXTAPE_ONNXRUNTIME");
}

static void write_masked(int64_t steps) {
  MIX_SCOPE {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(steps), .dtype = "int32", .name = "x");
    mix_tensor *y = mix_call(mix_embedding(9, 2, .mask_zero = true), x);
    mix_model_save(mix_model_new(x, mix_call(mix_lstm(2), y)), in_folder("mask.keras"));
    mix_tensor *ids = mix_fill(MIX_SHAPE(2, steps), 1, MIX_INT32);
    mix_npz_save(in_folder("ids.npz"), 1, (const char *[]){"x"}, &ids);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

/* A mask is a Loop in the file, which our reader makes steps of. Where no library of onnxruntime is found and
 * these are too many, it says what would help. */
static void a_long_loop_wants_onnxruntime(void **state) {
  (void)state;
  const char *in = in_folder("mask.keras"), *out = in_folder("mask.onnx"), *data = in_folder("ids.npz");
  write_masked(3);
  assert_code(run_program("convert", in, out, "--batch", "2", "--verify", data), 0);
  assert_says(program_out, ": agrees\n");
  write_masked(5000);
  if (!run_program("convert", in, out, "--batch", "2", "--verify", data)) {
    assert_says(program_out, "by onnxruntime");
    return;
  }
  assert_says(program_err, "the steps of loops have together more than 131072 nodes and names");
  assert_says(program_err, "the file is written, and not verified");
}

/* onnxruntime's kernels for processors lack bfloat16. */
static void bfloat16_is_verified_widened(void **state) {
  (void)state;
  setenv("MIXTAPE_ONNXRUNTIME", getenv("MIXTAPE_FAKE_ONNXRUNTIME"), 1);
  write_same("mixed_bfloat16");
  assert_code(run_program("convert", in_folder("same.keras"), in_folder("same.onnx"), "--verify",
                          in_folder("data.npz")),
              0);
  assert_says(program_out, "same.onnx, bfloat16 widened to float32: 2 rows by onnxruntime fake 1.0\n");
  assert_says(program_out, "0.05 of the largest magnitude 6): agrees\n");
  char command[600];
  snprintf(command, sizeof command, "test $(ls '%s' | grep -c onnx) = 1", test_folder);
  assert_int_equal(system(command), 0); /* the widened file is gone */
  unsetenv("MIXTAPE_ONNXRUNTIME");
}

/* The library of this machine, where there is one. */
static void verified_by_the_real_one(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(5, 3), .name = "x");
    mix_tensor *y = mix_call(mix_gru(4), mix_call(mix_lstm(4, .return_sequences = true), x));
    mix_model_save(mix_model_new(x, mix_call(mix_dense(2, "softmax"), y)), in_folder("same.keras"));
    assert_int_equal(mix_error(), MIX_OK);
  }
  setenv("MIXTAPE_ONNXRUNTIME", "", 1);
  assert_code(run_program("convert", in_folder("same.keras"), in_folder("real.onnx")), 0);
  const int code =
      run_program("convert", in_folder("same.keras"), in_folder("real.onnx"), "--verify", "synthetic");
  unsetenv("MIXTAPE_ONNXRUNTIME");
  if (strstr(program_out, "by onnxruntime")) assert_code(code, 0);
  if (!strstr(program_out, "by onnxruntime")) SKIP("no library of onnxruntime is found");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(options_that_are_wrong),       cmocka_unit_test(verified_by_onnxruntime),
      cmocka_unit_test(bfloat16_is_verified_widened), cmocka_unit_test(a_long_loop_wants_onnxruntime),
      cmocka_unit_test(verified_by_the_real_one),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
