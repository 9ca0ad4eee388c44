/* A rank of the tests in test_mpi.c. It prints what is wrong and ends with 1, or writes files for them.
 *
 *   worker collectives
 *   worker train FOLDER POLICY ROWS BATCH STEPS   each rank saves its weights as FOLDER/RANK.npz
 *   worker integers FOLDER                        the same on whole numbers, where sums are exact
 *   worker float8 FOLDER                          scales and histories are those of all ranks together
 *   worker batch_norm FOLDER
 *   worker one_value FOLDER                       the loss is one value for the whole batch
 *   worker batch_norm_alone FOLDER                each rank normalizes by its own rows
 *   worker one_nan                                rank 1 has a gradient that is not finite
 *   worker one_check                              mix_check_numerics finds NaN on the last rank
 *   worker watched FOLDER                         a numerics report, which stops the training
 *   worker observer FOLDER                        the report is on rank 0 alone
 *   worker dies                                   rank 1 is killed after a step
 *   worker differs WHAT                           rank 1 has another batch_size, patience, ...
 *   worker files FOLDER                           rank 0 has callbacks that write files
 *   worker rows TASK ...                          rows_worker.c
 *   worker shard TASK ...                         shard_worker.c */
#include "distribute/rows_worker.h"
#include "distribute/shard_worker.h"

#include <math.h>
#include <mixtape/mixtape.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;

static int fail(const char *what) {
  fprintf(stderr, "rank %d of %d: %s%s%s\n", rank, ranks, what, mix_error() ? ": " : "", mix_error_message());
  return 1;
}
#define CHECK(condition)                                                                                     \
  if (!(condition)) return fail(#condition)

/* ---- collectives ---- */

static mix_list *sums_body(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y =
      mix_reduce_sum(mix_multiply(mix_all_reduce(x), mix_scalar_like(x, 1 + rank)), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_list *gradient = mix_tape_gradient(tape, y, mix_list_of(x));
  return mix_list_of(mix_all_reduce(x), mix_list_get(gradient, 0), mix_all_gather(x), mix_broadcast(x, 1));
}

enum { LARGE = 300001 };

/* More than one message. `first`, the largest number below which all whole ones are representable, + 1 + 1 is
 * first + 2 if it is rounded once, and first if it is rounded twice. */
static int check_large(mix_dtype dtype, float first) {
  mix_tensor *x = mix_fill(MIX_SHAPE(LARGE), rank ? 1 : first, dtype);
  mix_tensor *sum = mix_all_reduce(x);
  float *values = malloc(sizeof *values * LARGE);
  CHECK(values && mix_tensor_read(sum, MIX_FLOAT32, values, LARGE) == MIX_OK);
  const float expected = dtype == MIX_FLOAT32 || ranks == 3 ? first + (float)(ranks - 1) : first;
  for (int i = 0; i < LARGE; i++) CHECK(values[i] == expected);
  free(values);
  return 0;
}

static int collectives(void) {
  const float own[] = {1 + (float)rank, 10 * (1 + (float)rank)};
  const float total = (float)(ranks * (ranks + 1)) / 2;
  float values[64];
  mix_tensor *x = mix_tensor_from(own, MIX_FLOAT32, MIX_SHAPE(2));
  mix_function *function = mix_function_new(sums_body, NULL);
  mix_list *results = mix_function_call(function, mix_list_of(x));
  CHECK(results);
  CHECK(!mix_tensor_read(mix_list_get(results, 0), MIX_FLOAT32, values, 2));
  CHECK(values[0] == total && values[1] == 10 * total);
  CHECK(!mix_tensor_read(mix_list_get(results, 1), MIX_FLOAT32, values, 2));
  CHECK(values[0] == total && values[1] == total); /* every rank r has the gradient 1 + r */
  CHECK(!mix_tensor_read(mix_list_get(results, 2), MIX_FLOAT32, values, 2 * ranks));
  for (int r = 0; r < ranks; r++)
    CHECK(values[2 * r] == (float)(1 + r) && values[2 * r + 1] == (float)(10 * (1 + r)));
  CHECK(!mix_tensor_read(mix_list_get(results, 3), MIX_FLOAT32, values, 2));
  CHECK(values[0] == 2 && values[1] == 20);
  CHECK(mix_tensor_item(mix_all_reduce(mix_scalar(rank, MIX_INT64))) == (double)(ranks * (ranks - 1)) / 2);
  if (check_large(MIX_FLOAT32, 2048) || check_large(MIX_BFLOAT16, 256) || check_large(MIX_FLOAT16, 2048))
    return 1;
  CHECK(!mix_broadcast(x, ranks) && mix_error() == MIX_VALUE_ERROR);
  mix_error_clear();
  return 0;
}

/* ---- training ---- */

static int save_weights(mix_model *model, const char *folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d.npz", folder, rank);
  CHECK(mix_model_save_weights(model, path) == MIX_OK);
  return 0;
}

/* Whole numbers from -2 to 2. */
static mix_tensor *numbers(int64_t rows, int64_t columns, uint32_t seed) {
  float *values = malloc(sizeof *values * (size_t)(rows * columns));
  for (int64_t i = 0; values && i < rows * columns; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = (float)(int)(seed >> 24) / 51;
    values[i] = floorf(values[i]) - 2;
    if (values[i] > 2) values[i] = 2;
  }
  mix_tensor *tensor = values ? mix_tensor_from(values, MIX_FLOAT32, MIX_SHAPE(rows, columns)) : NULL;
  free(values);
  return tensor;
}

static mix_model *small_model(bool normalized, bool synchronized) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_tensor *x = mix_call(mix_dense(16, .activation = "relu"), inputs);
  if (normalized) x = mix_call(mix_batch_normalization(.synchronized = synchronized), x);
  return mix_model_new(inputs, mix_call(mix_dense(4, .dtype = "float32"), x));
}

static void on_step(void *context, const mix_step_record *record) {
  FILE *file = context;
  fprintf(file, "%lld %d %g %lld %.9g\n", (long long)record->step, record->applied, record->loss_scale,
          (long long)record->good_steps, record->loss);
  fflush(file);
}

static int fit_and_save(mix_model *model, const char *folder, int64_t rows, int64_t batch, int64_t steps) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d.log", folder, rank);
  FILE *log = fopen(path, "w");
  CHECK(log);
  CHECK(mix_model_fit(model, numbers(rows, 8, 1), numbers(rows, 4, 2), .batch_size = batch, .epochs = steps,
                      .steps = steps, .seed = 5, .verbose = MIX_SILENT, .on_step = on_step, .context = log));
  fclose(log);
  return save_weights(model, folder);
}

static int train(char **arguments) {
  mix_set_seed(7 + (uint64_t)rank); /* other initial weights on each rank, until they are broadcast */
  mix_set_global_policy(arguments[1]);
  mix_model *model = small_model(false, false);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.05));
  if (!strcmp(arguments[1], "mixed_float16"))
    mix_model_compile(model, .loss = "mean_squared_error",
                      .optimizer =
                          mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.05), .initial_scale = 0x1p20,
                                                   .dynamic_growth_steps = 3));
  return fit_and_save(model, arguments[0], atoll(arguments[2]), atoll(arguments[3]), atoll(arguments[4]));
}

/* Weights from zero, rates that are powers of two, few steps: float32 holds every sum. */
static int integers(char **arguments) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(4, .kernel_initializer = "zeros"), inputs));
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.25));
  return fit_and_save(model, arguments[0], 64, 32, 2);
}

/* The last batch has one row: other ranks have none. */
static int float8(char **arguments) {
  mix_set_seed(7);
  mix_set_semantics("keras3");
  mix_model *model = small_model(false, false);
  mix_model_quantize(model, "float8", .amax_history_length = 3);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.05));
  return fit_and_save(model, arguments[0], 65, 16, 12);
}

/* The last batch has one row: other ranks have none. */
static int batch_norm(char **arguments) {
  mix_set_seed(7);
  mix_model *model = small_model(true, true);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.05));
  return fit_and_save(model, arguments[0], 65, 16, 12);
}

/* The last batch has one row: other ranks have none. */
static int batch_norm_alone(char **arguments) {
  mix_set_seed(7);
  mix_model *model = small_model(true, false);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd(.learning_rate = 0.05));
  return fit_and_save(model, arguments[0], 97, 32, 12);
}

static mix_tensor *mean_of_batch(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context;
  return mix_reduce_mean(mix_squared_difference(y_true, y_pred), MIX_ALL_AXES, false);
}

/* The last batch has one row: other ranks have none. */
static int one_value(char **arguments) {
  mix_set_seed(7);
  mix_model *model = small_model(false, false);
  mix_loss *loss = mix_loss_new(.function = mean_of_batch, .name = "mean_of_batch");
  mix_metric *metric = mix_metric_new(.function = mean_of_batch, .name = "mean");
  mix_model_compile(model, .loss_object = loss, .optimizer = mix_sgd(.learning_rate = 0.05),
                    .metric_objects = mix_list_of(metric));
  if (fit_and_save(model, arguments[0], 97, 32, 12)) return 1;
  CHECK(isfinite(mix_metric_result(metric)));
  return 0;
}

/* O13: gradients of one, at first NaN on the last rank: then no rank applies it. */
static int one_nan(void) {
  mix_variable *v = mix_variable_new(mix_scalar(5, MIX_FLOAT32));
  mix_optimizer *optimizer =
      mix_loss_scale_optimizer(mix_sgd(.learning_rate = 1), .initial_scale = 2, .dynamic_growth_steps = 2);
  for (int step = 0; step < 2; step++) {
    const bool bad = step == 0 && rank == ranks - 1;
    mix_tensor *gradient = mix_scalar(bad ? NAN : 1, MIX_FLOAT32);
    CHECK(!mix_optimizer_apply_gradients(optimizer, mix_list_of(gradient), mix_list_of(v)));
    CHECK(mix_tensor_item(mix_variable_value(v)) == (step ? 5 - ranks : 5));
    CHECK(mix_tensor_item(mix_optimizer_loss_scale(optimizer)) == 1);
  }
  return 0;
}

static int failed_alike(const char *where) {
  char message[300];
  CHECK(mix_error_take(message, sizeof message) == MIX_VALUE_ERROR);
  CHECK(strstr(message, where) && !strstr(message, "on another rank") == (rank == ranks - 1));
  return 0;
}

static mix_list *checked_step(void *context, mix_list *arguments) {
  mix_variable *v = ((void **)context)[0];
  mix_tape *tape = mix_tape_begin();
  mix_tensor *x = mix_check_numerics(mix_list_get(arguments, 0), "values");
  mix_tensor *loss = mix_multiply(x, mix_variable_value(v));
  mix_tape_end(tape);
  mix_list *variables = mix_list_of(v);
  mix_optimizer_apply_gradients(((void **)context)[1], mix_tape_gradient(tape, loss, variables), variables);
  return mix_list_of(mix_all_reduce(loss));
}

static mix_list *checking_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_check_numerics(mix_call_input(args, 0), "features"));
}
static const mix_layer_class checking = {.size = sizeof checking, .name = "Checking", .call = checking_call};

/* No rank writes a variable, in a step of one's own, in training and in evaluation. What one rank predicts is
 * its own affair. */
static int one_check(void) {
  mix_variable *v = mix_variable_new(mix_scalar(5, MIX_FLOAT32));
  mix_function *step = mix_function_new(checked_step, (void *[]){v, mix_sgd(.learning_rate = 1)});
  for (int i = 0; i < 3; i++) {
    const bool bad = i != 1;
    mix_tensor *x = mix_scalar(bad && rank == ranks - 1 ? NAN : 1, MIX_FLOAT32);
    CHECK(!mix_function_call(step, mix_list_of(x)) == bad);
    if (bad && failed_alike("values")) return 1;
    CHECK(mix_tensor_item(mix_variable_value(v)) == (i ? 5 - ranks : 5));
  }
  mix_set_seed(7);
  mix_model *model =
      mix_sequential(mix_list_of(mix_dense(3), mix_layer_new(&checking, .name = "check"), mix_dense(4)));
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 8));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
  mix_tensor *good = numbers(4, 8, 1), *y = numbers(4, 4, 2);
  mix_tensor *x = rank == ranks - 1 ? mix_log(mix_negative(mix_square(good))) : good;
  mix_on_batch_options options = {.size = sizeof options, .x = x, .y = y, .rows = MIX_LOCAL};
  CHECK(!mix_model_test_on_batch_with(model, &options));
  if (failed_alike("features")) return 1;
  mix_list *before = mix_model_get_weights(model);
  CHECK(!mix_model_train_on_batch_with(model, &options));
  if (failed_alike("features")) return 1;
  float a[24], b[24];
  CHECK(!mix_tensor_read(mix_list_get(before, 0), MIX_FLOAT32, a, 24));
  CHECK(!mix_tensor_read(mix_list_get(mix_model_get_weights(model), 0), MIX_FLOAT32, b, 24));
  CHECK(!memcmp(a, b, sizeof a));
  CHECK(rank || mix_model_predict_on_batch(model, good));
  options.x = good;
  CHECK(mix_model_train_on_batch_with(model, &options));
  return 0;
}

/* Ranks have other rows, and the gradients of a frozen layer's outputs are those of the report alone. The
 * loss scale never becomes small enough, so that the report ends the training. */
static int watched(bool everywhere, const char *folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/%d.json", folder, rank);
  mix_set_seed(7);
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(8));
  mix_tensor *x = mix_call(mix_dense(16, .not_trainable = true), inputs);
  x = mix_call(mix_batch_normalization(.synchronized = true), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(4, .dtype = "float32"), x));
  mix_model_compile(model, .loss = "mean_squared_error",
                    .optimizer = mix_loss_scale_optimizer(mix_sgd(), .initial_scale = 0x1p120));
  mix_callback *report = mix_numerics_report(.stop_at_stall = true, .stall = 5, .every = 2, .json = path);
  mix_list *callbacks = everywhere || !rank ? mix_list_of(report) : mix_list_new(0, NULL);
  mix_history *history = mix_model_fit(model, numbers(64, 8, 1), numbers(64, 4, 2), .batch_size = 16,
                                       .epochs = 3, .seed = 5, .verbose = MIX_SILENT, .callbacks = callbacks);
  if (history && everywhere) {
    CHECK(mix_history_steps(history) == 5);
    CHECK((access(path, F_OK) == 0) == (rank == 0));
    return 0;
  }
  fail("fit");
  mix_distribution_end_job(mix_distribution_current(), 1);
  return 1;
}

static void die(void *context, const mix_step_record *record) {
  (void)context;
  if (rank == 1 && record->step == 3) kill(getpid(), SIGKILL);
}

static mix_model *compiled_model(void) {
  mix_set_seed(7);
  mix_model *model = small_model(false, false);
  mix_model_compile(model, .loss = "mean_squared_error", .optimizer = mix_sgd());
  return model;
}

static int end(mix_history *history) {
  if (history) return 0;
  fail("fit");
  mix_distribution_end_job(mix_distribution_current(), 1);
  return 1;
}

static int dies(void) {
  return end(mix_model_fit(compiled_model(), numbers(64, 8, 1), numbers(64, 4, 2), .batch_size = 16,
                           .epochs = 100000, .seed = 5, .verbose = MIX_SILENT, .on_step = die));
}

static double schedule(void *context, int64_t epoch, double rate) {
  (void)context, (void)epoch;
  return rate;
}

/* What decides about numbers is another on rank 1. */
static int differs(const char *what) {
  const bool other = rank == 1;
  mix_model *model = compiled_model();
  mix_fit_options fit = {.size = sizeof fit,
                         .x = numbers(64, 8, 1),
                         .y = numbers(64, 4, 2),
                         .batch_size = 16,
                         .epochs = 3,
                         .seed = 5,
                         .verbose = MIX_SILENT};
  if (!strcmp(what, "batch_size") && other) fit.batch_size = 8;
  if (!strcmp(what, "patience"))
    fit.callbacks = mix_list_of(mix_early_stopping(.monitor = "loss", .patience = other ? 2 : 1));
  if (!strcmp(what, "schedule") && other)
    fit.callbacks = mix_list_of(mix_learning_rate_scheduler(schedule, NULL));
  if (!strcmp(what, "validation"))
    fit.validation_x = numbers(8, 8, other ? 4 : 3), fit.validation_y = numbers(8, 4, 5);
  if (!strcmp(what, "class_weights"))
    for (; fit.class_weight_count < 4; fit.class_weight_count++) {
      fit.class_labels[fit.class_weight_count] = fit.class_weight_count;
      fit.class_weights[fit.class_weight_count] = other ? 0.5 : fit.class_weight_count + 1;
    }
  if (!strcmp(what, "class_weights")) fit.class_weights[0] = 1;
  if (!strcmp(what, "seed")) fit.seed = 0, mix_set_seed(other);
  return end(mix_model_fit_with(model, &fit));
}

static mix_status count_epoch(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)model, (void)epoch, (void)logs;
  ++*(int *)context;
  return MIX_OK;
}

static int files(const char *folder) {
  char path[512];
  int epochs = 0;
  snprintf(path, sizeof path, "%s/log.csv", folder);
  mix_list *callbacks = mix_list_of(mix_terminate_on_nan());
  if (!rank) {
    mix_list_append(callbacks, mix_csv_logger(path));
    mix_list_append(callbacks, mix_callback_new(.on_epoch_end = count_epoch, .context = &epochs));
  }
  if (end(mix_model_fit(compiled_model(), numbers(64, 8, 1), numbers(64, 4, 2), .batch_size = 16, .epochs = 2,
                        .seed = 5, .verbose = MIX_SILENT, .callbacks = callbacks)))
    return 1;
  CHECK(epochs == (rank ? 0 : 2));
  return 0;
}

static int run(int argc, char **argv) {
  const char *task = argc > 1 ? argv[1] : "";
  if (!strcmp(task, "collectives")) return collectives();
  if (!strcmp(task, "train") && argc == 7) return train(argv + 2);
  if (!strcmp(task, "integers") && argc == 3) return integers(argv + 2);
  if (!strcmp(task, "float8") && argc == 3) return float8(argv + 2);
  if (!strcmp(task, "batch_norm") && argc == 3) return batch_norm(argv + 2);
  if (!strcmp(task, "batch_norm_alone") && argc == 3) return batch_norm_alone(argv + 2);
  if (!strcmp(task, "one_value") && argc == 3) return one_value(argv + 2);
  if (!strcmp(task, "one_nan")) return one_nan();
  if (!strcmp(task, "one_check")) return one_check();
  if (!strcmp(task, "watched") && argc == 3) return watched(true, argv[2]);
  if (!strcmp(task, "observer") && argc == 3) return watched(false, argv[2]);
  if (!strcmp(task, "dies")) return dies();
  if (!strcmp(task, "differs") && argc == 3) return differs(argv[2]);
  if (!strcmp(task, "files") && argc == 3) return files(argv[2]);
  if (!strcmp(task, "rows")) return rows_task(argc - 2, argv + 2);
  if (!strcmp(task, "shard")) return shard_task(argc - 2, argv + 2);
  return fail("unknown task");
}

int main(int argc, char **argv) {
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_set_threads(1);
  mix_scope *scope = mix_scope_begin();
  mix_distribution *distribution = mix_distribution_mpi();
  if (mix_set_distribution(distribution) != MIX_OK) return fail("mix_set_distribution");
  rank = mix_distribution_rank(distribution);
  ranks = mix_distribution_size(distribution);
  const int code = run(argc, argv);
  if (code) return code; /* without an end of MPI: the launcher ends the others */
  mix_set_distribution(NULL);
  mix_scope_end(scope);
  return 0;
}
