/* ModelCheckpoint. */
#include "base/alloc.h"
#include "base/error.h"
#include "saving/write_weights.h"
#include "train/callback.h"
#include <mixtape/saving.h>
#include <math.h>

enum { PATH_MAX = 4096 };

typedef struct checkpoint {
  mix_model_checkpoint_options options;
  mix_monitor monitor;
  double best; /* NaN: none yet */
  int64_t epoch, batches_since;
  bool whole; /* saves models, not weights */
  bool begun; /* direction and best value are set; later fits continue from them */
  mix_status (*saved)(void *context, const char *path); /* called with each file; NULL: nothing */
  void *context;
} checkpoint;

static mix_status checkpoint_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  checkpoint *c = context;
  if (c->begun || !c->options.save_best_only) return MIX_OK;
  if (!mix_monitor_begin(&c->monitor, model)) return mix_error();
  c->best = isnan(c->options.initial_value_threshold) ? mix_monitor_first_best(&c->monitor)
                                                      : c->options.initial_value_threshold;
  c->begun = true;
  return MIX_OK;
}

static mix_status save(checkpoint *c, mix_model *model, int64_t batch, const mix_logs *logs) {
  if (c->options.save_best_only) {
    double value;
    bool found = mix_monitor_read(&c->monitor, logs, &value);
    if (found ? !mix_monitor_better(&c->monitor, value, c->best, 0)
              : !c->monitor.rules->checkpoint_saves_unmonitored)
      return MIX_OK;
    if (found) c->best = value;
  }
  char path[PATH_MAX];
  if (!mix_format_path(c->options.filepath, c->epoch, batch, logs, path, sizeof path) ||
      !mix_make_folders(path))
    return mix_error();
  if ((c->whole ? mix_model_save(model, path) : mix_model_save_weights(model, path)) != MIX_OK)
    return mix_error();
  return c->saved ? c->saved(c->context, path) : MIX_OK;
}

static mix_status checkpoint_epoch_begin(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  ((checkpoint *)context)->epoch = epoch;
  return MIX_OK;
}
static mix_status checkpoint_epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  return save(context, model, -1, logs);
}
static mix_status checkpoint_batch_end(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  checkpoint *c = context;
  if (++c->batches_since < c->options.save_freq) return MIX_OK;
  c->batches_since = 0;
  return save(c, model, batch, logs);
}

static mix_list *checkpoint_get_state(void *context) {
  const checkpoint *c = context;
  return mix_numbers_state(3, (const double[]){c->best, (double)c->epoch, (double)c->batches_since});
}
static mix_status checkpoint_set_state(void *context, mix_model *model, mix_list *state) {
  checkpoint *c = context;
  double numbers[3];
  if (!mix_numbers_of_state(state, 3, numbers, "model_checkpoint")) return mix_error();
  c->best = numbers[0];
  c->epoch = (int64_t)numbers[1];
  c->batches_since = (int64_t)numbers[2];
  return MIX_OK;
}

#define FIELD(member) MIX_FIELD(mix_model_checkpoint_options, member)
static const mix_field_row fields[] = {{FIELD(filepath), &mix_field_text, .required = true},
                                       MIX_MONITOR_FIELD(mix_model_checkpoint_options),
                                       {FIELD(save_best_only), &mix_field_boolean},
                                       MIX_MODE_FIELD(mix_model_checkpoint_options),
                                       {FIELD(save_freq), &mix_field_frequency, .range = MIX_NOT_NEGATIVE},
                                       {FIELD(initial_value_threshold), &mix_field_number, .number = NAN},
                                       {FIELD(save_weights_only), &mix_field_boolean},
                                       {0}};
MIX_CALLBACK_KIND(model_checkpoint, fields)

mix_callback *mix_model_checkpoint_with(const mix_model_checkpoint_options *given) {
  mix_model_checkpoint_options options;
  if (!mix_callback_resolve(&mix_model_checkpoint_kind, given, &options)) return NULL;
  const mix_file_kind kind = mix_file_kind_of(options.filepath);
  if (kind == MIX_FILE_UNKNOWN || (kind == MIX_FILE_ARCHIVE && options.save_weights_only))
    return mix_fail_value(
        "model_checkpoint: filepath is '%s'; expected a name that ends in %s.weights.h5, .h5, .npz or "
        ".safetensors",
        options.filepath, options.save_weights_only ? "" : ".keras, ");
  checkpoint *c = mix_calloc(1, sizeof *c);
  if (!c) return NULL;
  *c = (checkpoint){.options = options,
                    .whole =
                        !options.save_weights_only && (kind == MIX_FILE_ARCHIVE || kind == MIX_FILE_LEGACY),
                    .monitor = mix_monitor_of(MIX_BY_CHECKPOINT, options.monitor, options.mode)};
  bool batches = options.save_freq > 0;
  return MIX_CALLBACK_OWN(.name = "ModelCheckpoint", .context = c, .release = mix_free,
                          .on_train_begin = checkpoint_begin, .on_epoch_begin = checkpoint_epoch_begin,
                          .on_epoch_end = batches ? NULL : checkpoint_epoch_end,
                          .on_train_batch_end = batches ? checkpoint_batch_end : NULL,
                          .get_state = checkpoint_get_state, .set_state = checkpoint_set_state);
}

void mix_model_checkpoint_notify(mix_callback *callback, mix_status (*saved)(void *context, const char *path),
                                 void *context) {
  if (!callback || callback->options.on_train_begin != checkpoint_begin) return;
  ((checkpoint *)callback->options.context)->saved = saved;
  ((checkpoint *)callback->options.context)->context = context;
}
