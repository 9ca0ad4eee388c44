#include "model/model.h"

#include "base/error.h"
#include "base/philox.h"
#include "data/batches.h"
#include <math.h>
#include <mixtape/ops.h>

enum { STANDARD_BATCH = 32 };

typedef struct fitting {
  mix_model *model;
  mix_fit_options options;
  mix_batches *batches;
  mix_function *step;
  void *validation_x, *validation_y; /* NULL: no validation */
  mix_history *history;
  uint64_t seed;
} fitting;

static bool options_sound(const mix_fit_options *o) {
  if (o->batch_size < 0) mix_fail(MIX_VALUE_ERROR, "fit: batch_size is %lld; expected a positive number", (long long)o->batch_size);
  if (o->epochs < 0) mix_fail(MIX_VALUE_ERROR, "fit: epochs is %lld; expected a positive number", (long long)o->epochs);
  if (o->initial_epoch < 0)
    mix_fail(MIX_VALUE_ERROR, "fit: initial_epoch is %lld; expected 0 or more", (long long)o->initial_epoch);
  if (o->steps < 0) mix_fail(MIX_VALUE_ERROR, "fit: steps is %lld; expected 0 (no limit) or more", (long long)o->steps);
  if (!(o->validation_split >= 0 && o->validation_split < 1))
    mix_fail(MIX_VALUE_ERROR, "fit: validation_split is %g; expected a number in [0, 1)", o->validation_split);
  if (o->class_weight_count < 0 || o->class_weight_count > MIX_CLASS_MOST)
    mix_fail(MIX_VALUE_ERROR, "fit: class_weight_count is %d; expected 0 to %d", o->class_weight_count, MIX_CLASS_MOST);
  return !mix_failed();
}

/* Rows [first, first + count) as a tensor of their own; whole arrays stay themselves. */
static mix_tensor *rows_of(mix_tensor *array, int64_t first, int64_t count) {
  mix_shape begin = mix_tensor_shape(array), size = begin;
  for (int d = 0; d < begin.rank; d++) begin.dims[d] = 0;
  begin.dims[0] = first;
  size.dims[0] = count;
  return mix_slice(array, begin, size);
}

static mix_list *rows_of_all(mix_list *arrays, int from, int to, int64_t first, int64_t count) {
  mix_list *part = mix_list_new(0, NULL);
  for (int i = from; i < to; i++) mix_list_append(part, rows_of(mix_list_get(arrays, i), first, count));
  return part;
}

static bool prepare(fitting *f) {
  mix_compiled_state *state = f->model->state;
  mix_list *xs = mix_tensors_given(f->options.x, "fit", "x"), *ys = xs ? mix_tensors_given(f->options.y, "fit", "y") : NULL;
  if (!ys) return false;
  int inputs = mix_list_count(xs), labels = mix_list_count(ys);
  if (labels != state->output_count) {
    mix_fail(MIX_VALUE_ERROR, "fit: %d arrays of labels; the model has %d outputs", labels, state->output_count);
    return false;
  }
  if (inputs + labels > 2 * MIX_MODEL_MOST) {
    mix_fail(MIX_VALUE_ERROR, "fit: too many arrays");
    return false;
  }
  mix_list *all = mix_list_new(0, NULL);
  for (int i = 0; i < inputs; i++) mix_list_append(all, mix_list_get(xs, i));
  for (int i = 0; i < labels; i++) mix_list_append(all, mix_list_get(ys, i));
  all = mix_model_arrays(all, "fit");
  if (!all) return false;
  int64_t rows = mix_tensor_shape(mix_list_get(all, 0)).dims[0], training = rows;
  if (f->options.validation_x || f->options.validation_y) {
    f->validation_x = mix_tensors_given(f->options.validation_x, "fit", "validation_x");
    f->validation_y = f->validation_x ? mix_tensors_given(f->options.validation_y, "fit", "validation_y") : NULL;
    if (!f->validation_y) return false;
  } else if (f->options.validation_split > 0) {
    training = (int64_t)floor((double)rows * (1.0 - f->options.validation_split));
    if (training == 0 || training == rows) {
      mix_fail(MIX_VALUE_ERROR, "fit: validation_split %g of %lld rows leaves %s part empty; give more rows or another split",
               f->options.validation_split, (long long)rows, training ? "the validation" : "the training");
      return false;
    }
    f->validation_x = rows_of_all(all, 0, inputs, training, rows - training);
    f->validation_y = rows_of_all(all, inputs, inputs + labels, training, rows - training);
  }
  mix_tensor *arrays[2 * MIX_MODEL_MOST];
  for (int i = 0; i < inputs + labels; i++) arrays[i] = mix_list_get(all, i);
  if (mix_model_set_class_weights(f->model, f->options.class_weight_count, f->options.class_labels, f->options.class_weights) !=
      MIX_OK)
    return false;
  f->batches =
      mix_batches_new(inputs + labels, arrays, 0, training, f->options.batch_size ? f->options.batch_size : STANDARD_BATCH, "fit");
  f->step = f->batches ? mix_model_train_step(f->model) : NULL;
  return f->step != NULL;
}

/* What a step left, read back for the caller's log. */
static void report_step(fitting *f, mix_list *results, int64_t epoch) {
  mix_compiled_state *state = f->model->state;
  mix_logs *metrics = mix_logs_new();
  for (int i = 0; i < state->metric_count; i++)
    mix_logs_add(metrics, state->metrics[i].name, mix_tensor_item(mix_list_get(results, 2 + i)));
  mix_step_record record = {.size = sizeof record,
                            .step = f->history->steps,
                            .epoch = epoch,
                            .loss = mix_tensor_item(mix_list_get(results, 0)),
                            .metrics = metrics,
                            .applied = mix_tensor_item(mix_list_get(results, 1)) != 0,
                            .iterations = mix_optimizer_iterations(state->optimizer)};
  mix_tensor *scale = mix_optimizer_loss_scale(state->optimizer);
  mix_variable *good_steps = mix_optimizer_dynamic_counter(state->optimizer);
  if (scale) record.has_loss_scale = true, record.loss_scale = mix_tensor_item(scale);
  if (good_steps) record.has_good_steps = true, record.good_steps = (int64_t)mix_tensor_item(mix_variable_true_value(good_steps));
  if (!mix_failed()) f->options.on_step(f->options.context, &record);
}

static bool limit_reached(const fitting *f) { return f->options.steps && f->history->steps >= f->options.steps; }

static bool run_epoch(fitting *f, int64_t epoch, int64_t epochs) {
  mix_progress progress;
  int64_t count = mix_batches_count(f->batches);
  if (f->options.steps && f->options.steps - f->history->steps < count) count = f->options.steps - f->history->steps;
  mix_progress_begin(&progress, f->options.verbose, f->model->semantics, count, epoch, epochs);
  if (mix_model_reset_metrics(f->model) != MIX_OK ||
      !mix_batches_begin(f->batches, f->options.no_shuffle ? MIX_ORDER_KEPT : MIX_ORDER_ROWS, f->seed, (uint64_t)epoch))
    return false;
  for (int64_t i = 0; i < count && !mix_failed(); i++) {
    MIX_SCOPE {
      mix_list *results = mix_function_call(f->step, mix_batches_get(f->batches, i));
      if (results) {
        f->history->steps++;
        if (f->options.on_step) report_step(f, results, epoch);
        if (mix_progress_due(&progress, i + 1)) mix_progress_update(&progress, i + 1, mix_model_current_logs(f->model));
      }
    }
  }
  if (mix_failed()) return false;
  MIX_SCOPE {
    mix_logs *logs = mix_model_current_logs(f->model), *validation = NULL;
    if (logs && f->validation_x) {
      mix_evaluate_options evaluate = {.size = sizeof evaluate,
                                       .x = f->validation_x,
                                       .y = f->validation_y,
                                       .batch_size = f->options.batch_size,
                                       .verbose = MIX_SILENT};
      validation = mix_model_evaluate_with(f->model, &evaluate);
    }
    if (logs && f->model->semantics->history_keys_sorted) {
      mix_logs_sort(logs);
      if (validation) mix_logs_sort(validation);
    }
    if (logs && validation) mix_logs_merge(logs, validation, "val_");
    if (!mix_failed()) {
      mix_list_append(f->history->epochs, logs);
      mix_progress_end(&progress, logs);
    }
  }
  return !mix_failed();
}

mix_history *mix_model_fit_with(mix_model *model, const mix_fit_options *given) {
  if (!mix_model_compiled(model, "fit")) return NULL;
  fitting f = {.model = model};
  if (!mix_options_copy(&f.options, sizeof f.options, given, "fit") || !options_sound(&f.options)) return NULL;
  f.history = mix_history_new();
  f.seed = f.options.seed ? f.options.seed : mix_next_seed();
  int64_t epochs = f.options.epochs ? f.options.epochs : 1;
  MIX_SCOPE {
    if (f.history && prepare(&f)) {
      for (int64_t epoch = f.options.initial_epoch; epoch < epochs && !limit_reached(&f); epoch++)
        if (!run_epoch(&f, epoch, epochs)) break;
      if (!mix_failed()) mix_optimizer_finalize_variable_values(model->state->optimizer, mix_model_trainable_variables(model));
    }
  }
  return mix_failed() ? NULL : f.history;
}
