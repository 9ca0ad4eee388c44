/* Metrics: the object, its state, update and result (docs/spec/keras.md, section 11). The kinds are in
 * the other files of this folder. */
#include "nn/metrics/metric.h"
#include "base/alloc.h"
#include "base/error.h"
#include "graph/variable.h"
#include "nn/config.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

static void finalize(void *object) {
  mix_metric *metric = object;
  if (metric->class.finalize && metric->data) metric->class.finalize(metric);
  for (int i = 0; i < metric->state_count; i++) mix_release(metric->state[i].variable);
  mix_free(metric->state);
  mix_release(metric->loss);
  mix_fields fields = mix_metric_fields(NULL, NULL, NULL);
  mix_fields_release(&fields, &metric->options);
  mix_free(metric->data);
  mix_free(metric->config);
}
static const char *name_of(const void *object) { return ((const mix_metric *)object)->name; }
const mix_class mix_metric_object_class = {.name = "metric", .finalize = finalize, .name_of = name_of};

const char *mix_metric_name(const mix_metric *metric) {
  return mix_is(metric, &mix_metric_object_class) ? metric->name : NULL;
}
mix_dtype mix_metric_dtype(const mix_metric *metric) {
  return mix_is(metric, &mix_metric_object_class) ? metric->dtype : MIX_DTYPE_NONE;
}
void *mix_metric_data(const mix_metric *metric) {
  return mix_is(metric, &mix_metric_object_class) ? metric->data : NULL;
}
const char *mix_metric_class_name(const mix_metric *metric) {
  if (!mix_is(metric, &mix_metric_object_class)) return NULL;
  if (!metric->loss || metric->chooses) return metric->class.name; /* the choice is not part of the class */
  const char *name = metric->loss->kind->class_name;
  return strcmp(name, "LogCosh") ? name : "LogCoshError";
}

/* ---- state ---- */

mix_variable *mix_metric_add_variable_with(mix_metric *metric, const mix_metric_variable_options *options) {
  if (mix_failed()) return NULL;
  if (!mix_is(metric, &mix_metric_object_class)) return mix_fail_type("metric_add_variable: got no metric");
  MIX_OPTIONS(mix_metric_variable_options, o, options, "metric_add_variable");
  mix_dtype dtype = o.dtype ? mix_dtype_from_name(o.dtype) : metric->dtype;
  if (dtype == MIX_DTYPE_NONE)
    return mix_fail_value("metric %s: there is no dtype '%.60s'", metric->name, o.dtype);
  if (!mix_reserve(&metric->state, &metric->state_capacity, metric->state_count + 1, sizeof *metric->state))
    return NULL;
  /* The initial value is computed at once, outside any capture. */
  mix_capture *capture = mix_capture_set(NULL);
  mix_dtype cast = mix_cast_dtype_set(MIX_DTYPE_NONE);
  mix_variable *variable = NULL;
  MIX_SCOPE {
    mix_tensor *start = mix_fill(o.shape, o.value, dtype);
    variable =
        mix_retain(mix_variable_new(start, .name = o.name ? o.name : "variable", .not_trainable = true));
  }
  mix_cast_dtype_set(cast);
  mix_capture_set(capture);
  if (variable)
    metric->state[metric->state_count++] = (struct mix_metric_state){.variable = variable, .start = o.value};
  return variable;
}

mix_list *mix_metric_variables(mix_metric *metric) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_variables", "a metric")) return NULL;
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < metric->state_count; i++) mix_list_append(list, metric->state[i].variable);
  return mix_failed() ? NULL : list;
}

mix_status mix_metric_build(mix_metric *metric, mix_shape y_true, mix_shape y_pred) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_build", "a metric") || metric->built)
    return mix_error();
  mix_status status = metric->class.build(metric, y_true, y_pred);
  if (status != MIX_OK) return mix_fail_status(status, "metric %s: build failed", metric->name);
  metric->built = !mix_failed();
  return mix_error();
}

mix_tensor *mix_metric_value(const mix_metric *metric, int index) {
  return mix_variable_true_value(metric->state[index].variable);
}

mix_status mix_metric_add(mix_metric *metric, int index, mix_tensor *amount) {
  mix_variable *variable = metric->state[index].variable;
  return mix_variable_assign(variable, mix_add(mix_variable_true_value(variable), amount));
}

bool mix_metric_is_floating(const mix_metric *metric) {
  if (!mix_dtype_is_floating(metric->dtype))
    mix_fail_value("metric %s: the dtype is '%s'; expected a floating-point dtype", metric->name,
                   mix_dtype_name(metric->dtype));
  return !mix_failed();
}

mix_tensor *mix_metric_number(const mix_metric *metric, double value) {
  return mix_scalar(value, metric->dtype);
}

void mix_metric_align(mix_tensor **a, mix_tensor **b) {
  if (!*a || !*b) return;
  mix_tensor **lower = mix_tensor_shape(*a).rank < mix_tensor_shape(*b).rank ? a : b,
             **higher = lower == a ? b : a;
  mix_shape low = mix_tensor_shape(*lower), high = mix_tensor_shape(*higher);
  if (high.rank == low.rank + 1 && high.dims[high.rank - 1] == 1)
    *higher = mix_squeeze(*higher, MIX_AXES(-1));
}

/* ---- update, result, reset ---- */

/* Saved thread state while a metric's functions run. New nodes have the metric's name as scope, and the
 * graph rewrite does not change them. */
typedef struct running {
  const char *scope;
  bool keep;
  mix_dtype cast;
} running;
static running run_begin(const mix_metric *metric) {
  return (running){mix_graph_scope_set(metric->name), mix_graph_keep_set(true),
                   mix_cast_dtype_set(MIX_DTYPE_NONE)};
}
static void run_end(running former) {
  mix_cast_dtype_set(former.cast);
  mix_graph_keep_set(former.keep);
  mix_graph_scope_set(former.scope);
}

static mix_shape shape_of(mix_tensor *tensor) {
  return tensor ? mix_tensor_shape(tensor) : (mix_shape){.rank = 0};
}

mix_status mix_metric_update_with(mix_metric *metric, const mix_metric_update_options *options) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_update", "a metric")) return mix_error();
  mix_metric_update_options o;
  if (!mix_options_copy(&o, sizeof o, options, "metric_update")) return mix_error();
  if (!o.values) return mix_fail_status(MIX_TYPE_ERROR, "metric %s: update got no values", metric->name);
  mix_metric_args args = {.size = sizeof args,
                          .y_true = o.values,
                          .y_pred = o.y_pred,
                          .sample_weight = o.sample_weight,
                          .mask = o.y_pred ? o.y_pred->mask : NULL};
  running former = run_begin(metric);
  mix_status status = MIX_OK;
  MIX_SCOPE {
    if (mix_metric_build(metric, shape_of(o.values), shape_of(o.y_pred)) == MIX_OK)
      status = metric->class.update(metric, &args);
  }
  run_end(former);
  if (status != MIX_OK) mix_fail(status, "metric %s: update failed", metric->name);
  return mix_error();
}

mix_tensor *mix_metric_result_tensor(mix_metric *metric) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_result", "a metric")) return NULL;
  if (!metric->built)
    return mix_fail_value("metric %s: has no state before the first update, which tells it the shapes",
                          metric->name);
  running former = run_begin(metric);
  mix_tensor *result = metric->class.result(metric);
  run_end(former);
  return mix_returned(result, metric->name);
}

double mix_metric_result(mix_metric *metric) {
  double value = NAN;
  MIX_SCOPE {
    mix_tensor *result = mix_metric_result_tensor(metric);
    int64_t count = result ? mix_shape_size(mix_tensor_shape(result)) : 0;
    if (result && count != 1)
      mix_fail_value("metric %s: the result is %lld numbers; read mix_metric_result_tensor", metric->name,
                     (long long)count);
    else if (result)
      value = mix_tensor_item(result);
  }
  return value;
}

mix_status mix_metric_reset(mix_metric *metric) {
  if (!mix_given(metric, &mix_metric_object_class, "metric_reset", "a metric")) return mix_error();
  running former = run_begin(metric);
  MIX_SCOPE {
    if (metric->class.reset) {
      mix_status status = metric->class.reset(metric);
      if (status != MIX_OK) mix_fail(status, "metric %s: reset failed", metric->name);
    } else
      for (int i = 0; i < metric->state_count; i++) {
        mix_variable *variable = metric->state[i].variable;
        mix_variable_assign(variable, mix_fill(variable->shape, metric->state[i].start, variable->dtype));
      }
  }
  run_end(former);
  return mix_error();
}
