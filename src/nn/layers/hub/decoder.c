/* The block of a decoder. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/hub/decoder.h"
#include "ops/with_number.h"

typedef struct decoder {
  mix_hub_decoder_options options;
  /* Borrowed from the layer; NULL: there is none. */
  mix_layer *attention, *attention_norm, *post_attention_norm, *attention_dropout;
  mix_layer *norm, *up, *gate, *down, *post_norm, *dropout;
} decoder;

/* ---- inner layers ---- */

mix_layer *mix_hub_decoder_norm(const mix_hub_decoder_form *form, double epsilon, const char *name,
                                mix_policy *policy, const mix_semantics *semantics) {
  const mix_layer_common of = {.policy = policy, .semantics = semantics}, *o = &of;
  mix_layer *norm =
      form->norm == MIX_HUB_LAYER_NORM ? mix_hub_layer(layer_normalization, o, name, .epsilon = epsilon)
      : form->norm == MIX_HUB_RMS_NORM ? mix_hub_layer(rms_normalization, o, name, .epsilon = epsilon)
                                       : mix_hub_layer(hub_offset_rms_norm, o, name, .epsilon = epsilon);
  if (norm && form->norm_class) norm->class.name = form->norm_class;
  return norm;
}

static mix_layer *norm_of(mix_layer *layer, mix_hub_part part, mix_shape shape) {
  const decoder *d = layer->data;
  return mix_hub_add(
      layer,
      mix_hub_decoder_norm(d->options.form, d->options.epsilon, part.name, layer->policy, layer->semantics),
      part.attribute, shape);
}

static mix_layer *attention_of(mix_layer *layer, mix_shape shape) {
  const decoder *d = layer->data;
  const mix_hub_decoder_options *o = &d->options;
  const mix_hub_part part = o->form->attention;
  mix_layer *made = o->form->multi_head
                        ? mix_hub_layer(multi_head_attention, layer, part.name, .num_heads = o->heads,
                                        .key_dim = shape.dims[2] / o->heads, .dropout = o->dropout,
                                        .kernel_initializer_object = mix_hub_normal(o->stddev))
                        : mix_hub_layer(hub_attention, layer, part.name, .form = o->form, .heads = o->heads,
                                        .groups = o->groups, .head_dim = o->head_dim, .window = o->window,
                                        .dropout = o->dropout, .soft_cap = o->soft_cap, .stddev = o->stddev,
                                        .rotary = o->rotary);
  if (made) made->class.name = o->form->attention_class;
  return mix_hub_add(layer, made, part.attribute, shape);
}

static mix_layer *dense_of(mix_layer *layer, mix_hub_part part, mix_shape shape, int64_t units) {
  const decoder *d = layer->data;
  const mix_hub_decoder_form *form = d->options.form;
  const mix_hub_kernel_options kernel = {.bias = form->dense_bias, .stddev = d->options.stddev};
  if (form->einsum_dense) return mix_hub_projection(layer, part, shape, 1, MIX_SHAPE(units), &kernel);
  return mix_hub_add(layer,
                     mix_hub_layer(dense, layer, part.name, .units = units, .no_bias = !form->dense_bias,
                                   .kernel_initializer_object = mix_hub_normal(d->options.stddev)),
                     part.attribute, shape);
}

/* ---- build ---- */

static void build_attention(mix_layer *layer, decoder *d, mix_shape x) {
  const mix_hub_decoder_form *form = d->options.form;
  if (form->norms_first) d->attention_norm = norm_of(layer, form->attention_norm, x);
  if (d->options.post_attention_norm) d->post_attention_norm = norm_of(layer, form->post_attention_norm, x);
  d->attention = attention_of(layer, x);
  if (!form->norms_first) d->attention_norm = norm_of(layer, form->attention_norm, x);
  d->attention_dropout = mix_hub_drop(layer, form->attention_dropout, d->options.dropout, x);
}

static void build_feedforward(mix_layer *layer, decoder *d, mix_shape x) {
  const mix_hub_decoder_form *form = d->options.form;
  mix_shape inner = x;
  inner.dims[2] = d->options.intermediate_dim;
  if (form->norms_first) d->norm = norm_of(layer, form->feedforward_norm, x);
  if (d->options.post_feedforward_norm) d->post_norm = norm_of(layer, form->post_feedforward_norm, x);
  if (form->einsum_dense) d->gate = dense_of(layer, form->gate, x, inner.dims[2]);
  d->up = dense_of(layer, form->up, x, inner.dims[2]);
  if (form->gate.attribute && !d->gate) d->gate = dense_of(layer, form->gate, x, inner.dims[2]);
  d->down = dense_of(layer, form->down, inner, x.dims[2]);
  if (!form->norms_first) d->norm = norm_of(layer, form->feedforward_norm, x);
  d->dropout = mix_hub_drop(layer, form->feedforward_dropout, d->options.feedforward_dropout, x);
}

static mix_status decoder_build(mix_layer *layer, int count, const mix_shape *shapes) {
  decoder *d = layer->data;
  const mix_hub_decoder_options *o = &d->options;
  const mix_shape x = shapes[0];
  if (x.rank != 3 || x.dims[2] < o->heads || (!o->head_dim && x.dims[2] % o->heads))
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected (batch, positions, features), features a "
                           "multiple of %lld heads",
                           layer->name, MIX_SHAPE_TEXT(x), (long long)o->heads);
  build_attention(layer, d, x);
  if (!mix_failed()) build_feedforward(layer, d, x);
  return mix_error();
}

/* ---- call ---- */

static mix_tensor *dropped(mix_layer *dropout, mix_tensor *x) {
  return x && dropout ? mix_call(dropout, x) : x;
}
static mix_tensor *normed(mix_layer *norm, mix_tensor *x) { return x && norm ? mix_call(norm, x) : x; }

static mix_tensor *attend(const decoder *d, mix_tensor *x, mix_tensor *padding) {
  mix_tensor *y = mix_call(d->attention_norm, x);
  mix_list *masks = padding ? mix_list_of(mix_cast(padding, MIX_BOOL)) : NULL;
  if (!y || mix_failed()) return NULL;
  y = mix_call(d->attention, y, .arguments = mix_list_of(y), .argument_masks = masks,
               .use_causal_mask = true);
  return dropped(d->attention_dropout, normed(d->post_attention_norm, y));
}

static mix_tensor *feed_forward(const decoder *d, mix_tensor *x) {
  const mix_hub_decoder_form *form = d->options.form;
  mix_tensor *y = mix_call(d->norm, x);
  if (!y) return NULL;
  const mix_dtype dtype = mix_tensor_dtype(y);
  mix_tensor *gate = mix_call(d->gate ? d->gate : d->up, y);
  if (gate && form->wide_gate && mix_dtype_is_16_bit(dtype)) gate = mix_cast(gate, MIX_FLOAT32);
  gate = mix_hub_activate(form->activation, gate);
  if (gate && form->wide_gate) gate = mix_cast(gate, dtype);
  if (gate && d->gate) gate = mix_multiply(mix_call(d->up, y), gate);
  y = gate ? mix_call(d->down, gate) : NULL;
  return dropped(d->dropout, normed(d->post_norm, y));
}

static mix_list *decoder_call(mix_layer *layer, const mix_call_args *args) {
  const decoder *d = layer->data;
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *padding =
      args->arguments && mix_list_count(args->arguments) ? mix_call_argument(args, 0) : mix_call_mask(args);
  mix_tensor *y = attend(d, x, padding);
  if (!y) return NULL;
  if (d->options.form->parallel) {
    mix_tensor *fed = feed_forward(d, x);
    return mix_one_result(fed ? mix_hub_sum(mix_hub_sum(fed, y), x) : NULL);
  }
  y = mix_hub_sum(y, x);
  mix_tensor *fed = feed_forward(d, y);
  return mix_one_result(fed ? mix_hub_sum(fed, y) : NULL);
}

static bool decoder_check(void *options, const mix_layer_kind *kind) {
  mix_hub_decoder_options *o = options;
  if (!o->groups) o->groups = o->heads;
  if (o->heads % o->groups == 0) return true;
  return mix_fail_value("%s: %lld heads of queries and %lld of keys and values; expected a multiple",
                        o->form->class_name, (long long)o->heads, (long long)o->groups);
}

static bool decoder_ready(mix_layer *layer) {
  layer->class.name = ((const decoder *)layer->data)->options.form->class_name;
  return true;
}

#define FIELD(member) MIX_FIELD(mix_hub_decoder_options, member)
static const mix_field_row fields[] = {
    {FIELD(heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(intermediate_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(dropout), &mix_field_number, .range = MIX_BELOW_ONE},
    {FIELD(feedforward_dropout), &mix_field_number, .range = MIX_BELOW_ONE},
    {FIELD(epsilon), &mix_field_number, .number = 1e-5},
    MIX_ROTARY_FIELDS(mix_hub_decoder_options),
    {0}};
static const char *const tensors[] = {"decoder_sequence", "decoder_padding_mask", NULL};
MIX_LAYER_KIND_ONLY(hub_decoder, mix_hub_decoder_options, .fields = fields, .keras3_only = true,
                    .call_tensors = tensors, .decodes = mix_decodes, .check = decoder_check,
                    .ready = decoder_ready,
                    MIX_LAYER_CLASS(.name = "TransformerDecoder", .instance_size = sizeof(decoder),
                                    .build = decoder_build, .call = decoder_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
