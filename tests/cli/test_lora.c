/* LoRA through the program: the recorded models, adapters, what is printed before training, and errors. */
#include "cli/program.h"
#include "saving/precision_recordings.h"

static bool is_lora_recording(const char *name) {
  static const char *const subset[] = {"lora-einsum_heads-float32", "lora-mlp-mixed_float16",
                                       "lora-int8-mlp"};
  return !strncmp(name, "lora-", 5) && is_in_subset(name, subset, sizeof subset / sizeof *subset);
}

static char file_out[512], file_log[512], adapter[512], model_in[1024], data_in[1024], init_in[1024],
    example_count[16], rank[24], alpha[32];

static void set_paths(const recording *r) {
  const json_t *given = json_object_get(r->json, "alpha");
  snprintf(model_in, sizeof model_in, "%s", path_of(r, ".keras"));
  snprintf(data_in, sizeof data_in, "%s", path_of(r, ".npz"));
  snprintf(init_in, sizeof init_in, "%s", path_of(r, ".init.npz"));
  snprintf(example_count, sizeof example_count, "%d", r->examples);
  snprintf(rank, sizeof rank, "%lld", (long long)json_integer_value(json_object_get(r->json, "rank")));
  snprintf(alpha, sizeof alpha, "%g", given ? json_number_value(given) : atof(rank));
  snprintf(file_out, sizeof file_out, "%s", in_folder("out.npz"));
  snprintf(file_log, sizeof file_log, "%s", in_folder("steps.jsonl"));
  snprintf(adapter, sizeof adapter, "%s", in_folder("adapter.npz"));
}

/* "int8", "int4-block4", "int4-channel": the model to begin with is then the file's, quantized. */
static void quantize(const recording *r) {
  const char *mode = json_string_value(json_object_get(r->json, "mode")),
             *block = mode ? strstr(mode, "block") : NULL;
  char name[8], out[512];
  if (!mode) return;
  snprintf(name, sizeof name, "%.4s", mode);
  snprintf(out, sizeof out, "%s", in_folder("quantized.keras"));
  if (!strcmp(name, "int8"))
    assert_code(run_program("quantize", model_in, out, "--mode", name), 0);
  else
    assert_code(
        run_program("quantize", model_in, out, "--mode", name, "--block-size", block ? block + 5 : "-1"), 0);
  snprintf(model_in, sizeof model_in, "%s", out);
}

static double bound(const recording *r, double float32, double bfloat16, double float16) {
  return is_policy(r, "float32") ? float32 : is_policy(r, "mixed_bfloat16") ? bfloat16 : float16;
}

static void check_outputs(const recording *r, const char *stem) {
  mix_list *made = model_arrays(mix_npz_open(file_out), "y"), *expected = model_arrays(r->npz, stem);
  assert_no_error();
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(made); i++)
    assert_close(r->name, stem, i, mix_list_get(made, i), mix_list_get(expected, i),
                 strstr(r->name, "int8") ? bound(r, 5e-3, 5e-2, 0) : bound(r, 1e-5, 5e-2, 1e-2));
}

static void check_log(const recording *r, const json_t *losses) {
  FILE *file = fopen(file_log, "r");
  char line[512];
  assert_non_null(file);
  for (size_t i = 0; i < json_array_size(losses); i++) {
    json_t *step = fgets(line, sizeof line, file) ? json_loads(line, 0, NULL) : NULL;
    const double got = json_number_value(json_object_get(step, "loss")),
                 expected = json_number_value(json_array_get(losses, i));
    if (!(fabs(got - expected) <= bound(r, 1e-5, 2e-2, 5e-3) * (double)(i + 1) * fabs(expected)))
      fail_msg("%s: loss %zu is %.9g; Keras has %.9g", r->name, i + 1, got, expected);
    json_decref(step);
  }
  fclose(file);
}

static void check_weights(const recording *r, size_t steps) {
  char stem[16];
  snprintf(stem, sizeof stem, "step%zu", steps);
  mix_npz *npz = mix_npz_open(file_out);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, stem);
  for (int i = 0; i < mix_list_count(expected) && !is_policy(r, "mixed_bfloat16"); i++)
    assert_close(r->name, stem, i, mix_npz_get(npz, recorded_path(r, i)), mix_list_get(expected, i),
                 bound(r, 5e-5, 0, 3e-2));
}

static void run_commands(const recording *r) {
  const json_t *losses = json_object_get(r->json, "losses");
  char steps[16];
  set_paths(r);
  quantize(r);
  snprintf(steps, sizeof steps, "%zu", json_array_size(losses));
  assert_code(run_program("train", "--model", model_in, "--data", data_in, "--lora-rank", rank,
                          "--lora-alpha", alpha, "--init-weights", init_in, "--batch-size", example_count,
                          "--epochs", steps, "--no-shuffle", "--accumulate", "exact", "--verbose", "0",
                          "--step-log", file_log, "--save", file_out, "--save-lora", adapter),
              0);
  check_log(r, losses);
  check_weights(r, json_array_size(losses));
  assert_code(run_program("predict", "--model", model_in, "--load-lora", adapter, "--data", data_in,
                          "--batch-size", example_count, "--output", file_out, "--accumulate", "exact"),
              0);
  check_outputs(r, "trained");
  char merged[512];
  snprintf(merged, sizeof merged, "%s", in_folder("merged.keras"));
  assert_code(run_program("convert", model_in, merged, "--load-lora", adapter, "--merge-lora"), 0);
  assert_code(run_program("predict", "--model", merged, "--data", data_in, "--batch-size", example_count,
                          "--output", file_out, "--accumulate", "exact"),
              0);
  check_outputs(r, json_object_get(r->json, "mode") ? "reloaded_trained" : "trained");
}

/* ---- without recordings ---- */

#define GUIDE "train", "--data", "digits", "--semantics", "keras3", "--steps", "2", "--units", "8"

static void what_is_printed(void **state) {
  (void)state;
  char path[512];
  snprintf(path, sizeof path, "%s", in_folder("adapter.npz"));
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--save-lora", path), 0);
  /* 784 x 8, 8 x 8, 8 x 10 and their a, b and biases */
  assert_non_null(strstr(program_err, "LoRA in 3 layers: 1678 parameters train, 6416 are frozen"));
  assert_non_null(strstr(program_err, "a training step with both"));
  assert_code(run_program(GUIDE, "--load-lora", path, "--verbose", "0"), 0);
  assert_null(strstr(program_err, "LoRA in"));
  assert_code(run_program(GUIDE), 0);
  assert_null(strstr(program_err, "LoRA"));
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--lora-layers", "none_such"), 1);
  assert_non_null(strstr(program_err, "no layer that can have LoRA"));
}

static void wrong_options(void **state) {
  (void)state;
  assert_code(run_program(GUIDE, "--lora-rank", "-1"), 2);
  assert_code(run_program(GUIDE, "--lora-rank", "0"), 2);
  assert_code(run_program(GUIDE, "--lora-alpha", "3"), 2);
  assert_non_null(strstr(program_err, "--lora-alpha needs --lora-rank N"));
  assert_code(run_program(GUIDE, "--lora-layers", "fc"), 2);
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--lora-alpha", "much"), 2);
  assert_non_null(strstr(program_err, "expected a number"));
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--save-lora", "a.h5"), 2);
  assert_code(run_program(GUIDE, "--save-lora", in_folder("a.npz")), 1);
  assert_non_null(strstr(program_err, "no layer"));
  assert_code(run_program(GUIDE, "--load-lora", in_folder("missing.npz")), 1);
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--lora-alpha", "0"), 0);
  assert_non_null(strstr(program_err, "alpha is 0"));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(what_is_printed), TEST(wrong_options)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end) +
         run_recordings("LoRA", is_lora_recording, run_commands);
}
