/* Shared by the tests of the recorded models of int8 and int4, through the library and through the program.
 */
#ifndef TESTS_SAVING_INTEGER_RECORDINGS_H
#define TESTS_SAVING_INTEGER_RECORDINGS_H

#include "saving/precision_recordings.h"

static inline bool is_integer_recording(const char *name) {
  static const char *const subset[] = {"int8-dense-mixed_bfloat16", "int4-block4-mlp-float32",
                                       "int8-reversible_tied-mixed_bfloat16"};
  return (!strncmp(name, "int8-", 5) || !strncmp(name, "int4-", 5)) &&
         is_in_subset(name, subset, sizeof subset / sizeof *subset);
}

/* ---- bounds ---- */

static inline bool quantizes_inputs(const recording *r) {
  return (has_part(r, "int8") && !has_part(r, "weights")) || has_part(r, "inputs");
}

/* Inputs of the only layer are exact. */
static inline bool is_of_one_layer(const recording *r) {
  const char *model = json_string_value(json_object_get(r->json, "model"));
  return !strncmp(model, "dense", 5) || !strncmp(model, "einsum", 6);
}

/* Of integers as inputs, of float inputs. One that is rounded the other way is 1/127 of the largest. */
static inline double integer_bound(const recording *r, double of_integers, double otherwise, double bits16) {
  if (is_policy(r, "float64")) return 1e-12;
  if (!is_policy(r, "float32")) return bits16;
  return quantizes_inputs(r) ? of_integers : otherwise;
}

static inline double output_bound(const recording *r, const char *what) {
  const bool trained = !strcmp(what, "trained"), after = !strcmp(what, "after");
  if (is_policy(r, "mixed_float16")) return 1e-2;
  if (after && is_of_one_layer(r) && is_policy(r, "float32")) return 1e-6;
  return integer_bound(r, after || trained ? 5e-3 : 1e-5, 1e-5, 5e-2);
}

static inline double weight_bound(const recording *r) { return integer_bound(r, 3e-3, 5e-5, 0); }

static inline double loss_bound(const recording *r) { return integer_bound(r, 2e-3, 1e-5, 2e-2); }

/* P15: a model of 16 bits with embeddings that Keras has read from its file predicts other last bits than the
 * one that was made; files are read here. */
static inline mix_list *expected_outputs(const recording *r, const char *stem) {
  const char *loaded = !strcmp(stem, "predict") ? "reloaded" : "reloaded_after";
  char first[32];
  snprintf(first, sizeof first, "%s_0", loaded);
  return model_arrays(r->npz, strcmp(stem, "trained") && mix_npz_get(r->npz, first) ? loaded : stem);
}

/* ---- weights ---- */

/* Integers and the numbers of groups are equal, scales are close, and the rest is as it was. */
static inline double init_bound(const recording *r, int index) {
  const bool is_scale = strstr(recorded_path(r, index), "_scale") != NULL;
  return is_scale ? 1e-6 : 0;
}

static inline void check_dtype(const recording *r, int index, mix_tensor *got) {
  const char *expected = json_string_value(json_object_get(recorded_variable(r, index), "dtype"));
  if (!got || strcmp(mix_dtype_name(mix_tensor_dtype(got)), expected))
    fail_msg("%s: '%s' is %s; expected %s", r->name, recorded_path(r, index),
             got ? mix_dtype_name(mix_tensor_dtype(got)) : "missing", expected);
}

#endif
