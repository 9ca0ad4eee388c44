/* TerminateOnNaN. */
#include "base/error.h"
#include "train/callback.h"
#include <math.h>

static mix_status stop_at_nan(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  (void)context;
  if (isfinite(mix_logs_get(logs, "loss"))) return MIX_OK;
  mix_log_message(MIX_LOG_WARNING, "terminate_on_nan: the loss at batch %lld is %g; training ends",
                  (long long)batch, mix_logs_get(logs, "loss"));
  return mix_model_set_stop_training(model, true);
}

mix_callback *mix_terminate_on_nan(void) {
  return mix_callback_with(&(mix_callback_options){
      .size = sizeof(mix_callback_options), .name = "TerminateOnNaN", .on_train_batch_end = stop_at_nan});
}
