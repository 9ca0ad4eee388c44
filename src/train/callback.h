/* Callbacks as objects, and the list of callbacks of a run. */
#pragma once

#include "train/progress.h"
#include <mixtape/callback.h>

/* The settings of BackupAndRestore, which fit executes (backup.c). */
typedef struct mix_backup {
  mix_backup_and_restore_options options; /* resolved */
  const char *folder;                     /* interned */
  int64_t save_freq;
  bool keep, only_newest, force;
} mix_backup;

/* A callback that text can make: "early_stopping:patience=3". */
typedef struct mix_callback_kind {
  const char *name;
  size_t options_size;
  const mix_field_row *fields;
  mix_callback *(*make)(const void *options);
} mix_callback_kind;

/* How a callback steers training: all ranks must have it, with these options. A callback without a kind may
 * be on one rank alone, as those are that write files. */
typedef struct mix_callback_steering {
  const mix_callback_kind *kind;
  const void *options;  /* resolved, in the context */
  const size_t *in_use; /* of fields.h */
} mix_callback_steering;

struct mix_callback {
  mix_object object;
  mix_callback_options options;
  mix_callback_steering steering;
  const mix_backup *backup; /* the context of BackupAndRestore; NULL: another callback */
  mix_progress *progress;   /* the context of ProgbarLogger; NULL: another callback */
};

#define MIX_CALLBACK_KIND(callback, rows)                                                                    \
  static mix_callback *make_##callback(const void *options) { return mix_##callback##_with(options); }       \
  const mix_callback_kind mix_##callback##_kind = {#callback, sizeof(mix_##callback##_options), rows,        \
                                                   make_##callback};
/* Copies a caller's options and fills in their defaults. False with the error recorded. */
bool mix_callback_resolve(const mix_callback_kind *kind, const void *given, void *options);
/* callbacks/from_text.c: does the text for mix_callback_from_text ask for the callback of that name? */
bool mix_callback_text_names(const char *text, const char *name);

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
  mix_list *items;    /* borrowed from the run's options; NULL: none */
  mix_callback *last; /* borrowed: the run's own ProgbarLogger, called after them; NULL: none */
  const char *call;
  unsigned present, logs; /* bit masks: hooks that some callback has; hooks that read batch logs */
  bool tests;             /* the run is an evaluation */
  bool shows;             /* some callback is a ProgbarLogger */
} mix_callbacks;

/* False with a TypeError if an item is no callback. */
bool mix_callbacks_open(mix_callbacks *callbacks, mix_model *model, mix_list *items, const char *call);
void mix_callbacks_add_last(mix_callbacks *callbacks, mix_callback *callback);
int mix_callbacks_count(const mix_callbacks *callbacks);
mix_callback *mix_callbacks_get(const mix_callbacks *callbacks, int index);
/* Calls the hook of each callback; stops at the first failure, which is recorded. */
bool mix_callbacks_run(const mix_callbacks *callbacks, mix_hook hook, int64_t index, mix_logs *logs);

/* callbacks/progbar_logger.c: sets up the caller's ProgbarLoggers, or adds one unless `verbose` is silent. */
bool mix_callbacks_show(mix_callbacks *callbacks, bool tests, int verbose, int64_t target, int64_t epochs);
/* Before the end of an epoch: the share of it for which its steps waited for input; 0 is not shown. */
void mix_callbacks_set_input_share(const mix_callbacks *callbacks, double share);
/* The steps of the pass; -1: unknown. */
void mix_callbacks_set_target(const mix_callbacks *callbacks, int64_t target);
/* Calls the hook of a batch's end, with the model's logs if a callback reads them, which waits for the step;
 * if only a redraw is due, with those of a step that is over. */
bool mix_callbacks_end_batch(const mix_callbacks *callbacks, mix_hook hook, int64_t index);

/* callbacks/model_checkpoint.c: has a ModelCheckpoint call `saved` with the path of each file that it has
 * written; other callbacks are left alone. */
void mix_model_checkpoint_notify(mix_callback *callback, mix_status (*saved)(void *context, const char *path),
                                 void *context);

/* Makes a callback that owns its context. On failure the context is released at once. */
mix_callback *mix_callback_own(const mix_callback_options *options);
#define MIX_CALLBACK_OWN(...)                                                                                \
  mix_callback_own(&(mix_callback_options){.size = sizeof(mix_callback_options), __VA_ARGS__})
/* Returns the callback, which may be NULL. */
mix_callback *mix_callback_steers(mix_callback *callback, mix_callback_steering steering);
/* Adds the callbacks that steer training to a run's identity. */
bool mix_callbacks_identify(const mix_callbacks *callbacks, json_t *identity);

/* callbacks/monitor.c: a callback's state as a list of one tensor of numbers, and back. ValueError if the
 * list is not such a state; more tensors may follow. */
mix_list *mix_numbers_state(int count, const double *numbers);
bool mix_numbers_of_state(mix_list *state, int count, double *numbers, const char *call);

/* callbacks/monitor.c: the logged value that a callback monitors. In tf_keras each of the three callbacks has
 * its own rules. */
typedef enum mix_monitor_owner { MIX_BY_EARLY_STOPPING, MIX_BY_PLATEAU, MIX_BY_CHECKPOINT } mix_monitor_owner;
typedef struct mix_monitor {
  mix_monitor_owner by;
  const char *name; /* interned */
  enum { MIX_MODE_AUTO, MIX_MODE_MIN, MIX_MODE_MAX } mode;
  /* Set when training begins. */
  const mix_semantics *rules;
  bool up; /* larger is better */
} mix_monitor;
/* The rows of monitor and mode, and the monitor of resolved options. */
#define MIX_MONITOR_FIELD(type)                                                                              \
  { MIX_FIELD(type, monitor), &mix_field_text, .text = "val_loss" }
#define MIX_MODE_FIELD(type)                                                                                 \
  { MIX_FIELD(type, mode), &mix_field_text, .text = "auto", .choices = "auto|min|max" }
mix_monitor mix_monitor_of(mix_monitor_owner by, const char *name, const char *mode);
/* Determines the direction of mode auto. */
bool mix_monitor_begin(mix_monitor *monitor, mix_model *model);
/* False with a warning if the logs lack the value. */
bool mix_monitor_read(const mix_monitor *monitor, const mix_logs *logs, double *value);
/* True if `value` is better than `best` by more than `delta`. A best of NaN means none yet: every number is
 * then better, and NaN never is. Keras 3 keeps a first value of NaN, after which nothing improves. */
bool mix_monitor_better(const mix_monitor *monitor, double value, double best, double delta);
/* The initial best: none in Keras 3, so that infinity is an improvement too; the worst number in tf_keras. */
double mix_monitor_first_best(const mix_monitor *monitor);

/* callbacks/path.c: expands a Python format string over epoch, batch (negative: none) and logs. False with
 * the error recorded. */
bool mix_format_path(const char *pattern, int64_t epoch, int64_t batch, const mix_logs *logs, char *path,
                     size_t size);
/* Creates the parent folders of `path`. */
bool mix_make_folders(const char *path);

/* callbacks/graph_json.c: the model's layers and connections as Keras's JSON; mix_free it. NULL with the
 * error recorded. */
char *mix_graph_text(const mix_model *model);
