/* Rows of the table layers: multi-head attention of a Transformer, forward, and forward and backward as a
 * step runs them, under each policy. */
#include "cli/bench/bench.h"
#include <stdio.h>

enum { UNITS = 512, HEADS = 8, BATCH = 16, LENGTHS = 2 };
static const int64_t lengths[LENGTHS] = {128, 1024}, quick_lengths[LENGTHS] = {32, 128};

/* A layer under one policy. */
typedef struct candidate {
  mix_layer *layer;
  mix_function *function;
  mix_list *arguments; /* x, the gradient of y */
} candidate;

static mix_tensor *attend(const candidate *c, mix_tensor *x) {
  return mix_call(c->layer, x, .arguments = mix_list_of(x), .training = MIX_TRUE);
}

static mix_list *forward_body(void *context, mix_list *arguments) {
  mix_tensor *y = attend(context, mix_list_get(arguments, 0));
  return y ? mix_list_of(y) : NULL;
}

/* The result, and the gradients of x and of the weights. */
static mix_list *backward_body(void *context, mix_list *arguments) {
  const candidate *c = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = attend(c, x);
  mix_tape_end(tape);
  mix_list *sources = mix_layer_trainable_weights(c->layer);
  if (!y || mix_list_append(sources, x)) return NULL;
  return mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources);
}

static bool prepare(candidate *c, int64_t batch, int64_t length, const char *policy, bool backward) {
  mix_generator *generator = mix_generator_new(1);
  *c = (candidate){.layer = mix_multi_head_attention(HEADS, UNITS / HEADS, .dtype = policy),
                   .arguments = mix_list_new(0, NULL)};
  for (int i = 0; i < 2 && !mix_error(); i++) {
    mix_tensor *numbers = mix_random_uniform(generator, MIX_SHAPE(batch, length, UNITS), MIX_FLOAT32);
    numbers =
        mix_cast(mix_subtract(numbers, mix_scalar_like(numbers, 0.5)), mix_layer_compute_dtype(c->layer));
    if (mix_evaluate(1, &numbers) == MIX_OK) mix_list_append(c->arguments, numbers);
  }
  if (!mix_error()) mix_layer_build(c->layer, MIX_SHAPE(batch, length, UNITS));
  c->function = mix_function_new(backward ? backward_body : forward_body, c,
                                 .name = backward ? "forward and backward" : "forward");
  return mix_error() == MIX_OK;
}

static bool run(void *context) {
  const candidate *c = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(c->function, c->arguments) != NULL; }
  return good;
}

static bool one_pass(const bench_settings *settings, int64_t length, bool backward, json_t *results) {
  static bench_candidate runs[BENCH_LAYER_POLICIES];
  static candidate candidates[BENCH_LAYER_POLICIES];
  const int64_t batch = settings->batch ? settings->batch : BATCH;
  char name[64];
  snprintf(name, sizeof name, "attention %d, %d heads, %lld tokens", UNITS, HEADS, (long long)length);
  for (int i = 0; i < BENCH_LAYER_POLICIES; i++) {
    if (!prepare(&candidates[i], batch, length, bench_layer_policies[i], backward)) return false;
    runs[i] = (bench_candidate){.run = run, .context = &candidates[i]};
  }
  return bench_layer_row(settings, &(bench_layer_pass){name, batch, backward}, runs, results);
}

bool bench_attention_layers(const bench_settings *settings, json_t *results) {
  bool good = true;
  if (settings->text)
    printf("attention, batch %lld; backward is forward and backward\n",
           (long long)(settings->batch ? settings->batch : BATCH));
  for (int i = 0; i < LENGTHS; i++)
    for (int backward = 0; backward < 2 && good; backward++)
      MIX_SCOPE {
        good = one_pass(settings, settings->quick ? quick_lengths[i] : lengths[i], backward, results);
      }
  return good;
}
