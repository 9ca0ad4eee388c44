/* TerminateOnNaN. */
#include "base/error.h"
#include "train/callback.h"
#include <math.h>

static mix_status stop_at_nan(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  if (isfinite(mix_logs_get(logs, "loss"))) return MIX_OK;
  mix_log_message(MIX_LOG_WARNING, "terminate_on_nan: the loss at batch %lld is %g; training ends",
                  (long long)batch, mix_logs_get(logs, "loss"));
  return mix_model_set_stop_training(model, true);
}

static mix_callback *make(const void *options) { return mix_terminate_on_nan(); }
const mix_callback_kind mix_terminate_on_nan_kind = {"terminate_on_nan", sizeof(size_t), NULL, make};

mix_callback *mix_terminate_on_nan(void) {
  mix_callback *callback = mix_callback_with(&(mix_callback_options){
      .size = sizeof(mix_callback_options), .name = "TerminateOnNaN", .on_train_batch_end = stop_at_nan});
  return mix_callback_steers(callback, (mix_callback_steering){.kind = &mix_terminate_on_nan_kind});
}
