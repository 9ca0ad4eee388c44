/* DeBERTa's attention by content and by relative position (He et al.; arXiv:2006.03654, 2111.09543). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include "nn/layers/hub/hub.h"
#include "ops/with_number.h"
#include <math.h>
#include <mixtape/einsum.h>

/* ---- RelativeEmbedding: rows of relative positions, for each example ---- */

typedef struct relative_embedding {
  mix_hub_relative_embedding_options options;
  mix_variable *table;
  mix_layer *norm; /* borrowed, as the table */
} relative_embedding;

static mix_status relative_embedding_build(mix_layer *layer, int count, const mix_shape *shapes) {
  relative_embedding *r = layer->data;
  const mix_hub_relative_embedding_options *o = &r->options;
  r->table =
      mix_layer_add_weight(layer, "rel_embedding", .shape = MIX_SHAPE(2 * o->bucket_size, o->hidden_dim),
                           .initializer_object = mix_hub_initializer(o->stddev));
  r->norm = mix_hub_add(layer,
                        mix_hub_layer(layer_normalization, layer, "rel_embeddings_layer_norm",
                                      .epsilon = o->layer_norm_epsilon),
                        "layer_norm", MIX_SHAPE(MIX_UNKNOWN, 2 * o->bucket_size, o->hidden_dim));
  return mix_error();
}

static mix_list *relative_embedding_call(mix_layer *layer, const mix_call_args *args) {
  const relative_embedding *r = layer->data;
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *rows = x ? mix_call(r->norm, mix_expand_dims(mix_variable_value(r->table), 0)) : NULL;
  if (!rows) return NULL;
  mix_shape shape = mix_tensor_shape(rows);
  shape.dims[0] = mix_tensor_shape(x).dims[0];
  if (args->symbolic) return mix_one_result(mix_hub_symbolic(mix_tensor_dtype(rows), shape));
  return mix_one_result(mix_broadcast_to(rows, shape));
}

static mix_shape relative_embedding_output_shape(mix_layer *layer, int count, const mix_shape *shapes) {
  const mix_hub_relative_embedding_options *o = &((const relative_embedding *)layer->data)->options;
  return MIX_SHAPE(shapes[0].dims[0], 2 * o->bucket_size, o->hidden_dim);
}

#define FIELD(member) MIX_FIELD(mix_hub_relative_embedding_options, member)
static const mix_field_row relative_fields[] = {
    {FIELD(hidden_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(bucket_size), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(layer_norm_epsilon), &mix_field_number},
    {FIELD(stddev), &mix_field_number},
    {0}};
#undef FIELD
MIX_LAYER_KIND_ONLY(hub_relative_embedding, mix_hub_relative_embedding_options, .fields = relative_fields,
                    .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "RelativeEmbedding", .instance_size = sizeof(relative_embedding),
                                    .build = relative_embedding_build, .call = relative_embedding_call,
                                    .output_shape = relative_embedding_output_shape))

/* ---- DisentangledSelfAttention ---- */

typedef struct disentangled {
  mix_hub_disentangled_options options;
  mix_layer *query, *key, *value, *output, *softmax, *position_dropout, *dropout; /* borrowed */
} disentangled;

static mix_status disentangled_build(mix_layer *layer, int count, const mix_shape *shapes) {
  disentangled *d = layer->data;
  const mix_hub_disentangled_options *o = &d->options;
  const mix_shape x = shapes[0], heads = MIX_SHAPE(o->num_heads, x.dims[2] / o->num_heads);
  mix_projection_options p = {.kernel_initializer = mix_hub_initializer(o->stddev),
                              .bias_initializer = mix_initializer_new("zeros")};
  d->query = mix_projection(layer, "query", "_query_dense", x, 1, heads, NULL, &p);
  d->key = mix_projection(layer, "key", "_key_dense", x, 1, heads, NULL, &p);
  d->value = mix_projection(layer, "value", "_value_dense", x, 1, heads, NULL, &p);
  d->output =
      mix_projection(layer, "attention_output", "_output_dense", x, 1, MIX_SHAPE(x.dims[2]), NULL, &p);
  mix_layer *softmax =
      mix_softmax_layer(.name = "attention_softmax", .dtype = "float32", .semantics = layer->semantics);
  d->softmax =
      mix_hub_add(layer, softmax, "_softmax", MIX_SHAPE(MIX_UNKNOWN, o->num_heads, MIX_UNKNOWN, MIX_UNKNOWN));
  d->position_dropout = mix_hub_dropout(layer, "_position_dropout_layer", o->dropout, x);
  d->dropout = mix_hub_dropout(layer, "_attn_dropout_layer", o->dropout, x);
  return mix_error();
}

/* Distances beyond half of the buckets share them, more of them the longer they are. */
static int32_t bucket_of(const mix_hub_disentangled_options *o, int64_t distance) {
  const int64_t half = o->bucket_size / 2, size = distance < 0 ? -distance : distance;
  if (size <= half || half < 1) return (int32_t)distance;
  const float most = (float)(o->max_position_embeddings - 1);
  const float place = logf((float)size / (float)half) * (float)(half - 1) / logf(most / (float)half);
  const int64_t bucket = (int64_t)fminf(fmaxf(ceilf(place), -1e6F), 1e6F) + half;
  return (int32_t)(distance < 0 ? -bucket : bucket);
}

/* (1, 1, positions, positions): the row of relative positions for each query and key, or with sign -1 for
 * each key and query. */
static mix_tensor *places(const mix_hub_disentangled_options *o, int64_t count, int sign, mix_shape shape) {
  int32_t *values = mix_calloc((size_t)(count * count) + 1, sizeof *values);
  const int64_t span = o->bucket_size;
  for (int64_t i = 0; values && i < count; i++)
    for (int64_t j = 0; j < count; j++) {
      const int64_t row = sign * (int64_t)bucket_of(o, i - j) + span;
      values[i * count + j] = (int32_t)(row < 0 ? 0 : row > 2 * span - 1 ? 2 * span - 1 : row);
    }
  mix_tensor *table = values ? mix_tensor_from(values, MIX_INT32, MIX_SHAPE(1, 1, count, count)) : NULL;
  mix_free(values);
  return table ? mix_broadcast_to(table, shape) : NULL;
}

/* Scores of relative positions: of each query's with the key's content, and the other way. */
static mix_tensor *position_scores(const disentangled *d, mix_tensor *query, mix_tensor *key,
                                   mix_tensor *relative, mix_shape shape, double scale) {
  const char *equation = "aecd,abcd->acbe";
  mix_tensor *queries = mix_call(d->query, relative), *keys = mix_call(d->key, relative);
  mix_tensor *forwards = mix_einsum(equation, 2, (mix_tensor *[]){keys, query}),
             *backwards = mix_einsum(equation, 2, (mix_tensor *[]){queries, key});
  if (mix_failed()) return NULL;
  forwards = mix_take_along_axis(forwards, places(&d->options, shape.dims[2], 1, shape), 3);
  backwards = mix_take_along_axis(backwards, places(&d->options, shape.dims[2], -1, shape), 3);
  if (mix_failed()) return NULL;
  backwards = mix_transpose(backwards, MIX_AXES(0, 1, 3, 2));
  return mix_add(mix_times(forwards, scale), mix_times(backwards, scale));
}

static mix_list *disentangled_call(mix_layer *layer, const mix_call_args *args) {
  const disentangled *d = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *relative = mix_call_argument(args, 0);
  mix_tensor *mask = mix_list_count(args->arguments) > 1 ? mix_list_get(args->arguments, 1) : NULL;
  if (!x || !relative) return NULL;
  const mix_shape of_x = mix_tensor_shape(x);
  if (args->symbolic) return mix_one_result(mix_hub_symbolic(mix_tensor_dtype(x), of_x));
  mix_tensor *query = mix_call(d->query, x), *key = mix_call(d->key, x), *value = mix_call(d->value, x);
  if (mix_failed()) return NULL;
  const mix_shape heads = mix_tensor_shape(query);
  const double scale = 1 / sqrt(3 * (double)heads.dims[3]);
  const mix_shape shape = MIX_SHAPE(of_x.dims[0], heads.dims[2], of_x.dims[1], of_x.dims[1]);
  mix_tensor *scores = mix_times(mix_einsum("aecd,abcd->acbe", 2, (mix_tensor *[]){key, query}), scale);
  scores = mix_hub_sum(scores,
                       position_scores(d, query, key, mix_call(d->position_dropout, relative), shape, scale));
  mix_tensor *kept = mix_call(d->softmax, scores, .mask = mask ? mix_expand_dims(mask, 1) : NULL);
  kept = mix_call(d->dropout, kept);
  mix_tensor *mixed[2] = {kept, value};
  mix_tensor *result =
      kept && mix_attention_promote(mixed, 2) ? mix_einsum("acbe,aecd->abcd", 2, mixed) : NULL;
  return mix_one_result(result ? mix_call(d->output, mix_reshape(result, of_x)) : NULL);
}

#define FIELD(member) MIX_FIELD(mix_hub_disentangled_options, member)
static const mix_field_row fields[] = {
    {FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(intermediate_dim), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {FIELD(max_position_embeddings), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(bucket_size), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {FIELD(layer_norm_epsilon), &mix_field_number},
    {FIELD(stddev), &mix_field_number},
    {0}};
MIX_LAYER_KIND_ONLY(hub_disentangled, mix_hub_disentangled_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "DisentangledSelfAttention",
                                    .instance_size = sizeof(disentangled), .build = disentangled_build,
                                    .call = disentangled_call, .output_shape = mix_layer_same_shape))

/* ---- DisentangledAttentionEncoder ---- */

typedef struct encoder {
  mix_hub_disentangled_options options;
  mix_layer *attention, *attention_norm, *attention_dropout, *norm, *intermediate, *output, *dropout;
} encoder;

static mix_status encoder_build(mix_layer *layer, int count, const mix_shape *shapes) {
  encoder *e = layer->data;
  const mix_hub_disentangled_options *o = &e->options;
  mix_shape x = shapes[0], inner = x;
  if (x.rank != 3 || x.dims[2] < o->num_heads || x.dims[2] % o->num_heads)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected (batch, positions, features), features a "
                           "multiple of %lld heads",
                           layer->name, MIX_SHAPE_TEXT(x), (long long)o->num_heads);
  inner.dims[2] = o->intermediate_dim;
  mix_layer *attention =
      mix_hub_layer(hub_disentangled, layer, "self_attention_layer", .num_heads = o->num_heads,
                    .bucket_size = o->bucket_size, .max_position_embeddings = o->max_position_embeddings,
                    .dropout = o->dropout, .stddev = o->stddev);
  e->attention = mix_hub_add(layer, attention, "_self_attention_layer", x);
  e->attention_norm = mix_hub_norm(layer, "_self_attention_layer_norm", o->layer_norm_epsilon, x);
  e->attention_dropout = mix_hub_dropout(layer, "_self_attention_dropout", o->dropout, x);
  e->norm = mix_hub_norm(layer, "_feedforward_layer_norm", o->layer_norm_epsilon, x);
  e->intermediate =
      mix_hub_dense(layer, "_feedforward_intermediate_dense", o->intermediate_dim, o->stddev, x);
  e->output = mix_hub_dense(layer, "_feedforward_output_dense", x.dims[2], o->stddev, inner);
  e->dropout = mix_hub_dropout(layer, "_feedforward_dropout", o->dropout, x);
  return mix_error();
}

/* Arguments: the rows of relative positions, and the mask of the keys. */
static mix_list *encoder_call(mix_layer *layer, const mix_call_args *args) {
  const encoder *e = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *relative = mix_call_argument(args, 0);
  mix_tensor *padding = mix_list_count(args->arguments) > 1 ? mix_list_get(args->arguments, 1) : NULL;
  mix_tensor *mask = mix_hub_attention_mask(padding);
  if (!x || !relative || mix_failed()) return NULL;
  mix_tensor *y =
      mix_call(e->attention, x, .arguments = mask ? mix_list_of(relative, mask) : mix_list_of(relative));
  x = mix_call(e->attention_norm, mix_hub_sum(mix_call(e->attention_dropout, y), x));
  y = mix_hub_activate("gelu", mix_call(e->intermediate, x));
  y = mix_call(e->dropout, mix_call(e->output, y));
  return mix_one_result(mix_call(e->norm, mix_hub_sum(y, x)));
}

MIX_LAYER_KIND_ONLY(hub_disentangled_encoder, mix_hub_disentangled_encoder_options, .fields = fields,
                    .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "DisentangledAttentionEncoder", .instance_size = sizeof(encoder),
                                    .build = encoder_build, .call = encoder_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
