/* --loop custom: the custom training loop of the Keras guide: the step of the example, captured, over batches
 * of a shuffled data set. */
#include "../../examples/02_training_step.h"
#include "base/number.h"
#include "cli/cli.h"
#include "distribute/distribute.h"
#include "optim/shard.h"
#include "optim/optimizer.h"
#include "saving/run_identity.h"
#include "train/ranks.h"

#include <math.h>
#include <mixtape/device.h>
#include <string.h>

/* The state of the loop. */
typedef struct loop {
  const cli_options *options;
  training training;
  mix_function *step;
  mix_dataset *train;
  mix_tensor *x_validation, *y_validation; /* NULL: no validation */
  int64_t rows, batch_size, epoch;
  double loss, right, seen; /* sums over the epoch so far */
  cli_history *history;
  cli_step_log *log;
  mix_checkpoint *checkpoint; /* NULL: none */
} loop;

/* Image bytes are divided by 255 in float32 before the model. */
static mix_tensor *model_input(mix_tensor *x) {
  return mix_tensor_dtype(x) == MIX_UINT8 ? mix_divide(mix_cast(x, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32))
                                          : x;
}

/* Labels are class numbers, or one number per prediction. */
static mix_tensor *batch_accuracy(mix_tensor *labels, mix_tensor *predictions) {
  bool classes = mix_tensor_shape(labels).rank < mix_tensor_shape(predictions).rank;
  mix_tensor *right =
      mix_equal(mix_argmax(predictions, -1), classes ? mix_cast(labels, MIX_INT64) : mix_argmax(labels, -1));
  right = mix_cast(right, MIX_FLOAT32);
  if (!mix_is_distributed()) return mix_reduce_mean(right, MIX_ALL_AXES, false);
  mix_tensor *sums[] = {mix_reduce_sum(right, MIX_ALL_AXES, false),
                        mix_scalar((double)mix_shape_size(mix_tensor_shape(right)), MIX_FLOAT32)};
  return mix_all_reduce_together(2, sums) ? mix_divide(sums[0], sums[1]) : NULL;
}

/* On several ranks `batch` has this one's rows, and the results are those of all rows. */
static mix_list *measured_step(void *context, mix_list *batch) {
  training *t = context;
  mix_tensor *labels = mix_list_get(batch, 1);
  mix_list *results = train_step(t, mix_list_of(model_input(mix_list_get(batch, 0)), labels));
  mix_tensor *applied = mix_optimizer_applied(t->optimizer);
  return mix_list_of(mix_all_reduce(mix_list_get(results, 0)),
                     batch_accuracy(labels, mix_list_get(results, 1)),
                     applied ? applied : mix_scalar(1, MIX_BOOL));
}

/* Writes the record of a step to the step log. */
static void log_step(const training *t, cli_step_log *log, int64_t step, int64_t epoch, mix_list *results,
                     mix_logs *metrics) {
  mix_step_record record = {.size = sizeof record,
                            .step = step,
                            .epoch = epoch,
                            .loss = mix_tensor_item(mix_list_get(results, 0)),
                            .metrics = metrics,
                            .applied = mix_tensor_item(mix_list_get(results, 2)) != 0,
                            .iterations = mix_optimizer_iterations(t->optimizer)};
  mix_tensor *scale = mix_optimizer_loss_scale(t->optimizer);
  mix_variable *good_steps = mix_optimizer_dynamic_counter(t->optimizer);
  if (scale) record.has_loss_scale = true, record.loss_scale = mix_tensor_item(scale);
  if (good_steps)
    record.has_good_steps = true,
    record.good_steps = (int64_t)mix_tensor_item(mix_variable_value(good_steps));
  if (mix_error() == MIX_OK) cli_step_log_write(log, &record);
}

static mix_tensor *rows(mix_tensor *x, int64_t first, int64_t count) {
  mix_shape begin = mix_tensor_shape(x), size = begin;
  memset(begin.dims, 0, sizeof begin.dims);
  begin.dims[0] = first;
  size.dims[0] = count;
  return mix_slice(x, begin, size);
}

/* ---- checkpoints: the loop's own state is stored as values ---- */

enum {
  STATE_EPOCH,
  STATE_STEPS,
  STATE_BATCH_SIZE,
  STATE_ROWS,
  STATE_VALIDATION_ROWS,
  STATE_NUMBERS,
  SUMS = 3
};
static const char *const columns[] = {"loss", "accuracy", "val_loss", "val_accuracy"};

static void describe(const loop *l, int64_t state[STATE_NUMBERS]) {
  state[STATE_EPOCH] = l->epoch;
  state[STATE_STEPS] = l->history->steps;
  state[STATE_BATCH_SIZE] = l->batch_size;
  state[STATE_ROWS] = l->rows;
  state[STATE_VALIDATION_ROWS] = l->x_validation ? mix_tensor_shape(l->x_validation).dims[0] : 0;
}

static mix_status save(const loop *l, mix_iterator *batches) {
  int64_t state[STATE_NUMBERS];
  describe(l, state);
  MIX_SCOPE {
    mix_checkpoint_put(l->checkpoint, "state", mix_tensor_from(state, MIX_INT64, MIX_SHAPE(STATE_NUMBERS)));
    mix_checkpoint_put(
        l->checkpoint, "sums",
        mix_tensor_from((const double[SUMS]){l->loss, l->right, l->seen}, MIX_FLOAT64, MIX_SHAPE(SUMS)));
    for (int i = 0; i < l->history->count; i++) {
      const struct cli_column *column = &l->history->columns[i];
      mix_checkpoint_put(l->checkpoint, column->name,
                         mix_tensor_from(column->values, MIX_FLOAT64, MIX_SHAPE(column->epochs)));
    }
    if (mix_optimizer_gather_state(l->training.optimizer, 0) == MIX_OK &&
        mix_checkpoint_save(l->checkpoint, l->history->steps, batches) == MIX_OK)
      mix_shards_drop_gathered(l->training.optimizer);
  }
  return mix_error();
}

static void get_column(const loop *l, const char *name) {
  mix_tensor *values = mix_checkpoint_get(l->checkpoint, name);
  const double *numbers = values ? mix_tensor_data(values) : NULL;
  for (int64_t e = 0; numbers && e < mix_tensor_shape(values).dims[0]; e++)
    cli_history_add(l->history, e, name, numbers[e]);
}

/* Checks the options that must not change: otherwise the rest of the epoch would have other rows. */
static bool same_run(const loop *l, const int64_t saved[STATE_NUMBERS]) {
  if (l->checkpoint->another) return true; /* forced: the library has warned, and the epoch begins anew */
  static const char *const names[STATE_NUMBERS] = {[STATE_BATCH_SIZE] = "--batch-size",
                                                   [STATE_ROWS] = "the number of training rows",
                                                   [STATE_VALIDATION_ROWS] = "the number of validation rows"};
  int64_t current[STATE_NUMBERS];
  describe(l, current);
  for (int i = STATE_BATCH_SIZE; i < STATE_NUMBERS; i++)
    if (saved[i] != current[i]) {
      cli_say("train",
              "--resume: %s is %lld here, %lld in %s; resume with the data and options it was made with",
              names[i], (long long)current[i], (long long)saved[i], l->options->checkpoint);
      return false;
    }
  return true;
}

/* Restores the newest checkpoint, within the pass `batches`. Starts from the beginning if there is none. */
static bool resume(loop *l, mix_iterator *batches) {
  int64_t step = mix_checkpoint_restore(l->checkpoint, batches), state[STATE_NUMBERS];
  double sums[SUMS];
  if (step < 0) return mix_error() == MIX_OK;
  mix_tensor *numbers = mix_checkpoint_get(l->checkpoint, "state"),
             *totals = mix_checkpoint_get(l->checkpoint, "sums");
  if (!numbers || !totals) {
    cli_say("train", "--resume: %s holds a checkpoint of another loop; give --loop fit",
            l->options->checkpoint);
    return false;
  }
  if (mix_tensor_read(numbers, MIX_INT64, state, STATE_NUMBERS) ||
      mix_tensor_read(totals, MIX_FLOAT64, sums, SUMS))
    return false;
  if (!same_run(l, state)) return false;
  l->epoch = state[STATE_EPOCH];
  l->history->steps = state[STATE_STEPS];
  if (!l->checkpoint->another) l->loss = sums[0], l->right = sums[1], l->seen = sums[2];
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) get_column(l, columns[i]);
  if (!mix_rank()) fprintf(stderr, "checkpoint: goes on after step %lld\n", (long long)step);
  return mix_error() == MIX_OK;
}

/* ---- the loop ---- */

static bool limit_reached(const loop *l) {
  return l->options->steps && l->history->steps >= l->options->steps;
}

/* This rank's rows of a batch, of which each rank draws all. */
static mix_list *share_of(mix_list *batch) {
  if (!mix_is_distributed()) return batch;
  int64_t first, count;
  mix_list *share = mix_list_new(0, NULL);
  mix_rank_share(mix_tensor_shape(mix_list_get(batch, 0)).dims[0], &first, &count);
  for (int i = 0; i < mix_list_count(batch); i++)
    mix_list_append(share, rows(mix_list_get(batch, i), first, count));
  return mix_error() == MIX_OK ? share : NULL;
}

static void one_step(loop *l, mix_list *batch, mix_iterator *batches) {
  mix_list *share = share_of(batch), *results = share ? mix_function_call(l->step, share) : NULL;
  if (!results) return;
  double size = (double)mix_tensor_shape(mix_list_get(batch, 1)).dims[0],
         accuracy = mix_tensor_item(mix_list_get(results, 1));
  l->loss += size * mix_tensor_item(mix_list_get(results, 0));
  l->right += size * accuracy;
  l->seen += size;
  l->history->steps++;
  if (l->log->file) {
    mix_logs *metrics = mix_logs_of(1, (const char *const[]){"accuracy"}, &accuracy);
    log_step(&l->training, l->log, l->history->steps, l->epoch, results, metrics);
  }
  int64_t every = l->options->checkpoint_freq;
  if (l->checkpoint && ((every && l->history->steps % every == 0) || limit_reached(l))) save(l, batches);
}

static void end_epoch(loop *l) {
  cli_history_add(l->history, l->epoch, "loss", l->loss / l->seen);
  cli_history_add(l->history, l->epoch, "accuracy", l->right / l->seen);
  if (l->options->verbose)
    fprintf(stderr, "Epoch %lld: loss=%g - accuracy=%g\n", (long long)l->epoch + 1, l->loss / l->seen,
            l->right / l->seen);
  mix_logs *validation = l->x_validation
                             ? mix_model_evaluate(l->training.model, l->x_validation, l->y_validation,
                                                  .batch_size = l->batch_size, .verbose = MIX_SILENT)
                             : NULL;
  char name[256];
  for (int i = 0; i < mix_logs_count(validation); i++) {
    snprintf(name, sizeof name, "val_%s", mix_logs_name(validation, i));
    cli_history_add(l->history, l->epoch, name, mix_logs_value(validation, i));
  }
}

/* Runs the rest of an epoch. Its checkpoint is saved after the last batch, before validation, so a resumed
 * run validates again. */
static bool run_epoch(loop *l, mix_iterator *batches) {
  for (mix_list *batch; mix_error() == MIX_OK && !limit_reached(l) && (batch = mix_iterator_next(batches));)
    MIX_SCOPE { one_step(l, batch, batches); }
  bool complete = !limit_reached(l);
  if (mix_error() == MIX_OK && complete && l->checkpoint && !l->options->checkpoint_freq) save(l, batches);
  if (mix_error() == MIX_OK) end_epoch(l);
  l->loss = l->right = l->seen = 0;
  return mix_error() == MIX_OK;
}

/* Validation data of their own, or the last rows. */
static bool split(loop *l, const cli_part *own, mix_tensor **x, mix_tensor **y) {
  l->x_validation = own->x;
  l->y_validation = own->y;
  double part = l->options->validation_split;
  int64_t total = mix_tensor_shape(*x).dims[0], count = (int64_t)floor((double)total * (1.0 - part));
  if (count == 0 || (count == total && part > 0)) {
    char given[32];
    mix_number_write_shortest(given, sizeof given, part);
    cli_say("train", "--validation-split %s of %lld examples leaves a part empty", given, (long long)total);
    return false;
  }
  if (count == total) return true;
  l->x_validation = rows(*x, count, total - count);
  l->y_validation = rows(*y, count, total - count);
  *x = rows(*x, 0, count);
  *y = rows(*y, 0, count);
  return true;
}

/* ---- several ranks ---- */

/* Takes part whatever has failed. */
static bool join_ranks(const loop *l, bool prepared) {
  if (!mix_is_distributed()) return prepared;
  const cli_options *o = l->options;
  json_t *identity = prepared ? mix_run_identity_new(l->training.model, l->training.optimizer) : NULL;
  if (identity &&
      (!mix_run_identity_dataset(identity, "data set", l->train) ||
       !mix_run_identity_number(identity, "loop custom", true) ||
       !mix_run_identity_number(identity, "seed", (int64_t)o->seed) ||
       !mix_run_identity_number(identity, "epochs", o->epochs) ||
       !mix_run_identity_number(identity, "steps", o->steps) ||
       !mix_run_identity_number(identity, "memory budget", (int64_t)mix_memory_budget()) ||
       !mix_run_identity_number(identity, "validation rows",
                                l->x_validation ? mix_tensor_shape(l->x_validation).dims[0] : 0))) {
    json_decref(identity);
    identity = NULL;
  }
  return mix_ranks_run_the_same("train", identity) && prepared;
}

static bool begin_pass(loop *l, mix_iterator *batches, bool first) {
  if (!first) return true;
  const bool good = !l->checkpoint || resume(l, batches);
  return good && mix_ranks_share_values("train", l->training.model, l->training.optimizer, l->epoch,
                                        l->history->steps);
}

bool cli_train_custom(const cli_options *options, mix_model *model, const cli_data *data,
                      cli_history *history, cli_step_log *log) {
  loop l = {.options = options,
            .history = history,
            .log = log,
            .batch_size = options->batch_size ? options->batch_size : MIX_DEFAULT_BATCH};
  l.training = (training){
      .model = model, .loss_object = mix_loss_new(options->loss), .optimizer = mix_model_optimizer(model)};
  mix_tensor *x = data->train.x, *y = data->train.y;
  if (!split(&l, &data->validation, &x, &y)) return false;
  l.rows = mix_tensor_shape(x).dims[0];
  int64_t epochs = options->epochs ? options->epochs : options->steps ? INT64_MAX / 2 : 1;
  l.train = mix_dataset_from_tensors(x, y);
  if (!options->no_shuffle) l.train = mix_dataset_shuffle(l.train, 10000, .seed = options->seed);
  const bool all = l.rows > 0 && l.batch_size > l.rows; /* batches larger than the data, as in fit */
  l.train = mix_dataset_batch(l.train, all ? l.rows : l.batch_size);
  l.step =
      mix_function_new(measured_step, &l.training, .name = "train_step", .jit_compile = options->jit_compile);
  if (options->checkpoint)
    l.checkpoint = mix_checkpoint_new(options->checkpoint, .model = model, .seed = options->seed,
                                      .force = options->force);
  bool first = true, good = join_ranks(&l, mix_error() == MIX_OK);
  int64_t before = 0, skipped = 0;
  for (; good && l.epoch < epochs && !limit_reached(&l); l.epoch++)
    MIX_SCOPE {
      mix_iterator *batches = mix_dataset_iterate(l.train);
      good = begin_pass(&l, batches, first);
      if (first) before = history->steps, skipped = mix_optimizer_skipped_steps(l.training.optimizer);
      if (good && l.epoch < epochs) good = run_epoch(&l, batches);
      first = false;
    }
  if (good)
    mix_optimizer_warn_unapplied(l.training.optimizer, "train", history->steps - before,
                                 mix_optimizer_skipped_steps(l.training.optimizer) - skipped);
  return mix_error() == MIX_OK && good;
}
