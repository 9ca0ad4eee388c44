/* Generation: prompts, and the tokens that a model finds to follow them. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "base/philox.h"
#include "model/decode.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

#define CALL "generate"

/* A continuation among those of its prompt. */
typedef struct beam {
  double score; /* sum of log-probabilities; -infinity: stands for none */
  int64_t token;
  int parent;
  bool ended;
} beam;

typedef struct generation {
  const mix_generate_options *options;
  mix_token_choice choice;
  mix_decode_state *state; /* borrowed */
  int64_t prompts, beams, rows, vocabulary;
  int64_t length, capacity; /* of the prompts; with the tokens that follow */
  int64_t *lengths;         /* (prompts) */
  int32_t *tokens, *moved;  /* (rows, capacity); room for as many */
  float *logits;            /* (rows, vocabulary) */
  int32_t *order;           /* (vocabulary) */
  beam *found, *best;       /* (rows); (beams) */
} generation;

/* ---- options ---- */

static bool read_choice(generation *g) {
  const mix_generate_options *o = g->options;
  g->choice = (mix_token_choice){.draws = o->temperature != 0 || o->top_k || o->top_p != 0,
                                 .temperature = o->temperature != 0 ? o->temperature : 1,
                                 .top_k = o->top_k,
                                 .top_p = o->top_p != 0 ? o->top_p : 1,
                                 .seed = o->seed};
  if (!(g->choice.temperature > 0 && g->choice.temperature < INFINITY))
    return mix_fail_value(CALL ": temperature is %g; expected a positive number", o->temperature);
  if (o->top_k < 0) return mix_fail_value(CALL ": top_k is %lld; expected 0 or more", (long long)o->top_k);
  if (!(g->choice.top_p > 0 && g->choice.top_p <= 1))
    return mix_fail_value(CALL ": top_p is %g; expected a number in (0, 1]", o->top_p);
  g->beams = o->beams ? o->beams : 1;
  if (g->beams < 1 || g->beams > 1024)
    return mix_fail_value(CALL ": beams is %lld; expected 1 to 1024", (long long)o->beams);
  if (g->beams > 1 && g->choice.draws)
    return mix_fail_value(CALL
                          ": beams is %lld, and temperature, top_k or top_p draw tokens; give one or the "
                          "other",
                          (long long)g->beams);
  if (o->tokens < 1)
    return mix_fail_value(CALL ": tokens is %lld; expected how many may follow the prompt",
                          (long long)o->tokens);
  if (g->choice.draws && !g->choice.seed) g->choice.seed = mix_next_seed();
  return true;
}

static bool is_integers(mix_tensor *given, const char *what) {
  if (!mix_given(given, &mix_tensor_class, CALL, "a tensor")) return false;
  if (!mix_tensor_is_symbolic(given) && mix_dtype_is_integer(mix_tensor_dtype(given))) return true;
  return mix_fail_type(CALL ": %s is of dtype %s%s; expected integers", what,
                       mix_dtype_name(mix_tensor_dtype(given)),
                       mix_tensor_is_symbolic(given) ? ", symbolic" : "");
}

static bool read_lengths(generation *g) {
  mix_tensor *given = g->options->lengths;
  for (int64_t i = 0; i < g->prompts; i++) g->lengths[i] = g->length;
  if (!given) return true;
  if (!is_integers(given, "lengths")) return false;
  const mix_shape shape = mix_tensor_shape(given);
  if (shape.rank != 1 || shape.dims[0] != g->prompts)
    return mix_fail_value(CALL ": lengths has shape %s; expected (%lld), one for each prompt",
                          MIX_SHAPE_TEXT(shape), (long long)g->prompts);
  if (mix_tensor_read(given, MIX_INT64, g->lengths, g->prompts)) return false;
  for (int64_t i = 0; i < g->prompts; i++)
    if (g->lengths[i] < 1 || g->lengths[i] > g->length)
      return mix_fail_value(CALL ": lengths[%lld] is %lld; expected 1 to %lld", (long long)i,
                            (long long)g->lengths[i], (long long)g->length);
  return true;
}

/* ---- memory ---- */

static bool make_rows(generation *g) {
  const size_t tokens = (size_t)(g->rows * g->capacity), words = (size_t)g->vocabulary;
  g->lengths = mix_calloc((size_t)g->prompts, sizeof *g->lengths);
  g->tokens = mix_calloc(tokens, sizeof *g->tokens);
  g->moved = mix_calloc(tokens, sizeof *g->moved);
  g->logits = mix_calloc((size_t)g->rows * words, sizeof *g->logits);
  g->order = mix_calloc(words, sizeof *g->order);
  g->found = mix_calloc((size_t)g->rows, sizeof *g->found);
  g->best = mix_calloc((size_t)g->beams, sizeof *g->best);
  return g->lengths && g->tokens && g->moved && g->logits && g->order && g->found && g->best;
}

static void free_rows(generation *g) {
  mix_free(g->lengths);
  mix_free(g->tokens);
  mix_free(g->moved);
  mix_free(g->logits);
  mix_free(g->order);
  mix_free(g->found);
  mix_free(g->best);
}

static int32_t *row_of(const generation *g, int64_t row) { return g->tokens + row * g->capacity; }

/* Each prompt once for each of its beams, of which the first alone counts until they differ. */
static bool read_prompts(generation *g) {
  int32_t *given = mix_calloc((size_t)(g->prompts * g->length), sizeof *given);
  const bool good = given && !mix_tensor_read(g->options->prompt, MIX_INT32, given, g->prompts * g->length);
  for (int64_t row = 0; good && row < g->rows; row++) {
    const int64_t prompt = row / g->beams, own = g->lengths[prompt];
    int32_t *tokens = row_of(g, row);
    for (int64_t t = 0; t < g->capacity; t++)
      tokens[t] = t < own ? given[prompt * g->length + t] : (int32_t)g->options->pad_token;
    g->found[row] = (beam){.score = row % g->beams ? -INFINITY : 0};
  }
  mix_free(given);
  return good;
}

static bool find_state(generation *g, mix_model *model) {
  const mix_generate_options *o = g->options;
  g->state = o->state;
  if (!g->state)
    g->state = mix_decode_state_new(model, .batch = g->rows, .positions = o->positions,
                                    .window = o->window ? o->window : g->capacity - 1);
  else if (mix_decode_rewind(g->state, 0) || mix_decode_model(g->state) != model ||
           mix_decode_batch(g->state) != g->rows)
    return mix_failed()
               ? false
               : mix_fail_value(CALL ": the state is of another model, or of a batch of %lld; expected "
                                     "one of '%s' for %lld prompts times %lld beams",
                                (long long)mix_decode_batch(g->state), mix_model_name(model),
                                (long long)g->prompts, (long long)g->beams);
  if (!g->state) return false;
  g->vocabulary = mix_decode_vocabulary(g->state);
  if (mix_decode_window(g->state) >= g->capacity - 1) return true;
  return mix_fail_value(CALL
                        ": prompts of %lld tokens and %lld that follow need a window of %lld; it is %lld",
                        (long long)g->length, (long long)o->tokens, (long long)(g->capacity - 1),
                        (long long)mix_decode_window(g->state));
}

/* ---- a step ---- */

/* Feeds the tokens of all rows from `first` on, and reads the logits of what follows the last. */
static bool feed(generation *g, int64_t first, int64_t count) {
  MIX_SCOPE_HERE;
  for (int64_t row = 0; row < g->rows; row++)
    if (g->found[row].ended) /* the padding may be no token of the model */
      memset(g->moved + row * count, 0, (size_t)count * sizeof *g->moved);
    else
      memcpy(g->moved + row * count, row_of(g, row) + first, (size_t)count * sizeof *g->moved);
  mix_tensor *logits = mix_decode(g->state, mix_tensor_from(g->moved, MIX_INT32, MIX_SHAPE(g->rows, count)));
  if (logits && count > 1)
    logits = mix_slice(logits, MIX_SHAPE(0, count - 1, 0), MIX_SHAPE(g->rows, 1, g->vocabulary));
  return logits && !mix_tensor_read(logits, MIX_FLOAT32, g->logits, g->rows * g->vocabulary);
}

/* In parts of powers of two, so that few plans serve prompts of all lengths. */
static bool feed_prompts(generation *g, int64_t count) {
  for (int64_t part = INT64_C(1) << 40, fed = 0; fed < count; part /= 2)
    for (; count - fed >= part; fed += part)
      if (!feed(g, fed, part)) return false;
  return true;
}

static bool logits_usable(const generation *g, int64_t row, int64_t position) {
  const float *logits = g->logits + row * g->vocabulary;
  bool any = false;
  for (int64_t i = 0; i < g->vocabulary; i++) {
    if (isnan(logits[i]))
      return mix_fail_value(CALL ": a logit of prompt %lld is NaN at position %lld; are the weights finite?",
                            (long long)(row / g->beams), (long long)position);
    any |= logits[i] > -INFINITY;
  }
  return any || mix_fail_value(CALL ": all logits of prompt %lld are -infinity at position %lld",
                               (long long)(row / g->beams), (long long)position);
}

static bool is_end(const generation *g, int64_t token) {
  for (int i = 0; i < g->options->end_tokens.rank; i++)
    if (g->options->end_tokens.dims[i] == token) return true;
  return false;
}

/* The largest come first; of equal ones the one that was there. */
static void insert(generation *g, beam candidate) {
  for (int64_t i = 0; i < g->beams; i++)
    if (candidate.score > g->best[i].score) {
      const beam moved = g->best[i];
      g->best[i] = candidate;
      candidate = moved;
    }
}

static bool extend(generation *g, int64_t first, int64_t position) {
  for (int64_t i = 0; i < g->beams; i++) g->best[i] = (beam){.score = -INFINITY};
  for (int b = 0; b < g->beams; b++) {
    const beam *own = &g->found[first + b];
    const float *logits = g->logits + (first + b) * g->vocabulary;
    if (own->score == -INFINITY) continue;
    if (own->ended) {
      insert(g, (beam){own->score, g->options->pad_token, b, true});
      continue;
    }
    if (!logits_usable(g, first + b, position)) return false;
    const double total = mix_log_total(logits, g->vocabulary);
    for (int64_t i = 0; i < g->vocabulary; i++)
      if (own->score + logits[i] - total > g->best[g->beams - 1].score)
        insert(g, (beam){own->score + logits[i] - total, i, b, is_end(g, i)});
  }
  memcpy(g->found + first, g->best, (size_t)g->beams * sizeof *g->best);
  return true;
}

/* One row, which goes on by itself. */
static bool continue_row(generation *g, int64_t row, int64_t position) {
  beam *own = &g->found[row];
  own->token = g->options->pad_token;
  if (own->ended) return true;
  if (!logits_usable(g, row, position)) return false;
  own->token = mix_choose_token(&g->choice, g->logits + row * g->vocabulary, g->vocabulary,
                                (uint64_t)position, (uint64_t)row, g->order);
  own->ended = is_end(g, own->token);
  return true;
}

/* Chooses the token at a position of all rows whose prompt has ended. */
static bool choose(generation *g, int64_t position) {
  bool moves = false;
  for (int64_t first = 0; first < g->rows; first += g->beams) {
    const bool given = position < g->lengths[first / g->beams];
    for (int b = 0; b < g->beams; b++) g->found[first + b].parent = b;
    if (!given && !(g->beams > 1 ? extend(g, first, position) : continue_row(g, first, position)))
      return false;
    for (int b = 0; b < g->beams; b++) {
      const beam *own = &g->found[first + b];
      int32_t *to = g->moved + (first + b) * g->capacity;
      memcpy(to, row_of(g, first + own->parent), (size_t)g->capacity * sizeof *to);
      if (!given) to[position] = (int32_t)own->token;
      moves |= own->parent != b;
    }
  }
  memcpy(g->tokens, g->moved, (size_t)(g->rows * g->capacity) * sizeof *g->tokens);
  if (!moves) return true;
  MIX_SCOPE_HERE;
  for (int64_t row = 0; row < g->rows; row++)
    g->moved[row] = (int32_t)(row - row % g->beams + g->found[row].parent);
  return !mix_decode_reorder(g->state, mix_tensor_from(g->moved, MIX_INT32, MIX_SHAPE(g->rows)));
}

static bool all_ended(const generation *g) {
  for (int64_t row = 0; row < g->rows; row++)
    if (!g->found[row].ended && g->found[row].score > -INFINITY) return false;
  return true;
}

/* The first beam of each prompt, which is the best. */
static mix_tensor *result(const generation *g, int64_t length) {
  for (int64_t prompt = 0; prompt < g->prompts; prompt++)
    memcpy(g->moved + prompt * length, row_of(g, prompt * g->beams), (size_t)length * sizeof *g->moved);
  return mix_tensor_from(g->moved, MIX_INT32, MIX_SHAPE(g->prompts, length));
}

static mix_tensor *run(generation *g) {
  int64_t position = g->length;
  for (int64_t i = 0; i < g->prompts; i++)
    if (g->lengths[i] < position) position = g->lengths[i];
  if (!feed_prompts(g, position)) return NULL;
  while (choose(g, position)) {
    position++;
    if (position == g->capacity || (position >= g->length && all_ended(g))) return result(g, position);
    if (!feed(g, position - 1, 1)) return NULL;
  }
  return NULL;
}

static mix_tensor *generate(mix_model *model, generation *g) {
  const mix_generate_options *o = g->options;
  if (!read_choice(g) || !is_integers(o->prompt, "prompt")) return NULL;
  const mix_shape shape = mix_tensor_shape(o->prompt);
  g->prompts = shape.rank == 2 ? shape.dims[0] : 1;
  g->length = shape.rank ? shape.dims[shape.rank - 1] : 0;
  if (shape.rank < 1 || shape.rank > 2 || g->prompts < 1 || g->length < 1)
    return mix_fail_value(CALL
                          ": the prompt has shape %s; expected (batch, length) or (length), of one token "
                          "or more",
                          MIX_SHAPE_TEXT(shape));
  if (o->end_tokens.rank < 0 || o->end_tokens.rank > MIX_MAX_RANK)
    return mix_fail_value(CALL ": end_tokens has %d items; expected at most %d", o->end_tokens.rank,
                          MIX_MAX_RANK);
  if (o->tokens > INT32_MAX - g->length || g->prompts > INT32_MAX / g->beams)
    return mix_fail_value(CALL ": %lld tokens of %lld prompts are too many", (long long)o->tokens,
                          (long long)g->prompts);
  g->capacity = g->length + o->tokens;
  g->rows = g->prompts * g->beams;
  if (!find_state(g, model) || !make_rows(g) || !read_lengths(g) || !read_prompts(g)) return NULL;
  return run(g);
}

mix_tensor *mix_generate_with(mix_model *model, const mix_generate_options *given) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_model_given(model, CALL)) return NULL;
  MIX_OPTIONS(mix_generate_options, o, given, CALL);
  generation g = {.options = &o};
  mix_tensor *tokens = NULL;
  MIX_SCOPE { tokens = mix_retain(generate(model, &g)); }
  free_rows(&g);
  return mix_scoped(tokens);
}
