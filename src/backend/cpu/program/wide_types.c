/* Vector functions for tiles of double, int64 and bool, in plain C: one version for all instruction sets. */
#include "backend/cpu/simd/vector_functions.h"
#include "ops/formulas.h"
#include "tensor/convert.h"

/* Elements of a group: MIX_TILE_PADDING bytes of double. */
#define GROUP 8
#define ARGUMENTS void *result, const void *const *operands, const int *steps, int64_t n, double alpha

/* A uniform operand fills its group, so that the inner loop reads all operands alike and vectorises. */
#define UNARY(name, from, to, group, expression)                                                             \
  static void name(ARGUMENTS) {                                                                              \
    const from *p = operands[0];                                                                             \
    const int64_t step = steps[0] * (group);                                                                 \
    to *r = result;                                                                                          \
    for (int64_t i = 0; i < n; i += (group), p += step)                                                      \
      for (int j = 0; j < (group); j++) {                                                                    \
        const from a = p[j];                                                                                 \
        r[i + j] = (to)(expression);                                                                         \
      }                                                                                                      \
  }
#define BINARY(name, from, to, group, expression)                                                            \
  static void name(ARGUMENTS) {                                                                              \
    const from *p = operands[0], *q = operands[1];                                                           \
    const int64_t step_p = steps[0] * (group), step_q = steps[1] * (group);                                  \
    to *r = result;                                                                                          \
    for (int64_t i = 0; i < n; i += (group), p += step_p, q += step_q)                                       \
      for (int j = 0; j < (group); j++) {                                                                    \
        const from a = p[j], b = q[j];                                                                       \
        r[i + j] = (to)(expression);                                                                         \
      }                                                                                                      \
  }
/* operands: uint32 condition, then two of one type */
#define SELECT(name, type, group)                                                                            \
  static void name(ARGUMENTS) {                                                                              \
    const uint32_t *c = operands[0];                                                                         \
    const type *p = operands[1], *q = operands[2];                                                           \
    type *r = result;                                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const type a = p[steps[1] ? i : 0], b = q[steps[2] ? i : 0];                                           \
      r[i] = c[steps[0] ? i : 0] ? a : b;                                                                    \
    }                                                                                                        \
  }
#define TERNARY(name, type, expression)                                                                      \
  static void name(ARGUMENTS) {                                                                              \
    const type *p = operands[0], *q = operands[1], *s = operands[2];                                         \
    type *r = result;                                                                                        \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const type a = p[steps[0] ? i : 0], b = q[steps[1] ? i : 0], c = s[steps[2] ? i : 0];                  \
      r[i] = (type)(expression);                                                                             \
    }                                                                                                        \
  }

/* ---- the formulas ---- */

#define DEFINE_DOUBLE_UNARY(code, expression) UNARY(double_##code, double, double, GROUP, expression)
#define DEFINE_DOUBLE_BINARY(code, expression) BINARY(double_##code, double, double, GROUP, expression)
#define DEFINE_DOUBLE_COMPARE(code, expression) BINARY(double_##code, double, uint32_t, GROUP, expression)
#define DEFINE_DOUBLE_CLASSIFY(code, expression) UNARY(double_##code, double, uint32_t, GROUP, expression)
#define DEFINE_INTEGER_UNARY(code, expression) UNARY(integer_##code, int64_t, int64_t, GROUP, expression)
#define DEFINE_INTEGER_BINARY(code, expression) BINARY(integer_##code, int64_t, int64_t, GROUP, expression)
#define DEFINE_INTEGER_COMPARE(code, expression) BINARY(integer_##code, int64_t, uint32_t, GROUP, expression)
#define DEFINE_BOOL_UNARY(code, expression) UNARY(bool_##code, uint32_t, uint32_t, 2 * GROUP, expression)
#define DEFINE_BOOL_BINARY(code, expression) BINARY(bool_##code, uint32_t, uint32_t, 2 * GROUP, expression)
#define DEFINE_DOUBLE_TERNARY(code, expression) TERNARY(double_##code, double, expression)
#define DEFINE_INTEGER_TERNARY(code, expression) TERNARY(integer_##code, int64_t, expression)
MIX_REAL_UNARY(DEFINE_DOUBLE_UNARY)
MIX_REAL_BINARY(DEFINE_DOUBLE_BINARY)
MIX_REAL_TERNARY(DEFINE_DOUBLE_TERNARY)
MIX_COMPARISONS(DEFINE_DOUBLE_COMPARE)
MIX_CLASSIFICATIONS(DEFINE_DOUBLE_CLASSIFY)
MIX_INTEGER_UNARY(DEFINE_INTEGER_UNARY)
MIX_INTEGER_BINARY(DEFINE_INTEGER_BINARY)
MIX_INTEGER_TERNARY(DEFINE_INTEGER_TERNARY)
MIX_COMPARISONS(DEFINE_INTEGER_COMPARE)
MIX_LOGICAL_UNARY(DEFINE_BOOL_UNARY)
MIX_LOGICAL_BINARY(DEFINE_BOOL_BINARY)
MIX_COMPARISONS(DEFINE_BOOL_BINARY)
SELECT(double_SELECT, double, GROUP)
SELECT(integer_SELECT, int64_t, GROUP)
SELECT(bool_SELECT, uint32_t, 2 * GROUP)

/* ---- casts ---- */

/* Truncates and saturates, and NaN gives 0, as in mix_f64_to_i64, but in a form that can be vectorised. */
static inline int64_t truncate_double(double x) {
  return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x < -0x1p63 ? INT64_MIN : (int64_t)x;
}
static inline float narrow(int64_t x, mix_dtype dtype) {
  uint16_t bits;
  mix_store_integer(&bits, dtype, 0, x);
  return (float)mix_load_double(&bits, dtype, 0);
}
UNARY(double_to_float, double, float, GROUP, a)
UNARY(double_to_float16, double, float, GROUP, mix_f16_to_f32(mix_f64_to_f16(a)))
UNARY(double_to_bfloat16, double, float, GROUP, mix_bf16_to_f32(mix_f64_to_bf16(a)))
UNARY(double_to_e4m3, double, float, GROUP, mix_e4m3_to_f32(mix_f64_to_e4m3(a)))
UNARY(double_to_e5m2, double, float, GROUP, mix_e5m2_to_f32(mix_f64_to_e5m2(a)))
UNARY(double_to_integer, double, int64_t, GROUP, truncate_double(a))
UNARY(double_to_bool, double, uint32_t, GROUP, a != 0)
UNARY(integer_to_float, int64_t, float, GROUP, a)
UNARY(integer_to_float16, int64_t, float, GROUP, narrow(a, MIX_FLOAT16))
UNARY(integer_to_bfloat16, int64_t, float, GROUP, narrow(a, MIX_BFLOAT16))
UNARY(integer_to_e4m3, int64_t, float, GROUP, narrow(a, MIX_FLOAT8_E4M3FN))
UNARY(integer_to_e5m2, int64_t, float, GROUP, narrow(a, MIX_FLOAT8_E5M2))
UNARY(integer_to_double, int64_t, double, GROUP, a)
UNARY(integer_to_bool, int64_t, uint32_t, GROUP, a != 0)
UNARY(bool_to_double, uint32_t, double, GROUP, a)
UNARY(bool_to_integer, uint32_t, int64_t, GROUP, a)
UNARY(float_to_double, float, double, GROUP, a)
UNARY(float_to_integer, float, int64_t, GROUP, truncate_double(a))

UNARY(wrap_int8, int64_t, int64_t, GROUP, (int8_t)a)
UNARY(wrap_int16, int64_t, int64_t, GROUP, (int16_t)a)
UNARY(wrap_int32, int64_t, int64_t, GROUP, (int32_t)a)
UNARY(wrap_uint8, int64_t, int64_t, GROUP, (uint8_t)a)

/* ---- memory to tile and back ---- */

#define TRANSFER(name, type, held)                                                                           \
  static void load_##name(void *tile, const void *source, int64_t n) {                                       \
    for (int64_t i = 0; i < n; i++) ((held *)tile)[i] = (held)((const type *)source)[i];                     \
  }                                                                                                          \
  static void store_##name(void *result, const void *tile, int64_t n) {                                      \
    for (int64_t i = 0; i < n; i++) ((type *)result)[i] = (type)((const held *)tile)[i];                     \
  }
TRANSFER(int8, int8_t, int64_t)
TRANSFER(int16, int16_t, int64_t)
TRANSFER(int32, int32_t, int64_t)
TRANSFER(int64, int64_t, int64_t)
TRANSFER(uint8, uint8_t, int64_t)
TRANSFER(float64, double, double)

#define DOUBLE_ROW(code, expression) [MIX_OPCODE_##code][MIX_TILE_DOUBLE] = double_##code,
#define INTEGER_ROW(code, expression) [MIX_OPCODE_##code][MIX_TILE_INTEGER] = integer_##code,
#define BOOL_ROW(code, expression) [MIX_OPCODE_##code][MIX_TILE_BOOL] = bool_##code,

const mix_tile_wide mix_tile_wide_functions = {
    .load = {[MIX_INT8] = load_int8,
             [MIX_INT16] = load_int16,
             [MIX_INT32] = load_int32,
             [MIX_INT64] = load_int64,
             [MIX_UINT8] = load_uint8,
             [MIX_FLOAT64] = load_float64},
    .store = {[MIX_INT8] = store_int8,
              [MIX_INT16] = store_int16,
              [MIX_INT32] = store_int32,
              [MIX_INT64] = store_int64,
              [MIX_UINT8] = store_uint8,
              [MIX_FLOAT64] = store_float64},
    .round = {[MIX_INT8] = wrap_int8,
              [MIX_INT16] = wrap_int16,
              [MIX_INT32] = wrap_int32,
              [MIX_UINT8] = wrap_uint8},
    .instruction = {MIX_REAL_UNARY(DOUBLE_ROW) MIX_REAL_BINARY(DOUBLE_ROW) MIX_REAL_TERNARY(
        DOUBLE_ROW) MIX_COMPARISONS(DOUBLE_ROW) MIX_CLASSIFICATIONS(DOUBLE_ROW) MIX_INTEGER_UNARY(INTEGER_ROW)
                        MIX_INTEGER_BINARY(INTEGER_ROW) MIX_INTEGER_TERNARY(INTEGER_ROW)
                            MIX_COMPARISONS(INTEGER_ROW) MIX_LOGICAL_UNARY(BOOL_ROW)
                                MIX_LOGICAL_BINARY(BOOL_ROW) MIX_COMPARISONS(BOOL_ROW) DOUBLE_ROW(SELECT, )
                                    INTEGER_ROW(SELECT, ) BOOL_ROW(SELECT, )},
    .cast = {[MIX_TILE_DOUBLE] = {[MIX_TILE_FLOAT] = double_to_float,
                                  [MIX_TILE_DOUBLE] = double_IDENTITY,
                                  [MIX_TILE_INTEGER] = double_to_integer,
                                  [MIX_TILE_BOOL] = double_to_bool},
             [MIX_TILE_INTEGER] = {[MIX_TILE_FLOAT] = integer_to_float,
                                   [MIX_TILE_DOUBLE] = integer_to_double,
                                   [MIX_TILE_INTEGER] = integer_IDENTITY,
                                   [MIX_TILE_BOOL] = integer_to_bool},
             [MIX_TILE_BOOL] = {[MIX_TILE_DOUBLE] = bool_to_double,
                                [MIX_TILE_INTEGER] = bool_to_integer,
                                [MIX_TILE_BOOL] = bool_IDENTITY},
             [MIX_TILE_FLOAT] = {[MIX_TILE_DOUBLE] = float_to_double, [MIX_TILE_INTEGER] = float_to_integer}},
    .cast_narrow = {[MIX_TILE_DOUBLE] = {[MIX_FLOAT16] = double_to_float16,
                                         [MIX_BFLOAT16] = double_to_bfloat16,
                                         [MIX_FLOAT8_E4M3FN] = double_to_e4m3,
                                         [MIX_FLOAT8_E5M2] = double_to_e5m2},
                    [MIX_TILE_INTEGER] = {[MIX_FLOAT16] = integer_to_float16,
                                          [MIX_BFLOAT16] = integer_to_bfloat16,
                                          [MIX_FLOAT8_E4M3FN] = integer_to_e4m3,
                                          [MIX_FLOAT8_E5M2] = integer_to_e5m2}},
};
