/* Template: instructions of element-wise programs over float tiles. Included after a simd_*.h and
 * vector_math.inc.h. Every function rounds as the opcode does in float32; for 16-bit dtypes the table's
 * `round` runs after it. */

#define ARGUMENTS void *result, const void *const *operands, const int *steps, int64_t n, double immediate

#define UNARY(name, expression)                                                                              \
  static void tile_##name(ARGUMENTS) {                                                                       \
    float *r = result;                                                                                       \
    const float *a = operands[0];                                                                            \
    const int64_t step = steps[0] * LANES;                                                                   \
    for (int64_t i = 0; i < n; i += LANES, a += step) {                                                      \
      const vf x = v_load(a);                                                                                \
      v_store(r + i, expression);                                                                            \
    }                                                                                                        \
  }
/* Two operands, x and another. `t` is the rounded result of the first of two instructions. */
#define OF_TWO(name, second_operand, expression, result_of_t)                                                \
  static void tile_##name(ARGUMENTS) {                                                                       \
    float *r = result;                                                                                       \
    const float *a = operands[0], *b = operands[1];                                                          \
    const int64_t step_a = steps[0] * LANES, step_b = steps[1] * LANES;                                      \
    for (int64_t i = 0; i < n; i += LANES, a += step_a, b += step_b) {                                       \
      const vf x = v_load(a), second_operand = v_load(b);                                                    \
      vf t = expression;                                                                                     \
      KEEP(t);                                                                                               \
      v_store(r + i, result_of_t);                                                                           \
    }                                                                                                        \
  }
#define BINARY(name, expression) OF_TWO(name, y, expression, t)
#define UNARY_TO_BOOL(name, expression)                                                                      \
  static void tile_##name(ARGUMENTS) {                                                                       \
    uint32_t *r = result;                                                                                    \
    const float *a = operands[0];                                                                            \
    const int64_t step = steps[0] * LANES;                                                                   \
    for (int64_t i = 0; i < n; i += LANES, a += step) {                                                      \
      const vf x = v_load(a);                                                                                \
      m_store(r + i, expression);                                                                            \
    }                                                                                                        \
  }
#define BINARY_TO_BOOL(name, expression)                                                                     \
  static void tile_##name(ARGUMENTS) {                                                                       \
    uint32_t *r = result;                                                                                    \
    const float *a = operands[0], *b = operands[1];                                                          \
    const int64_t step_a = steps[0] * LANES, step_b = steps[1] * LANES;                                      \
    for (int64_t i = 0; i < n; i += LANES, a += step_a, b += step_b) {                                       \
      const vf x = v_load(a), y = v_load(b);                                                                 \
      m_store(r + i, expression);                                                                            \
    }                                                                                                        \
  }
/* Rare functions: the C library's, element by element. */
#define UNARY_LIBRARY(name, expression)                                                                      \
  static void tile_##name(ARGUMENTS) {                                                                       \
    float *r = result;                                                                                       \
    const float *a = operands[0];                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const float x = a[steps[0] ? i : 0];                                                                   \
      r[i] = expression;                                                                                     \
    }                                                                                                        \
  }
#define BINARY_LIBRARY(name, expression)                                                                     \
  static void tile_##name(ARGUMENTS) {                                                                       \
    float *r = result;                                                                                       \
    const float *a = operands[0], *b = operands[1];                                                          \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      const float x = a[steps[0] ? i : 0], y = b[steps[1] ? i : 0];                                          \
      r[i] = expression;                                                                                     \
    }                                                                                                        \
  }

static inline vf zero_if(vm m, vf x) { return v_select(m, v_set(0.0f), x); }
static inline vf negated(vf x) { return (vf)((vi)x ^ v_set_integer((int32_t)0x80000000)); }
static inline vf one_minus_square(vf y) {
  vf square = y * y;
  KEEP(square);
  return v_set(1.0f) - square;
}
/* TensorFlow's floor_mod: the remainder has the sign of the divisor. */
static inline float floor_mod_float(float x, float y) {
  const float r = fmodf(x, y);
  return r != 0 && (r < 0) != (y < 0) ? r + y : r;
}
/* Klambauer et al., Self-normalizing neural networks, 2017. */
#define SELU_SCALE 1.0507009873554804934193349852946
#define SELU_ALPHA 1.6732632423543772848170429916717
#define SELU_PRODUCT ((float)(SELU_SCALE * SELU_ALPHA))
/* Added too, since y + SELU_PRODUCT may cancel. */
#define SELU_PRODUCT_ERROR ((float)(SELU_SCALE * SELU_ALPHA - (double)SELU_PRODUCT))

/* clang-format takes products for pointers here. */
/* clang-format off */
UNARY(identity, x)
UNARY(negative, negated(x))
UNARY(abs, v_abs(x))
UNARY(sign, v_select(v_lt(v_set(0), x), v_set(1),
                     v_select(v_lt(x, v_set(0)), v_set(-1), v_select(v_unordered(x, x), x, v_set(0)))))
UNARY(floor, v_floor(x))
UNARY(ceil, v_ceil(x))
UNARY(round, v_rint(x))
UNARY(sqrt, v_sqrt(x))
UNARY(rsqrt, v_rsqrt_at(x, i, immediate))
UNARY(square, x * x)
UNARY(reciprocal, v_reciprocal_at(x, i, immediate))
UNARY(exp, v_exp(x))
UNARY(expm1, v_expm1(x))
UNARY(log, v_log_at(x, i, immediate))
UNARY(log1p, v_log1p(x))
UNARY_LIBRARY(sin, sinf(x))
UNARY_LIBRARY(cos, cosf(x))
UNARY(tanh, v_tanh(x))
UNARY(sigmoid, v_sigmoid(x))
UNARY(erf, v_erf(x))
UNARY_LIBRARY(erfc, (float)mix_erfc_of(x))
UNARY(relu, zero_if(v_lt(x, v_set(0)), x))
UNARY(relu6, zero_if(v_lt(x, v_set(0)), v_select(v_lt(v_set(6), x), v_set(6), x)))
UNARY(elu, v_select(v_lt(x, v_set(0)), v_expm1(x), x))
UNARY(selu, v_select(v_lt(x, v_set(0)), v_set(SELU_PRODUCT) * v_expm1(x), v_set((float)SELU_SCALE) * x))
UNARY(softplus, v_softplus(x))
UNARY(softsign, x / (v_set(1) + v_abs(x)))
UNARY(leaky_relu, v_select(v_lt(v_set(0), x), x, v_set((float)immediate) * x))
UNARY_TO_BOOL(is_finite, v_finite(x))
UNARY_TO_BOOL(is_inf, v_eq(v_abs(x), v_set(INFINITY)))
UNARY_TO_BOOL(is_nan, v_unordered(x, x))
BINARY(add, x + y)
BINARY(subtract, x - y)
BINARY(multiply, x * y)
BINARY(divide, x / y)
BINARY(floor_divide, v_floor(x / y))
BINARY_LIBRARY(floor_mod, floor_mod_float(x, y))
BINARY_LIBRARY(power, powf(x, y))
BINARY_LIBRARY(atan2, atan2f(x, y))
BINARY(maximum, v_max(x, y))
BINARY(minimum, v_min(x, y))
BINARY(squared_difference, (x - y) * (x - y))
BINARY_TO_BOOL(equal, v_eq(x, y))
BINARY_TO_BOOL(not_equal, m_not(v_eq(x, y)))
BINARY_TO_BOOL(less, v_lt(x, y))
BINARY_TO_BOOL(less_equal, v_le(x, y))
BINARY_TO_BOOL(greater, v_lt(y, x))
BINARY_TO_BOOL(greater_equal, v_le(y, x))
/* x times 0 where the gate is closed: NaN for an x that is not finite. */
BINARY(relu_grad, v_select(v_lt(v_set(0), y), x, x * v_set(0)))
BINARY(relu6_grad, v_select(m_and(v_lt(v_set(0), y), v_lt(y, v_set(6))), x, x * v_set(0)))
BINARY(leaky_relu_grad, v_select(v_lt(v_set(0), y), x, v_set((float)immediate) * x))
BINARY(softplus_grad, x * v_sigmoid(y))
BINARY(softsign_grad, x / ((v_set(1) + v_abs(y)) * (v_set(1) + v_abs(y))))
BINARY(elu_grad, v_select(v_lt(y, v_set(0)), x * (y + v_set(1)), x))
BINARY(selu_grad, v_select(v_lt(y, v_set(0)), x * ((y + v_set(SELU_PRODUCT)) + v_set(SELU_PRODUCT_ERROR)),
                           x * v_set((float)SELU_SCALE)))
BINARY(tanh_grad, y * one_minus_square(x))
BINARY(sigmoid_grad, y * x * (v_set(1) - x))
BINARY(sqrt_grad, y * v_set(0.5f) / x)
BINARY(rsqrt_grad, v_set(-0.5f) * y * (x * x * x))
BINARY(reciprocal_grad, negated(y) * x * x)

static void tile_select(ARGUMENTS) {
  float *r = result;
  const uint32_t *c = operands[0];
  const float *a = operands[1], *b = operands[2];
  const int64_t step_c = steps[0] * LANES, step_a = steps[1] * LANES, step_b = steps[2] * LANES;
  for (int64_t i = 0; i < n; i += LANES, c += step_c, a += step_a, b += step_b)
    v_store(r + i, v_select(m_load(c), v_load(a), v_load(b)));
}
static void tile_clip(ARGUMENTS) {
  float *r = result;
  const float *a = operands[0], *low = operands[1], *high = operands[2];
  const int64_t step_a = steps[0] * LANES, step_low = steps[1] * LANES, step_high = steps[2] * LANES;
  for (int64_t i = 0; i < n; i += LANES, a += step_a, low += step_low, high += step_high)
    v_store(r + i, v_min(v_max(v_load(a), v_load(low)), v_load(high)));
}

/* ---- superinstructions: two instructions in one pass ---- */

/* `t` is the result of the first, `z` the other operand of the second. */
#define SUPERINSTRUCTION(name, expression, result_of_t)                                                      \
  static void tile_##name(ARGUMENTS) {                                                                       \
    float *r = result;                                                                                       \
    const float *a = operands[0], *b = operands[1], *c = operands[2];                                        \
    const int64_t step_a = steps[0] * LANES, step_b = steps[1] * LANES, step_c = steps[2] * LANES;           \
    for (int64_t i = 0; i < n; i += LANES, a += step_a, b += step_b, c += step_c) {                          \
      const vf x = v_load(a), y = v_load(b), z = v_load(c);                                                  \
      vf t = expression;                                                                                     \
      KEEP(t);                                                                                               \
      v_store(r + i, result_of_t);                                                                           \
    }                                                                                                        \
  }
#define EACH_SUPERINSTRUCTION(X)                                                                             \
  X(MULTIPLY, ADD, 0, x * y, t + z)                                                                          \
  X(MULTIPLY, ADD, 1, x * y, z + t)                                                                          \
  X(MULTIPLY, SUBTRACT, 0, x * y, t - z)                                                                     \
  X(MULTIPLY, SUBTRACT, 1, x * y, z - t)                                                                     \
  X(MULTIPLY, MULTIPLY, 0, x * y, t * z)                                                                     \
  X(MULTIPLY, MULTIPLY, 1, x * y, z * t)                                                                     \
  X(MULTIPLY, DIVIDE, 0, x * y, t / z)                                                                       \
  X(ADD, ADD, 0, x + y, t + z)                                                                               \
  X(ADD, ADD, 1, x + y, z + t)                                                                               \
  X(ADD, MULTIPLY, 0, x + y, t * z)                                                                          \
  X(ADD, MULTIPLY, 1, x + y, z * t)                                                                          \
  X(ADD, DIVIDE, 1, x + y, z / t)                                                                            \
  X(SUBTRACT, MULTIPLY, 0, x - y, t * z)                                                                     \
  X(SUBTRACT, MULTIPLY, 1, x - y, z * t)                                                                     \
  X(DIVIDE, SUBTRACT, 1, x / y, z - t)
#define EACH_SUPERINSTRUCTION_OF_TWO(X)                                                                      \
  X(SQUARE, MULTIPLY, 0, z, x * x, t * z)                                                                    \
  X(SQUARE, MULTIPLY, 1, z, x * x, z * t)                                                                    \
  X(SQRT, ADD, 0, z, v_sqrt(x), t + z)                                                                       \
  X(SQRT, ADD, 1, z, v_sqrt(x), z + t)                                                                       \
  X(ADD, RSQRT, 0, y, x + y, v_rsqrt_at(t, i, immediate))                                                    \
  X(ADD, SQRT, 0, y, x + y, v_sqrt(t))                                                                       \
  X(ADD, RELU, 0, y, x + y, zero_if(v_lt(t, v_set(0)), t))
#define SUPERINSTRUCTION_FUNCTION(first, second, position, expression, result)                               \
  SUPERINSTRUCTION(first##_then_##second##_##position, expression, result)
#define SUPERINSTRUCTION_OF_TWO_FUNCTION(first, second, position, operand, expression, result)               \
  OF_TWO(first##_then_##second##_##position, operand, expression, result)
EACH_SUPERINSTRUCTION(SUPERINSTRUCTION_FUNCTION)
EACH_SUPERINSTRUCTION_OF_TWO(SUPERINSTRUCTION_OF_TWO_FUNCTION)
#define SUPERINSTRUCTION_ROW(first, second, position, ...)                                                   \
  {MIX_OPCODE_##first, MIX_OPCODE_##second, position, tile_##first##_then_##second##_##position},
static const mix_superinstruction superinstructions[] = {
    EACH_SUPERINSTRUCTION(SUPERINSTRUCTION_ROW)
    EACH_SUPERINSTRUCTION_OF_TWO(SUPERINSTRUCTION_ROW)
    {.function = NULL}};
/* clang-format on */

UNARY(round_f16, v_round_f16(x))
static void tile_round_bf16(ARGUMENTS) {
  float *r = result;
  const float *a = operands[0];
  const int64_t step = steps[0] * LANES;
  int64_t i = 0;
  for (; i + 2 * LANES <= n; i += 2 * LANES, a += 2 * step)
    v_round_bf16_pair(r + i, v_load(a), v_load(a + step));
  for (; i < n; i += LANES, a += step) v_store(r + i, v_round_bf16(v_load(a)));
}
UNARY_TO_BOOL(float_to_bool, m_not(v_eq(x, v_set(0))))
static void tile_bool_to_float(ARGUMENTS) {
  float *r = result;
  const uint32_t *a = operands[0];
  const int64_t step = steps[0] * LANES;
  for (int64_t i = 0; i < n; i += LANES, a += step) v_store(r + i, v_select(m_load(a), v_set(1), v_set(0)));
}

/* ---- memory to tile and back ---- */

#define TRANSFER(name, type)                                                                                 \
  static void load_##name(void *tile, const void *source, int64_t n) {                                       \
    float *r = tile;                                                                                         \
    const type *a = source;                                                                                  \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES) v_store(r + i, v_load_##name(a + i));                                 \
    if (i == n) return;                                                                                      \
    if (i) { /* overlaps */                                                                                  \
      v_store(r + n - LANES, v_load_##name(a + n - LANES));                                                  \
      return;                                                                                                \
    }                                                                                                        \
    const v_part tail = v_first(n);                                                                          \
    v_store_part(r, v_load_##name##_part(a, tail), tail);                                                    \
  }                                                                                                          \
  static void store_##name(void *result, const void *tile, int64_t n) {                                      \
    type *r = result;                                                                                        \
    const float *a = tile;                                                                                   \
    int64_t i = 0;                                                                                           \
    for (; i + 2 * LANES <= n; i += 2 * LANES)                                                               \
      v_store_##name##_pair(r + i, v_load(a + i), v_load(a + i + LANES));                                    \
    for (; i + LANES <= n; i += LANES) v_store_##name(r + i, v_load(a + i));                                 \
    const v_part tail = v_first(n - i);                                                                      \
    if (i < n) v_store_##name##_part(r + i, v_load_part(a + i, tail), tail);                                 \
  }                                                                                                          \
  static void stream_##name(void *result, const void *tile, int64_t n) {                                     \
    type *r = result;                                                                                        \
    const float *a = tile;                                                                                   \
    for (int64_t i = 0; i < n; i += 2 * LANES)                                                               \
      v_stream_##name##_pair(r + i, v_load(a + i), v_load(a + i + LANES));                                   \
  }
TRANSFER(f16, uint16_t)
TRANSFER(bf16, uint16_t)

#define ADD_SQUARES(name, type)                                                                              \
  static void add_squares_##name(float *sums, const void *source, int64_t n) {                               \
    const type *a = source;                                                                                  \
    int64_t i = 0;                                                                                           \
    for (; i + LANES <= n; i += LANES) {                                                                     \
      const vf x = v_load_##name(a + i);                                                                     \
      v_store(sums + i, v_load(sums + i) + x * x);                                                           \
    }                                                                                                        \
    if (i == n) return;                                                                                      \
    const v_part tail = v_first(n - i);                                                                      \
    const vf x = v_load_##name##_part(a + i, tail);                                                          \
    v_store_part(sums + i, v_load_part(sums + i, tail) + x * x, tail);                                       \
  }
ADD_SQUARES(f16, uint16_t)
ADD_SQUARES(bf16, uint16_t)
ADD_SQUARES(f32, float)

static void copy_f32(void *result, const void *source, int64_t n) {
  memcpy(result, source, (size_t)n * sizeof(float));
}
static void load_u8(void *tile, const void *source, int64_t n) {
  float *r = tile;
  const uint8_t *a = source;
  int64_t i = 0;
  for (; i + 16 <= n; i += LANES) v_store(r + i, v_load_u8(a + i));
  for (; i < n; i++) r[i] = a[i];
}
static void load_i8(void *tile, const void *source, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((float *)tile)[i] = ((const int8_t *)source)[i];
}
static void load_i16(void *tile, const void *source, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((float *)tile)[i] = ((const int16_t *)source)[i];
}
static void load_bool(void *tile, const void *source, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((uint32_t *)tile)[i] = ((const uint8_t *)source)[i] != 0;
}
static void store_bool(void *result, const void *tile, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((uint8_t *)result)[i] = (uint8_t)((const uint32_t *)tile)[i];
}
