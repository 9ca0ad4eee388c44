#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "data/batches.h"
#include "tensor/shape.h"
#include <mixtape/ops.h>
#include <string.h>

enum { STANDARD_BATCH = 32 };

static mix_batches *batches_of(mix_list *arrays, int64_t batch_size, const char *call) {
  mix_tensor *list[2 * MIX_MODEL_MOST];
  int count = mix_list_count(arrays);
  if (count > 2 * MIX_MODEL_MOST) return mix_fail(MIX_VALUE_ERROR, "%s: too many arrays", call);
  for (int i = 0; i < count; i++) list[i] = mix_list_get(arrays, i);
  return mix_batches_new(count, list, 0, -1, batch_size ? batch_size : STANDARD_BATCH, call);
}

/* Inputs and labels as one list, in the order of the step's arguments. */
static mix_list *joined(mix_model *model, void *x, void *y, const char *call) {
  mix_list *xs = mix_tensors_given(x, call, "x"), *ys = xs ? mix_tensors_given(y, call, "y") : NULL;
  if (!ys) return NULL;
  if (mix_list_count(ys) != model->state->output_count)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d arrays of labels; the model has %d outputs", call, mix_list_count(ys),
                    model->state->output_count);
  mix_list *all = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(xs); i++) mix_list_append(all, mix_list_get(xs, i));
  for (int i = 0; i < mix_list_count(ys); i++) mix_list_append(all, mix_list_get(ys, i));
  return mix_model_arrays(all, call);
}

mix_logs *mix_model_evaluate_with(mix_model *model, const mix_evaluate_options *given) {
  if (!mix_model_compiled(model, "evaluate")) return NULL;
  MIX_OPTIONS(mix_evaluate_options, options, given, "evaluate");
  if (options.batch_size < 0)
    return mix_fail(MIX_VALUE_ERROR, "evaluate: batch_size is %lld; expected a positive number", (long long)options.batch_size);
  mix_logs *logs = NULL;
  MIX_SCOPE {
    mix_list *arrays = joined(model, options.x, options.y, "evaluate");
    mix_batches *batches = arrays ? batches_of(arrays, options.batch_size, "evaluate") : NULL;
    mix_function *step = batches ? mix_model_test_step(model) : NULL;
    mix_progress progress;
    int64_t count = batches ? mix_batches_count(batches) : 0;
    mix_progress_begin(&progress, options.verbose, model->semantics, count, 0, 1);
    if (step) mix_model_reset_metrics(model);
    for (int64_t i = 0; i < count && step && !mix_failed(); i++) {
      MIX_SCOPE { mix_function_call(step, mix_batches_get(batches, i)); }
      if (!mix_failed() && mix_progress_due(&progress, i + 1))
        MIX_SCOPE { mix_progress_update(&progress, i + 1, mix_model_current_logs(model)); }
    }
    if (!mix_failed() && step) {
      logs = mix_model_current_logs(model);
      mix_progress_end(&progress, logs);
      mix_retain(logs);
    }
  }
  return mix_scoped(logs);
}

/* Rows of a batch's outputs go to their place in arrays of all rows. */
static bool place_outputs(mix_list *outputs, int64_t first, int64_t rows, void **all, mix_dtype *dtypes, mix_shape *shapes) {
  for (int i = 0; i < mix_list_count(outputs); i++) {
    mix_tensor *output = mix_list_get(outputs, i);
    const void *data = mix_tensor_data(output);
    if (!data) return false;
    size_t row_bytes =
        mix_value_bytes(mix_tensor_dtype(output), mix_tensor_shape(output)) / (size_t)mix_tensor_shape(output).dims[0];
    if (!all[i]) {
      dtypes[i] = mix_tensor_dtype(output);
      shapes[i] = mix_tensor_shape(output);
      shapes[i].dims[0] = rows;
      if (!(all[i] = mix_alloc(mix_value_bytes(dtypes[i], shapes[i]) + 1))) return false;
    }
    memcpy((char *)all[i] + (size_t)first * row_bytes, data, row_bytes * (size_t)mix_tensor_shape(output).dims[0]);
  }
  return true;
}

mix_list *mix_model_predict_with(mix_model *model, const mix_predict_options *given) {
  if (!mix_model_given(model, "predict")) return NULL;
  MIX_OPTIONS(mix_predict_options, options, given, "predict");
  if (options.batch_size < 0)
    return mix_fail(MIX_VALUE_ERROR, "predict: batch_size is %lld; expected a positive number", (long long)options.batch_size);
  if (!model->state && !(model->state = mix_calloc(1, sizeof *model->state))) return NULL;
  void *all[MIX_MODEL_MOST] = {0};
  mix_dtype dtypes[MIX_MODEL_MOST];
  mix_shape shapes[MIX_MODEL_MOST];
  mix_list *result = mix_list_new(0, NULL);
  MIX_SCOPE {
    mix_list *arrays = mix_model_arrays(mix_tensors_given(options.x, "predict", "x"), "predict");
    mix_batches *batches = arrays ? batches_of(arrays, options.batch_size, "predict") : NULL;
    mix_function *step = batches ? mix_model_predict_step(model) : NULL;
    int64_t count = batches ? mix_batches_count(batches) : 0, row = 0;
    for (int64_t i = 0; i < count && step && !mix_failed(); i++)
      MIX_SCOPE {
        mix_list *outputs = mix_function_call(step, mix_batches_get(batches, i));
        if (outputs) place_outputs(outputs, row, mix_batches_rows(batches), all, dtypes, shapes);
        row += mix_batches_size(batches, i);
      }
    for (int i = 0; i < MIX_MODEL_MOST && all[i] && !mix_failed(); i++)
      mix_list_append(result, mix_tensor_from(all[i], dtypes[i], shapes[i]));
  }
  for (int i = 0; i < MIX_MODEL_MOST; i++) mix_free(all[i]);
  return mix_failed() ? NULL : result;
}

static mix_logs *on_batch(mix_model *model, void *x, void *y, const char *call, mix_function *(*step_of)(mix_model *model)) {
  if (!mix_model_compiled(model, call)) return NULL;
  mix_logs *logs = NULL;
  MIX_SCOPE {
    mix_list *arrays = joined(model, x, y, call);
    mix_function *step = arrays ? step_of(model) : NULL;
    if (step && mix_model_reset_metrics(model) == MIX_OK && mix_function_call(step, arrays))
      logs = mix_retain(mix_model_current_logs(model));
  }
  return mix_scoped(logs);
}

/* The class weights of an earlier fit were that fit's. */
static mix_function *unweighted_train_step(mix_model *model) {
  return mix_model_set_class_weights(model, 0, NULL, NULL) == MIX_OK ? mix_model_train_step(model) : NULL;
}

mix_logs *mix_model_train_on_batch(mix_model *model, void *x, void *y) {
  return on_batch(model, x, y, "train_on_batch", unweighted_train_step);
}
mix_logs *mix_model_test_on_batch(mix_model *model, void *x, void *y) {
  return on_batch(model, x, y, "test_on_batch", mix_model_test_step);
}
