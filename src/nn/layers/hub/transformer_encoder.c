/* TransformerEncoder (Vaswani et al.; arXiv:1706.03762). */
#include "base/error.h"
#include "nn/layers/hub/hub.h"

typedef struct transformer_encoder {
  mix_hub_transformer_encoder_options options;
  /* borrowed from the layer */
  mix_layer *attention, *attention_norm, *attention_dropout, *norm, *intermediate, *output, *dropout;
} transformer_encoder;

static mix_status transformer_encoder_build(mix_layer *layer, int count, const mix_shape *shapes) {
  transformer_encoder *t = layer->data;
  const mix_hub_transformer_encoder_options *o = &t->options;
  mix_shape x = shapes[0], inner = x;
  const int64_t features = x.rank ? x.dims[x.rank - 1] : 0;
  if (x.rank != 3 || features < o->num_heads)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected (batch, positions, features) with features "
                           "for each of %lld heads",
                           layer->name, MIX_SHAPE_TEXT(x), (long long)o->num_heads);
  inner.dims[2] = o->intermediate_dim;
  mix_layer *attention =
      mix_hub_layer(multi_head_attention, layer, "self_attention_layer", .num_heads = o->num_heads,
                    .key_dim = features / o->num_heads, .dropout = o->dropout,
                    .kernel_initializer_object = mix_hub_initializer(o->stddev));
  t->attention = mix_hub_add(layer, attention, "_self_attention_layer", x);
  t->attention_norm = mix_hub_norm(layer, "_self_attention_layer_norm", o->layer_norm_epsilon, x);
  t->attention_dropout = mix_hub_dropout(layer, "_self_attention_dropout", o->dropout, x);
  t->norm = mix_hub_norm(layer, "_feedforward_layer_norm", o->layer_norm_epsilon, x);
  t->intermediate =
      mix_hub_dense(layer, "_feedforward_intermediate_dense", o->intermediate_dim, o->stddev, x);
  t->output = mix_hub_dense(layer, "_feedforward_output_dense", features, o->stddev, inner);
  t->dropout = mix_hub_dropout(layer, "_feedforward_dropout", o->dropout, x);
  return mix_error();
}

static mix_list *transformer_encoder_call(mix_layer *layer, const mix_call_args *args) {
  const transformer_encoder *t = layer->data;
  const bool first = t->options.normalize_first;
  mix_tensor *input = mix_call_input(args, 0), *x = input, *residual;
  mix_tensor *padding = mix_call_argument(args, 0);
  mix_tensor *mask = mix_hub_attention_mask(padding ? padding : mix_call_mask(args));
  if (first) x = mix_call(t->attention_norm, x);
  x = mix_call(t->attention, x, .arguments = mix_list_of(x), .attention_mask = mask);
  x = mix_add(mix_call(t->attention_dropout, x), input);
  if (!first) x = mix_call(t->attention_norm, x);
  residual = x;
  if (first) x = mix_call(t->norm, x);
  x = mix_hub_activate(t->options.activation, mix_call(t->intermediate, x));
  x = mix_add(mix_call(t->dropout, mix_call(t->output, x)), residual);
  return mix_one_result(first ? x : mix_call(t->norm, x));
}

#define FIELD(member) MIX_FIELD(mix_hub_transformer_encoder_options, member)
static const mix_field_row fields[] = {{FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(intermediate_dim), &mix_field_integer, .range = MIX_POSITIVE},
                                       {FIELD(dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
                                       {FIELD(activation), &mix_field_hub_activation, .text = "relu"},
                                       {FIELD(layer_norm_epsilon), &mix_field_number, .number = 1e-5},
                                       {FIELD(stddev), &mix_field_number},
                                       {FIELD(normalize_first), &mix_field_boolean},
                                       {0}};
MIX_LAYER_KIND_ONLY(hub_transformer_encoder, mix_hub_transformer_encoder_options, .fields = fields,
                    .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "TransformerEncoder",
                                    .instance_size = sizeof(transformer_encoder),
                                    .build = transformer_encoder_build, .call = transformer_encoder_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
