/* TransformerEncoder and, with attention to the positions before and to another sequence, TransformerDecoder
 * (Vaswani et al.; arXiv:1706.03762). */
#include "base/error.h"
#include "nn/layers/hub/hub.h"

typedef struct transformer {
  mix_hub_transformer_encoder_options options;
  /* borrowed from the layer; `cross`: NULL: an encoder */
  mix_layer *attention, *attention_norm, *attention_dropout, *cross, *cross_norm, *cross_dropout;
  mix_layer *norm, *intermediate, *output, *dropout;
} transformer;

static mix_layer *add_attention(mix_layer *layer, const char *name, const char *attribute, mix_shape x) {
  const mix_hub_transformer_encoder_options *o = &((const transformer *)layer->data)->options;
  mix_layer *attention = mix_hub_layer(multi_head_attention, layer, name, .num_heads = o->num_heads,
                                       .key_dim = x.dims[2] / o->num_heads, .dropout = o->dropout,
                                       .kernel_initializer_object = mix_hub_initializer(o->stddev));
  if (attention && o->is_decoder) attention->class.name = "CachedMultiHeadAttention";
  return mix_hub_add(layer, attention, attribute, x);
}

/* Norm and dense layers, in the order of their weights. */
static void add_feedforward(mix_layer *layer, transformer *t, mix_shape x) {
  const mix_hub_transformer_encoder_options *o = &t->options;
  mix_shape inner = x;
  inner.dims[2] = o->intermediate_dim;
  if (!o->is_decoder) t->norm = mix_hub_norm(layer, "_feedforward_layer_norm", o->layer_norm_epsilon, x);
  t->intermediate =
      mix_hub_dense(layer, "_feedforward_intermediate_dense", o->intermediate_dim, o->stddev, x);
  t->output = mix_hub_dense(layer, "_feedforward_output_dense", x.dims[2], o->stddev, inner);
  if (o->is_decoder) t->norm = mix_hub_norm(layer, "_feedforward_layer_norm", o->layer_norm_epsilon, x);
  t->dropout = mix_hub_dropout(layer, "_feedforward_dropout", o->dropout, x);
}

static mix_status transformer_build(mix_layer *layer, int count, const mix_shape *shapes) {
  transformer *t = layer->data;
  const mix_hub_transformer_encoder_options *o = &t->options;
  const mix_shape x = shapes[0];
  if (x.rank != 3 || x.dims[2] < o->num_heads)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected (batch, positions, features) with features "
                           "for each of %lld heads",
                           layer->name, MIX_SHAPE_TEXT(x), (long long)o->num_heads);
  t->attention = add_attention(layer, o->is_decoder ? "self_attention" : "self_attention_layer",
                               "_self_attention_layer", x);
  t->attention_norm = mix_hub_norm(layer, "_self_attention_layer_norm", o->layer_norm_epsilon, x);
  t->attention_dropout = mix_hub_dropout(layer, "_self_attention_dropout", o->dropout, x);
  if (o->is_decoder) {
    t->cross = add_attention(layer, "cross_attention", "_cross_attention_layer", x);
    t->cross_norm = mix_hub_norm(layer, "_cross_attention_layer_norm", o->layer_norm_epsilon, x);
    t->cross_dropout = mix_hub_dropout(layer, "_cross_attention_dropout", o->dropout, x);
  }
  if (!mix_failed()) add_feedforward(layer, t, x);
  return mix_error();
}

/* Attention to `value`, NULL: to itself, with a norm before or after it and a residual. */
static mix_tensor *attend(const transformer *t, mix_layer *attention, mix_layer *norm, mix_layer *dropout,
                          mix_tensor *input, mix_tensor *value, mix_tensor *padding) {
  const bool first = t->options.normalize_first;
  mix_tensor *x = first ? mix_call(norm, input) : input, *mask = mix_hub_attention_mask(padding);
  if (!x) return NULL;
  x = mix_call(attention, x, .arguments = mix_list_of(value ? value : x), .attention_mask = mask,
               .use_causal_mask = t->options.is_decoder && !value);
  x = mix_hub_sum(mix_call(dropout, x), input);
  return first ? x : mix_call(norm, x);
}

static mix_tensor *argument(const mix_call_args *args, int index) {
  return args->arguments && index < mix_list_count(args->arguments) ? mix_list_get(args->arguments, index)
                                                                    : NULL;
}

static mix_list *transformer_call(mix_layer *layer, const mix_call_args *args) {
  const transformer *t = layer->data;
  const bool first = t->options.normalize_first;
  mix_tensor *x = mix_call_input(args, 0), *padding = argument(args, 0), *encoded = argument(args, 1);
  if (t->cross && !encoded)
    return mix_fail_type("%s: the sequence that it attends to is missing in .arguments", layer->name);
  x = attend(t, t->attention, t->attention_norm, t->attention_dropout, x, NULL,
             padding ? padding : mix_call_mask(args));
  if (t->cross && x) x = attend(t, t->cross, t->cross_norm, t->cross_dropout, x, encoded, argument(args, 2));
  if (!x) return NULL;
  mix_tensor *y = first ? mix_call(t->norm, x) : x;
  y = mix_hub_activate(t->options.activation, mix_call(t->intermediate, y));
  y = mix_hub_sum(mix_call(t->dropout, mix_call(t->output, y)), x);
  return mix_one_result(first ? y : mix_call(t->norm, y));
}

static bool transformer_ready(mix_layer *layer) {
  if (((const transformer *)layer->data)->options.is_decoder) layer->class.name = "TransformerDecoder";
  return true;
}

#define FIELD(member) MIX_FIELD(mix_hub_transformer_encoder_options, member)
static const mix_field_row fields[] = {{FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(intermediate_dim), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
                                       {FIELD(activation), &mix_field_hub_activation, .text = "relu"},
                                       {FIELD(layer_norm_epsilon), &mix_field_number},
                                       {FIELD(stddev), &mix_field_number},
                                       {FIELD(normalize_first), &mix_field_boolean},
                                       {FIELD(is_decoder), &mix_field_boolean},
                                       {0}};
MIX_LAYER_KIND_ONLY(hub_transformer_encoder, mix_hub_transformer_encoder_options, .fields = fields,
                    .keras3_only = true, .ready = transformer_ready,
                    MIX_LAYER_CLASS(.name = "TransformerEncoder", .instance_size = sizeof(transformer),
                                    .build = transformer_build, .call = transformer_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
