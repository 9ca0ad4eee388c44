/* A training run by whichever copy of the library its includer is linked with. */
#ifndef TESTS_SUPPORT_PLUGIN_TRAIN_H
#define TESTS_SUPPORT_PLUGIN_TRAIN_H

#include <mixtape/mixtape.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct training {
  uint64_t digest;      /* of the weights */
  char left_policy[32]; /* the copy's global one, before this run set another */
  int left_threads;
} training;

static inline bool read_digest(mix_model *model, uint64_t *digest) { /* FNV-1a */
  enum { MAX_SIZE = 784 * 128 };
  float *values = malloc(MAX_SIZE * sizeof *values);
  mix_list *weights = mix_model_weights(model);
  bool read = values != NULL;
  *digest = UINT64_C(14695981039346656037);
  for (int i = 0; read && i < mix_list_count(weights); i++) {
    mix_tensor *value = mix_variable_value(mix_list_get(weights, i));
    const int64_t size = mix_shape_size(mix_tensor_shape(value));
    read = size <= MAX_SIZE && !mix_tensor_read(value, MIX_FLOAT32, values, size);
    const unsigned char *bytes = (const unsigned char *)values;
    for (size_t k = 0; read && k < sizeof *values * (size_t)size; k++)
      *digest = (*digest ^ bytes[k]) * UINT64_C(1099511628211);
  }
  free(values);
  return read;
}

/* Sets the copy's policy, seed and threads. */
static inline bool train_digits(const char *policy, int threads, training *result) {
  mix_scope *scope = mix_scope_begin();
  const char *left = mix_policy_name(mix_global_policy());
  strncpy(result->left_policy, left ? left : "", sizeof result->left_policy - 1);
  result->left_threads = mix_threads();
  mix_set_global_policy(policy);
  mix_set_threads(threads);
  mix_set_seed(1);
  mix_digits digits = mix_digits_load(.train = 500, .test = 100);
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(128, "relu"), mix_dense(10, "softmax", .dtype = "float32")));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam(0.002));
  mix_model_fit(model, digits.x_train, digits.y_train, .epochs = 2, .batch_size = 250, .verbose = MIX_SILENT);
  const bool done = mix_error() == MIX_OK && read_digest(model, &result->digest);
  mix_scope_end(scope);
  return done;
}

#endif
