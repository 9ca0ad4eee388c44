/* The layers of T5 (Raffel et al.; arXiv:1910.10683), whose scores have a learned bias of the distance. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include "nn/layers/hub/hub.h"
#include "ops/with_number.h"
#include <math.h>
#include <mixtape/einsum.h>

/* ---- T5LayerNorm ---- */

typedef struct t5_norm {
  mix_hub_t5_norm_options options;
  mix_variable *weight;
} t5_norm;

static mix_status norm_build(mix_layer *layer, int count, const mix_shape *shapes) {
  t5_norm *n = layer->data;
  n->weight = mix_layer_add_weight(layer, "weight", .shape = MIX_SHAPE(shapes[0].dims[shapes[0].rank - 1]),
                                   .initializer = "ones");
  return mix_error();
}

static mix_list *norm_call(mix_layer *layer, const mix_call_args *args) {
  const t5_norm *n = layer->data;
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *mean = x ? mix_reduce_mean(mix_square(x), MIX_AXES(-1), true) : NULL;
  if (!mean) return NULL;
  x = mix_multiply(x, mix_rsqrt(mix_plus(mean, n->options.epsilon)));
  return mix_one_result(x ? mix_multiply(mix_variable_value(n->weight), x) : NULL);
}

static const mix_field_row norm_fields[] = {{MIX_FIELD(mix_hub_t5_norm_options, epsilon), &mix_field_number},
                                            {0}};
MIX_LAYER_KIND_ONLY(hub_t5_norm, mix_hub_t5_norm_options, .fields = norm_fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "T5LayerNorm", .instance_size = sizeof(t5_norm),
                                    .build = norm_build, .call = norm_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))

/* ---- T5MultiHeadAttention ---- */

enum { BUCKETS = 32, MAX_DISTANCE = 128 };

typedef struct attention {
  mix_hub_t5_options options;
  mix_layer *query, *key, *value, *output, *dropout; /* borrowed */
  mix_variable *bias;                                /* NULL: given, or none */
} attention;

static mix_layer *project(mix_layer *layer, const char *name, int64_t units, double stddev, mix_shape shape) {
  mix_layer *made =
      mix_hub_layer(dense, layer, name, .units = units, .no_bias = true,
                    .kernel_initializer_object = mix_initializer_new("random_normal", .stddev = stddev));
  return mix_hub_add(layer, made, name, shape);
}

static mix_status attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  attention *a = layer->data;
  const mix_hub_t5_options *o = &a->options;
  mix_shape x = shapes[0], inner = x;
  const int64_t width = o->num_heads * o->key_value_dim;
  const double stddev = 1 / sqrt((double)width);
  inner.dims[2] = width;
  if (o->has_bias)
    a->bias =
        mix_layer_add_weight(layer, "embeddings", .shape = MIX_SHAPE(BUCKETS, o->num_heads),
                             .initializer_object = mix_initializer_new("random_normal", .stddev = stddev));
  a->query = project(layer, "query_projector", width, stddev / sqrt((double)o->key_value_dim), x);
  a->key = project(layer, "key_projector", width, stddev, x);
  a->value = project(layer, "value_projector", width, stddev, x);
  a->output = project(layer, "output_projector", o->hidden_dim, stddev, inner);
  a->dropout = mix_hub_dropout(layer, "dropout_layer", o->dropout, x);
  return mix_error();
}

/* Half of the buckets, on each side where both are seen, are single distances, the others logarithmic. */
static int32_t bucket_of(int64_t distance, bool both_sides) {
  const int buckets = both_sides ? BUCKETS / 2 : BUCKETS, exact = buckets / 2;
  const int32_t side = both_sides && distance > 0 ? buckets : 0;
  const int64_t size = both_sides ? (distance < 0 ? -distance : distance) : distance < 0 ? -distance : 0;
  if (size < exact) return side + (int32_t)size;
  const float place = logf((float)size / (float)exact) / (float)log((double)MAX_DISTANCE / (double)exact) *
                      (float)(buckets - exact);
  const int32_t bucket = exact + (int32_t)fminf(place, (float)buckets);
  return side + (bucket < buckets ? bucket : buckets - 1);
}

/* (1, heads, queries, keys). */
static mix_tensor *bias_of(const attention *a, int64_t queries, int64_t keys) {
  int32_t *values = mix_calloc((size_t)(queries * keys) + 1, sizeof *values);
  for (int64_t i = 0; values && i < queries; i++)
    for (int64_t j = 0; j < keys; j++) values[i * keys + j] = bucket_of(j - i, !a->options.is_decoder);
  mix_tensor *table = values ? mix_tensor_from(values, MIX_INT32, MIX_SHAPE(queries, keys)) : NULL;
  mix_free(values);
  mix_tensor *rows = table ? mix_gather(mix_variable_value(a->bias), table, 0) : NULL;
  return rows ? mix_expand_dims(mix_transpose(rows, MIX_AXES(2, 0, 1)), 0) : NULL;
}

/* (batch, positions, heads, dimension) */
static mix_tensor *heads_of(const attention *a, mix_layer *projector, mix_tensor *x) {
  mix_tensor *y = x ? mix_call(projector, x) : NULL;
  if (!y) return NULL;
  const mix_shape shape = mix_tensor_shape(y);
  return mix_reshape(y,
                     MIX_SHAPE(shape.dims[0], shape.dims[1], a->options.num_heads, a->options.key_value_dim));
}

/* What is added to scores: the given bias has the mask already. */
static mix_tensor *added_bias(const attention *a, mix_tensor *mask, mix_tensor *given, mix_tensor *scores) {
  const mix_shape shape = mix_tensor_shape(scores);
  if (given) return given;
  mix_tensor *bias = a->bias ? bias_of(a, shape.dims[2], shape.dims[3])
                             : mix_fill(MIX_SHAPE(1, shape.dims[1], shape.dims[2], shape.dims[3]), 0,
                                        mix_tensor_dtype(scores));
  if (!bias || !mask) return bias;
  mask = mix_cast(mix_expand_dims(mask, 1), mix_tensor_dtype(bias));
  return mix_add(bias, mix_times(mix_subtract(mix_scalar_like(mask, 1), mask), -1e9));
}

static mix_tensor *argument(const mix_call_args *args, int index) {
  return args->arguments && index < mix_list_count(args->arguments) ? mix_list_get(args->arguments, index)
                                                                    : NULL;
}

static mix_list *attention_call(mix_layer *layer, const mix_call_args *args) {
  const attention *a = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *mask = argument(args, 0), *second = argument(args, 1);
  mix_tensor *source = a->options.is_cross && second ? second : x;
  if (!x || !source) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (args->symbolic)
    return mix_list_of(mix_hub_symbolic(mix_tensor_dtype(x), shape),
                       mix_hub_symbolic(mix_tensor_dtype(x), MIX_SHAPE(MIX_UNKNOWN, a->options.num_heads,
                                                                       MIX_UNKNOWN, MIX_UNKNOWN)));
  mix_tensor *query = heads_of(a, a->query, x), *key = heads_of(a, a->key, source),
             *value = heads_of(a, a->value, source);
  mix_tensor *scores = mix_failed() ? NULL : mix_einsum("bqnd,bknd->bnqk", 2, (mix_tensor *[]){query, key});
  mix_tensor *bias = scores ? added_bias(a, mask, a->options.is_cross ? NULL : second, scores) : NULL;
  if (!bias) return NULL;
  scores = mix_add(scores, mix_cast(bias, mix_tensor_dtype(scores)));
  mix_tensor *kept = mix_call(a->dropout, mix_softmax(scores));
  mix_tensor *mixed[2] = {kept, value};
  mix_tensor *result =
      kept && mix_attention_promote(mixed, 2) ? mix_einsum("bnqk,bknd->bqnd", 2, mixed) : NULL;
  if (!result) return NULL;
  result = mix_reshape(
      result, MIX_SHAPE(shape.dims[0], shape.dims[1], a->options.num_heads * a->options.key_value_dim));
  result = mix_call(a->output, result);
  return result ? mix_list_of(result, bias) : NULL;
}

#define FIELD(member) MIX_FIELD(mix_hub_t5_options, member)
static const mix_field_row fields[] = {
    {FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(hidden_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(intermediate_dim), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {FIELD(key_value_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {FIELD(layer_norm_epsilon), &mix_field_number},
    {FIELD(activation), &mix_field_hub_activation},
    {FIELD(is_decoder), &mix_field_boolean},
    {FIELD(is_gated), &mix_field_boolean},
    {FIELD(has_bias), &mix_field_boolean},
    {FIELD(is_cross), &mix_field_boolean},
    {0}};
MIX_LAYER_KIND_ONLY(hub_t5_attention, mix_hub_t5_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "T5MultiHeadAttention", .instance_size = sizeof(attention),
                                    .build = attention_build, .call = attention_call))

/* ---- T5TransformerLayer ---- */

typedef struct t5_layer {
  mix_hub_t5_options options;
  mix_layer *attention, *attention_norm, *attention_dropout, *cross, *cross_norm, *cross_dropout;
  mix_layer *input, *gate, *output, *norm, *dropout;
} t5_layer;

static mix_layer *add_attention(mix_layer *layer, const char *name, bool cross, mix_shape x) {
  const mix_hub_t5_options *o = &((const t5_layer *)layer->data)->options;
  mix_layer *made =
      mix_hub_layer(hub_t5_attention, layer, name, .num_heads = o->num_heads, .hidden_dim = o->hidden_dim,
                    .key_value_dim = o->key_value_dim, .dropout = o->dropout, .is_decoder = o->is_decoder,
                    .has_bias = o->has_bias && !cross, .is_cross = cross);
  return mix_hub_add(layer, made, name, x);
}

static mix_layer *add_norm(mix_layer *layer, const char *name, mix_shape x) {
  const t5_layer *t = layer->data;
  return mix_hub_add(layer, mix_hub_layer(hub_t5_norm, layer, name, .epsilon = t->options.layer_norm_epsilon),
                     name, x);
}

static mix_status layer_build(mix_layer *layer, int count, const mix_shape *shapes) {
  t5_layer *t = layer->data;
  const mix_hub_t5_options *o = &t->options;
  mix_shape x = shapes[0], inner = x;
  if (x.rank != 3)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected (batch, positions, features)", layer->name,
                           MIX_SHAPE_TEXT(x));
  inner.dims[2] = o->intermediate_dim;
  const double stddev = 1 / sqrt((double)o->hidden_dim);
  t->attention = add_attention(layer, "self_attention", false, x);
  t->attention_norm = add_norm(layer, "self_attention_layer_norm", x);
  t->attention_dropout = mix_hub_dropout(layer, "self_attention_dropout", o->dropout, x);
  if (o->is_decoder) {
    t->cross = add_attention(layer, "cross_attention", true, x);
    t->cross_norm = add_norm(layer, "cross_attention_layer_norm", x);
    t->cross_dropout = mix_hub_dropout(layer, "cross_attention_dropout", o->dropout, x);
  }
  t->input = project(layer, "input_projector", o->intermediate_dim, stddev, x);
  if (o->is_gated) t->gate = project(layer, "gate_projector", o->intermediate_dim, stddev, x);
  t->output = project(layer, "output_projector", o->hidden_dim, 1 / sqrt((double)o->intermediate_dim), inner);
  t->norm = add_norm(layer, "layer_norm", x);
  t->dropout = mix_hub_dropout(layer, "dropout_layer", o->dropout, x);
  return mix_error();
}

/* The mask of the keys for each query: of a decoder only those before it. */
static mix_tensor *mask_of(const t5_layer *t, mix_tensor *keys, int64_t count) {
  mix_tensor *mask = keys ? mix_cast(keys, MIX_BOOL) : NULL;
  if (!t->options.is_decoder || !mask) return mask;
  mix_tensor *place = mix_range(0, (double)count, 1, MIX_INT32);
  mix_tensor *causal = place ? mix_greater_equal(mix_expand_dims(place, 1), mix_expand_dims(place, 0)) : NULL;
  return causal ? mix_logical_and(mask, mix_expand_dims(causal, 0)) : NULL;
}

static mix_tensor *feed_forward(const t5_layer *t, mix_tensor *x) {
  mix_tensor *y = mix_call(t->norm, x);
  if (!y) return NULL;
  mix_tensor *inner = mix_hub_activate(t->options.activation, mix_call(t->input, y));
  if (t->gate && inner) inner = mix_multiply(inner, mix_call(t->gate, y));
  y = mix_call(t->dropout, mix_call(t->output, mix_call(t->dropout, inner)));
  return y ? mix_hub_sum(y, x) : NULL;
}

static mix_tensor *cross(const t5_layer *t, mix_tensor *x, mix_tensor *encoded, mix_tensor *mask) {
  mix_tensor *y = mix_call(t->cross_norm, x);
  if (!y || !encoded) return NULL;
  mix_list *results = mix_call_outputs(t->cross, y, .arguments = mix_list_of(mask, encoded));
  y = results ? mix_call(t->cross_dropout, mix_list_get(results, 0)) : NULL;
  return y ? mix_hub_sum(y, x) : NULL;
}

static mix_list *layer_call(mix_layer *layer, const mix_call_args *args) {
  const t5_layer *t = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *mask = argument(args, 0);
  mix_tensor *bias = t->options.has_bias ? NULL : argument(args, t->cross ? 3 : 1);
  mix_tensor *y = x ? mix_call(t->attention_norm, x) : NULL;
  if (y && !args->symbolic) mask = mask_of(t, mask, mix_tensor_shape(x).dims[1]);
  if (!y || !mask || mix_failed()) return NULL;
  mix_list *results =
      mix_call_outputs(t->attention, y, .arguments = bias ? mix_list_of(mask, bias) : mix_list_of(mask));
  if (!results) return NULL;
  bias = mix_list_get(results, 1);
  x = mix_hub_sum(mix_call(t->attention_dropout, mix_list_get(results, 0)), x);
  if (t->cross) x = cross(t, x, argument(args, 2), argument(args, 1));
  x = x ? feed_forward(t, x) : NULL;
  return x ? mix_list_of(x, bias) : NULL;
}
MIX_LAYER_KIND_ONLY(hub_t5_layer, mix_hub_t5_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "T5TransformerLayer", .instance_size = sizeof(t5_layer),
                                    .build = layer_build, .call = layer_call, .supports_masking = true))
