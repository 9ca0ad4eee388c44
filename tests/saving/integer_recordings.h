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

/* ---- how the recording was quantized: its name says it ---- */

static inline bool has_part(const recording *r, const char *part) {
  return strstr(json_string_value(json_object_get(r->json, "mode")), part) != NULL;
}

static inline mix_quantize_options options_of(const recording *r) {
  const char *mode = json_string_value(json_object_get(r->json, "mode")), *block = strstr(mode, "block");
  mix_quantize_options options = {.size = sizeof options,
                                  .mode = has_part(r, "int8") ? "int8" : "int4",
                                  .filter = json_string_value(json_object_get(r->json, "filters"))};
  if (block) options.block_size = atoi(block + strlen("block"));
  if (has_part(r, "channel")) options.block_size = -1;
  options.quantize_inputs = has_part(r, "inputs");
  options.weights_only = has_part(r, "weights");
  if (has_part(r, "range")) {
    options.weight_low = -63, options.weight_high = 63;
    options.input_low = -100, options.input_high = 100;
    options.input_epsilon = 1e-3;
  }
  return options;
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

/* Of step `step`, from 0. */
static inline void check_loss(const recording *r, int step, double got) {
  const double expected = json_number_value(json_array_get(json_object_get(r->json, "losses"), (size_t)step)),
               bound = integer_bound(r, 2e-3, 1e-5, 2e-2);
  if (!(fabs(got - expected) <= bound * (step + 1) * fabs(expected)))
    fail_msg("%s: loss %d is %.9g; Keras has %.9g", r->name, step + 1, got, expected);
}

/* P15: a model of 16 bits with embeddings that Keras has read from its file predicts other last bits than the
 * one that was made; files are read here. */
static inline mix_list *expected_outputs(const recording *r, const char *stem) {
  const char *loaded = !strcmp(stem, "predict") ? "reloaded" : "reloaded_after";
  char first[32];
  snprintf(first, sizeof first, "%s_0", loaded);
  return model_arrays(r->npz, strcmp(stem, "trained") && mix_npz_get(r->npz, first) ? loaded : stem);
}

/* ---- weights ---- */

static inline const json_t *recorded_variable(const recording *r, int index) {
  return json_array_get(json_object_get(json_object_get(r->json, "after"), "variables"), (size_t)index);
}

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
