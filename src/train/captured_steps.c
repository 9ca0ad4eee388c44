/* The captured steps of fit, evaluate and predict: one function each, one plan per signature. */
#include "train/captured_steps.h"

#include "base/alloc.h"
#include "base/error.h"
#include "ops/with_number.h"
#include "optim/optimizer.h"
#include "distribute/distribute.h"
#include "train/logs.h"
#include <mixtape/device.h>
#include <string.h>

static int input_count(const mix_model *model, int arguments) {
  return arguments - (model->state ? model->state->output_count + model->state->weight_arguments : 0);
}

static mix_list *part_of(mix_list *list, int begin, int end) {
  mix_list *part = mix_list_new(0, NULL);
  for (int i = begin; i < end; i++) mix_list_append(part, mix_list_get(list, i));
  return part;
}

static mix_list *model_inputs(mix_model *model, mix_list *arguments, int inputs, const mix_structure *names) {
  mix_list *list = part_of(arguments, 0, inputs);
  const mix_compile_options *given = model->state ? &model->state->given : NULL;
  if (given && given->preprocess && !mix_failed()) {
    list = given->preprocess(given->preprocess_context, list);
    if (!mix_failed() && mix_list_count(list) != inputs)
      mix_fail_value("'%s': preprocess returned %d tensors; expected one for each of %d inputs",
                     mix_model_name(model), mix_list_count(list), inputs);
  }
  mix_list_set_structure(list, names);
  return mix_failed() ? NULL : mix_list_pack(list);
}

static mix_list *model_outputs(mix_model *model, mix_list *list, mix_training training) {
  int inputs = mix_list_count(list);
  mix_model_call_options call = {.size = sizeof call,
                                 .inputs = inputs == 1 && !mix_list_is_dict(list) ? mix_list_get(list, 0)
                                                                                  : (void *)list,
                                 .training = training};
  return mix_failed() ? NULL : mix_model_call_outputs_with(model, &call);
}

/* Adds in the widest dtype: float16 with bfloat16 in float32. */
static mix_tensor *add_widest(mix_tensor *a, mix_tensor *b) {
  if (!a || !b) return a ? a : b;
  mix_dtype x = mix_tensor_dtype(a), y = mix_tensor_dtype(b);
  mix_dtype wide = x == y ? x : x == MIX_FLOAT64 || y == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  return mix_add(mix_cast(a, wide), mix_cast(b, wide));
}

/* Labels (batch) become (batch, 1) next to predictions (batch, n), against which they broadcast, as
 * tf_keras's compile does. Losses and metrics of class numbers would undo it. */
static mix_tensor *expand_labels(const mix_model *model, mix_tensor *labels, mix_tensor *y_pred,
                                 bool class_numbers) {
  bool expands = model->semantics->compile_labels_gain_column && !class_numbers && labels && y_pred &&
                 mix_tensor_shape(labels).rank == 1 && mix_tensor_shape(y_pred).rank == 2;
  return expands ? mix_expand_dims(labels, -1) : labels;
}

static bool is_missing(const mix_compiled_state *state, int output) {
  return state->missing_labels >> output & 1;
}

/* Of this rank's part of the batch. */
static int64_t row_count(mix_list *arguments) { return mix_tensor_shape(mix_list_get(arguments, 0)).dims[0]; }

typedef struct step_losses {
  mix_tensor *total;
  mix_tensor *outputs[MIX_MODEL_MAX];
} step_losses;

/* This rank's of the whole batch. */
static mix_tensor *share_of_rows(int64_t rows) {
  mix_tensor *own = mix_scalar((double)rows, MIX_FLOAT64), *all = mix_all_reduce(own);
  return all ? mix_divide(own, all) : NULL;
}

/* Losses are summed over the ranks. Every rank has the whole penalty of a weight; what a call added is of the
 * rank's rows, and counts as they do. That of no rows may be NaN, but the graph must be that of all ranks. */
static mix_tensor *share_of_penalty(mix_model *model, mix_tensor *penalty, int64_t rows) {
  if (!mix_is_distributed()) return penalty;
  if (!mix_layer_added_loss(model->layer, penalty)) return mix_over(penalty, mix_rank_count());
  mix_tensor *share = share_of_rows(rows);
  if (!rows) penalty = mix_select(mix_scalar(0, MIX_BOOL), penalty, mix_scalar_like(penalty, 0));
  return share ? mix_multiply(penalty, mix_cast(share, mix_tensor_dtype(penalty))) : NULL;
}

/* The losses of the whole batch, of which each rank has its part. */
static void sum_losses(const mix_compiled_state *state, step_losses *losses) {
  mix_tensor *sums[1 + MIX_MODEL_MAX] = {losses->total};
  for (int i = 0; i < state->output_count; i++) sums[1 + i] = losses->outputs[i];
  if (!mix_all_reduce_together(1 + state->output_count, sums) || !mix_share_checks()) return;
  losses->total = sums[0];
  for (int i = 0; i < state->output_count; i++) losses->outputs[i] = sums[1 + i];
}

static bool compute_losses(mix_model *model, mix_list *outputs, mix_list *arguments, int inputs,
                           bool training, step_losses *losses) {
  mix_compiled_state *state = model->state;
  for (int i = 0; i < state->output_count; i++) {
    if (!state->losses[i] || is_missing(state, i)) continue;
    mix_loss_call_options call = {.size = sizeof call,
                                  .y_pred = mix_list_get(outputs, i),
                                  .sample_weight =
                                      mix_model_weights_of_samples(model, arguments, inputs, i, training)};
    mix_tensor *labels = mix_list_get(arguments, inputs + i);
    labels = expand_labels(model, labels, call.y_pred, mix_loss_takes_class_numbers(state->losses[i]));
    mix_tensor *loss = mix_loss_call_with(state->losses[i], labels, &call);
    losses->outputs[i] = loss;
    if (loss && state->loss_weights[i] != 1) loss = mix_times(loss, state->loss_weights[i]);
    losses->total = add_widest(losses->total, loss);
  }
  if (state->given.outputs_loss && !mix_failed())
    losses->total = mix_model_loss_of_outputs(model, outputs, arguments, inputs, training);
  mix_list *penalties = mix_layer_losses(model->layer);
  for (int i = 0; penalties && i < mix_list_count(penalties); i++)
    losses->total =
        add_widest(losses->total, share_of_penalty(model, mix_list_get(penalties, i), row_count(arguments)));
  if (!mix_failed() && !losses->total)
    mix_fail_value("fit: '%s' has no loss; name one in mix_model_compile", mix_model_name(model));
  return !mix_failed();
}

/* A rank without rows in the batch adds nothing: the mean of no values would be none. */
static bool update_from_rows(mix_metric *metric, const mix_metric_update_options *update) {
  const mix_shape shape = mix_tensor_shape(update->y_pred);
  return (mix_is_distributed() && shape.rank && !shape.dims[0]) ||
         mix_metric_update_with(metric, update) == MIX_OK;
}

/* A metric's result for this batch alone, for step logs: reset, updates, result, then the state is restored.
 * The regular update computes the same values, which the pass "cse" merges. Of several ranks the state of the
 * batch is the sum of theirs, which is added to the state before it: there is no other update. */
static mix_tensor *batch_result(mix_metric *metric, int updates, const mix_metric_update_options *update) {
  const int count = metric->state_count, summed = mix_is_distributed() ? count : 0;
  mix_tensor **values = mix_calloc(2 * (size_t)count + 2, sizeof *values), *result = NULL,
             **sums = values ? values + count : NULL;
  for (int i = 0; values && i < count; i++) values[i] = mix_variable_true_value(metric->state[i].variable);
  bool good = values && mix_metric_reset(metric) == MIX_OK;
  for (int i = 0; good && i < updates; i++) good = update_from_rows(metric, &update[i]);
  for (int i = 0; good && i < summed; i++) sums[i] = mix_variable_true_value(metric->state[i].variable);
  good = good && mix_all_reduce_together(summed, sums);
  for (int i = 0; good && i < summed; i++) good = !mix_variable_assign(metric->state[i].variable, sums[i]);
  if (good) result = mix_metric_result_tensor(metric);
  for (int i = 0; result && i < count; i++)
    mix_variable_assign(metric->state[i].variable, summed ? mix_add(values[i], sums[i]) : values[i]);
  mix_free(values);
  return result;
}

/* The arguments of a metric's update. Sample and class weights apply to weighted metrics only. In tf_keras
 * the mask of the predictions is a weight for all metrics. */
static mix_metric_update_options metric_update(mix_model *model, const mix_model_metric *metric,
                                               mix_list *outputs, mix_list *arguments, int inputs,
                                               bool training) {
  int output = metric->output;
  mix_tensor *y_pred = mix_list_get(outputs, output);
  mix_tensor *weight =
      metric->weighted ? mix_model_weights_of_samples(model, arguments, inputs, output, training) : NULL;
  if (y_pred && y_pred->mask && model->semantics->metric_mask_is_weight) {
    mix_tensor *mask = mix_cast(y_pred->mask, mix_tensor_dtype(y_pred));
    weight = weight ? mix_multiply(mix_align_weights(mask, weight), mask) : mask;
  }
  mix_tensor *labels = mix_list_get(arguments, inputs + output);
  const bool numbers =
      labels && y_pred &&
      mix_metric_takes_class_numbers(metric->metric, mix_tensor_shape(labels), mix_tensor_shape(y_pred));
  return (mix_metric_update_options){.size = sizeof(mix_metric_update_options),
                                     .values = expand_labels(model, labels, y_pred, numbers),
                                     .y_pred = y_pred,
                                     .sample_weight = weight};
}

/* A new array with an update for each value of that name in this call. A scalar of one process counts once;
 * of several it counts by the share of the batch's rows that it is of, NULL: there is one process. */
static mix_metric_update_options *added_updates(mix_list *added, const char *name, mix_dtype dtype,
                                                mix_tensor *share, int *count) {
  const int all = mix_list_count(added);
  mix_metric_update_options *updates = mix_calloc((size_t)all + 1, sizeof *updates);
  *count = 0;
  for (int i = 0; updates && i < all; i++) {
    const mix_added_metric *value = mix_list_get(added, i);
    if (strcmp(value->name, name)) continue;
    updates[(*count)++] = (mix_metric_update_options){
        .size = sizeof *updates,
        .values = mix_cast(value->value, dtype),
        .sample_weight = share && !mix_tensor_shape(value->value).rank ? mix_cast(share, dtype) : NULL};
  }
  return updates;
}

/* The means of what the layers added in this call. One that none of them added to keeps its value. A rank
 * without rows has no values: means of no rows would be NaN. */
static bool update_added(mix_model *model, mix_list *arguments, mix_list *results) {
  mix_compiled_state *state = model->state;
  mix_list *added = mix_layer_added_metrics(model->layer);
  const bool ranks = mix_is_distributed(), empty = ranks && !row_count(arguments);
  mix_tensor *share = ranks && mix_list_count(added) ? share_of_rows(row_count(arguments)) : NULL;
  for (int i = 0; i < mix_list_count(added); i++)
    if (!mix_model_added_metric(model, ((const mix_added_metric *)mix_list_get(added, i))->name))
      return false;
  for (int m = 0; m < state->metric_count && !mix_failed(); m++) {
    mix_metric *metric = state->metrics[m].metric;
    mix_tensor *own = NULL;
    if (!state->metrics[m].added) continue;
    int count;
    mix_metric_update_options *updates =
        added_updates(added, state->metrics[m].name, mix_metric_dtype(metric), share, &count);
    if (count && (results || ranks)) own = batch_result(metric, empty ? 0 : count, updates);
    for (int i = 0; !ranks && i < count; i++) mix_metric_update_with(metric, &updates[i]);
    mix_free(updates);
    if (results) mix_list_append(results, own ? own : mix_metric_result_tensor(metric));
  }
  return !mix_failed();
}

/* Updates loss trackers and metrics. Appends each metric's result for this batch to `results` unless NULL. */
static bool update_metrics(mix_model *model, mix_list *outputs, mix_list *arguments, int inputs,
                           const step_losses *losses, bool training, mix_list *results) {
  mix_compiled_state *state = model->state;
  mix_dtype dtype = mix_metric_dtype(state->loss_tracker);
  mix_tensor *rows = mix_model_rows_of_ranks(state, mix_scalar((double)row_count(arguments), dtype));
  mix_metric_update_options update = {
      .size = sizeof update, .values = mix_cast(losses->total, dtype), .sample_weight = rows};
  mix_metric_update_with(state->loss_tracker, &update);
  for (int i = 0; i < state->tracker_count && !mix_failed(); i++) {
    if (!losses->outputs[state->trackers[i].output]) continue;
    update.values = mix_cast(losses->outputs[state->trackers[i].output], dtype);
    mix_metric_update_with(state->trackers[i].metric, &update);
  }
  for (int i = 0; i < state->metric_count && !state->metrics[i].added && !mix_failed(); i++) {
    mix_metric *metric = state->metrics[i].metric;
    if (is_missing(state, state->metrics[i].output)) {
      if (results) mix_list_append(results, mix_metric_result_tensor(metric));
      continue;
    }
    update = metric_update(model, &state->metrics[i], outputs, arguments, inputs, training);
    if (mix_failed() ||
        mix_metric_build(metric, mix_tensor_shape(update.values), mix_tensor_shape(update.y_pred)) != MIX_OK)
      break;
    mix_tensor *result = results || mix_is_distributed() ? batch_result(metric, 1, &update) : NULL;
    if (results) mix_list_append(results, result);
    if (!mix_is_distributed()) mix_metric_update_with(metric, &update);
  }
  return !mix_failed() && update_added(model, arguments, results);
}

/* The trainable variables, then the sources of the observer. */
static mix_list *sources_of(mix_model *model, const mix_step_observer *observer, mix_tape *tape,
                            mix_tensor *loss, mix_tensor *scaled) {
  mix_list *variables = mix_model_trainable_variables(model);
  if (!observer || mix_failed()) return variables;
  mix_list *watched = observer->sources(observer->context, tape, loss, scaled), *all = mix_list_new(0, NULL);
  mix_list *const lists[] = {variables, watched};
  for (int l = 0; l < 2 && watched; l++)
    for (int i = 0; i < mix_list_count(lists[l]); i++) mix_list_append(all, mix_list_get(lists[l], i));
  return watched ? all : NULL;
}

static bool append_watched(const mix_step_observer *observer, mix_list *gradients, int variables,
                           mix_list *results) {
  mix_list *watched =
      observer->results(observer->context, part_of(gradients, variables, mix_list_count(gradients)));
  for (int i = 0; watched && i < mix_list_count(watched); i++)
    mix_list_append(results, mix_list_get(watched, i));
  return watched != NULL;
}

static mix_list *train(mix_model *model, mix_list *arguments, const mix_step_observer *observer) {
  mix_compiled_state *state = model->state;
  int inputs = input_count(model, mix_list_count(arguments));
  step_losses losses = {0};
  mix_tape_options recording = {.size = sizeof recording};
  mix_tape *tape = mix_tape_begin_with(&recording);
  mix_list *given = model_inputs(model, arguments, inputs, state->input_names);
  if (observer && given) observer->begin(observer->context, given, arguments);
  mix_list *outputs = model_outputs(model, given, MIX_TRUE);
  mix_tensor *scaled = NULL;
  if (outputs && compute_losses(model, outputs, arguments, inputs, true, &losses))
    scaled = mix_optimizer_scale_loss(state->optimizer, losses.total);
  mix_tape_end(tape);
  mix_list *sources = scaled ? sources_of(model, observer, tape, losses.total, scaled) : NULL;
  mix_list *gradients = sources ? mix_tape_gradient(tape, scaled, sources) : NULL;
  mix_list *variables = gradients ? mix_model_trainable_variables(model) : NULL;
  int count = mix_list_count(variables);
  mix_list *own = gradients && observer ? part_of(gradients, 0, count) : gradients;
  /* Those of one output's loss are made before. */
  if (own)
    mix_optimizer_note_metrics(state->optimizer, state->loss_tracker,
                               state->metric_count || state->output_count > 1);
  if (!own || mix_optimizer_apply(state->optimizer, own, variables) != MIX_OK) return NULL;
  sum_losses(state, &losses);
  mix_tensor *applied = mix_optimizer_applied(state->optimizer);
  mix_list *results = mix_list_of(losses.total, applied ? applied : mix_scalar(1, MIX_BOOL));
  if (!update_metrics(model, outputs, arguments, inputs, &losses, true, results)) return NULL;
  return !observer || append_watched(observer, gradients, count, results) ? results : NULL;
}

static mix_list *train_body(void *context, mix_list *arguments) { return train(context, arguments, NULL); }

static mix_list *watched_body(void *context, mix_list *arguments) {
  mix_model *model = context;
  return train(model, arguments, model->state->observer);
}

static mix_list *test(mix_model *model, mix_list *arguments) {
  int inputs = input_count(model, mix_list_count(arguments));
  step_losses losses = {0};
  mix_list *given = model_inputs(model, arguments, inputs, model->state->input_names);
  mix_list *outputs = model_outputs(model, given, MIX_FALSE);
  if (!outputs || !compute_losses(model, outputs, arguments, inputs, false, &losses)) return NULL;
  sum_losses(model->state, &losses);
  mix_optimizer_note_metrics(model->state->optimizer, model->state->loss_tracker, false);
  return update_metrics(model, outputs, arguments, inputs, &losses, false, NULL) ? mix_list_of(losses.total)
                                                                                 : NULL;
}

static mix_list *test_body(void *context, mix_list *arguments) {
  mix_model_trace_lock(); /* the losses are those of the call before */
  mix_list *results = test(context, arguments);
  mix_model_trace_unlock();
  return results;
}

static mix_list *predict_body(void *context, mix_list *arguments) {
  const mix_predictor *predictor = context;
  mix_model *model = predictor->model;
  return model_outputs(
      model, model_inputs(model, arguments, mix_list_count(arguments), predictor->input_names), MIX_FALSE);
}

static mix_function *step(mix_model *model, mix_function **kept, mix_function_body body, void *context,
                          const char *name) {
  if (*kept || mix_failed()) return *kept;
  const mix_compile_options *given = model->state ? &model->state->given : NULL;
  mix_function_options options = {.size = sizeof options,
                                  .body = body,
                                  .context = context,
                                  .name = name,
                                  .jit_compile = given && given->jit_compile,
                                  .run_eagerly = given && given->run_eagerly};
  if (options.run_eagerly && mix_is_distributed())
    return mix_fail(MIX_UNSUPPORTED, "%s: run_eagerly of '%s' beside other ranks; run one process", name,
                    mix_model_name(model));
  return *kept = mix_retain(mix_function_with(&options));
}

mix_function *mix_model_train_step(mix_model *model) {
  return step(model, &model->state->train, train_body, model, "train_step");
}
mix_function *mix_model_test_step(mix_model *model) {
  return step(model, &model->state->test, test_body, model, "test_step");
}
mix_function *mix_predictor_step(mix_predictor *predictor, const mix_structure *input_names) {
  mix_model *model = predictor->model;
  if (predictor->input_names != input_names || predictor->epoch != model->predictor_epoch) {
    mix_release(predictor->function);
    predictor->function = NULL;
  }
  predictor->input_names = input_names;
  predictor->epoch = model->predictor_epoch;
  return step(model, &predictor->function, predict_body, predictor, "predict_step");
}
mix_function *mix_model_train_function(mix_model *model) {
  return mix_is(model, &mix_model_object_class) && model->state ? model->state->train : NULL;
}

void mix_model_set_step_arguments(mix_model *model, const mix_step_arguments *arguments) {
  mix_compiled_state *state = model->state;
  state->weight_arguments = arguments->weights;
  if (state->missing_labels == arguments->missing_labels && state->input_names == arguments->input_names)
    return;
  state->missing_labels = arguments->missing_labels;
  state->input_names = arguments->input_names;
  mix_function **const captured[] = {&state->train, &state->watched, &state->test};
  for (size_t i = 0; i < sizeof captured / sizeof *captured; i++) {
    mix_release(*captured[i]);
    *captured[i] = NULL;
  }
}

mix_status mix_model_observe(mix_model *model, const mix_step_observer *observer) {
  mix_compiled_state *state = model->state;
  if (observer && state->observer)
    return mix_fail_status(MIX_RUNTIME_ERROR,
                           "fit: something watches the steps of '%s' already; give one numerics report a fit",
                           mix_model_name(model));
  mix_release(state->watched);
  state->watched = NULL;
  state->observer = observer;
  return mix_error();
}

mix_function *mix_model_fit_step(mix_model *model, bool *watched) {
  const mix_step_observer *observer = model->state->observer;
  *watched = observer && observer->wants(observer->context);
  return *watched ? step(model, &model->state->watched, watched_body, model, "watched_train_step")
                  : mix_model_train_step(model);
}

mix_status mix_model_reset_metrics(mix_model *model) {
  mix_compiled_state *state = model->state;
  mix_model_forget_logs(model);
  mix_metric_reset(state->loss_tracker);
  for (int i = 0; i < state->tracker_count; i++) mix_metric_reset(state->trackers[i].metric);
  for (int i = 0; i < state->metric_count; i++) mix_metric_reset(state->metrics[i].metric);
  return mix_error();
}
