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
  const double bound = is_policy(r, "float32")          ? float32
                       : is_policy(r, "mixed_bfloat16") ? bfloat16
                                                        : float16;
  return is_policy(r, "float32") && is_one_layer(r) ? bound : fmax(bound, spread_of(r, what));
}

/* Of step `step`, from 0. */
static inline void check_loss(const recording *r, int step, double got) {
  const double expected = json_number_value(json_array_get(json_object_get(r->json, "losses"), (size_t)step)),
               bound = bound_of(r, "losses", 1e-5, 3e-2, 1e-2);
  if (!(fabs(got - expected) <= bound * (step + 1) * fabs(expected)))
    fail_msg("%s: loss %d is %.9g; Keras has %.9g", r->name, step + 1, got, expected);
}

static inline double output_bound(const recording *r, const char *what) {
  return bound_of(r, what, 1e-5, 8e-2, 5e-2);
}

/* ---- weights ---- */

static inline bool is_float8_state(const recording *r, int index) {
  const json_t *variables = json_object_get(json_object_get(r->json, "after"), "variables");
  return json_is_true(json_object_get(json_array_get(variables, (size_t)index), "overwrite"));
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
