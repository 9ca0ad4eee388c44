/* Random generators: a variable holds (key, counter). Each draw uses its value and assigns counter + 1. */
#include "compile/generator.h"
#include "backend/communicator.h"
#include "base/error.h"
#include "graph/lock.h"
#include "graph/capture.h"
#include <mixtape/random.h>

struct mix_generator {
  mix_object object;
  mix_variable *state; /* int64 (2): key, counter; retained */
};

static void generator_finalize(void *object) { mix_release(((mix_generator *)object)->state); }
const mix_class mix_generator_class = {.name = "generator", .finalize = generator_finalize};

mix_generator *mix_generator_new(uint64_t seed) {
  if (mix_failed()) return NULL;
  mix_generator *generator = mix_object_new(sizeof *generator, &mix_generator_class);
  if (!generator) return NULL;
  int64_t state[] = {(int64_t)seed, 0};
  mix_scope *scope = mix_scope_begin();
  generator->state = mix_retain(mix_variable_new(mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2)),
                                                 .name = "seed_generator_state", .not_trainable = true));
  mix_scope_end(scope);
  if (!generator->state) {
    mix_release(generator);
    return NULL;
  }
  return mix_scoped(generator);
}

mix_variable *mix_generator_state(mix_generator *generator) {
  return mix_is(generator, &mix_generator_class) ? generator->state : NULL;
}

/* Of this rank: in a step each has rows of its own, and draws other numbers for them. The state itself stays
 * the same everywhere, and so do values drawn outside functions, such as initial weights. */
static mix_tensor *state_of_rank(mix_tensor *state) {
  const mix_communicator *c = mix_communicator_in_force();
  if (!c || !c->rank || !mix_capture_current()) return state;
  const int64_t key = (int64_t)((uint64_t)c->rank * UINT64_C(0x9e3779b97f4a7c15)); /* 2^64 / golden ratio */
  return mix_add(state, mix_tensor_from((const int64_t[]){key, 0}, MIX_INT64, MIX_SHAPE(2)));
}

/* The current state determines the numbers. The generator then holds counter + 1; captures follow program
 * order. */
static mix_tensor *draw_locked(mix_generator *generator,
                               mix_tensor *(*random)(mix_tensor *, mix_shape, mix_dtype), mix_shape shape,
                               mix_dtype dtype) {
  mix_tensor *state = mix_variable_true_value(generator->state),
             *numbers = random(state_of_rank(state), shape, dtype);
  if (!numbers) return NULL;
  mix_tensor *next = mix_add(state, mix_tensor_from((int64_t[]){0, 1}, MIX_INT64, MIX_SHAPE(2)));
  return mix_variable_assign(generator->state, next) == MIX_OK ? numbers : NULL;
}

/* Atomic: no two threads draw from the same state. */
static mix_tensor *draw(mix_generator *generator, mix_tensor *(*random)(mix_tensor *, mix_shape, mix_dtype),
                        mix_shape shape, mix_dtype dtype) {
  if (mix_failed()) return NULL;
  if (!mix_is(generator, &mix_generator_class))
    return mix_fail_type("random: the generator is NULL or another object");
  mix_graph_lock();
  mix_tensor *numbers = draw_locked(generator, random, shape, dtype);
  mix_graph_unlock();
  return numbers;
}

static mix_tensor *state_itself(mix_tensor *state, mix_shape shape, mix_dtype dtype) {
  return mix_identity(state);
}
mix_tensor *mix_generator_draw(mix_generator *generator) {
  return draw(generator, state_itself, MIX_SCALAR, MIX_INT64);
}

mix_tensor *mix_random_uniform(mix_generator *generator, mix_shape shape, mix_dtype dtype) {
  return draw(generator, mix_stateless_uniform, shape, dtype);
}
mix_tensor *mix_random_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype) {
  return draw(generator, mix_stateless_normal, shape, dtype);
}
mix_tensor *mix_random_truncated_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype) {
  return draw(generator, mix_stateless_truncated_normal, shape, dtype);
}
