/* Callbacks: what is called while a model trains, is evaluated or predicts. fit calls the user's in their order, then the history takes the
 * epoch's logs, then the progress bar shows them, and last a checkpoint is taken, where one is due. */
#ifndef MIXTAPE_CALLBACK_H
#define MIXTAPE_CALLBACK_H

#include <mixtape/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mix_callback mix_callback; /* an object: mix_retain, mix_release */

/* One hook. `index`: the epoch or the batch, from 0; 0 for begin and end of training, test and prediction. `logs`: the running loss and
 * metrics at the end of a batch, the epoch's with validation at the end of an epoch, the results at the end of training and test; NULL at
 * every begin and for predictions. They may be added to (mix_logs_set) at the end of an epoch: the history keeps it. MIX_OK to go on; another
 * status, or an error left pending, ends the run with that error. */
typedef mix_status (*mix_callback_hook)(void *context, mix_model *model, int64_t index, mix_logs *logs);

typedef struct mix_callback_options {
  size_t size;
  const char *name;           /* in messages; NULL: "callback" */
  void *context;
  void (*release)(void *context); /* called when the callback goes; NULL: nothing to do */
  mix_callback_hook on_train_begin, on_train_end;
  mix_callback_hook on_epoch_begin, on_epoch_end;
  mix_callback_hook on_train_batch_begin, on_train_batch_end;
  mix_callback_hook on_test_begin, on_test_end;
  mix_callback_hook on_test_batch_begin, on_test_batch_end;
  mix_callback_hook on_predict_begin, on_predict_end;
  mix_callback_hook on_predict_batch_begin, on_predict_batch_end;
  bool no_batch_logs;         /* the batch_end hooks get NULL for logs: nothing waits for a step's numbers */
  /* What the callback carries from one hook to the next, for mix_backup_and_restore: a list of tensors; NULL, without an error: nothing.
   * And back, after on_train_begin of a run that is resumed. */
  mix_list *(*get_state)(void *context);
  mix_status (*set_state)(void *context, mix_model *model, mix_list *state);
} mix_callback_options;
/* Any of the hooks may be NULL (Keras's LambdaCallback and classes of one's own). */
MIX_API mix_callback *mix_callback_with(const mix_callback_options *options);
/* As given. Lives as long as the process. */
MIX_API const char *mix_callback_name(const mix_callback *callback);

/* ---- Keras's own ----
 * `monitor` is a name in the epoch's logs; where it is missing, a warning, and nothing happens (in keras3 ModelCheckpoint saves). `mode`
 * is auto, min or max; auto: in tf_keras max where the name ends in acc, accuracy or auc (EarlyStopping), holds acc (ReduceLROnPlateau),
 * holds acc or begins with fmeasure (ModelCheckpoint), else min; in keras3 min for losses, else as the metric is meant, and a ValueError at
 * the start of training where that is not known. With no best value to compare with, every value is an improvement but NaN, and in tf_keras
 * the infinity that is worst. */

typedef struct mix_early_stopping_options {
  size_t size;
  const char *monitor;        /* NULL: val_loss */
  double min_delta;           /* an improvement is better than the best by more than this */
  int64_t patience;           /* epochs without one after which training stops; 0 as 1, never after the first epoch */
  const char *mode;           /* NULL: auto */
  double baseline;            /* 0: none; MIX_ZERO. The wait begins anew only with an improvement that also beats it */
  bool restore_best_weights;  /* at the end of training */
  int64_t start_from_epoch;   /* epochs before it are not looked at */
} mix_early_stopping_options;
/* Ends training when what is monitored has not improved for `patience` epochs. */
MIX_API mix_callback *mix_early_stopping_with(const mix_early_stopping_options *options);

typedef struct mix_reduce_lr_on_plateau_options {
  size_t size;
  const char *monitor;        /* NULL: val_loss */
  double factor;              /* 0: 0.1, MIX_ZERO; 1 or more is a ValueError */
  int64_t patience;           /* 0: 10; MIX_INT_ZERO */
  const char *mode;           /* NULL: auto */
  double min_delta;           /* 0: 1e-4; MIX_ZERO */
  int64_t cooldown;           /* epochs after a reduction in which nothing is counted */
  double min_lr;
} mix_reduce_lr_on_plateau_options;
/* Multiplies the learning rate by factor where there was no improvement for `patience` epochs; logs learning_rate. */
MIX_API mix_callback *mix_reduce_lr_on_plateau_with(const mix_reduce_lr_on_plateau_options *options);

/* The learning rate of an epoch (from 0), from the one before it. One that is not finite is a ValueError. */
typedef double (*mix_learning_rate_function)(void *context, int64_t epoch, double learning_rate);
/* Sets the learning rate at the begin of each epoch; logs learning_rate. */
MIX_API mix_callback *mix_learning_rate_scheduler(mix_learning_rate_function schedule, void *context);

typedef struct mix_model_checkpoint_options {
  size_t size;
  const char *filepath;       /* required: ends in .npz. {epoch} (from 1), {batch} (from 1) and the names of the logs are filled in, with
                               * Python's format: "w.{epoch:02d}-{val_loss:.2f}.npz". Folders that are not there are made */
  const char *monitor;        /* NULL: val_loss */
  bool save_best_only;        /* where the monitor is missing: tf_keras does not save, keras3 does */
  const char *mode;           /* NULL: auto */
  int64_t save_freq;          /* 0: at the end of each epoch; n: after every n batches */
  double initial_value_threshold; /* save_best_only: only what is better; 0: none, MIX_ZERO */
} mix_model_checkpoint_options;
/* Writes the weights, as mix_model_save_weights does (Keras: save_weights_only=True). The best value and the count of batches go on from one
 * fit to the next with the same callback. */
MIX_API mix_callback *mix_model_checkpoint_with(const mix_model_checkpoint_options *options);

typedef struct mix_csv_logger_options {
  size_t size;
  const char *filename;       /* required */
  const char *separator;      /* NULL: ","; one character */
  bool append;                /* to what is there, without a header of its own; else the file is begun anew */
} mix_csv_logger_options;
/* A row for each epoch: its number, then the logs, sorted by name. Validation that an epoch lacks is NA. */
MIX_API mix_callback *mix_csv_logger_with(const mix_csv_logger_options *options);

typedef struct mix_tensorboard_options {
  size_t size;
  const char *log_dir;         /* NULL: "logs". Files are written in its folders train and validation, which are made */
  int64_t histogram_freq;      /* epochs from one histogram of every weight to the next; 0: none */
  bool no_write_graph;         /* Keras: write_graph=True. The layers and their connections, for the tab Graphs */
  bool write_steps_per_second;
  int64_t update_freq;         /* 0: Keras's "epoch"; 1: "batch"; n: loss and metrics after every n batches too */
} mix_tensorboard_options;
/* Event files that TensorBoard shows (tensorboard --logdir logs). Of each epoch: epoch_loss, epoch_accuracy, ..., epoch_learning_rate, and
 * where the loss is scaled epoch_loss_scale and epoch_skipped_steps (in all); of batches the same as batch_...; of each evaluation
 * evaluation_loss_vs_iterations, .... Weights are dense_1/kernel/histogram; those that layers read as 16 bits have dense_1/kernel/
 * float16_exponents/histogram too: the exponents of that copy, whose range is -14 to 15 in float16, and -24 to -15 with fewer digits.
 * Values that are not finite are left out of histograms. The files are flushed at the end of each epoch and evaluation. */
MIX_API mix_callback *mix_tensorboard_with(const mix_tensorboard_options *options);

typedef struct mix_backup_and_restore_options {
  size_t size;
  const char *backup_dir;     /* required: a folder for this run alone; made where it is not there */
  int64_t save_freq;          /* 0: at the end of each epoch; n: after every n batches. The step at which fit's `steps` ends it is saved too */
  bool keep_checkpoint;       /* Keras: delete_checkpoint=True, the checkpoints go when training has come to its end */
  bool only_newest;           /* Keras: double_checkpoint=False; here the one before stays unless this is set, to fall back on */
} mix_backup_and_restore_options;
/* Saves the whole training in checkpoints (checkpoint.h says what is in them and how they are kept), and lets a fit that finds one go on
 * where it was, in the middle of an epoch too: weights, optimizer, loss scale, random state, metrics, history, numbers of epochs and steps,
 * the order of the data, and what callbacks with a state carry (EarlyStopping, ReduceLROnPlateau, ModelCheckpoint, CSVLogger,
 * TensorBoard). The run
 * then has the bits of one that was never stopped, if it is the same run: the same model, data, batch size, and options of fit but for
 * epochs and steps. The model must have its weights. Saving comes after all hooks of a batch or an epoch, wherever in the list this
 * callback stands. At most one of it in a fit. An epoch that is resumed in its middle calls on_epoch_begin again. */
MIX_API mix_callback *mix_backup_and_restore_with(const mix_backup_and_restore_options *options);

/* Stops training at a batch whose loss is NaN or infinite. */
MIX_API mix_callback *mix_terminate_on_nan(void);

/* "early_stopping:monitor=val_loss,patience=3,restore_best_weights=true": early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger,
 * tensorboard, backup_and_restore, terminate_on_nan and numerics_report (numerics.h), or Keras's class names, with Keras's argument names. An unknown one is
 * a ValueError that lists those there are. */
MIX_API mix_callback *mix_callback_from_text(const char *text);

#ifndef __cplusplus
/* mix_callback_new(.on_epoch_end = show, .context = window) */
#define mix_callback_new(...) mix_callback_with(&(const mix_callback_options){.size = sizeof(mix_callback_options), __VA_ARGS__})
/* mix_early_stopping(.monitor = "val_accuracy", .patience = 3) */
#define mix_early_stopping(...)                                                                                                \
  mix_early_stopping_with(&(const mix_early_stopping_options){.size = sizeof(mix_early_stopping_options), __VA_ARGS__})
#define mix_reduce_lr_on_plateau(...)                                                                                          \
  mix_reduce_lr_on_plateau_with(                                                                                               \
      &(const mix_reduce_lr_on_plateau_options){.size = sizeof(mix_reduce_lr_on_plateau_options), __VA_ARGS__})
/* mix_model_checkpoint("best.npz", .save_best_only = true) */
#define mix_model_checkpoint(...)                                                                                              \
  mix_model_checkpoint_with(                                                                                                   \
      &(const mix_model_checkpoint_options){.size = sizeof(mix_model_checkpoint_options), .filepath = __VA_ARGS__})
/* mix_tensorboard("logs/run1", .histogram_freq = 1) */
#define mix_tensorboard(...)                                                                                                   \
  mix_tensorboard_with(&(const mix_tensorboard_options){.size = sizeof(mix_tensorboard_options), .log_dir = __VA_ARGS__})

#define mix_backup_and_restore(...)                                                                                            \
  mix_backup_and_restore_with(                                                                                                 \
      &(const mix_backup_and_restore_options){.size = sizeof(mix_backup_and_restore_options), .backup_dir = __VA_ARGS__})
#define mix_csv_logger(...)                                                                                                    \
  mix_csv_logger_with(&(const mix_csv_logger_options){.size = sizeof(mix_csv_logger_options), .filename = __VA_ARGS__})
#endif

#ifdef __cplusplus
}
#endif
#endif
