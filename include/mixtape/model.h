/* Models: functional (from symbolic tensors) and sequential; training, evaluation, prediction. */
#ifndef MIXTAPE_MODEL_H
#define MIXTAPE_MODEL_H

#include <mixtape/layers.h>
#include <mixtape/loss.h>
#include <mixtape/metric.h>
#include <mixtape/optimizer.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MIX_MODEL_MAX 16 /* outputs, losses, metrics of one model */
#define MIX_CLASS_MAX 64 /* class weights of one fit */

typedef struct mix_model_options {
  size_t size;
  void *inputs;                   /* required: what mix_input returned, or a list of such tensors */
  void *outputs;                  /* required: a symbolic tensor computed from them by layers, or a list */
  const char *name;               /* NULL: "model", "model_1", ... (keras3: "functional", ...) */
  const mix_semantics *semantics; /* NULL: the process's */
} mix_model_options;
/* A functional model: calling it calls its layers again, in their order, on other tensors. Layers may be shared. An output that does
 * not descend from the inputs is a ValueError. The model's own policy is the global one at construction. */
MIX_API mix_model *mix_model_with(const mix_model_options *options);

typedef struct mix_sequential_options {
  size_t size;
  mix_list *layers;               /* layers in order; more by mix_sequential_add */
  const char *name;
  const mix_semantics *semantics;
} mix_sequential_options;
/* A chain of layers, built by the first data it sees (or by mix_model_build). */
MIX_API mix_model *mix_sequential_with(const mix_sequential_options *options);
/* Appends a layer; a functional model takes none (TypeError). */
MIX_API mix_status mix_sequential_add(mix_model *model, mix_layer *layer);
/* Makes the weights for inputs of this shape, the batch dimension included (it may be MIX_UNKNOWN). */
MIX_API mix_status mix_model_build(mix_model *model, mix_shape input_shape);

#ifndef __cplusplus
/* mix_model_new(inputs, outputs, .name = "digits") */
#define mix_model_new(model_inputs, ...)                                                                                       \
  mix_model_with(&(const mix_model_options){.size = sizeof(mix_model_options), .inputs = model_inputs, .outputs = __VA_ARGS__})
/* mix_sequential(mix_list_of(mix_dense(.units = 64), mix_dense(.units = 10))) */
#define mix_sequential(...) mix_sequential_with(&(const mix_sequential_options){.size = sizeof(mix_sequential_options), .layers = __VA_ARGS__})
#endif

/* Lives as long as the process. */
MIX_API const char *mix_model_name(const mix_model *model);
/* The model as a layer: to be called inside other models. Borrowed. */
MIX_API mix_layer *mix_model_layer(mix_model *model);
/* Its policy as a layer: what compile looks at for loss scaling. Borrowed. */
MIX_API mix_policy *mix_model_policy(const mix_model *model);
/* New lists: the layers (input layers included), in the order of the calls. */
MIX_API mix_list *mix_model_layers(mix_model *model);
/* ValueError where no layer has that name. Borrowed. */
MIX_API mix_layer *mix_model_get_layer(mix_model *model, const char *name);
/* New lists of borrowed variables, in the order of mix_layer_weights; empty while the model has none yet. */
MIX_API mix_list *mix_model_weights(mix_model *model);
MIX_API mix_list *mix_model_trainable_variables(mix_model *model);
MIX_API mix_list *mix_model_non_trainable_variables(mix_model *model);
/* Copies of the weights, in the order of mix_model_weights; and back (count and shapes must agree: ValueError). */
MIX_API mix_list *mix_model_get_weights(mix_model *model);
MIX_API mix_status mix_model_set_weights(mix_model *model, mix_list *values);
/* An .npz of the weights under their names ("dense_1/kernel"), in order. */
MIX_API mix_status mix_model_save_weights(mix_model *model, const char *path);
/* From an .npz with those names, or arr_0, arr_1, ... in order. What does not fit is a ValueError that names the variable. */
MIX_API mix_status mix_model_load_weights(mix_model *model, const char *path);

typedef struct mix_model_call_options {
  size_t size;
  void *inputs;         /* required: a tensor or a list */
  mix_training training;
} mix_model_call_options;
/* The (first) output. */
MIX_API mix_tensor *mix_model_call_with(mix_model *model, const mix_model_call_options *options);
MIX_API mix_list *mix_model_call_outputs_with(mix_model *model, const mix_model_call_options *options);
#ifndef __cplusplus
#define mix_model_call(model, ...)                                                                                             \
  mix_model_call_with(model, &(const mix_model_call_options){.size = sizeof(mix_model_call_options), .inputs = __VA_ARGS__})
#define mix_model_call_outputs(model, ...)                                                                                     \
  mix_model_call_outputs_with(model, &(const mix_model_call_options){.size = sizeof(mix_model_call_options), .inputs = __VA_ARGS__})
#endif

/* ---- compile ---- */
typedef struct mix_compile_options {
  size_t size;
  const char *loss;                         /* by name; one loss for every output */
  mix_loss *loss_object;
  const char *losses[MIX_MODEL_MAX];       /* by name, one for each output */
  mix_list *loss_objects;                   /* one for each output; NULL items: none */
  double loss_weights[MIX_MODEL_MAX];      /* one for each output; 0: 1, MIX_ZERO */
  mix_optimizer *optimizer;
  const char *optimizer_name;               /* instead of an object; neither: "rmsprop" */
  const char *metrics[MIX_MODEL_MAX];      /* by name, or as mix_metric_from_text takes them; for every output */
  mix_list *metric_objects;                 /* for the only output; of several outputs an item for each: a metric, a list of metrics, or
                                             * NULL */
  bool no_auto_scale_loss;                  /* keras3: auto_scale_loss=True */
  bool image_bytes;                         /* uint8 inputs are images: divided by 255 in float32, and flattened where the model takes
                                             * vectors, as the first thing of each step */
  const char *weighted_metrics[MIX_MODEL_MAX]; /* as metrics, which sample and class weights do not touch; these they weigh. In logs
                                             * "weighted_NAME" where the name is taken */
  mix_list *weighted_metric_objects;        /* as metric_objects */
  bool jit_compile;                         /* the steps of fit, evaluate and predict may keep excess precision (mix_function_new) */
} mix_compile_options;
/* Under a policy named mixed_float16 (experimental: one with a loss scale) the optimizer is wrapped in loss scaling unless it is already. */
MIX_API mix_status mix_model_compile_with(mix_model *model, const mix_compile_options *options);
#ifndef __cplusplus
#define mix_model_compile(model, ...)                                                                                          \
  mix_model_compile_with(model, &(const mix_compile_options){.size = sizeof(mix_compile_options), __VA_ARGS__})
#endif
/* The optimizer in use, the wrapper where compile wrapped it. Borrowed; NULL before compile. */
MIX_API mix_optimizer *mix_model_optimizer(const mix_model *model);

/* Keras's model.metrics: the mean of the loss, of several outputs the mean of each one's loss, then the metrics. A new list of borrowed
 * metrics. */
MIX_API mix_list *mix_model_metrics(mix_model *model);
/* Their state, in that order; what waits for the shapes of the data is made where the outputs' tell enough. A new list of borrowed
 * variables. */
MIX_API mix_list *mix_model_metrics_variables(mix_model *model);

/* ---- logs: named numbers in a fixed order; a metric with several numbers is "name[0]", "name[1]", ... ---- */
typedef struct mix_logs mix_logs;
/* Numbers; the name of one (NULL outside; lives as long as the logs); its value (NaN outside). */
MIX_API int mix_logs_count(const mix_logs *logs);
MIX_API const char *mix_logs_name(const mix_logs *logs, int index);
MIX_API double mix_logs_value(const mix_logs *logs, int index);
/* Logs of one's own making. */
MIX_API mix_logs *mix_logs_of(int count, const char *const *names, const double *values);
/* NaN where there is no such name; has tells that from a value of NaN. */
MIX_API double mix_logs_get(const mix_logs *logs, const char *name);
MIX_API bool mix_logs_has(const mix_logs *logs, const char *name);
/* Gives a name a new value, or appends it: callbacks add to what the history keeps. */
MIX_API mix_status mix_logs_set(mix_logs *logs, const char *name, double value);

/* ---- fit ---- */
/* What a finished training step left: for logs of every step. */
typedef struct mix_step_record {
  size_t size;
  int64_t step;         /* from 1, over all epochs */
  int64_t epoch;        /* from 0 */
  double loss;          /* mean of the batch, unscaled, before the update */
  const mix_logs *metrics; /* of this batch alone */
  bool applied;         /* the loss scale's verdict; true without dynamic scaling */
  int64_t iterations;   /* after the step, like the rest */
  bool has_loss_scale, has_good_steps;
  double loss_scale;
  int64_t good_steps;
} mix_step_record;

typedef struct mix_fit_options {
  size_t size;
  void *x;                      /* required: a tensor or a list of tensors (rows, ...), or a data set of batches (x, y) or (x, y,
                                 * sample_weight), whose elements are taken as they are */
  void *y;                      /* labels: a tensor or a list, one for each output; with a data set NULL */
  int64_t batch_size;           /* 0: 32, or what steps_per_epoch asks for; with a data set refused (ValueError) */
  int64_t epochs;               /* 0: 1 */
  int64_t initial_epoch;
  double validation_split;      /* the last part of the rows, taken before shuffling; in [0, 1) */
  void *validation_x, *validation_y; /* instead of a split; validation_x may be a data set */
  bool no_shuffle;              /* Keras: shuffle=True */
  uint64_t seed;                /* of the shuffling; 0: from the process's */
  int verbose;                  /* 0: auto (a bar on a terminal, else a line an epoch), MIX_SILENT, 1: bar, 2: a line an epoch */
  int class_weight_count;       /* weights of the classes of integer labels (rows) in the loss, for a model of one output; classes */
  int64_t class_labels[MIX_CLASS_MAX]; /* that are not named weigh 1 in keras3; tf_keras wants 0 to n - 1 named (ValueError) */
  double class_weights[MIX_CLASS_MAX];
  int64_t steps;                /* end training after that many steps, whatever the epochs; 0: no limit */
  void (*on_step)(void *context, const mix_step_record *record); /* after each step; reading it back costs time */
  void *context;
  void *sample_weight;          /* (rows): a weight for each sample in the loss; a list: one tensor for each output. keras3 refuses it
                                 * together with class weights (ValueError), tf_keras multiplies the two */
  void *validation_sample_weight;
  mix_list *callbacks;          /* of mix_callback (callback.h): called in this order, then the history, then the progress bar */
  int64_t steps_per_epoch;      /* 0: to the end of the data. A data set of another cardinality goes on where the last epoch ended. Where
                                 * the data run out, a warning, and training stops (tf_keras) or the epoch ends (keras3) */
  int64_t validation_steps;     /* 0: to the end of the data */
  int64_t validation_batch_size; /* 0: batch_size */
  int64_t validation_freq;      /* 0: 1, validation after each epoch; n: after every nth */
} mix_fit_options;
#define MIX_SILENT (-1)
/* Trains; the history of the epochs. NULL with the error recorded, a callback's among them: what was reached until then is in
 * mix_model_history. An array of a floating dtype that is not floatx is cast to it. */
MIX_API mix_history *mix_model_fit_with(mix_model *model, const mix_fit_options *options);
/* Epochs whose numbers it holds. */
MIX_API int64_t mix_history_epochs(const mix_history *history);
/* Keras's history.params. */
typedef struct mix_history_params {
  int verbose;
  int64_t epochs;
  int64_t steps;                /* of an epoch; 0: not known */
} mix_history_params;
MIX_API mix_history_params mix_history_get_params(const mix_history *history);
/* The number, from 0, of an epoch of the history: initial_epoch for the first. -1 where there is none. */
MIX_API int64_t mix_history_epoch_number(const mix_history *history, int64_t epoch);
/* The history of the latest fit, one that an error ended included; NULL before. Borrowed until the next fit. */
MIX_API mix_history *mix_model_history(const mix_model *model);
/* Keras's model.stop_training: true ends fit after the step at hand, with its epoch's validation. fit begins with false. */
MIX_API mix_status mix_model_set_stop_training(mix_model *model, bool stop);
MIX_API bool mix_model_stop_training(const mix_model *model);
/* The numbers of one epoch, counted from 0 in this history: loss, metrics, val_loss, ... (keras3: names sorted). NULL where there is none.
 * Borrowed. */
MIX_API const mix_logs *mix_history_epoch(const mix_history *history, int64_t epoch);
/* Training steps made. */
MIX_API int64_t mix_history_steps(const mix_history *history);

typedef struct mix_evaluate_options {
  size_t size;
  void *x, *y;                  /* required; x may be a data set, as in fit, and y is NULL then */
  int64_t batch_size;           /* 0: 32 */
  int verbose;                  /* as in fit */
  void *sample_weight;          /* as in fit */
  int64_t steps;                /* 0: to the end of the data */
  mix_list *callbacks;          /* of mix_callback: their on_test hooks */
} mix_evaluate_options;
/* Loss and metrics over the data, without training. NULL with the error recorded. */
MIX_API mix_logs *mix_model_evaluate_with(mix_model *model, const mix_evaluate_options *options);

typedef struct mix_predict_options {
  size_t size;
  void *x;                      /* required; a data set's labels and weights are passed over */
  int64_t batch_size;           /* 0: 32 */
  int64_t steps;                /* 0: to the end of the data */
  mix_list *callbacks;          /* of mix_callback: their on_predict hooks */
} mix_predict_options;
/* The outputs for all rows: a list of tensors, one for each output. */
MIX_API mix_list *mix_model_predict_with(mix_model *model, const mix_predict_options *options);

#ifndef __cplusplus
/* mix_model_fit(model, x, y, .batch_size = 128, .epochs = 5) */
#define mix_model_fit(model, fit_x, ...)                                                                                       \
  mix_model_fit_with(model, &(const mix_fit_options){.size = sizeof(mix_fit_options), .x = fit_x, .y = __VA_ARGS__})
#define mix_model_evaluate(model, evaluate_x, ...)                                                                             \
  mix_model_evaluate_with(model, &(const mix_evaluate_options){.size = sizeof(mix_evaluate_options), .x = evaluate_x, .y = __VA_ARGS__})
#define mix_model_predict(model, ...)                                                                                          \
  mix_model_predict_with(model, &(const mix_predict_options){.size = sizeof(mix_predict_options), .x = __VA_ARGS__})
#endif

/* One batch, given as to fit, trained on or only tested; metrics are reset first, so that the numbers describe it alone. */
MIX_API mix_logs *mix_model_train_on_batch(mix_model *model, void *x, void *y);
MIX_API mix_logs *mix_model_test_on_batch(mix_model *model, void *x, void *y);

/* Keras's table of layers, output shapes and parameters, and below it policy, accumulation and device. The text lives until the next
 * call of this on that model. */
MIX_API const char *mix_model_summary(mix_model *model);
/* The captured training step, for mix_function_report and mix_function_dump; NULL before training. Borrowed. */
MIX_API mix_function *mix_model_train_function(mix_model *model);

#ifdef __cplusplus
}
#endif
#endif
