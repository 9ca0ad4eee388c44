/* GroupQueryAttention: groups of query heads share a head of keys and values (Ainslie et al.;
 * arXiv:2305.13245). */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include <math.h>
#include <stdio.h>

typedef struct grouped_query_attention {
  mix_grouped_query_attention_options options;
  mix_head_attention attention;
  mix_layer *query, *key, *value, *gate, *output; /* borrowed from the layer; NULL: not built, no gate */
} grouped_query_attention;

static mix_status grouped_query_attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  grouped_query_attention *g = layer->data;
  const mix_grouped_query_attention_options *o = &g->options;
  const mix_shape query = shapes[0], value = shapes[count > 1], key = count > 2 ? shapes[2] : value;
  if (g->query) return mix_fail_status(MIX_RUNTIME_ERROR, "%s: an earlier build failed", layer->name);
  if (query.rank != 3 || value.rank != 3 || key.rank != 3)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the query has shape %s and the value %s; expected rank 3",
                           layer->name, MIX_SHAPE_TEXT(query), MIX_SHAPE_TEXT(value));
  const mix_projection_options p = MIX_PROJECTION_OPTIONS(o);
  const mix_shape heads = MIX_SHAPE(o->num_query_heads, o->head_dim),
                  groups = MIX_SHAPE(o->num_key_value_heads, o->head_dim);
  g->query = mix_projection(layer, "query", "_query_dense", query, 1, heads, NULL, &p);
  g->key = mix_projection(layer, "key", "_key_dense", key, 1, groups, NULL, &p);
  if (o->use_gate) g->gate = mix_projection(layer, "gate", "_gate_dense", query, 1, heads, "sigmoid", &p);
  g->value = mix_projection(layer, "value", "_value_dense", value, 1, groups, NULL, &p);
  g->attention.rate = o->dropout;
  g->attention.scale = 1 / sqrt((double)o->head_dim);
  g->attention.attention_axes = 1;
  g->attention.query_first = true;
  snprintf(g->attention.dot, sizeof g->attention.dot, "bquh,bkuh->buqk");
  snprintf(g->attention.combine, sizeof g->attention.combine, "buqk,bkuh->bquh");
  if (mix_failed() || !mix_head_attention_build(layer, &g->attention, MIX_AXES(-1), o->seed))
    return mix_error();
  const mix_shape combined = MIX_SHAPE(query.dims[0], query.dims[1], o->num_query_heads, o->head_dim);
  g->output = mix_projection(layer, "attention_output", "_output_dense", combined, 2,
                             MIX_SHAPE(query.dims[2]), NULL, &p);
  return mix_error();
}

static mix_list *grouped_query_attention_call(mix_layer *layer, const mix_call_args *args) {
  const grouped_query_attention *g = layer->data;
  const mix_grouped_query_attention_options *o = &g->options;
  if (!mix_attention_called(layer, args)) return NULL;
  mix_tensor *query = mix_call_input(args, 0);
  mix_tensor *mask = mix_attention_mask(args, o->sliding_window, false);
  mix_tensor *heads[3] = {mix_call(g->query, query), mix_call(g->key, mix_attention_key(args)),
                          mix_call(g->value, mix_call_argument(args, 0))};
  return mix_attention_outputs(mix_attend_layer(layer, &g->attention, args, heads, mask, o->sliding_window),
                               g->gate, g->output, query);
}

/* Its name is that of Keras's class, whose public name is another. */
static bool grouped_query_attention_check(void *options, const mix_layer_kind *kind) {
  mix_grouped_query_attention_options *o = options;
  if (o->num_query_heads % o->num_key_value_heads)
    return mix_fail_value("%s: num_query_heads is %lld and num_key_value_heads %lld; expected a multiple",
                          kind->call, (long long)o->num_query_heads, (long long)o->num_key_value_heads);
  if (!o->name) o->name = mix_unique_name("grouped_query_attention", false);
  return o->name;
}

#define FIELD(member) MIX_FIELD(mix_grouped_query_attention_options, member)
static const mix_field_row fields[] = {
    {FIELD(head_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(num_query_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(num_key_value_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {"use_bias", offsetof(mix_grouped_query_attention_options, no_bias), &mix_field_negated},
    {FIELD(use_gate), &mix_field_boolean},
    {FIELD(sliding_window), &mix_field_integer, .range = MIX_POSITIVE, .optional = true},
    {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    MIX_INITIALIZER_FIELD(mix_grouped_query_attention_options, kernel_initializer, "glorot_uniform"),
    MIX_INITIALIZER_FIELD(mix_grouped_query_attention_options, bias_initializer, "zeros"),
    {FIELD(kernel_regularizer), &mix_field_regularizer},
    {FIELD(bias_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer},
    {FIELD(kernel_constraint), &mix_field_constraint},
    {FIELD(bias_constraint), &mix_field_constraint},
    {FIELD(seed), &mix_field_seed},
    MIX_INNER_QUANTIZATION_FIELD(mix_grouped_query_attention_options),
    {0}};
MIX_LAYER_KIND(grouped_query_attention, mix_grouped_query_attention_options, .fields = fields,
               .keras3_only = true, .keras_name = "GroupedQueryAttention",
               .check = grouped_query_attention_check, .call_tensors = mix_attention_tensors,
               .call_is_attention = true, .decodes = mix_attention_decodes,
               MIX_LAYER_CLASS(.name = "GroupQueryAttention",
                               .instance_size = sizeof(grouped_query_attention),
                               .build = grouped_query_attention_build, .call = grouped_query_attention_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
