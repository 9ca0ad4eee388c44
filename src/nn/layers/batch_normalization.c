/* BatchNormalization (Ioffe, Szegedy; arXiv:1502.03167). Statistics, gamma and beta are at least float32
 * under every policy (docs/spec/mixed_precision.md, 5.1 and 5.2). The differences between generations are
 * fields of nn/policy/semantics.h. */
#include "base/error.h"
#include "distribute/distribute.h"
#include "nn/layer/decoding.h"
#include "nn/keep.h"
#include "nn/layers/moments.h"
#include "ops/with_number.h"
#include <math.h>
#include <string.h>

typedef struct batch_normalization {
  mix_batch_normalization_options options;
  bool fused;  /* set by build */
  bool warned; /* about a mask that the fused rules ignore */
  /* owned by the layer's list; shape (channels) */
  mix_variable *gamma, *beta, *moving_mean, *moving_variance;
  mix_variable *moving_stddev, *renorm_mean, *renorm_stddev; /* NULL without renorm */
} batch_normalization;

/* Sets `fused`: whether an input of that shape follows the rules of the fused kernel. False with a
 * ValueError if fused was requested and is not possible. */
static bool decide_fused(const mix_layer *layer, batch_normalization *b, mix_shape in, int axis) {
  bool rank = in.rank == 4 || in.rank == 5, channels = axis == 1 || axis == in.rank - 1;
  b->fused = layer->semantics->batch_norm_fused && !b->options.not_fused && !b->options.synchronized &&
             rank && channels && layer->compute != MIX_FLOAT64;
  if (!b->options.fused || b->fused || !layer->semantics->batch_norm_fused) return true;
  return mix_fail_value("%s: fused was asked for an input of rank %d, axis %d and dtype %s; "
                        "expected rank 4 or 5, axis 1 or the last, and no float64",
                        layer->name, in.rank, axis, mix_dtype_name(layer->compute));
}

/* Of renormalization. The standard deviations start at the root of what the variance starts at. */
static bool build_renorm(mix_layer *layer, batch_normalization *b, int64_t channels) {
#define STATISTIC(called, from)                                                                              \
  mix_layer_add_weight(layer, called, .shape = MIX_SHAPE(channels), .not_trainable = true,                   \
                       .no_autocast = true, .initializer_object = b->options.from##_object)
  b->moving_stddev = STATISTIC("moving_stddev", moving_variance_initializer);
  b->renorm_mean = STATISTIC("renorm_mean", moving_mean_initializer);
  b->renorm_stddev = STATISTIC("renorm_stddev", moving_variance_initializer);
  mix_variable *const deviations[] = {b->moving_stddev, b->renorm_stddev};
  for (int i = 0; i < 2 && !mix_failed(); i++)
    mix_variable_assign(deviations[i], mix_sqrt(mix_variable_true_value(deviations[i])));
  return !mix_failed();
}

static mix_status batch_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
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
                           layer->name, MIX_SHAPE_TEXT(in), b->options.axis);
  bool narrow = mix_dtype_size(layer->variable) == 2;
  const char *dtype = narrow && layer->semantics->batch_norm_float32_weights ? "float32" : NULL;
  mix_affine_build(layer, MIX_AFFINE_OF(b), MIX_SHAPE(channels), dtype, true);
  b->moving_mean = mix_layer_add_weight(layer, "moving_mean", .shape = MIX_SHAPE(channels), .dtype = dtype,
                                        .not_trainable = true, .no_autocast = true,
                                        .initializer_object = b->options.moving_mean_initializer_object);
  b->moving_variance = mix_layer_add_weight(
      layer, "moving_variance", .shape = MIX_SHAPE(channels), .dtype = dtype, .not_trainable = true,
      .no_autocast = true, .initializer_object = b->options.moving_variance_initializer_object);
  if (b->options.renorm && !build_renorm(layer, b, channels)) return mix_error();
  return mix_layer_require_size(layer, in.rank, axis.axis[0], channels);
}

/* Moments of the elements that the mask keeps. The mask has one axis less than x (..., channels). */
static bool masked_moments(mix_tensor *x, mix_tensor *mask, mix_axes axes, mix_tensor **mean,
                           mix_tensor **variance) {
  mix_tensor *kept =
      mix_broadcast_to(mix_expand_dims(mix_cast(mask, mix_tensor_dtype(x)), -1), mix_tensor_shape(x));
  mix_tensor *count = mix_reduce_sum(kept, axes, true);
  /* Keras's epsilon(), for a batch without valid elements */
  count = mix_plus(count, 1e-7);
  *mean = mix_divide(mix_reduce_sum(mix_multiply(kept, x), axes, true), count);
  *variance = mix_divide(
      mix_reduce_sum(mix_multiply(kept, mix_squared_difference(x, mix_stop_gradient(*mean))), axes, true),
      count);
  return !mix_failed();
}

/* synchronized: moments of the rows of all ranks. Elements that no mask keeps do not count. */
static bool moments_of_ranks(mix_tensor *x, mix_tensor *mask, mix_axes axes, mix_tensor **mean,
                             mix_tensor **variance) {
  mix_tensor *kept = mix_ones_like(x);
  if (mask)
    kept = mix_broadcast_to(mix_expand_dims(mix_cast(mask, mix_tensor_dtype(x)), -1), mix_tensor_shape(x));
  mix_tensor *of_ranks[] = {mix_reduce_sum(kept, axes, true),
                            mix_reduce_sum(mix_multiply(kept, x), axes, true)};
  if (!mix_all_reduce_together(2, of_ranks)) return false;
  mix_tensor *count = of_ranks[0], *sum = of_ranks[1];
  *mean = mix_divide(sum, mix_maximum(count, mix_scalar_like(count, 1)));
  mix_tensor *squares = mix_multiply(kept, mix_squared_difference(x, mix_stop_gradient(*mean)));
  sum = mix_all_reduce(mix_reduce_sum(squares, axes, true));
  *variance = mix_divide(sum, mix_maximum(count, mix_scalar_like(count, 1)));
  return !mix_failed();
}

/* This rank has no rows of the batch, which a mean would divide by: any statistics do, as long as what the
 * gradients of gamma and beta are multiplied with is finite. */
static bool moments_of_none(mix_dtype dtype, mix_shape along, mix_tensor **mean, mix_tensor **variance) {
  *mean = mix_fill(along, 0, dtype);
  *variance = mix_fill(along, 1, dtype);
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

/* What moving statistics move towards: without a gradient, and the mean over the ranks of the statistics of
 * their rows, weighed by their number, so that all ranks move alike. */
static bool targets_of_ranks(const batch_normalization *b, int64_t rows, mix_tensor **mean,
                             mix_tensor **deviation) {
  const mix_shape shape = mix_variable_shape(b->moving_mean);
  mix_tensor *sums[] = {mix_stop_gradient(mix_reshape(*mean, shape)),
                        mix_stop_gradient(mix_reshape(*deviation, shape)), NULL};
  if (!mix_failed() && mix_is_distributed() && !b->options.synchronized) {
    mix_tensor *own = mix_scalar_like(sums[0], (double)rows);
    for (int i = 0; i < 2; i++) sums[i] = rows ? mix_multiply(sums[i], own) : mix_zeros_like(sums[i]);
    sums[2] = own;
    if (!mix_all_reduce_together(3, sums)) return false;
    for (int i = 0; i < 2; i++) sums[i] = mix_divide(sums[i], sums[2]);
  }
  *mean = sums[0], *deviation = sums[1];
  return !mix_failed();
}

/* Updates a moving statistic. tf_keras computes in the variable's dtype, keras3 in that of the batch
 * statistic. */
static bool move(mix_layer *layer, mix_variable *variable, mix_tensor *batch, double momentum) {
  mix_dtype dtype = mix_variable_true_dtype(variable);
  mix_tensor *old = mix_variable_true_value(variable), *moved;
  if (layer->semantics->batch_norm_update_subtracts) {
    mix_tensor *step = mix_kept(mix_subtract(old, mix_cast(batch, dtype)));
    moved = mix_kept(mix_subtract(old, mix_kept(mix_multiply(step, mix_scalar_like(old, 1 - momentum)))));
  } else {
    old = mix_cast(old, mix_tensor_dtype(batch));
    mix_tensor *share = mix_kept(mix_times(batch, 1 - momentum));
    moved = mix_cast(mix_kept(mix_add(mix_kept(mix_times(old, momentum)), share)), dtype);
  }
  return moved && mix_variable_assign(variable, moved) == MIX_OK;
}

/* The number of elements of a channel. */
static int64_t rows_of(const batch_normalization *b, mix_tensor *x) {
  return mix_shape_size(mix_tensor_shape(x)) / mix_shape_size(mix_variable_shape(b->moving_mean));
}

static bool update(mix_layer *layer, mix_tensor *x, mix_tensor *mean, mix_tensor *variance) {
  const batch_normalization *b = mix_layer_data(layer);
  const int64_t rows = rows_of(b, x);
  /* Bessel's correction, only for the moving variance */
  if (b->fused && layer->semantics->batch_norm_unbiased_moving_variance) {
    const double count = (double)rows;
    variance = mix_times(variance, count / (count > 1 ? count - 1 : 1));
  }
  return targets_of_ranks(b, rows, &mean, &variance) &&
         move(layer, b->moving_mean, mean, b->options.momentum) &&
         move(layer, b->moving_variance, variance, b->options.momentum);
}

/* ---- renormalization ---- */

/* min(max(x, low), high); a bound that is not finite is none. */
static mix_tensor *bounded(mix_tensor *x, double low, double high) {
  if (isfinite(low)) x = mix_maximum(x, mix_scalar_like(x, low));
  return isfinite(high) ? mix_minimum(x, mix_scalar_like(x, high)) : x;
}

/* gamma and beta that first lead to r and d, and the new moving statistics. All of the shape `along`. */
static bool renormalize(mix_layer *layer, int64_t rows, mix_tensor *mean, mix_tensor *variance,
                        mix_shape along, bool symbolic, mix_tensor **gamma, mix_tensor **beta) {
  const batch_normalization *b = mix_layer_data(layer);
  const mix_batch_normalization_options *o = &b->options;
  const mix_dtype wide = mix_tensor_dtype(mean);
  mix_tensor *stddev = mix_sqrt(mix_plus(variance, o->epsilon));
  mix_tensor *usual = mix_affine_value(b->renorm_stddev, wide, along),
             *centre = mix_affine_value(b->renorm_mean, wide, along);
  if (!stddev || !usual || !centre) return false;
  usual = mix_maximum(usual, mix_scalar_like(usual, sqrt(o->epsilon)));
  mix_tensor *r = bounded(mix_divide(stddev, usual), o->renorm_rmin, o->renorm_rmax);
  mix_tensor *d = bounded(mix_divide(mix_subtract(mean, centre), usual), -o->renorm_dmax, o->renorm_dmax);
  r = mix_stop_gradient(r);
  d = mix_stop_gradient(d);
  if (*gamma) d = mix_multiply(d, *gamma);
  *gamma = *gamma ? mix_multiply(r, *gamma) : r;
  *beta = *beta ? mix_add(d, *beta) : d;
  if (symbolic) return !mix_failed();
  if (!targets_of_ranks(b, rows, &mean, &stddev) || !move(layer, b->renorm_mean, mean, o->renorm_momentum) ||
      !move(layer, b->renorm_stddev, stddev, o->renorm_momentum) ||
      !move(layer, b->moving_mean, mean, o->momentum) || !move(layer, b->moving_stddev, stddev, o->momentum))
    return false;
  mix_tensor *moved = mix_variable_true_value(b->moving_stddev);
  if (!moved) return false;
  moved = mix_kept(mix_subtract(mix_kept(mix_square(moved)), mix_scalar_like(moved, o->epsilon)));
  return mix_variable_assign(b->moving_variance, mix_kept(mix_maximum(moved, mix_scalar_like(moved, 0)))) ==
         MIX_OK;
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
    const bool of_ranks = b->options.synchronized && mix_is_distributed() && !args->symbolic;
    const bool none = mix_is_distributed() && !args->symbolic && mix_shape_size(shape) == 0;
    if (!(of_ranks ? moments_of_ranks(x, mask, reduced, &mean, &variance)
          : none   ? moments_of_none(wide, along, &mean, &variance)
          : mask   ? masked_moments(x, mask, reduced, &mean, &variance)
                   : mix_moments(x, reduced, false, &mean, &variance)))
      return NULL;
    if (!b->options.renorm && !args->symbolic && !update(layer, x, mean, variance)) return NULL;
  } else {
    mean = mix_affine_value(b->moving_mean, wide, along);
    variance = mix_affine_value(b->moving_variance, wide, along);
  }
  mix_tensor *gamma = mix_affine_value(b->gamma, wide, along), *beta = mix_affine_value(b->beta, wide, along);
  if (b->options.renorm && args->training && layer->trainable &&
      !renormalize(layer, rows_of(b, x), mean, variance, along, args->symbolic, &gamma, &beta))
    return NULL;
  return mix_one_result(mix_cast(mix_normalized(x, mean, variance, b->options.epsilon, gamma, beta), result));
}

static bool mixes_samples(const mix_layer *layer) { return layer->trainable; }

static bool batch_normalization_check(void *options, const mix_layer_kind *kind) {
  const mix_batch_normalization_options *o = options;
  if (o->renorm && !(o->renorm_rmax >= o->renorm_rmin))
    return mix_fail_value("%s: renorm_rmax is %g; expected at least renorm_rmin, %g", kind->call,
                          o->renorm_rmax, o->renorm_rmin);
  if (o->fused && o->synchronized)
    return mix_fail_value("%s: fused is not possible with synchronized; leave it out", kind->call);
  if (!o->fused || !o->not_fused) return true;
  return mix_fail_value("%s: both fused and not_fused were given; give one", kind->call);
}

static bool batch_normalization_ready(mix_layer *layer) {
  const batch_normalization *b = layer->data;
  if (b->options.renorm && !layer->semantics->config_newer_options)
    return mix_fail_value("%s: renorm is not known in these semantics; keras3 has it", layer->kind->call);
  if (!b->options.fused || !layer->semantics->batch_norm_fused || layer->compute != MIX_FLOAT64) return true;
  return mix_fail_value("%s: fused does not support float64", layer->kind->call);
}

/* Keras's fused: True, False, or None, which configs leave out. */
static json_t *write_fused(const mix_field *field) {
  const mix_batch_normalization_options *o = field->options;
  return o->fused || o->not_fused ? json_boolean(o->fused) : json_null();
}
static bool read_fused(const mix_field *field, const json_t *value) {
  mix_batch_normalization_options *o = field->options;
  o->fused = json_is_true(value);
  o->not_fused = json_is_false(value);
  return true;
}
static const mix_value_kind fused_kind = {
    .expected = "true or false", .size = sizeof(bool), .write = write_fused, .read = read_fused};

/* Keras's renorm_clipping: a dict of the bounds that there are, or None. The members have rows of their own
 * that configs do not show. */
static json_t *write_clipping(const mix_field *field) {
  const mix_batch_normalization_options *o = field->options;
  json_t *clipping = json_object();
  if (isfinite(o->renorm_rmax)) mix_json_set(clipping, "rmax", mix_number_json(o->renorm_rmax));
  if (isfinite(o->renorm_rmin)) mix_json_set(clipping, "rmin", mix_number_json(o->renorm_rmin));
  if (isfinite(o->renorm_dmax)) mix_json_set(clipping, "dmax", mix_number_json(o->renorm_dmax));
  if (json_object_size(clipping) || o->renorm) return clipping;
  json_decref(clipping);
  return json_null();
}
static bool read_clipping(const mix_field *field, const json_t *value) {
  mix_batch_normalization_options *o = field->options;
  const char *key;
  json_t *bound;
  if (json_is_null(value)) return true;
  if (!json_is_object(value)) return mix_field_mistyped(field, value);
  json_object_foreach((json_t *)value, key, bound) {
    double *member = !strcmp(key, "rmin")   ? &o->renorm_rmin
                     : !strcmp(key, "rmax") ? &o->renorm_rmax
                     : !strcmp(key, "dmax") ? &o->renorm_dmax
                                            : NULL;
    if (!member)
      return mix_fail_value("%s: %s has '%.60s'; expected rmax, rmin and dmax", field->call, field->name,
                            key);
    if (!json_is_number(bound)) return mix_field_mistyped(field, bound);
    *member = json_number_value(bound) == 0 ? MIX_ZERO : json_number_value(bound);
  }
  return true;
}
static const mix_value_kind clipping_kind = {
    .expected = "an object of numbers", .size = 0, .write = write_clipping, .read = read_clipping};
static const mix_value_kind bound_kind = {
    .expected = "a number", .size = sizeof(double), .resolve = mix_resolve_number};

static mix_status batch_normalization_config(mix_layer *layer, mix_config *config) {
  const batch_normalization *b = layer->data;
  return mix_config_resolved_axes(layer, config, MIX_AXES(b->options.axis));
}

static bool batch_normalization_decodes(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, MIX_AXES(((const batch_normalization *)layer->data)->options.axis));
}

#define FIELD(member) MIX_FIELD(mix_batch_normalization_options, member)
static const mix_field_row fields[] = {
    {FIELD(axis), &mix_field_axis},
    {FIELD(momentum), &mix_field_number, .number = 0.99},
    {FIELD(epsilon), &mix_field_number, .number = 1e-3, .range = MIX_NOT_NEGATIVE},
    MIX_AFFINE_FIELDS(mix_batch_normalization_options),
    MIX_INITIALIZER_FIELD(mix_batch_normalization_options, moving_mean_initializer, "zeros"),
    MIX_INITIALIZER_FIELD(mix_batch_normalization_options, moving_variance_initializer, "ones"),
#define NEWER .only = MIX_RULE(config_newer_options)
    {FIELD(synchronized), &mix_field_boolean, NEWER},
    {FIELD(renorm), &mix_field_boolean, NEWER},
    {FIELD(renorm_rmin), &bound_kind, .number = -INFINITY},
    {FIELD(renorm_rmax), &bound_kind, .number = INFINITY},
    {FIELD(renorm_dmax), &bound_kind, .number = INFINITY, .range = MIX_NOT_NEGATIVE},
    {"renorm_clipping", 0, &clipping_kind, NEWER},
    {FIELD(renorm_momentum), &mix_field_number, .number = 0.99, NEWER},
    {FIELD(fused), &fused_kind, .omit_none = MIX_ALWAYS},
    {0}};
MIX_LAYER_KIND(batch_normalization, mix_batch_normalization_options, .fields = fields, .call_has_mask = true,
               .check = batch_normalization_check, .ready = batch_normalization_ready,
               .mixes_samples = mixes_samples, .decodes = batch_normalization_decodes,
               MIX_LAYER_CLASS(.name = "BatchNormalization", .instance_size = sizeof(batch_normalization),
                               .build = batch_normalization_build, .call = batch_normalization_call,
                               .get_config = batch_normalization_config, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
