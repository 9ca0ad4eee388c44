/* BatchNormalization (Ioffe, Szegedy; arXiv:1502.03167). Statistics, gamma and beta are at least float32
 * under every policy (docs/spec/mixed_precision.md, 5.1 and 5.2). The differences between generations are
 * fields of nn/policy/semantics.h. */
#include "base/error.h"
#include "nn/keep.h"
#include "nn/layers/moments.h"
#include "nn/weights/weights.h"

typedef struct batch_normalization {
  int axis;
  double momentum, epsilon;
  mix_affine affine;
  mix_initializer *mean_initializer, *variance_initializer;
  bool fused_requested, fused_disabled;
  bool fused;                                  /* set by build */
  bool warned;                                 /* about a mask that the fused rules ignore */
  mix_variable *moving_mean, *moving_variance; /* (channels); owned by the layer's list */
} batch_normalization;

/* Sets `fused`: whether an input of that shape follows the rules of the fused kernel. False with a
 * ValueError if fused was requested and is not possible. */
static bool decide_fused(const mix_layer *layer, batch_normalization *b, mix_shape in, int axis) {
  bool rank = in.rank == 4 || in.rank == 5, channels = axis == 1 || axis == in.rank - 1;
  b->fused = layer->semantics->batch_norm_fused && !b->fused_disabled && rank && channels &&
             layer->compute != MIX_FLOAT64;
  if (!b->fused_requested || b->fused || !layer->semantics->batch_norm_fused) return true;
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
  if (!mix_layer_axes(layer, MIX_AXES(b->axis), in.rank, &axis) || !decide_fused(layer, b, in, axis.axis[0]))
    return mix_error();
  int64_t channels = in.dims[axis.axis[0]];
  if (channels == MIX_UNKNOWN)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected a known dimension along axis %d",
                           layer->name, mix_shape_text(in, text, sizeof text), b->axis);
  bool narrow = mix_dtype_size(layer->variable) == 2;
  const char *dtype = narrow && layer->semantics->batch_norm_float32_weights ? "float32" : NULL;
  mix_affine_build(layer, &b->affine, MIX_SHAPE(channels), dtype, true);
  b->moving_mean = mix_layer_add_weight(layer, "moving_mean", .shape = MIX_SHAPE(channels), .dtype = dtype,
                                        .not_trainable = true, .no_autocast = true,
                                        .initializer_object = b->mean_initializer);
  b->moving_variance = mix_layer_add_weight(layer, "moving_variance", .shape = MIX_SHAPE(channels),
                                            .dtype = dtype, .not_trainable = true, .no_autocast = true,
                                            .initializer_object = b->variance_initializer);
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
  return move(layer, b->moving_mean, mean, b->momentum) &&
         move(layer, b->moving_variance, variance, b->momentum);
}

static mix_list *batch_normalization_call(mix_layer *layer, const mix_call_args *args) {
  batch_normalization *b = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_dtype result = mix_dtype_is_floating(layer->compute) ? layer->compute : mix_tensor_dtype(x);
  mix_dtype wide = mix_widened(mix_tensor_dtype(x));
  mix_shape shape = mix_tensor_shape(x);
  mix_axes axis;
  if (!mix_layer_axes(layer, MIX_AXES(b->axis), shape.rank, &axis)) return NULL;
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
  mix_tensor *gamma = mix_affine_value(b->affine.gamma, wide, along),
             *beta = mix_affine_value(b->affine.beta, wide, along);
  return mix_one_result(mix_cast(mix_normalized(x, mean, variance, b->epsilon, gamma, beta), result));
}

static mix_status batch_normalization_config(mix_layer *layer, mix_config *config) {
  const batch_normalization *b = mix_layer_data(layer);
  mix_config_integer(config, "axis", b->axis);
  mix_config_number(config, "momentum", b->momentum);
  mix_config_number(config, "epsilon", b->epsilon);
  bool good =
      mix_affine_config(&b->affine, config->object) &&
      mix_json_set(config->object, "moving_mean_initializer", mix_initializer_to_json(b->mean_initializer)) &&
      mix_json_set(config->object, "moving_variance_initializer",
                   mix_initializer_to_json(b->variance_initializer));
  if (good && (b->fused_requested || b->fused_disabled))
    mix_config_boolean(config, "fused", b->fused_requested);
  return good ? MIX_OK : mix_error();
}

static void batch_normalization_finalize(mix_layer *layer) {
  batch_normalization *b = mix_layer_data(layer);
  mix_affine_release(&b->affine);
  mix_release(b->mean_initializer);
  mix_release(b->variance_initializer);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "BatchNormalization",
                                      .instance_size = sizeof(batch_normalization),
                                      .build = batch_normalization_build,
                                      .call = batch_normalization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = batch_normalization_config,
                                      .finalize = batch_normalization_finalize,
                                      .supports_masking = true};

mix_batch_normalization_options mix_batch_normalization_defaults(void) {
  return (mix_batch_normalization_options){.size = sizeof(mix_batch_normalization_options)};
}

mix_layer *mix_batch_normalization_with(const mix_batch_normalization_options *options) {
  if (mix_failed()) return NULL;
  static const char call[] = "batch_normalization";
  MIX_OPTIONS(mix_batch_normalization_options, o, options, call);
  double epsilon = mix_option_number(o.epsilon, 1e-3);
  if (!(epsilon >= 0))
    return mix_fail(MIX_VALUE_ERROR, "%s: epsilon is %g; expected a number that is not negative", call,
                    epsilon);
  if (o.fused && o.not_fused)
    return mix_fail(MIX_VALUE_ERROR, "%s: both fused and not_fused were given; give one", call);
  batch_normalization b = {
      .axis = mix_axis_number(o.axis),
      .momentum = mix_option_number(o.momentum, 0.99),
      .epsilon = epsilon,
      .affine = MIX_AFFINE_OF(o, call),
      .mean_initializer =
          mix_initializer_or(o.moving_mean_initializer, o.moving_mean_initializer_object, "zeros", call),
      .variance_initializer = mix_initializer_or(o.moving_variance_initializer,
                                                 o.moving_variance_initializer_object, "ones", call),
      .fused_requested = o.fused,
      .fused_disabled = o.not_fused};
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), call);
  if (!layer) return NULL;
  mix_affine_retain(&b.affine);
  mix_retain(b.mean_initializer);
  mix_retain(b.variance_initializer);
  *(batch_normalization *)layer->data = b;
  mix_scoped(layer);
  if (o.fused && layer->semantics->batch_norm_fused && layer->compute == MIX_FLOAT64)
    return mix_fail(MIX_VALUE_ERROR, "%s: fused does not support float64", call);
  return layer;
}

/* tf_keras saves the axis of a built layer as a list of one. */
static int axis_from_json(const json_t *config) {
  const json_t *axis = json_object_get(config, "axis");
  if (json_is_array(axis) && json_array_size(axis) == 1) return mix_axis_option(mix_json_axes(axis).axis[0]);
  return mix_axis_option(mix_json_integer_or(config, "axis", -1));
}

mix_layer *mix_batch_normalization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  const json_t *fused = json_object_get(config, "fused");
  mix_batch_normalization_options o = {.size = sizeof o,
                                       MIX_COMMON_CONFIG(c),
                                       .axis = axis_from_json(config),
                                       .momentum = mix_json_option_number(config, "momentum", 0.99),
                                       .epsilon = mix_json_option_number(config, "epsilon", 1e-3),
                                       .moving_mean_initializer_object = mix_initializer_from_json(
                                           json_object_get(config, "moving_mean_initializer")),
                                       .moving_variance_initializer_object = mix_initializer_from_json(
                                           json_object_get(config, "moving_variance_initializer")),
                                       .fused = json_is_true(fused),
                                       .not_fused = json_is_false(fused)};
  MIX_AFFINE_FROM(o, config, semantics);
  return mix_batch_normalization_with(&o);
}
