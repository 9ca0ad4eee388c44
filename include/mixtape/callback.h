/* Callbacks: functions that are called while a model trains, is evaluated or predicts. mix_model_fit calls
 * the user's callbacks in their order. Then the progress bar shows the logs of the epoch, the history
 * takes them, and a checkpoint is written if one is due. */
#ifndef MIXTAPE_CALLBACK_H
#define MIXTAPE_CALLBACK_H

#include <mixtape/model.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_callback mix_callback; /* an object: mix_retain, mix_release */

/* A hook. `index`: the epoch or the batch, from 0; 0 at begin and end of training, test and prediction.
 * `logs`: the running loss and metrics at the end of a batch; those of the epoch with validation at the
 * end of an epoch; the results at the end of training and test; NULL at every begin and for predictions.
 * At the end of an epoch a hook may add entries (mix_logs_set), which the history keeps. Return MIX_OK to
 * continue. Another status, or a pending error, ends the run with that error. */
typedef mix_status (*mix_callback_hook)(void *context, mix_model *model, int64_t index, mix_logs *logs);

typedef struct mix_callback_options {
  size_t size;
  const char *name; /* for messages; NULL: "callback" */
  void *context;
  void (*release)(void *context); /* called when the callback is released; NULL: nothing; object.h */
  mix_callback_hook on_train_begin, on_train_end;
  mix_callback_hook on_epoch_begin, on_epoch_end;
  mix_callback_hook on_train_batch_begin, on_train_batch_end;
  mix_callback_hook on_test_begin, on_test_end;
  mix_callback_hook on_test_batch_begin, on_test_batch_end;
  mix_callback_hook on_predict_begin, on_predict_end;
  mix_callback_hook on_predict_batch_begin, on_predict_batch_end;
  bool no_batch_logs; /* batch_end hooks get NULL logs, so no step waits for its numbers */
  /* State for mix_backup_and_restore: a list of tensors; NULL without an error: none. set_state restores
   * it, after on_train_begin of a resumed run. */
  mix_list *(*get_state)(void *context);
  mix_status (*set_state)(void *context, mix_model *model, mix_list *state);
} mix_callback_options;
/* A callback from hooks, any of which may be NULL (Keras's LambdaCallback and custom classes). */
MIX_API mix_callback *mix_callback_with(const mix_callback_options *options);
/* The name as given. The string lives as long as the process. */
MIX_API const char *mix_callback_name(const mix_callback *callback);

/* ---- Keras's callbacks ----
 * `monitor` is a name in the logs of the epoch. If it is missing, a warning is logged and nothing happens
 * (in keras3 ModelCheckpoint saves). `mode` is auto, min or max. auto in tf_keras is max if the name ends
 * in acc, accuracy or auc (EarlyStopping), contains acc (ReduceLROnPlateau), or contains acc or begins
 * with fmeasure (ModelCheckpoint), else min. auto in keras3 is min for losses, else the direction of the
 * metric; ValueError at the start of training if that is unknown. Without a best value, every value is an
 * improvement, except NaN and, in tf_keras, the worst infinity. */

typedef struct mix_early_stopping_options {
  size_t size;
  const char *monitor; /* NULL: val_loss */
  double min_delta;    /* an improvement must exceed the best value by more than this */
  /* Training stops after this number of epochs without improvement. 0 acts as 1. Never stops after the
   * first epoch. */
  int64_t patience;
  const char *mode; /* NULL: auto */
  /* 0: none; MIX_ZERO is accepted. The patience restarts only after an improvement that also beats it. */
  double baseline;
  bool restore_best_weights; /* at the end of training */
  int64_t start_from_epoch;  /* earlier epochs are ignored */
} mix_early_stopping_options;
/* EarlyStopping: ends training when the monitored value has not improved for `patience` epochs. */
MIX_API mix_callback *mix_early_stopping_with(const mix_early_stopping_options *options);

typedef struct mix_reduce_lr_on_plateau_options {
  size_t size;
  const char *monitor; /* NULL: val_loss */
  double factor;       /* 0: 0.1; MIX_ZERO is accepted; 1 or more is a ValueError */
  int64_t patience;    /* 0: 10; MIX_INT_ZERO is accepted */
  const char *mode;    /* NULL: auto */
  double min_delta;    /* 0: 1e-4; MIX_ZERO is accepted */
  int64_t cooldown;    /* epochs after a reduction that are not counted */
  double min_lr;
} mix_reduce_lr_on_plateau_options;
/* ReduceLROnPlateau: multiplies the learning rate by `factor` after `patience` epochs without improvement;
 * logs the rate as "learning_rate" (tf_keras and experimental: "lr"). */
MIX_API mix_callback *mix_reduce_lr_on_plateau_with(const mix_reduce_lr_on_plateau_options *options);

/* Returns the learning rate of an epoch (from 0), given that of the previous one. A result that is not
 * finite is a ValueError. */
typedef double (*mix_learning_rate_function)(void *context, int64_t epoch, double learning_rate);
/* LearningRateScheduler: sets the learning rate at the begin of each epoch; logs it as the one above does. */
MIX_API mix_callback *mix_learning_rate_scheduler(mix_learning_rate_function schedule, void *context);

typedef struct mix_model_checkpoint_options {
  size_t size;
  /* Required: ends in .keras or .h5, or, for weights, in .weights.h5, .npz or .safetensors. {epoch}, {batch}
   * (both from 1) and the names of the logs are replaced, with Python's format:
   * "w.{epoch:02d}-{val_loss:.2f}.npz". Missing folders are created. */
  const char *filepath;
  const char *monitor; /* NULL: val_loss */
  bool save_best_only; /* if the monitor is missing, tf_keras does not save, keras3 does */
  const char *mode;    /* NULL: auto */
  int64_t save_freq;   /* 0: at the end of each epoch; n: after every n batches */
  /* save_best_only: values must be better than this; 0: none, MIX_ZERO is accepted. */
  double initial_value_threshold;
  /* A name that ends in .h5 is one of weights. ValueError for .keras. Always true of .weights.h5 and .npz. */
  bool save_weights_only;
} mix_model_checkpoint_options;
/* ModelCheckpoint: writes the model (mix_model_save), or its weights (mix_model_save_weights). The best value
 * and the count of batches persist over several calls of fit with the same callback. */
MIX_API mix_callback *mix_model_checkpoint_with(const mix_model_checkpoint_options *options);

typedef struct mix_csv_logger_options {
  size_t size;
  const char *filename;  /* required */
  const char *separator; /* NULL: ","; one character */
  bool append;           /* append to the file, without a header; otherwise the file is overwritten */
} mix_csv_logger_options;
/* CSVLogger: a row for each epoch: its number, then the logs, sorted by name. Missing validation values
 * are NA. */
MIX_API mix_callback *mix_csv_logger_with(const mix_csv_logger_options *options);

typedef struct mix_tensorboard_options {
  size_t size;
  /* NULL: "logs". Files are written to its subfolders train and validation, which are created. */
  const char *log_dir;
  int64_t histogram_freq; /* epochs between histograms of all weights; 0: none */
  /* Keras: write_graph=True. The layers and their connections, for the Graphs tab. */
  bool no_write_graph;
  bool write_steps_per_second;
  /* 0: Keras's "epoch"; 1: "batch"; n: loss and metrics also after every n batches. */
  int64_t update_freq;
} mix_tensorboard_options;
/* TensorBoard: writes event files (tensorboard --logdir logs). For each epoch: epoch_loss, epoch_accuracy,
 * ..., epoch_learning_rate, and with loss scaling epoch_loss_scale and epoch_skipped_steps (cumulative).
 * For batches: the same as batch_.... For each evaluation: evaluation_loss_vs_iterations, .... Weights are
 * dense_1/kernel/histogram. Weights that layers read in 16 bits also have
 * dense_1/kernel/float16_exponents/histogram: the exponents of the 16-bit copy, in float16 from -14 to 15,
 * and from -24 to -15 for subnormals. Histograms omit values that are not finite. Files are flushed at the
 * end of each epoch and evaluation. A resumed run continues its files and cuts what was written after the
 * checkpoint. */
MIX_API mix_callback *mix_tensorboard_with(const mix_tensorboard_options *options);

typedef struct mix_backup_and_restore_options {
  size_t size;
  const char *backup_dir; /* required: a folder for this run only; created if missing */
  /* 0: at the end of each epoch; n: after every n batches. The step at which fit's `steps` ends the run is
   * saved too. */
  int64_t save_freq;
  /* Keras: delete_checkpoint=True, which deletes the checkpoints when training is complete. */
  bool keep_checkpoint;
  /* Keras: double_checkpoint=False. By default the previous checkpoint is kept as a fallback. */
  bool only_newest;
  /* Not in Keras: resume the checkpoint of another run too. Weights, optimizer and history are restored where
   * they fit, and the epoch begins anew (checkpoint.h). */
  bool force;
} mix_backup_and_restore_options;
/* BackupAndRestore: saves the whole training in checkpoints (checkpoint.h describes them). A fit that
 * finds one resumes there, also in the middle of an epoch: weights, optimizer, loss scale, random state,
 * metrics, history, numbers of epochs and steps, the order of the data, and the state of callbacks
 * (EarlyStopping, ReduceLROnPlateau, ModelCheckpoint, CSVLogger, TensorBoard).
 * The resumed run has the same bits as an uninterrupted one, if model, data, batch size and the options of
 * fit other than epochs and steps are the same. The model must have its weights. Checkpoints are written
 * after all hooks of a batch or epoch, whatever the position of this callback in the list. A fit may have
 * at most one. An epoch that is resumed in the middle calls on_epoch_begin again. */
MIX_API mix_callback *mix_backup_and_restore_with(const mix_backup_and_restore_options *options);

typedef struct mix_progbar_logger_options {
  size_t size;
  /* tf_keras: "steps", or NULL: "samples", which counts 0 samples and calls the steps of the epoch samples,
   * as tf_keras does. keras3 counts steps, and has neither member: TypeError when a run begins. */
  const char *count_mode;
  /* tf_keras: names in the logs of batches that are shown as they are, as the model's own numbers are.
   * Others are averaged over the steps so far. */
  const char *stateful_metrics[MIX_MODEL_MAX];
} mix_progbar_logger_options;
/* ProgbarLogger: the progress output of fit, evaluate and predict, at this place in the list of callbacks:
 * it shows what the callbacks before it added to the logs. A run to which one is given adds none of its
 * own; `verbose` of the run says what it shows, and of predict too, where 0 is auto. Validation inside a
 * fit is silent, and so is evaluate with a callback that a fit has used, as in Keras. */
MIX_API mix_callback *mix_progbar_logger_with(const mix_progbar_logger_options *options);

/* TerminateOnNaN: stops training at a batch whose loss is NaN or infinite. */
MIX_API mix_callback *mix_terminate_on_nan(void);

/* A callback from text: "early_stopping:monitor=val_loss,patience=3,restore_best_weights=true". Names:
 * early_stopping, reduce_lr_on_plateau, model_checkpoint, csv_logger, tensorboard, backup_and_restore,
 * progbar_logger, terminate_on_nan and numerics_report (numerics.h), or Keras's class names; arguments have
 * Keras's names. ValueError, which lists the known ones, for an unknown name. */
MIX_API mix_callback *mix_callback_from_text(const char *text);

#ifndef __cplusplus
/* mix_callback_new(.on_epoch_end = show, .context = window) */
#define mix_callback_new(...)                                                                                \
  mix_callback_with(MIX_ARGUMENTS("mix_callback_new", "", #__VA_ARGS__, mix_callback_options, __VA_ARGS__))
/* mix_early_stopping(.monitor = "val_accuracy", .patience = 3) */
#define mix_early_stopping(...)                                                                              \
  mix_early_stopping_with(MIX_ARGUMENTS("mix_early_stopping", "!monitor, min_delta, patience", #__VA_ARGS__, \
                                        mix_early_stopping_options, __VA_ARGS__))
#define mix_reduce_lr_on_plateau(...)                                                                        \
  mix_reduce_lr_on_plateau_with(MIX_ARGUMENTS("mix_reduce_lr_on_plateau", "!monitor, !factor, !patience",    \
                                              #__VA_ARGS__, mix_reduce_lr_on_plateau_options, __VA_ARGS__))
/* mix_model_checkpoint("best.npz", .save_best_only = true) */
#define mix_model_checkpoint(...)                                                                            \
  mix_model_checkpoint_with(MIX_ARGUMENTS("mix_model_checkpoint", "filepath, !monitor", #__VA_ARGS__,        \
                                          mix_model_checkpoint_options, .filepath = __VA_ARGS__))
/* mix_tensorboard("logs/run1", .histogram_freq = 1) */
#define mix_tensorboard(...)                                                                                 \
  mix_tensorboard_with(MIX_ARGUMENTS("mix_tensorboard", "log_dir, histogram_freq", #__VA_ARGS__,             \
                                     mix_tensorboard_options, .log_dir = __VA_ARGS__))

#define mix_backup_and_restore(...)                                                                          \
  mix_backup_and_restore_with(MIX_ARGUMENTS("mix_backup_and_restore", "backup_dir", #__VA_ARGS__,            \
                                            mix_backup_and_restore_options, .backup_dir = __VA_ARGS__))
/* mix_progbar_logger(.count_mode = "steps") */
#define mix_progbar_logger(...)                                                                              \
  mix_progbar_logger_with(                                                                                   \
      MIX_ARGUMENTS("mix_progbar_logger", "", #__VA_ARGS__, mix_progbar_logger_options, __VA_ARGS__))
#define mix_csv_logger(...)                                                                                  \
  mix_csv_logger_with(MIX_ARGUMENTS("mix_csv_logger", "filename, separator, append", #__VA_ARGS__,           \
                                    mix_csv_logger_options, .filename = __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
