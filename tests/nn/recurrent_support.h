/* Short sequences of one feature, and layers of one unit with given weights. */
#ifndef MIX_TESTS_NN_RECURRENT_SUPPORT_H
#define MIX_TESTS_NN_RECURRENT_SUPPORT_H

#include "nn/layer_support.h"
#include <mixtape/recurrent.h>

static inline mix_tensor *sequence(int64_t steps, const double *values) {
  return mix_tensor_from_doubles(values, MIX_FLOAT32, MIX_SHAPE(1, steps, 1));
}
#define SEQUENCE(...)                                                                                        \
  sequence((int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[]){__VA_ARGS__})
static inline mix_tensor *state(double value) { return MATRIX(MIX_FLOAT32, 1, 1, value); }
static inline mix_tensor *mask_of(int64_t steps, const uint8_t *kept) {
  return mix_tensor_from(kept, MIX_BOOL, MIX_SHAPE(1, steps));
}
#define MASK(...) mask_of((int64_t)sizeof((uint8_t[]){__VA_ARGS__}), (uint8_t[]){__VA_ARGS__})

static inline mix_layer *with_weights(mix_layer *layer, mix_shape input, mix_list *weights) {
  mix_layer_build(layer, input);
  assert_int_equal(mix_layer_set_weights(layer, weights), MIX_OK);
  return layer;
}
#define ONE_FEATURE MIX_SHAPE(1, MIX_UNKNOWN, 1)

static inline mix_layer *small_gru(bool before, bool sequences) {
  mix_tensor *bias =
      before ? VECTOR(MIX_FLOAT32, .01, .02, .03) : MATRIX(MIX_FLOAT32, 2, 3, .01, .02, .03, .04, .05, .06);
  return with_weights(
      mix_gru(1, .reset_before = before, .return_sequences = sequences), ONE_FEATURE,
      mix_list_of(MATRIX(MIX_FLOAT32, 1, 3, .1, .2, .3), MATRIX(MIX_FLOAT32, 1, 3, .4, .5, .6), bias));
}

#endif
