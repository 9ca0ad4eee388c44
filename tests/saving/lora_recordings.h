/* Shared by the tests of the recorded LoRA models, through the library and through the program. */
#ifndef TESTS_SAVING_LORA_RECORDINGS_H
#define TESTS_SAVING_LORA_RECORDINGS_H

#include "saving/precision_recordings.h"

static inline bool is_lora_recording(const char *name) {
  static const char *const subset[] = {"lora-einsum_heads-float32", "lora-mlp-mixed_float16",
                                       "lora-int8-mlp"};
  return !strncmp(name, "lora-", 5) && is_in_subset(name, subset, sizeof subset / sizeof *subset);
}

static inline bool is_integer(const recording *r) { return json_object_get(r->json, "mode"); }

/* ---- bounds: README.md of the recordings ---- */

/* A rounding of an input may go the other way. */
static inline double output_bound(const recording *r) {
  return strstr(r->name, "int8") ? bound_of_policy(r, 5e-3, 5e-2, 0) : bound_of_policy(r, 1e-5, 5e-2, 1e-2);
}

static inline double loss_bound(const recording *r) { return bound_of_policy(r, 1e-5, 2e-2, 5e-3); }

static inline bool compares_weights(const recording *r) { return !is_policy(r, "mixed_bfloat16"); }
static inline double weight_bound(const recording *r) { return bound_of_policy(r, 5e-5, 0, 3e-2); }

#endif
