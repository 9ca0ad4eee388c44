/* The variables of weights that are stored as integers, and the tensors made of them. */
#include "nn/layers/stored_weight.h"

#include "base/error.h"
#include "ops/table.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mix_layer_stores_integers(const mix_layer *layer) {
  const char *mode = mix_layer_quantization_mode(layer);
  return mode && (!strncmp(mode, "int8", 4) || !strncmp(mode, "int4", 4));
}

/* ---- variables ---- */

static mix_axes reduced_axes(const mix_stored_shape *of) {
  mix_axes reduced = {.count = 0};
  for (int axis = 0; axis < of->shape.rank; axis++) {
    bool kept = false;
    for (int i = 0; i < of->kept.count; i++) kept |= of->kept.axis[i] == axis;
    if (!kept) reduced.axis[reduced.count++] = axis;
  }
  return reduced;
}

static int64_t groups_along(int64_t size, int64_t block) { return size ? (size - 1) / block + 1 : 1; }

static mix_variable *add(mix_layer *layer, const char *name, const char *end, mix_shape shape,
                         const char *dtype, const char *initializer) {
  char text[80];
  snprintf(text, sizeof text, "%s%s", name, end);
  return mix_layer_add_weight(layer, text, .shape = shape, .dtype = dtype, .initializer = initializer,
                              .not_trainable = true);
}

/* 0, 0, ..., 1, 1, ...: the group of each row. */
static mix_tensor *group_numbers(int64_t rows, int64_t block) {
  mix_tensor *all = mix_range(0, (double)rows, 1, MIX_FLOAT32);
  return mix_floor_divide(all, mix_scalar((double)block, MIX_FLOAT32));
}

static bool add_variables(mix_layer *layer, mix_stored_weight *w) {
  const mix_stored_shape *of = &w->of;
  const int axis = reduced_axes(of).axis[0];
  mix_shape stored = of->shape, scale = of->scale;
  if (w->bits == 4) stored.dims[of->packed_axis] = (stored.dims[of->packed_axis] + 1) / 2;
  if (w->block) {
    scale = of->shape;
    scale.dims[axis] = groups_along(scale.dims[axis], w->block);
  }
  w->stored = add(layer, of->name, "", stored, "int8", "zeros");
  if (w->stored) w->stored->saved_first = true;
  w->scale = add(layer, of->name, "_scale", scale, NULL, "ones");
  if (!w->block) return !mix_failed();
  w->zero = add(layer, of->name, "_zero", scale, of->float_zero ? NULL : "int8", "zeros");
  if (mix_failed() || of->no_group_index) return !mix_failed();
  const int64_t rows = of->shape.dims[axis];
  w->group_index = add(layer, "g_idx", "", MIX_SHAPE(rows), "float32", "zeros");
  if (w->group_index) w->group_index->fixed = true;
  return w->group_index && !mix_variable_assign(w->group_index, group_numbers(rows, w->block));
}

static bool begin(mix_layer *layer, const mix_quantization_config *config, const mix_stored_shape *of,
                  mix_stored_weight *w) {
  const bool int4 = !strcmp(config->mode, "int4");
  *w = (mix_stored_weight){.bits = int4 ? 4 : 8,
                           .of = *of,
                           .block = int4 && config->block_size > 0 ? config->block_size : 0,
                           .inputs = config->inputs};
  return add_variables(layer, w);
}

/* int4 without numbers in a policy means one scale a column. */
static bool config_of(const mix_layer *layer, const char *text, mix_quantization_config *config) {
  const char *mode = mix_layer_quantization_mode(layer), *numbers = strchr(mode, '/');
  if (!text) {
    mix_quantization_config_default(mode, config);
    if (!strcmp(config->mode, "int4")) config->block_size = numbers ? strtoll(numbers + 1, NULL, 10) : -1;
    return true;
  }
  if (!mix_quantization_config_parse(text, config)) return false;
  if (!strncmp(config->mode, mode, strlen(config->mode))) return true;
  return mix_fail_value("%s: quantization_config has the mode %s, and the policy '%s' another; expected one "
                        "mode in both",
                        layer->name, config->mode, mix_layer_own_policy(layer)->name);
}

bool mix_stored_build(mix_layer *layer, const char *text, const mix_stored_shape *of, mix_stored_weight *w) {
  mix_quantization_config config;
  return config_of(layer, text, &config) && begin(layer, &config, of, w);
}

/* ---- quantization ---- */

/* The scale of the kept axes in ascending order, with the others as 1, in the variable's order. */
static mix_tensor *ordered(const mix_stored_weight *w, mix_tensor *scale) {
  mix_axes order = w->of.kept;
  const mix_axes reduced = reduced_axes(&w->of);
  for (int i = 0; i < reduced.count; i++) order.axis[order.count++] = reduced.axis[i];
  return mix_reshape(order.count ? mix_transpose(scale, order) : scale, w->scale->shape);
}

static mix_tensor *packed(const mix_stored_weight *w, mix_tensor *values) {
  mix_shape pairs = w->stored->shape;
  const int axis = w->of.packed_axis;
  const int64_t size = w->of.shape.dims[axis];
  mix_shape none = {.rank = pairs.rank}, after = none;
  after.dims[axis] = size % 2;
  mix_tensor *all = mix_pad(mix_cast(values, MIX_INT32), none, after, 0);
  for (int i = pairs.rank++; i > axis; i--) pairs.dims[i] = pairs.dims[i - 1];
  pairs.dims[axis + 1] = 2;
  mix_shape half = pairs, begin_high = {.rank = pairs.rank};
  half.dims[axis + 1] = begin_high.dims[axis + 1] = 1;
  all = mix_reshape(all, pairs);
  mix_tensor *low = mix_slice(all, (mix_shape){.rank = pairs.rank}, half),
             *high = mix_slice(all, begin_high, half);
  low = mix_floor_mod(low, mix_scalar(16, MIX_INT32));
  mix_tensor *both = mix_add(mix_multiply(high, mix_scalar(16, MIX_INT32)), low);
  return mix_cast(mix_reshape(both, w->stored->shape), MIX_INT8);
}

static mix_status assign(const mix_stored_weight *w, mix_tensor *value, const mix_abs_max *how) {
  const mix_axes reduced = reduced_axes(&w->of);
  mix_quantized made;
  MIX_SCOPE {
    value = mix_reshape(value, w->of.shape);
    if (value && (w->block ? mix_quantize_blocks(value, reduced.axis[0], w->block, &made)
                           : mix_quantize_abs_max(value, reduced, how, &made))) {
      mix_variable_assign(w->stored, w->bits == 4 ? packed(w, made.stored) : made.stored);
      mix_variable_assign(w->scale,
                          mix_cast(w->block ? made.scale : ordered(w, made.scale), w->scale->dtype));
      if (w->zero) mix_variable_assign(w->zero, mix_cast(made.zero, w->zero->dtype));
    }
  }
  return mix_error();
}

mix_status mix_stored_assign(const mix_stored_weight *w, mix_tensor *value) {
  mix_quantization_config own;
  mix_quantization_config_default(w->bits == 4 ? "int4" : "int8", &own);
  return assign(w, value, &own.weights);
}

/* The list without the weight. */
static bool drop(mix_layer *layer, const mix_variable *weight) {
  mix_list *rest = mix_retain(mix_list_new(0, NULL));
  for (int i = 0; rest && i < mix_list_count(layer->weights); i++)
    if (mix_list_items(layer->weights)[i] != weight) mix_list_append(rest, mix_list_items(layer->weights)[i]);
  if (!rest) return false;
  mix_release(layer->weights);
  layer->weights = rest;
  return !mix_failed();
}

bool mix_stored_replace(mix_layer *layer, mix_variable *source, const mix_quantization_config *config,
                        const mix_stored_shape *of, mix_stored_weight *w) {
  bool good = false;
  MIX_SCOPE {
    mix_tensor *value = mix_variable_true_value(source);
    good = value && begin(layer, config, of, w) && !assign(w, value, &config->weights) && drop(layer, source);
  }
  return good && !mix_failed();
}

/* ---- values ---- */

mix_tensor *mix_stored_integers(const mix_stored_weight *w) {
  mix_tensor *stored = mix_variable_value(w->stored);
  if (w->bits == 8) return stored;
  const int axis = w->of.packed_axis, rank = w->of.shape.rank;
  mix_shape joined = w->stored->shape, none = {.rank = rank};
  joined.dims[axis] *= 2;
  mix_tensor *wide = mix_cast(stored, MIX_INT32), *sixteen = mix_scalar(16, MIX_INT32),
             *eight = mix_scalar(8, MIX_INT32);
  mix_tensor *high = mix_floor_divide(wide, sixteen);
  mix_tensor *low = mix_subtract(mix_floor_mod(mix_add(wide, eight), sixteen), eight);
  mix_tensor *parts[] = {mix_expand_dims(low, axis + 1), mix_expand_dims(high, axis + 1)};
  mix_tensor *all = mix_reshape(mix_concat(2, parts, axis + 1), joined);
  return mix_cast(mix_slice(all, none, w->of.shape), MIX_INT8);
}

/* The scale or the zeros for the elements of the weight: of groups repeated, else with 1 where it broadcasts.
 */
static mix_tensor *spread(const mix_stored_weight *w, mix_variable *variable) {
  mix_tensor *x = mix_cast(mix_variable_value(variable), MIX_FLOAT32);
  const mix_axes reduced = reduced_axes(&w->of);
  if (w->block) {
    const int axis = reduced.axis[0];
    mix_tensor *index = mix_cast(group_numbers(w->of.shape.dims[axis], w->block), MIX_INT32);
    return mix_gather(x, index, axis);
  }
  mix_shape sizes = {.rank = w->of.kept.count}, all = w->of.shape;
  mix_axes back = {.count = w->of.kept.count};
  for (int i = 0; i < sizes.rank; i++) sizes.dims[i] = all.dims[w->of.kept.axis[i]];
  for (int i = 0; i < sizes.rank; i++) {
    int smaller = 0;
    for (int k = 0; k < sizes.rank; k++) smaller += w->of.kept.axis[k] < w->of.kept.axis[i];
    back.axis[smaller] = i;
  }
  for (int i = 0; i < reduced.count; i++) all.dims[reduced.axis[i]] = 1;
  x = mix_reshape(x, sizes);
  return mix_reshape(sizes.rank ? mix_transpose(x, back) : x, all);
}

mix_tensor *mix_stored_value(const mix_stored_weight *w, mix_dtype dtype) {
  mix_tensor *q = mix_cast(mix_stored_integers(w), MIX_FLOAT32), *scale = spread(w, w->scale);
  mix_tensor *value =
      w->block ? mix_multiply(mix_subtract(q, spread(w, w->zero)), scale) : mix_divide(q, scale);
  return mix_cast(value, dtype);
}

/* ---- products ---- */

mix_tensor *mix_quantize_inputs(const mix_abs_max *how, mix_tensor *x, mix_axes axes, mix_tensor **scale) {
  x = mix_stop_gradient(x);
  if (!x) return NULL;
  mix_tensor *largest = mix_reduce_max(mix_abs(x), axes, true);
  largest = mix_add(largest, mix_scalar_like(x, how->epsilon));
  *scale = mix_divide(mix_scalar_like(x, how->high), largest);
  mix_tensor *q = mix_round(mix_multiply(x, *scale));
  return mix_cast(mix_clip(q, mix_scalar_like(x, how->low), mix_scalar_like(x, how->high)), MIX_INT8);
}

/* x (..., in) times a matrix (in, columns). */
static mix_tensor *rows_times(mix_tensor *x, mix_tensor *matrix) {
  mix_shape shape = mix_tensor_shape(x);
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  const int64_t in = shape.rank ? shape.dims[shape.rank - 1] : 0;
  if (shape.rank == 2 || unknown > 1 || in <= 0) return mix_matmul(x, matrix, false, false);
  mix_tensor *rows = mix_reshape(x, MIX_SHAPE(-1, in));
  shape.dims[shape.rank - 1] = mix_tensor_shape(matrix).dims[1];
  return mix_reshape(mix_matmul(rows, matrix, false, false), shape);
}

mix_tensor *mix_stored_product(const mix_stored_weight *w, mix_tensor *x) {
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *value = mix_stored_value(w, dtype), *product = rows_times(x, value);
  if (w->block) return product;
  mix_tensor *scale = mix_cast(mix_variable_value(w->scale), dtype), *q = mix_stored_integers(w), *y;
  if (w->inputs.given) {
    mix_tensor *of_inputs, *inputs = mix_quantize_inputs(&w->inputs, x, MIX_AXES(-1), &of_inputs);
    y = rows_times(mix_cast(inputs, MIX_INT32), mix_cast(q, MIX_INT32));
    y = mix_divide(mix_cast(y, dtype), mix_multiply(scale, of_inputs));
  } else {
    y = mix_divide(rows_times(mix_stop_gradient(x), mix_cast(q, dtype)), scale);
  }
  return mix_surrogate_gradient(y, product);
}
