/* Tasks of worker.c: ranks with rows of their own, and what one process computes on all of them together.
 * Rank r has ROWS_OF[r] rows; batches have BATCH rows of each rank, as long as it has some. */
#include "distribute/rows_worker.h"

#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 4, ALL = 20, FEATURES = 8, CLASSES = 4, STEPS = 3, EPOCHS = 2 };
static const int64_t ROWS_OF[] = {10, 3, 7};

typedef struct examples {
  mix_tensor *x, *y, *weight;
} examples;

static int rank, ranks, parts; /* parts: the ranks whose rows there are, in one process as well */
/* One process evaluates the rows in other batches, and a scalar has a mean over batches. */
static bool evaluates;

static int fail(const char *what) {
  fprintf(stderr, "rank %d of %d: %s: %s\n", rank, ranks, what, mix_error_message());
  return 1;
}
#define CHECK(condition)                                                                                     \
  if (!(condition)) return fail(#condition)

/* Rows [first, first + count) of an endless table. */
static examples table(int64_t first, int64_t count) {
  float x[ALL * FEATURES], weight[ALL];
  int32_t y[ALL];
  for (int64_t i = 0; i < count; i++) {
    const uint32_t row = (uint32_t)(first + i);
    for (uint32_t j = 0; j < FEATURES; j++) x[i * FEATURES + j] = (float)((row * 7 + j * 5) % 11) / 4 - 1;
    y[i] = (int32_t)(row * row % CLASSES);
    weight[i] = (float)(row % 3) / 2 + 0.25f;
  }
  return (examples){mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(count, FEATURES)),
                    mix_tensor_from(y, MIX_INT32, MIX_SHAPE(count)),
                    mix_tensor_from(weight, MIX_FLOAT32, MIX_SHAPE(count))};
}

static int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t first_of(int part) {
  int64_t first = 0;
  for (int r = 0; r < part; r++) first += ROWS_OF[r];
  return first;
}

static examples part_of_batch(int part, int64_t step) {
  const int64_t begin = smaller(step * BATCH, ROWS_OF[part]);
  return table(first_of(part) + begin, smaller(BATCH, ROWS_OF[part] - begin));
}

/* A batch of all parts. */
static examples whole_batch(int64_t step) {
  mix_tensor *x[3], *y[3], *weight[3];
  for (int r = 0; r < parts; r++) {
    const examples own = part_of_batch(r, step);
    x[r] = own.x, y[r] = own.y, weight[r] = own.weight;
  }
  return (examples){mix_concat(parts, x, 0), mix_concat(parts, y, 0), mix_concat(parts, weight, 0)};
}

/* A loss, a metric of two values and two of scalars: 1 of any rows, and NaN of none; a mean of the rows. */
static mix_list *noted_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0), *square = mix_square(x);
  mix_tensor *mean = mix_reduce_mean(square, MIX_ALL_AXES, false);
  mix_layer_add_loss(layer, mean);
  mix_layer_add_metric(layer, x, "size");
  mix_layer_add_metric(layer, square, "size");
  mix_layer_add_metric(layer, mix_divide(mean, mean), "one");
  if (!evaluates) mix_layer_add_metric(layer, mean, "level");
  return mix_list_of(x);
}
static const mix_layer_class noted_class = {.size = sizeof noted_class, .name = "Noted", .call = noted_call};

static mix_model *classifier(void) {
  mix_set_seed(7);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(FEATURES));
  mix_tensor *x =
      mix_call(mix_dense(16, .activation = "relu", .kernel_regularizer = mix_regularizer_new("l2")), inputs);
  x = mix_call(mix_layer_new(.layer_class = &noted_class), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(CLASSES, .activation = "softmax"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"},
                    .weighted_metrics = {"sparse_categorical_crossentropy"});
  return model;
}

static FILE *open_log(const char *folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d.log", folder, rank);
  return fopen(path, "w");
}

static int save(mix_model *model, FILE *log, const char *folder) {
  char path[512];
  fclose(log);
  snprintf(path, sizeof path, "%s/%d.npz", folder, rank);
  CHECK(mix_model_save_weights(model, path) == MIX_OK);
  return 0;
}

static void write_logs(FILE *log, const mix_logs *logs) {
  for (int i = 0; i < mix_logs_count(logs); i++) fprintf(log, "%.9g ", mix_logs_value(logs, i));
  fprintf(log, "\n");
}

/* Steps of one's own; rank 1 has no rows in the last ones. `shared`: every rank gives all rows. */
static int on_batch(const char *folder, bool shared) {
  mix_model *model = classifier();
  FILE *log = open_log(folder);
  CHECK(log);
  for (int64_t i = 0; i < (int64_t)STEPS * EPOCHS; i++)
    MIX_SCOPE {
      const examples e = ranks == 1 || shared ? whole_batch(i % STEPS) : part_of_batch(rank, i % STEPS);
      const mix_on_batch_options options = {.size = sizeof options,
                                            .x = e.x,
                                            .y = e.y,
                                            .sample_weight = e.weight,
                                            .rows = shared ? MIX_SHARED : MIX_LOCAL};
      write_logs(log, mix_model_train_on_batch_with(model, &options));
      write_logs(log, mix_model_test_on_batch_with(model, &options));
    }
  CHECK(mix_error() == MIX_OK);
  return save(model, log, folder);
}

static void on_step(void *context, const mix_step_record *record) {
  fprintf(context, "%.9g %.9g\n", record->loss, mix_logs_get(record->metrics, "accuracy"));
}

static const double class_weights[] = {0.5, 2, 1, 3};

/* What one process does in place of a fit on ranks. */
static int steps_of_fit(const char *folder, bool by_class) {
  mix_model *model = classifier();
  FILE *log = open_log(folder);
  CHECK(log);
  for (int64_t i = 0; i < (int64_t)STEPS * EPOCHS; i++)
    MIX_SCOPE {
      examples e = whole_batch(i % STEPS);
      mix_tensor *all = mix_tensor_from(class_weights, MIX_FLOAT64, MIX_SHAPE(CLASSES));
      if (by_class) e.weight = mix_cast(mix_gather(all, e.y, 0), MIX_FLOAT32);
      const mix_on_batch_options options = {
          .size = sizeof options, .x = e.x, .y = e.y, .sample_weight = e.weight};
      const mix_logs *logs = mix_model_train_on_batch_with(model, &options);
      fprintf(log, "%.9g %.9g\n", mix_logs_get(logs, "loss"), mix_logs_get(logs, "accuracy"));
    }
  CHECK(mix_error() == MIX_OK);
  return save(model, log, folder);
}

/* Arrays with class weights, or a data set with sample weights. The data of the ranks end apart. */
static int fit(const char *folder, bool dataset) {
  if (ranks == 1) return steps_of_fit(folder, !dataset);
  mix_model *model = classifier();
  const examples own = table(first_of(rank), ROWS_OF[rank]);
  FILE *log = open_log(folder);
  CHECK(log);
  mix_fit_options options = {.size = sizeof options,
                             .x = own.x,
                             .y = own.y,
                             .batch_size = BATCH,
                             .epochs = EPOCHS,
                             .no_shuffle = true,
                             .quiet = true,
                             .on_step = on_step,
                             .context = log,
                             .validation_x = own.x,
                             .validation_y = own.y,
                             .rows = MIX_LOCAL};
  if (dataset) {
    options.x = mix_dataset_batch(mix_dataset_from_tensors(own.x, own.y, own.weight), BATCH);
    options.y = NULL, options.batch_size = 0;
  } else {
    options.class_weight_count = CLASSES;
    for (int i = 0; i < CLASSES; i++)
      options.class_labels[i] = i, options.class_weights[i] = class_weights[i];
  }
  const mix_history *history = mix_model_fit_with(model, &options);
  CHECK(history && mix_history_steps(history) == (int64_t)STEPS * EPOCHS);
  CHECK(mix_history_get_params(history).steps == STEPS);
  return save(model, log, folder);
}

static int evaluate(const char *folder, bool dataset) {
  mix_model *model = classifier();
  const examples own = ranks == 1 ? table(0, first_of(parts)) : table(first_of(rank), ROWS_OF[rank]);
  FILE *log = open_log(folder);
  CHECK(log);
  mix_evaluate_options options = {.size = sizeof options,
                                  .x = own.x,
                                  .y = own.y,
                                  .sample_weight = own.weight,
                                  .batch_size = BATCH,
                                  .quiet = true,
                                  .rows = MIX_LOCAL};
  if (dataset) {
    options.x = mix_dataset_batch(mix_dataset_from_tensors(own.x, own.y, own.weight), BATCH);
    options.y = options.sample_weight = NULL, options.batch_size = 0;
  }
  const mix_logs *logs = mix_model_evaluate_with(model, &options);
  CHECK(logs);
  write_logs(log, logs);
  return save(model, log, folder);
}

/* Every rank must see the error, without being ended by another. */
static int refused(bool failed, mix_status status, const char *part) {
  CHECK(failed && mix_error() == status && strstr(mix_error_message(), part));
  mix_error_clear();
  return 0;
}

/* Options of evaluate that decide how many steps there are. */
static int unlike_steps(mix_model *model) {
  const examples few = table(0, 10 - rank), all = table(0, ALL);
  mix_evaluate_options test = {.size = sizeof test, .x = few.x, .y = few.y, .quiet = true};
  if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR, "rows is 9 on rank 1, 10 on rank 0"))
    return 1;
  test.x = all.x, test.y = all.y, test.batch_size = rank == 1 ? 8 : 7;
  if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR,
              "batch_size is 8 on rank 1, 7 on rank 0"))
    return 1;
  test.batch_size = BATCH, test.steps = rank == 1 ? 3 : 2;
  for (int i = 0; i < 2; i++, test.rows = MIX_LOCAL)
    if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR, "steps is 3 on rank 1, 2 on rank 0"))
      return 1;
  return 0;
}

/* Options of single batches that decide what the step computes. */
static int unlike_options(mix_model *model, examples same) {
  mix_on_batch_options batch = {.size = sizeof batch, .x = same.x, .y = same.y};
  for (; batch.class_weight_count < CLASSES; batch.class_weight_count++)
    batch.class_labels[batch.class_weight_count] = batch.class_weight_count,
    batch.class_weights[batch.class_weight_count] = class_weights[batch.class_weight_count];
  CHECK(mix_model_train_on_batch_with(model, &batch));
  batch.class_weights[0] += rank == 1;
  if (refused(!mix_model_train_on_batch_with(model, &batch), MIX_VALUE_ERROR, "other options")) return 1;
  batch.class_weight_count = rank == 1 ? 0 : CLASSES;
  if (refused(!mix_model_train_on_batch_with(model, &batch), MIX_VALUE_ERROR, "other options")) return 1;
  batch.class_weight_count = 0, batch.keep_metrics = rank == 1;
  return refused(!mix_model_test_on_batch_with(model, &batch), MIX_VALUE_ERROR, "other options");
}

/* A batch of which nobody has rows. */
static int no_rows(mix_model *model) {
  const examples none = table(0, 0);
  const mix_on_batch_options batch = {.size = sizeof batch, .x = none.x, .y = none.y, .rows = MIX_LOCAL};
  return refused(!mix_model_test_on_batch_with(model, &batch), MIX_VALUE_ERROR, "no rank has rows");
}

/* Resumed with fewer rows than the run has had. */
static int fewer_rows(mix_model *model, const char *folder) {
  const examples all = table(0, 10), few = table(0, 3);
  mix_fit_options options = {.size = sizeof options,
                             .x = all.x,
                             .y = all.y,
                             .batch_size = BATCH,
                             .steps = 2,
                             .quiet = true,
                             .rows = MIX_LOCAL,
                             .callbacks =
                                 mix_list_of(mix_backup_and_restore(folder, .keep_checkpoint = true))};
  CHECK(mix_model_fit_with(model, &options));
  CHECK(mix_all_reduce(mix_scalar(1, MIX_FLOAT32))); /* rank 0 has written the checkpoint */
  options.x = few.x, options.y = few.y, options.steps = 0;
  return refused(!mix_model_fit_with(model, &options), MIX_VALUE_ERROR,
                 "after batch 2 of an epoch, which has 1");
}

/* Rows of their own without the option, or an option that ranks do not share. */
static int mismatch(const char *folder) {
  mix_model *model = classifier();
  const examples apart = table(first_of(rank), ROWS_OF[rank]), alike = table(rank * 5, 5), same = table(0, 5);
  const mix_rank_rows other = rank == 1 ? MIX_LOCAL : MIX_SHARED;
  if (refused(!mix_model_train_on_batch(model, apart.x, apart.y), MIX_VALUE_ERROR, ".rows = MIX_LOCAL") ||
      refused(!mix_model_train_on_batch(model, alike.x, alike.y), MIX_VALUE_ERROR, ".rows = MIX_LOCAL") ||
      refused(!mix_model_test_on_batch(model, alike.x, alike.y), MIX_VALUE_ERROR, ".rows = MIX_LOCAL"))
    return 1;
  mix_on_batch_options batch = {.size = sizeof batch, .x = same.x, .y = same.y, .rows = other};
  if (refused(!mix_model_test_on_batch_with(model, &batch), MIX_VALUE_ERROR, "different .rows")) return 1;
  mix_evaluate_options test = {.size = sizeof test, .x = same.x, .y = same.y, .quiet = true, .rows = other};
  if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR, ".rows is MIX_LOCAL on rank 1"))
    return 1;
  test.rows = MIX_SHARED, test.x = alike.x, test.y = alike.y;
  if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR, ".rows = MIX_LOCAL")) return 1;
  test.x = mix_dataset_batch(mix_dataset_from_tensors(apart.x, apart.y), 100), test.y = NULL;
  if (refused(!mix_model_evaluate_with(model, &test), MIX_VALUE_ERROR, ".rows = MIX_LOCAL")) return 1;
  mix_fit_options fit = {.size = sizeof fit, .x = alike.x, .y = alike.y, .quiet = true, .seed = 1};
  const char *part = rank == 1 ? ".rows = MIX_LOCAL" : "rank 1 of";
  if (rank < 2 && refused(!mix_model_fit_with(model, &fit), rank ? MIX_VALUE_ERROR : MIX_RUNTIME_ERROR, part))
    return 1;
  if (rank >= 2 && refused(!mix_model_fit_with(model, &fit), MIX_VALUE_ERROR, ".rows = MIX_LOCAL")) return 1;
  fit.rows = other, fit.x = same.x, fit.y = same.y;
  if (refused(!mix_model_fit_with(model, &fit), rank == 1 ? MIX_VALUE_ERROR : MIX_RUNTIME_ERROR, ".rows is"))
    return 1;
  fit.rows = MIX_LOCAL, fit.x = test.x, fit.y = NULL;
  fit.callbacks = mix_list_of(mix_backup_and_restore("unused"));
  if (refused(!mix_model_fit_with(model, &fit), MIX_UNSUPPORTED, "BackupAndRestore with .rows")) return 1;
  if (unlike_steps(model) || unlike_options(model, same) || no_rows(model) || fewer_rows(model, folder))
    return 1;
  CHECK(mix_model_train_on_batch(model, same.x, same.y)); /* and all of them go on */
  return 0;
}

int rows_task(int argc, char **argv) {
  const mix_distribution *distribution = mix_distribution_current();
  rank = mix_distribution_rank(distribution), ranks = mix_distribution_size(distribution);
  const char *task = argc > 0 ? argv[0] : "";
  if (argc < 3) return fail("unknown task");
  parts = atoi(argv[1]);
  const char *folder = argv[2];
  if (!strcmp(task, "mismatch")) return mismatch(folder);
  if (!strcmp(task, "on_batch")) return on_batch(folder, false);
  if (!strcmp(task, "shared")) return on_batch(folder, true);
  if (!strcmp(task, "fit")) return fit(folder, false);
  if (!strcmp(task, "fit_dataset")) return fit(folder, true);
  evaluates = !strncmp(task, "evaluate", strlen("evaluate"));
  if (!strcmp(task, "evaluate")) return evaluate(folder, false);
  if (!strcmp(task, "evaluate_dataset")) return evaluate(folder, true);
  return fail("unknown task");
}
