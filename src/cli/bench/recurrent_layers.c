/* The rows of recurrent layers in the table layers: on sequences with as many features as units, forward, and
 * forward and backward as training runs them, without an update. */
#include "cli/bench/layer_pass.h"
#include <mixtape/recurrent.h>
#include <stdio.h>
#include <string.h>

typedef struct recurrent {
  const char *name;
  mix_layer *(*make)(const mix_recurrent_options *options);
  int64_t units, steps, batch;
} recurrent;

static const recurrent layers[] = {{"LSTM, 256 units, 128 steps", mix_lstm_with, 256, 128, 32},
                                   {"GRU, 256 units, 128 steps", mix_gru_with, 256, 128, 32},
                                   {"LSTM, 64 units, 128 steps", mix_lstm_with, 64, 128, 1},
                                   {"GRU, 64 units, 128 steps", mix_gru_with, 64, 128, 1}};

/* y of x. */
static mix_list *forward_body(void *context, mix_list *arguments) {
  mix_tensor *y = mix_call(context, mix_list_get(arguments, 0), .training = MIX_TRUE);
  return y ? mix_list_of(y) : NULL;
}

/* y, and the gradients of x and the weights, of x and the gradient of y. */
static mix_list *training_body(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(context, x, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *weights = mix_layer_trainable_weights(context), *sources = mix_list_of(x);
  for (int i = 0; i < mix_list_count(weights); i++) mix_list_append(sources, mix_list_get(weights, i));
  mix_list *results =
      y ? mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources)
        : NULL;
  if (results) mix_list_append(results, y);
  return results;
}

static bool prepare(const bench_layer_pass *pass, const char *policy, mix_dtype dtype,
                    bench_layer_call *call) {
  const recurrent *r = pass->context;
  const bool trains = strcmp(pass->pass, "forward");
  const mix_shape shape = MIX_SHAPE(pass->batch, r->steps, r->units);
  mix_generator *generator = mix_generator_new(1);
  mix_recurrent_options options = mix_recurrent_defaults();
  options.units = r->units;
  options.return_sequences = true;
  options.dtype = policy;
  mix_layer *layer = r->make(&options);
  if (!layer || mix_layer_build(layer, shape)) return false;
  *call =
      (bench_layer_call){mix_function_new(trains ? training_body : forward_body, layer, .name = pass->pass),
                         mix_list_new(0, NULL)};
  for (int i = 0; i < 1 + trains; i++)
    if (!bench_layer_argument(call, generator, shape, dtype)) return false;
  return mix_error() == MIX_OK;
}

bool bench_recurrent_layers(const bench_settings *settings, json_t *results) {
  static const char *const passes[] = {"forward", "both"};
  bool good = true;
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    for (int p = 0; p < 2 && good; p++)
      MIX_SCOPE {
        good = bench_layer_time(
            settings,
            &(const bench_layer_pass){.layer = layers[i].name,
                                      .pass = passes[p],
                                      .batch = settings->batch ? settings->batch : layers[i].batch,
                                      .context = &layers[i],
                                      .prepare = prepare},
            results);
      }
  return good;
}
