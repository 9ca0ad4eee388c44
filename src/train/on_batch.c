/* train_on_batch, test_on_batch and predict_on_batch. */
#include "base/error.h"
#include "base/float_modes.h"
#include "compile/function.h"
#include "distribute/distribute.h"
#include "train/data_adapter.h"
#include "train/logs.h"
#include "train/plan_step.h"

/* Which step a call runs. */
typedef struct batch_call {
  const char *name;
  bool trains;
} batch_call;
static const batch_call training = {"train_on_batch", true}, testing = {"test_on_batch", false};

static bool check_weights(const mix_model *model, const mix_on_batch_options *o, const batch_call *call) {
  if (!mix_class_weights_check(o->class_weight_count, o->class_weights, call->name)) return false;
  if (o->class_weight_count && !call->trains)
    return mix_fail_type("%s: class weights are of training alone; give sample_weight", call->name);
  if (o->class_weight_count && o->sample_weight && model->semantics->class_weights_alone)
    return mix_fail_value("%s: class weights and sample weights together; keras3 takes one of them",
                          call->name);
  return true;
}

static mix_function *step_of(mix_model *model, const mix_on_batch_options *o, const batch_call *call) {
  if (!call->trains) return mix_model_test_step(model);
  return mix_model_set_class_weights(model, o->class_weight_count, o->class_labels, o->class_weights,
                                     call->name) == MIX_OK
             ? mix_model_train_step(model)
             : NULL;
}

/* Sets what the steps must know of their arguments. */
static mix_list *arrays_of(mix_model *model, const mix_on_batch_options *o, const batch_call *call) {
  mix_data_adapter_data data = {.x = o->x,
                                .y = o->y,
                                .sample_weight = o->sample_weight,
                                .may_be_empty = o->rows == MIX_LOCAL && mix_is_distributed()};
  mix_step_arguments arguments;
  mix_list *arrays = mix_data_adapter_arrays(model, &data, MIX_ADAPTER_TEST, call->name, &arguments);
  if (arrays) mix_model_set_step_arguments(model, &arguments);
  return arrays;
}

/* What all ranks must give alike. */
static uint32_t digest_of(const mix_model *model, mix_list *arrays, const mix_on_batch_options *o,
                          const batch_call *call) {
  mix_tensor *weights = call->trains ? model->state->class_weights : NULL;
  const uint32_t others = weights ? mix_rank_data_digest(mix_list_of(weights), MIX_SHARED, true) : 0;
  return mix_rank_data_digest(arrays, o->rows, true) ^ others * 16777619u ^ (uint32_t)o->keep_metrics;
}

static mix_logs *on_batch(mix_model *model, const mix_on_batch_options *given, const batch_call *call) {
  if (!mix_model_compiled(model, call->name)) return NULL;
  MIX_OPTIONS(mix_on_batch_options, o, given, call->name);
  if (!mix_rank_rows_check(o.rows, call->name) || !check_weights(model, &o, call)) return NULL;
  mix_logs *logs = NULL;
  MIX_SCOPE {
    mix_list *arrays = arrays_of(model, &o, call);
    mix_function *step = arrays ? step_of(model, &o, call) : NULL;
    mix_list *own = step ? mix_rank_data_share(arrays, o.rows) : NULL;
    if (own && (o.keep_metrics || mix_model_reset_metrics(model) == MIX_OK) &&
        mix_model_tell_ranks(model, digest_of(model, arrays, &o, call), own) &&
        mix_function_call(step, own) && mix_model_ranks_agree(model, call->name))
      logs = mix_retain(mix_model_current_logs(model));
  }
  return mix_scoped(logs);
}

mix_logs *mix_model_train_on_batch_with(mix_model *model, const mix_on_batch_options *options) {
  MIX_OWN_FLOAT_MODES;
  mix_logs *logs = NULL;
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, training.name) { logs = on_batch(model, options, &training); }
  return logs;
}
mix_logs *mix_model_test_on_batch_with(mix_model *model, const mix_on_batch_options *options) {
  MIX_OWN_FLOAT_MODES;
  mix_logs *logs = NULL;
  MIX_MODEL_USE(model, MIX_CHANGES_METRICS, testing.name) { logs = on_batch(model, options, &testing); }
  return logs;
}

mix_logs *mix_model_train_on_batch(mix_model *model, void *x, void *y) {
  return mix_model_train_on_batch_with(
      model, &(mix_on_batch_options){.size = sizeof(mix_on_batch_options), .x = x, .y = y});
}
mix_logs *mix_model_test_on_batch(mix_model *model, void *x, void *y) {
  return mix_model_test_on_batch_with(
      model, &(mix_on_batch_options){.size = sizeof(mix_on_batch_options), .x = x, .y = y});
}

static mix_list *predict_batch(mix_model *model, void *x, const char *call) {
  mix_list *outputs = NULL;
  MIX_SCOPE {
    const mix_data_adapter_data data = {.x = x};
    mix_step_arguments arguments;
    mix_list *arrays = mix_data_adapter_may_read(call)
                           ? mix_data_adapter_arrays(model, &data, MIX_ADAPTER_PREDICT, call, &arguments)
                           : NULL;
    mix_predictor *predictor = arrays ? mix_predictor_take(model) : NULL;
    mix_function *step = predictor ? mix_predictor_step(predictor, arguments.input_names) : NULL;
    if (step) outputs = mix_retain(mix_function_call(step, arrays));
    mix_predictor_give_back(predictor);
  }
  return mix_scoped(outputs);
}

mix_list *mix_model_predict_on_batch(mix_model *model, void *x) {
  static const char call[] = "predict_on_batch";
  MIX_OWN_FLOAT_MODES;
  mix_list *outputs = NULL;
  MIX_MODEL_USE(model, MIX_READS_MODEL, call) { outputs = predict_batch(model, x, call); }
  return mix_failed() ? NULL : outputs;
}

bool mix_model_plan_training(mix_model *model, const mix_on_batch_options *batch, mix_plan_report *report) {
  static const char call[] = "plan_training";
  if (!mix_model_compiled(model, call)) return false;
  MIX_MODEL_USE(model, MIX_CHANGES_MODEL, call)
  MIX_SCOPE {
    mix_data_adapter_data data = {.x = batch->x, .y = batch->y, .sample_weight = batch->sample_weight};
    mix_step_arguments arguments;
    mix_list *arrays = mix_data_adapter_arrays(model, &data, MIX_ADAPTER_TEST, call, &arguments);
    if (arrays) mix_model_set_step_arguments(model, &arguments);
    mix_function *step = arrays ? mix_model_train_step(model) : NULL;
    if (step && mix_function_prepare(step, arrays)) mix_function_report(step, report, sizeof *report);
  }
  return !mix_failed();
}
