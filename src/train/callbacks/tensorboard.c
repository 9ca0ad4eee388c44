/* TensorBoard. Tags and steps are those of Keras's callback; loss scale and skipped steps are additions of
 * Mixtape. */
#include "base/alloc.h"
#include "base/error.h"
#include "compile/evaluate.h"
#include "formats/file.h"
#include "train/callback.h"
#include "formats/event_file.h"
#include "train/callbacks/histogram.h"
#include <stdio.h>
#include <string.h>

enum { TAG_MAX = 512 };

typedef struct run {
  char name[MIX_EVENT_FILE_NAME]; /* empty: none was chosen */
  mix_event_file *file;           /* NULL: not open */
} run;

typedef struct tensorboard {
  mix_tensorboard_options options;
  run train, validation;
  int64_t batches;                 /* batches of this training run */
  int64_t epoch_steps;             /* steps of the training run when the epoch began */
  double epoch_began, batch_began; /* seconds */
} tensorboard;

static bool open_in(const tensorboard *t, run *r, const char *name) {
  char *folder = mix_path_join(t->options.log_dir, name);
  if (!*r->name) mix_event_file_name(r->name);
  r->file = folder ? mix_event_file_open(folder, r->name) : NULL;
  mix_free(folder);
  return r->file != NULL;
}
static bool open_validation(tensorboard *t) {
  return t->validation.file || open_in(t, &t->validation, "validation");
}

static void close_run(run *r) {
  mix_event_file_close(r->file);
  *r = (run){.file = NULL};
}
static mix_status close_all(tensorboard *t) {
  close_run(&t->train);
  close_run(&t->validation);
  return mix_error();
}
static mix_status flush_all(const tensorboard *t) {
  if (t->train.file) mix_event_file_flush(t->train.file);
  if (t->validation.file) mix_event_file_flush(t->validation.file);
  return mix_error();
}

static void release(void *context) {
  tensorboard *t = context;
  close_all(t);
  mix_free(t);
}

/* "epoch_", "loss". */
static bool put_scalar(mix_event_file *file, const char *prefix, const char *name, int64_t step,
                       double value) {
  char tag[TAG_MAX];
  bool evaluation = !strcmp(prefix, "evaluation_");
  snprintf(tag, sizeof tag, "%s%s%s", prefix, name, evaluation ? "_vs_iterations" : "");
  return mix_event_file_scalar(file, tag, step, value);
}

/* With loss scaling: the scale, and the steps skipped since the optimizer was made. */
static bool put_loss_scale(mix_event_file *file, const char *prefix, int64_t step, mix_model *model) {
  mix_optimizer *optimizer = mix_model_optimizer(model);
  mix_tensor *scale = mix_optimizer_loss_scale(optimizer);
  if (scale && !put_scalar(file, prefix, "loss_scale", step, mix_tensor_item(scale))) return false;
  return !mix_optimizer_dynamic(optimizer) ||
         put_scalar(file, prefix, "skipped_steps", step, (double)mix_optimizer_skipped_steps(optimizer));
}

/* ---- training ---- */

/* If a layer has no config, only the graph is omitted; training continues. */
static bool put_graph(tensorboard *t, const mix_model *model) {
  char message[512], *graph = mix_graph_text(model);
  if (graph) mix_event_file_text(t->train.file, "keras", 0, "graph_keras_model", "1", graph);
  mix_free(graph);
  if (graph || mix_error() == MIX_MEMORY_ERROR) return !mix_failed();
  mix_error_take(message, sizeof message);
  mix_log_message(MIX_LOG_WARNING, "tensorboard: the model's graph is not written: %s", message);
  return true;
}

static bool open_train(tensorboard *t, const mix_model *model) {
  if (t->train.file) return true;
  return open_in(t, &t->train, "train") && (t->options.no_write_graph || put_graph(t, model));
}

/* A resumed run continues the files that its state names. */
static mix_status train_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  tensorboard *t = context;
  t->batches = 0;
  if (close_all(t) != MIX_OK) return mix_error();
  mix_event_file_name(t->train.name);
  mix_event_file_name(t->validation.name);
  if (!model->resumes) open_train(t, model);
  return mix_error();
}

static mix_status batch_begin(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  ((tensorboard *)context)->batch_began = mix_clock(CLOCK_MONOTONIC);
  return MIX_OK;
}

static mix_status batch_end(void *context, mix_model *model, int64_t batch, mix_logs *none) {
  tensorboard *t = context;
  if (++t->batches % t->options.update_freq) return MIX_OK;
  mix_logs *logs = mix_model_current_logs(model); /* read only for these batches */
  bool good = logs != NULL && open_train(t, model);
  if (good && t->options.write_steps_per_second)
    good = put_scalar(t->train.file, "batch_", "steps_per_second", t->batches,
                      1 / (mix_clock(CLOCK_MONOTONIC) - t->batch_began));
  for (int i = 0; i < mix_logs_count(logs) && good; i++)
    good = put_scalar(t->train.file, "batch_", mix_logs_name(logs, i), t->batches, mix_logs_value(logs, i));
  if (good) put_loss_scale(t->train.file, "batch_", t->batches, model);
  return mix_error();
}

static mix_status epoch_begin(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  tensorboard *t = context;
  t->epoch_began = mix_clock(CLOCK_MONOTONIC);
  t->epoch_steps = mix_history_steps(mix_model_history(model));
  return MIX_OK;
}

static bool put_epoch(tensorboard *t, mix_model *model, int64_t epoch, const mix_logs *logs) {
  bool good = open_train(t, model);
  for (int i = 0; i < mix_logs_count(logs) && good; i++) {
    const char *name = mix_logs_name(logs, i);
    bool validation = !strncmp(name, "val_", 4);
    if (validation && !open_validation(t)) return false;
    good = put_scalar(validation ? t->validation.file : t->train.file, "epoch_", name + (validation ? 4 : 0),
                      epoch, mix_logs_value(logs, i));
  }
  if (good && !mix_logs_has(logs, "learning_rate"))
    good = put_scalar(t->train.file, "epoch_", "learning_rate", epoch,
                      mix_optimizer_learning_rate(mix_model_optimizer(model)));
  if (good && t->options.write_steps_per_second) {
    double steps = (double)(mix_history_steps(mix_model_history(model)) - t->epoch_steps);
    good = put_scalar(t->train.file, "epoch_", "steps_per_second", epoch,
                      steps / (mix_clock(CLOCK_MONOTONIC) - t->epoch_began));
  }
  return good && put_loss_scale(t->train.file, "epoch_", epoch, model);
}

/* ---- weights ---- */

/* Writes the weight. If it is cast to 16 bits, also writes the exponents of that copy, which show values
 * below or above float16's range. */
static bool put_weight(mix_event_file *file, mix_variable *weight, mix_dtype compute, int64_t epoch) {
  char tag[TAG_MAX];
  mix_histogram rows;
  mix_tensor *value = mix_variable_true_value(weight);
  mix_pinned pinned;
  if (!mix_tensor_pin(value, &pinned)) return false;
  mix_dtype dtype = mix_tensor_dtype(value);
  int64_t count = mix_shape_size(mix_tensor_shape(value));
  int buckets = mix_histogram_of(pinned.data, dtype, count, rows);
  mix_tensor_unpin(&pinned);
  snprintf(tag, sizeof tag, "%s/histogram", mix_variable_name(weight));
  if (buckets && !mix_event_file_histogram(file, tag, epoch, rows, buckets)) return false;
  bool copied = mix_variable_is_autocast(weight) && (compute == MIX_FLOAT16 || compute == MIX_BFLOAT16);
  buckets = 0;
  if (copied && dtype == MIX_FLOAT32 && mix_tensor_pin(value, &pinned)) {
    buckets = mix_histogram_of_exponents(pinned.data, compute, count, rows);
    mix_tensor_unpin(&pinned);
  }
  snprintf(tag, sizeof tag, "%s/%s_exponents/histogram", mix_variable_name(weight), mix_dtype_name(compute));
  return !buckets || mix_event_file_histogram(file, tag, epoch, rows, buckets);
}

/* Writes the weights of the layer, then of its inner layers, which have policies of their own. */
static bool put_weights(mix_event_file *file, mix_layer *layer, int64_t epoch) {
  bool good = true;
  for (int i = 0; layer->weights && i < mix_list_count(layer->weights) && good; i++)
    MIX_SCOPE { good = put_weight(file, mix_list_get(layer->weights, i), layer->compute, epoch); }
  for (int i = 0; layer->layers && i < mix_list_count(layer->layers) && good; i++)
    good = put_weights(file, mix_list_get(layer->layers, i), epoch);
  return good;
}

static mix_status epoch_end(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  tensorboard *t = context;
  if (!put_epoch(t, model, epoch, logs)) return mix_error();
  if (t->options.histogram_freq && epoch % t->options.histogram_freq == 0 &&
      !put_weights(t->train.file, model->layer, epoch))
    return mix_error();
  return flush_all(t);
}

static mix_status train_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  return close_all(context);
}

/* ---- evaluation ---- */

static mix_status test_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  tensorboard *t = context;
  if (!open_validation(t)) return mix_error();
  int64_t iterations = mix_optimizer_iterations(mix_model_optimizer(model));
  bool good = !mix_failed();
  for (int i = 0; i < mix_logs_count(logs) && good; i++)
    good = put_scalar(t->validation.file, "evaluation_", mix_logs_name(logs, i), iterations,
                      mix_logs_value(logs, i));
  return flush_all(t);
}

/* ---- checkpoints ---- */

/* The batches, the names of the two files, and their lengths. A file that is not open yet has a name too: it
 * may have records after the checkpoint. */
static mix_list *get_state(void *context) {
  tensorboard *t = context;
  const double batches = (double)t->batches;
  const int64_t lengths[] = {t->train.file ? mix_event_file_length(t->train.file) : 0,
                             t->validation.file ? mix_event_file_length(t->validation.file) : 0};
  char names[2 * MIX_EVENT_FILE_NAME];
  const int size = snprintf(names, sizeof names, "%s\n%s", t->train.name, t->validation.name);
  return mix_list_of(mix_tensor_from_doubles(&batches, MIX_FLOAT64, MIX_SHAPE(1)),
                     mix_tensor_from(names, MIX_UINT8, MIX_SHAPE(size)),
                     mix_tensor_from(lengths, MIX_INT64, MIX_SHAPE(2)));
}

/* Cuts records written after the checkpoint: this run writes them again. */
static void reopen(const tensorboard *t, run *r, const char *folder_name, const char *name, int64_t length) {
  char *folder = mix_path_join(t->options.log_dir, folder_name);
  r->file = folder ? mix_event_file_reopen(folder, name, length) : NULL;
  mix_free(folder);
  if (r->file || (length == 0 && !mix_failed())) snprintf(r->name, sizeof r->name, "%s", name);
  if (!r->file && length > 0 && !mix_failed())
    mix_log_message(
        MIX_LOG_WARNING,
        "tensorboard: '%s' in %s/%s is missing or shorter than at the checkpoint; a new file begins", name,
        t->options.log_dir, folder_name);
}

static mix_status set_files(tensorboard *t, mix_tensor *text, mix_tensor *numbers) {
  char names[2 * MIX_EVENT_FILE_NAME] = "";
  int64_t lengths[2];
  const int64_t size = mix_shape_size(mix_tensor_shape(text));
  const bool good = mix_tensor_dtype(text) == MIX_UINT8 && size < (int64_t)sizeof names &&
                    mix_tensor_read(text, MIX_UINT8, names, size) == MIX_OK &&
                    mix_tensor_dtype(numbers) == MIX_INT64 &&
                    mix_shape_size(mix_tensor_shape(numbers)) == 2 &&
                    mix_tensor_read(numbers, MIX_INT64, lengths, 2) == MIX_OK;
  char *second = good ? strchr(names, '\n') : NULL;
  if (!second)
    return mix_fail_status(MIX_VALUE_ERROR, "tensorboard: the state in the checkpoint is another's");
  *second++ = 0;
  reopen(t, &t->train, "train", names, lengths[0]);
  reopen(t, &t->validation, "validation", second, lengths[1]);
  return mix_error();
}

/* Checkpoints of older versions have the batches alone. */
static mix_status set_state(void *context, mix_model *model, mix_list *state) {
  tensorboard *t = context;
  double batches = 0;
  if (!mix_numbers_of_state(state, 1, &batches, "tensorboard")) return mix_error();
  t->batches = (int64_t)batches;
  return mix_list_count(state) == 3 ? set_files(t, mix_list_get(state, 1), mix_list_get(state, 2)) : MIX_OK;
}

#define FIELD(member) MIX_FIELD(mix_tensorboard_options, member)
static const mix_field_row fields[] = {
    {FIELD(log_dir), &mix_field_text, .text = "logs"},
    {FIELD(histogram_freq), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {"write_graph", offsetof(mix_tensorboard_options, no_write_graph), &mix_field_negated},
    {FIELD(write_steps_per_second), &mix_field_boolean},
    {FIELD(update_freq), &mix_field_frequency, .range = MIX_NOT_NEGATIVE},
    {0}};
MIX_CALLBACK_KIND(tensorboard, fields)

mix_callback *mix_tensorboard_with(const mix_tensorboard_options *given) {
  mix_tensorboard_options options;
  if (!mix_callback_resolve(&mix_tensorboard_kind, given, &options)) return NULL;
  if (!*options.log_dir)
    return mix_fail_value("tensorboard: log_dir is empty; expected the name of a folder");
  tensorboard *t = mix_calloc(1, sizeof *t);
  if (!t) return NULL;
  t->options = options;
  bool batches = options.update_freq > 0;
  return MIX_CALLBACK_OWN(.name = "TensorBoard", .context = t, .release = release,
                          .on_train_begin = train_begin,
                          .on_train_batch_begin =
                              batches && options.write_steps_per_second ? batch_begin : NULL,
                          .on_train_batch_end = batches ? batch_end : NULL, .on_epoch_begin = epoch_begin,
                          .on_epoch_end = epoch_end, .on_train_end = train_end, .on_test_end = test_end,
                          .no_batch_logs = true, .get_state = get_state, .set_state = set_state);
}
