/* What XLA makes of training steps for an H100, which is not here: the programs after its passes, which it
 * writes beside them. XLA's plug-in for CUDA is that of scripts/bootstrap --check.
 *
 * Holds docs/NUMERICS.md: NVIDIA's GPUs. */
#include "cli/program.h"
#include "support/skip.h"

#include "backend/xla/xla.h"
#include "base/alloc.h"
#include <glob.h>

enum { MOST_TEXT = 1 << 22 };
static char program[MOST_TEXT]; /* of the latest training step */
static int kernels;             /* that it starts, without copies */

static const char *plugin(void) {
  const char *path = getenv("MIXTAPE_TEST_CUDA_PJRT");
  return path && !access(path, R_OK) ? path : NULL;
}
#define CUDA_OR_SKIP()                                                                                       \
  do {                                                                                                       \
    if (!plugin()) SKIP("there is no XLA plug-in for CUDA: scripts/bootstrap --check fetches it");           \
  } while (0)

/* The file of that pattern, or the later of two: a step has a second for arguments that come in 16 bits. */
static void read_dump(const char *pattern) {
  glob_t found;
  assert_int_equal(glob(in_folder(pattern), 0, NULL, &found), 0);
  assert_in_range(found.gl_pathc, 1, 2);
  read_text(found.gl_pathv[found.gl_pathc - 1], program, sizeof program);
  globfree(&found);
}

/* Lines such as "012: kCustomKernel [prev=011 (1) | next=013 (1)] loop_add_fusion". */
static int count_kernels(void) {
  int count = 0;
  read_dump("dump/*.train_step.thunk_sequence.txt");
  for (char *line = strtok(program, "\n"); line; line = strtok(NULL, "\n"))
    count += *line >= '0' && *line <= '9' && !strstr(line, ": kCopy ");
  return count;
}

static int count(const char *part) {
  int found = 0;
  for (const char *at = program; (at = strstr(at, part)); at += strlen(part)) found++;
  return found;
}

/* The guide's model of 1024 units, batches of 8192. */
#define compile_step(...)                                                                                    \
  compile_for_h100((const char *const[]){"compile", "--target", "h100", "--data", "synthetic", "--units",    \
                                         "1024", "--batch-size", "8192", __VA_ARGS__, NULL})
static void set_environment(bool machine_code) {
  char flags[600];
  snprintf(flags, sizeof flags, "--xla_dump_to=%s --xla_dump_emitter_re=%s --xla_gpu_dump_llvmir=%s",
           in_folder("dump"), machine_code ? ".*" : "", machine_code ? "true" : "false");
  setenv("XLA_FLAGS", flags, 1);
  setenv("MIXTAPE_PJRT_PLUGIN", plugin(), 1);
  setenv("MIXTAPE_XLA_CACHE", in_folder("cache"), 1);
}

static void compile_for_h100(const char *const *arguments) {
  set_environment(false);
  forget("dump");
  assert_code(run_program_to(NULL, arguments), 0);
  kernels = count_kernels();
  read_dump("dump/*.train_step.*gpu_after_optimizations.txt");
}

/* ---- steps ---- */

static void check_kernels(int most) {
  if (kernels > most) fail_msg("the step starts %d kernels; expected at most %d", kernels, most);
  if (kernels < most / 2) fail_msg("the step starts %d kernels: is this the training step?", kernels);
}
/* A slow float64 anywhere would come from a constant or a conversion of ours. */
static void check_no_float64(void) { assert_int_equal(count(" f64["), 0); }

static void float32_products_have_the_highest_precision(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  compile_step("--policy", "float32");
  assert_int_equal(count(" dot("), 8);
  assert_int_equal(count("operand_precision={highest,highest}"), 8);
  check_no_float64();
  check_kernels(37);
}

static void deterministic_float32_products_have_it_too(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  compile_step("--policy", "float32", "--deterministic");
  assert_int_equal(count("custom_call_target=\"__cublas$lt$matmul\""), 8);
  assert_int_equal(count("\"operand_precision\":[\"HIGHEST\",\"HIGHEST\"]"), 8);
  check_no_float64();
  check_kernels(38);
}

/* Each rounding of the step is one of the program: products give float32. */
static void products_of_16_bits_give_float32(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  compile_step("--policy", "mixed_float16");
  assert_int_equal(count(" dot("), 8);
  assert_int_equal(count("__cublas"), 0);
  for (const char *at = program; (at = strstr(at, " dot(")); at++) {
    const char *line = at;
    while (line > program && line[-1] != '\n') line--;
    const char *type = strstr(line, " = ");
    if (strncmp(type, " = f32[", 7)) fail_msg("a product gives %.16s", type + 3);
  }
  check_no_float64();
  check_kernels(54);
}

static void deterministic_products_have_no_epilogue(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  compile_step("--policy", "mixed_float16", "--deterministic");
  assert_int_equal(count("custom_call_target=\"__cublas$lt$matmul\""), 8);
  assert_int_equal(count("\"epilogue\":\"DEFAULT\""), 8);
  assert_int_equal(count(" dot("), 0);
  check_no_float64();
  check_kernels(55);
}

/* Those of the forward pass; what the finite check reads is rounded from float32. */
static void under_jit_compile_epilogues_round_once(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  compile_step("--policy", "mixed_float16", "--deterministic", "--jit-compile");
  assert_int_equal(count("\"epilogue\":\"BIAS_RELU\""), 2);
  assert_int_equal(count("\"epilogue\":\"BIAS\""), 1);
  assert_int_equal(count("\"epilogue\":\"DEFAULT\""), 5);
  check_no_float64();
  check_kernels(56);
}

/* ---- small graphs, in this process ---- */

static void have_target(void) {
  static bool chosen;
  if (chosen) return;
  set_environment(true); /* the plug-in reads it once */
  chosen = mix_cuda_set_target("h100") && mix_set_device("cuda") == MIX_OK;
  assert_true(chosen);
}

static void compile_graph(const char *text, const char *pattern) {
  mix_xla_signature signature;
  have_target();
  mix_ir *ir = mix_ir_read("test", text, strlen(text), 1 << 20);
  assert_non_null(ir);
  char *stablehlo = mix_xla_emit(ir, &signature);
  assert_non_null(stablehlo);
  forget("dump");
  assert_true(mix_xla_compile_for_target(stablehlo, "a graph"));
  mix_free(stablehlo);
  mix_ir_free(ir);
  read_dump(pattern);
  assert_int_equal(mix_error(), MIX_OK);
}

static void cudnn_adds_a_residual_under_jit_compile_alone(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  static const char plain[] = "%0:float16(8, 16, 16, 32) = argument 0\n"
                              "%1:float16(3, 3, 32, 32) = argument 1\n"
                              "%2:float16(8, 16, 16, 32) = conv(%0, %1) {strides=[1, 1] dilation=[1, 1] "
                              "before=[1, 1] after=[1, 1] groups=1}\n"
                              "%3:float16(8, 16, 16, 32) = add(%2, %0)\n"
                              "return %3\n",
                    pattern[] = "dump/*gpu_after_optimizations.txt";
  char jit[sizeof plain + 32];
  compile_graph(plain, pattern);
  assert_int_equal(count("custom_call_target=\"__cudnn$convForward\""), 1);
  assert_int_equal(count("convBiasActivationForward"), 0);
  snprintf(jit, sizeof jit, "excess_precision\n%s", plain);
  compile_graph(jit, pattern);
  assert_int_equal(count("custom_call_target=\"__cudnn$convBiasActivationForward\""), 1);
}

/* In the code of the kernel: an fma would round once. */
static void a_product_and_a_sum_round_twice(void **state) {
  (void)state;
  CUDA_OR_SKIP();
  static const char *const dtypes[] = {"float16", "bfloat16", "float32"}, *const types[] = {"f16", "bf16",
                                                                                            "f32"};
  for (int i = 0; i < 3; i++) {
    char text[512], part[16];
    snprintf(text, sizeof text,
             "%%0:%s(1024) = argument 0\n%%1:%s(1024) = argument 1\n%%2:%s(1024) = multiply(%%0, %%1)\n"
             "%%3:%s(1024) = add(%%2, %%1)\nreturn %%3\n",
             dtypes[i], dtypes[i], dtypes[i], dtypes[i]);
    compile_graph(text, "dump/*.ptx");
    snprintf(part, sizeof part, "mul.rn.%s ", types[i]);
    assert_int_equal(count(part), 1);
    snprintf(part, sizeof part, "add.rn.%s ", types[i]);
    assert_int_equal(count(part), 1);
    assert_int_equal(count("fma."), 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(float32_products_have_the_highest_precision),
      cmocka_unit_test(deterministic_float32_products_have_it_too),
      cmocka_unit_test(products_of_16_bits_give_float32),
      cmocka_unit_test(deterministic_products_have_no_epilogue),
      cmocka_unit_test(under_jit_compile_epilogues_round_once),
      cmocka_unit_test(cudnn_adds_a_residual_under_jit_compile_alone),
      cmocka_unit_test(a_product_and_a_sum_round_twice),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
