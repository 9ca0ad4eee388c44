/* Initializers: the start values of weights. A random initializer gives the same numbers for the same
 * seed. */
#ifndef MIXTAPE_INITIALIZER_H
#define MIXTAPE_INITIALIZER_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* The name, in snake case or as Keras's class name: zeros, ones, constant, identity, random_normal,
 * random_uniform, truncated_normal, variance_scaling, glorot_uniform, glorot_normal, he_uniform,
 * he_normal, lecun_uniform, lecun_normal, orthogonal. */
typedef struct mix_initializer_options {
  size_t size;
  const char *initializer; /* required; unknown name: ValueError */
  uint64_t seed;           /* 0: derived from the global seed and a creation number */
  double value;            /* constant: 0 */
  double gain;             /* identity, orthogonal: 0 means 1; MIX_ZERO is accepted */
  double mean;             /* random_normal, truncated_normal: 0 */
  double stddev;           /* 0 means 0.05; MIX_ZERO is accepted */
  double minval, maxval;   /* random_uniform: both 0 means -0.05 and 0.05; MIX_ZERO is accepted */
  double scale;            /* variance_scaling: 0 means 1; must be positive */
  const char *mode;        /* variance_scaling: "fan_in" (default), "fan_out", "fan_avg" */
  /* variance_scaling: "truncated_normal" (default, alias "normal"), "untruncated_normal", "uniform". */
  const char *distribution;
} mix_initializer_options;
/* Creates an initializer. ValueError for an unknown name (the message lists the known ones) or a number
 * out of range. */
MIX_API mix_initializer *mix_initializer_with(const mix_initializer_options *options);
#ifndef __cplusplus
#define mix_initializer_new(...)                                                                             \
  mix_initializer_with(MIX_ARGUMENTS("mix_initializer_new", "initializer", #__VA_ARGS__,                     \
                                     mix_initializer_options, __VA_ARGS__))
#endif
/* The canonical name: "glorot_uniform". The string lives as long as the process. */
MIX_API const char *mix_initializer_name(const mix_initializer *initializer);
/* The seed: the given one, or the derived one. */
MIX_API uint64_t mix_initializer_seed(const mix_initializer *initializer);
/* A finished tensor of that shape. float16 and bfloat16 values are rounded from float32. */
MIX_API mix_tensor *mix_initializer_call(mix_initializer *initializer, mix_shape shape, mix_dtype dtype);

MIX_END_DECLARATIONS
#endif
