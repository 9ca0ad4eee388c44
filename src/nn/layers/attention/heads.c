/* Attention over heads (Vaswani et al.: Attention is all you need; arXiv:1706.03762). */
#include "amp/setting.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "compile/generator.h"
#include "graph/capture.h"
#include "nn/layers/attention/attention.h"
#include "ops/table.h"
#include "ops/with_number.h"
#include "passes/simulation.h"
#include <mixtape/einsum.h>

bool mix_attention_called(const mix_layer *layer, const mix_call_args *args) {
  if (args->arguments && mix_list_count(args->arguments) && mix_list_get(args->arguments, 0)) return true;
  return mix_fail_type("%s: the value is missing; pass it in .arguments, and the key after it", layer->name);
}

mix_tensor *mix_attention_key(const mix_call_args *args) {
  mix_tensor *key = mix_list_count(args->arguments) > 1 ? mix_list_get(args->arguments, 1) : NULL;
  return key ? key : mix_call_argument(args, 0);
}

bool mix_head_attention_build(mix_layer *layer, mix_head_attention *attention, mix_axes softmax_axes,
                              uint64_t seed) {
  attention->softmax =
      mix_softmax_layer(.name = "softmax", .policy = layer->policy, .semantics = layer->semantics,
                        .axis = softmax_axes, .robust_masking = attention->robust);
  attention->dropout = mix_dropout(.name = "dropout", .policy = layer->policy, .semantics = layer->semantics,
                                   .rate = attention->rate, .seed = seed);
  if (!attention->softmax || !attention->dropout) return false;
  attention->softmax->attribute = "_softmax";
  attention->dropout->attribute = "_dropout_layer";
  return mix_layer_add_layer(layer, attention->softmax) && mix_layer_add_layer(layer, attention->dropout);
}

/* Axes for the heads, before the attention axes of queries and keys. */
static mix_tensor *expanded_mask(mix_tensor *mask, int rank, int attention_axes) {
  while (mask && mix_tensor_shape(mask).rank < rank) mask = mix_expand_dims(mask, -2 * attention_axes - 1);
  return mask;
}

bool mix_attention_promote(mix_tensor **tensors, int count) {
  mix_dtype common = mix_tensor_dtype(tensors[0]);
  for (int i = 1; i < count; i++) {
    const mix_dtype other = mix_tensor_dtype(tensors[i]);
    if (other == common) continue;
    if (mix_dtype_size(other) == mix_dtype_size(common))
      common = MIX_FLOAT32;
    else if (mix_dtype_size(other) > mix_dtype_size(common))
      common = other;
  }
  for (int i = 0; i < count; i++)
    if (mix_tensor_dtype(tensors[i]) != common) tensors[i] = mix_cast(tensors[i], common);
  return !mix_failed();
}

/* While formats are simulated the attention's own products have names, as if they were layers, by which they
 * are counted and excepted. */
static mix_tensor *own_product(const char *name, const char *equation, mix_tensor *const operands[2]) {
  const char *layer = mix_graph_scope();
  if (mix_simulation_now().format && layer) {
    mix_text path = {.grows = true};
    mix_text_put(&path, "%s/%s", layer, name);
    mix_graph_scope_set(path.failed ? layer : mix_intern(path.text));
    mix_free(path.text);
  }
  mix_tensor *product = mix_failed() ? NULL : mix_einsum(equation, 2, operands);
  mix_graph_scope_set(layer);
  return product;
}

static mix_tensor *scores_of(const mix_head_attention *attention, mix_tensor *query, mix_tensor *key) {
  return own_product("scores", attention->dot,
                     attention->query_first ? (mix_tensor *[]){query, key} : (mix_tensor *[]){key, query});
}

static mix_tensor *combined(const mix_head_attention *attention, mix_tensor *probabilities,
                            mix_tensor *value) {
  mix_tensor *operands[2] = {probabilities, value};
  return probabilities && mix_attention_promote(operands, 2)
             ? own_product("combined", attention->combine, operands)
             : NULL;
}

/* (batch, keys, groups, dimension) -> a head of its own for each head of the query. */
static mix_tensor *repeated(mix_tensor *heads, int64_t count) {
  const mix_shape shape = mix_tensor_shape(heads);
  if (mix_failed() || shape.rank != 4 || shape.dims[2] == count) return heads;
  mix_tensor *head = mix_range(0, (double)count, 1, MIX_INT32);
  return mix_gather(heads, mix_floor_divide(head, mix_scalar_like(head, (double)(count / shape.dims[2]))), 2);
}

/* Without all scores in memory: the op rounds as the other two forms do. `wide`: as attend_in_float32. */
static mix_list *attend_by_blocks(const mix_semantics *rules, const mix_head_attention *attention,
                                  const mix_call_args *args, mix_tensor *const heads[3], mix_tensor *mask,
                                  bool wide) {
  const bool drops = attention->rate > 0 && args->training;
  mix_tensor *query = heads[0];
  mix_attention_attributes attributes = {.scale = attention->scale,
                                         .mask_value = MIX_MASKED_SCORE,
                                         .mask_zeroes = attention->zeroes_masked,
                                         .causal = args->use_causal_mask};
  if (!wide) {
    query = mix_times(query, attention->scale);
    attributes.scale = 1;
    attributes.mask_value = mix_tensor_dtype(query) == MIX_FLOAT16 ? rules->softmax_mask_float16 : -1e9;
    attributes.mask_adds = !rules->softmax_mask_where && !attention->robust;
    attributes.mask_zeroes = rules->softmax_mask_where;
    attributes.rate = drops ? attention->rate : 0;
  }
  mask = mask ? expanded_mask(mix_cast(mask, MIX_BOOL), 4, 1)
              : mix_tensor_from((const bool[]){true}, MIX_BOOL, MIX_SHAPE(1, 1, 1, 1));
  mix_tensor *state = drops ? mix_generator_draw(mix_list_get(attention->dropout->generators, 0))
                            : mix_tensor_from((const int64_t[]){0, 0}, MIX_INT64, MIX_SHAPE(2));
  if (mix_failed()) return NULL;
  return mix_one_result(
      mix_apply(&mix_op_attention, &attributes, 5, (mix_tensor *[]){query, heads[1], heads[2], mask, state}));
}

/* Scores over one axis that nobody asks for. Not for the rewrite, whose lists name the ops of the plain form;
 * for simulated formats, which round operands of products; for float64, which has no fast kernel; for a mask
 * of numbers that the plain form would not round to bool.
 */
static bool takes_blocks(const mix_head_attention *attention, const mix_call_args *args,
                         mix_tensor *const heads[3], const mix_tensor *mask, bool wide) {
  return !args->return_attention_scores && !args->symbolic && attention->attention_axes == 1 &&
         !attention->bias && !attention->slopes && !attention->soft_cap &&
         mix_tensor_shape(heads[0]).rank == 4 && attention->rate < 1 &&
         mix_tensor_dtype(heads[0]) != MIX_FLOAT64 && mix_amp_target() == MIX_DTYPE_NONE &&
         !mix_simulation_now().format &&
         (!mask || wide || attention->robust || mix_tensor_dtype(mask) == MIX_BOOL);
}

mix_tensor *mix_adjust_scores(const mix_head_attention *attention, mix_tensor *scores, mix_tensor *bias) {
  if (bias && scores) scores = mix_add(scores, mix_cast(bias, mix_tensor_dtype(scores)));
  if (!attention->soft_cap || !scores) return scores;
  return mix_times(mix_tanh(mix_over(scores, attention->soft_cap)), attention->soft_cap);
}

static int64_t keys_of(mix_tensor *const heads[3]) { return mix_tensor_shape(heads[1]).dims[1]; }

/* The bias of a whole sequence; that of slopes is (heads, 1, keys). NULL without an error: none, or keys of
 * an unknown number, which only symbolic calls have. */
static mix_tensor *bias_of(const mix_head_attention *attention, int64_t keys) {
  if (!attention->slopes || keys == MIX_UNKNOWN) return attention->bias;
  mix_tensor *slopes = mix_reshape(attention->slopes, MIX_SHAPE(-1, 1, 1));
  return mix_multiply(slopes, mix_range(0, (double)keys, 1, MIX_FLOAT32));
}

/* Everything in the compute dtype. */
static mix_list *attend_plainly(const mix_head_attention *attention, const mix_call_args *args,
                                mix_tensor *const heads[3], mix_tensor *mask) {
  mix_tensor *query = mix_multiply(heads[0], mix_scalar_like(heads[0], attention->scale));
  mix_tensor *scores = scores_of(attention, query, heads[1]);
  scores = scores ? mix_adjust_scores(attention, scores, bias_of(attention, keys_of(heads))) : NULL;
  if (!scores) return NULL;
  mask = expanded_mask(mask, mix_tensor_shape(scores).rank, attention->attention_axes);
  mix_tensor *probabilities = mix_call(attention->softmax, scores, .mask = mask), *kept = probabilities;
  if (attention->rate > 0) kept = mix_call(attention->dropout, probabilities);
  mix_tensor *output = combined(attention, kept, heads[2]);
  if (!output) return NULL;
  return args->return_attention_scores ? mix_list_of(output, probabilities) : mix_list_of(output);
}

/* Scores and softmax in float32, or float64. */
static mix_list *attend_in_float32(const mix_head_attention *attention, mix_tensor *const heads[3],
                                   mix_tensor *mask) {
  const mix_dtype given = mix_tensor_dtype(heads[1]), wide = mix_dtype_is_16_bit(given) ? MIX_FLOAT32 : given;
  mix_tensor *scores = mix_cast(scores_of(attention, heads[0], heads[1]), wide);
  if (!scores) return NULL;
  scores = mix_times(scores, attention->scale);
  scores = mix_adjust_scores(attention, scores, bias_of(attention, keys_of(heads)));
  mask = mask && scores ? expanded_mask(mix_cast(mask, MIX_BOOL), mix_tensor_shape(scores).rank, 1) : NULL;
  if (mask) scores = mix_select(mask, scores, mix_scalar_like(scores, MIX_MASKED_SCORE));
  mix_tensor *weights = mix_softmax(scores);
  if (mask && weights && attention->zeroes_masked)
    weights = mix_select(mask, weights, mix_scalar_like(weights, 0));
  return mix_one_result(combined(attention, mix_cast(weights, given), heads[2]));
}

mix_list *mix_attend(const mix_semantics *rules, const mix_head_attention *attention,
                     const mix_call_args *args, mix_tensor *const given[3], mix_tensor *mask) {
  if (mix_failed()) return NULL;
  mix_tensor *heads[3] = {given[0], given[1], given[2]};
  if (!mix_attention_promote(heads, 3)) return NULL;
  const mix_shape query = mix_tensor_shape(heads[0]), key = mix_tensor_shape(heads[1]);
  const bool wide = rules->attention_scores_float32 && attention->rate == 0 &&
                    !args->return_attention_scores && query.rank == 4;
  if (takes_blocks(attention, args, heads, mask, wide))
    return attend_by_blocks(rules, attention, args, heads, mask, wide);
  mix_tensor *plain[3] = {heads[0], repeated(heads[1], query.dims[2]), repeated(heads[2], query.dims[2])};
  if (args->use_causal_mask) {
    mix_tensor *causal = mix_causal_mask(query.dims[1], key.dims[1]);
    mask = mask && causal ? mix_logical_and(mix_cast(mask, MIX_BOOL), causal) : causal ? causal : mask;
  }
  if (mix_failed()) return NULL;
  return wide ? attend_in_float32(attention, plain, mask) : attend_plainly(attention, args, plain, mask);
}
