/* Normalization: by a mean and a variance that are given or adapted to data (docs/spec/keras.md, section 7).
 */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/layers/moments.h"

typedef struct normalization {
  mix_axes axis; /* the kept axes as given; empty means the last */
  bool axis_none, invert;
  mix_tensor *given_mean, *given_variance; /* retained; NULL if adapted */
  mix_variable *mean, *variance, *count;   /* owned by the layer's list; NULL if given */
} normalization;

/* The kept axes; {0} for none. */
static bool kept_axes(const mix_layer *layer, int rank, mix_axes *axes) {
  const normalization *n = mix_layer_data(layer);
  *axes = (mix_axes){.count = 0};
  return n->axis_none || mix_layer_axes(layer, n->axis, rank, axes);
}

static mix_status normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  normalization *n = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  mix_axes axes;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!kept_axes(layer, in.rank, &axes)) return mix_error();
  mix_shape shape = mix_shape_of_axes(in, axes, false);
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: the input has shape %s; expected known dimensions along the kept axes",
                             layer->name, mix_shape_text(in, text, sizeof text));
  if (n->given_mean) return MIX_OK;
  mix_dtype dtype =
      layer->semantics->normalization_weights_in_compute_dtype ? layer->compute : layer->variable;
  const char *name = mix_dtype_name(mix_dtype_is_floating(dtype) ? dtype : mix_floatx());
  n->mean = mix_layer_add_weight(layer, "mean", .shape = shape, .dtype = name, .initializer = "zeros",
                                 .not_trainable = true, .no_autocast = true);
  n->variance = mix_layer_add_weight(layer, "variance", .shape = shape, .dtype = name, .initializer = "ones",
                                     .not_trainable = true, .no_autocast = true);
  n->count =
      mix_layer_add_weight(layer, "count", .dtype = "int64", .initializer = "zeros", .not_trainable = true);
  return mix_error();
}

/* A statistic in x's dtype and rank: the sizes of the kept axes, and 1 for the others. */
static mix_tensor *statistic(mix_tensor *given, mix_variable *adapted, mix_tensor *x, mix_axes axes) {
  mix_shape shape = mix_tensor_shape(x);
  mix_tensor *value = mix_cast(given ? given : mix_variable_true_value(adapted), mix_tensor_dtype(x));
  if (given) value = mix_broadcast_to(value, mix_shape_of_axes(shape, axes, false));
  return mix_reshape(value, mix_shape_of_axes(shape, axes, true));
}

static mix_list *normalization_call(mix_layer *layer, const mix_call_args *args) {
  const normalization *n = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_axes axes;
  if (!kept_axes(layer, mix_tensor_shape(x).rank, &axes)) return NULL;
  mix_tensor *mean = statistic(n->given_mean, n->mean, x, axes),
             *variance = statistic(n->given_variance, n->variance, x, axes);
  mix_tensor *deviation = mix_maximum(mix_sqrt(variance), mix_scalar_like(x, 1e-7));
  return mix_one_result(n->invert ? mix_add(mean, mix_multiply(x, deviation))
                                  : mix_divide(mix_subtract(x, mean), deviation));
}

/* ---- adapting ---- */

static normalization *adaptable(mix_layer *layer, const char *call) {
  if (mix_failed()) return NULL;
  if (!mix_is(layer, &mix_layer_object_class) || layer->class.call != normalization_call)
    return mix_fail(MIX_TYPE_ERROR, "%s: the object is no Normalization layer", call);
  normalization *n = mix_layer_data(layer);
  if (n->given_mean)
    return mix_fail(MIX_RUNTIME_ERROR, "%s: '%s' was given its mean and variance", call, layer->name);
  return n;
}

mix_status mix_normalization_reset(mix_layer *layer) {
  normalization *n = adaptable(layer, "normalization_reset");
  if (!n || !n->count) return mix_error();
  mix_variable_assign(n->mean, mix_zeros_like(mix_variable_true_value(n->mean)));
  mix_variable_assign(n->variance, mix_ones_like(mix_variable_true_value(n->variance)));
  return mix_variable_assign(n->count, mix_scalar(0, MIX_INT64));
}

/* Pools a batch's mean and variance into the variables; `weight` is the batch's share of all samples (Chan,
 * Golub, LeVeque: Updating formulae and a pairwise algorithm for computing sample variances, 1979). */
static void pool(mix_variable *mean, mix_variable *variance, mix_tensor *batch_mean,
                 mix_tensor *batch_variance, double weight) {
  mix_tensor *old_mean = mix_variable_true_value(mean), *old_variance = mix_variable_true_value(variance);
  mix_tensor *batch_share = mix_scalar_like(batch_mean, weight),
             *old_share = mix_scalar_like(batch_mean, 1 - weight);
  mix_tensor *total = mix_add(mix_multiply(old_mean, old_share), mix_multiply(batch_mean, batch_share));
  mix_tensor *old_spread = mix_add(old_variance, mix_squared_difference(old_mean, total));
  mix_tensor *batch_spread = mix_add(batch_variance, mix_squared_difference(batch_mean, total));
  mix_tensor *spread = mix_add(mix_multiply(old_spread, old_share), mix_multiply(batch_spread, batch_share));
  mix_tensor *both[] = {total, spread};
  if (mix_failed() || mix_evaluate(2, both)) return; /* evaluated before either variable changes */
  mix_variable_assign(mean, total);
  mix_variable_assign(variance, spread);
}

mix_status mix_normalization_update(mix_layer *layer, mix_tensor *batch) {
  normalization *n = adaptable(layer, "normalization_update");
  if (!n || !batch) return mix_error();
  mix_scope *scope = mix_scope_begin();
  mix_shape shape = mix_tensor_shape(batch);
  mix_axes axes;
  if (layer->built || mix_layer_build(layer, shape) == MIX_OK) {
    mix_tensor *x = mix_cast(batch, mix_variable_true_dtype(n->mean)), *mean, *variance;
    int64_t size = mix_shape_size(shape), one = mix_shape_size(mix_variable_shape(n->mean));
    bool good = kept_axes(layer, shape.rank, &axes) &&
                mix_moments(x, axes.count == shape.rank ? (mix_axes){0} : mix_other_axes(axes, shape.rank),
                            layer->semantics->norm_output_clipped, &mean, &variance);
    if (good && (size <= 0 || one <= 0))
      mix_fail(MIX_VALUE_ERROR, "normalization_update: the batch for '%s' is empty", layer->name);
    if (good && axes.count == shape.rank) { /* no axis to reduce: each element is its own mean */
      mean = x;
      variance = mix_zeros_like(x);
    }
    if (!mix_failed()) {
      double before = mix_tensor_item(mix_variable_true_value(n->count)), added = (double)(size / one);
      pool(n->mean, n->variance, mix_reshape(mean, mix_variable_shape(n->mean)),
           mix_reshape(variance, mix_variable_shape(n->mean)), added / (before + added));
      mix_variable_assign(n->count, mix_scalar(before + added, MIX_INT64));
    }
  }
  mix_scope_end(scope);
  return mix_error();
}

mix_status mix_normalization_adapt(mix_layer *layer, mix_tensor *data) {
  return mix_normalization_reset(layer) == MIX_OK ? mix_normalization_update(layer, data) : mix_error();
}

/* ---- the layer ---- */

/* The elements of a tensor: one number for a scalar, else a flat list. */
static json_t *numbers_to_json(mix_tensor *tensor) {
  if (!tensor) return json_null();
  json_t *list = json_array();
  mix_shape shape = mix_tensor_shape(tensor);
  int64_t count = mix_shape_size(shape);
  mix_scope *scope = mix_scope_begin();
  const double *data = mix_tensor_data(mix_cast(tensor, MIX_FLOAT64));
  for (int64_t i = 0; data && i < count; i++) json_array_append_new(list, json_real(data[i]));
  mix_scope_end(scope);
  if (shape.rank > 0 || !data) return list;
  json_t *number = json_incref(json_array_get(list, 0));
  json_decref(list);
  return number;
}

/* The axes as a list, as in Keras; an empty list for None. */
static json_t *axes_to_json(const normalization *n) {
  json_t *list = json_array(), *axes = n->axis_none ? list : mix_axes_to_json(n->axis);
  if (json_is_array(axes) && axes != list) {
    json_decref(list);
    return axes;
  }
  if (axes != list) json_array_append_new(list, axes);
  return list;
}

static mix_status normalization_config(mix_layer *layer, mix_config *config) {
  const normalization *n = mix_layer_data(layer);
  bool good = mix_json_set(config->object, "axis", axes_to_json(n)) &&
              mix_json_set(config->object, "invert", json_boolean(n->invert)) &&
              mix_json_set(config->object, "mean", numbers_to_json(n->given_mean)) &&
              mix_json_set(config->object, "variance", numbers_to_json(n->given_variance));
  return good ? MIX_OK : mix_error();
}

static void normalization_finalize(mix_layer *layer) {
  normalization *n = mix_layer_data(layer);
  mix_release(n->given_mean);
  mix_release(n->given_variance);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Normalization",
                                      .instance_size = sizeof(normalization),
                                      .build = normalization_build,
                                      .call = normalization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = normalization_config,
                                      .finalize = normalization_finalize};

mix_normalization_options mix_normalization_defaults(void) {
  return (mix_normalization_options){.size = sizeof(mix_normalization_options)};
}

mix_layer *mix_normalization_with(const mix_normalization_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_normalization_options, o, options, "normalization");
  if (!mix_axes_option(o.axis, "normalization", "axis")) return NULL;
  if (!o.mean != !o.variance)
    return mix_fail(MIX_VALUE_ERROR, "normalization: give both mean and variance, or neither");
  if (o.axis_none && o.axis.count)
    return mix_fail(MIX_VALUE_ERROR, "normalization: both axis and axis_none were given; give one");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "normalization");
  if (!layer) return NULL;
  layer->class.supports_masking = layer->semantics->preprocessing_passes_masks;
  *(normalization *)layer->data = (normalization){.axis = o.axis,
                                                  .axis_none = o.axis_none,
                                                  .invert = o.invert,
                                                  .given_mean = mix_retain(o.mean),
                                                  .given_variance = mix_retain(o.variance)};
  return mix_scoped(layer);
}

enum { MAX_NUMBERS = 1024 };

/* Appends the numbers of a nested list at index `count`. Returns the new count, or -1 with the error
 * recorded. */
static int append_numbers(const json_t *json, double *numbers, int count, int depth) {
  if (json_is_number(json)) {
    if (count < MAX_NUMBERS) numbers[count] = json_number_value(json);
    return count + 1;
  }
  if (!json_is_array(json) || depth == MIX_MAX_RANK) {
    mix_fail(MIX_TYPE_ERROR,
             "config: \"mean\" and \"variance\" are numbers or lists of numbers, nested up to %d deep",
             MIX_MAX_RANK);
    return -1;
  }
  for (size_t i = 0; i < json_array_size(json) && count >= 0; i++)
    count = append_numbers(json_array_get(json, i), numbers, count, depth + 1);
  return count;
}

/* From a number or a nested list, which is flattened: it broadcasts against the kept axes. */
static mix_tensor *numbers_from_json(const json_t *json) {
  double numbers[MAX_NUMBERS];
  if (!json || json_is_null(json)) return NULL;
  if (json_is_number(json)) return mix_scalar(json_number_value(json), mix_floatx());
  int count = append_numbers(json, numbers, 0, 0);
  if (count < 1) return NULL;
  if (count > MAX_NUMBERS)
    return mix_fail(MIX_UNSUPPORTED, "config: %d means; at most %d", count, MAX_NUMBERS);
  return mix_tensor_from_doubles(numbers, mix_floatx(), MIX_SHAPE(count));
}

mix_layer *mix_normalization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  const json_t *axis = json_object_get(config, "axis");
  return mix_normalization(.axis = mix_json_axes(axis), MIX_COMMON_CONFIG(c),
                           .axis_none = json_is_null(axis) || (json_is_array(axis) && !json_array_size(axis)),
                           .mean = numbers_from_json(json_object_get(config, "mean")),
                           .variance = numbers_from_json(json_object_get(config, "variance")),
                           .invert = mix_json_boolean_or(config, "invert", false));
}
