/* Attention and AdditiveAttention: of a query, a value and a key, without heads and projections. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include <string.h>

typedef struct dense_attention {
  union {
    mix_attention_options dot;
    mix_additive_attention_options additive;
  } options;
  mix_variable *scale, *score_weight; /* owned by the layer's list; NULL: none */
  double dropout;
  mix_generator *generator;
} dense_attention;

static bool given_a_list(const mix_layer *layer, bool is_list, int count) {
  if (is_list && (count == 2 || count == 3)) return true;
  return mix_fail_value("%s: it is called with a list [query, value] or [query, value, key]; got %d %s",
                        layer->name, count, is_list ? "tensors" : "tensor that is no list");
}

static mix_variable *add_scalar(mix_layer *layer, const char *name) {
  return mix_layer_add_weight(layer, name, .shape = {.rank = 0}, .initializer = "ones");
}

static mix_status attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  dense_attention *a = layer->data;
  if (!given_a_list(layer, layer->built_for_list, count)) return mix_error();
  if (a->options.dot.use_scale) a->scale = add_scalar(layer, "scale");
  if (!strcmp(a->options.dot.score_mode, "concat"))
    a->score_weight = add_scalar(layer, "concat_score_weight");
  return mix_error();
}

static mix_status additive_attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  dense_attention *a = layer->data;
  if (!given_a_list(layer, layer->built_for_list, count)) return mix_error();
  if (a->options.additive.no_scale) return MIX_OK;
  const mix_shape shape = shapes[layer->semantics->additive_attention_scales_query ? 0 : 1];
  if (!shape.rank || shape.dims[shape.rank - 1] < 0)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got shape %s; expected a known last dimension", layer->name,
                           MIX_SHAPE_TEXT(shape));
  a->scale = mix_layer_add_weight(layer, "scale", .shape = MIX_SHAPE(shape.dims[shape.rank - 1]));
  return mix_error();
}

/* ---- scores ---- */

/* tanh(scale (query + key)) over (batch, queries, keys, dim). */
static mix_tensor *activated_sums(mix_tensor *query, mix_tensor *key, mix_tensor *scale) {
  mix_tensor *sums = mix_add(mix_expand_dims(query, -2), mix_expand_dims(key, -3));
  return mix_tanh(scale ? mix_multiply(scale, sums) : sums);
}

static mix_tensor *attention_scores(const mix_layer *layer, mix_tensor *query, mix_tensor *key) {
  const dense_attention *a = layer->data;
  mix_tensor *scale = a->scale ? mix_variable_value(a->scale) : NULL;
  if (!a->score_weight) {
    mix_tensor *scores = mix_matmul(query, key, false, true);
    return scale ? mix_multiply(scores, scale) : scores;
  }
  mix_tensor *sum = mix_reduce_sum(activated_sums(query, key, scale), MIX_AXES(-1), false);
  return mix_multiply(mix_variable_value(a->score_weight), sum);
}

static mix_tensor *additive_scores(const mix_layer *layer, mix_tensor *query, mix_tensor *key) {
  const dense_attention *a = layer->data;
  mix_tensor *terms = activated_sums(query, key, NULL);
  if (a->scale) terms = mix_multiply(mix_variable_value(a->scale), terms);
  return mix_reduce_sum(terms, MIX_AXES(-1), false);
}

/* ---- the call ---- */

static mix_tensor *mask_at(const mix_call_args *args, int index, int axis) {
  mix_tensor *mask = args->masks ? mix_list_get(args->masks, index) : NULL;
  return mask ? mix_expand_dims(mix_cast(mask, MIX_BOOL), axis) : NULL;
}

/* Masked scores become lower by a constant. */
static mix_tensor *masked_scores(const mix_layer *layer, mix_tensor *scores, mix_tensor *mask) {
  if (!mask || !scores) return scores;
  const double lower = mix_tensor_dtype(scores) == MIX_FLOAT16 ? 65504 : 1e9;
  mix_tensor *constant = mix_scalar_like(scores, lower);
  if (layer->semantics->attention_mask_where) return mix_select(mask, scores, mix_subtract(scores, constant));
  mix_tensor *masked = mix_cast(mix_logical_not(mask), mix_tensor_dtype(scores));
  return mix_subtract(scores, mix_multiply(constant, masked));
}

static mix_tensor *masked_output(const mix_layer *layer, mix_tensor *output, mix_tensor *mask) {
  if (!mask || !output) return output;
  if (layer->semantics->attention_mask_where) return mix_select(mask, output, mix_scalar_like(output, 0));
  return mix_multiply(output, mix_cast(mask, mix_tensor_dtype(output)));
}

static mix_list *attend(mix_layer *layer, const mix_call_args *args,
                        mix_tensor *(*scores_of)(const mix_layer *, mix_tensor *, mix_tensor *)) {
  const dense_attention *a = layer->data;
  const int count = mix_list_count(args->inputs);
  if (!given_a_list(layer, args->inputs_are_list, count)) return NULL;
  mix_tensor *query = mix_call_input(args, 0), *value = mix_call_input(args, 1);
  mix_tensor *scores = scores_of(layer, query, count > 2 ? mix_call_input(args, 2) : value);
  if (!scores) return NULL;
  mix_tensor *mask = mask_at(args, 1, -2);
  const mix_shape shape = mix_tensor_shape(scores);
  if (args->use_causal_mask)
    mask = mix_both_masks(mask, mix_causal_mask(shape.dims[shape.rank - 2], shape.dims[shape.rank - 1]));
  mix_tensor *weights = mix_softmax(masked_scores(layer, scores, mask));
  if (weights && args->training && !args->symbolic && a->dropout > 0)
    weights = mix_dropped(weights, a->dropout, shape, a->generator);
  mix_tensor *output = masked_output(layer, mix_matmul(weights, value, false, false), mask_at(args, 0, -1));
  if (!output) return NULL;
  return args->return_attention_scores ? mix_list_of(output, weights) : mix_list_of(output);
}

static mix_list *attention_call(mix_layer *layer, const mix_call_args *args) {
  return attend(layer, args, attention_scores);
}
static mix_list *additive_attention_call(mix_layer *layer, const mix_call_args *args) {
  return attend(layer, args, additive_scores);
}

static mix_tensor *attention_compute_mask(mix_layer *layer, const mix_call_args *args) {
  return mix_call_mask(args);
}

static mix_shape attention_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape shape = input_shapes[0];
  if (count > 1 && shape.rank && input_shapes[1].rank)
    shape.dims[shape.rank - 1] = input_shapes[1].dims[input_shapes[1].rank - 1];
  return shape;
}

static bool make_generator(mix_layer *layer, double dropout, uint64_t seed) {
  dense_attention *a = layer->data;
  a->dropout = dropout;
  return dropout == 0 || (a->generator = mix_layer_generator(layer, seed));
}
static bool attention_ready(mix_layer *layer) {
  const mix_attention_options *o = layer->data;
  return make_generator(layer, o->dropout, o->seed);
}
static bool additive_attention_ready(mix_layer *layer) {
  const mix_additive_attention_options *o = layer->data;
  return make_generator(layer, o->dropout, o->seed);
}

/* tf_keras writes the dropout first. */
#define NEWER .only = MIX_RULE(attention_newer_options)
#define OLDER .except = MIX_RULE(attention_newer_options)
#define FIELD(member) MIX_FIELD(mix_attention_options, member)
static const mix_field_row attention_fields[] = {
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL, OLDER},
    {FIELD(use_scale), &mix_field_boolean},
    {FIELD(score_mode), &mix_field_text, .text = "dot", .choices = "dot|concat"},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL, NEWER},
    {FIELD(seed), &mix_field_seed, NEWER},
    {0}};
MIX_LAYER_KIND(attention, mix_attention_options, .fields = attention_fields, .ready = attention_ready,
               .call_is_attention = true,
               MIX_LAYER_CLASS(.name = "Attention", .instance_size = sizeof(dense_attention),
                               .build = attention_build, .call = attention_call,
                               .output_shape = attention_output_shape, .supports_masking = true,
                               .compute_mask = attention_compute_mask))

#undef FIELD
#define FIELD(member) MIX_FIELD(mix_additive_attention_options, member)
static const mix_field_row additive_attention_fields[] = {
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL, OLDER},
    {"use_scale", offsetof(mix_additive_attention_options, no_scale), &mix_field_negated},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL, NEWER},
    {FIELD(seed), &mix_field_seed, NEWER},
    {0}};
MIX_LAYER_KIND(additive_attention, mix_additive_attention_options, .fields = additive_attention_fields,
               .ready = additive_attention_ready, .call_is_attention = true,
               MIX_LAYER_CLASS(.name = "AdditiveAttention", .instance_size = sizeof(dense_attention),
                               .build = additive_attention_build, .call = additive_attention_call,
                               .output_shape = attention_output_shape, .supports_masking = true,
                               .compute_mask = attention_compute_mask))
