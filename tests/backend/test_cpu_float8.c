/* float8 on the CPU: casts of every instruction set against the definition, and quantize_dequantize in one
 * program. */
/* Holds docs/NUMERICS.md: Rounding. */
#include "compile/support.h"

#include "backend/float8_casts.h"
#include "backend/instruction_sets.h"
#include "support/count.h"

static void casts(void **state) {
  NEED_INSTRUCTION_SET(state);
  MIX_SCOPE {
    check_float8_casts();
    check_every_float8_code();
  }
}

static mix_list *quantize(void *dtype, mix_list *arguments) {
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), *(const mix_dtype *)dtype),
             *y = mix_quantize_dequantize(mix_multiply(x, x), mix_list_get(arguments, 1), MIX_FLOAT8_E4M3FN);
  return mix_list_of(mix_cast(y, MIX_FLOAT32));
}

/* Row F02, operation by operation in the dtype of x; under jit_compile the last product, which becomes
 * float32, is not rounded, but what float8 is made of is. */
static float quantized(float x, float scale, mix_dtype dtype, bool jit) {
  const float s = mix_round_to(scale, dtype), v = mix_round_to(mix_round_to(x * x, dtype) / s, dtype),
              clipped = fminf(fmaxf(v, -448), 448);
  return mix_round_to(mix_round_to(clipped, MIX_FLOAT8_E4M3FN) * s, jit ? MIX_FLOAT32 : dtype);
}

static void quantize_dequantize_is_one_program(void **state) {
  NEED_INSTRUCTION_SET(state);
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_BFLOAT16, MIX_FLOAT16};
  enum { N = 1009 };
  static float numbers[N];
  for (int i = 0; i < N; i++) numbers[i] = (float)float8_sample(i) / 64;
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int jit = 0; jit < 2; jit++)
      MIX_SCOPE {
        mix_dtype dtype = dtypes[d];
        mix_tensor *x = mix_tensor_from(numbers, MIX_FLOAT32, MIX_SHAPE(N)),
                   *rounded = mix_cast(mix_cast(x, dtype), MIX_FLOAT32), *scale = mix_scalar_like(x, 0.37);
        mix_function *f = mix_function_new(quantize, &dtype, .jit_compile = jit);
        const float *is = mix_tensor_data(mix_list_get(mix_function_call(f, mix_list_of(x, scale)), 0)),
                    *of = mix_tensor_data(rounded);
        no_error();
        for (int i = 0; i < N; i++)
          if (is[i] != quantized(of[i], 0.37f, dtype, jit))
            fail_msg("%s, jit %d: %g gives %.9g, not %.9g", mix_dtype_name(dtype), jit, (double)of[i],
                     (double)is[i], (double)quantized(of[i], 0.37f, dtype, jit));
        assert_int_equal(count_of(mix_function_dump(f, "passes"), "over (1009)"), 1);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {ON_EACH_SET(casts), ON_EACH_SET(quantize_dequantize_is_one_program)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
