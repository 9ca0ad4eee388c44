/* evaluate and predict. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "train/callback.h"
#include "train/data_adapter.h"
#include "compile/function.h"
#include "tensor/shape.h"
#include <string.h>

static bool not_negative(int64_t number, const char *call, const char *name) {
  if (number < 0) mix_fail_value("%s: %s is %lld; expected a positive number", call, name, (long long)number);
  return !mix_failed();
}

static bool end_pass(const mix_data_adapter *adapter, const mix_callbacks *callbacks) {
  if (mix_failed()) return false;
  if (adapter->position < adapter->steps)
    mix_log_message(MIX_LOG_WARNING, "%s: the data ran out after %lld of %lld steps", adapter->call,
                    (long long)adapter->position, (long long)adapter->steps);
  if (!adapter->position) mix_fail_value("%s: the data set gave no batches", adapter->call);
  mix_callbacks_set_target(callbacks, adapter->position);
  return !mix_failed();
}

/* Runs all batches; the metrics then hold the results. False with the error recorded. */
static bool test_batches(mix_model *model, mix_data_adapter *adapter, const mix_callbacks *callbacks) {
  if (!mix_model_test_step(model) || mix_model_reset_metrics(model) != MIX_OK ||
      !mix_data_adapter_begin(adapter, MIX_ORDER_KEPT, 0, 0))
    return false;
  for (bool more = true; more && !mix_failed();) {
    MIX_SCOPE {
      mix_list *batch = mix_data_adapter_next(adapter);
      int64_t index = adapter->position - 1;
      more = batch != NULL;
      mix_list *results = NULL;
      if (more && mix_callbacks_run(callbacks, MIX_ON_TEST_BATCH_BEGIN, index, NULL) &&
          !(results = mix_function_call(mix_model_test_step(model), batch)))
        mix_data_adapter_explain(adapter, batch);
      if (results && mix_model_ranks_agree(model, adapter->call))
        mix_callbacks_end_batch(callbacks, MIX_ON_TEST_BATCH_END, index);
    }
  }
  return end_pass(adapter, callbacks);
}

static mix_logs *evaluate(mix_model *model, const mix_evaluate_options *given) {
  if (!mix_model_compiled(model, "evaluate")) return NULL;
  MIX_OPTIONS(mix_evaluate_options, options, given, "evaluate");
  if (!not_negative(options.batch_size, "evaluate", "batch_size") ||
      !not_negative(options.steps, "evaluate", "steps") ||
      !mix_progress_take_quiet(&options.verbose, options.quiet, "evaluate"))
    return NULL;
  mix_logs *logs = NULL;
  mix_kept_arrays *const validation = model->tests_validation_data;
  model->tests_validation_data = NULL; /* callbacks may evaluate other data */
  MIX_SCOPE {
    mix_data_adapter adapter = {.model = model, .call = "evaluate"};
    mix_data_adapter_data data = {.x = options.x,
                                  .y = options.y,
                                  .sample_weight = options.sample_weight,
                                  .batch_size = options.batch_size,
                                  .steps = options.steps,
                                  .rows = options.rows,
                                  .kept = validation};
    mix_callbacks callbacks;
    const bool opened = mix_callbacks_open(&callbacks, model, options.callbacks, "evaluate") &&
                        mix_data_adapter_open(&adapter, model, &data, MIX_ADAPTER_TEST, "evaluate");
    adapter.validates = validation != NULL;
    if (mix_data_adapter_meet(&adapter, opened) &&
        mix_callbacks_show(&callbacks, true, options.verbose, adapter.target, 1) &&
        mix_callbacks_run(&callbacks, MIX_ON_TEST_BEGIN, 0, NULL)) {
      if (test_batches(model, &adapter, &callbacks)) logs = mix_retain(mix_model_current_logs(model));
      mix_callbacks_run(&callbacks, MIX_ON_TEST_END, 0, logs);
    }
    mix_data_adapter_close(&adapter);
  }
  mix_logs *results = mix_scoped(logs);
  return mix_failed() ? NULL : results;
}

mix_logs *mix_model_evaluate_with(mix_model *model, const mix_evaluate_options *options) {
  MIX_OWN_FLOAT_MODES;
  mix_logs *logs = NULL;
  MIX_MODEL_USE(model, MIX_CHANGES_METRICS, "evaluate") { logs = evaluate(model, options); }
  return logs;
}

/* ---- predict ---- */

/* The concatenated outputs of all batches, in a growing buffer. */
typedef struct collected {
  char *data;
  size_t size, capacity; /* bytes */
  mix_dtype dtype;
  mix_shape shape; /* dims[0]: rows so far */
} collected;

static bool collect(collected *all, mix_tensor *output) {
  mix_shape shape = mix_tensor_shape(output);
  const void *data = mix_tensor_data(output);
  if (!data) return false;
  size_t bytes = mix_value_bytes(mix_tensor_dtype(output), shape);
  mix_shape rest = all->shape;
  rest.dims[0] = shape.dims[0];
  if (!all->data) {
    all->dtype = mix_tensor_dtype(output);
    all->shape = shape;
    all->shape.dims[0] = 0;
  } else if (!mix_shape_equal(rest, shape))
    return mix_fail_value(
        "predict: the outputs of two batches differ in more than their rows; they cannot be put together");
  if (all->size + bytes > all->capacity || !all->data) {
    size_t capacity = 2 * all->capacity > all->size + bytes ? 2 * all->capacity : all->size + bytes;
    char *grown = mix_realloc(all->data, capacity + 1);
    if (!grown) return false;
    all->data = grown;
    all->capacity = capacity;
  }
  memcpy(all->data + all->size, data, bytes);
  all->size += bytes;
  all->shape.dims[0] += shape.dims[0];
  return true;
}

static void predict_batches(mix_predictor *predictor, mix_data_adapter *adapter,
                            const mix_callbacks *callbacks, collected *all) {
  if (!predictor || !mix_data_adapter_begin(adapter, MIX_ORDER_KEPT, 0, 0)) return;
  for (bool more = true; more && !mix_failed();) {
    MIX_SCOPE {
      mix_list *batch = mix_data_adapter_next(adapter);
      int64_t index = adapter->position - 1;
      more = batch && mix_callbacks_run(callbacks, MIX_ON_PREDICT_BATCH_BEGIN, index, NULL);
      mix_function *step = more ? mix_predictor_step(predictor, adapter->arguments.input_names) : NULL;
      mix_list *outputs = step ? mix_function_call(step, batch) : NULL;
      for (int i = 0; outputs && i < mix_list_count(outputs) && !mix_failed(); i++)
        collect(&all[i], mix_list_get(outputs, i));
      if (outputs) mix_callbacks_run(callbacks, MIX_ON_PREDICT_BATCH_END, index, NULL);
    }
  }
  end_pass(adapter, callbacks);
}

/* With verbose 0 only a ProgbarLogger of the caller shows the progress. */
static bool show_prediction(mix_callbacks *callbacks, int verbose, int64_t target) {
  bool given = false;
  for (int i = 0; i < mix_callbacks_count(callbacks); i++)
    given |= mix_callbacks_get(callbacks, i)->progress != NULL;
  return mix_callbacks_show(callbacks, false, verbose || given ? verbose : MIX_SILENT, target, 1);
}

static mix_list *predict(mix_model *model, const mix_predict_options *given) {
  MIX_OPTIONS(mix_predict_options, options, given, "predict");
  if (!not_negative(options.batch_size, "predict", "batch_size") ||
      !not_negative(options.steps, "predict", "steps") ||
      !mix_progress_take_quiet(&options.verbose, options.quiet, "predict"))
    return NULL;
  collected all[MIX_MODEL_MAX] = {{0}};
  mix_list *result = mix_list_new(0, NULL);
  MIX_SCOPE {
    mix_data_adapter adapter = {.model = model};
    mix_data_adapter_data data = {.x = options.x, .batch_size = options.batch_size, .steps = options.steps};
    mix_callbacks callbacks;
    if (mix_callbacks_open(&callbacks, model, options.callbacks, "predict") &&
        mix_data_adapter_open(&adapter, model, &data, MIX_ADAPTER_PREDICT, "predict") &&
        show_prediction(&callbacks, options.verbose, adapter.target) &&
        mix_callbacks_run(&callbacks, MIX_ON_PREDICT_BEGIN, 0, NULL)) {
      mix_predictor *predictor = mix_predictor_take(model);
      predict_batches(predictor, &adapter, &callbacks, all);
      mix_predictor_give_back(predictor);
      mix_callbacks_run(&callbacks, MIX_ON_PREDICT_END, 0, NULL);
    }
    mix_data_adapter_close(&adapter);
    for (int i = 0; i < MIX_MODEL_MAX && all[i].data && !mix_failed(); i++)
      mix_list_append(result, mix_tensor_from(all[i].data, all[i].dtype, all[i].shape));
  }
  for (int i = 0; i < MIX_MODEL_MAX; i++) mix_free(all[i].data);
  return mix_failed() ? NULL : result;
}

mix_list *mix_model_predict_with(mix_model *model, const mix_predict_options *options) {
  MIX_OWN_FLOAT_MODES;
  mix_list *outputs = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "predict") { outputs = predict(model, options); }
  return outputs;
}
