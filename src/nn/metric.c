/* Metrics: running means and sums, and the accuracies (spec/layers.md, section 11). */
#include "nn/metric.h"
#include "base/alloc.h"
#include "base/error.h"
#include "graph/node.h"
#include "nn/keep.h"
#include "nn/metric_functions.h"
#include "nn/policy.h"
#include "tensor/shape.h"
#include <math.h>
#include <mixtape/ops.h>
#include <string.h>

const mix_metric_kind mix_metric_kinds[] = {
    {"mean", "Mean", NULL, NULL, false, false, false},
    {"sum", "Sum", NULL, NULL, true, false, false},
    {"exact_accuracy", "Accuracy", NULL, mix_metric_accuracy, false, false, true},
    {"binary_accuracy", "BinaryAccuracy", NULL, mix_metric_binary_accuracy, false, false, true},
    {"categorical_accuracy", "CategoricalAccuracy", NULL, mix_metric_categorical_accuracy, false, false, false},
    {"sparse_categorical_accuracy", "SparseCategoricalAccuracy", NULL, mix_metric_sparse_categorical_accuracy, false, false, false},
    {"top_k_categorical_accuracy", "TopKCategoricalAccuracy", NULL, mix_metric_top_k, false, false, false},
    {"sparse_top_k_categorical_accuracy", "SparseTopKCategoricalAccuracy", NULL, mix_metric_sparse_top_k, false, false, false},
    {"root_mean_squared_error", "RootMeanSquaredError", NULL, mix_metric_squared_error, false, true, true},
    {.name = NULL},
};

static void finalize(void *object) {
  mix_metric *metric = object;
  mix_release(metric->loss);
  mix_release(metric->total);
  mix_release(metric->count);
}
const mix_class mix_metric_class = {.name = "metric", .finalize = finalize};

static const mix_metric_kind *kind_named(const char *name) {
  for (const mix_metric_kind *kind = mix_metric_kinds; kind->name; kind++)
    if (!strcmp(kind->name, name) || !strcmp(kind->class_name, name)) return kind;
  return NULL;
}

static bool chooses(const char *name) { return !strcmp(name, "accuracy") || !strcmp(name, "acc"); }

static mix_variable *state(const char *name, mix_dtype dtype) {
  return mix_retain(mix_variable_new(mix_scalar(0, dtype), .name = name, .not_trainable = true));
}

/* What the name stands for: a kind, a loss's values, or a choice left to the first update. */
static bool resolve(mix_metric *metric, const mix_metric_options *o) {
  if (o->function) return true;
  metric->chooses = chooses(o->metric);
  metric->kind = metric->chooses ? NULL : kind_named(o->metric);
  if (metric->chooses || metric->kind) return true;
  if (mix_loss_kind_named(o->metric, metric->semantics)) {
    metric->loss = mix_retain(mix_loss_new(o->metric, .semantics = metric->semantics, .reduction = "none",
                                           .from_logits = o->from_logits, .label_smoothing = o->label_smoothing));
    return metric->loss != NULL;
  }
  mix_fail(MIX_VALUE_ERROR, "metric: '%.60s' is not known to %s", o->metric, metric->semantics->name);
  return false;
}

/* Keras's default name of a class, else the name given. */
static const char *standard_name(const mix_metric *metric, const char *given) {
  if (!given) return "metric";
  if (metric->kind && !strcmp(metric->kind->class_name, given)) return strcmp(given, "Accuracy") ? metric->kind->name : "accuracy";
  if (metric->loss && !strcmp(metric->loss->kind->class_name, given)) return metric->loss->kind->name;
  return given;
}

mix_metric *mix_metric_with(const mix_metric_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_metric_options, o, options, "metric");
  if (!o.metric == !o.function) return mix_fail(MIX_VALUE_ERROR, "metric: give a name or a function, one of the two");
  mix_dtype dtype = o.dtype ? mix_dtype_from_name(o.dtype) : mix_floatx();
  if (!mix_dtype_is_floating(dtype))
    return mix_fail(MIX_VALUE_ERROR, "metric: the dtype is '%.60s'; expected a floating-point dtype", o.dtype);
  if (o.k < 0) return mix_fail(MIX_VALUE_ERROR, "metric: k is %lld; expected a positive number", (long long)o.k);
  mix_metric *metric = mix_object_new(sizeof *metric, &mix_metric_class);
  if (!metric) return NULL;
  metric->semantics = mix_semantics_or_current(o.semantics);
  metric->dtype = dtype;
  metric->options = o;
  metric->options.metric = metric->options.name = metric->options.dtype = NULL; /* the caller's texts are not kept */
  if (resolve(metric, &o)) {
    metric->name = mix_intern(o.name ? o.name : standard_name(metric, o.metric));
    metric->total = state("total", dtype);
    if (!metric->kind || !metric->kind->sum) metric->count = state("count", dtype);
  }
  if (!mix_failed()) return mix_scoped(metric);
  mix_release(metric);
  return NULL;
}

const char *mix_metric_name(const mix_metric *metric) { return metric ? metric->name : NULL; }

mix_list *mix_metric_variables(mix_metric *metric) {
  if (mix_failed() || !metric) return NULL;
  return metric->count ? mix_list_of(metric->total, metric->count) : mix_list_of(metric->total);
}

/* ---- update ---- */

/* keras: "accuracy" is decided by the shapes of the first batch. */
static void choose_kind(mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  static const char *const names[] = {"binary_accuracy", "sparse_categorical_accuracy", "categorical_accuracy"};
  if (metric->chooses && !metric->kind)
    metric->kind = kind_named(names[mix_label_kind_of(mix_tensor_shape(y_true), mix_tensor_shape(y_pred))]);
}

/* (batch) against (batch, 1), as for losses */
static void align(mix_tensor **a, mix_tensor **b) {
  mix_tensor **lower = mix_tensor_shape(*a).rank < mix_tensor_shape(*b).rank ? a : b, **higher = lower == a ? b : a;
  mix_shape low = mix_tensor_shape(*lower), high = mix_tensor_shape(*higher);
  if (high.rank == low.rank + 1 && high.dims[high.rank - 1] == 1) *higher = mix_squeeze(*higher, MIX_AXES(-1));
}

static mix_tensor *values_of(mix_metric *metric, mix_tensor *y_true, mix_tensor *y_pred) {
  if (metric->kind && !metric->kind->function) return y_true;
  if (!y_pred) return mix_fail(MIX_TYPE_ERROR, "metric %s: update needs labels and predictions", metric->name);
  choose_kind(metric, y_true, y_pred);
  /* Casting drops the memory of logits, as it does in Keras. */
  if (!metric->semantics->metric_inputs_uncast || !mix_dtype_is_floating(mix_tensor_dtype(y_pred)))
    y_pred = mix_cast(y_pred, metric->dtype);
  if (!y_pred) return NULL;
  if (metric->options.function) return metric->options.function(metric->options.context, y_true, y_pred);
  if (metric->loss) {
    mix_tensor *values = mix_loss_values(metric->loss, y_true, y_pred);
    return metric->loss->kind->function == mix_loss_cosine_similarity ? mix_negative(values) : values;
  }
  y_true = mix_cast(y_true, mix_tensor_dtype(y_pred));
  if (metric->kind->align && y_true) align(&y_true, &y_pred);
  return mix_failed() ? NULL : metric->kind->function(metric, y_true, y_pred);
}

/* The mean (for sums: the sum) over all axes but the first. */
static mix_tensor *for_each_sample(const mix_metric *metric, mix_tensor *x) {
  int rank = x ? mix_tensor_shape(x).rank : 0;
  if (rank < 2) return x;
  mix_axes axes = {.count = rank - 1};
  for (int i = 1; i < rank; i++) axes.axis[i - 1] = i;
  return mix_kept(metric->count ? mix_reduce_mean(x, axes, false) : mix_reduce_sum(x, axes, false));
}

static mix_tensor *sum_of(mix_tensor *x) {
  return x && mix_tensor_shape(x).rank ? mix_kept(mix_reduce_sum(x, MIX_ALL_AXES, false)) : x;
}

static bool add_to(mix_variable *variable, mix_tensor *amount) {
  return mix_variable_assign(variable, mix_kept(mix_add(mix_variable_true_value(variable), amount))) == MIX_OK;
}

/* The mask of the predictions, and the weights given; NULL where there is neither. */
static mix_tensor *weights_of(const mix_metric *metric, mix_tensor *values, mix_tensor *given, mix_tensor *mask) {
  mix_tensor *weights = given ? mix_align_weights(values, mix_cast(given, metric->dtype)) : NULL;
  if (!mask) return weights;
  mix_tensor *valid = mix_align_weights(values, mix_cast(mask, metric->dtype));
  return weights ? mix_kept(mix_multiply(weights, valid)) : valid;
}

static void update(mix_metric *metric, mix_tensor *values, mix_tensor *given, mix_tensor *mask) {
  values = mix_cast(values, metric->dtype);
  if (!values) return;
  mix_tensor *weights = weights_of(metric, values, given, mask);
  if (weights) {
    /* Weights of fewer dimensions apply to whole samples; those of the values' shape to single elements. */
    bool samples = mix_shape_size(mix_tensor_shape(weights)) != mix_shape_size(mix_tensor_shape(values));
    if (samples) values = for_each_sample(metric, values);
    mix_shape shape = mix_tensor_shape(values), have = mix_tensor_shape(weights);
    if (samples && have.rank > shape.rank) weights = mix_reshape(weights, MIX_SHAPE(have.dims[0]));
    weights = mix_kept(mix_broadcast_to(weights, shape));
    values = mix_kept(mix_multiply(values, weights));
  } else {
    values = for_each_sample(metric, values);
  }
  if (!values) return;
  int64_t count = mix_shape_size(mix_tensor_shape(values));
  if (!add_to(metric->total, sum_of(values)) || !metric->count) return;
  add_to(metric->count, weights ? sum_of(weights) : mix_scalar((double)count, metric->dtype));
}

mix_status mix_metric_update_with(mix_metric *metric, const mix_metric_update_options *options) {
  if (mix_failed()) return mix_error();
  if (!metric) return mix_fail_status(MIX_TYPE_ERROR, "metric_update: got no metric");
  MIX_OPTIONS(mix_metric_update_options, o, options, "metric_update");
  if (!o.values) return mix_fail_status(MIX_TYPE_ERROR, "metric %s: update got no values", metric->name);
  const char *scope = mix_graph_scope_set(metric->name);
  mix_scope *temporaries = mix_scope_begin();
  mix_tensor *values = values_of(metric, o.values, o.y_pred);
  if (values) update(metric, values, o.sample_weight, o.y_pred ? o.y_pred->mask : NULL);
  mix_scope_end(temporaries);
  mix_graph_scope_set(scope);
  return mix_error();
}

/* ---- result ---- */

mix_tensor *mix_metric_result_tensor(mix_metric *metric) {
  if (mix_failed() || !metric) return NULL;
  mix_tensor *total = mix_variable_true_value(metric->total);
  if (!metric->count) return total;
  mix_tensor *count = mix_variable_true_value(metric->count), *zero = mix_scalar(0, metric->dtype);
  mix_tensor *none = mix_kept(mix_equal(count, zero));
  mix_tensor *mean = mix_kept(mix_divide(total, mix_kept(mix_select(none, mix_scalar(1, metric->dtype), count))));
  mean = mix_kept(mix_select(none, zero, mean));
  return metric->kind && metric->kind->root ? mix_kept(mix_sqrt(mean)) : mean;
}

double mix_metric_result(mix_metric *metric) {
  mix_scope *temporaries = mix_scope_begin();
  mix_tensor *result = mix_metric_result_tensor(metric);
  double value = result ? mix_tensor_item(result) : NAN;
  mix_scope_end(temporaries);
  return value;
}

mix_status mix_metric_reset(mix_metric *metric) {
  if (mix_failed() || !metric) return mix_error();
  mix_tensor *zero = mix_scalar(0, metric->dtype);
  if (mix_variable_assign(metric->total, zero)) return mix_error();
  return metric->count ? mix_variable_assign(metric->count, zero) : MIX_OK;
}
