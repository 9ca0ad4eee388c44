/* Input in 16 bits: what a step only rounds is rounded where batches are gathered, beside the step where a
 * thread does it, and in any case while a row is read anyway. Same bits. */
#include "train/data_adapter.h"

#include "base/error.h"
#include "compile/function.h"
#include "data/pipeline/device_copy.h"
#include "distribute/distribute.h"
#include "tensor/shape.h"

/* The step is planned once more for it, which pays if the argument is this part of what the step moves. */
enum { PART = 16, MIN_BYTES = 1 << 16 };

static bool is_large(mix_tensor *argument, const mix_plan_report *report) {
  const size_t bytes = mix_value_bytes(mix_tensor_dtype(argument), mix_tensor_shape(argument));
  return bytes >= MIN_BYTES && bytes >= report->moved_bytes / PART;
}

/* Devices with memory of their own round what they copy by themselves. */
static void ask(mix_data_adapter *adapter, mix_function *step, mix_list *batch) {
  mix_plan_report report;
  adapter->asked = true;
  if (!adapter->batches || adapter->resident || adapter->model->state->observer || mix_device_copies() ||
      mix_is_distributed() || !mix_function_has_plans(step) ||
      mix_function_report(step, &report, sizeof report) != MIX_OK)
    return;
  for (int i = 0; i < mix_list_count(batch); i++) {
    const mix_dtype dtype = mix_function_rounds(step, i);
    if (dtype == MIX_DTYPE_NONE || !is_large(mix_list_get(batch, i), &report)) continue;
    mix_batches_round(adapter->batches, i, dtype);
    adapter->rounds = true;
  }
}

static bool is_rounded(const mix_data_adapter *adapter, mix_list *batch) {
  const mix_list *arrays = mix_batches_arrays(adapter->batches);
  for (int i = 0; i < mix_list_count(batch); i++)
    if (mix_tensor_dtype(mix_list_get(batch, i)) != mix_tensor_dtype(mix_list_get(arrays, i))) return true;
  return false;
}

/* The step has to be captured anew, with what it has now. */
static mix_list *as_it_was(mix_data_adapter *adapter) {
  const mix_list *arrays = mix_batches_arrays(adapter->batches);
  for (int i = 0; i < mix_list_count(arrays); i++) mix_batches_round(adapter->batches, i, MIX_DTYPE_NONE);
  adapter->rounds = false;
  return mix_batches_get(adapter->batches, adapter->next - 1);
}

mix_list *mix_data_adapter_run(mix_data_adapter *adapter, mix_function *step, mix_list **batch) {
  if (adapter->rounds && is_rounded(adapter, *batch)) {
    mix_list *results = mix_function_call_rounded(step, *batch);
    if (results || mix_failed()) return results;
    if (!(*batch = as_it_was(adapter))) return NULL;
  }
  mix_list *results = mix_function_call(step, *batch);
  if (results && !adapter->asked) ask(adapter, step, *batch);
  return results;
}
