/* Programs that are compiled for a GPU that is not here are those that a run on such a GPU looks up. With
 * fakes of the driver and the plug-in: each case is a process of its own. */
#include "backend/xla/machines.h"

#include "backend/xla/cache_files.h"
#include "cli/program.h"

static const char h100[] = "NVIDIA H100 80GB HBM3:9.0:80:132";

static void check_counts(int loaded, int written) {
  char counts[80];
  snprintf(counts, sizeof counts, "%d loaded and %d written by this process", loaded, written);
  expect(counts, mix_devices_text());
}

/* ---- in a program of the user's own ---- */

static void have_target_plugin(void) {
  have_python();
  have_plugin_of(13, "keeps");
  have_compiler("cu13");
  setenv("MIXTAPE_XLA_CACHE", in_folder("cache"), 1);
}
static void compile_for(const char *target) {
  have_target_plugin();
  CHECK(mix_cuda_set_target(target) && mix_set_device("cuda") == MIX_OK);
  mix_variable *count = mix_variable_new(scalar(3), .name = "count");
  mix_list *results = call(new_function_of(count));
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 0);
  CHECK(mix_tensor_item(mix_variable_value(count)) == 3); /* nothing has run */
}
static void compile_for_h100(void) {
  compile_for("h100");
  check_counts(0, 1);
  mix_text line = {.grows = true};
  mix_cuda_describe_target(&line);
  expect("NVIDIA H100 80GB HBM3: 1 programs compiled, 0 were there, in ", line.text);
  mix_free(line.text);
}
static void find_for_h100(void) {
  setenv("MIXTAPE_FAKE_REFUSES", "1", 1);
  compile_for("h100");
  check_counts(1, 0);
}
static bool runs_on(const char *gpu) {
  have_driver(gpu, "13000");
  have_target_plugin();
  setenv("MIXTAPE_FAKE_REFUSES", "1", 1); /* compiles nothing */
  CHECK(mix_set_device("cuda") == MIX_OK);
  mix_list *results = call(new_function_of(mix_variable_new(scalar(3), .name = "count")));
  if (results) CHECK(mix_tensor_item(mix_list_get(results, 0)) == 0);
  return results != NULL;
}
static void run_on_h100(void) {
  CHECK(runs_on(h100));
  check_counts(1, 0);
}
static void run_on_others(void) {
  CHECK(!runs_on("NVIDIA H100 PCIe:9.0:80:114"));
  expect("the fake knows no op", mix_error_message());
}
static void run_with_less_memory(void) { CHECK(!runs_on("NVIDIA H100 64GB HBM2:9.0:64:132")); }
static void run_on_older(void) { CHECK(!runs_on("NVIDIA H100 80GB HBM3:8.0:80:132")); }
static void run_deterministic(void) {
  CHECK(mix_set_deterministic(true) == MIX_OK);
  CHECK(!runs_on(h100));
}

/* ---- facts in a file ---- */

static const char *facts(const char *text) {
  FILE *file = fopen(in_folder("gpu.txtpb"), "w");
  CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
  return in_folder("gpu.txtpb");
}
static const char slice[] = "gpu_device_info {\n  core_count: 66 device_memory_size: 42471489536\n"
                            "  cuda_compute_capability { major: 9 minor: 0 }\n  name: \"a slice\"\n}\n";
static void compile_for_file(void) {
  compile_for(facts(slice));
  check_counts(0, 1);
  expect("cuda:0: a slice, compute capability 9.0, 39.6 GiB", mix_devices_text());
}
static void run_on_slice(void) { CHECK(runs_on("NVIDIA H100 MIG 3g.40gb:9.0:40:66")); }
static void refuse_bad_targets(void) {
  static const struct {
    const char *text, *mention;
  } files[] = {
      {"core_count: 4 device_memory_size: 5", "without \"cuda_compute_capability { major: ... }\""},
      {"cuda_compute_capability { major: 9 } core_count: x device_memory_size: 5", "\"core_count: ...\""},
      {"cuda_compute_capability { major: 9 } core_count: 3 memory_size: 5", "\"device_memory_size: ...\""},
  };
  for (int i = 0; i < 3; i++) {
    CHECK(!mix_cuda_set_target(facts(files[i].text)) && mix_error() == MIX_VALUE_ERROR);
    expect(files[i].mention, mix_error_message());
    expect("gpu.txtpb: facts of a GPU", mix_error_message());
    mix_error_clear();
  }
  CHECK(!mix_cuda_set_target("/nowhere.txtpb") && mix_error() == MIX_IO_ERROR);
  mix_error_clear();
  CHECK(!mix_cuda_set_target("/dev/zero") && mix_error() == MIX_VALUE_ERROR);
  mix_error_clear();
  CHECK(!mix_cuda_set_target("h1000") && mix_error() == MIX_VALUE_ERROR);
  expect("there is no target \"h1000\"; did you mean 'h100'?; expected v100|t4|", mix_error_message());
}
static void refuse_old_target(void) {
  have_target_plugin();
  CHECK(mix_cuda_set_target("v100") && mix_set_device("cuda") == MIX_UNSUPPORTED);
  expect("needs compute capability 7.5, and GPU 0, Tesla V100-SXM2-16GB, has 7.0", mix_error_message());
  expect("jax-cuda12-plugin", mix_error_message());
}
static void refuse_no_cache(void) {
  have_target_plugin();
  setenv("MIXTAPE_XLA_CACHE", "off", 1);
  CHECK(mix_cuda_set_target("h100") && mix_set_device("cuda") == MIX_OK && !call(new_function()));
  expect("the cache is off; name a folder by MIXTAPE_XLA_CACHE", mix_error_message());
}
static void refuse_full_cache(void) {
  have_target_plugin();
  mix_xla_cache_bytes = 100;
  CHECK(mix_cuda_set_target("h100") && mix_set_device("cuda") == MIX_OK && !call(new_function()));
  expect("was compiled, but is not kept in ", mix_error_message());
}
static void compilers_refusal_is_told(void) {
  setenv("MIXTAPE_FAKE_REFUSES", "1", 1);
  have_target_plugin();
  CHECK(mix_cuda_set_target("h100") && mix_set_device("cuda") == MIX_OK && !call(new_function()));
  expect("the fake knows no op", mix_error_message());
}

static void a_run_on_the_target_finds_the_program(void **state) {
  (void)state;
  in_child(compile_for_h100);
  in_child(find_for_h100);
  in_child(run_on_h100);
  in_child(run_on_others);
  in_child(run_with_less_memory);
  in_child(run_on_older);
  in_child(run_deterministic);
}
static void facts_come_from_files(void **state) {
  (void)state;
  in_child(compile_for_file);
  in_child(run_on_slice);
  in_child(refuse_bad_targets);
}
static void what_cannot_be_compiled_or_kept_is_an_error(void **state) {
  (void)state;
  in_child(refuse_old_target);
  in_child(refuse_no_cache);
  in_child(refuse_full_cache);
  in_child(compilers_refusal_is_told);
}

/* ---- the command ---- */

#define TRAINED                                                                                              \
  "--data", "digits", "--units", "8", "--batch-size", "3000", "--optimizer", "adam", "--policy",             \
      "mixed_float16"
/* Training, its test and prediction compile nothing. */
static void the_command_fills_a_cache(void **state) {
  (void)state;
  have_target_plugin();
  assert_code(run_program("compile", TRAINED, "--target", "h100"), 0);
  assert_has(program_out, "NVIDIA H100 80GB HBM3: ");
  assert_has(program_out, " programs compiled, 0 were there, in ");
  assert_true(atoi(program_out + strlen("NVIDIA H100 80GB HBM3: ")) >= 3);
  give_driver(h100);
  setenv("MIXTAPE_FAKE_REFUSES", "1", 1);
  assert_code(run_program("train", TRAINED, "--device", "cuda"), 0);
  assert_code(run_program("predict", "--data", "digits", "--units", "8", "--batch-size", "3000", "--policy",
                          "mixed_float16", "--device", "cuda"),
              0);
  assert_code(run_program("train", TRAINED, "--device", "cuda", "--batch-size", "100"), 1);
  assert_has(program_err, "the fake knows no op");
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("MIXTAPE_FAKE_REFUSES");
}
static void its_options_are_checked(void **state) {
  (void)state;
  assert_code(run_program("compile"), 2);
  assert_has(program_err,
             "--target is missing; expected the GPU's name, such as h100, or a file of its facts");
  assert_code(run_program("compile", "--target", "h100", "--device", "cpu"), 2);
  assert_has(program_err, "--device cpu: programs are compiled for cuda alone");
  assert_code(run_program("compile", "--target", "a1"), 2);
  assert_has(program_err, "--target: ValueError: there is no target \"a1\"");
  assert_code(run_program("compile", "--target", "h100", "--save", "x.keras"), 2);
}

int main(void) {
#define IN_FOLDER(function) cmocka_unit_test_setup_teardown(function, folder_begin, folder_end)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_run_on_the_target_finds_the_program),
      IN_FOLDER(facts_come_from_files),
      IN_FOLDER(what_cannot_be_compiled_or_kept_is_an_error),
      IN_FOLDER(the_command_fills_a_cache),
      IN_FOLDER(its_options_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
