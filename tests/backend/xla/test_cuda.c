/* The device "cuda" on machines of all kinds: a fake driver, a fake plug-in and packages in pip's layout.
 * Each case is a process of its own, for driver and plug-in are asked once. */
#include "backend/xla/machines.h"

#include "cli/program.h"
#include <mixtape/policy.h>
#include <sys/stat.h>

static const char one[] = "NVIDIA H200:9.0:140", two[] = "NVIDIA H100:9.0:80,NVIDIA A100:8.0:40";

/* ---- machines that can ---- */

static void check_one(void) {
  have_all(one);
  CHECK(mix_set_device("cuda") == MIX_OK && !strcmp(mix_device(), "cuda"));
  expect("cuda:0: NVIDIA H200, compute capability 9.0, 140.0 GiB, driver ", mix_devices_text());
  expect("for CUDA 13.0\ncuda: cuda:0 by the plug-in ", mix_devices_text());
  expect("python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so\n", mix_devices_text());
  expect("device 0: cuda, GPU 0, 0.900 of its memory; in use", mix_devices_text());
  expect("python3.12/site-packages/jax_plugins/xla_cuda13/../../nvidia/cu13", mix_cuda_toolkit());
  CHECK(call(new_function()));
}
static void check_second(void) {
  have_all(two);
  CHECK(mix_set_device("cuda:2") == MIX_VALUE_ERROR);
  expect("there is no device \"cuda:2\"; the driver sees 2 GPUs", mix_error_message());
  mix_error_clear();
  CHECK(mix_set_device("cuda:") == MIX_VALUE_ERROR);
  mix_error_clear();
  CHECK(mix_set_device("cuda:1") == MIX_OK && !strcmp(mix_device(), "cuda"));
  expect("device 0: cuda, GPU 1, 0.900 of its memory; in use", mix_devices_text());
  expect("cuda:1: NVIDIA A100, compute capability 8.0, 40.0 GiB", mix_devices_text());
  CHECK(mix_set_device("cuda:0") == MIX_UNSUPPORTED);
  expect("a process has one GPU, and cuda:1 is in use", mix_error_message());
  mix_error_clear();
  CHECK(mix_set_device("cuda") == MIX_OK && mix_set_device("xla") == MIX_OK);
}
static void check_auto(void) {
  have_all(one);
  CHECK(mix_set_device("auto") == MIX_OK && !strcmp(mix_device(), "cuda"));
}
static bool names_option(const char *option) {
  char options[MIX_PJRT_OPTIONS];
  const size_t size = mix_pjrt_options("cuda", options), length = strlen(option);
  for (size_t i = 0; i + length <= size; i++)
    if (!memcmp(options + i, option, length)) return true;
  return false;
}
/* The driver is too old for the newest of two, and the GPU for CUDA's linker. */
static void check_older(void) {
  have_driver("Tesla V100:7.0:16", "12020");
  have_python();
  have_plugin(13), have_compiler("cu13");
  have_plugin(12), have_compiler("cuda_nvcc");
  CHECK(mix_set_device("cuda") == MIX_OK);
  expect("jax_plugins/xla_cuda12/", mix_xla_plugin()->path);
  CHECK(names_option("LIB_NV_JIT_LINK_MODE_DISABLED"));
}
static void gpus_are_found_and_chosen(void **state) {
  (void)state;
  in_child(check_one);
  in_child(check_second);
  in_child(check_auto);
  in_child(check_older);
}

/* The toolkit is an option of each compilation: lengths above 127 take two bytes. */
static void check_options(void) {
  char options[MIX_PJRT_OPTIONS], expected[400] = "\x0a\x15xla_gpu_cuda_data_dir\x12";
  have_all(one);
  setenv("MIXTAPE_PJRT_PLUGIN",
         in_folder("lib/././././././python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"), 1);
  CHECK(mix_set_device("cuda") == MIX_OK);
  const int size = (int)mix_pjrt_options("cuda", options), length = (int)strlen(mix_cuda_toolkit());
  CHECK(length < 126 && !names_option("xla_gpu_libnvjitlink_mode"));
  snprintf(expected + 24, sizeof expected - 24, "%c\x0a%c%s", length + 2, length, mix_cuda_toolkit());
  const int entry = 24 + 3 + length;
  CHECK(entry > 127 && !memcmp(options + size - entry, expected, (size_t)entry));
  CHECK(options[size - entry - 3] == 0x3a &&
        (unsigned char)options[size - entry - 2] == (entry & 127) + 128 &&
        options[size - entry - 1] == entry >> 7);
}
static bool has_option(const char *platform, const char *option, char value) {
  char options[MIX_PJRT_OPTIONS];
  const size_t size = mix_pjrt_options(platform, options), length = strlen(option);
  for (size_t i = 0; i + length + 4 <= size; i++)
    if (!memcmp(options + i, option, length))
      return options[i + length] == 0x12 && options[i + length + 2] == 0x10 &&
             options[i + length + 3] == value;
  return false;
}
/* Bits are the same again by three options of a GPU alone; plans of
 * both settings are different ones. */
static void check_determinism(void) {
  const mix_context context = mix_context_default();
  const uint64_t key = mix_context_key(&context);
  CHECK(!mix_deterministic() && !has_option("cuda", "xla_gpu_deterministic_ops", 1));
  CHECK(mix_set_deterministic(true) == MIX_OK && mix_deterministic());
  CHECK(mix_context_key(&context) != key);
  CHECK(has_option("cuda", "xla_gpu_deterministic_ops", 1));
  CHECK(has_option("cuda", "xla_gpu_exclude_nondeterministic_ops", 1));
  CHECK(has_option("cuda", "xla_gpu_enable_triton_gemm", 0));
  CHECK(!has_option("cpu", "xla_gpu_deterministic_ops", 1));
  CHECK(has_option("cuda", "xla_allow_excess_precision", 0));
  CHECK(mix_set_deterministic(false) == MIX_OK && mix_context_key(&context) == key);
}
/* Holds docs/NUMERICS.md: NVIDIA's GPUs. */
static void compilations_get_their_options(void **state) {
  (void)state;
  in_child(check_options);
  in_child(check_determinism);
}

/* ---- memory ---- */

static void check_memory(const char *setting, const char *mention) {
  have_all(one);
  setenv("MIXTAPE_DEVICE_MEMORY", setting, 1);
  const mix_status status = mix_set_device("cuda");
  expect(mention, status ? mix_error_message() : mix_devices_text());
}
static void check_share(void) { check_memory("0.5", "GPU 0, 0.500 of its memory at once"); }
static void check_amount(void) { check_memory("35GiB", "GPU 0, 0.250 of its memory at once"); }
static void check_growth(void) { check_memory("grow", "GPU 0, 0.900 of its memory;"); }
static void check_too_much(void) { check_memory("141GiB", "\"141GiB\"; expected a share such as 0.9 or"); }
static void check_no_share(void) { check_memory("1.5", "such as 8GiB of the GPU's 140.0 GiB"); }
static void check_no_number(void) {
  check_memory("much", "is unavailable: MIXTAPE_DEVICE_MEMORY is \"much\"");
}

/* ---- memory that others have ---- */

/* The error tells what to do; the variable keeps its value, goes to the CPU, and comes back. */
static void check_exhausted(const char *call_name, const char *remedy) {
  char message[2048];
  setenv("MIXTAPE_FAKE_EXHAUSTED", call_name, 1);
  have_driver(one, "13000");
  have_python();
  have_plugin_of(13, "keeps"), have_compiler("cu13");
  mix_variable *count = mix_variable_new(scalar(3), .name = "count");
  const bool client = !strcmp(call_name, "client");
  CHECK((mix_set_device("cuda") != MIX_OK) == client);
  if (!client) CHECK(!call(new_function_of(count)));
  const mix_status status = mix_error_take(message, sizeof message);
  CHECK(status == (client ? MIX_UNSUPPORTED : MIX_MEMORY_ERROR));
  expect("Out of memory while trying to allocate 4294967296 bytes.", message);
  expect(remedy, message);
  CHECK(mix_tensor_item(mix_variable_value(count)) == 3);
  CHECK(mix_set_device("cpu") == MIX_OK);
  mix_list *results = call(new_function_of(count));
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 41);
  CHECK(mix_tensor_item(mix_variable_value(count)) == 4);
  unsetenv("MIXTAPE_FAKE_EXHAUSTED");
  CHECK(mix_set_device("cuda") == MIX_OK && call(new_function_of(count)) && mix_synchronize() == MIX_OK);
}
static void check_no_client(void) {
  check_exhausted("client", "nvidia-smi lists who holds memory of the GPU; MIXTAPE_DEVICE_MEMORY=grow takes");
}
static const char running[] = "or end what else holds memory of the GPU: nvidia-smi lists it";
static void check_no_program(void) { check_exhausted("compile", running); }
static void check_no_upload(void) { check_exhausted("upload", running); }
static void check_no_run(void) { check_exhausted("run", running); }
static void exhausted_memory_loses_nothing(void **state) {
  (void)state;
  in_child(check_no_client);
  in_child(check_no_program);
  in_child(check_no_upload);
  in_child(check_no_run);
}

static void memory_is_taken_as_told(void **state) {
  (void)state;
  in_child(check_share);
  in_child(check_amount);
  in_child(check_growth);
  in_child(check_too_much);
  in_child(check_no_share);
  in_child(check_no_number);
}

/* ---- machines that cannot ---- */

/* The reason, also in the list; the CPU works, and "auto" takes it. */
static void check_none(const char *reason, const char *remedy) {
  CHECK(mix_set_device("cuda") == MIX_UNSUPPORTED);
  expect("set_device: device \"cuda\" is unavailable: ", mix_error_message());
  expect(reason, mix_error_message());
  expect(remedy, mix_error_message());
  mix_error_clear();
  expect("cuda: unavailable: ", mix_devices_text());
  expect(reason, mix_devices_text());
  CHECK(mix_set_device("auto") == MIX_OK && !strcmp(mix_device(), "cpu"));
  CHECK(call(new_function()));
}
static void check_no_driver(void) {
  have_python();
  if (dlopen("libcuda.so.1", RTLD_NOW)) return; /* it is installed here */
  check_none("there is no NVIDIA driver", "sudo apt install nvidia-driver");
}
static void check_no_gpu(void) {
  setenv("FAKE_CUDA_ERROR", "100", 1);
  have_all(one);
  check_none("the NVIDIA driver finds no GPU", "CUDA_VISIBLE_DEVICES");
}
static void check_bad_driver(void) {
  setenv("FAKE_CUDA_ERROR", "803", 1);
  have_all(one);
  check_none("the NVIDIA driver does not start, its error is 803", "nvidia-smi");
}
static void check_no_plugin(void) {
  have_driver(one, "13000");
  have_python();
  check_none("no XLA plug-in for CUDA", "run: pip install \"jax-cuda13-plugin[with-cuda]\"");
}
static void check_no_plugin_for_old(void) {
  have_driver("Tesla V100:7.0:16", "13000");
  have_python();
  check_none("no XLA plug-in for CUDA", "run: pip install \"jax-cuda12-plugin[with-cuda]\"");
}
static void check_old_driver(void) {
  have_driver(one, "12080");
  have_python();
  have_plugin(13), have_compiler("cu13");
  check_none("xla_cuda_plugin.so needs a driver of release 580 or newer, and this one is for CUDA 12.8",
             "run: pip install \"jax-cuda12-plugin[with-cuda]\"");
}
static void check_old_gpu(void) {
  have_all("Tesla V100:7.0:16");
  check_none("needs compute capability 7.5, and GPU 0, Tesla V100, has 7.0", "jax-cuda12-plugin");
}
static void check_too_old_gpu(void) {
  have_driver("Tesla K80:3.7:12", "12000");
  have_python();
  have_plugin(12), have_compiler("cuda_nvcc");
  check_none("needs compute capability 5.2, and GPU 0, Tesla K80, has 3.7", "cannot be used");
}
static void check_ancient_driver(void) {
  have_driver(one, "11040");
  have_python();
  have_plugin(12), have_compiler("cuda_nvcc");
  check_none("needs a driver of release 525 or newer, and this one is for CUDA 11.4",
             "update the driver to release 580 or newer");
}
static void check_given_for_other_cuda(void) {
  have_driver(one, "12080");
  have_python();
  have_plugin(13), have_compiler("cu13");
  setenv("MIXTAPE_PJRT_PLUGIN",
         in_folder("lib/python3.12/site-packages/jax_plugins/xla_cuda13/xla_cuda_plugin.so"), 1);
  CHECK(mix_set_device("cuda") == MIX_UNSUPPORTED);
  expect("xla_cuda13/xla_cuda_plugin.so needs a driver of release 580 or newer", mix_error_message());
  expect("run: pip install \"jax-cuda12-plugin[with-cuda]\"", mix_error_message());
}
/* One of the two is there. */
static void check_half_a_compiler(const char *missing) {
  have_all(one);
  forget(missing);
  check_none("needs ptxas and libdevice.10.bc", "run: pip install nvidia-cuda-nvcc nvidia-nvvm");
}
static void check_no_ptxas(void) {
  check_half_a_compiler("lib/python3.12/site-packages/nvidia/cu13/bin/ptxas");
}
static void check_no_libdevice(void) {
  check_half_a_compiler("lib/python3.12/site-packages/nvidia/cu13/nvvm/libdevice/libdevice.10.bc");
}
static void check_no_compiler(void) {
  have_driver(one, "13000");
  have_python();
  have_plugin(13);
  check_none("needs ptxas and libdevice.10.bc", "run: pip install nvidia-cuda-nvcc nvidia-nvvm");
}
static void check_other_platform(void) {
  have_all(one);
  setenv("CUDA_HOME", in_folder("lib/python3.12/site-packages/nvidia/cu13"), 1);
  setenv("MIXTAPE_PJRT_PLUGIN", fakes("works"), 1);
  CHECK(mix_set_device("cuda") == MIX_UNSUPPORTED);
  expect("fake_works.so is for the platform \"fake\", not for CUDA; run: pip install", mix_error_message());
  mix_error_clear();
  CHECK(mix_set_device("xla") == MIX_OK);
}
static void check_other_in_use(void) {
  have_all(one);
  CHECK(mix_set_device(fake("works")) == MIX_OK);
  check_none("a process has one plug-in", "one for another device is in use");
}
static void what_lacks_is_named(void **state) {
  (void)state;
  static void (*const checks[])(void) = {check_no_driver,
                                         check_no_gpu,
                                         check_bad_driver,
                                         check_no_plugin,
                                         check_no_plugin_for_old,
                                         check_old_driver,
                                         check_old_gpu,
                                         check_too_old_gpu,
                                         check_no_compiler,
                                         check_other_platform,
                                         check_other_in_use,
                                         check_ancient_driver,
                                         check_given_for_other_cuda,
                                         check_no_ptxas,
                                         check_no_libdevice};
  for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
    forget("lib");
    in_child(checks[i]);
  }
}

/* ---- the compatibility check ---- */

static char log_text[600];
static void keep_message(void *context, mix_log_level level, const char *message) {
  (void)context;
  (void)level;
  snprintf(log_text, sizeof log_text, "%s", message);
}
static void check_policy(const char *device, const char *gpus, const char *mention) {
  mix_set_log_callback(keep_message, NULL);
  have_all(gpus);
  CHECK(mix_set_device(device) == MIX_OK && mix_policy_new("mixed_float16"));
  expect(mention, log_text);
}
static void check_good_one(void) {
  check_policy(
      "cuda", one,
      "(mixed_float16): OK\nYour GPU will likely run quickly with dtype policy mixed_float16 as it has "
      "compute capability of at least 7.0. Your GPU: NVIDIA H200, compute capability 9.0");
}
static void check_good_two(void) { check_policy("cuda", two, "Your GPUs will likely run quickly"); }
static void check_mixed_two(void) {
  check_policy("cuda", "NVIDIA H100:9.0:80,Tesla P100:6.0:16",
               "Your GPUs:\n  NVIDIA H100, compute capability 9.0\n  Tesla P100, compute capability 6.0\n");
}
static void check_on_cpu(void) { check_policy("cpu", one, "this machine does not have a GPU"); }
static void policies_are_checked(void **state) {
  (void)state;
  in_child(check_good_one);
  in_child(check_good_two);
  in_child(check_mixed_two);
  in_child(check_on_cpu);
}

/* ---- the program ---- */

static void the_program_lists_all(void **state) {
  (void)state;
  have_python();
  have_plugin(13), have_compiler("cu13");
  give_driver(two);
  setenv("MIXTAPE_DEVICE", "cuda:1", 1);
  assert_code(run_program("devices"), 0);
  assert_has(program_out, "cuda:0: NVIDIA H100, compute capability 9.0, 80.0 GiB, ");
  assert_has(program_out, "cuda:1: NVIDIA A100, compute capability 8.0, 40.0 GiB, ");
  assert_has(program_out, "cuda: cuda:1 by the plug-in ");
  assert_has(program_out, "GPU 1, 0.900 of its memory; in use");
  unsetenv("MIXTAPE_DEVICE");
  assert_code(run_program("train", "--data", "digits", "--steps", "1", "--device", "cuda:2"), 1);
  assert_has(program_err, "there is no device \"cuda:2\"; the driver sees 2 GPUs, from cuda:0 on");
  unsetenv("LD_LIBRARY_PATH");
}

#define FOLDER_TEST(name) cmocka_unit_test_setup_teardown(name, folder_begin, folder_end)

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(gpus_are_found_and_chosen), FOLDER_TEST(compilations_get_their_options),
      FOLDER_TEST(memory_is_taken_as_told),   FOLDER_TEST(what_lacks_is_named),
      FOLDER_TEST(policies_are_checked),      FOLDER_TEST(exhausted_memory_loses_nothing),
      FOLDER_TEST(the_program_lists_all),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
