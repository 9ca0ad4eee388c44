/* The rows of layers of sequences in the table layers: forward, and forward and backward as training runs
 * them, without an update. */
#include "cli/bench/layer_pass.h"
#include <string.h>

enum { HEADS = 8, QUICKER = 8 };

typedef struct row {
  const char *name;
  mix_layer *(*recurrent)(const mix_recurrent_options *options); /* NULL: attention */
  int64_t units, steps, batch;                                   /* as many features as units */
} row;

static const row rows[] = {
    {"LSTM, 256 units", mix_lstm_with, 256, 128, 32}, {"GRU, 256 units", mix_gru_with, 256, 128, 32},
    {"LSTM, 64 units", mix_lstm_with, 64, 128, 1},    {"GRU, 64 units", mix_gru_with, 64, 128, 1},
    {"attention 512, 8 heads", NULL, 512, 128, 16},   {"attention 512, 8 heads", NULL, 512, 1024, 16}};

static mix_layer *new_layer(const row *r, const char *policy) {
  if (!r->recurrent) return mix_multi_head_attention(HEADS, r->units / HEADS, .dtype = policy);
  mix_recurrent_options options = mix_recurrent_defaults();
  options.units = r->units;
  options.return_sequences = true;
  options.dtype = policy;
  return r->recurrent(&options);
}

static bool prepare(const bench_layer_pass *pass, const char *policy, mix_dtype dtype,
                    bench_layer_call *call) {
  const row *r = pass->context;
  const bool both = strcmp(pass->pass, "forward");
  const mix_shape shape = MIX_SHAPE(pass->batch, r->steps, r->units);
  mix_generator *generator = mix_generator_new(1);
  mix_layer *layer = new_layer(r, policy);
  if (!layer || mix_layer_build(layer, shape)) return false;
  *call = (bench_layer_call){
      mix_function_new(both ? bench_layer_both : bench_layer_forward, layer, .name = pass->pass),
      mix_list_new(0, NULL)};
  for (int i = 0; i < 1 + both; i++)
    if (!bench_layer_argument(call, generator, shape, dtype)) return false;
  return mix_error() == MIX_OK;
}

bool bench_sequence_layers(const bench_settings *settings, json_t *results) {
  static const char *const passes[] = {"forward", "both"};
  bool good = true;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int p = 0; p < 2 && good; p++)
      MIX_SCOPE {
        row shape = rows[i];
        char name[64];
        if (settings->quick) shape.steps /= QUICKER;
        snprintf(name, sizeof name, "%s, %lld %s", shape.name, (long long)shape.steps,
                 shape.recurrent ? "steps" : "tokens");
        good = bench_layer_time(
            settings,
            &(const bench_layer_pass){.layer = name,
                                      .pass = passes[p],
                                      .batch = settings->batch ? settings->batch : shape.batch,
                                      .context = &shape,
                                      .prepare = prepare},
            results);
      }
  return good;
}
