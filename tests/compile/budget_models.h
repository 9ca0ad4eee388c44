/* Models that are trained at memory budgets (mix_set_memory_budget), which change no bit. Bytes come from
 * plans: nothing is measured. */
#ifndef TESTS_COMPILE_BUDGET_MODELS_H
#define TESTS_COMPILE_BUDGET_MODELS_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/philox.h"
#include "support/device.h"
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 3, MAX_NUMBERS = 1 << 17 };

typedef struct task {
  mix_model *(*build)(void);
  int rows, tokens, side; /* of the arguments: (rows, tokens) words, (rows, side, side, 3) or (rows, 40) */
  const char *optimizer;
} task;

typedef struct trained {
  mix_plan_report report;
  int count;
  float *numbers; /* losses, and all weights and state */
} trained;

static inline mix_tensor *call(mix_layer *layer, mix_tensor *x) { return mix_call(layer, x); }
static inline mix_tensor *sum(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static inline mix_model *classifier(mix_tensor *inputs, mix_tensor *x) {
  x = call(mix_activation("softmax", .dtype = "float32"), call(mix_dense(10), x));
  return mix_model_new(inputs, x);
}

/* ---- models ---- */

static inline mix_model *guide(void) {
  return mix_sequential(mix_list_of(mix_dense(.units = 48, .activation = "relu"),
                                    mix_dense(.units = 48, .activation = "relu"), mix_dense(.units = 48),
                                    mix_dense(.units = 10), mix_activation("softmax", .dtype = "float32")));
}

static inline mix_tensor *convolved(mix_tensor *x, int64_t filters, int64_t kernel, int64_t stride) {
  x = call(mix_conv2d(filters, kernel, .strides = MIX_SHAPE(stride), .padding = "same", .no_bias = true), x);
  return call(mix_batch_normalization(.momentum = 0.9), x);
}
static inline mix_tensor *relu(mix_tensor *x) { return call(mix_activation("relu"), x); }
static inline mix_tensor *residual(mix_tensor *x, int64_t filters, int64_t stride) {
  mix_tensor *shortcut = stride > 1 ? convolved(x, filters, 1, stride) : x;
  return relu(sum(shortcut, convolved(relu(convolved(x, filters, 3, stride)), filters, 3, 1)));
}
static inline mix_model *resnet(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(12, 12, 3)), *x = relu(convolved(inputs, 8, 3, 1));
  x = residual(residual(residual(residual(x, 8, 1), 8, 1), 16, 2), 16, 1);
  return classifier(inputs, call(mix_global_average_pooling2d(.name = NULL), x));
}

static inline mix_tensor *normalized(mix_tensor *x) {
  return call(mix_layer_normalization(.epsilon = 1e-6), x);
}
static inline mix_model *transformer(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(12), .dtype = "int32");
  mix_tensor *x = call(mix_embedding(20, 16), inputs);
  for (int i = 0; i < 3; i++) {
    mix_tensor *query = normalized(x);
    mix_layer *attention = mix_multi_head_attention(2, 8, .dropout = 0.1);
    x = sum(x, mix_call(attention, query, .arguments = mix_list_of(query), .use_causal_mask = true));
    mix_tensor *y = call(mix_dense(64, .activation = "gelu"), normalized(x));
    x = sum(x, call(mix_dropout(0.25), call(mix_dense(16), y)));
  }
  return classifier(inputs, call(mix_global_average_pooling1d(.name = NULL), normalized(x)));
}

static inline mix_model *lstm(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(12), .dtype = "int32");
  mix_tensor *x = call(mix_lstm(16, .return_sequences = true), call(mix_embedding(20, 16), inputs));
  return classifier(inputs, call(mix_lstm(16), call(mix_dropout(0.25), x)));
}

static uint64_t position;
static inline int below(int n) { return (int)mix_philox_below(54, 3, &position, (uint64_t)n); }

/* Layers that follow one another, with shortcuts between values of one width. */
static inline mix_model *random_model(void) {
  static const char *const activations[] = {"relu", "tanh", "gelu", "silu", "elu"};
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(40)), *x = call(mix_dense(32), inputs), *known[16] = {x};
  int count = 1;
  for (int layers = 4 + below(8); layers > 0; layers--) {
    switch (below(7)) {
    case 0: x = call(mix_layer_normalization(.epsilon = 1e-5), x); break;
    case 1: x = call(mix_batch_normalization(.momentum = 0.9), x); break;
    case 2: x = call(mix_dropout(0.25), x); break;
    case 3: x = sum(x, known[below(count)]); break;
    case 4: x = call(mix_activation(activations[below(5)]), x); break;
    case 5: x = call(mix_dense(32, .activation = activations[below(5)]), call(mix_dense(96), x)); break;
    default: x = call(mix_dense(32, .activation = activations[below(5)]), x);
    }
    known[count++] = x;
  }
  return classifier(inputs, x);
}

/* ---- training ---- */

static inline void take(trained *result, mix_tensor *x) {
  const int64_t count = mix_shape_size(mix_tensor_shape(x));
  assert_true(result->count + count <= MAX_NUMBERS);
  mix_tensor_read(x, MIX_FLOAT32, result->numbers + result->count, (size_t)count);
  result->count += (int)count;
}

static inline mix_tensor *numbers_of(const task *t) {
  static float numbers[1 << 16];
  const mix_shape shape = t->tokens ? MIX_SHAPE(t->rows, t->tokens)
                          : t->side ? MIX_SHAPE(t->rows, t->side, t->side, 3)
                                    : MIX_SHAPE(t->rows, 40);
  for (int64_t i = 0; i < mix_shape_size(shape); i++)
    numbers[i] = t->tokens ? (float)(i * 7 % 20) : (float)((i * 7919 + 5) % 257 - 128) / 128;
  mix_tensor *x = mix_tensor_from(numbers, MIX_FLOAT32, shape);
  return t->tokens ? mix_cast(x, MIX_INT32) : x;
}

/* False: the step does not fit. */
static inline bool train(const task *t, const char *policy, uint64_t seed, size_t budget, trained *result) {
  bool fits = true;
  *result = (trained){.numbers = calloc(MAX_NUMBERS, sizeof(float))};
  position = seed * 1000;
  mix_set_seed(3);
  assert_int_equal(mix_set_memory_budget(budget), MIX_OK);
  MIX_SCOPE {
    int64_t labels[512];
    mix_set_global_policy(policy);
    mix_model *model = t->build();
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .optimizer = mix_optimizer_from_name(t->optimizer));
    for (int i = 0; i < t->rows; i++) labels[i] = i * 7 % 10;
    mix_tensor *x = numbers_of(t), *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(t->rows));
    if (mix_error()) fail_msg("%s", mix_error_message());
    for (int s = 0; s < STEPS && fits; s++) {
      mix_logs *logs = mix_model_train_on_batch(model, x, y);
      fits = mix_error() != MIX_MEMORY_ERROR;
      if (logs) result->numbers[result->count++] = (float)mix_logs_get(logs, "loss");
    }
    if (fits) {
      mix_function_report(mix_model_train_function(model), &result->report, sizeof result->report);
      mix_list *weights = mix_model_get_weights(model);
      for (int i = 0; i < mix_list_count(weights); i++) take(result, mix_list_get(weights, i));
      if (mix_error()) fail_msg("%s", mix_error_message());
    }
  }
  return fits;
}

/* The smallest budget that the pending error has; clears it. */
static inline size_t smallest_budget(size_t asked) {
  char asked_text[64];
  const char *message = mix_error_message(),
             *found = strstr(message, "smallest memory budget that was found is ");
  snprintf(asked_text, sizeof asked_text, "and %zu bytes", asked);
  if (!found || !strstr(message, asked_text) || !strstr(message, "weights ")) fail_msg("%s", message);
  const size_t bytes = strtoull(found + strlen("smallest memory budget that was found is "), NULL, 10);
  assert_true(bytes > asked);
  mix_error_clear();
  return bytes;
}

static inline void same(const trained *plain, const trained *other, const char *policy, int seed,
                        size_t budget) {
  assert_int_equal(plain->count, other->count);
  for (int i = 0; i < plain->count; i++)
    if (memcmp(&plain->numbers[i], &other->numbers[i], sizeof(float)))
      fail_msg("%s, model %d, budget %zu: number %d is %.9g; expected %.9g", policy, seed, budget, i,
               (double)other->numbers[i], (double)plain->numbers[i]);
}

/* At the smallest budget that is found, and at four between it and the plan without one. Returns the repeated
 * steps of all plans. */
static inline int same_bits_at_all_budgets(const task *t, const char *policy, int seed) {
  enum { BUDGETS = 5 };
  int repeated = 0;
  trained plain, other;
  assert_true(train(t, policy, (uint64_t)seed, 0, &plain));
  assert_int_equal(plain.report.recomputed_nodes, 0);
  assert_false(train(t, policy, (uint64_t)seed, 1, &other));
  free(other.numbers);
  const size_t least = smallest_budget(1);
  assert_true(least <= plain.report.peak_bytes);
  for (size_t i = 0; i < BUDGETS; i++) {
    const size_t budget = least + (plain.report.peak_bytes - least) / BUDGETS * i;
    if (!train(t, policy, (uint64_t)seed, budget, &other)) fail_msg("%s", mix_error_message());
    same(&plain, &other, policy, seed, budget);
    assert_true(other.report.peak_bytes <= budget);
    assert_int_equal(other.report.recomputed_nodes > 0, other.report.recomputed_bytes > 0);
    repeated += other.report.recomputed_nodes;
    free(other.numbers);
  }
  free(plain.numbers);
  return repeated;
}

static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
enum { POLICIES = sizeof policies / sizeof *policies };

static inline int begin(void **state) {
  (void)state;
  mix_set_device(default_device());
  return mix_error() != MIX_OK;
}
static inline int end(void **state) {
  (void)state;
  mix_set_memory_budget(0);
  const bool pending = mix_error() != MIX_OK;
  mix_error_clear();
  mix_shutdown();
  return pending;
}
#define TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)

#endif
