/* Random numbers: stateless functions of (key, counter, element index) by Philox 4x32-10 (Salmon et al.,
 * SC 2011), independent of the number of threads.
 * A generator is a variable: each use reads its state and advances it, also in captured functions. Several
 * threads may use one at once, also the functions of a parallel map. Each use gets a different state; the
 * order of the threads decides which. */
#ifndef MIXTAPE_RANDOM_H
#define MIXTAPE_RANDOM_H

#include <mixtape/ops.h>
#include <mixtape/variable.h>

MIX_BEGIN_DECLARATIONS

/* Sets the global seed, from which layers and initializers without a seed derive theirs. Also resets the
 * creation numbers. */
MIX_API void mix_set_seed(uint64_t seed);

/* A generator. The key depends only on the seed, so equal seeds give equal numbers. */
MIX_API mix_generator *mix_generator_new(uint64_t seed);
/* The state of the generator, borrowed: int64, shape (2): key, counter. Saved and restored like any
 * variable. */
MIX_API mix_variable *mix_generator_state(mix_generator *generator);

/* Stateless random numbers of a floating dtype. `state` is int64 of shape (2). Equal states give equal
 * numbers. Uniform in [0, 1). */
MIX_API mix_tensor *mix_stateless_uniform(mix_tensor *state, mix_shape shape, mix_dtype dtype);
/* Normal, with mean 0 and standard deviation 1. */
MIX_API mix_tensor *mix_stateless_normal(mix_tensor *state, mix_shape shape, mix_dtype dtype);
/* The same, with values outside [-2, 2] redrawn. */
MIX_API mix_tensor *mix_stateless_truncated_normal(mix_tensor *state, mix_shape shape, mix_dtype dtype);
/* The same three, with the state of a generator, which each call advances. */
MIX_API mix_tensor *mix_random_uniform(mix_generator *generator, mix_shape shape, mix_dtype dtype);
MIX_API mix_tensor *mix_random_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype);
MIX_API mix_tensor *mix_random_truncated_normal(mix_generator *generator, mix_shape shape, mix_dtype dtype);

MIX_END_DECLARATIONS
#endif
