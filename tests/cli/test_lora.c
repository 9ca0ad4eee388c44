/* LoRA through the program: the recorded models, adapters, what is printed before training, and errors. */
#include "cli/precision_recordings.h"
#include "saving/lora_recordings.h"

static char adapter[512], init_in[1024], rank[24], alpha[32];

static void set_lora_paths(const recording *r) {
  const json_t *given = json_object_get(r->json, "alpha");
  set_paths(r);
  snprintf(init_in, sizeof init_in, "%s", path_of(r, ".init.npz"));
  snprintf(rank, sizeof rank, "%lld", (long long)json_integer_value(json_object_get(r->json, "rank")));
  snprintf(alpha, sizeof alpha, "%g", given ? json_number_value(given) : atof(rank));
  snprintf(adapter, sizeof adapter, "%s", in_folder("adapter.npz"));
}

static void check_outputs(const recording *r, mix_list *made, const char *stem) {
  assert_all_close(r, stem, made, model_arrays(r->npz, stem), output_bound(r));
}

static void check_weights(const recording *r) {
  mix_npz *npz = mix_npz_open(file_out);
  assert_no_error();
  mix_list *expected = model_arrays(r->npz, last_step(r));
  for (int i = 0; i < mix_list_count(expected) && compares_weights(r); i++)
    assert_close(r->name, last_step(r), i, mix_npz_get(npz, recorded_path(r, i)), mix_list_get(expected, i),
                 weight_bound(r));
}

/* A recording of integers begins with the file that quantize makes. */
static void run_commands(const recording *r) {
  char steps[16], merged[512];
  set_lora_paths(r);
  if (is_integer(r)) quantize_to_integers(r);
  const char *model = is_integer(r) ? file_in : model_in;
  snprintf(steps, sizeof steps, "%d", recorded_steps(r));
  assert_code(run_program("train", "--model", model, "--data", data_in, "--lora-rank", rank, "--lora-alpha",
                          alpha, "--init-weights", init_in, "--batch-size", example_count, "--epochs", steps,
                          "--no-shuffle", "--accumulate", "exact", "--verbose", "0", "--step-log", file_log,
                          "--save", file_out, "--save-lora", adapter),
              0);
  check_log(r, loss_bound(r));
  check_weights(r);
  check_outputs(r, predict_by_program(model, adapter), "trained");
  snprintf(merged, sizeof merged, "%s", in_folder("merged.keras"));
  assert_code(run_program("convert", model, merged, "--load-lora", adapter, "--merge-lora"), 0);
  check_outputs(r, predict_by_program(merged, NULL), is_integer(r) ? "reloaded_trained" : "trained");
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
  assert_non_null(strstr(program_err, " kB, optimizer "));
  assert_code(run_program(GUIDE, "--load-lora", path, "--verbose", "0"), 0);
  assert_null(strstr(program_err, "LoRA in"));
  assert_code(run_program(GUIDE), 0);
  assert_null(strstr(program_err, "LoRA"));
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--lora-layers", "none_such"), 1);
  assert_non_null(strstr(program_err, "no layer that can have LoRA"));
}

/* Frozen kernels of a file with aligned data sets stay there; what was made here does not. */
static void frozen_weights_in_the_file(void **state) {
  (void)state;
  char model[512], weights[512];
  snprintf(model, sizeof model, "%s", in_folder("model.keras"));
  snprintf(weights, sizeof weights, "%s", in_folder("model.weights.h5"));
  assert_code(run_program(GUIDE, "--save", model), 0);
  assert_code(run_program("convert", model, weights), 0);
  assert_code(run_program(GUIDE, "--lora-rank", "2"), 0);
  assert_null(strstr(program_err, "in the file"));
  assert_code(run_program("train", "--model", model, "--data", "digits", "--steps", "2", "--lora-rank", "2",
                          "--init-weights", weights),
              0);
  /* the kernel of 784 x 8; the other two are less than a page */
  if (on_host()) assert_non_null(strstr(program_err, "frozen, in the file: 25.1 kB of the weights"));
  assert_null(strstr(program_err, "are zeros"));
}

/* A checkpoint in safetensors has no a and b, weights of a model with LoRA have; both begin a training. */
static void safetensors_with_a_and_b_or_without(void **state) {
  (void)state;
  char base[512], tuned[512];
  snprintf(base, sizeof base, "%s", in_folder("base.safetensors"));
  snprintf(tuned, sizeof tuned, "%s", in_folder("tuned.safetensors"));
  assert_code(run_program(GUIDE, "--save", base), 0);
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--init-weights", base, "--save", tuned), 0);
  if (on_host()) assert_non_null(strstr(program_err, "frozen, in the file: 25.1 kB of the weights"));
  assert_code(run_program(GUIDE, "--lora-rank", "2", "--init-weights", tuned), 0);
  assert_code(run_program(GUIDE, "--init-weights", tuned), 1);
  assert_non_null(strstr(program_err, "lora_kernel_a' in"));
}

static void wrong_options(void **state) {
  (void)state;
  char legacy[512];
  snprintf(legacy, sizeof legacy, "%s", in_folder("model.h5"));
  assert_code(run_program("train", "--data", "digits", "--steps", "1", "--units", "8", "--lora-rank", "1",
                          "--save", legacy),
              1);
  assert_non_null(strstr(program_err, "no .h5 of tf_keras can say that layers have LoRA"));
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
  const struct CMUnitTest tests[] = {TEST(what_is_printed), TEST(frozen_weights_in_the_file),
                                     TEST(safetensors_with_a_and_b_or_without), TEST(wrong_options)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end) +
         run_recordings("LoRA", is_lora_recording, run_commands);
}
