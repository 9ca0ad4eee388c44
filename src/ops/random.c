/* Random numbers: stateless operations over (key, counter), and generators, which are variables that hold such a state. */
#include "graph/lock.h"
#include "ops/rules.h"
#include <mixtape/random.h>

/* Operand: state int64 (2). */
static bool random_infer(mix_node *node) {
  const mix_shape_attributes *attributes = node->attributes;
  mix_shape state = mix_input_value(node, 0)->shape;
  if (state.rank != 1 || (state.dims[0] != 2 && state.dims[0] != MIX_UNKNOWN))
    return mix_rule_fail(node, "expected a state (2): key and counter");
  node->outputs[0].dtype = attributes->dtype;
  return mix_rule_output(node, 0, attributes->shape);
}

static const mix_field random_fields[] = {{"shape", MIX_FIELD_SHAPE, offsetof(mix_shape_attributes, shape)},
                                          {"dtype", MIX_FIELD_DTYPE, offsetof(mix_shape_attributes, dtype)},
                                          {NULL}};

static mix_tensor *stateless(const mix_op *op, mix_tensor *state, mix_shape shape, mix_dtype dtype) {
  if (!mix_operand_ready(op->name, state) || !mix_dtype_checked(op->name, dtype)) return NULL;
  if (!mix_dtype_is_floating(dtype))
    return mix_call_fail(MIX_TYPE_ERROR, op->name, NULL, "dtype %s; expected a floating one", mix_dtype_name(dtype));
  bool printable = shape.rank >= 0 && shape.rank <= MIX_MAX_RANK;
  if (!printable || mix_shape_checked_size(shape) < 0) {
    char text[160];
    return mix_call_fail(MIX_VALUE_ERROR, op->name, NULL, "the shape %s has an unknown or negative dimension, or too many elements",
                         printable ? mix_shape_text(shape, text, sizeof text) : "");
  }
  return mix_apply(op, &(mix_shape_attributes){.shape = shape, .dtype = dtype}, 1, &state);
}

/* ---- generators ---- */

struct mix_generator {
  mix_object object;
  mix_variable *state; /* int64 (2): key, counter; retained */
};

static void generator_finalize(void *object) { mix_release(((mix_generator *)object)->state); }
static const mix_class generator_class = {.name = "generator", .finalize = generator_finalize};

mix_generator *mix_generator_new(uint64_t seed) {
  if (mix_failed()) return NULL;
  mix_generator *generator = mix_object_new(sizeof *generator, &generator_class);
  if (!generator) return NULL;
  int64_t state[] = {(int64_t)seed, 0};
  mix_scope *scope = mix_scope_begin();
  generator->state = mix_retain(
      mix_variable_new(mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2)), .name = "seed_generator_state", .not_trainable = true));
  mix_scope_end(scope);
  if (!generator->state) {
    mix_release(generator);
    return NULL;
  }
  return mix_scoped(generator);
}

mix_variable *mix_generator_state(mix_generator *generator) { return generator ? generator->state : NULL; }

/* The state as it is now decides the numbers; the generator then holds counter + 1, in captures by program order. */
static mix_tensor *draw_locked(mix_generator *generator, mix_tensor *(*random)(mix_tensor *, mix_shape, mix_dtype), mix_shape shape,
                               mix_dtype dtype) {
  mix_tensor *state = mix_variable_true_value(generator->state), *numbers = random(state, shape, dtype);
  if (!numbers) return NULL;
  mix_tensor *next = mix_add(state, mix_tensor_from((int64_t[]){0, 1}, MIX_INT64, MIX_SHAPE(2)));
  return mix_variable_assign(generator->state, next) == MIX_OK ? numbers : NULL;
}

/* One step: no two threads take the same state. */
static mix_tensor *draw(mix_generator *generator, mix_tensor *(*random)(mix_tensor *, mix_shape, mix_dtype), mix_shape shape,
                        mix_dtype dtype) {
  if (mix_failed()) return NULL;
  if (!mix_is(generator, &generator_class)) return mix_fail(MIX_TYPE_ERROR, "random: the generator is NULL or another object");
  mix_graph_lock();
  mix_tensor *numbers = draw_locked(generator, random, shape, dtype);
  mix_graph_unlock();
  return numbers;
}

#define OP(called, tf)                                                                                                             \
  const mix_op mix_op_random_##called = {.name = "random_" #called,                                                                \
                                         .tf_name = tf,                                                                            \
                                         .signature = "l->T",                                                                      \
                                         .types = "float",                                                                         \
                                         .attributes_size = sizeof(mix_shape_attributes),                                          \
                                         .infer = random_infer,                                                                    \
                                         .fields = random_fields};                                                                 \
  mix_tensor *mix_stateless_##called(mix_tensor *state, mix_shape shape, mix_dtype dtype) {                                        \
    return stateless(&mix_op_random_##called, state, shape, dtype);                                                                \
  }                                                                                                                                \
  mix_tensor *mix_random_##called(mix_generator *generator, mix_shape shape, mix_dtype dtype) {                                    \
    return draw(generator, mix_stateless_##called, shape, dtype);                                                                  \
  }
OP(uniform, "StatelessRandomUniformV2")
OP(normal, "StatelessRandomNormalV2")
OP(truncated_normal, "StatelessTruncatedNormalV2")
