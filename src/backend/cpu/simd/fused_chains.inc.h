/* Template: chains of instructions in one pass, with intermediate values in registers: what optimizers do to
 * each weight. Run one by one over tiles, the loads of each instruction would wait for memory, and its
 * arithmetic for the instruction before; in one pass both overlap. Each instruction rounds as by itself.
 * Included after elementwise.inc.h.
 *
 * A chain is a list of named items. VECTOR: an operand of one number for each element; NUMBER: one number for
 * all; DO: an instruction, its result and operands; RESULT: a value that is stored. Function and description
 * are derived from the list. */

/* With a gradient as it is, or one that is unscaled first. */
#define PLAIN(rule, VECTOR, NUMBER, DO, RESULT)                                                              \
  rule##_OPERANDS(gradient, VECTOR, NUMBER) rule##_CODE(DO, RESULT)
#define UNSCALED(rule, VECTOR, NUMBER, DO, RESULT)                                                           \
  rule##_OPERANDS(scaled_gradient, VECTOR, NUMBER)                                                           \
  NUMBER(scale)                                                                                              \
  DO(MULTIPLY, gradient, scaled_gradient, scale)                                                             \
  rule##_CODE(DO, RESULT)

#define RMSPROP_OPERANDS(gradient, VECTOR, NUMBER)                                                           \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_weight)                                                       \
  NUMBER(rho) NUMBER(one_minus_rho) NUMBER(epsilon) NUMBER(rate)
#define RMSPROP_ROOT(DO)                                                                                     \
  DO(SQUARE, square, gradient, gradient)                                                                     \
  DO(MULTIPLY, added, one_minus_rho, square)                                                                 \
  DO(MULTIPLY, decayed, rho, old_mean)                                                                       \
  DO(ADD, mean, decayed, added)                                                                              \
  DO(ADD, radicand, mean, epsilon)                                                                           \
  DO(RSQRT, inverse, radicand, radicand)
/* tf_keras multiplies the learning rate by the inverse root first, Keras 3 by the gradient. */
#define RMSPROP_STEP(DO)                                                                                     \
  RMSPROP_ROOT(DO)                                                                                           \
  DO(MULTIPLY, scaled_rate, rate, inverse)                                                                   \
  DO(MULTIPLY, step, gradient, scaled_rate)
#define RMSPROP3_STEP(DO)                                                                                    \
  RMSPROP_ROOT(DO)                                                                                           \
  DO(MULTIPLY, scaled, rate, gradient)                                                                       \
  DO(MULTIPLY, step, scaled, inverse)
#define RMSPROP_WEIGHT(DO, RESULT)                                                                           \
  DO(SUBTRACT, weight, old_weight, step)                                                                     \
  RESULT(mean) RESULT(weight)
#define RMSPROP_CODE(DO, RESULT) RMSPROP_STEP(DO) RMSPROP_WEIGHT(DO, RESULT)
#define RMSPROP3_CODE(DO, RESULT) RMSPROP3_STEP(DO) RMSPROP_WEIGHT(DO, RESULT)
#define RMSPROP3_OPERANDS RMSPROP_OPERANDS

#define RMSPROP_MOMENTUM_OPERANDS(gradient, VECTOR, NUMBER)                                                  \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_velocity) VECTOR(old_weight)                                  \
  NUMBER(rho) NUMBER(one_minus_rho) NUMBER(epsilon) NUMBER(rate) NUMBER(momentum)
#define RMSPROP_VELOCITY(DO, RESULT)                                                                         \
  DO(MULTIPLY, slowed, momentum, old_velocity)                                                               \
  DO(ADD, velocity, slowed, step)                                                                            \
  DO(SUBTRACT, weight, old_weight, velocity)                                                                 \
  RESULT(mean) RESULT(velocity) RESULT(weight)
#define RMSPROP_MOMENTUM_CODE(DO, RESULT) RMSPROP_STEP(DO) RMSPROP_VELOCITY(DO, RESULT)
#define RMSPROP3_MOMENTUM_CODE(DO, RESULT) RMSPROP3_STEP(DO) RMSPROP_VELOCITY(DO, RESULT)
#define RMSPROP3_MOMENTUM_OPERANDS RMSPROP_MOMENTUM_OPERANDS

#define ADAM_OPERANDS(gradient, VECTOR, NUMBER)                                                              \
  VECTOR(gradient) VECTOR(old_mean) VECTOR(old_variance) VECTOR(old_weight)                                  \
  NUMBER(one_minus_beta_1) NUMBER(one_minus_beta_2) NUMBER(epsilon) NUMBER(rate)
#define ADAM_CODE(DO, RESULT)                                                                                \
  DO(SUBTRACT, difference, gradient, old_mean)                                                               \
  DO(MULTIPLY, added, difference, one_minus_beta_1)                                                          \
  DO(ADD, mean, old_mean, added)                                                                             \
  DO(SQUARE, square, gradient, gradient)                                                                     \
  DO(SUBTRACT, square_difference, square, old_variance)                                                      \
  DO(MULTIPLY, square_added, square_difference, one_minus_beta_2)                                            \
  DO(ADD, variance, old_variance, square_added)                                                              \
  DO(SQRT, root, variance, variance)                                                                         \
  DO(ADD, denominator, root, epsilon)                                                                        \
  DO(MULTIPLY, scaled, mean, rate)                                                                           \
  DO(DIVIDE, step, scaled, denominator)                                                                      \
  DO(SUBTRACT, weight, old_weight, step)                                                                     \
  RESULT(mean) RESULT(variance) RESULT(weight)

#define SGD_OPERANDS(gradient, VECTOR, NUMBER)                                                               \
  VECTOR(gradient) VECTOR(old_velocity) VECTOR(old_weight)                                                   \
  NUMBER(rate) NUMBER(momentum)
#define SGD_CODE(DO, RESULT)                                                                                 \
  DO(MULTIPLY, step, gradient, rate)                                                                         \
  DO(MULTIPLY, slowed, old_velocity, momentum)                                                               \
  DO(SUBTRACT, velocity, slowed, step)                                                                       \
  DO(ADD, weight, old_weight, velocity)                                                                      \
  RESULT(velocity) RESULT(weight)

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
#define EACH_CHAIN(X)                                                                                        \
  X(RMSPROP) X(RMSPROP_UNSCALED) X(RMSPROP_MOMENTUM) X(RMSPROP_MOMENTUM_UNSCALED)                            \
  X(RMSPROP3) X(RMSPROP3_UNSCALED) X(RMSPROP3_MOMENTUM) X(RMSPROP3_MOMENTUM_UNSCALED)                        \
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
#define POINT_TO(name)                                                                                       \
  const float *p_##name = *operands++;                                                                       \
  const int64_t prefetch_##name = *prefetch++;
#define BROADCAST(name) const vf name = v_load(*operands++);
#define RESULT_POINTER(name) float *r_##name = *results++;
#define LOAD(name)                                                                                           \
  if (LANES == 16 || i % 16 == 0) __builtin_prefetch((const char *)(p_##name + i) + prefetch_##name, 0, 3);  \
  const vf name = v_load(p_##name + i);
#define COMPUTE(opcode, name, x, y)                                                                          \
  vf name = OF_##opcode(x, y);                                                                               \
  KEEP(name);
#define STORE(name) v_store(r_##name + i, name);
#define CHAIN_FUNCTION(chain)                                                                                \
  static void chain_##chain(void *const *results, const void *const *operands, const int64_t *prefetch,      \
                            int64_t n, double packets) {                                                     \
    CHAIN_##chain(POINT_TO, NOTHING, NOTHING, NOTHING)                                                       \
    CHAIN_##chain(NOTHING, BROADCAST, NOTHING, NOTHING)                                                      \
    CHAIN_##chain(NOTHING, NOTHING, NOTHING, RESULT_POINTER)                                                 \
    for (int64_t i = 0; i < n; i += LANES) {                                                                 \
      CHAIN_##chain(LOAD, NOTHING, COMPUTE, NOTHING)                                                         \
      CHAIN_##chain(NOTHING, NOTHING, NOTHING, STORE)                                                        \
    }                                                                                                        \
  }
EACH_CHAIN(CHAIN_FUNCTION)

/* ---- its description, by which superinstructions.c recognizes it ---- */

#define COUNT_ONE(...) +1
#define ROW_OF(opcode, name, x, y) {MIX_OPCODE_##opcode, {in_##x, in_##y}},
#define NAME_OF(name) in_##name,
#define NAME_OF_RESULT(opcode, name, x, y) in_##name,
/* In a function of its own, so that an enumeration numbers the names of each chain. */
#define CHAIN_CODE(chain)                                                                                    \
  static const mix_fused_chain *code_of_##chain(void) {                                                      \
    enum { CHAIN_##chain(NAME_OF, NAME_OF, NAME_OF_RESULT, NOTHING) };                                       \
    static const mix_fused_chain pattern = {                                                                 \
        .vectors = CHAIN_##chain(COUNT_ONE, NOTHING, NOTHING, NOTHING),                                      \
        .numbers = CHAIN_##chain(NOTHING, COUNT_ONE, NOTHING, NOTHING),                                      \
        .count = CHAIN_##chain(NOTHING, NOTHING, COUNT_ONE, NOTHING),                                        \
        .result_count = CHAIN_##chain(NOTHING, NOTHING, NOTHING, COUNT_ONE),                                 \
        .code = {CHAIN_##chain(NOTHING, NOTHING, ROW_OF, NOTHING)},                                          \
        .results = {CHAIN_##chain(NOTHING, NOTHING, NOTHING, NAME_OF)},                                      \
        .function = chain_##chain,                                                                           \
    };                                                                                                       \
    return &pattern;                                                                                         \
  }
EACH_CHAIN(CHAIN_CODE)
#define CHAIN_ROW(chain) code_of_##chain,
static const mix_fused_chain *(*const tile_chains[])(void) = {EACH_CHAIN(CHAIN_ROW) NULL};
