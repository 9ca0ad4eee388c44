/* Helpers that the layers share. */
#include "nn/layers/builtin.h"
#include "base/error.h"
#include "base/philox.h"
#include "nn/weights/weights.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <mixtape/random.h>
#include <string.h>

/* ---- configs ---- */

mix_common_config mix_common_config_of(const json_t *config, const mix_semantics *semantics) {
  const json_t *dtype = json_object_get(config, "dtype");
  return (mix_common_config){
      .name = mix_json_string_or(config, "name", NULL),
      .policy = dtype && !json_is_null(dtype) ? mix_policy_from_json(dtype, semantics) : NULL,
      .not_trainable = !mix_json_boolean_or(config, "trainable", true),
      .activity_regularizer =
          mix_regularizer_from_json(json_object_get(config, "activity_regularizer"), semantics),
      .semantics = semantics};
}

double mix_json_option_number(const json_t *object, const char *key, double default_value) {
  double number = mix_json_number_or(object, key, default_value);
  return number == 0 ? MIX_ZERO : number;
}

mix_shape mix_json_shape(const json_t *json) {
  mix_shape shape = {.rank = 0};
  if (!json_is_array(json)) return shape;
  size_t rank = json_array_size(json);
  if (rank > MIX_MAX_RANK) {
    mix_fail(MIX_VALUE_ERROR, "config: a shape has %zu dimensions; expected at most %d", rank, MIX_MAX_RANK);
    return shape;
  }
  shape.rank = (int)rank;
  for (size_t i = 0; i < rank; i++) {
    const json_t *dim = json_array_get(json, i);
    shape.dims[i] = json_is_integer(dim) ? json_integer_value(dim) : MIX_UNKNOWN;
  }
  return shape;
}

json_t *mix_shape_to_json(mix_shape shape) {
  json_t *list = json_array();
  for (int i = 0; i < shape.rank; i++)
    json_array_append_new(list, shape.dims[i] == MIX_UNKNOWN ? json_null() : json_integer(shape.dims[i]));
  return list;
}

mix_axes mix_json_axes(const json_t *json) {
  mix_axes axes = {.count = 0};
  if (json_is_integer(json)) return (mix_axes){.count = 1, .axis = {(int)json_integer_value(json)}};
  size_t count = json_is_array(json) ? json_array_size(json) : 0;
  if (count > MIX_MAX_RANK) {
    mix_fail(MIX_VALUE_ERROR, "config: a list of %zu axes; expected at most %d", count, MIX_MAX_RANK);
    return axes;
  }
  axes.count = (int)count;
  for (size_t i = 0; i < count; i++) axes.axis[i] = (int)json_integer_value(json_array_get(json, i));
  return axes;
}

bool mix_axes_option(mix_axes axes, const char *call, const char *option) {
  bool valid = axes.count >= 0 && axes.count <= MIX_MAX_RANK;
  if (!valid)
    mix_fail(MIX_VALUE_ERROR, "%s: %s names %d axes; expected 0 to %d", call, option, axes.count,
             MIX_MAX_RANK);
  return valid;
}

json_t *mix_axes_to_json(mix_axes axes) {
  if (axes.count < 2) return json_integer(axes.count ? axes.axis[0] : -1);
  json_t *list = json_array();
  for (int i = 0; i < axes.count; i++) json_array_append_new(list, json_integer(axes.axis[i]));
  return list;
}

bool mix_json_set_seed(json_t *object, uint64_t seed) {
  return mix_json_set(object, "seed", seed ? json_integer((json_int_t)seed) : json_null());
}

/* A mixed policy stays: the name of one dtype would lose it. */
bool mix_config_without_trainable(mix_layer *layer, mix_config *config) {
  if (!layer->semantics->config_without_trainable) return true;
  json_object_del(config->object, "trainable");
  if (layer->compute != layer->variable) return true;
  return mix_json_set(config->object, "dtype", json_string(mix_dtype_name(layer->variable)));
}

/* ---- shapes ---- */

mix_shape mix_layer_same_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)layer, (void)count;
  return input_shapes[0];
}

bool mix_layer_axes(const mix_layer *layer, mix_axes given, int rank, mix_axes *axes) {
  bool chosen[MIX_MAX_RANK] = {false};
  if (given.count <= 0) given = MIX_AXES(-1);
  *axes = (mix_axes){.count = 0};
  for (int i = 0; i < given.count && i < MIX_MAX_RANK; i++) {
    int axis = mix_axis_normal(given.axis[i], rank);
    if (axis < 0 || chosen[axis]) {
      mix_fail(MIX_VALUE_ERROR, "%s: axis %d is %s; the input has rank %d", layer->name, given.axis[i],
               axis < 0 ? "outside" : "given twice", rank);
      return false;
    }
    chosen[axis] = true;
  }
  for (int axis = 0; axis < rank; axis++)
    if (chosen[axis]) axes->axis[axes->count++] = axis;
  return true;
}

mix_axes mix_other_axes(mix_axes axes, int rank) {
  mix_axes others = {.count = 0};
  for (int axis = 0, next = 0; axis < rank; axis++)
    if (next < axes.count && axes.axis[next] == axis)
      next++;
    else
      others.axis[others.count++] = axis;
  return others;
}

mix_shape mix_shape_of_axes(mix_shape shape, mix_axes axes, bool in_place) {
  mix_shape result = {.rank = in_place ? shape.rank : axes.count};
  for (int i = 0; i < result.rank; i++) result.dims[i] = 1;
  for (int i = 0; i < axes.count; i++) result.dims[in_place ? axes.axis[i] : i] = shape.dims[axes.axis[i]];
  return result;
}

mix_tensor *mix_layer_reshape(mix_tensor *x, mix_shape shape) {
  int unknown = 0;
  for (int i = 0; i < shape.rank; i++) unknown += shape.dims[i] == MIX_UNKNOWN;
  if (unknown < 2 || !x || !mix_tensor_is_symbolic(x)) return mix_reshape(x, shape);
  return mix_apply(&mix_op_reshape, &(mix_shape_attributes){.shape = shape}, 1, &x);
}

mix_tensor *mix_layer_floating(const mix_layer *layer, mix_tensor *x) {
  if (!x || mix_dtype_is_floating(mix_tensor_dtype(x))) return x;
  return mix_cast(x, mix_dtype_is_floating(layer->compute) ? layer->compute : mix_floatx());
}

mix_tensor *mix_no_mask(mix_layer *layer, const mix_call_args *args) {
  (void)layer, (void)args;
  return NULL;
}

mix_tensor *mix_call_mask(const mix_call_args *args) {
  return args->masks ? mix_list_get(args->masks, 0) : NULL;
}

mix_initializer *mix_initializer_or(const char *name, mix_initializer *object, const char *default_name,
                                    const char *call) {
  return mix_initializer_choose(name || object ? name : default_name, object, call);
}

/* ---- noise ---- */

bool mix_noise_shape(const mix_layer *layer, mix_shape given, mix_shape shape, mix_shape *noise_shape) {
  *noise_shape = shape;
  if (given.rank && given.rank != shape.rank) {
    mix_fail(MIX_VALUE_ERROR, "%s: noise_shape has rank %d, the input rank %d", layer->name, given.rank,
             shape.rank);
    return false;
  }
  for (int i = 0; i < given.rank; i++)
    if (given.dims[i] != MIX_UNKNOWN) noise_shape->dims[i] = given.dims[i];
  return true;
}

mix_tensor *mix_dropped(mix_tensor *x, double rate, mix_shape noise_shape, mix_generator *generator) {
  if (rate == 0) return x;
  if (rate == 1) return mix_zeros_like(x);
  mix_tensor *uniform = mix_random_uniform(generator, noise_shape, mix_tensor_dtype(x));
  mix_tensor *keep = mix_greater_equal(uniform, mix_scalar_like(x, rate));
  return mix_select(keep, mix_multiply(x, mix_scalar_like(x, 1 / (1 - rate))), mix_scalar_like(x, 0));
}

mix_layer *mix_layer_made(mix_layer *layer) {
  if (!mix_failed()) return mix_scoped(layer);
  mix_release(layer);
  return NULL;
}

mix_generator *mix_layer_generator(mix_layer *layer, uint64_t seed) {
  mix_scope *scope = mix_scope_begin();
  mix_generator *generator = mix_generator_new(seed ? seed : mix_next_seed());
  if (generator && mix_layer_add_generator(layer, generator) != MIX_OK) generator = NULL;
  if (scope) mix_scope_end(scope);
  return generator;
}

/* ---- categories ---- */

static const char *const modes[] = {"int", "one_hot", "multi_hot", "count"};

bool mix_category_mode_named(const char *name, mix_category_mode first, const char *call,
                             mix_category_mode *mode) {
  for (int i = first; i <= MIX_CATEGORY_COUNT; i++)
    if (!strcmp(modes[i], name)) {
      *mode = (mix_category_mode)i;
      return true;
    }
  mix_fail(MIX_VALUE_ERROR, "%s: output_mode '%.60s' is not known; expected %sone_hot, multi_hot or count",
           call, name, first == MIX_CATEGORY_INT ? "int, " : "");
  return false;
}

const char *mix_category_mode_name(mix_category_mode mode) { return modes[mode]; }

mix_tensor *mix_encode_categories(mix_tensor *ids, mix_category_mode mode, int64_t depth, mix_tensor *weights,
                                  mix_dtype dtype) {
  if (!ids) return NULL;
  mix_shape shape = mix_tensor_shape(ids);
  if (mode == MIX_CATEGORY_ONE_HOT) {
    bool single = shape.rank > 1 && shape.dims[shape.rank - 1] == 1;
    return mix_one_hot(single ? mix_squeeze(ids, MIX_AXES(-1)) : ids, depth, dtype);
  }
  if (shape.rank == 0)
    return mix_fail(MIX_VALUE_ERROR, "category encoding: the input is a scalar; expected ids (..., n)");
  mix_tensor *hot = mix_one_hot(ids, depth, dtype); /* (..., n, depth) */
  if (mode == MIX_CATEGORY_MULTI_HOT) return mix_reduce_max(hot, MIX_AXES(-2), false);
  if (weights) hot = mix_multiply(hot, mix_expand_dims(mix_cast(weights, dtype), -1));
  return mix_reduce_sum(hot, MIX_AXES(-2), false);
}
