/* Normalization: by a mean and a variance that are given or adapted to data (docs/spec/keras.md, section 7).
 */
#include "base/error.h"
#include "nn/layers/moments.h"

typedef struct normalization {
  mix_normalization_options options;
  mix_variable *mean, *variance, *count; /* owned by the layer's list; NULL if given */
} normalization;

/* The kept axes; {0} for none. */
static bool kept_axes(const mix_layer *layer, int rank, mix_axes *axes) {
  const normalization *n = mix_layer_data(layer);
  *axes = (mix_axes){.count = 0};
  return n->options.axis_none || mix_layer_axes(layer, n->options.axis, rank, axes);
}

static mix_status normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
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
                             layer->name, MIX_SHAPE_TEXT(in));
  if (n->options.mean) return MIX_OK;
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
  mix_tensor *mean = statistic(n->options.mean, n->mean, x, axes),
             *variance = statistic(n->options.variance, n->variance, x, axes);
  mix_tensor *deviation = mix_maximum(mix_sqrt(variance), mix_scalar_like(x, 1e-7));
  return mix_one_result(n->options.invert ? mix_add(mean, mix_multiply(x, deviation))
                                          : mix_divide(mix_subtract(x, mean), deviation));
}

/* ---- adapting ---- */

static normalization *adaptable(mix_layer *layer, const char *call) {
  if (mix_failed()) return NULL;
  if (!mix_is(layer, &mix_layer_object_class) || layer->class.call != normalization_call)
    return mix_fail_type("%s: the object is no Normalization layer", call);
  normalization *n = mix_layer_data(layer);
  if (n->options.mean) return mix_fail_runtime("%s: '%s' was given its mean and variance", call, layer->name);
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
  if (!n || !mix_given(batch, &mix_tensor_class, "normalization_update", "a batch")) return mix_error();
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
      mix_fail_value("normalization_update: the batch for '%s' is empty", layer->name);
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
  for (int64_t i = 0; data && i < count; i++) mix_json_append(list, json_real(data[i]));
  mix_scope_end(scope);
  if (shape.rank > 0 || !data) return list;
  json_t *number = json_incref(json_array_get(list, 0));
  json_decref(list);
  return number;
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
    mix_fail_type("config: \"mean\" and \"variance\" are numbers or lists of numbers, nested up to %d deep",
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
  if (count > MAX_NUMBERS) return mix_fail_unsupported("config: %d means; at most %d", count, MAX_NUMBERS);
  return mix_tensor_from_doubles(numbers, mix_floatx(), MIX_SHAPE(count));
}

static void release_numbers(const mix_field *field) { mix_release(*(void **)field->value); }
static bool retain_numbers(const mix_field *field) {
  mix_retain(*(void **)field->value);
  return true;
}
static json_t *write_numbers(const mix_field *field) { return numbers_to_json(*(mix_tensor **)field->value); }
static bool read_numbers(const mix_field *field, const json_t *value) {
  *(mix_tensor **)field->value = numbers_from_json(value);
  return !mix_failed();
}
static const mix_value_kind numbers_kind = {
    "numbers", sizeof(void *), retain_numbers, release_numbers, write_numbers, read_numbers, NULL};

/* The axes as a list, as in Keras; none is the last axis, an empty list None. */
static json_t *write_axis(const mix_field *field) {
  const mix_normalization_options *o = field->options;
  if (o->axis_none || o->axis.count) return mix_field_axis_list.write(field);
  return json_pack("[i]", -1);
}
static bool read_axis(const mix_field *field, const json_t *value) {
  mix_normalization_options *o = field->options;
  o->axis_none = json_is_null(value) || (json_is_array(value) && !json_array_size(value));
  return mix_field_axis_list.read(field, value);
}
static bool resolve_axis(const mix_field *field) { return mix_field_axis_list.resolve(field); }
static const mix_value_kind axis_kind = {.expected = "an axis or a list of axes",
                                         .size = sizeof(mix_axes),
                                         .resolve = resolve_axis,
                                         .write = write_axis,
                                         .read = read_axis};

static bool normalization_check(void *options, const mix_layer_kind *kind) {
  const mix_normalization_options *o = options;
  if (!o->mean != !o->variance)
    mix_fail_value("%s: give both mean and variance, or neither", kind->call);
  else if (o->axis_none && o->axis.count)
    mix_fail_value("%s: both axis and axis_none were given; give one", kind->call);
  return !mix_failed();
}

static bool normalization_ready(mix_layer *layer) {
  layer->class.supports_masking = layer->semantics->preprocessing_passes_masks;
  return true;
}

#define FIELD(member) MIX_FIELD(mix_normalization_options, member)
static const mix_field_row fields[] = {{FIELD(axis), &axis_kind},
                                       {FIELD(invert), &mix_field_boolean},
                                       {FIELD(mean), &numbers_kind},
                                       {FIELD(variance), &numbers_kind},
                                       {0}};
MIX_LAYER_KIND(normalization, mix_normalization_options, .fields = fields, .check = normalization_check,
               .ready = normalization_ready,
               MIX_LAYER_CLASS(.name = "Normalization", .instance_size = sizeof(normalization),
                               .build = normalization_build, .call = normalization_call,
                               .output_shape = mix_layer_same_shape))
