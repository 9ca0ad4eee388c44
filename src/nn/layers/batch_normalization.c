/* BatchNormalization (Ioffe, Szegedy; arXiv:1502.03167). Statistics, gamma and beta are at least float32
 * under every policy (docs/spec/mixed_precision.md, 5.1 and 5.2). The differences between generations are
 * fields of nn/policy/semantics.h. */
#include "base/error.h"
#include "nn/keep.h"
#include "nn/layers/moments.h"

typedef struct batch_normalization {
  mix_batch_normalization_options options;
  bool fused;  /* set by build */
  bool warned; /* about a mask that the fused rules ignore */
  /* owned by the layer's list; shape (channels) */
  mix_variable *gamma, *beta, *moving_mean, *moving_variance;
} batch_normalization;

/* Sets `fused`: whether an input of that shape follows the rules of the fused kernel. False with a
 * ValueError if fused was requested and is not possible. */
static bool decide_fused(const mix_layer *layer, batch_normalization *b, mix_shape in, int axis) {
  bool rank = in.rank == 4 || in.rank == 5, channels = axis == 1 || axis == in.rank - 1;
  b->fused = layer->semantics->batch_norm_fused && !b->options.not_fused && rank && channels &&
             layer->compute != MIX_FLOAT64;
  if (!b->options.fused || b->fused || !layer->semantics->batch_norm_fused) return true;
  mix_fail(MIX_VALUE_ERROR,
           "%s: fused was asked for an input of rank %d, axis %d and dtype %s; "
           "expected rank 4 or 5, axis 1 or the last, and no float64",
           layer->name, in.rank, axis, mix_dtype_name(layer->compute));
  return false;
}

static mix_status batch_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  batch_normalization *b = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  mix_axes axis;
  if (count != 1 || in.rank < 2)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: expected one input of at least rank 2", layer->name);
  if (!mix_layer_axes(layer, MIX_AXES(b->options.axis), in.rank, &axis) ||
      !decide_fused(layer, b, in, axis.axis[0]))
    return mix_error();
  int64_t channels = in.dims[axis.axis[0]];
  if (channels == MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected a known dimension along axis %d",
                           layer->name, mix_shape_text(in, text, sizeof text), b->options.axis);
  bool narrow = mix_dtype_size(layer->variable) == 2;
  const char *dtype = narrow && layer->semantics->batch_norm_float32_weights ? "float32" : NULL;
  mix_affine_build(layer, MIX_AFFINE_OF(b), MIX_SHAPE(channels), dtype, true);
  b->moving_mean = mix_layer_add_weight(layer, "moving_mean", .shape = MIX_SHAPE(channels), .dtype = dtype,
                                        .not_trainable = true, .no_autocast = true,
                                        .initializer_object = b->options.moving_mean_initializer_object);
  b->moving_variance = mix_layer_add_weight(
      layer, "moving_variance", .shape = MIX_SHAPE(channels), .dtype = dtype, .not_trainable = true,
      .no_autocast = true, .initializer_object = b->options.moving_variance_initializer_object);
  mix_input_spec spec = {.size = sizeof spec,
                         .rank = in.rank,
                         .axis_count = 1,
                         .axes = {axis.axis[0]},
                         .axis_sizes = {channels}};
  return mix_layer_set_input_spec(layer, &spec);
}

/* Moments of the elements that the mask keeps. The mask has one axis less than x (..., channels). */
static bool masked_moments(mix_tensor *x, mix_tensor *mask, mix_axes axes, mix_tensor **mean,
                           mix_tensor **variance) {
  mix_tensor *kept =
      mix_broadcast_to(mix_expand_dims(mix_cast(mask, mix_tensor_dtype(x)), -1), mix_tensor_shape(x));
  mix_tensor *count = mix_reduce_sum(kept, axes, true);
  /* Keras's epsilon(), for a batch without valid elements */
  count = mix_add(count, mix_scalar_like(count, 1e-7));
  *mean = mix_divide(mix_reduce_sum(mix_multiply(kept, x), axes, true), count);
  *variance = mix_divide(
      mix_reduce_sum(mix_multiply(kept, mix_squared_difference(x, mix_stop_gradient(*mean))), axes, true),
      count);
  return !mix_failed();
}

/* The mask, or NULL with a warning if the fused rules ignore it. */
static mix_tensor *supported_mask(mix_layer *layer, batch_normalization *b, const mix_call_args *args) {
  mix_tensor *mask = mix_call_mask(args);
  if (!mask || !b->fused) return mask;
  if (!b->warned)
    mix_log_message(MIX_LOG_WARNING,
                    "%s: the mask is ignored: fused batch normalization does not support one", layer->name);
  b->warned = true;
  return NULL;
}

/* Updates a moving statistic. tf_keras computes in the variable's dtype, keras3 in that of the batch
 * statistic. */
static bool move(mix_layer *layer, mix_variable *variable, mix_tensor *batch, double momentum) {
  mix_dtype dtype = mix_variable_true_dtype(variable);
  mix_tensor *old = mix_variable_true_value(variable), *moved;
  batch = mix_stop_gradient(mix_reshape(batch, mix_variable_shape(variable)));
  if (layer->semantics->batch_norm_update_subtracts) {
    mix_tensor *step = mix_kept(mix_subtract(old, mix_cast(batch, dtype)));
    moved = mix_kept(mix_subtract(old, mix_kept(mix_multiply(step, mix_scalar_like(old, 1 - momentum)))));
  } else {
    old = mix_cast(old, mix_tensor_dtype(batch));
    mix_tensor *share = mix_kept(mix_multiply(batch, mix_scalar_like(batch, 1 - momentum)));
    moved = mix_cast(mix_kept(mix_add(mix_kept(mix_multiply(old, mix_scalar_like(old, momentum))), share)),
                     dtype);
  }
  return moved && mix_variable_assign(variable, moved) == MIX_OK;
}

static bool update(mix_layer *layer, mix_tensor *x, mix_tensor *mean, mix_tensor *variance) {
  const batch_normalization *b = mix_layer_data(layer);
  /* Bessel's correction, only for the moving variance */
  if (b->fused && layer->semantics->batch_norm_unbiased_moving_variance) {
    double count = (double)mix_shape_size(mix_tensor_shape(x)) /
                   (double)mix_shape_size(mix_variable_shape(b->moving_mean));
    variance = mix_multiply(variance, mix_scalar_like(variance, count / (count > 1 ? count - 1 : 1)));
  }
  return move(layer, b->moving_mean, mean, b->options.momentum) &&
         move(layer, b->moving_variance, variance, b->options.momentum);
}

static mix_list *batch_normalization_call(mix_layer *layer, const mix_call_args *args) {
  batch_normalization *b = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_dtype result = mix_dtype_is_floating(layer->compute) ? layer->compute : mix_tensor_dtype(x);
  mix_dtype wide = mix_widened(mix_tensor_dtype(x));
  mix_shape shape = mix_tensor_shape(x);
  mix_axes axis;
  if (!mix_layer_axes(layer, MIX_AXES(b->options.axis), shape.rank, &axis)) return NULL;
  mix_axes reduced = mix_other_axes(axis, shape.rank);
  mix_shape along = mix_shape_of_axes(shape, axis, true); /* (1, ..., channels, ..., 1) */
  mix_tensor *mean, *variance, *mask = supported_mask(layer, b, args);
  x = mix_cast(x, wide);
  if (args->training && layer->trainable) {
    if (!(mask ? masked_moments(x, mask, reduced, &mean, &variance)
               : mix_moments(x, reduced, false, &mean, &variance)))
      return NULL;
    if (!args->symbolic && !update(layer, x, mean, variance)) return NULL;
  } else {
    mean = mix_affine_value(b->moving_mean, wide, along);
    variance = mix_affine_value(b->moving_variance, wide, along);
  }
  mix_tensor *gamma = mix_affine_value(b->gamma, wide, along), *beta = mix_affine_value(b->beta, wide, along);
  return mix_one_result(mix_cast(mix_normalized(x, mean, variance, b->options.epsilon, gamma, beta), result));
}

static bool batch_normalization_check(void *options, const mix_layer_kind *kind) {
  const mix_batch_normalization_options *o = options;
  if (!o->fused || !o->not_fused) return true;
  return mix_fail(MIX_VALUE_ERROR, "%s: both fused and not_fused were given; give one", kind->call), false;
}

static bool batch_normalization_ready(mix_layer *layer) {
  const batch_normalization *b = layer->data;
  if (!b->options.fused || !layer->semantics->batch_norm_fused || layer->compute != MIX_FLOAT64) return true;
  return mix_fail(MIX_VALUE_ERROR, "%s: fused does not support float64", layer->kind->call), false;
}

/* Keras's fused: True, False, or None, which configs leave out. */
static json_t *write_fused(const mix_fields *fields, const mix_field_row *field, const void *options) {
  (void)fields, (void)field;
  const mix_batch_normalization_options *o = options;
  return o->fused || o->not_fused ? json_boolean(o->fused) : json_null();
}
static bool read_fused(const mix_fields *fields, const mix_field_row *field, const json_t *value,
                       void *options) {
  (void)fields, (void)field;
  mix_batch_normalization_options *o = options;
  o->fused = json_is_true(value);
  o->not_fused = json_is_false(value);
  return true;
}
static const mix_value_kind fused_kind = {
    .expected = "true or false", .size = sizeof(bool), .write = write_fused, .read = read_fused};

static mix_status batch_normalization_config(mix_layer *layer, mix_config *config) {
  const batch_normalization *b = layer->data;
  return mix_config_resolved_axes(layer, config, MIX_AXES(b->options.axis));
}

#define FIELD(member) MIX_FIELD(mix_batch_normalization_options, member)
static const mix_field_row fields[] = {
    {FIELD(axis), &mix_field_axis},
    {FIELD(momentum), &mix_field_number, .number = 0.99},
    {FIELD(epsilon), &mix_field_number, .number = 1e-3, .range = MIX_NOT_NEGATIVE},
    MIX_AFFINE_FIELDS(mix_batch_normalization_options),
    MIX_INITIALIZER_FIELD(mix_batch_normalization_options, moving_mean_initializer, "zeros"),
    MIX_INITIALIZER_FIELD(mix_batch_normalization_options, moving_variance_initializer, "ones"),
#define NEWER(name, json, ...)                                                                               \
  { name, 0, &mix_field_fixed, .text = json, .only = MIX_RULE(config_newer_options), __VA_ARGS__ }
    NEWER("synchronized", "false", .optional = true),
    NEWER("renorm", "false"),
    NEWER("renorm_clipping", "null", .optional = true),
    NEWER("renorm_momentum", "0.99", .optional = true),
    {FIELD(fused), &fused_kind, .omit_none = MIX_ALWAYS},
    {0}};
MIX_LAYER_KIND(batch_normalization, mix_batch_normalization_options, .fields = fields, .call_has_mask = true,
               .check = batch_normalization_check, .ready = batch_normalization_ready,
               MIX_LAYER_CLASS(.name = "BatchNormalization", .instance_size = sizeof(batch_normalization),
                               .build = batch_normalization_build, .call = batch_normalization_call,
                               .get_config = batch_normalization_config, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
