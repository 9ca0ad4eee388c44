/* Chains of instructions in one pass: what optimizers do to each weight, with every value between memory and memory in a register.
 * Pass by pass, as single instructions run over tiles, the loads of a pass wait for memory one after the other and the arithmetic of
 * the next one waits for them; here both overlap. Each instruction rounds as by itself. Included after tile_functions.inc.h.
 *
 * A chain is a list of VECTOR (an operand with an element for each of the space), NUMBER (one for all), DO (an instruction, its result
 * and operands) and RESULT (which of the values are wanted outside), each of them named; everything else is derived from the list. */

/* Of a gradient as it is, and of one that is unscaled first. */
#define PLAIN(rule, VECTOR, NUMBER, DO, RESULT) rule##_OPERANDS(gradient, VECTOR, NUMBER) rule##_CODE(DO, RESULT)
#define UNSCALED(rule, VECTOR, NUMBER, DO, RESULT)                                                                                 \
  rule##_OPERANDS(scaled_gradient, VECTOR, NUMBER) NUMBER(scale) DO(MULTIPLY, gradient, scaled_gradient, scale)                    \
      rule##_CODE(DO, RESULT)

#define RMSPROP_OPERANDS(gradient, VECTOR, NUMBER)                                                                                 \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_weight) NUMBER(rho) NUMBER(rest) NUMBER(epsilon) NUMBER(rate)
#define RMSPROP_ROOT(DO)                                                                                                           \
  DO(SQUARE, square, gradient, gradient)                                                                                           \
  DO(MULTIPLY, added, rest, square)                                                                                                \
  DO(MULTIPLY, kept, rho, old_mean)                                                                                                \
  DO(ADD, mean, kept, added)                                                                                                       \
  DO(ADD, below, mean, epsilon)                                                                                                    \
  DO(RSQRT, inverse, below, below)
/* tf_keras paces the root, Keras 3 the gradient. */
#define RMSPROP_STEP(DO)                                                                                                           \
  RMSPROP_ROOT(DO)                                                                                                                 \
  DO(MULTIPLY, pace, rate, inverse)                                                                                                \
  DO(MULTIPLY, step, gradient, pace)
#define RMSPROP3_STEP(DO)                                                                                                          \
  RMSPROP_ROOT(DO)                                                                                                                 \
  DO(MULTIPLY, moved, rate, gradient)                                                                                              \
  DO(MULTIPLY, step, moved, inverse)
#define RMSPROP_WEIGHT(DO, RESULT)                                                                                                 \
  DO(SUBTRACT, weight, old_weight, step)                                                                                           \
  RESULT(mean) RESULT(weight)
#define RMSPROP_CODE(DO, RESULT) RMSPROP_STEP(DO) RMSPROP_WEIGHT(DO, RESULT)
#define RMSPROP3_CODE(DO, RESULT) RMSPROP3_STEP(DO) RMSPROP_WEIGHT(DO, RESULT)
#define RMSPROP3_OPERANDS RMSPROP_OPERANDS

#define RMSPROP_MOMENTUM_OPERANDS(gradient, VECTOR, NUMBER)                                                                        \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_speed) VECTOR(old_weight)                                                           \
  NUMBER(rho) NUMBER(rest) NUMBER(epsilon) NUMBER(rate) NUMBER(momentum)
#define RMSPROP_SPEED(DO, RESULT)                                                                                                  \
  DO(MULTIPLY, slower, momentum, old_speed)                                                                                        \
  DO(ADD, speed, slower, step)                                                                                                     \
  DO(SUBTRACT, weight, old_weight, speed)                                                                                          \
  RESULT(mean) RESULT(speed) RESULT(weight)
#define RMSPROP_MOMENTUM_CODE(DO, RESULT) RMSPROP_STEP(DO) RMSPROP_SPEED(DO, RESULT)
#define RMSPROP3_MOMENTUM_CODE(DO, RESULT) RMSPROP3_STEP(DO) RMSPROP_SPEED(DO, RESULT)
#define RMSPROP3_MOMENTUM_OPERANDS RMSPROP_MOMENTUM_OPERANDS

#define ADAM_OPERANDS(gradient, VECTOR, NUMBER)                                                                                    \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_square) VECTOR(old_weight)                                                          \
  NUMBER(rest_1) NUMBER(rest_2) NUMBER(epsilon) NUMBER(rate)
#define ADAM_CODE(DO, RESULT)                                                                                                      \
  DO(SUBTRACT, change, gradient, old_mean)                                                                                         \
  DO(MULTIPLY, part, change, rest_1)                                                                                               \
  DO(ADD, mean, old_mean, part)                                                                                                    \
  DO(SQUARE, now, gradient, gradient)                                                                                              \
  DO(SUBTRACT, change_2, now, old_square)                                                                                          \
  DO(MULTIPLY, part_2, change_2, rest_2)                                                                                           \
  DO(ADD, square, old_square, part_2)                                                                                              \
  DO(SQRT, root, square, square)                                                                                                   \
  DO(ADD, below, root, epsilon)                                                                                                    \
  DO(MULTIPLY, moved, mean, rate)                                                                                                  \
  DO(DIVIDE, step, moved, below)                                                                                                   \
  DO(SUBTRACT, weight, old_weight, step)                                                                                           \
  RESULT(mean) RESULT(square) RESULT(weight)

#define SGD_OPERANDS(gradient, VECTOR, NUMBER)                                                                                     \
  VECTOR(gradient) VECTOR(old_speed) VECTOR(old_weight) NUMBER(rate) NUMBER(momentum)
#define SGD_CODE(DO, RESULT)                                                                                                       \
  DO(MULTIPLY, descent, gradient, rate)                                                                                            \
  DO(MULTIPLY, slower, old_speed, momentum)                                                                                        \
  DO(SUBTRACT, speed, slower, descent)                                                                                             \
  DO(ADD, weight, old_weight, speed)                                                                                               \
  RESULT(speed) RESULT(weight)

#define CHAIN_RMSPROP(...) PLAIN(RMSPROP, __VA_ARGS__)
#define CHAIN_RMSPROP3(...) PLAIN(RMSPROP3, __VA_ARGS__)
#define CHAIN_RMSPROP_UNSCALED(...) UNSCALED(RMSPROP, __VA_ARGS__)
#define CHAIN_RMSPROP3_UNSCALED(...) UNSCALED(RMSPROP3, __VA_ARGS__)
#define CHAIN_RMSPROP_MOMENTUM(...) PLAIN(RMSPROP_MOMENTUM, __VA_ARGS__)
#define CHAIN_RMSPROP3_MOMENTUM(...) PLAIN(RMSPROP3_MOMENTUM, __VA_ARGS__)
#define CHAIN_RMSPROP_MOMENTUM_UNSCALED(...) UNSCALED(RMSPROP_MOMENTUM, __VA_ARGS__)
#define CHAIN_RMSPROP3_MOMENTUM_UNSCALED(...) UNSCALED(RMSPROP3_MOMENTUM, __VA_ARGS__)
#define CHAIN_ADAM(...) PLAIN(ADAM, __VA_ARGS__)
#define CHAIN_ADAM_UNSCALED(...) UNSCALED(ADAM, __VA_ARGS__)
#define CHAIN_SGD(...) PLAIN(SGD, __VA_ARGS__)
#define CHAIN_SGD_UNSCALED(...) UNSCALED(SGD, __VA_ARGS__)
#define EACH_CHAIN(X)                                                                                                              \
  X(RMSPROP) X(RMSPROP_UNSCALED) X(RMSPROP_MOMENTUM) X(RMSPROP_MOMENTUM_UNSCALED)                                                  \
  X(RMSPROP3) X(RMSPROP3_UNSCALED) X(RMSPROP3_MOMENTUM) X(RMSPROP3_MOMENTUM_UNSCALED)                                              \
  X(ADAM) X(ADAM_UNSCALED) X(SGD) X(SGD_UNSCALED)

/* ---- the function of a chain ---- */

#define OF_SQUARE(x, y) ((x) * (x))
#define OF_MULTIPLY(x, y) ((x) * (y))
#define OF_ADD(x, y) ((x) + (y))
#define OF_SUBTRACT(x, y) ((x) - (y))
#define OF_DIVIDE(x, y) ((x) / (y))
#define OF_SQRT(x, y) v_sqrt(x)
#define OF_RSQRT(x, y) v_rsqrt_at(x, i, packets)

#define NOTHING(...)
#define POINT_TO(name)                                                                                                             \
  const float *p_##name = *operands++;                                                                                             \
  const int64_t prefetch_##name = *prefetch++;
#define SPREAD(name) const vf name = v_load(*operands++);
#define RESULT_POINTER(name) float *r_##name = *results++;
#define LOAD(name)                                                                                                                 \
  if (LANES == 16 || i % 16 == 0) __builtin_prefetch((const char *)(p_##name + i) + prefetch_##name, 0, 3);                           \
  const vf name = v_load(p_##name + i);
#define COMPUTE(opcode, name, x, y)                                                                                                \
  vf name = OF_##opcode(x, y);                                                                                                     \
  KEEP(name);
#define STORE(name) v_store(r_##name + i, name);
#define CHAIN_FUNCTION(chain)                                                                                                      \
  static void chain_##chain(void *const *results, const void *const *operands, const int64_t *prefetch, int64_t n, double packets) { \
    (void)packets;                                                                                                                 \
    CHAIN_##chain(POINT_TO, NOTHING, NOTHING, NOTHING) CHAIN_##chain(NOTHING, SPREAD, NOTHING, NOTHING)                            \
        CHAIN_##chain(NOTHING, NOTHING, NOTHING, RESULT_POINTER) for (int64_t i = 0; i < n; i += LANES) {                          \
      CHAIN_##chain(LOAD, NOTHING, COMPUTE, NOTHING) CHAIN_##chain(NOTHING, NOTHING, NOTHING, STORE)                               \
    }                                                                                                                              \
  }
EACH_CHAIN(CHAIN_FUNCTION)

/* ---- and how it is recognised ---- */

#define COUNT_ONE(...) +1
#define ROW_OF(opcode, name, x, y) {MIX_OPCODE_##opcode, {in_##x, in_##y}},
#define NAME_OF(name) in_##name,
#define NAME_OF_RESULT(opcode, name, x, y) in_##name,
/* In a function, where an enumeration may give each chain's names their numbers. */
#define CHAIN_CODE(chain)                                                                                                        \
  static const mix_fused_chain *code_of_##chain(void) {                                                                           \
    enum { CHAIN_##chain(NAME_OF, NAME_OF, NAME_OF_RESULT, NOTHING) };                                                             \
    static const mix_fused_chain made = {                                                                                           \
        .vectors = CHAIN_##chain(COUNT_ONE, NOTHING, NOTHING, NOTHING),                                                            \
        .numbers = CHAIN_##chain(NOTHING, COUNT_ONE, NOTHING, NOTHING),                                                            \
        .count = CHAIN_##chain(NOTHING, NOTHING, COUNT_ONE, NOTHING),                                                              \
        .result_count = CHAIN_##chain(NOTHING, NOTHING, NOTHING, COUNT_ONE),                                                       \
        .code = {CHAIN_##chain(NOTHING, NOTHING, ROW_OF, NOTHING)},                                                                \
        .results = {CHAIN_##chain(NOTHING, NOTHING, NOTHING, NAME_OF)},                                                            \
        .function = chain_##chain,                                                                                                 \
    };                                                                                                                             \
    return &made;                                                                                                                  \
  }
EACH_CHAIN(CHAIN_CODE)
#define CHAIN_ROW(chain) code_of_##chain,
static const mix_fused_chain *(*const tile_chains[])(void) = {EACH_CHAIN(CHAIN_ROW) NULL};
