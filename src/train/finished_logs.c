/* What a progress bar shows while a device works: the metrics after a step that is over. A small function
 * that is run behind a step takes them; its results are read when they are there. */
#include "train/logs.h"

#include "base/error.h"
#include "graph/node.h"
#include "tensor/memory.h"

static mix_list *results(void *model, mix_list *arguments) { return mix_model_results(model); }

static bool is_ready(mix_list *record) {
  for (int i = 0; i < mix_list_count(record); i++)
    if (!mix_memory_is_ready(mix_tensor_value(mix_list_get(record, i))->memory)) return false;
  return true;
}

static void take_record(mix_model *model) {
  mix_compiled_state *state = model->state;
  mix_logs *logs = mix_model_logs_of(model, state->record);
  mix_release(state->record);
  state->record = NULL;
  if (!logs) return;
  mix_release(state->finished);
  state->finished = mix_retain(logs);
}

static void begin_record(mix_model *model) {
  mix_compiled_state *state = model->state;
  mix_function_options options = {
      .size = sizeof options, .body = results, .context = model, .name = "progress"};
  if (!state->recorder) state->recorder = mix_retain(mix_function_with(&options));
  if (state->recorder) state->record = mix_retain(mix_function_call(state->recorder, NULL));
}

mix_logs *mix_model_finished_logs(mix_model *model) {
  mix_compiled_state *state = model->state;
  if (!mix_memory_device_can_tell(mix_backend_current()->memory)) return mix_model_current_logs(model);
  MIX_SCOPE {
    if (state->record && is_ready(state->record)) take_record(model);
    if (!state->record && !mix_failed()) begin_record(model);
  }
  return mix_failed() ? NULL : mix_scoped(mix_retain(state->finished));
}

void mix_model_forget_logs(mix_model *model) {
  mix_compiled_state *state = model->state;
  mix_release(state->record);
  mix_release(state->finished);
  state->record = NULL;
  state->finished = NULL;
}
