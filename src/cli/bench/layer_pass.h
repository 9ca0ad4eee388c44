/* A row of the table layers: one pass of a layer in float32 and in both 16-bit policies, interleaved. */
#pragma once

#include "cli/bench/bench.h"

enum { BENCH_LAYER_POLICIES = 3 };

/* What is timed: calls of the function on the arguments. */
typedef struct bench_layer_call {
  mix_function *function;
  mix_list *arguments;
} bench_layer_call;

typedef struct bench_layer_pass {
  const char *layer, *pass;
  int64_t batch;
  const void *context;
  /* Makes function and arguments in the scope, for a policy and its compute dtype. */
  bool (*prepare)(const struct bench_layer_pass *pass, const char *policy, mix_dtype compute,
                  bench_layer_call *call);
} bench_layer_pass;

/* Times the pass, prints a line and appends a row for each policy to `results`. */
bool bench_layer_time(const bench_settings *settings, const bench_layer_pass *pass, json_t *results);
/* Appends numbers in [-1/2, 1/2) of a dtype to the arguments. */
bool bench_layer_argument(bench_layer_call *call, mix_generator *generator, mix_shape shape, mix_dtype dtype);

/* Bodies of functions whose context is a layer or a model: y of x, in inference; y, and the gradients of x
 * and the weights, of x and the gradient of y. An attention layer attends to x itself. */
mix_list *bench_layer_forward(void *layer, mix_list *arguments);
mix_list *bench_layer_both(void *layer, mix_list *arguments);

/* The rows of recurrent layers and attention, and of image models by name. */
bool bench_sequence_layers(const bench_settings *settings, json_t *results);
bool bench_image_models(const bench_settings *settings, json_t *results);
