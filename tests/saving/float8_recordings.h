/* Shared by the tests of the recorded float8 models, through the library and through the program. */
#ifndef TESTS_SAVING_FLOAT8_RECORDINGS_H
#define TESTS_SAVING_FLOAT8_RECORDINGS_H

#include "saving/precision_recordings.h"

/* Its kernel and inputs are given to the bit, and no rounding is in doubt. */
static inline bool is_one_layer(const recording *r) {
  return !strncmp(r->name, "float8-dense", 12) || !strncmp(r->name, "float8-einsum", 13);
}

static inline double bound_of(const recording *r, const char *what, double float32, double bfloat16,
                              double float16) {
  const double bound = bound_of_policy(r, float32, bfloat16, float16);
  return is_policy(r, "float32") && is_one_layer(r) ? bound : fmax(bound, spread_of(r, what));
}

static inline double loss_bound(const recording *r) { return bound_of(r, "losses", 1e-5, 3e-2, 1e-2); }

static inline double output_bound(const recording *r, const char *what) {
  return bound_of(r, what, 1e-5, 8e-2, 5e-2);
}

/* ---- weights ---- */

static inline bool is_float8_state(const recording *r, int index) {
  return json_is_true(json_object_get(recorded_variable(r, index), "overwrite"));
}

/* E21: TensorFlow's graphs round the sum of a convolution and its bias once, where Keras without a graph, XLA
 * and this library round both; a rounding to float8 makes 0.11 of it, in Keras too. */
static inline bool rounds_once(const recording *r, const char *stem) {
  return !strcmp(r->name, "float8-conv_dense-mixed_bfloat16") && !strcmp(stem, "after");
}

/* MIXTAPE_REFERENCE_SUBSET: one of each kind. */
static inline bool is_float8_recording(const char *name) {
  static const char *const subset[] = {"float8-dense-float32", "float8-einsum_heads-mixed_bfloat16",
                                       "float8-mlp-accumulate", "float8-mlp-mixed_float16-overflow"};
  return !strncmp(name, "float8-", 7) && is_in_subset(name, subset, sizeof subset / sizeof *subset);
}

#endif
