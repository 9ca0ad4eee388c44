/* Dense: activation(x . kernel + bias). */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layer/remat.h"
#include "nn/layers/activation_functions.h"
#include "nn/layers/builtin.h"
#include "nn/layers/float8.h"
#include "nn/layers/lora.h"
#include "nn/layers/stored_weight.h"
#include <string.h>

typedef struct dense {
  mix_dense_options options;
  mix_variable *kernel, *bias; /* owned by the layer's list */
  mix_float8 float8;
  mix_stored_weight stored; /* instead of the kernel, where the policy says so */
} dense;

static mix_stored_shape stored_shape(int64_t in, int64_t units) {
  return (mix_stored_shape){.name = "kernel",
                            .shape = MIX_SHAPE(in, units),
                            .kept = MIX_AXES(1),
                            .packed_axis = 1,
                            .scale = MIX_SHAPE(units)};
}

static bool add_kernel(mix_layer *layer, int64_t in) {
  dense *d = mix_layer_data(layer);
  const mix_dense_options *o = &d->options;
  const mix_stored_shape of = stored_shape(in, o->units);
  if (mix_layer_stores_integers(layer))
    return mix_stored_build(layer, o->quantization_config, &of, &d->stored);
  d->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = of.shape, .initializer_object = o->kernel_initializer_object,
      .regularizer_object = o->kernel_regularizer, .constraint_object = o->kernel_constraint);
  return d->kernel;
}

static mix_status dense_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  dense *d = mix_layer_data(layer);
  const mix_dense_options *o = &d->options;
  mix_shape shape = input_shapes[0];
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  int64_t last = shape.rank ? shape.dims[shape.rank - 1] : MIX_UNKNOWN;
  if (shape.rank < 2 || last == MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected at least rank 2 and a known last dimension",
                           layer->name, MIX_SHAPE_TEXT(shape));
  if (!mix_float8_build(layer, &d->float8) || !add_kernel(layer, last)) return mix_error();
  if (!o->no_bias)
    d->bias = mix_layer_add_weight(
        layer, "bias", .shape = MIX_SHAPE(o->units), .initializer_object = o->bias_initializer_object,
        .regularizer_object = o->bias_regularizer, .constraint_object = o->bias_constraint);
  if (mix_failed()) return mix_error();
  mix_input_spec spec = {
      .size = sizeof spec, .min_rank = 2, .axis_count = 1, .axes = {-1}, .axis_sizes = {last}};
  return mix_layer_set_input_spec(layer, &spec) == MIX_OK ? mix_lora_build(layer) : mix_error();
}

/* The product with the kernel, before bias and activation. */
static mix_tensor *dense_product(const mix_layer *layer, mix_tensor *x, bool training) {
  const dense *d = layer->data;
  const bool apart = mix_lora_is_apart(layer);
  mix_tensor *xa = apart ? mix_matmul_rows(x, mix_lora_a(layer, layer->compute)) : NULL;
  if (d->stored.bits) {
    mix_tensor *y = mix_stored_product(&d->stored, x);
    return apart ? mix_lora_add(layer, y, xa) : y;
  }
  mix_tensor *kernel = apart ? mix_variable_value(d->kernel) : mix_lora_kernel(layer, d->kernel);
  x = mix_float8_operand(&d->float8, MIX_FLOAT8_INPUTS, x, training);
  kernel = mix_float8_operand(&d->float8, MIX_FLOAT8_KERNEL, kernel, training);
  mix_tensor *y = mix_float8_result(&d->float8, mix_matmul_rows(x, kernel));
  return apart ? mix_lora_add(layer, y, xa) : y;
}

static mix_list *dense_call(mix_layer *layer, const mix_call_args *args) {
  dense *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) x = mix_cast(x, layer->compute);
  mix_tensor *y = x ? dense_product(layer, x, args->training) : NULL;
  if (!y) return NULL;
  if (d->bias) y = mix_bias_add(y, mix_float8_bias(&d->float8, mix_variable_value(d->bias)));
  y = mix_layer_activate(layer, d->options.activation, y);
  return y ? mix_list_of(y) : NULL;
}

static const mix_stored_weight *dense_stored(const mix_layer *layer, mix_shape *shape) {
  const dense *d = layer->data;
  if (!d->stored.bits) return NULL;
  *shape = d->stored.of.shape;
  return &d->stored;
}

static mix_status dense_quantize(mix_layer *layer, const mix_quantization *quantization) {
  dense *d = mix_layer_data(layer);
  if (!strcmp(quantization->mode, "float8")) {
    mix_float8_add_weights(layer, &d->float8, quantization->amax_history_length);
    return mix_error();
  }
  const mix_stored_shape of = stored_shape(d->kernel->shape.dims[0], d->options.units);
  d->options.quantization_config = mix_quantization_config_text(&quantization->config);
  if (d->options.quantization_config &&
      mix_stored_replace(layer, d->kernel, &quantization->config, &of, &d->stored))
    d->kernel = NULL;
  return mix_lora_follow(layer);
}

static mix_shape dense_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape shape = input_shapes[0];
  const dense *d = mix_layer_data(layer);
  if (shape.rank) shape.dims[shape.rank - 1] = d->options.units;
  return mix_activation_shape(d->options.activation, shape);
}

#define FIELD(member) MIX_FIELD(mix_dense_options, member)
static const mix_field_row fields[] = {
    {FIELD(units), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(activation), &mix_field_activation},
    {"use_bias", offsetof(mix_dense_options, no_bias), &mix_field_negated},
    MIX_INITIALIZER_FIELD(mix_dense_options, kernel_initializer, "glorot_uniform"),
    MIX_INITIALIZER_FIELD(mix_dense_options, bias_initializer, "zeros"),
    {FIELD(kernel_regularizer), &mix_field_regularizer},
    {FIELD(bias_regularizer), &mix_field_regularizer},
    {FIELD(activity_regularizer), &mix_field_regularizer, .only = MIX_RULE(config_activity_regularizer)},
    {FIELD(kernel_constraint), &mix_field_constraint},
    {FIELD(bias_constraint), &mix_field_constraint},
    MIX_QUANTIZATION_CONFIG_FIELD(mix_dense_options),
    MIX_LORA_FIELDS(mix_dense_options),
    {0}};
MIX_LAYER_KIND(dense, mix_dense_options, .fields = fields, .quantize = dense_quantize,
               MIX_LORA_OF(mix_dense_options, kernel), .lora_alpha_lost = true, .stored = dense_stored,
               .decodes = mix_decodes_features,
               MIX_LAYER_CLASS(.name = "Dense", .instance_size = sizeof(dense), .build = dense_build,
                               .call = dense_call, .output_shape = dense_output_shape,
                               .supports_masking = true))
