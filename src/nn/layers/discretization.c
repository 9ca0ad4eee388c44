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
  mix_discretization_options options; /* bin_boundaries: given or adapted */
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
  if (d->options.num_bins && !d->options.bin_boundaries)
    return mix_fail_runtime("%s: has no boundaries; call mix_discretization_adapt first", layer->name);
  if (d->options.boundary_count) {
    mix_tensor *boundaries = mix_tensor_from_doubles(
        d->options.bin_boundaries, narrow ? MIX_FLOAT32 : MIX_FLOAT64, MIX_SHAPE(d->options.boundary_count));
    mix_tensor *values = mix_expand_dims(mix_cast(x, narrow ? MIX_FLOAT32 : MIX_FLOAT64), -1);
    mix_tensor *passed = mix_logical_not(mix_less(values, boundaries)); /* (..., boundaries) */
    ids = mix_reduce_sum(mix_cast(passed, MIX_INT64), MIX_AXES(-1), false);
  } else {
    ids = mix_cast(mix_zeros_like(x), MIX_INT64);
  }
  mix_category_mode mode = mix_category_mode_named(d->options.output_mode);
  if (mode == MIX_CATEGORY_INT) return mix_one_result(mix_cast(ids, layer->compute));
  return mix_one_result(
      mix_encode_categories(ids, mode, d->options.boundary_count + 1, NULL, layer->compute));
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

/* Frees the boundaries and takes new ones. */
static void set_boundaries(mix_discretization_options *o, double *boundaries, int count) {
  mix_free((void *)o->bin_boundaries);
  o->bin_boundaries = boundaries;
  o->boundary_count = count;
}

static discretization *adaptable(mix_layer *layer, const char *call) {
  if (mix_failed()) return NULL;
  if (!mix_is(layer, &mix_layer_object_class) || layer->class.call != discretization_call)
    return mix_fail_type("%s: the object is no Discretization layer", call);
  discretization *d = mix_layer_data(layer);
  if (!d->options.num_bins) return mix_fail_runtime("%s: '%s' was given its boundaries", call, layer->name);
  return d;
}

mix_status mix_discretization_reset(mix_layer *layer) {
  discretization *d = adaptable(layer, "discretization_reset");
  if (!d) return mix_error();
  summary_free(&d->seen);
  set_boundaries(&d->options, NULL, 0);
  return MIX_OK;
}

static bool take_boundaries(discretization *d) {
  summary bins;
  if (!summary_new(&bins, d->seen.count)) return summary_free(&bins), false;
  for (size_t i = 0; i < bins.count; i++) {
    bins.value[i] = d->seen.value[i];
    bins.weight[i] = d->seen.weight[i];
  }
  bool good = compress(&bins, 1.0 / (double)d->options.num_bins);
  if (good) {
    set_boundaries(&d->options, bins.value, bins.count ? (int)bins.count - 1 : 0);
    bins.value = NULL;
  }
  summary_free(&bins);
  return good;
}

mix_status mix_discretization_update(mix_layer *layer, mix_tensor *batch) {
  discretization *d = adaptable(layer, "discretization_update");
  if (!d || !mix_given(batch, &mix_tensor_class, "discretization_update", "a batch")) return mix_error();
  int64_t count = mix_shape_size(mix_tensor_shape(batch));
  if (count <= 0)
    return mix_fail_status(MIX_VALUE_ERROR, "discretization_update: the batch for '%s' is empty",
                           layer->name);
  double *values = mix_calloc((size_t)count, sizeof *values);
  if (values && mix_tensor_read(batch, MIX_FLOAT64, values, count) == MIX_OK) {
    summary fresh;
    for (int64_t i = 0; i < count; i++) values[i] = (float)values[i];
    if (!summarize(values, (size_t)count, d->options.epsilon, &fresh))
      summary_free(&fresh);
    else if (merge(&d->seen, &fresh, d->options.epsilon))
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
  return mix_config_without_trainable(layer, config) ? MIX_OK : mix_error();
}

static void discretization_finalize(mix_layer *layer) {
  summary_free(&((discretization *)mix_layer_data(layer))->seen);
}

/* The boundaries: a pointer, and the count at `other`. A copy is not NULL even for count 0. */
static bool copy_boundaries(const mix_field *field) {
  mix_discretization_options *o = field->options;
  const double *given = o->bin_boundaries;
  size_t count = given && o->boundary_count > 0 ? (size_t)o->boundary_count : 0;
  double *copy = given ? mix_calloc(count + 1, sizeof *copy) : NULL;
  o->bin_boundaries = copy;
  if (count && copy) memcpy(copy, given, count * sizeof *copy);
  return !mix_failed();
}
static void release_boundaries(const mix_field *field) { set_boundaries(field->options, NULL, 0); }
static json_t *write_boundaries(const mix_field *field) {
  const mix_discretization_options *o = field->options;
  json_t *list = o->bin_boundaries ? json_array() : json_null();
  for (int i = 0; i < o->boundary_count; i++) mix_json_append(list, json_real(o->bin_boundaries[i]));
  return list;
}
static bool read_boundaries(const mix_field *field, const json_t *value) {
  mix_discretization_options *o = field->options;
  size_t count = json_array_size(value);
  double *numbers = json_is_array(value) ? mix_scoped_memory((count + 1) * sizeof *numbers) : NULL;
  for (size_t i = 0; numbers && i < count; i++) numbers[i] = json_number_value(json_array_get(value, i));
  o->bin_boundaries = numbers;
  o->boundary_count = (int)count;
  return !mix_failed();
}
static const mix_value_kind boundaries_kind = {"a list of numbers",
                                               sizeof(void *),
                                               copy_boundaries,
                                               release_boundaries,
                                               write_boundaries,
                                               read_boundaries,
                                               NULL};

static bool discretization_check(void *options, const mix_layer_kind *kind) {
  mix_discretization_options *o = options;
  if (!o->bin_boundaries == !o->num_bins)
    return mix_fail_value("%s: give either bin_boundaries or num_bins", kind->call);
  if (o->boundary_count < 0)
    return mix_fail_value("%s: boundary_count is %d; expected a number that is not negative", kind->call,
                          o->boundary_count);
  if (o->boundary_count && !o->bin_boundaries)
    return mix_fail_value("%s: boundary_count is %d without bin_boundaries", kind->call, o->boundary_count);
  if (o->boundary_count && isnan(o->bin_boundaries[0]))
    return mix_fail_value("%s: boundary 0 is nan; expected a number", kind->call);
  for (int i = 1; i < o->boundary_count; i++)
    if (!(o->bin_boundaries[i - 1] < o->bin_boundaries[i]))
      return mix_fail_value("%s: boundary %d is %g after %g; expected ascending numbers", kind->call, i,
                            o->bin_boundaries[i], o->bin_boundaries[i - 1]);
  bool ids = !strcmp(o->output_mode, "int");
  if (!o->dtype && !o->policy) o->dtype = ids ? "int64" : mix_dtype_name(mix_floatx());
  return true;
}

static bool discretization_ready(mix_layer *layer) {
  const discretization *d = layer->data;
  if (strcmp(d->options.output_mode, "int") || mix_dtype_is_integer(layer->compute)) return true;
  return mix_fail_value("%s: output_mode int needs an integer dtype, not %s", layer->kind->call,
                        mix_dtype_name(layer->compute));
}

/* Keras 3 saves floatx for every output mode; indices are integers all the same. A config may hold num_bins
 * and the adapted boundaries. */
static mix_layer *discretization_from(const mix_layer_kind *kind, const json_t *config, void *options) {
  mix_discretization_options *o = options, adapted = *o;
  bool ids = !o->output_mode || !strcmp(o->output_mode, "int");
  if (ids && o->policy && !mix_dtype_is_integer(mix_policy_compute_dtype(o->policy))) o->policy = NULL;
  bool both = o->bin_boundaries && o->num_bins && o->num_bins != MIX_INT_ZERO;
  if (both) o->bin_boundaries = NULL, o->boundary_count = 0;
  mix_layer *layer = mix_layer_of_kind(kind, options);
  if (!layer || !both || !copy_boundaries(&(mix_field){.options = &adapted})) return layer;
  discretization *d = layer->data;
  set_boundaries(&d->options, (double *)adapted.bin_boundaries, adapted.boundary_count);
  return layer;
}

#define FIELD(member) MIX_FIELD(mix_discretization_options, member)
static const mix_field_row fields[] = {
    {FIELD(bin_boundaries), &boundaries_kind},
    {FIELD(num_bins), &mix_field_integer, .optional = true, .range = MIX_NOT_NEGATIVE},
    {FIELD(epsilon), &mix_field_number, .number = 0.01, .range = MIX_BETWEEN_0_AND_1},
    {FIELD(output_mode), &mix_field_text, .text = "int", .choices = "int|one_hot|multi_hot|count"},
    {0}};
MIX_LAYER_KIND(discretization, mix_discretization_options, .fields = fields, .check = discretization_check,
               .ready = discretization_ready, .from_config = discretization_from,
               MIX_LAYER_CLASS(.name = "Discretization", .instance_size = sizeof(discretization),
                               .call = discretization_call, .get_config = discretization_config,
                               .finalize = discretization_finalize, .no_autocast = true))
