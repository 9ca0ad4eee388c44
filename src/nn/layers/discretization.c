/* Discretization: maps numbers to bins. The boundaries are given, or adapted to data as quantiles. The
 * quantile summary and its merging follow keras/src/layers/preprocessing/discretization.py, so that
 * boundaries agree with Keras's. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/builtin.h"
#include <string.h>
#include <math.h>
#include <stdlib.h>

/* Sorted values, each of which represents `weight` elements. */
typedef struct summary {
  size_t count;
  double *value, *weight;
} summary;

typedef struct discretization {
  double *boundaries;
  int boundary_count;
  int num_bins;
  double epsilon;
  mix_category_mode mode;
  summary seen;
} discretization;

/* Counts boundaries with !(x < boundary) instead of x >= boundary: NaN goes to the last bin, as in
 * TensorFlow. */
static mix_list *discretization_call(mix_layer *layer, const mix_call_args *args) {
  const discretization *d = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_dtype dtype = mix_tensor_dtype(x);
  bool narrow = mix_dtype_is_floating(dtype) && dtype != MIX_FLOAT64;
  mix_tensor *ids;
  if (d->num_bins && !d->boundaries)
    return mix_fail(MIX_RUNTIME_ERROR, "%s: has no boundaries; call mix_discretization_adapt first",
                    layer->name);
  if (d->boundary_count) {
    mix_tensor *boundaries = mix_tensor_from_doubles(d->boundaries, narrow ? MIX_FLOAT32 : MIX_FLOAT64,
                                                     MIX_SHAPE(d->boundary_count));
    mix_tensor *values = mix_expand_dims(mix_cast(x, narrow ? MIX_FLOAT32 : MIX_FLOAT64), -1);
    mix_tensor *passed = mix_logical_not(mix_less(values, boundaries)); /* (..., boundaries) */
    ids = mix_reduce_sum(mix_cast(passed, MIX_INT64), MIX_AXES(-1), false);
  } else {
    ids = mix_cast(mix_zeros_like(x), MIX_INT64);
  }
  if (d->mode == MIX_CATEGORY_INT) return mix_one_result(mix_cast(ids, layer->compute));
  return mix_one_result(mix_encode_categories(ids, d->mode, d->boundary_count + 1, NULL, layer->compute));
}

/* ---- quantiles ---- */

static bool summary_new(summary *s, size_t count) {
  s->count = count;
  s->value = mix_calloc(count, sizeof *s->value);
  s->weight = mix_calloc(count, sizeof *s->weight);
  return s->value && s->weight;
}
static void summary_free(summary *s) {
  mix_free(s->value);
  mix_free(s->weight);
  *s = (summary){0};
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Every (count * epsilon)-th of the sorted values; all if that is below 1. */
static bool summarize(double *values, size_t count, double epsilon, summary *s) {
  qsort(values, count, sizeof *values, ascending);
  double increment = (double)count * epsilon;
  size_t start = (size_t)increment, step = increment > 1 ? (size_t)increment : 1;
  if (!summary_new(s, count > start ? (count - start + step - 1) / step : 0)) return false;
  for (size_t i = 0; i < s->count; i++) {
    s->value[i] = values[start + i * step];
    s->weight[i] = increment > 1 ? increment : 1;
  }
  return true;
}

/* As numpy.interp: piecewise linear through (x, y), constant outside. */
static double interpolated(double at, size_t count, const double *x, const double *y) {
  if (at <= x[0]) return y[0];
  size_t right = 1;
  while (right < count && x[right] < at) right++;
  if (right == count) return y[count - 1];
  return y[right - 1] + (y[right] - y[right - 1]) * (at - x[right - 1]) / (x[right] - x[right - 1]);
}

/* Resamples to 1 / epsilon values. A smaller summary stays as it is. */
static bool compress(summary *s, double epsilon) {
  if (!s->count || (double)s->count * epsilon < 1) return true;
  summary result, running;
  /* value: cumulative share; weight: cumulative sum */
  if (!summary_new(&running, s->count)) return summary_free(&running), false;
  double sum = 0;
  for (size_t i = 0; i < s->count; i++) running.weight[i] = sum += s->weight[i];
  for (size_t i = 0; i < s->count; i++) running.value[i] = running.weight[i] / sum;
  bool good = summary_new(&result, (size_t)ceil(1 / epsilon));
  double former = 0;
  for (size_t i = 0; good && i < result.count; i++) {
    double share = epsilon + (double)i * epsilon,
           below = interpolated(share, s->count, running.value, running.weight);
    result.value[i] = (float)interpolated(share, s->count, running.value, s->value);
    result.weight[i] = (float)(below - former);
    former = below;
  }
  summary_free(&running);
  summary_free(good ? s : &result);
  if (good) *s = result;
  return good;
}

/* Merges `other` into the summary and frees it. */
static bool merge(summary *s, summary *other, double epsilon) {
  summary both;
  bool good = summary_new(&both, s->count + other->count);
  for (size_t i = 0, a = 0, b = 0; good && i < both.count; i++) {
    bool first = b == other->count || (a < s->count && s->value[a] < other->value[b]);
    both.value[i] = first ? s->value[a] : other->value[b];
    both.weight[i] = first ? s->weight[a++] : other->weight[b++];
  }
  summary_free(other);
  if (!good) return summary_free(&both), false;
  summary_free(s);
  *s = both;
  return compress(s, epsilon);
}

static discretization *adaptable(mix_layer *layer, const char *call) {
  if (mix_failed()) return NULL;
  if (!mix_is(layer, &mix_layer_object_class) || layer->class.call != discretization_call)
    return mix_fail(MIX_TYPE_ERROR, "%s: the object is no Discretization layer", call);
  discretization *d = mix_layer_data(layer);
  if (!d->num_bins)
    return mix_fail(MIX_RUNTIME_ERROR, "%s: '%s' was given its boundaries", call, layer->name);
  return d;
}

mix_status mix_discretization_reset(mix_layer *layer) {
  discretization *d = adaptable(layer, "discretization_reset");
  if (!d) return mix_error();
  summary_free(&d->seen);
  mix_free(d->boundaries);
  d->boundaries = NULL;
  d->boundary_count = 0;
  return MIX_OK;
}

static bool take_boundaries(discretization *d) {
  summary bins;
  if (!summary_new(&bins, d->seen.count)) return summary_free(&bins), false;
  for (size_t i = 0; i < bins.count; i++) {
    bins.value[i] = d->seen.value[i];
    bins.weight[i] = d->seen.weight[i];
  }
  bool good = compress(&bins, 1.0 / d->num_bins);
  if (good) {
    mix_free(d->boundaries);
    d->boundaries = bins.value;
    d->boundary_count = bins.count ? (int)bins.count - 1 : 0;
    bins.value = NULL;
  }
  summary_free(&bins);
  return good;
}

mix_status mix_discretization_update(mix_layer *layer, mix_tensor *batch) {
  discretization *d = adaptable(layer, "discretization_update");
  if (!d || !batch) return mix_error();
  int64_t count = mix_shape_size(mix_tensor_shape(batch));
  if (count <= 0)
    return mix_fail_status(MIX_VALUE_ERROR, "discretization_update: the batch for '%s' is empty",
                           layer->name);
  double *values = mix_calloc((size_t)count, sizeof *values);
  if (values && mix_tensor_read(batch, MIX_FLOAT64, values, count) == MIX_OK) {
    summary fresh;
    for (int64_t i = 0; i < count; i++) values[i] = (float)values[i];
    if (!summarize(values, (size_t)count, d->epsilon, &fresh))
      summary_free(&fresh);
    else if (merge(&d->seen, &fresh, d->epsilon))
      take_boundaries(d);
  }
  mix_free(values);
  return mix_error();
}

mix_status mix_discretization_adapt(mix_layer *layer, mix_tensor *data) {
  return mix_discretization_reset(layer) == MIX_OK ? mix_discretization_update(layer, data) : mix_error();
}

/* ---- the layer ---- */

static mix_status discretization_config(mix_layer *layer, mix_config *config) {
  const discretization *d = mix_layer_data(layer);
  json_t *boundaries = d->boundaries ? json_array() : json_null();
  for (int i = 0; i < d->boundary_count; i++) json_array_append_new(boundaries, json_real(d->boundaries[i]));
  bool good = mix_json_set(config->object, "bin_boundaries", boundaries) &&
              mix_json_set(config->object, "num_bins", d->num_bins ? json_integer(d->num_bins) : json_null());
  mix_config_number(config, "epsilon", d->epsilon);
  mix_config_text(config, "output_mode", mix_category_mode_name(d->mode));
  return good && mix_config_without_trainable(layer, config) ? MIX_OK : mix_error();
}

static void discretization_finalize(mix_layer *layer) {
  discretization *d = mix_layer_data(layer);
  summary_free(&d->seen);
  mix_free(d->boundaries);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Discretization",
                                      .instance_size = sizeof(discretization),
                                      .call = discretization_call,
                                      .get_config = discretization_config,
                                      .finalize = discretization_finalize,
                                      .no_autocast = true};

mix_discretization_options mix_discretization_defaults(void) {
  return (mix_discretization_options){.size = sizeof(mix_discretization_options)};
}

/* Stores a copy of the boundaries, not NULL even for count 0. */
static bool copy_boundaries(discretization *d, const double *boundaries, int count) {
  d->boundaries = mix_calloc((size_t)count, sizeof *d->boundaries);
  if (!d->boundaries) return false;
  for (int i = 0; i < count; i++) d->boundaries[i] = boundaries[i];
  d->boundary_count = count;
  return true;
}

mix_layer *mix_discretization_with(const mix_discretization_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_discretization_options, o, options, "discretization");
  mix_category_mode mode;
  double epsilon = mix_option_number(o.epsilon, 0.01);
  if (!o.bin_boundaries == !o.num_bins)
    return mix_fail(MIX_VALUE_ERROR, "discretization: give either bin_boundaries or num_bins");
  if (o.num_bins < 0 || o.boundary_count < 0 || !(epsilon > 0 && epsilon < 1))
    return mix_fail(
        MIX_VALUE_ERROR,
        "discretization: num_bins is %d, boundary_count %d, epsilon %g; expected positive numbers",
        o.num_bins, o.boundary_count, epsilon);
  for (int i = 1; o.bin_boundaries && i < o.boundary_count; i++)
    if (!(o.bin_boundaries[i - 1] < o.bin_boundaries[i]))
      return mix_fail(MIX_VALUE_ERROR,
                      "discretization: boundary %d is %g after %g; expected ascending numbers", i,
                      o.bin_boundaries[i], o.bin_boundaries[i - 1]);
  if (!mix_category_mode_named(o.output_mode ? o.output_mode : "int", MIX_CATEGORY_INT, "discretization",
                               &mode))
    return NULL;
  if (!o.dtype && !o.policy) o.dtype = mode == MIX_CATEGORY_INT ? "int64" : mix_dtype_name(mix_floatx());
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "discretization");
  if (!layer) return NULL;
  discretization *d = layer->data;
  *d = (discretization){.num_bins = o.num_bins, .epsilon = epsilon, .mode = mode};
  bool good = !o.bin_boundaries || copy_boundaries(d, o.bin_boundaries, o.boundary_count);
  if (mode == MIX_CATEGORY_INT && !mix_dtype_is_integer(layer->compute)) {
    mix_fail(MIX_VALUE_ERROR, "discretization: output_mode int needs an integer dtype, not %s",
             mix_dtype_name(layer->compute));
    good = false;
  }
  if (good) return mix_scoped(layer);
  mix_release(layer);
  return NULL;
}

/* A config may hold both num_bins and the adapted boundaries. */
mix_layer *mix_discretization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  const json_t *list = json_object_get(config, "bin_boundaries");
  size_t count = json_is_array(list) ? json_array_size(list) : 0;
  /* Keras 3 saves floatx for every output mode. Indices are integers all the same. */
  if (!strcmp(mix_json_string_or(config, "output_mode", "int"), "int") && c.policy &&
      !mix_dtype_is_integer(mix_policy_compute_dtype(c.policy)))
    c.policy = NULL;
  int num_bins = (int)mix_json_integer_or(config, "num_bins", 0);
  double *boundaries = json_is_array(list) ? mix_calloc(count, sizeof *boundaries) : NULL;
  for (size_t i = 0; boundaries && i < count; i++) boundaries[i] = json_number_value(json_array_get(list, i));
  mix_layer *layer =
      mix_discretization(.bin_boundaries = num_bins ? NULL : boundaries,
                         .boundary_count = num_bins ? 0 : (int)count, MIX_COMMON_CONFIG(c),
                         .num_bins = num_bins, .epsilon = mix_json_number_or(config, "epsilon", 0.01),
                         .output_mode = mix_json_string_or(config, "output_mode", NULL));
  if (layer && num_bins && boundaries && !copy_boundaries(layer->data, boundaries, (int)count)) layer = NULL;
  mix_free(boundaries);
  return layer;
}
