/* Random numbers: stateless functions of (key, counter, element index) by Philox 4x32-10, independent of the number of threads.
 * A generator is a variable: each use takes its value and advances it, so that captured functions advance it too. Several threads may use
 * one at once, also the functions of a parallel map: each use takes a state of its own; which one, depends on who comes first. */
#ifndef MIXTAPE_RANDOM_H
#define MIXTAPE_RANDOM_H

#include <mixtape/ops.h>
#include <mixtape/variable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The seed from which layers and initialisers without one of their own derive theirs (process-wide). Starts the creation numbers anew. */
MIX_API void mix_set_seed(uint64_t seed);

/* A generator whose key follows from the seed alone: the same seed, the same numbers. */
MIX_API mix_generator *mix_generator_new(uint64_t seed);
/* The state (int64, shape (2): key, counter), saved and restored like any variable. */
MIX_API mix_variable *mix_generator_state(mix_generator *generator);

/* Stateless: `state` is int64 (2). The same state gives the same numbers. Floating dtypes. */
MIX_API mix_tensor *mix_stateless_uniform(mix_tensor *state, mix_shape shape, mix_dtype dtype); /* [0, 1) */
MIX_API mix_tensor *mix_stateless_normal(mix_tensor *state, mix_shape shape, mix_dtype dtype);  /* mean 0, deviation 1 */
MIX_API mix_tensor *mix_stateless_truncated_normal(mix_tensor *state, mix_shape shape, mix_dtype dtype); /* redrawn outside +-2 */
/* The same, taking the state from a generator and advancing it. */
MIX_API mix_tensor *mix_random_uniform(mix_generator *generator, mix_shape shape, mix_dtype dtype);
MIX_API mix_tensor *mix_random_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype);
MIX_API mix_tensor *mix_random_truncated_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype);

#ifdef __cplusplus
}
#endif
#endif
