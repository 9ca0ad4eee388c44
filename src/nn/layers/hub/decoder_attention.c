/* Attention of decoders: heads of queries in groups that share keys and values, rotary positions or slopes,
 * windows and soft caps, as the form and the options say. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"
#include "nn/layers/hub/decoder.h"
#include "ops/with_number.h"
#include <math.h>
#include <stdio.h>

typedef struct hub_attention {
  mix_hub_attention_options options;
  mix_head_attention attention;
  mix_layer *query, *key, *value, *heads_dropout, *output; /* borrowed from the layer; NULL: there is none */
  int64_t head_dim;
} hub_attention;

/* ---- inner layers ---- */

mix_initializer *mix_hub_normal(double stddev) {
  return stddev > 0 ? mix_initializer_new("random_normal", .stddev = stddev)
                    : mix_initializer_new("glorot_uniform");
}

mix_layer *mix_hub_drop(mix_layer *layer, mix_hub_part part, double rate, mix_shape shape) {
  if (!part.attribute || rate <= 0) return NULL;
  return mix_hub_add(layer, mix_hub_layer(dropout, layer, part.name, .rate = rate), part.attribute, shape);
}

mix_layer *mix_hub_projection(mix_layer *layer, mix_hub_part part, mix_shape input, int bound,
                              mix_shape sizes, const mix_hub_kernel_options *o) {
  mix_initializer *kernel = mix_hub_normal(o->stddev), *bias = mix_initializer_new("zeros");
  const mix_projection_options options = {
      .no_bias = !o->bias, .kernel_initializer = kernel, .bias_initializer = bias};
  if (mix_failed()) return NULL;
  if (!o->heads_first)
    return mix_projection(layer, part.name, part.attribute, input, bound, sizes, NULL, &options);
  mix_layer *made = mix_hub_layer(einsum_dense, layer, part.name, .equation = "btd,ndh->btnh",
                                  .output_shape = MIX_SHAPE(MIX_UNKNOWN, sizes.dims[0], sizes.dims[1]),
                                  .kernel_initializer_object = kernel);
  return mix_hub_add(layer, made, part.attribute, input);
}

/* ---- build ---- */

static bool build_heads(mix_layer *layer, hub_attention *h, mix_shape x) {
  const mix_hub_attention_options *o = &h->options;
  const mix_hub_decoder_form *form = o->form;
  const mix_hub_kernel_options kernel = {form->bias, form->heads_first, o->stddev};
  const mix_shape groups = MIX_SHAPE(o->groups, h->head_dim);
  if (!form->key.attribute) {
    h->query = mix_hub_projection(layer, form->query, x, 1, MIX_SHAPE(o->heads, 3 * h->head_dim), &kernel);
    return h->query;
  }
  h->query = mix_hub_projection(layer, form->query, x, 1, MIX_SHAPE(o->heads, h->head_dim), &kernel);
  h->key = h->query ? mix_hub_projection(layer, form->key, x, 1, groups, &kernel) : NULL;
  h->value = h->key ? mix_hub_projection(layer, form->value, x, 1, groups, &kernel) : NULL;
  return h->value;
}

static bool build_scores(mix_layer *layer, hub_attention *h) {
  const mix_hub_attention_options *o = &h->options;
  h->attention.rate = o->form->scores_dropout.attribute ? o->dropout : 0;
  h->attention.scale = 1 / sqrt((double)h->head_dim);
  h->attention.attention_axes = 1;
  h->attention.query_first = true;
  h->attention.soft_cap = o->soft_cap;
  h->attention.zeroes_masked = true;
  snprintf(h->attention.dot, sizeof h->attention.dot, "bquh,bkuh->buqk");
  snprintf(h->attention.combine, sizeof h->attention.combine, "buqk,bkuh->bquh");
  if (!mix_head_attention_build(layer, &h->attention, MIX_AXES(-1), 0)) return false;
  if (h->attention.rate) h->attention.dropout->attribute = o->form->scores_dropout.attribute;
  return true;
}

static bool build_output(mix_layer *layer, hub_attention *h, mix_shape x) {
  const mix_hub_attention_options *o = &h->options;
  const mix_hub_decoder_form *form = o->form;
  const mix_shape heads = MIX_SHAPE(x.dims[0], x.dims[1], o->heads, h->head_dim);
  const mix_hub_kernel_options kernel = {form->output_bias, false, o->stddev};
  h->heads_dropout = mix_hub_drop(layer, form->heads_dropout, o->dropout, heads);
  if (mix_failed()) return false;
  if (form->dense_output && !form->einsum_output)
    h->output = mix_hub_add(layer,
                            mix_hub_layer(dense, layer, form->output.name, .units = x.dims[2],
                                          .no_bias = !form->output_bias,
                                          .kernel_initializer_object = mix_hub_normal(o->stddev)),
                            form->output.attribute, x);
  else
    h->output = mix_hub_projection(layer, form->output, form->dense_output ? x : heads,
                                   form->dense_output ? 1 : 2, MIX_SHAPE(x.dims[2]), &kernel);
  return h->output;
}

static mix_status hub_attention_build(mix_layer *layer, int count, const mix_shape *shapes) {
  hub_attention *h = layer->data;
  const mix_hub_attention_options *o = &h->options;
  const mix_shape x = shapes[0];
  if (h->query) return mix_fail_status(MIX_RUNTIME_ERROR, "%s: an earlier build failed", layer->name);
  h->head_dim = o->head_dim ? o->head_dim : x.dims[2] / o->heads;
  if (o->heads % o->groups || h->head_dim < 1 || h->head_dim < o->rotary.dimensions)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: %lld features, %lld heads of queries and %lld of keys; expected features for "
                           "each head, and a multiple of the heads of keys",
                           layer->name, (long long)x.dims[2], (long long)o->heads, (long long)o->groups);
  if (o->rotary.dimensions % 2)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: %lld features of each head rotate; expected an even number",
                           layer->name, (long long)o->rotary.dimensions);
  if (build_heads(layer, h, x) && build_scores(layer, h)) build_output(layer, h, x);
  return mix_error();
}

/* ---- call ---- */

/* Slopes of a power of 2 of heads are a geometric sequence; of other numbers the missing ones are every other
 * one of twice as many heads. */
static double slope_of(int64_t head, int64_t heads) {
  int64_t power = 1;
  while (power * 2 <= heads) power *= 2;
  if (head < power) return pow(2, -8.0 * (double)(head + 1) / (double)power);
  return slope_of(2 * (head - power), 2 * power);
}

static mix_tensor *slopes_of(const hub_attention *h) {
  enum { MOST = 1024 };
  float slopes[MOST];
  const int64_t heads = h->options.heads;
  if (heads > MOST)
    return mix_fail_value("attention: %lld heads; expected at most %d", (long long)heads, MOST);
  for (int64_t i = 0; i < heads; i++)
    slopes[i] = (float)(slope_of(i, heads) * (h->options.form->slopes_scaled ? h->attention.scale : 1));
  return mix_tensor_from(slopes, MIX_FLOAT32, MIX_SHAPE(heads));
}

static bool split_heads(const hub_attention *h, mix_tensor *x, mix_tensor *heads[3]) {
  heads[0] = mix_call(h->query, x);
  heads[1] = h->key ? mix_call(h->key, x) : NULL;
  heads[2] = h->value ? mix_call(h->value, x) : NULL;
  if (mix_failed()) return false;
  mix_tensor *all = heads[0];
  for (int i = 0; i < 3 && !h->key; i++) heads[i] = mix_layer_range(all, 3, i * h->head_dim, h->head_dim, 1);
  return !mix_failed();
}

static mix_list *hub_attention_call(mix_layer *layer, const mix_call_args *args) {
  const hub_attention *h = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *heads[3], *places = mix_call_positions(args);
  if (!places || !split_heads(h, x, heads)) return NULL;
  for (int i = 0; i < 2; i++) heads[i] = mix_rotate(heads[i], &h->options.rotary, places);
  mix_head_attention attention = h->attention;
  if (h->options.form->slopes && !mix_tensor_is_symbolic(x)) attention.slopes = slopes_of(h);
  mix_tensor *mask = mix_failed() ? NULL : mix_attention_mask(args, h->options.window, false);
  mix_list *attended = mix_attend_layer(layer, &attention, args, heads, mask, h->options.window);
  mix_tensor *y = attended ? mix_list_get(attended, 0) : NULL;
  if (y && h->heads_dropout) y = mix_call(h->heads_dropout, y);
  if (y && h->options.form->dense_output) {
    const mix_shape s = mix_tensor_shape(x); /* the heads together have its features */
    y = mix_layer_reshape(y, s);
  }
  y = y ? mix_call(h->output, y) : NULL;
  if (y && h->options.form->drops_output && attention.rate) y = mix_call(attention.dropout, y);
  return mix_one_result(y);
}

/* The other options come from a block, which has checked them. */
static const mix_field_row fields[] = {MIX_ROTARY_FIELDS(mix_hub_attention_options), {0}};
MIX_LAYER_KIND_ONLY(hub_attention, mix_hub_attention_options, .fields = fields, .keras3_only = true,
                    .call_tensors = mix_attention_tensors, .call_is_attention = true,
                    .decodes = mix_attention_decodes,
                    MIX_LAYER_CLASS(.name = "Attention", .instance_size = sizeof(hub_attention),
                                    .build = hub_attention_build, .call = hub_attention_call,
                                    .output_shape = mix_layer_same_shape, .supports_masking = true))
