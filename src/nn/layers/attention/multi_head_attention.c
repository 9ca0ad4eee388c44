/* MultiHeadAttention: attention over the axes between batch and features, in several heads. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include <math.h>
#include <stdio.h>

typedef struct multi_head_attention {
  mix_multi_head_attention_options options;
  mix_head_attention attention;
  mix_layer *query, *key, *value, *gate, *output; /* borrowed from the layer; NULL: not built, no gate */
} multi_head_attention;

/* ---- equations ---- */

static bool is_among(const mix_axes *axes, int axis) {
  for (int i = 0; i < axes->count; i++)
    if (axes->axis[i] == axis) return true;
  return false;
}

/* For projections of that rank: all axes of the query, then new letters for the axes of keys that it attends
 * over. "aecd,abcd->acbe" and "acbe,aecd->abcd" for rank 4 and axis 1. Returns the rank of the scores. */
static int write_equations(mix_head_attention *attention, int rank, const mix_axes *axes) {
  char target[MIX_MAX_RANK + 1] = "", source[MIX_MAX_RANK + 1] = "", scores[2 * MIX_MAX_RANK + 1] = "";
  int count = 0, next = rank;
  for (int i = 0; i < rank; i++) {
    target[i] = (char)('a' + i);
    source[i] = is_among(axes, i) ? (char)('a' + next++) : target[i];
    if (!is_among(axes, i) && i != rank - 1) scores[count++] = target[i];
  }
  for (int i = 0; i < axes->count; i++) scores[count++] = target[axes->axis[i]];
  for (int i = 0; i < axes->count; i++) scores[count++] = source[axes->axis[i]];
  snprintf(attention->dot, sizeof attention->dot, "%s,%s->%s", source, target, scores);
  snprintf(attention->combine, sizeof attention->combine, "%s,%s->%s", scores, source, target);
  return count;
}

/* All axes but batch and features, or those of the options, counted from 0. */
static bool resolve_axes(const mix_layer *layer, int rank, mix_axes *axes) {
  const int from = layer->semantics->attention_axes_of_inputs ? rank - 1 : rank;
  if (!axes->count)
    for (int axis = 1; axis < rank - 2; axis++) axes->axis[axes->count++] = axis;
  for (int i = 0; i < axes->count; i++) {
    const int given = axes->axis[i];
    axes->axis[i] = given < 0 ? given + from : given;
    if (axes->axis[i] >= 1 && axes->axis[i] < rank - 2) continue;
    return mix_fail_value("%s: attention axis %d is outside; expected axes between batch and features",
                          layer->name, given);
  }
  return true;
}

/* ---- the layer ---- */

static bool build_attention(mix_layer *layer, int rank) {
  multi_head_attention *m = layer->data;
  m->attention.rate = m->options.dropout;
  m->attention.robust = m->options.softmax_robust_masking;
  m->attention.scale = 1 / sqrt((double)m->options.key_dim);
  if (!resolve_axes(layer, rank, &m->options.attention_axes)) return false;
  m->attention.attention_axes = m->options.attention_axes.count;
  if (rank + m->attention.attention_axes - 1 > MIX_MAX_RANK)
    return mix_fail_value("%s: the scores would have more than %d dimensions", layer->name, MIX_MAX_RANK);
  const int scores = write_equations(&m->attention, rank, &m->options.attention_axes);
  mix_axes softmax = {.count = m->attention.attention_axes};
  for (int i = 0; i < softmax.count; i++) softmax.axis[i] = scores - softmax.count + i;
  return mix_head_attention_build(layer, &m->attention, softmax, m->options.seed);
}

/* Do value and key have the same axes between batch and features? */
static bool axes_agree(const mix_layer *layer, mix_shape value, mix_shape key) {
  bool agree = value.rank == key.rank && value.rank >= 2;
  for (int i = 1; agree && i < value.rank - 1; i++) agree = value.dims[i] == key.dims[i];
  if (!agree)
    mix_fail_value("%s: the value has shape %s and the key %s; expected equal ones but for features",
                   layer->name, MIX_SHAPE_TEXT(value), MIX_SHAPE_TEXT(key));
  return agree;
}

/* Without shapes of value and key, they are that of the query. */
static mix_status multi_head_attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  multi_head_attention *m = layer->data;
  const mix_multi_head_attention_options *o = &m->options;
  const mix_shape query = shapes[0], value = shapes[count > 1], key = count > 2 ? shapes[2] : value;
  if (m->query) return mix_fail_status(MIX_RUNTIME_ERROR, "%s: an earlier build failed", layer->name);
  if (!axes_agree(layer, value, key)) return mix_error();
  if (query.rank != value.rank)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the query has rank %d and the value %d; expected equal ranks", layer->name,
                           query.rank, value.rank);
  const mix_projection_options p = MIX_PROJECTION_OPTIONS(o);
  const mix_shape heads = MIX_SHAPE(o->num_heads, o->key_dim), values = MIX_SHAPE(o->num_heads, o->value_dim);
#define ATTRIBUTE(name) mix_attention_attribute(layer, name)
  m->query = mix_projection(layer, "query", ATTRIBUTE("_query_dense"), query, 1, heads, NULL, &p);
  m->key = mix_projection(layer, "key", ATTRIBUTE("_key_dense"), key, 1, heads, NULL, &p);
  if (o->use_gate) m->gate = mix_projection(layer, "gate", "_gate_dense", query, 1, values, "sigmoid", &p);
  m->value = mix_projection(layer, "value", ATTRIBUTE("_value_dense"), value, 1, values, NULL, &p);
  if (mix_failed() || !build_attention(layer, value.rank + 1)) return mix_error();
  mix_shape combined = query, sizes = o->output_shape;
  combined.dims[query.rank - 1] = o->num_heads;
  combined.dims[combined.rank++] = o->value_dim;
  if (!sizes.rank) sizes = MIX_SHAPE(query.dims[query.rank - 1]);
  m->output =
      mix_projection(layer, "attention_output", ATTRIBUTE("_output_dense"), combined, 2, sizes, NULL, &p);
  return mix_error();
}

mix_list *mix_attention_outputs(mix_list *attended, mix_layer *gate, mix_layer *output, mix_tensor *query) {
  mix_tensor *result = attended ? mix_list_get(attended, 0) : NULL;
  if (gate) result = mix_multiply(result, mix_call(gate, query));
  result = result ? mix_call(output, result) : NULL;
  if (!result) return NULL;
  return mix_list_count(attended) > 1 ? mix_list_of(result, mix_list_get(attended, 1)) : mix_list_of(result);
}

static mix_list *multi_head_attention_call(mix_layer *layer, const mix_call_args *args) {
  const multi_head_attention *m = layer->data;
  if (!mix_attention_called(layer, args)) return NULL;
  mix_tensor *query = mix_call_input(args, 0);
  mix_tensor *mask = mix_attention_mask(args, m->options.sliding_window, false);
  mix_tensor *heads[3] = {mix_call(m->query, query), mix_call(m->key, mix_attention_key(args)),
                          mix_call(m->value, mix_call_argument(args, 0))};
  return mix_attention_outputs(
      mix_attend_layer(layer, &m->attention, args, heads, mask, m->options.sliding_window), m->gate,
      m->output, query);
}

static mix_shape multi_head_attention_output_shape(mix_layer *layer, int count,
                                                   const mix_shape *input_shapes) {
  const multi_head_attention *m = layer->data;
  mix_shape shape = input_shapes[0];
  const mix_shape *sizes = &m->options.output_shape;
  if (!sizes->rank || !shape.rank) return shape;
  shape.rank--;
  for (int i = 0; i < sizes->rank && shape.rank < MIX_MAX_RANK; i++)
    shape.dims[shape.rank++] = sizes->dims[i];
  return shape;
}

/* ---- configs ---- */

static bool put_shape(mix_config *config, const char *key, const mix_shape *shape) {
  return mix_json_set(config->object, key, shape ? mix_shape_json(*shape, false) : json_null());
}

/* The shapes that it was built for, and a single output size as a number. */
static mix_status multi_head_attention_config(mix_layer *layer, mix_config *config) {
  const multi_head_attention *m = layer->data;
  const int count = layer->build_count;
  if (!layer->semantics->attention_shapes_saved) return MIX_OK;
  if (m->options.output_shape.rank == 1)
    mix_json_set(config->object, "output_shape", json_integer(m->options.output_shape.dims[0]));
  const mix_shape *shapes = count ? layer->build_shapes : NULL, *value = shapes ? &shapes[count > 1] : NULL;
  put_shape(config, "query_shape", shapes);
  put_shape(config, "key_shape", count > 2 ? &shapes[2] : value);
  put_shape(config, "value_shape", value);
  json_t *robust = json_incref(json_object_get(config->object, "softmax_robust_masking"));
  json_object_del(config->object, "softmax_robust_masking"); /* it comes last */
  return mix_json_set(config->object, "softmax_robust_masking", robust) ? MIX_OK : mix_error();
}

static bool multi_head_attention_check(void *options, const mix_layer_kind *kind) {
  mix_multi_head_attention_options *o = options;
  if (!o->value_dim) o->value_dim = o->key_dim;
  return true;
}

static bool multi_head_attention_ready(mix_layer *layer) {
  if (!layer->semantics->attention_activity_inner) return true;
  mix_release(layer->activity_regularizer);
  layer->activity_regularizer = NULL;
  return true;
}

#define FIELD(member) MIX_FIELD(mix_multi_head_attention_options, member)
#define NEWER .only = MIX_RULE(attention_newer_options)
static const mix_field_row fields[] = {
    {FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(key_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(value_dim), &mix_field_integer, .range = MIX_POSITIVE, .optional = true},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {"use_bias", offsetof(mix_multi_head_attention_options, no_bias), &mix_field_negated},
    {FIELD(use_gate), &mix_field_boolean, NEWER},
    {FIELD(output_shape), &mix_field_size_or_shape, .optional = true},
    {FIELD(attention_axes), &mix_field_axis_list, .optional = true},
    {FIELD(sliding_window), &mix_field_integer, .range = MIX_POSITIVE, .optional = true, NEWER},
    MIX_INITIALIZER_FIELD(mix_multi_head_attention_options, kernel_initializer, "glorot_uniform"),
    MIX_INITIALIZER_FIELD(mix_multi_head_attention_options, bias_initializer, "zeros"),
    {FIELD(kernel_regularizer), &mix_field_regularizer},
    {FIELD(bias_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer},
    {FIELD(kernel_constraint), &mix_field_constraint},
    {FIELD(bias_constraint), &mix_field_constraint},
    {FIELD(seed), &mix_field_seed, NEWER},
    {FIELD(softmax_robust_masking), &mix_field_boolean, .only = MIX_RULE(attention_shapes_saved)},
    MIX_INNER_QUANTIZATION_FIELD(mix_multi_head_attention_options),
    {0}};
const char *const mix_attention_tensors[] = {"query", "value", "key", NULL};
MIX_LAYER_KIND(multi_head_attention, mix_multi_head_attention_options, .fields = fields,
               .check = multi_head_attention_check, .ready = multi_head_attention_ready,
               .call_tensors = mix_attention_tensors, .call_is_attention = true, .call_ignores_mask = true,
               .decodes = mix_attention_decodes,
               MIX_LAYER_CLASS(.name = "MultiHeadAttention", .instance_size = sizeof(multi_head_attention),
                               .build = multi_head_attention_build, .call = multi_head_attention_call,
                               .output_shape = multi_head_attention_output_shape,
                               .get_config = multi_head_attention_config, .supports_masking = true))
