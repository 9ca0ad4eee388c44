/* Attention of a few new positions of a sequence to those before, whose keys and values are kept. A cache is
 * read as it was before the call and written in place after that, so the new keys are operands of their own:
 * the scores of both stand side by side in one softmax. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/attention/attention.h"
#include "ops/table.h"
#include "ops/with_number.h"

static bool has_new_positions(mix_tensor *x) {
  const mix_shape shape = mix_tensor_shape(x);
  return shape.rank == 3 && shape.dims[1] == mix_decoding_now()->count;
}

static bool refuse(const mix_layer *layer, const char *why) {
  return mix_fail_value("decode: layer '%s' (%s) %s", layer->name, layer->class.name, why);
}

bool mix_attention_decodes(const mix_layer *layer, const mix_call_args *args) {
  if (!mix_attention_called(layer, args)) return false;
  if (!args->use_causal_mask)
    return refuse(layer, "attends to later positions too; expected a call with use_causal_mask");
  if (args->attention_mask)
    return refuse(layer, "is called with an attention_mask, whose keys are not known one at a time; expected "
                         "use_causal_mask alone");
  if (args->return_attention_scores)
    return refuse(layer, "returns attention scores, which have no place for each position");
  if (!has_new_positions(mix_call_input(args, 0)) || !has_new_positions(mix_call_argument(args, 0)) ||
      !has_new_positions(mix_attention_key(args)))
    return refuse(layer, "has query, value and key of different positions; expected (batch, positions, "
                         "features) each, of the same sequence");
  return true;
}

/* ---- shapes ---- */

/* (batch, positions, heads, dimension) -> (batch, groups, heads of a group x positions, dimension). */
static mix_tensor *rows_by_group(mix_tensor *x, int64_t groups) {
  const mix_shape s = mix_tensor_shape(x);
  const int64_t share = s.dims[2] / groups;
  if (share > 1)
    x = mix_transpose(mix_reshape(x, MIX_SHAPE(s.dims[0], s.dims[1], groups, share, s.dims[3])),
                      MIX_AXES(0, 2, 3, 1, 4));
  else
    x = mix_transpose(x, MIX_AXES(0, 2, 1, 3));
  return mix_reshape(x, MIX_SHAPE(s.dims[0], groups, share * s.dims[1], s.dims[3]));
}

/* Back, for `count` positions. */
static mix_tensor *heads_of_rows(mix_tensor *x, int64_t count) {
  const mix_shape s = mix_tensor_shape(x);
  const int64_t share = s.dims[2] / count;
  if (share > 1)
    x = mix_transpose(mix_reshape(x, MIX_SHAPE(s.dims[0], s.dims[1], share, count, s.dims[3])),
                      MIX_AXES(0, 3, 1, 2, 4));
  else
    x = mix_transpose(x, MIX_AXES(0, 2, 1, 3));
  return mix_reshape(x, MIX_SHAPE(s.dims[0], count, s.dims[1] * share, s.dims[3]));
}

/* ---- masks: true where a new position attends ---- */

/* (count, 1): the places of the new positions; and (1, keys) from the first on. */
static mix_tensor *places(int64_t count, int axis, mix_tensor *first) {
  mix_tensor *place = mix_expand_dims(mix_range(0, (double)count, 1, MIX_INT32), axis);
  return first ? mix_add(place, first) : place;
}

static mix_tensor *in_window(mix_tensor *query, mix_tensor *key, int64_t window) {
  mix_tensor *distance = mix_subtract(query, key);
  return window ? mix_less(distance, mix_scalar_like(distance, (double)window)) : NULL;
}

/* (count, window): to the positions before, whose rows of the cache are filled. */
static mix_tensor *mask_of_cache(const mix_decoding *d, int64_t window) {
  mix_tensor *key = places(d->window, 0, NULL), *query = places(d->count, 1, d->position);
  return mix_both_masks(mix_less(key, d->position), in_window(query, key, window));
}

/* (count, count): among the new ones. */
static mix_tensor *mask_of_new(const mix_decoding *d, int64_t window) {
  mix_tensor *key = places(d->count, 0, NULL), *query = places(d->count, 1, NULL);
  return mix_both_masks(mix_greater_equal(query, key), in_window(query, key, window));
}

/* The mask of the new keys, bool (batch, count); NULL: none. */
static mix_tensor *padding_of(const mix_call_args *args) {
  mix_tensor *mask = NULL;
  for (int i = 0; args->argument_masks && i < mix_list_count(args->argument_masks); i++) {
    mix_tensor *given = mix_list_get(args->argument_masks, i);
    if (given) mask = mix_both_masks(mask, mix_cast(given, MIX_BOOL));
  }
  return mask;
}

/* ---- the cache ---- */

/* The rows of (batch, heads, count) in a cache: (batch x heads x count). */
static mix_tensor *new_rows(const mix_decoding *d, int64_t heads) {
  mix_tensor *head = mix_range(0, (double)(d->batch * heads), 1, MIX_INT32);
  mix_tensor *row =
      mix_add(mix_expand_dims(mix_times(head, (double)d->window), 1), places(d->count, 0, d->position));
  return mix_reshape(row, MIX_SHAPE(MIX_UNKNOWN));
}

/* The rows before the call, in that shape, and the new ones written behind them. */
static mix_tensor *keep(const mix_decoding *d, mix_variable *rows, mix_shape shape, mix_tensor *added) {
  mix_tensor *before = mix_variable_true_value(rows);
  mix_shape flat = mix_variable_shape(rows);
  flat.dims[0] = d->batch * shape.dims[1] * d->count;
  mix_tensor *after =
      before ? mix_replace_rows(before, new_rows(d, shape.dims[1]), mix_reshape(added, flat)) : NULL;
  if (!after || mix_variable_assign(rows, after)) return NULL;
  return mix_reshape(before, shape);
}

/* ---- the call ---- */

/* (groups, share, 1, keys) for keys at these places; NULL: none. */
static mix_tensor *bias_of(const mix_head_attention *attention, int64_t groups, mix_tensor *keys) {
  if (!attention->slopes) return NULL;
  return mix_multiply(mix_reshape(attention->slopes, MIX_SHAPE(groups, -1, 1, 1)),
                      mix_cast(keys, MIX_FLOAT32));
}

/* Scores as (batch, groups, share, count, keys), with the lowest number where the mask is false. `first`: the
 * place of the first key; NULL: 0. */
static mix_tensor *scores_of(mix_tensor *query, mix_tensor *key, mix_tensor *mask, mix_tensor *padding,
                             const mix_head_attention *attention, bool wide, int64_t count, double lowest,
                             mix_tensor *first) {
  mix_tensor *scores = mix_matmul(query, key, false, true);
  if (wide && scores)
    scores =
        mix_times(mix_cast(scores, mix_dtype_is_16_bit(mix_tensor_dtype(scores)) ? MIX_FLOAT32
                                                                                 : mix_tensor_dtype(scores)),
                  attention->scale);
  if (!scores) return NULL;
  const mix_shape s = mix_tensor_shape(scores);
  scores = mix_reshape(scores, MIX_SHAPE(s.dims[0], s.dims[1], s.dims[2] / count, count, s.dims[3]));
  scores = mix_adjust_scores(attention, scores, bias_of(attention, s.dims[1], places(s.dims[3], 0, first)));
  if (padding) mask = mix_logical_and(mix_reshape(padding, MIX_SHAPE(s.dims[0], 1, 1, 1, s.dims[3])), mask);
  return mix_select(mask, scores, mix_scalar_like(scores, lowest));
}

/* Probabilities of the keys from `begin` on, times their values. */
static mix_tensor *part_of(mix_tensor *probabilities, int64_t begin, mix_tensor *value) {
  const mix_shape s = mix_tensor_shape(probabilities), v = mix_tensor_shape(value);
  mix_tensor *part = mix_slice(probabilities, MIX_SHAPE(0, 0, 0, 0, begin),
                               MIX_SHAPE(s.dims[0], s.dims[1], s.dims[2], s.dims[3], v.dims[2]));
  part = mix_reshape(part, MIX_SHAPE(s.dims[0], s.dims[1], s.dims[2] * s.dims[3], v.dims[2]));
  return mix_matmul(part, value, false, false);
}

static mix_list *attend(const mix_layer *layer, const mix_head_attention *attention,
                        mix_tensor *const heads[3], mix_tensor *padding, int64_t window) {
  const mix_decoding *d = mix_decoding_now();
  mix_attention_cache *cache = mix_decoding_cache(layer, heads[1], heads[2], padding != NULL);
  if (!cache) return NULL;
  const int64_t groups = cache->key.dims[1];
  const mix_dtype dtype = mix_tensor_dtype(heads[0]);
  const bool wide = layer->semantics->attention_scores_float32 && attention->rate == 0;
  const double lowest = wide                   ? MIX_MASKED_SCORE
                        : dtype == MIX_FLOAT16 ? layer->semantics->softmax_mask_float16
                                               : -1e9;
  mix_tensor *query = rows_by_group(wide ? heads[0] : mix_times(heads[0], attention->scale), groups),
             *key = rows_by_group(heads[1], groups), *value = rows_by_group(heads[2], groups);
  mix_tensor *keys = key ? keep(d, cache->keys, cache->key, key) : NULL,
             *values = value ? keep(d, cache->values, cache->value, value) : NULL, *padded = NULL;
  if (padding) padded = keep(d, cache->mask, MIX_SHAPE(d->batch, 1, d->window), padding);
  if (mix_failed()) return NULL;
  mix_tensor *scores[2] = {
      scores_of(query, keys, mask_of_cache(d, window), padded, attention, wide, d->count, lowest, NULL),
      scores_of(query, key, mask_of_new(d, window), padding, attention, wide, d->count, lowest, d->position)};
  mix_tensor *probabilities = mix_failed() ? NULL : mix_cast(mix_softmax(mix_concat(2, scores, -1)), dtype);
  if (!probabilities) return NULL;
  mix_tensor *sum = mix_add(part_of(probabilities, 0, values), part_of(probabilities, d->window, value));
  return sum ? mix_one_result(heads_of_rows(sum, d->count)) : NULL;
}

mix_list *mix_attend_layer(const mix_layer *layer, const mix_head_attention *attention,
                           const mix_call_args *args, mix_tensor *const given[3], mix_tensor *mask,
                           int64_t window) {
  mix_decoding *d = mix_decoding_now();
  mix_tensor *heads[3] = {given[0], given[1], given[2]};
  if (mix_failed()) return NULL;
  if (d && !mix_attention_promote(heads, 3)) return NULL;
  if (d && d->position) return attend(layer, attention, heads, padding_of(args), window);
  if (d && !mix_decoding_cache(layer, heads[1], heads[2], padding_of(args) != NULL)) return NULL;
  return mix_attend(layer->semantics, attention, args, given, mask);
}
