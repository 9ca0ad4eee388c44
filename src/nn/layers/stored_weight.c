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
  mix_shape stored = of->variable.rank ? of->variable : of->shape, scale = of->scale;
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

/* Values for the variables. */
static bool quantize(const mix_stored_weight *w, mix_tensor *value, const mix_abs_max *how,
                     mix_quantized *made) {
  const mix_axes reduced = reduced_axes(&w->of);
  value = mix_reshape(value, w->of.shape);
  if (!value || !(w->block ? mix_quantize_blocks(value, reduced.axis[0], w->block, made)
                           : mix_quantize_abs_max(value, reduced, how, made)))
    return false;
  made->stored = w->bits == 4 ? mix_pack_int4(made->stored, w->of.packed_axis)
                              : mix_reshape(made->stored, w->stored->shape);
  made->scale = mix_cast(w->block ? made->scale : ordered(w, made->scale), w->scale->dtype);
  if (w->zero) made->zero = mix_cast(made->zero, w->zero->dtype);
  return !mix_failed();
}

static mix_status assign(const mix_stored_weight *w, mix_tensor *value, const mix_abs_max *how) {
  mix_quantized made;
  MIX_SCOPE {
    if (quantize(w, value, how, &made)) {
      mix_variable_assign(w->stored, made.stored);
      mix_variable_assign(w->scale, made.scale);
      if (w->zero) mix_variable_assign(w->zero, made.zero);
    }
  }
  return mix_error();
}

bool mix_stored_quantize(const mix_stored_weight *w, mix_tensor *value, mix_quantized *made) {
  mix_quantization_config own;
  mix_quantization_config_default(w->bits == 4 ? "int4" : "int8", &own);
  return quantize(w, value, &own.weights, made);
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
  const int axis = w->of.packed_axis;
  return w->bits == 4 ? mix_unpack_int4(stored, axis, w->of.shape.dims[axis])
                      : mix_reshape(stored, w->of.shape);
}

/* A matrix with scales along one axis, which the operations on stored weights take. */
static bool is_matrix(const mix_stored_weight *w) { return w->of.shape.rank == 2 && w->of.kept.count == 1; }

/* The integers as those operations take them: packed along the last axis, or not at all. */
static mix_tensor *operand(const mix_stored_weight *w, mix_stored_options *options) {
  const bool packed = w->bits == 4 && w->of.packed_axis == 1;
  options->bits = packed ? 4 : 8;
  options->columns = w->of.shape.dims[1];
  options->block = w->block;
  options->transposed = w->of.kept.axis[0] == 0;
  return packed ? mix_variable_value(w->stored) : mix_stored_integers(w);
}

/* Of one axis without blocks. */
static mix_tensor *scale_of(const mix_stored_weight *w) {
  mix_tensor *scale = mix_variable_value(w->scale);
  return w->block ? scale : mix_reshape(scale, MIX_SHAPE(w->of.shape.dims[w->of.kept.axis[0]]));
}

static mix_tensor *zero_of(const mix_stored_weight *w) {
  return w->zero ? mix_variable_value(w->zero) : NULL;
}

/* The scale as the weight broadcasts with it. */
static mix_tensor *spread(const mix_stored_weight *w, mix_tensor *scale) {
  const mix_axes *kept = &w->of.kept;
  mix_shape sizes = {.rank = kept->count}, all = w->of.shape;
  mix_axes back = {.count = kept->count};
  for (int i = 0; i < all.rank; i++) all.dims[i] = 1;
  for (int i = 0; i < kept->count; i++) {
    int smaller = 0;
    for (int k = 0; k < kept->count; k++) smaller += kept->axis[k] < kept->axis[i];
    back.axis[smaller] = i;
    sizes.dims[i] = all.dims[kept->axis[i]] = w->of.shape.dims[kept->axis[i]];
  }
  scale = mix_reshape(scale, sizes);
  return mix_reshape(sizes.rank ? mix_transpose(scale, back) : scale, all);
}

mix_tensor *mix_stored_value(const mix_stored_weight *w, mix_dtype dtype) {
  mix_stored_options options = {.size = sizeof options, .dtype = dtype};
  if (is_matrix(w)) return mix_dequantize_stored(operand(w, &options), scale_of(w), zero_of(w), &options);
  mix_tensor *scale = spread(w, mix_variable_value(w->scale));
  return mix_divide(mix_cast(mix_stored_integers(w), dtype), mix_cast(scale, dtype));
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

/* Sums of products of integers: x (..., rows) int8. */
static mix_tensor *integer_product(const mix_stored_weight *w, mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x), rows = {.rank = 2};
  mix_tensor *matrix = mix_stored_integers(w);
  const bool transposed = w->of.kept.axis[0] == 0;
  int unknown = 0;
  for (int i = 0; i + 1 < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  rows.dims[0] = -1;
  rows.dims[1] = shape.rank ? shape.dims[shape.rank - 1] : 0;
  if (shape.rank <= 2 || unknown > 1 || rows.dims[1] <= 0)
    return mix_matmul_integer(x, matrix, false, transposed);
  x = mix_matmul_integer(mix_reshape(x, rows), matrix, false, transposed);
  shape.dims[shape.rank - 1] = w->of.shape.dims[w->of.kept.axis[0]];
  return mix_reshape(x, shape);
}

mix_tensor *mix_stored_product(const mix_stored_weight *w, mix_tensor *x) {
  mix_stored_options options = {.size = sizeof options};
  mix_tensor *scale = scale_of(w);
  mix_tensor *product = mix_matmul_stored(x, operand(w, &options), scale, zero_of(w), &options);
  if (!product || !w->inputs.given) return product;
  const mix_dtype dtype = mix_tensor_dtype(x);
  mix_tensor *of_inputs, *inputs = mix_quantize_inputs(&w->inputs, x, MIX_AXES(-1), &of_inputs);
  mix_tensor *sums = inputs ? mix_cast(integer_product(w, inputs), dtype) : NULL;
  scale = mix_multiply(mix_cast(scale, dtype), of_inputs);
  return mix_surrogate_gradient(mix_divide(sums, scale), product);
}
