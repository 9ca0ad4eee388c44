/* Table decoding: tokens a second of a small GPT at 512 positions, one token with kept keys and values beside
 * the whole window once more for each token, interleaved. */
#include "tables.h"

enum { WINDOW = 512, VOCABULARY = 4096, HEAD = 64 };

typedef struct decoding {
  mix_model *model;
  mix_decode_state *state;
  mix_function *whole;
  mix_list *window;
  mix_tensor *token;
} decoding;

static mix_tensor *normalized(mix_tensor *x) { return mix_call(mix_layer_normalization(.epsilon = 1e-5), x); }
static mix_tensor *sum(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}

static mix_model *build(const char *policy, int layers, int64_t units) {
  mix_set_semantics("keras3");
  mix_set_global_policy(policy);
  mix_tensor *tokens = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32", .name = "tokens"),
             *places = mix_input(.shape = MIX_SHAPE(WINDOW), .dtype = "int32", .name = "places");
  mix_tensor *x =
      sum(mix_call(mix_embedding(VOCABULARY, units), tokens), mix_call(mix_embedding(WINDOW, units), places));
  for (int i = 0; i < layers; i++) {
    mix_tensor *y = normalized(x);
    x = sum(x, mix_call(mix_multi_head_attention(units / HEAD, HEAD), y, .arguments = mix_list_of(y),
                        .use_causal_mask = true));
    y = mix_call(mix_dense(4 * units, "gelu"), normalized(x));
    x = sum(x, mix_call(mix_dense(units), y));
  }
  x = mix_call(mix_dense(VOCABULARY), normalized(x));
  mix_set_global_policy("float32");
  return mix_model_new(mix_list_of(tokens, places), x);
}

/* tokens, places -> the logits of what follows the last token */
static mix_list *whole_body(void *context, mix_list *arguments) {
  mix_tensor *logits = mix_model_call(context, arguments);
  if (!logits) return NULL;
  const int64_t batch = mix_tensor_shape(logits).dims[0];
  return mix_list_of(mix_slice(logits, MIX_SHAPE(0, WINDOW - 1, 0), MIX_SHAPE(batch, 1, VOCABULARY)));
}

static bool run_whole(void *context) {
  const decoding *d = context;
  bool good = false;
  MIX_SCOPE { good = mix_function_call(d->whole, d->window) != NULL; }
  return good && mix_error() == MIX_OK;
}

/* Its time is that of any position: caches have a fixed size. */
static bool run_step(void *context) {
  const decoding *d = context;
  MIX_SCOPE {
    if (mix_decode_position(d->state) == WINDOW) mix_decode_rewind(d->state, WINDOW / 2);
    mix_decode(d->state, d->token);
  }
  return mix_error() == MIX_OK;
}

static bool prepare(decoding *d, const char *policy, int layers, int64_t units, int64_t batch) {
  const mix_shape shape = MIX_SHAPE(batch, WINDOW);
  d->model = build(policy, layers, units);
  d->whole = mix_function_new(whole_body, d->model, .name = "whole");
  d->window =
      mix_list_of(mix_fill(shape, 7, MIX_INT32), mix_broadcast_to(mix_range(0, WINDOW, 1, MIX_INT32), shape));
  d->token = mix_fill(MIX_SHAPE(batch, 1), 7, MIX_INT32);
  d->state = mix_decode_state_new(d->model, .batch = batch, .positions = "places");
  if (mix_error() || mix_evaluate(1, &d->token)) return false;
  return run_whole(d) && run_step(d);
}

static bool one(const bench_settings *settings, const char *policy, int64_t batch, json_t *rows) {
  static bench_candidate runs[2];
  decoding d = {0};
  int rounds;
  if (!prepare(&d, policy, settings->quick ? 2 : 6, settings->quick ? 128 : 384, batch)) return false;
  runs[0] = (bench_candidate){.run = run_step, .context = &d};
  runs[1] = (bench_candidate){.run = run_whole, .context = &d};
  if (!bench_interleave(runs, 2, settings->quick ? 0.5 : 6, &rounds)) return false;
  const double step = (double)batch / runs[0].median, whole = (double)batch / runs[1].median,
               ratio = bench_ratio(&runs[1], &runs[0], rounds);
  json_array_append_new(rows, json_pack("{s:s, s:I, s:f, s:f, s:f}", "policy", policy, "batch",
                                        (json_int_t)batch, "tokens_per_second", step,
                                        "whole_tokens_per_second", whole, "ratio", ratio));
  if (settings->text)
    printf("%-16s %6lld %16.1f %16.1f %8.1f\n", policy, (long long)batch, step, whole, ratio);
  return true;
}

bool bench_decoding(const bench_settings *settings) {
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  json_t *rows = json_array();
  bool good = true;
  if (settings->text)
    printf("\ntokens a second at %d positions, GPT of %d layers, %d units and %d tokens\n"
           "%-16s %6s %16s %16s %8s\n",
           WINDOW, settings->quick ? 2 : 6, settings->quick ? 128 : 384, VOCABULARY, "policy", "batch",
           "kept keys", "whole window", "ratio");
  for (int64_t batch = 1; batch <= 8 && good; batch *= 8)
    for (size_t i = 0; i < sizeof policies / sizeof *policies && good; i++) {
      char name[64];
      snprintf(name, sizeof name, "batch %lld, %s", (long long)batch, policies[i]);
      if (!bench_is_asked(settings, name)) continue;
      MIX_SCOPE { good = one(settings, policies[i], batch, rows); }
      fflush(stdout);
    }
  json_object_set_new(settings->json, "decoding", rows);
  return good;
}
