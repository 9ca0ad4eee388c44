/* Callbacks as objects, and the list of them that a run calls. */
#ifndef MIX_TRAIN_CALLBACK_H
#define MIX_TRAIN_CALLBACK_H

#include "model/model.h"
#include <mixtape/callback.h>

/* What BackupAndRestore asks of fit, which does the work (backup.c). */
typedef struct mix_backup {
  const char *folder; /* interned */
  int64_t save_freq;
  bool keep, only_newest;
} mix_backup;

struct mix_callback {
  mix_object object;
  mix_callback_options options;
  const mix_backup *backup; /* its context; NULL: another callback */
};

typedef enum mix_hook {
  MIX_ON_TRAIN_BEGIN,
  MIX_ON_TRAIN_END,
  MIX_ON_EPOCH_BEGIN,
  MIX_ON_EPOCH_END,
  MIX_ON_TRAIN_BATCH_BEGIN,
  MIX_ON_TRAIN_BATCH_END,
  MIX_ON_TEST_BEGIN,
  MIX_ON_TEST_END,
  MIX_ON_TEST_BATCH_BEGIN,
  MIX_ON_TEST_BATCH_END,
  MIX_ON_PREDICT_BEGIN,
  MIX_ON_PREDICT_END,
  MIX_ON_PREDICT_BATCH_BEGIN,
  MIX_ON_PREDICT_BATCH_END,
  MIX_HOOKS
} mix_hook;

typedef struct mix_callbacks {
  mix_model *model;
  mix_list *items; /* borrowed from the run's options; NULL: none */
  const char *call;
  unsigned present, logs; /* bits of hooks that anyone has, and that want the numbers of a batch */
} mix_callbacks;

/* False with a TypeError where an item is no callback. */
bool mix_callbacks_open(mix_callbacks *callbacks, mix_model *model, mix_list *items, const char *call);
/* Does anyone want the logs of a batch's end? Reading them waits for the step. */
bool mix_callbacks_want_logs(const mix_callbacks *callbacks, mix_hook hook);
/* Calls the hook of each; the first failure ends it, recorded. */
bool mix_callbacks_run(const mix_callbacks *callbacks, mix_hook hook, int64_t index, mix_logs *logs);

/* Makes a callback that owns its context, which goes at once where there is none to be made. */
mix_callback *mix_callback_own(const mix_callback_options *options);

/* callbacks/monitor.c: the numbers of a callback's state as a list of one tensor, and back from such a list (ValueError where it is
 * another; more tensors may follow). */
mix_list *mix_numbers_state(int count, const double *numbers);
bool mix_numbers_of_state(mix_list *state, int count, double *numbers, const char *call);

/* callbacks/monitor.c: the number in the logs that a callback watches. In tf_keras each of the three has rules of its own. */
typedef enum mix_monitor_owner { MIX_BY_EARLY_STOPPING, MIX_BY_PLATEAU, MIX_BY_CHECKPOINT } mix_monitor_owner;
typedef struct mix_monitor {
  mix_monitor_owner by;
  const char *name; /* interned */
  enum { MIX_MODE_AUTO, MIX_MODE_MIN, MIX_MODE_MAX } mode;
  bool keras3, up; /* larger is better; both are known once training begins */
} mix_monitor;
/* NULL: val_loss and auto. */
bool mix_monitor_init(mix_monitor *monitor, mix_monitor_owner by, const char *name, const char *mode);
/* Finds the direction of mode auto. */
bool mix_monitor_begin(mix_monitor *monitor, mix_model *model);
/* False with a warning where the logs lack it. */
bool mix_monitor_read(const mix_monitor *monitor, const mix_logs *logs, double *value);
/* Is `value` better than `best` by more than `delta`? Where there is no best yet, which is NaN, every number is, and NaN never: Keras 3
 * takes a NaN that comes first, after which nothing improves. */
bool mix_monitor_better(const mix_monitor *monitor, double value, double best, double delta);
/* What to begin with: Keras 3 has no best yet, so that infinity is an improvement too; tf_keras begins with the worst number. */
double mix_monitor_first_best(const mix_monitor *monitor);

/* callbacks/path.c: a Python format string over epoch, batch (negative: none) and logs. False with the error recorded. */
bool mix_format_path(const char *pattern, int64_t epoch, int64_t batch, const mix_logs *logs, char *path, size_t size);
/* Makes the folders that `path` lies in. */
bool mix_make_folders(const char *path);

/* callbacks/graph_json.c: the model's layers and connections as Keras's JSON; mix_free it. NULL with the error recorded. */
char *mix_graph_text(const mix_model *model);

#endif
