/* Models: functional (from symbolic tensors), sequential and subclassed; training, evaluation, prediction. */
#ifndef MIXTAPE_MODEL_H
#define MIXTAPE_MODEL_H

#include <mixtape/function.h>
#include <mixtape/layers.h>
#include <mixtape/metric.h>
#include <mixtape/optimizer.h>

MIX_BEGIN_DECLARATIONS

/* Threads. A call on a model reads it, tests it (it updates the metrics) or changes it. Calls that read run
 * side by side, and beside one that tests; a second one that tests waits for the first. A call that changes
 * the model runs alone: beside a call of another thread, it or the later one returns at once with MIX_BUSY,
 * which names both. The first call of a model without weights builds them and counts as one that changes it.
 * Calls may nest on one thread, as in callbacks; a callback of a call that tests must not wait for another
 * thread's.
 *   read:    predict, predict_on_batch, model_call, get_weights, save_weights, summary, model_to_json
 *   test:    evaluate, test_on_batch, metrics_variables
 *   change:  fit, train_on_batch, set_weights, load_weights, compile, build, sequential_add
 * Functions that only return what the model holds (name, layer, policy, layers, get_layer, weights,
 * optimizer, metrics, train_function, history) take no part in this: call them where nothing changes the
 * model; stop_training may be read and set at any time. The results of model_call are computed when they
 * are read, which must be before the model changes. Models that share layers, layers called without their
 * model, and layers of your own that assign variables in inference are for one thread at a time. */

#define MIX_MODEL_MAX 16 /* maximum number of outputs, losses or metrics of a model */
#define MIX_CLASS_MAX 64 /* maximum number of class weights of a fit */

typedef struct mix_model_options {
  size_t size;
  void *inputs;                   /* required: the result of mix_input, or a list of such tensors */
  void *outputs;                  /* required: a symbolic tensor computed from them by layers, or a list */
  const char *name;               /* NULL: "model", "model_1", ... (keras3: "functional", ...) */
  const mix_semantics *semantics; /* NULL: the default of the process */
} mix_model_options;
/* A functional model. Calling it calls its layers again, in their order, on other tensors. Layers may be
 * shared. ValueError if an output does not descend from the inputs. The model's own policy is the global
 * one at construction. */
MIX_API mix_model *mix_model_with(const mix_model_options *options);

typedef struct mix_sequential_options {
  size_t size;
  mix_list *layers; /* layers in order; mix_sequential_add appends more */
  const char *name;
  const mix_semantics *semantics;
} mix_sequential_options;
/* A chain of layers. The first data, or mix_model_build, builds it. */
MIX_API mix_model *mix_sequential_with(const mix_sequential_options *options);
/* Appends a layer. TypeError for a functional model. Changes the model. */
MIX_API mix_status mix_sequential_add(mix_model *model, mix_layer *layer);

typedef struct mix_subclassed_options {
  size_t size;
  mix_layer *layer;    /* required: its call function is the forward pass, its inner layers the model's */
  int inputs, outputs; /* how many tensors, those of a list or a dict together; 0: one */
} mix_subclassed_options;
/* A model out of a layer, usually of a class of your own (mix_layer_new, mix_layer_add_layer): what a
 * subclass of Model is in Keras. Its policy and its cast of the inputs are the layer's. The first data, or
 * mix_model_build, builds it. Several outputs are named output_1, output_2, ... in logs. ValueError if the
 * layer is a model already. */
MIX_API mix_model *mix_subclassed_with(const mix_subclassed_options *options);

/* Creates the weights for inputs of this shape, including the batch dimension (which may be MIX_UNKNOWN). A
 * functional model has them already; ValueError for a subclassed model of several inputs. Changes the
 * model. */
MIX_API mix_status mix_model_build(mix_model *model, mix_shape input_shape);

#ifndef __cplusplus
/* mix_model_new(inputs, outputs, .name = "digits") */
#define mix_model_new(model_inputs, ...)                                                                     \
  mix_model_with(MIX_ARGUMENTS("mix_model_new", "outputs", #__VA_ARGS__, mix_model_options,                  \
                               .inputs = model_inputs, .outputs = __VA_ARGS__))
/* mix_sequential(mix_list_of(mix_dense(.units = 64), mix_dense(.units = 10))) */
#define mix_sequential(...)                                                                                  \
  mix_sequential_with(MIX_ARGUMENTS("mix_sequential", "layers", #__VA_ARGS__, mix_sequential_options,        \
                                    .layers = __VA_ARGS__))
/* mix_subclassed(mix_layer_new(.layer_class = &my_model)) */
#define mix_subclassed(...)                                                                                  \
  mix_subclassed_with(                                                                                       \
      MIX_ARGUMENTS("mix_subclassed", "layer", #__VA_ARGS__, mix_subclassed_options, .layer = __VA_ARGS__))
#endif

/* The name. The string lives as long as the process. */
MIX_API const char *mix_model_name(const mix_model *model);
/* The model as a layer, to be called inside other models. Borrowed. */
MIX_API mix_layer *mix_model_layer(mix_model *model);
/* The model's policy as a layer, which compile uses for loss scaling. Borrowed. */
MIX_API mix_policy *mix_model_policy(const mix_model *model);
/* A new list of borrowed layers, including input layers. Those of a functional model are in Keras's order:
 * by depth, farthest from the outputs first. */
MIX_API mix_list *mix_model_layers(mix_model *model);
/* The layer of that name, borrowed. ValueError if there is none. */
MIX_API mix_layer *mix_model_get_layer(mix_model *model, const char *name);
/* The symbolic tensors of a functional model, from which another can be made of a part of it, with the same
 * layers: Keras's model.inputs, model.outputs and layer.output. New lists; mix_model_layer_outputs: the
 * results of the layer's first call in the model, NULL for one that nothing in the model reads. ValueError
 * for models of another kind, whose layers mix_model_layers gives, and if there is no such layer. */
MIX_API mix_list *mix_model_inputs(mix_model *model);
MIX_API mix_list *mix_model_outputs(mix_model *model);
MIX_API mix_list *mix_model_layer_outputs(mix_model *model, const char *name);
/* New lists of borrowed variables, in the order of mix_layer_weights; empty if the model has none yet. */
MIX_API mix_list *mix_model_weights(mix_model *model);
MIX_API mix_list *mix_model_trainable_variables(mix_model *model);
MIX_API mix_list *mix_model_non_trainable_variables(mix_model *model);
/* Copies of the weights, in the order of mix_model_weights, and back. When setting, count and shapes must
 * match (ValueError). Getting reads the model, setting changes it. */
MIX_API mix_list *mix_model_get_weights(mix_model *model);
MIX_API mix_status mix_model_set_weights(mix_model *model, mix_list *values);
/* Writes the weights, in the form that the end of the name says: .weights.h5, the tree of Keras's archives,
 * with the optimizer's state if the model is compiled; .h5 or .hdf5, the legacy form, layer by layer; .npz,
 * with the weights under their names ("dense_1/kernel"), in order; a name that was there before gets a
 * number ("dense_1/kernel_1"); .safetensors, with the same names, in their own dtypes. The file is replaced
 * whole or not at all. ValueError for another name, and for .keras, which is a whole model's
 * (mix_model_save), and for .weights.json without a size of shards. Reads the model. */
MIX_API mix_status mix_model_save_weights(mix_model *model, const char *path);
typedef struct mix_save_weights_options {
  size_t size;
  const char *path; /* required */
  /* In units of 2^30 bytes; 0: one file. Keras's sharded weights, of a model in the semantics of Keras 3:
   * NAME.weights.json, an index, and beside it NAME_00000.weights.h5, NAME_00001.weights.h5, ... with values
   * of no more than that each. A name that ends in .weights.h5 becomes .weights.json, with a warning.
   * ValueError for other names, and for an array that is larger. */
  double max_shard_size;
  /* Of safetensors for another library: a map as in mix_load_weights_options, which is reversed: the tensors
   * of which it makes the weights are written, under the first of their names, those of parts joined.
   * ValueError, which names the weight, where it cannot be reversed: a part that no weight is, "reshape":
   * true without the axes, or two weights of one tensor that differ. What the map leaves is not written. */
  const char *weight_map;
} mix_save_weights_options;
/* The same with options. Shards are written beside the old files before the first of those is replaced, and
 * the index last. */
MIX_API mix_status mix_model_save_weights_with(mix_model *model, const mix_save_weights_options *options);
typedef struct mix_load_weights_options {
  size_t size;
  const char *path; /* required */
  /* Legacy .h5 files: layers get the weights that the file has under their name, and all others stay as they
   * are. ValueError for other files. */
  bool by_name;
  /* Files of Keras: a layer whose weights do not fit stays as it is, with a warning. ValueError for .npz
   * and safetensors. */
  bool skip_mismatch;
  /* Every weight is copied. Else large weights of files of Keras stay in the file's mapping, pages that the
   * system reads at need and takes back, until something writes them, if they lie at a multiple of 64 bytes,
   * uncompressed, as in the files of this library (and safetensors that it wrote). As long as they do,
   * replace the file by a new one of its name, as this library's own saves do: who shortens it, or writes
   * into it (Keras does), ends the process or changes the weights. */
  bool copy_weights;
  /* Of safetensors that another library wrote: a file that says which tensor becomes which weight, or "gpt2",
   * "llama" or "bert" (docs/manual/safetensors.md). NULL: each weight is the tensor of its name. */
  const char *weight_map;
} mix_load_weights_options;
/* Reads the weights of a file, whose content tells what it is: .weights.h5 and .keras of Keras 3 and of
 * tf_keras, by the layers' paths; .weights.json, whose shards must lie beside it (OSError if one is missing);
 * legacy .h5 (weights or whole models), whose layers with weights are matched in order; .npz with the names
 * that save_weights gives, or with arr_0, arr_1, ... in order; safetensors with those names, or the index of
 * several (.safetensors.index.json), all of whose tensors must become weights; folders of KerasHub. Files of
 * Keras also have the optimizer's state: a compiled model takes it if it has as many variables, else a
 * warning says so. Layers of your own stand in the first kind under the names of their inner layers.
 * FormatError for damaged files. ValueError, which names the variable or the layer with counts and shapes, if
 * something does not fit; then the model is unchanged, unless the data of a file are damaged. Changes the
 * model. */
MIX_API mix_status mix_model_load_weights(mix_model *model, const char *path);
MIX_API mix_status mix_model_load_weights_with(mix_model *model, const mix_load_weights_options *options);

typedef struct mix_model_call_options {
  size_t size;
  void *inputs; /* required: a tensor, a list, or a dict by the names of the inputs */
  mix_training training;
} mix_model_call_options;
/* Calls the model. Returns the (first) output, or a list of all outputs. Reads the model. */
MIX_API mix_tensor *mix_model_call_with(mix_model *model, const mix_model_call_options *options);
MIX_API mix_list *mix_model_call_outputs_with(mix_model *model, const mix_model_call_options *options);
#ifndef __cplusplus
#define mix_model_call(model, ...)                                                                           \
  mix_model_call_with(model, MIX_ARGUMENTS("mix_model_call", "inputs", #__VA_ARGS__, mix_model_call_options, \
                                           .inputs = __VA_ARGS__))
#define mix_model_call_outputs(model, ...)                                                                   \
  mix_model_call_outputs_with(model, MIX_ARGUMENTS("mix_model_call_outputs", "inputs", #__VA_ARGS__,         \
                                                   mix_model_call_options, .inputs = __VA_ARGS__))
#endif

/* ---- compile ---- */
typedef struct mix_compile_options {
  size_t size;
  const char *loss; /* by name; the loss of every output */
  mix_loss *loss_object;
  /* By name, one for each output. */
  const char *losses[MIX_MODEL_MAX];
  mix_list *loss_objects; /* one for each output; NULL items: none */
  /* One for each output; 0: 1, MIX_ZERO is accepted. */
  double loss_weights[MIX_MODEL_MAX];
  mix_optimizer *optimizer;
  const char *optimizer_name; /* instead of an object; neither: "rmsprop" */
  /* By name, or as text for mix_metric_from_text; for every output. */
  const char *metrics[MIX_MODEL_MAX];
  /* For a single output: metrics. For several outputs an item for each: a metric, a list of metrics, or
   * NULL. */
  mix_list *metric_objects;
  bool no_auto_scale_loss; /* keras3: auto_scale_loss=True; another generation: TypeError */
  /* Deprecated for preprocess, or a model that begins with mix_flatten and mix_rescaling. uint8 inputs are
   * images: each step first divides them by 255 in float32, and flattens them if the model takes vectors. */
  bool image_bytes;
  /* Like metrics, but weighted by sample and class weights, which `metrics` ignore. The name in logs is
   * "weighted_NAME" if NAME is taken. */
  const char *weighted_metrics[MIX_MODEL_MAX];
  mix_list *weighted_metric_objects; /* like metric_objects */
  /* The steps of fit, evaluate and predict may keep excess precision (mix_function_new). */
  bool jit_compile;
  /* Makes the model's inputs from those of the data, in the graph of each step of fit, evaluate and predict:
   * what memory and devices get are the data, such as bytes of images. NULL: nothing to do. */
  mix_function_body preprocess;
  void *preprocess_context; /* borrowed */
  /* Instead of the losses of the outputs: one loss of all of them. Called as the steps are captured, with the
   * labels (NULL where none are given) and the outputs of the batch, each a list in the model's order.
   * Returns one value for each sample, of which the loss is the mean, weighted by sample weights, or a
   * scalar, which is the loss. In keras3 floating labels and outputs come in floatx. ValueError beside loss,
   * loss_object, losses, loss_objects or loss_weights. Models in files lack it: compile again. */
  mix_tensor *(*outputs_loss)(void *context, mix_list *y_true, mix_list *y_pred);
  void *outputs_loss_context; /* borrowed */
  /* Keras's: the steps of fit, evaluate, predict and single batches run operation by operation, for debuggers
   * and prints (mix_function_options). The same bits, slower; but the graph rewrite has no graphs then. */
  bool run_eagerly;
} mix_compile_options;
/* Sets loss, optimizer and metrics. Under a policy named mixed_float16 (experimental: one with a loss
 * scale) the optimizer is wrapped in loss scaling, unless it is already. Changes the model. */
MIX_API mix_status mix_model_compile_with(mix_model *model, const mix_compile_options *options);
#ifndef __cplusplus
#define mix_model_compile(model, ...)                                                                        \
  mix_model_compile_with(                                                                                    \
      model, MIX_ARGUMENTS("mix_model_compile", "", #__VA_ARGS__, mix_compile_options, __VA_ARGS__))
#endif
/* The optimizer in use: the wrapper, if compile wrapped it. Borrowed; NULL before compile. */
MIX_API mix_optimizer *mix_model_optimizer(const mix_model *model);

/* Keras's model.metrics: the mean of the loss, for several outputs the mean of each output's loss, then
 * the metrics. A new list of borrowed metrics. */
MIX_API mix_list *mix_model_metrics(mix_model *model);
/* Their state variables, in that order: a new list of borrowed variables. Variables that depend on the
 * shapes of the data are created if the shapes of the outputs determine them. Tests the model. */
MIX_API mix_list *mix_model_metrics_variables(mix_model *model);

/* ---- logs ----
 * Named numbers in a fixed order. A metric with several numbers is "name[0]", "name[1]", ... */
typedef struct mix_logs mix_logs;
/* The number of entries, and the name and value of an entry. Out of range, the name is NULL and the value
 * NaN. Names live as long as the logs. */
MIX_API int mix_logs_count(const mix_logs *logs);
MIX_API const char *mix_logs_name(const mix_logs *logs, int index);
MIX_API double mix_logs_value(const mix_logs *logs, int index);
/* New logs from names and values. */
MIX_API mix_logs *mix_logs_of(int count, const char *const *names, const double *values);
/* The value of that name; NaN if there is none. mix_logs_has distinguishes that from a value of NaN. */
MIX_API double mix_logs_get(const mix_logs *logs, const char *name);
MIX_API bool mix_logs_has(const mix_logs *logs, const char *name);
/* Changes the value of a name, or appends it. Callbacks use this to add to the history. */
MIX_API mix_status mix_logs_set(mix_logs *logs, const char *name, double value);

/* ---- several processes ----
 * Whose rows the data of a call are (docs/MPI.md). One process: both are the same. All ranks give the same
 * value; another one is an error on all of them. */
typedef enum mix_rank_rows {
  MIX_SHARED, /* every rank gives the same data, and computes its share of each batch */
  /* Each rank's rows are its own, as many as it likes: a batch is the rows of all ranks together. A rank
   * whose data end before those of the others has no rows in the batches left. */
  MIX_LOCAL
} mix_rank_rows;

/* ---- fit ---- */
/* The results of a training step, for logs of every step. */
typedef struct mix_step_record {
  size_t size;
  int64_t step;            /* from 1, over all epochs */
  int64_t epoch;           /* from 0 */
  double loss;             /* mean of the batch, unscaled, before the update */
  const mix_logs *metrics; /* of this batch only */
  bool applied;            /* false if the loss scale skipped the update */
  int64_t iterations;      /* after the step, like the following members */
  bool has_loss_scale, has_good_steps;
  double loss_scale;
  int64_t good_steps;
} mix_step_record;

typedef struct mix_fit_options {
  size_t size;
  /* Required: a tensor or a list of tensors (rows, ...), or a dataset of batches (x, y) or (x, y,
   * sample_weight), whose elements are used unchanged. Lists may be nested, and a dict gives inputs by the
   * names of the input layers: other names are ignored (tf_keras: with a warning), a missing one is a
   * ValueError. The call function of a subclassed model gets the dict, sorted by name. In a dataset x, y and
   * sample_weight may each be a tensor, a list or a dict: ((x1, x2), {"out": y}, w). */
  void *x;
  /* Labels: a tensor, a list, one for each output, or a dict by the names of the outputs, where another name
   * is a ValueError. tf_keras leaves out the loss and the metrics of an output without labels (NULL in the
   * list, or missing in the dict); keras3 reports a ValueError. With a dataset NULL. */
  void *y;
  int64_t batch_size; /* 0: 32, or that which steps_per_epoch implies; with a dataset a ValueError */
  int64_t epochs;     /* 0: 1 */
  int64_t initial_epoch;
  double validation_split; /* the last part of the rows, taken before shuffling; in [0, 1) */
  /* Instead of a split; validation_x may be a dataset. */
  void *validation_x, *validation_y;
  bool no_shuffle; /* Keras: shuffle=True */
  uint64_t seed;   /* of the shuffling; 0: derived from the global seed */
  /* 0: auto (a bar on a terminal, else a line for each epoch), 1: bar, 2: a line for each epoch, MIX_SILENT:
   * as quiet below. */
  int verbose;
  /* Weights of classes in the loss, for integer labels (rows) and a model of one output. Missing classes
   * have weight 1 in keras3; tf_keras requires 0 to n - 1 (ValueError). */
  int class_weight_count;
  int64_t class_labels[MIX_CLASS_MAX];
  double class_weights[MIX_CLASS_MAX];
  int64_t steps; /* end training after this number of steps, whatever the epochs; 0: no limit */
  /* Called after each step; reading the record back costs time. */
  void (*on_step)(void *context, const mix_step_record *record);
  void *context;
  /* (rows): a weight for each sample in the loss; a list: one tensor for each output, NULL for weights of 1;
   * a dict by the names of the outputs (tf_keras: of some of them; keras3: of all, beside labels in a dict).
   * Together with class weights keras3 reports a ValueError, and tf_keras multiplies the two. */
  void *sample_weight;
  void *validation_sample_weight;
  /* Of mix_callback (callback.h): called in this order, then the progress bar, then the history. */
  mix_list *callbacks;
  /* 0: to the end of the data. Otherwise a dataset continues where the last epoch ended. If the data run
   * out, a warning is logged, and training stops (tf_keras) or the epoch ends (keras3). */
  int64_t steps_per_epoch;
  int64_t validation_steps;      /* 0: to the end of the data */
  int64_t validation_batch_size; /* 0: batch_size */
  int64_t validation_freq;       /* 0: 1, validation after each epoch; n: after every nth epoch */
  bool quiet;                    /* no progress: Keras's verbose=0. ValueError beside verbose 1 or 2 */
  /* Several processes: whose rows training and validation data are. With MIX_LOCAL batch_size, splits and
   * elements of data sets are those of this rank; each has one row at least, and all give arrays, or all data
   * sets, whose elements cost one more small message a step. ValueError if ranks differ in it, or give other
   * data with MIX_SHARED; NotImplementedError for data sets with BackupAndRestore, which keeps the place of
   * rank 0 alone. */
  mix_rank_rows rows;
} mix_fit_options;
#define MIX_SILENT (-1)
/* Trains the model and returns the history of the epochs. NULL with the error recorded, also that of a
 * callback; mix_model_history then has the epochs so far. An array of a floating dtype other than floatx
 * is cast to floatx. The next batches may be made on another thread, but no function of the caller's is
 * called there unless its data set says so (mix_dataset_iterate). Changes the model until it returns.
 * Collective. */
MIX_API mix_history *mix_model_fit_with(mix_model *model, const mix_fit_options *options);
/* The number of epochs in the history. */
MIX_API int64_t mix_history_epochs(const mix_history *history);
/* Keras's history.params. */
typedef struct mix_history_params {
  int verbose;
  int64_t epochs;
  int64_t steps; /* of an epoch; 0: unknown */
} mix_history_params;
/* The parameters of the fit; zeros for NULL. */
MIX_API mix_history_params mix_history_get_params(const mix_history *history);
/* The number, from 0, of an epoch of the history: initial_epoch for the first. -1 if out of range. */
MIX_API int64_t mix_history_epoch_number(const mix_history *history, int64_t epoch);
/* The history of the latest fit, even if an error ended it; NULL before. Borrowed until the next fit. */
MIX_API mix_history *mix_model_history(const mix_model *model);
/* Keras's model.stop_training: true ends fit after the current step, with the validation of its epoch. fit
 * resets it to false. Any thread may call both, also during a fit. */
MIX_API mix_status mix_model_set_stop_training(mix_model *model, bool stop);
MIX_API bool mix_model_stop_training(const mix_model *model);
/* The logs of one epoch, counted from 0 in this history: loss, metrics, val_loss, ... (keras3: names
 * sorted). Borrowed; NULL if out of range. */
MIX_API const mix_logs *mix_history_epoch(const mix_history *history, int64_t epoch);
/* The number of training steps. */
MIX_API int64_t mix_history_steps(const mix_history *history);

typedef struct mix_evaluate_options {
  size_t size;
  void *x, *y;         /* required; x may be a dataset, as in fit; y is NULL then */
  int64_t batch_size;  /* 0: 32 */
  int verbose;         /* as in fit */
  void *sample_weight; /* as in fit */
  int64_t steps;       /* 0: to the end of the data */
  mix_list *callbacks; /* of mix_callback: their on_test hooks */
  bool quiet;          /* as in fit */
  mix_rank_rows rows;  /* as in fit */
} mix_evaluate_options;
/* Loss and metrics over the data, without training. NULL with the error recorded. Tests the model: evaluates
 * of several threads run one after another, each with metrics of its own data. Collective. */
MIX_API mix_logs *mix_model_evaluate_with(mix_model *model, const mix_evaluate_options *options);

typedef struct mix_predict_options {
  size_t size;
  void *x;             /* required; labels and weights of a dataset are ignored */
  int64_t batch_size;  /* 0: 32 */
  int64_t steps;       /* 0: to the end of the data */
  mix_list *callbacks; /* of mix_callback: their on_predict hooks */
  /* 0: nothing, or auto with a ProgbarLogger among the callbacks; MIX_SILENT, 1 and 2 as in fit. */
  int verbose;
  bool quiet; /* as in fit */
} mix_predict_options;
/* The outputs for all rows: a list of tensors, one for each output. NULL with the error recorded. Reads the
 * model: threads predict side by side, each with plans and an arena of its own, which the model keeps for the
 * next calls. */
MIX_API mix_list *mix_model_predict_with(mix_model *model, const mix_predict_options *options);

#ifndef __cplusplus
/* mix_model_fit(model, x, y, .batch_size = 128, .epochs = 5) */
#define mix_model_fit(model, fit_x, ...)                                                                     \
  mix_model_fit_with(model, MIX_ARGUMENTS("mix_model_fit", "y, batch_size, !epochs", #__VA_ARGS__,           \
                                          mix_fit_options, .x = fit_x, .y = __VA_ARGS__))
#define mix_model_evaluate(model, evaluate_x, ...)                                                           \
  mix_model_evaluate_with(model, MIX_ARGUMENTS("mix_model_evaluate", "y, batch_size", #__VA_ARGS__,          \
                                               mix_evaluate_options, .x = evaluate_x, .y = __VA_ARGS__))
#define mix_model_predict(model, ...)                                                                        \
  mix_model_predict_with(model, MIX_ARGUMENTS("mix_model_predict", "x, batch_size", #__VA_ARGS__,            \
                                              mix_predict_options, .x = __VA_ARGS__))
#endif

typedef struct mix_on_batch_options {
  size_t size;
  void *x, *y;         /* required, as in fit; no data sets */
  void *sample_weight; /* as in fit */
  /* Several processes: MIX_SHARED: every rank gives the whole batch. MIX_LOCAL: its own rows, perhaps none,
   * (0, ...). If ranks differ in it, give other data with MIX_SHARED, or none of them has rows, all have a
   * ValueError after the step, which is then worth nothing. */
  mix_rank_rows rows;
  /* As in fit, of train_on_batch alone (test_on_batch: TypeError). A step with other weights than those of
   * the call before is captured again. */
  int class_weight_count;
  int64_t class_labels[MIX_CLASS_MAX];
  double class_weights[MIX_CLASS_MAX];
  /* tf_keras: reset_metrics=True. true: the logs are of all batches since the last call that reset them. */
  bool keep_metrics;
} mix_on_batch_options;
/* Trains or tests on one batch. Returns the loss and the metrics by name (Keras: return_dict=True). Metrics
 * are reset first, so the logs describe this batch only, unless .keep_metrics says otherwise. train_on_batch
 * changes the model, test_on_batch tests it. Those without options share the rows. Collective. */
MIX_API mix_logs *mix_model_train_on_batch(mix_model *model, void *x, void *y);
MIX_API mix_logs *mix_model_test_on_batch(mix_model *model, void *x, void *y);
MIX_API mix_logs *mix_model_train_on_batch_with(mix_model *model, const mix_on_batch_options *options);
MIX_API mix_logs *mix_model_test_on_batch_with(mix_model *model, const mix_on_batch_options *options);
/* The outputs for one batch, as it is: a list of tensors, one for each output. x: as in predict, no data set
 * (TypeError). Without callbacks, and without a copy of the outputs. NULL with the error recorded. Reads the
 * model. */
MIX_API mix_list *mix_model_predict_on_batch(mix_model *model, void *x);

/* ---- quantization ---- */
typedef struct mix_quantize_options {
  size_t size;
  /* Required. "float8": training in float8 with delayed scaling. "int8", "int4": weights stored as integers,
   * which no longer train. All are of Dense, EinsumDense and what contains them, the last two of Embedding
   * and ReversibleEmbedding too. ValueError for a mode that Keras 3 has not, and for int8 of layers that
   * compute in float16; NotImplementedError for gptq and awq. */
  const char *mode;
  /* Extended regular expressions: only layers in whose name one of them is found. NULL and 0: all. */
  const char *filter;
  int filter_count;
  const char *const *filters; /* more of them */
  /* Instead of expressions: is the layer quantized? Also called of layers that cannot be. */
  bool (*chooses)(void *context, const mix_layer *layer);
  void *context;
  int64_t amax_history_length; /* float8: entries of each history of magnitudes; 0: 1024 */
  /* int4: rows of a kernel, or numbers of a row of embeddings, that share a scale and a zero; 0: 128; -1: one
   * scale for all. */
  int64_t block_size;
  /* Are the inputs of products quantized, row by row, as they come? int8: yes, unless weights_only. int4: no,
   * unless quantize_inputs, which goes with block_size -1 alone. */
  bool weights_only, quantize_inputs;
  /* The integers of weights and of inputs, from LOW to HIGH, where both are not 0 (Keras's value_range): int8
   * -127 to 127, int4 -8 to 7 and no other; and what is added to the largest magnitude: 0: 1e-7, MIX_ZERO: 0.
   */
  int weight_low, weight_high, input_low, input_high;
  double weight_epsilon, input_epsilon;
} mix_quantize_options;
/* Quantizes the layers of a built model of keras3, those in layers and models in it too. A layer's policy
 * becomes "float8_from_..."; float8 adds the weights inputs_scale, inputs_amax_history, kernel_scale,
 * kernel_amax_history, outputs_grad_scale and outputs_grad_amax_history, which a training step overwrites.
 * Under "int8_from_..." a kernel has a byte for each number and kernel_scale; under "int4/128_from_..." half
 * a byte, kernel_scale, kernel_zero and g_idx, without the last two with block_size -1 ("int4/-1_from_...").
 * A layer that cannot be quantized stays as it is, with a warning; a filter that is found in no name is one,
 * too. ValueError, and no change, if one of the layers is quantized already, or none has weights yet;
 * TypeError for int8 and int4 of an EinsumDense with an ellipsis; NotImplementedError for those of a layer in
 * SpectralNormalization, which changes its kernel. Compile again before training: an optimizer that is built
 * does not know the new weights. Changes the model. */
MIX_API mix_status mix_model_quantize_with(mix_model *model, const mix_quantize_options *options);
#ifndef __cplusplus
/* mix_model_quantize(model, "float8", .filter = "fc") */
#define mix_model_quantize(model, ...)                                                                       \
  mix_model_quantize_with(                                                                                   \
      model, MIX_ARGUMENTS("mix_model_quantize", "mode", #__VA_ARGS__, mix_quantize_options, __VA_ARGS__))
#endif

/* Keras's table of layers, output shapes and parameters, followed by policy, accumulation and device. The
 * string lives until a call that changes the model, and then the next call. Reads the model. */
MIX_API const char *mix_model_summary(mix_model *model);
/* The captured training step, for mix_function_report and mix_function_dump; NULL before training.
 * Borrowed. */
MIX_API mix_function *mix_model_train_function(mix_model *model);

MIX_END_DECLARATIONS
#endif
