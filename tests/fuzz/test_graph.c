/* The graph text target on damaged texts. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_graph.c"

static const char *const graphs[] = {
    "%0:float16(4, 2) = argument 0\n%1:float32(2, 3) = variable 'kernel'\n"
    "%2:float16(2, 3) = cast(%1) {dtype=float16} @dense\n"
    "%3:float16(4, 3) = matmul(%0, %2) @dense\n%4:float16(4, 3) = leaky_relu(%3) {alpha=0.5}\n"
    "%5:bool() = all_finite(%4) keep\n"
    "%6:float16(2, 3) = matmul(%0, %4) {transpose_a}\n%7:float32(2, 3) = cast(%6) {dtype=float32}\n"
    "%8:float32(2, 3) = subtract(%1, %7)\nstore %1 'kernel' = %8 if %5\nreturn %4\n",
    "%0:float32(2, 3) = argument 0\n%1:float32(3) = constant [1, -0.5, nan]\n%2:int64(2) = constant all 1\n"
    "%3:float32(2) = reduce_sum(%0) {axes=[1]}\n%4:float32(3, 2) = transpose(%0) {permutation=[1, 0]}\n"
    "%5:float32(2, 3), %6:bool() = fused(%0, %1) @'a b'\n    over (2, 3)\n"
    "      r0 = float32 load 0 strides (3, 1)\n"
    "      r1 = float32 load 1 strides (0, 1)\n      r2 = float32 add r0, r1\n      store r2 -> 0\n"
    "      all_finite of r2 -> 1\n"
    "%7:float32(3, 3) = matmul(%4, %5)\n    over (3, 3)\n      r0 = float32 product\n"
    "      r1 = float32 relu r0\n      store r1 -> 0\n"
    "%8:float32(2, 1) = slice(%0) {begin=[0, 1] size=[2, 1]}\n%9:float32(4) = random_uniform(%2) {shape=(4) "
    "dtype=float32}\n"
    "return %3, %7, %8, %9\n",
    /* what "cache_weight_casts" made unreadable: the weight becomes its own rounded value */
    "%0:float16(2) = argument 0\n%1:float32(2) = variable 'kernel'\n%2:float16(2) = cast(%1) "
    "{dtype=float16}\n%3:bool() = all_finite(%0) keep\n%4:float32(2) = cast(%2) {dtype=float32}\n"
    "store %1 'kernel' = %4 if %3\nreturn %2\n",
};

static void damaged_graphs(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    static bytes good;
    good.size = strlen(graphs[i]);
    assert_true(good.size <= sizeof good.data);
    memcpy(good.data, graphs[i], good.size);
    mix_ir *ir = mix_ir_read("good", graphs[i], good.size, 1 << 16);
    assert_non_null(ir);
    mix_ir_free(ir);
    mutate_and_run(&good, 6000, 60 + i);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_graphs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
