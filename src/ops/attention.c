/* Attention over heads without the scores as a value: kernels compute them block by block, forward and
 * backward (Rabe, Staats: Self-attention does not need O(n^2) memory; arXiv:2112.05682). */
#include "ops/rules.h"
#include <mixtape/einsum.h>
#include <mixtape/random.h>

enum { QUERY, KEY, VALUE, MASK, STATE, OUTPUT_GRADIENT };

/* query (batch, queries, heads, dim), key (batch, keys, groups, dim), value (batch, keys, groups, dim of
 * value); heads are a multiple of groups. */
static bool heads_fit(mix_node *node, mix_shape *result) {
  const mix_shape *q = &mix_input_value(node, QUERY)->shape, *k = &mix_input_value(node, KEY)->shape,
                  *v = &mix_input_value(node, VALUE)->shape, *mask = &mix_input_value(node, MASK)->shape,
                  *state = &mix_input_value(node, STATE)->shape;
  int64_t merged, keys, batch, groups;
  if (q->rank != 4 || k->rank != 4 || v->rank != 4 || mask->rank != 4)
    return mix_rule_fail(node, "expected rank 4: batch, places, heads, dimension; and the mask's");
  if (state->rank != 1 || (state->dims[0] != 2 && state->dims[0] != MIX_UNKNOWN))
    return mix_rule_fail(node, "expected a state (2): key and counter");
  if (!mix_dimension_merge(q->dims[0], k->dims[0], &batch) ||
      !mix_dimension_merge(batch, v->dims[0], &batch) ||
      !mix_dimension_merge(k->dims[1], v->dims[1], &keys) ||
      !mix_dimension_merge(k->dims[2], v->dims[2], &groups) ||
      !mix_dimension_merge(q->dims[3], k->dims[3], &merged))
    return mix_rule_fail(node, "batch, keys, groups or dimensions differ");
  if (q->dims[2] >= 0 && groups >= 0 && (groups == 0 ? q->dims[2] != 0 : q->dims[2] % groups != 0))
    return mix_rule_fail(node, "%lld heads of the query for %lld of keys; expected a multiple",
                         (long long)q->dims[2], (long long)groups);
  const mix_shape scores = {.rank = 4, .dims = {batch, q->dims[2], q->dims[1], keys}};
  if (!mix_shape_broadcasts_to(*mask, scores))
    return mix_rule_fail(node, "the mask does not broadcast to (batch, heads, queries, keys)");
  *result = (mix_shape){.rank = 4, .dims = {batch, q->dims[1], q->dims[2], v->dims[3]}};
  return true;
}

static bool attention_infer(mix_node *node) {
  mix_shape result;
  return heads_fit(node, &result) && mix_rule_output(node, 0, result);
}

/* The gradients of query, key and value. */
static bool attention_grad_infer(mix_node *node) {
  mix_shape result;
  if (!heads_fit(node, &result)) return false;
  const mix_shape *given = &mix_input_value(node, OUTPUT_GRADIENT)->shape;
  for (int i = 0; i < 4; i++)
    if (given->rank != 4 || !mix_dimension_merge(given->dims[i], result.dims[i], &result.dims[i]))
      return mix_rule_fail(node, "the gradient of the result has another shape");
  for (int i = 0; i < 3; i++)
    if (!mix_rule_output(node, i, mix_input_value(node, i)->shape)) return false;
  return true;
}

/* Random numbers are counted over the whole batch. */
static bool attention_rows(const mix_row_query *query) {
  const mix_attention_attributes *attributes = query->attributes;
  for (int i = 0; i < query->input_count; i++)
    if (i != MASK && i != STATE && !query->batched[i]) return false;
  return attributes->rate == 0 && !query->batched[STATE] &&
         (query->batched[MASK] || query->inputs[MASK].dims[0] == 1);
}

static void attention_gradient(mix_node *node, mix_tensor *const *output_gradients,
                               mix_tensor **input_gradients) {
  mix_tensor *operands[OUTPUT_GRADIENT + 1];
  for (int i = 0; i < OUTPUT_GRADIENT; i++) operands[i] = mix_node_input(node, i);
  operands[OUTPUT_GRADIENT] = output_gradients[0];
  mix_tensor *first = mix_apply(&mix_op_attention_grad, node->attributes, OUTPUT_GRADIENT + 1, operands);
  for (int i = 0; first && i < 3; i++) input_gradients[i] = i ? mix_tensor_of(first->node, i) : first;
}

/* ---- the plain form, which gradients of the gradient are made of ---- */

static mix_tensor *repeated(mix_tensor *heads, int64_t count) {
  const int64_t groups = mix_tensor_shape(heads).dims[2];
  if (mix_failed() || groups == count || groups < 1) return heads;
  mix_tensor *head = mix_range(0, (double)count, 1, MIX_INT32);
  return mix_gather(heads, mix_floor_divide(head, mix_scalar_like(head, (double)(count / groups))), 2);
}

/* A constant that is added gives scores that are rounded to the dtype once more. */
static mix_tensor *masked(const mix_attention_attributes *a, mix_tensor *scores, mix_tensor *mask,
                          mix_dtype given) {
  mix_tensor *constant = mix_scalar_like(scores, a->mask_value);
  if (!a->mask_adds || !scores) return mix_select(mask, scores, constant);
  mix_tensor *sum = mix_select(mask, scores, mix_add(scores, constant));
  return mix_cast(mix_cast(sum, given), mix_tensor_dtype(scores));
}

mix_tensor *mix_attention_plain(mix_tensor *const operands[], const mix_attention_attributes *a) {
  mix_tensor *query = operands[QUERY], *mask = operands[MASK];
  const int64_t heads = mix_tensor_shape(query).dims[2];
  const mix_dtype given = mix_tensor_dtype(query), wide = mix_dtype_is_16_bit(given) ? MIX_FLOAT32 : given;
  mix_tensor *key = repeated(operands[KEY], heads), *value = repeated(operands[VALUE], heads);
  mix_tensor *scores = mix_cast(mix_einsum("bqnh,bknh->bnqk", 2, (mix_tensor *[]){query, key}), wide);
  if (!scores) return NULL;
  const mix_shape shape = mix_tensor_shape(scores);
  if (a->scale != 1) scores = mix_times(scores, a->scale);
  if (a->causal) {
    mix_tensor *rows = mix_expand_dims(mix_range(0, (double)shape.dims[2], 1, MIX_INT32), 1);
    mask = mix_logical_and(mask, mix_greater_equal(rows, mix_range(0, (double)shape.dims[3], 1, MIX_INT32)));
  }
  mix_tensor *weights = mix_cast(mix_softmax(masked(a, scores, mask, given)), given);
  if (!weights) return NULL;
  if (a->mask_zeroes) weights = mix_select(mask, weights, mix_scalar_like(weights, 0));
  if (a->rate > 0) {
    mix_tensor *drawn = mix_stateless_uniform(operands[STATE], shape, given);
    mix_tensor *kept = mix_times(weights, 1 / (1 - a->rate));
    weights = mix_select(mix_greater_equal(drawn, mix_scalar_like(drawn, a->rate)), kept,
                         mix_scalar_like(weights, 0));
  }
  return mix_einsum("bnqk,bknh->bqnh", 2, (mix_tensor *[]){weights, value});
}

/* The gradients of the plain form, differentiated once more. */
static void attention_grad_gradient(mix_node *node, mix_tensor *const *output_gradients,
                                    mix_tensor **input_gradients) {
  mix_tensor *operands[OUTPUT_GRADIENT + 1];
  mix_list *heads = mix_list_new(0, NULL), *all = mix_list_new(0, NULL), *targets = mix_list_new(0, NULL),
           *upstream = mix_list_new(0, NULL);
  mix_tape *outer = mix_tape_begin();
  for (int i = 0; i <= OUTPUT_GRADIENT; i++) {
    operands[i] = mix_node_input(node, i);
    if (i == MASK || i == STATE) continue;
    mix_tape_watch(outer, operands[i]);
    mix_list_append(all, operands[i]);
    if (i < MASK) mix_list_append(heads, operands[i]);
  }
  mix_tape *inner = mix_tape_begin();
  for (int i = 0; i < MASK; i++) mix_tape_watch(inner, operands[i]);
  mix_tensor *y = mix_attention_plain(operands, node->attributes);
  mix_tape_end(inner);
  mix_list *first =
      y ? mix_tape_gradient_from(inner, mix_list_of(y), mix_list_of(operands[OUTPUT_GRADIENT]), heads) : NULL;
  mix_tape_end(outer);
  for (int i = 0; first && i < MASK; i++) {
    if (!output_gradients[i] || !mix_list_get(first, i)) continue;
    mix_list_append(targets, mix_list_get(first, i));
    mix_list_append(upstream, output_gradients[i]);
  }
  if (mix_failed() || !mix_list_count(targets)) return;
  mix_list *second = mix_tape_gradient_from(outer, targets, upstream, all);
  for (int i = 0; second && i <= MASK; i++)
    input_gradients[i < MASK ? i : OUTPUT_GRADIENT] = mix_list_get(second, i);
}

#define FIELD(name, kind)                                                                                    \
  { #name, kind, offsetof(mix_attention_attributes, name) }
static const mix_attribute_row attention_fields[] = {FIELD(scale, MIX_ATTRIBUTE_DOUBLE),
                                                     FIELD(mask_value, MIX_ATTRIBUTE_DOUBLE),
                                                     FIELD(rate, MIX_ATTRIBUTE_DOUBLE),
                                                     FIELD(mask_adds, MIX_ATTRIBUTE_BOOL),
                                                     FIELD(mask_zeroes, MIX_ATTRIBUTE_BOOL),
                                                     FIELD(causal, MIX_ATTRIBUTE_BOOL),
                                                     {NULL}};

const mix_op mix_op_attention = {.name = "attention",
                                 .signature = "T,T,T,b,l->T",
                                 .types = "float",
                                 .attributes_size = sizeof(mix_attention_attributes),
                                 .infer = attention_infer,
                                 .row_independent = attention_rows,
                                 .gradient = attention_gradient,
                                 .fields = attention_fields,
                                 .accumulator = MIX_FLOAT32};

const mix_op mix_op_attention_grad = {.name = "attention_grad",
                                      .signature = "T,T,T,b,l,T->T,T,T",
                                      .types = "float",
                                      .attributes_size = sizeof(mix_attention_attributes),
                                      .infer = attention_grad_infer,
                                      .row_independent = attention_rows,
                                      .gradient = attention_grad_gradient,
                                      .fields = attention_fields,
                                      .accumulator = MIX_FLOAT32};
