/* Inside a model: a layer that replays calls, and what compile made. */
#ifndef MIX_MODEL_MODEL_H
#define MIX_MODEL_MODEL_H

#include "backend/backend.h"
#include "nn/layer/layer.h"
#include "nn/metrics/metric.h"
#include "nn/policy/semantics.h"
#include <mixtape/function.h>
#include <mixtape/model.h>

enum { MIX_DEFAULT_BATCH = 32 }; /* Keras's examples in a batch, where nothing chooses them */

/* One output's losses and metrics as compile resolved them. */
typedef struct mix_model_metric {
  mix_metric *metric; /* retained */
  const char *name;   /* interned: in logs */
  int output;
  bool weighted;      /* sample and class weights count */
} mix_model_metric;

/* What watches the training steps of a fit. A watched step is a capture of its own: the same step, with more results. */
typedef struct mix_step_observer {
  void *context;
  bool (*wants)(void *context); /* is the next step to be watched? */
  /* While it is captured: before the model is called on `inputs` (the arguments behind them are labels and weights); after the forward
   * pass, with the nodes that the tape recorded, the loss and the scaled loss; the list of the tensors whose gradients it wants, then
   * with those what the step shall return besides its own results. NULL: failed. */
  void (*begin)(void *context, mix_list *inputs, mix_list *arguments);
  mix_list *(*sources)(void *context, mix_tape *tape, mix_tensor *loss, mix_tensor *scaled);
  mix_list *(*results)(void *context, mix_list *gradients);
  /* After each step, watched or not; `own` is the number of results before those that it asked for. */
  mix_status (*after)(void *context, mix_list *results, bool watched, int own);
} mix_step_observer;

typedef struct mix_compiled_state {
  mix_optimizer *optimizer;         /* retained */
  mix_loss *losses[MIX_MODEL_MAX]; /* retained; NULL: the output has none */
  double loss_weights[MIX_MODEL_MAX];
  int output_count;
  mix_metric *loss_tracker;                  /* retained */
  mix_model_metric trackers[MIX_MODEL_MAX]; /* of each output's loss, where there are several */
  int tracker_count;
  mix_model_metric *metrics;
  int metric_count, metric_capacity;
  bool image_bytes, jit_compile;
  mix_tensor *class_weights;            /* of this fit: retained (classes) float32; NULL: none */
  bool class_weights_all;               /* every label must be one of them */
  int weight_arguments;                 /* sample weights behind the labels in the arguments of the step at hand: none, one, or one an output */
  mix_function *train, *test, *predict; /* retained, made on first use */
  const mix_step_observer *observer;    /* of the fit that runs; NULL: none */
  mix_function *watched;                /* the step that it watches: retained */
} mix_compiled_state;

struct mix_model {
  mix_object object;
  mix_layer *layer; /* retained: calls its layers */
  const mix_semantics *semantics;
  bool sequential;
  mix_shape input_shape;     /* sequential: what mix_model_build was given; rank 0: nothing */
  mix_compiled_state *state; /* NULL before compile */
  mix_compiled_state *compiling; /* what compile makes at the moment; else NULL */
  char *summary;
  mix_history *history; /* retained: of the latest fit */
  bool stop_training;
  bool validates; /* the fit that runs has validation data */
  bool resumes;   /* the fit that runs goes on from a checkpoint */
};
extern const mix_class mix_model_object_class;

/* How the largest product of the model's layers is computed from so many examples in a dtype, and how it sums (summary.c). */
mix_kernel_info mix_model_kernel_info(mix_model *model, mix_dtype dtype, int64_t examples);

/* functional.c: the recorded calls between inputs and outputs. */
typedef struct mix_functional {
  mix_tensor **inputs, **outputs; /* retained */
  int input_count, output_count;
  mix_layer_call **calls; /* retained, in the order they were made */
  int call_count;
} mix_functional;
extern const mix_layer_class mix_class_functional, mix_class_sequential;
/* Number of outputs, and the name of each (of the layer that makes it). */
int mix_model_output_count(const mix_model *model);
int mix_model_input_count(const mix_model *model);
const char *mix_model_output_name(const mix_model *model, int output);
/* Shape of input 0 as declared; rank -1 where unknown. */
mix_shape mix_model_input_shape(const mix_model *model);
/* Shape of an output, the batch unknown; rank -1 where unknown. */
mix_shape mix_model_output_shape(const mix_model *model, int output);

/* model.c: a model object around a layer (takes a reference of its own); scoped. */
mix_model *mix_model_wrap(mix_layer *layer, bool sequential);
/* Fails unless the object is a model. */
bool mix_model_given(const mix_model *model, const char *call);
/* Fails unless there are weights: a sequential model has none before it is built. */
bool mix_model_weights_ready(const mix_model *model, const char *call);
/* A list of tensors from a tensor or a list of them; scoped. NULL with the error recorded: "fit: x is neither ...". */
mix_list *mix_tensors_given(void *given, const char *call, const char *what);

/* compile.c */
void mix_compiled_state_free(mix_compiled_state *state);
/* Fails unless compiled. */
mix_compiled_state *mix_model_compiled(mix_model *model, const char *call);

/* compile_metrics.c */
bool mix_model_compile_metrics(mix_model *model, mix_compiled_state *state, const mix_compile_options *options);

/* step.c: the captured steps; arguments are the inputs, then the labels, then sample weights. Results of train: loss, applied, then each metric's
 * result of that batch alone; of test: loss; of predict: the outputs. */
mix_function *mix_model_train_step(mix_model *model);
mix_function *mix_model_test_step(mix_model *model);
mix_function *mix_model_predict_step(mix_model *model);
mix_status mix_model_reset_metrics(mix_model *model);
/* Watches the steps of the fit that runs until it ends (or observer is NULL); a RuntimeError where something does already. */
mix_status mix_model_observe(mix_model *model, const mix_step_observer *observer);
/* The next step of a fit; *watched: the observer's capture of it. */
mix_function *mix_model_fit_step(mix_model *model, bool *watched);

/* logs.c */
struct mix_logs {
  mix_object object;
  int count, capacity;
  struct mix_log_entry {
    const char *name;
    double value;
  } * entries;
};
mix_logs *mix_logs_new(void);                                      /* scoped */
bool mix_logs_add(mix_logs *logs, const char *name, double value); /* name: interned by it */
/* loss, outputs' losses, metrics as they stand. */
mix_logs *mix_model_current_logs(mix_model *model);
/* Adds all of `from` with names prefixed. */
bool mix_logs_merge(mix_logs *logs, const mix_logs *from, const char *prefix);
/* Adds a metric's result: several numbers as "name[0]", "name[1]", ... */
bool mix_logs_add_result(mix_logs *logs, const char *name, mix_tensor *result);
void mix_logs_sort(mix_logs *logs);

struct mix_history {
  mix_object object;
  mix_list *epochs; /* of mix_logs */
  int64_t steps, first_epoch;
  mix_history_params params;
};
mix_history *mix_history_new(void);

/* class_weight.c: takes the weights of a fit (count 0: none); the training step is captured anew where they change. */
mix_status mix_model_set_class_weights(mix_model *model, int count, const int64_t *labels, const double *weights);
/* Weights of a batch for one output: the sample weights among the step's arguments, in training times the class weights in force; NULL:
 * none. Graph. */
mix_tensor *mix_model_weights_of_samples(mix_model *model, mix_list *arguments, int inputs, int output, bool training);

/* data.c: arrays made ready: a floating dtype that is not floatx is cast to it; lists of (rows, ...) tensors of one length. */
mix_list *mix_model_arrays(mix_list *given, const char *call);

/* progress.c: the bar of tf_keras and its line for each epoch, through the log callback. */
typedef struct mix_progress {
  int verbose; /* 0 nothing, 1 bar, 2 a line an epoch */
  bool keras3;
  int64_t target, current, epoch, epochs; /* target -1: not known */
  double started, last_drawn, first_step_done;
  int width; /* of the line on the screen */
} mix_progress;
/* `verbose` as given by the user: 0 is auto, MIX_SILENT nothing. */
void mix_progress_begin(mix_progress *progress, int verbose, const mix_semantics *semantics, int64_t target, int64_t epoch,
                        int64_t epochs);
/* After each step: is it time to draw? Asked before the numbers are fetched. */
bool mix_progress_due(mix_progress *progress, int64_t current);
void mix_progress_update(mix_progress *progress, int64_t current, const mix_logs *logs);
void mix_progress_end(mix_progress *progress, const mix_logs *logs);

#endif
