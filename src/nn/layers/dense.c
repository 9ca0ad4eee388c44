/* Dense: activation(x . kernel + bias). */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/activation_functions.h"
#include "nn/config.h"
#include "nn/layer/layer.h"
#include "nn/weights/weights.h"
#include <mixtape/ops.h>

typedef struct dense {
  int64_t units;
  const char *activation; /* interned */
  bool no_bias;
  mix_initializer *kernel_initializer, *bias_initializer;
  mix_regularizer *kernel_regularizer, *bias_regularizer;
  mix_constraint *kernel_constraint, *bias_constraint;
  mix_variable *kernel, *bias; /* owned by the layer's list */
} dense;

static mix_status dense_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  dense *d = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  int64_t last = shape.rank ? shape.dims[shape.rank - 1] : MIX_UNKNOWN;
  if (shape.rank < 2 || last == MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected at least rank 2 and a known last dimension",
                           layer->name, mix_shape_text(shape, text, sizeof text));
  d->kernel = mix_layer_add_weight(
      layer, "kernel", .shape = MIX_SHAPE(last, d->units), .initializer_object = d->kernel_initializer,
      .regularizer_object = d->kernel_regularizer, .constraint_object = d->kernel_constraint);
  if (!d->no_bias)
    d->bias = mix_layer_add_weight(
        layer, "bias", .shape = MIX_SHAPE(d->units), .initializer_object = d->bias_initializer,
        .regularizer_object = d->bias_regularizer, .constraint_object = d->bias_constraint);
  if (mix_failed()) return mix_error();
  mix_input_spec spec = {
      .size = sizeof spec, .min_rank = 2, .axis_count = 1, .axes = {-1}, .axis_sizes = {last}};
  return mix_layer_set_input_spec(layer, &spec);
}

/* x (..., in) times kernel (in, units). Higher ranks are reshaped to one matrix, so that the product and
 * each gradient is one matmul. */
static mix_tensor *product(mix_tensor *x, mix_tensor *kernel) {
  mix_shape shape = mix_tensor_shape(x);
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  int64_t in = shape.dims[shape.rank - 1];
  if (shape.rank == 2 || unknown > 1 || !in) return mix_matmul(x, kernel, false, false);
  mix_tensor *rows = mix_reshape(x, MIX_SHAPE(-1, in));
  shape.dims[shape.rank - 1] = mix_tensor_shape(kernel).dims[1];
  return mix_reshape(mix_matmul(rows, kernel, false, false), shape);
}

static mix_list *dense_call(mix_layer *layer, const mix_call_args *args) {
  dense *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  if (!mix_dtype_is_floating(mix_tensor_dtype(x))) x = mix_cast(x, layer->compute);
  if (!x) return NULL;
  mix_tensor *y = product(x, mix_variable_value(d->kernel));
  if (d->bias) y = mix_bias_add(y, mix_variable_value(d->bias));
  y = mix_activate(d->activation, y, .semantics = layer->semantics);
  return y ? mix_list_of(y) : NULL;
}

static mix_shape dense_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  mix_shape shape = input_shapes[0];
  const dense *d = mix_layer_data(layer);
  if (shape.rank) shape.dims[shape.rank - 1] = d->units;
  return mix_activation_shape(d->activation, shape);
}

static mix_status dense_config(mix_layer *layer, mix_config *config) {
  const dense *d = mix_layer_data(layer);
  mix_config_integer(config, "units", d->units);
  mix_config_text(config, "activation", d->activation ? d->activation : "linear");
  mix_config_boolean(config, "use_bias", !d->no_bias);
  if (mix_failed()) return mix_error();
  bool good =
      mix_json_set(config->object, "kernel_initializer", mix_initializer_to_json(d->kernel_initializer)) &&
      mix_json_set(config->object, "bias_initializer", mix_initializer_to_json(d->bias_initializer)) &&
      mix_json_set(config->object, "kernel_regularizer", mix_regularizer_to_json(d->kernel_regularizer)) &&
      mix_json_set(config->object, "bias_regularizer", mix_regularizer_to_json(d->bias_regularizer)) &&
      mix_json_set(config->object, "kernel_constraint", mix_constraint_to_json(d->kernel_constraint)) &&
      mix_json_set(config->object, "bias_constraint", mix_constraint_to_json(d->bias_constraint));
  return good ? MIX_OK : mix_error();
}

static void dense_finalize(mix_layer *layer) {
  dense *d = mix_layer_data(layer);
  void *const references[] = {d->kernel_initializer, d->bias_initializer,  d->kernel_regularizer,
                              d->bias_regularizer,   d->kernel_constraint, d->bias_constraint};
  for (size_t i = 0; i < sizeof references / sizeof *references; i++) mix_release(references[i]);
}

const mix_layer_class mix_class_dense = {.size = sizeof(mix_layer_class),
                                         .name = "Dense",
                                         .instance_size = sizeof(dense),
                                         .build = dense_build,
                                         .call = dense_call,
                                         .output_shape = dense_output_shape,
                                         .get_config = dense_config,
                                         .finalize = dense_finalize,
                                         .supports_masking = true};

mix_dense_options mix_dense_defaults(void) { return (mix_dense_options){.size = sizeof(mix_dense_options)}; }

mix_layer *mix_dense_with(const mix_dense_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_dense_options, o, options, "dense");
  if (o.units <= 0)
    return mix_fail(MIX_VALUE_ERROR, "dense: units is %lld; expected a positive number", (long long)o.units);
  if (!mix_activation_known(o.activation, mix_semantics_or_current(o.semantics), "dense")) return NULL;
  const char *kernel =
      o.kernel_initializer_object || o.kernel_initializer ? o.kernel_initializer : "glorot_uniform";
  const char *bias = o.bias_initializer_object || o.bias_initializer ? o.bias_initializer : "zeros";
  mix_initializer *kernel_initializer = mix_initializer_choose(kernel, o.kernel_initializer_object, "dense");
  mix_initializer *bias_initializer = mix_initializer_choose(bias, o.bias_initializer_object, "dense");
  mix_layer *layer = mix_layer_make(&mix_class_dense, MIX_LAYER_COMMON(o), "dense");
  if (!layer) return NULL;
  *(dense *)layer->data = (dense){.units = o.units,
                                  .activation = mix_intern(o.activation),
                                  .no_bias = o.no_bias,
                                  .kernel_initializer = mix_retain(kernel_initializer),
                                  .bias_initializer = mix_retain(bias_initializer),
                                  .kernel_regularizer = mix_retain(o.kernel_regularizer),
                                  .bias_regularizer = mix_retain(o.bias_regularizer),
                                  .kernel_constraint = mix_retain(o.kernel_constraint),
                                  .bias_constraint = mix_retain(o.bias_constraint)};
  return mix_scoped(layer);
}
