/* Checkpoints: custom loops, mismatches, damaged files, failures in the middle, state of callbacks. */
#include "base/alloc.h"
#include "base/error.h"
#include "saving/resume_support.h"
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define FOLDER in_folder("backup")

/* ---- a custom loop ---- */

typedef struct trainer {
  mix_model *model;
  mix_loss *loss;
  mix_metric *mean;
} trainer;
static mix_list *train_step(void *context, mix_list *batch) {
  trainer *t = context;
  mix_optimizer *optimizer = mix_model_optimizer(t->model);
  mix_list *variables = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(batch, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss, mix_list_get(batch, 1), predictions),
             *scaled = mix_optimizer_scale_loss(optimizer, loss);
  mix_tape_end(tape);
  mix_optimizer_apply(optimizer, mix_tape_gradient(tape, scaled, variables), variables);
  mix_metric_update(t->mean, loss);
  return mix_list_of(loss);
}

/* Runs `stop` steps (0: all 15), from the newest checkpoint in FOLDER if there is one, and saves at the
 * stop. */
static void loop(uint64_t seed, int64_t stop, bool checkpoints, run_result *result) {
  const run_kind kind = {.dropout = true, .policy = "mixed_float16", .initial_scale = 0x1p20};
  mix_set_seed(seed);
  mix_set_global_policy(kind.policy);
  examples e = examples_of(22, 6, 3);
  trainer t = {model_of(&kind), mix_loss_new("sparse_categorical_crossentropy"), mix_metric_mean()};
  mix_dataset *data = mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(e.x, e.y), 8), 5);
  mix_checkpoint *checkpoint =
      checkpoints ? mix_checkpoint_new(FOLDER, .model = t.model, .variables = mix_metric_variables(t.mean))
                  : NULL;
  mix_function *step_function = mix_function_new(train_step, &t);
  int64_t step = 0, epoch = 0;
  for (bool first = true; epoch < 3 && (!stop || step < stop); epoch++) {
    mix_iterator *batches = mix_dataset_iterate(data);
    if (first && checkpoint && (step = mix_checkpoint_restore(checkpoint, batches)) < 0) step = 0;
    if (first && step) epoch = (int64_t)at(mix_checkpoint_get(checkpoint, "epoch"), 0);
    first = false;
    for (mix_list *batch; (!stop || step < stop) && (batch = mix_iterator_next(batches));)
      MIX_SCOPE {
        mix_list *results = mix_function_call(step_function, batch);
        assert_no_error();
        result->steps.loss[result->steps.count++] = mix_tensor_item(mix_list_get(results, 0));
        step++;
      }
    if (checkpoint && step == stop) {
      mix_checkpoint_put(checkpoint, "epoch", mix_scalar((double)epoch, MIX_INT64));
      mix_checkpoint_save(checkpoint, step, batches);
    }
    if (!stop || step < stop) { /* the epoch's mean */
      result->history[result->history_count++] = mix_metric_result(t.mean);
      mix_metric_reset(t.mean);
    }
  }
  assert_no_error();
  mix_list *all = mix_model_weights(t.model), *state = mix_optimizer_variables(mix_model_optimizer(t.model));
  for (int i = 0; i < mix_list_count(state); i++) mix_list_append(all, mix_list_get(state, i));
  free(result->bits);
  result->bits = bits_of(all, &result->size);
}
static void a_custom_loop_resumes_from_any_step(void **state) {
  (void)state;
  static run_result straight, resumed;
  MIX_SCOPE { loop(1, 0, false, &straight); }
  assert_int_equal(straight.steps.count, 15);
  for (int64_t stop = 1; stop < 15; stop++) {
    forget("backup");
    resumed.steps.count = resumed.history_count = 0;
    MIX_SCOPE { loop(1, stop, true, &resumed); }
    MIX_SCOPE { loop(5, 0, true, &resumed); }
    assert_same_run(&straight, &resumed, stop);
  }
  free(straight.bits);
  free(resumed.bits);
}

static void entries_of_a_checkpoint(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = model_of(&(run_kind){0});
  mix_variable *own = mix_variable_new(mix_scalar(3, F32), .name = "own");
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model, .variables = mix_list_of(own));
  assert_int_equal(mix_checkpoint_latest(FOLDER), -1);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), -1); /* a missing checkpoint is no error */
  mix_checkpoint_put(checkpoint, "notes", mix_scalar(1, F32));
  mix_checkpoint_put(checkpoint, "notes", mix_scalar(2, F32));
  mix_checkpoint_put(checkpoint, "notes.npy", mix_scalar(4, MIX_BFLOAT16)); /* a different entry */
  assert_int_equal(mix_checkpoint_save(checkpoint, 4, NULL), MIX_OK);
  assert_int_equal(mix_checkpoint_save(checkpoint, 5, NULL), MIX_OK);
  assert_int_equal(mix_checkpoint_save(checkpoint, 6, NULL), MIX_OK);
  assert_int_equal(mix_checkpoint_latest(FOLDER), 6);
  assert_int_equal(access(in_folder("backup/checkpoint-5.npz"), F_OK), 0); /* the previous one stays */
  assert_int_equal(access(in_folder("backup/checkpoint-4.npz"), F_OK), -1);
  mix_variable_assign(own, mix_scalar(8, F32));
  mix_checkpoint *again = mix_checkpoint_new(FOLDER, .model = model, .variables = mix_list_of(own));
  assert_null(mix_checkpoint_get(again, "notes"));
  assert_int_equal(mix_checkpoint_save(again, 7, NULL), MIX_VALUE_ERROR); /* another run's */
  assert_error(MIX_VALUE_ERROR, "checkpoint-6.npz of another run");
  assert_int_equal(mix_checkpoint_restore(again, NULL), 6);
  assert_true(at(mix_variable_true_value(own), 0) == 3);
  assert_true(at(mix_checkpoint_get(again, "notes"), 0) == 2);
  assert_true(at(mix_checkpoint_get(again, "notes.npy"), 0) == 4);
  assert_int_equal(mix_checkpoint_delete(again), MIX_OK);
  assert_int_equal(access(FOLDER, F_OK), -1);
  /* Without a folder, and with wrong objects. */
  assert_null(mix_checkpoint_new(""));
  assert_error(MIX_VALUE_ERROR, "the folder's name is empty");
  assert_null(mix_checkpoint_new(FOLDER, .variables = mix_list_of(model)));
  assert_error(MIX_TYPE_ERROR, "variables");
  assert_int_equal(mix_checkpoint_save((mix_checkpoint *)model, 1, NULL), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "expected a checkpoint");
  assert_int_equal(mix_checkpoint_save(checkpoint, -1, NULL), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "step is -1");
  assert_null(mix_checkpoint_new(FOLDER, .model = mix_sequential(mix_list_of(mix_dense(.units = 1)))));
  assert_error(MIX_VALUE_ERROR, "mix_model_build");
}

/* ---- mismatches ---- */

static mix_status try_restore(const run_kind *kind, int64_t units) {
  mix_set_global_policy(kind->policy ? kind->policy : "float32");
  mix_set_semantics(kind->semantics ? kind->semantics : "tf_keras");
  mix_model *model = model_of(kind);
  if (units) { /* a model of another width */
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6));
    mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "wide"), inputs);
    model = mix_model_new(inputs, mix_call(mix_activation("softmax"), mix_call(mix_dense(.units = 3), x)));
    mix_model_compile(model, .loss = "mse", .optimizer_name = "rmsprop");
  }
  mix_list *before = mix_model_get_weights(model);
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), -1);
  char message[1024];
  mix_status status = mix_error_take(message, sizeof message);
  for (int i = 0; i < mix_list_count(before); i++) /* nothing was changed */
    assert_true(at(mix_list_get(before, i), 0) == weight_at(model, i, 0));
  mix_set_semantics("tf_keras");
  mix_set_global_policy("float32");
  return mix_fail_status(status, "%s", message);
}
static void mismatches_are_named(void **state) {
  (void)state;
  forget("backup");
  mix_checkpoint_save(mix_checkpoint_new(FOLDER, .model = model_of(&(run_kind){0})), 1, NULL);
  assert_no_error();
  try_restore(&(run_kind){0}, 9);
  assert_error(MIX_VALUE_ERROR, "'wide/kernel' is float32 (6, 9), in the checkpoint");
  try_restore(&(run_kind){.normalization = true}, 0);
  assert_error(MIX_VALUE_ERROR, "weights: 8 variables here, 4 in the checkpoint");
  try_restore(&(run_kind){.policy = "float64"}, 0);
  assert_error(MIX_VALUE_ERROR, "kernel' is float64 (6, 7)");
  try_restore(&(run_kind){.policy = "mixed_bfloat16"}, 0);
  assert_error(MIX_VALUE_ERROR, "policy mixed_bfloat16 here");
  try_restore(&(run_kind){.optimizer = "sgd"}, 0);
  assert_error(
      MIX_VALUE_ERROR,
      "the optimizer is SGD here, RMSprop in the checkpoint; resume with what it was made with, or by force "
      "(--resume=force, .force)");
  try_restore(&(run_kind){.optimizer = "rmsprop:momentum=0.5"}, 0);
  assert_error(MIX_VALUE_ERROR, "optimizer: ");
  try_restore(&(run_kind){.semantics = "keras3"}, 0);
  assert_error(MIX_VALUE_ERROR, "the generation is keras3 here, tf_keras in the checkpoint");
  try_restore(&(run_kind){.dropout = true}, 0);
  assert_error(MIX_VALUE_ERROR, "generators: 2 variables here, 0 in the checkpoint");
}

static mix_history *fit_with(mix_model *model, int64_t batch_size, bool no_shuffle, mix_list *callbacks) {
  examples e = examples_of(20, 6, 3);
  return mix_model_fit(model, e.x, e.y, .batch_size = batch_size, .no_shuffle = no_shuffle, .epochs = 2,
                       .verbose = MIX_SILENT, .callbacks = callbacks);
}
static void fit_rejects_another_runs_checkpoint(void **state) {
  (void)state;
  forget("backup");
  const run_kind kind = {0};
  mix_model *model = model_of(&kind);
  assert_non_null(
      fit_with(model, 5, false, mix_list_of(mix_backup_and_restore(FOLDER, .keep_checkpoint = true))));
  assert_null(fit_with(model_of(&kind), 4, false, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "batch_size is 4 here, 5 in the checkpoint");
  assert_null(fit_with(model_of(&kind), 5, true, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "no_shuffle is 1 here, 0");
  assert_null(fit_with(model_of(&kind), 5, false,
                       mix_list_of(mix_backup_and_restore(FOLDER), mix_backup_and_restore("/tmp/none"))));
  assert_error(MIX_VALUE_ERROR, "two BackupAndRestore");
  examples e = examples_of(20, 6, 3);
  mix_dataset *data = mix_dataset_batch(mix_dataset_from_tensors(e.x, e.y), 5);
  assert_null(mix_model_fit(model_of(&kind), data, NULL, .epochs = 2,
                            .callbacks = mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "data set in place of arrays is 1 here");
  /* A finished run is not trained further, but has its history. */
  mix_history *history = fit_with(model_of(&kind), 5, false, mix_list_of(mix_backup_and_restore(FOLDER)));
  assert_int_equal(mix_history_epochs(history), 2);
  assert_int_equal(mix_history_steps(history), 8);
  forget("backup");
  mix_checkpoint_save(mix_checkpoint_new(FOLDER, .model = model), 1, NULL);
  assert_null(fit_with(model_of(&kind), 5, false, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "mix_checkpoint_restore takes it");
  mix_model *unbuilt = mix_sequential(mix_list_of(mix_dense(.units = 3)));
  mix_model_compile(unbuilt, .loss = "sparse_categorical_crossentropy");
  assert_null(fit_with(unbuilt, 5, false, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "mix_model_build");
}
static mix_list *same(void *context, mix_list *element) {
  (void)context;
  return element;
}
static mix_dataset *shuffle_cached(mix_dataset *rows) {
  return mix_dataset_cache(mix_dataset_shuffle(rows, 8));
}
static mix_dataset *shuffled_twice(mix_dataset *rows) { return mix_dataset_shuffle(shuffle_cached(rows), 8); }
static mix_dataset *cached_rounds(mix_dataset *rows) {
  return mix_dataset_repeat(mix_dataset_cache(mix_dataset_repeat(mix_dataset_shuffle(rows, 4), 2)), 2);
}
static mix_dataset *cached_twice(mix_dataset *rows) {
  return mix_dataset_cache(mix_dataset_map(shuffle_cached(rows), same));
}
static mix_dataset *cached_beside(mix_dataset *rows) {
  mix_dataset *shuffled = mix_dataset_shuffle(rows, 8);
  return mix_dataset_zip(shuffled, mix_dataset_cache(shuffled), shuffled);
}
/* Draws the remaining elements, then two more passes. Returns a hash that depends on their order. */
static uint64_t hash_of_remaining(mix_dataset *data, mix_iterator *iterator) {
  uint64_t hash = 0;
  for (int pass = 0; pass < 3; pass++) {
    if (pass > 0) iterator = mix_dataset_iterate(data);
    for (mix_list *element; (element = mix_iterator_next(iterator));)
      for (int i = 0; i < mix_list_count(element); i++)
        hash = 31 * hash + (uint64_t)at(mix_list_get(element, i), 0);
  }
  assert_no_error();
  return hash;
}
static uint64_t after_passes(mix_dataset *(*pipeline)(mix_dataset *), int64_t left, int64_t passes,
                             int64_t drawn) {
  forget("backup");
  mix_set_seed(1);
  mix_dataset *data = pipeline(mix_dataset_range(0, 8, 1));
  mix_iterator *iterator = mix_dataset_iterate(data);
  for (int64_t i = 0; i < left; i++) mix_iterator_next(iterator);
  for (int64_t pass = 0; pass < passes; pass++) {
    iterator = mix_dataset_iterate(data);
    while (mix_iterator_next(iterator)) {}
  }
  iterator = mix_dataset_iterate(data);
  for (int64_t i = 0; i < drawn; i++) mix_iterator_next(iterator);
  mix_checkpoint_save(mix_checkpoint_new(FOLDER), 1, iterator);
  return hash_of_remaining(data, iterator);
}
/* The pass that refills the cache has the order of the pass that filled it first. */
static void caches_keep_their_order(void **state) {
  (void)state;
  mix_dataset *(*const pipelines[])(mix_dataset *) = {shuffle_cached, shuffled_twice, cached_rounds,
                                                      cached_twice, cached_beside};
  for (size_t p = 0; p < sizeof pipelines / sizeof *pipelines; p++)
    for (int64_t left = 0; left <= 3; left += 3)
      for (int64_t passes = 0; passes < 3; passes++)
        for (int64_t drawn = 0; drawn <= 8; drawn += 4)
          MIX_SCOPE {
            uint64_t expected = after_passes(pipelines[p], left, passes, drawn);
            mix_set_seed(7); /* another process: the shuffles have other seeds */
            mix_dataset *data = pipelines[p](mix_dataset_range(0, 8, 1));
            mix_iterator *iterator = mix_dataset_iterate(data);
            assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER), iterator), 1);
            assert_true(hash_of_remaining(data, iterator) == expected);
          }
}

static void another_data_set_is_refused(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = model_of(&(run_kind){0});
  mix_dataset *range = mix_dataset_range(0, 20, 1),
              *data = mix_dataset_batch(mix_dataset_shuffle(range, 5), 2);
  mix_variable *own = mix_variable_new(mix_scalar(3, F32), .name = "own");
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model, .variables = mix_list_of(own));
  mix_checkpoint_put(checkpoint, "notes", mix_scalar(1, F32));
  mix_checkpoint_save(checkpoint, 1, mix_dataset_iterate(data));
  mix_variable_assign(own, mix_scalar(8, F32));
  checkpoint = mix_checkpoint_new(FOLDER, .model = model, .variables = mix_list_of(own));
  assert_int_equal(mix_checkpoint_restore(checkpoint, mix_dataset_iterate(range)), -1);
  assert_error(MIX_VALUE_ERROR, "the data set's steps are range, in the checkpoint batch, shuffle, range");
  assert_true(at(mix_variable_true_value(own), 0) == 8); /* nothing was changed */
  assert_null(mix_checkpoint_get(checkpoint, "notes"));
}

/* ---- damage ---- */

static char warned[1024];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING) snprintf(warned, sizeof warned, "%s", message);
}

/* The newest file truncated at any byte, or altered: the previous one is used, and the error names the
 * damaged one. */
static void the_previous_one_replaces_a_damaged_one(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = model_of(&(run_kind){.dropout = true});
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  for (int64_t step = 1; step <= 2; step++) {
    mix_checkpoint_put(checkpoint, "step", mix_scalar((double)step, MIX_INT64));
    mix_checkpoint_save(checkpoint, step, NULL);
  }
  assert_no_error();
  char newest[300];
  snprintf(newest, sizeof newest, "%s/checkpoint-2.npz", FOLDER);
  static unsigned char good[1 << 16], bad[1 << 16];
  FILE *file = fopen(newest, "rb");
  size_t size = fread(good, 1, sizeof good, file);
  fclose(file);
  assert_true(size > 1000 && size < sizeof good);
  mix_set_log_callback(keep_warning, NULL);
  for (size_t i = 0; i < 2 * size; i += i < 40 || i > 2 * size - 40 ? 1 : 29) {
    memcpy(bad, good, size);
    bad[i % size] ^= 0x10;
    file = fopen(newest, "wb");
    fwrite(bad, 1, i < size ? i : size, file);
    fclose(file);
    *warned = 0;
    MIX_SCOPE {
      mix_checkpoint *reader = mix_checkpoint_new(FOLDER, .model = model);
      assert_int_equal(mix_checkpoint_restore(reader, NULL), 1);
      assert_no_error();
      assert_true(at(mix_checkpoint_get(reader, "step"), 0) == 1);
    }
    assert_non_null(strstr(warned, newest));
  }
  /* The next save keeps the good one, not the damaged one. */
  checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), 1);
  assert_int_equal(mix_checkpoint_save(checkpoint, 3, NULL), MIX_OK);
  assert_int_equal(access(in_folder("backup/checkpoint-1.npz"), F_OK), 0);
  assert_int_equal(access(newest, F_OK), -1);
  /* Both damaged: the error names the newest, and the folder. */
  for (int step = 1; step <= 3; step += 2) {
    char path[300];
    snprintf(path, sizeof path, "%s/checkpoint-%d.npz", FOLDER, step);
    assert_int_equal(truncate(path, 100), 0);
  }
  assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER, .model = model), NULL), -1);
  assert_error(MIX_FORMAT_ERROR, "checkpoint-3.npz");
  assert_null(fit_with(model_of(&(run_kind){0}), 5, false, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_FORMAT_ERROR, "has no whole checkpoint");
}

/* Out of memory anywhere in a save or a restore: an error, no leak, and the previous file stays. */
static void memory_that_runs_out(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = model_of(&(run_kind){.dropout = true});
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  mix_checkpoint_save(checkpoint, 1, NULL);
  assert_no_error();
  int failures = 0;
  for (int64_t after = 0;; after += after < 50 ? 1 : 17) {
    mix_inject_allocation_failure(after);
    MIX_SCOPE { mix_checkpoint_save(checkpoint, 2, NULL); }
    mix_inject_allocation_failure(-1);
    if (mix_error() == MIX_OK) break;
    assert_int_equal(mix_error_take(NULL, 0), MIX_MEMORY_ERROR);
    assert_int_equal(mix_checkpoint_latest(FOLDER), 1);
    failures++;
  }
  assert_true(failures > 30);
  failures = 0;
  for (int64_t after = 0;; after += after < 50 ? 1 : 17) {
    mix_inject_allocation_failure(after);
    int64_t step = 0;
    MIX_SCOPE { step = mix_checkpoint_restore(checkpoint, NULL); }
    mix_inject_allocation_failure(-1);
    if (step == 2) break;
    assert_int_equal(mix_error_take(NULL, 0), MIX_MEMORY_ERROR);
    failures++;
  }
  assert_true(failures > 30);
}

/* ---- faults of the file system ---- */

/* The library's fsync, which the test can make fail for folders. */
static int folder_flushes, failing_flush; /* errno of a folder's flush; 0: none */
int fsync(int file) {
  struct stat status;
  if (fstat(file, &status) != 0) return -1;
  if (!S_ISDIR(status.st_mode)) return 0;
  folder_flushes++;
  errno = failing_flush;
  return failing_flush ? -1 : 0;
}

static void save_two(mix_model *model) {
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  mix_checkpoint_save(checkpoint, 1, NULL);
  mix_checkpoint_save(checkpoint, 2, NULL);
  assert_no_error();
}

/* A newest file that cannot be read now may be whole: the run does not go on from an older one. */
static void an_unreadable_file_stops(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = model_of(&(run_kind){0});
  MIX_SCOPE { save_two(model); }
  const char *newest = in_folder("backup/checkpoint-2.npz");
  assert_int_equal(unlink(newest), 0);
  assert_int_equal(symlink(newest, newest), 0); /* ELOOP, also for root */
  assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER, .model = model), NULL), -1);
  assert_error(MIX_IO_ERROR, "checkpoint-2.npz");
  assert_int_equal(unlink(newest), 0);
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = model);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), 1);
  struct rlimit before, none;
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  none = before, none.rlim_cur = 0; /* EMFILE */
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
  const int64_t step = mix_checkpoint_restore(checkpoint, NULL);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  assert_int_equal(step, -1);
  assert_error(MIX_IO_ERROR, "Too many open files");
}

/* In a child: exit code 0 if the folder is refused as one in use. */
static int try_in_child(void) {
  pid_t child = fork();
  if (child == 0) {
    mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER);
    const int64_t step = mix_checkpoint_restore(checkpoint, NULL);
    _exit(step == 2 ? 1 : mix_error() == MIX_RUNTIME_ERROR && strstr(mix_error_message(), "in use") ? 0 : 2);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

static void a_folder_in_use_is_locked(void **state) {
  (void)state;
  forget("backup");
  int to_parent[2], to_child[2];
  char byte;
  assert_int_equal(pipe(to_parent), 0);
  assert_int_equal(pipe(to_child), 0);
  pid_t user = fork();
  if (user == 0) { /* another process, which uses the folder until it is killed */
    mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER);
    mix_checkpoint_save(checkpoint, 1, NULL);
    mix_checkpoint_save(checkpoint, 2, NULL);
    byte = mix_error() == MIX_OK;
    alarm(60); /* it does not outlive a failed test for long */
    if (write(to_parent[1], &byte, 1) == 1) pause();
    _exit(1);
  }
  assert_int_equal(read(to_parent[0], &byte, 1), 1);
  assert_int_equal(byte, 1);
  mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), -1);
  assert_error(MIX_RUNTIME_ERROR, "is in use by another process");
  assert_int_equal(mix_checkpoint_delete(checkpoint), MIX_RUNTIME_ERROR);
  assert_error(MIX_RUNTIME_ERROR, "is in use by another process");
  assert_null(fit_with(model_of(&(run_kind){0}), 5, false, mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_RUNTIME_ERROR, "is in use by another process");
  kill(user, SIGKILL);
  assert_int_equal(waitpid(user, NULL, 0), user);
  /* Its lock is gone. Two objects of one process share a folder; the last one to go gives the lock back. */
  MIX_SCOPE {
    mix_checkpoint *first = mix_checkpoint_new(FOLDER);
    assert_int_equal(mix_checkpoint_restore(first, NULL), 2);
    MIX_SCOPE { assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER), NULL), 2); }
    assert_int_equal(mix_checkpoint_save(first, 2, NULL), MIX_OK);
  }
  assert_int_equal(try_in_child(), 1);
  for (int i = 0; i < 2; i++) close(to_parent[i]), close(to_child[i]);
}

static void folders_are_flushed(void **state) {
  (void)state;
  forget("deep");
  mix_model *model = model_of(&(run_kind){0});
  mix_checkpoint *checkpoint = mix_checkpoint_new(in_folder("deep/er/run"), .model = model);
  folder_flushes = 0;
  assert_int_equal(mix_checkpoint_save(checkpoint, 1, NULL), MIX_OK);
  assert_int_equal(folder_flushes, 4); /* three new folders' names, and the file's */
  failing_flush = EIO;
  mix_status status = mix_checkpoint_save(checkpoint, 2, NULL);
  failing_flush = 0;
  assert_int_equal(status, MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "Input/output error");
  forget("deep");
  failing_flush = EIO;
  status = mix_checkpoint_save(checkpoint, 3, NULL);
  failing_flush = 0;
  assert_int_equal(status, MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "the folder cannot be made");
  forget("deep");
  failing_flush = EINVAL; /* a file system without such a request */
  status = mix_checkpoint_save(mix_checkpoint_new(in_folder("deep"), .model = model), 3, NULL);
  failing_flush = 0;
  assert_int_equal(status, MIX_OK);
}

/* ---- another run ---- */

static bool restores(mix_checkpoint *checkpoint, mix_dataset *data) {
  return mix_checkpoint_restore(checkpoint, data ? mix_dataset_iterate(data) : NULL) >= 0;
}

static mix_model *wide_model(const char *activation, const char *loss, const char *optimizer) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6));
  mix_tensor *x = mix_call(mix_dense(.units = 3, .activation = activation), inputs);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = loss, .optimizer = mix_optimizer_from_text(optimizer, NULL));
  assert_no_error();
  return model;
}
static mix_dataset *rows_of(double first, int64_t batch_size) {
  double x[12] = {first, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  return mix_dataset_batch(mix_dataset_from_tensors(mix_tensor_from_doubles(x, F32, MIX_SHAPE(6, 2))),
                           batch_size);
}

/* What variables do not show: the same shapes and classes, and another run. */
static void another_run_is_named(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = wide_model("softmax", "mse", "sgd:learning_rate=0.5");
  mix_checkpoint_save(mix_checkpoint_new(FOLDER, .model = model, .seed = 3), 4,
                      mix_dataset_iterate(rows_of(0, 2)));
  assert_no_error();
  static const struct {
    const char *activation, *loss, *optimizer, *message;
    uint64_t seed;
    int first, batch_size;
  } runs[] = {
      {"softmax", "mse", "sgd:learning_rate=0.5", NULL, 3, 0, 2},
      {"tanh", "mse", "sgd:learning_rate=0.5",
       "model[2].config.activation is \"tanh\" here, \"softmax\" in the checkpoint", 3, 0, 2},
      {"softmax", "mae", "sgd:learning_rate=0.5", "loss[0].class_name is \"MeanAbsoluteError\" here", 3, 0,
       2},
      {"softmax", "mse", "sgd:learning_rate=0.25",
       "optimizer: learning_rate is 0.25 here, 0.5 in the checkpoint", 3, 0, 2},
      {"softmax", "mse", "sgd:learning_rate=0.5", "seed is 4 here, 3 in the checkpoint", 4, 0, 2},
      {"softmax", "mse", "sgd:learning_rate=0.5", "data set[0] is \"batch 3\" here, \"batch 2\" in", 3, 0, 3},
      {"softmax", "mse", "sgd:learning_rate=0.5", "data set[2].sha256 is", 3, 1, 2},
  };
  for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
    MIX_SCOPE {
      mix_model *other = wide_model(runs[i].activation, runs[i].loss, runs[i].optimizer);
      mix_dataset *data = rows_of(runs[i].first, runs[i].batch_size);
      mix_checkpoint *checkpoint = mix_checkpoint_new(FOLDER, .model = other, .seed = runs[i].seed);
      assert_int_equal(restores(checkpoint, data), !runs[i].message);
      if (runs[i].message) {
        assert_error(MIX_VALUE_ERROR, runs[i].message);
        *warned = 0;
        mix_set_log_callback(keep_warning, NULL);
        checkpoint = mix_checkpoint_new(FOLDER, .model = other, .seed = runs[i].seed, .force = true);
        mix_iterator *batches = mix_dataset_iterate(data);
        assert_int_equal(mix_checkpoint_restore(checkpoint, batches), 4);
        mix_set_log_callback(NULL, NULL);
        assert_non_null(strstr(warned, runs[i].message));
        assert_null(strstr(warned, "resume with"));
        assert_non_null(mix_iterator_next(batches)); /* the pass begins anew */
      }
      assert_true(weight_at(other, 0, 0) == weight_at(model, 0, 0));
    }
    assert_no_error();
  }
  /* By force the learning rate stays as given. */
  mix_model *other = wide_model("softmax", "mse", "sgd:learning_rate=0.25");
  assert_true(restores(mix_checkpoint_new(FOLDER, .model = other, .seed = 3, .force = true), rows_of(0, 2)));
  assert_near(mix_optimizer_learning_rate(mix_model_optimizer(other)), 0.25, 0);
}

/* Settings that decide about numbers, but not about a variable. */
static void other_settings_are_named(void **state) {
  (void)state;
  forget("backup");
  mix_model *model = wide_model("softmax", "mse", "sgd");
  mix_checkpoint_save(mix_checkpoint_new(FOLDER, .model = model), 4, NULL);
  static const char *const messages[] = {
      "deterministic is true here, false in the checkpoint; resume with",
      "float32 precision is \"high\" here, \"highest\" in the checkpoint; resume with",
      "jit_compile is true here, false in the checkpoint; resume with"};
  for (int i = 0; i < 3; i++) {
    if (i == 0) mix_set_deterministic(true);
    if (i == 1) mix_set_float32_precision("high");
    if (i == 2) mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(), .jit_compile = true);
    assert_false(restores(mix_checkpoint_new(FOLDER, .model = model), NULL));
    assert_error(MIX_VALUE_ERROR, messages[i]);
    assert_true(restores(mix_checkpoint_new(FOLDER, .model = model, .force = true), NULL));
    mix_set_deterministic(false);
    mix_set_float32_precision("highest");
  }
}

/* A checkpoint without an optimizer, by force: the optimizer begins anew. */
static void force_without_an_optimizer(void **state) {
  (void)state;
  forget("backup");
  forget("second");
  mix_model *model = mix_sequential(mix_list_of(mix_dense(2, .activation = "softmax")));
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 3));
  mix_checkpoint_save(mix_checkpoint_new(FOLDER, .model = model), 4, NULL);
  mix_model *other = mix_sequential(mix_list_of(mix_dense(2, .activation = "softmax")));
  mix_model_build(other, MIX_SHAPE(MIX_UNKNOWN, 3));
  mix_model_compile(other, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.05));
  assert_no_error();
  assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER, .model = other), NULL), -1);
  assert_error(MIX_VALUE_ERROR, "none in the checkpoint");
  assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(FOLDER, .model = other, .force = true), NULL),
                   4);
  assert_no_error();
  assert_true(weight_at(other, 0, 0) == weight_at(model, 0, 0));
  mix_checkpoint_save(mix_checkpoint_new(in_folder("second"), .model = other), 5, NULL);
  mix_model_compile(other, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.3));
  assert_int_equal(mix_checkpoint_restore(mix_checkpoint_new(in_folder("second"), .model = other), NULL), -1);
  assert_error(MIX_VALUE_ERROR, "learning_rate is 0.3 here, 0.05 in the checkpoint");
}

static mix_list *one_row(void *context, int64_t index) {
  (void)context;
  return index < 4 ? mix_list_of(mix_scalar((double)index, F32)) : NULL;
}
static void a_generator_is_warned_of(void **state) {
  (void)state;
  forget("backup");
  *warned = 0;
  mix_set_log_callback(keep_warning, NULL);
  mix_dataset *data = mix_dataset_from_generator(one_row);
  mix_status status = mix_checkpoint_save(mix_checkpoint_new(FOLDER), 1, mix_dataset_iterate(data));
  mix_set_log_callback(NULL, NULL);
  assert_int_equal(status, MIX_OK);
  assert_non_null(strstr(warned, "generator"));
}

/* fit: other arrays of the same shape, and by force the rest of the run with them. */
static void fit_names_other_data(void **state) {
  (void)state;
  forget("backup");
  examples e = examples_of(20, 6, 3), other = examples_of(20, 6, 3);
  const run_kind kind = {0};
  other.x = mix_add(other.x, mix_scalar(1, F32));
  assert_non_null(mix_model_fit(
      model_of(&kind), e.x, e.y, .batch_size = 5, .epochs = 2, .steps = 6, .verbose = MIX_SILENT,
      .callbacks = mix_list_of(mix_backup_and_restore(FOLDER, .keep_checkpoint = true))));
  assert_null(mix_model_fit(model_of(&kind), other.x, other.y, .batch_size = 5, .epochs = 2,
                            .verbose = MIX_SILENT, .callbacks = mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "data[0].sha256");
  /* In one process MIX_LOCAL says nothing. */
  assert_null(mix_model_fit(model_of(&kind), other.x, other.y, .batch_size = 5, .epochs = 2,
                            .verbose = MIX_SILENT, .rows = MIX_LOCAL,
                            .callbacks = mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "data[0].sha256");
  assert_null(mix_model_fit(model_of(&kind), e.x, e.y, .batch_size = 5, .epochs = 2, .seed = 9,
                            .verbose = MIX_SILENT, .callbacks = mix_list_of(mix_backup_and_restore(FOLDER))));
  assert_error(MIX_VALUE_ERROR, "seed is 9 here, 0 in the checkpoint");
  mix_history *history =
      mix_model_fit(model_of(&kind), other.x, other.y, .batch_size = 4, .epochs = 2, .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_backup_and_restore(FOLDER, .force = true)));
  assert_no_error();
  assert_int_equal(mix_history_epochs(history), 2);
  assert_int_equal(mix_history_steps(history), 6 + 5); /* the second epoch begins anew */
}

/* ---- callbacks ---- */

typedef struct counter {
  double batches;
  bool fails;
} counter;
static mix_status count_batch(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  (void)model, (void)index, (void)logs;
  ((counter *)context)->batches++;
  return MIX_OK;
}
static mix_list *get_count(void *context) {
  return mix_list_of(mix_scalar(((counter *)context)->batches, MIX_FLOAT64));
}
static mix_status set_count(void *context, mix_model *model, mix_list *state) {
  (void)model;
  counter *c = context;
  assert_int_equal(mix_list_count(state), 1);
  c->batches = mix_tensor_item(mix_list_get(state, 0));
  return c->fails ? MIX_VALUE_ERROR : MIX_OK;
}
static mix_callback *counting_callback(counter *c) {
  return mix_callback_new(.name = "counter", .context = c, .on_train_batch_end = count_batch,
                          .no_batch_logs = true, .get_state = get_count, .set_state = set_count);
}
static void custom_callbacks_have_state(void **state) {
  (void)state;
  forget("backup");
  const run_kind kind = {0};
  counter a = {0}, b = {0}, c = {.fails = true};
  examples e = examples_of(20, 6, 3);
  assert_non_null(mix_model_fit(
      model_of(&kind), e.x, e.y, .batch_size = 5, .epochs = 2, .steps = 3, .verbose = MIX_SILENT,
      .callbacks =
          mix_list_of(mix_backup_and_restore(FOLDER, .keep_checkpoint = true), counting_callback(&a))));
  assert_null(fit_with(model_of(&kind), 5, false,
                       mix_list_of(mix_backup_and_restore(FOLDER), counting_callback(&c))));
  assert_error(MIX_VALUE_ERROR, "'counter' could not take back its state");
  assert_non_null(fit_with(model_of(&kind), 5, false,
                           mix_list_of(counting_callback(&b), mix_backup_and_restore(FOLDER))));
  assert_true(a.batches == 3 && b.batches == 8);
}

static double seen_rate(void *context, int64_t epoch, double rate) {
  (*(int *)context)++;
  return epoch ? rate / 2 : rate;
}
/* A scheduler that halves the rate at the start of an epoch must not halve it again when the epoch is
 * resumed. */
static void a_resumed_epoch_sets_the_rate_once(void **state) {
  (void)state;
  forget("backup");
  const run_kind kind = {0};
  examples e = examples_of(20, 6, 3);
  double rates[2];
  int calls = 0;
  for (int resumed = 0; resumed < 2; resumed++) {
    mix_model *model = model_of(&kind);
    for (int part = !resumed; part < 2; part++) {
      if (part) model = resumed ? model_of(&kind) : model;
      mix_model_fit(model, e.x, e.y, .batch_size = 5, .epochs = 3, .steps = part ? 0 : 6,
                    .verbose = MIX_SILENT,
                    .callbacks = mix_list_of(mix_learning_rate_scheduler(seen_rate, &calls),
                                             mix_backup_and_restore(FOLDER, .keep_checkpoint = !part)));
    }
    assert_no_error();
    rates[resumed] = mix_optimizer_learning_rate(mix_model_optimizer(model));
  }
  assert_true(rates[0] == rates[1]);
}

static void frequencies(void **state) {
  (void)state;
  forget("backup");
  const run_kind kind = {0};
  /* 8 steps: saves after 3 and 6, but not at the ends of the last two epochs. */
  assert_non_null(
      fit_with(model_of(&kind), 5, false,
               mix_list_of(mix_backup_and_restore(FOLDER, .save_freq = 3, .keep_checkpoint = true))));
  assert_int_equal(mix_checkpoint_latest(FOLDER), 6);
  assert_int_equal(access(in_folder("backup/checkpoint-3.npz"), F_OK), 0);
  forget("backup");
  assert_non_null(
      fit_with(model_of(&kind), 5, false,
               mix_list_of(mix_backup_and_restore(FOLDER, .keep_checkpoint = true, .only_newest = true))));
  assert_int_equal(mix_checkpoint_latest(FOLDER), 8);
  assert_int_equal(access(in_folder("backup/checkpoint-4.npz"), F_OK), -1);
  assert_non_null(fit_with(
      model_of(&kind), 5, false,
      mix_list_of(mix_callback_from_text("BackupAndRestore:backup_dir=/tmp/mixtape-none,save_freq=epoch,"
                                         "delete_checkpoint=true,double_checkpoint=true"))));
  assert_int_equal(access("/tmp/mixtape-none", F_OK), -1);
  assert_null(mix_callback_from_text("backup_and_restore:save_freq=2"));
  assert_error(MIX_VALUE_ERROR, "backup_dir is missing");
  assert_null(mix_callback_from_text("backup_and_restore:backup_dir=x,save_freq=often"));
  assert_error(MIX_VALUE_ERROR, "epoch, batch or a number of batches");
  assert_null(mix_callback_from_text("backup_and_restore:backup_dir=x,save_freq=-2"));
  assert_error(MIX_VALUE_ERROR, "save_freq is -2");
  assert_null(fit_with(model_of(&kind), 5, false, mix_list_of(mix_backup_and_restore("/dev/null/x"))));
  assert_error(MIX_IO_ERROR, "/dev/null");
}

/* ---- rows of mixed precision ---- */

/* A Dense layer of one unit; its loss is the mean output, so that the gradient of its one weight is x = 1. */
static mix_tensor *mean_output(void *context, mix_tensor *y_true, mix_tensor *y_pred) {
  (void)context, (void)y_true;
  return mix_reduce_mean(y_pred, MIX_AXES(-1), false);
}
static mix_model *unit_model(const char *policy, mix_optimizer *optimizer) {
  mix_set_global_policy(policy);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1), .name = "x");
  mix_layer *dense = mix_dense(.units = 1, .no_bias = true, .name = "dense");
  mix_model *model = mix_model_new(x, mix_call(dense, x));
  mix_model_compile(model, .loss_object = mix_loss_new(.function = mean_output), .optimizer = optimizer);
  assert_no_error();
  return model;
}
static mix_list *ones(int rows) {
  mix_tensor *one = mix_fill(MIX_SHAPE(rows, 1), 1, F32);
  return mix_list_of(one, one);
}
static void step_once(mix_model *model) {
  mix_model_train_on_batch(model, mix_list_get(ones(1), 0), mix_list_get(ones(1), 1));
  assert_no_error();
}
static double weight_of(mix_model *model) {
  return at(mix_variable_true_value(mix_list_get(mix_model_weights(model), 0)), 0);
}
static void expect_scale(mix_model *model, double scale, double good_steps) {
  mix_optimizer *optimizer = mix_model_optimizer(model);
  assert_true(mix_tensor_item(mix_optimizer_loss_scale(optimizer)) == scale);
  assert_true(at(mix_variable_true_value(mix_optimizer_dynamic_counter(optimizer)), 0) == good_steps);
}
static mix_checkpoint *checkpoint_of(mix_model *model) { return mix_checkpoint_new(FOLDER, .model = model); }

/* A file of weights: a checkpoint of training refuses another policy and optimizer. */
static void V22_weights_of_a_mixed_model_in_a_float32_model(void **state) {
  (void)state;
  mix_model *mixed = unit_model("mixed_float16", NULL), *plain = unit_model("float32", NULL);
  const double value = 1 + 0x1p-23; /* no float16 number */
  mix_variable_assign(mix_list_get(mix_model_weights(mixed), 0), mix_fill(MIX_SHAPE(1, 1), value, F32));
  assert_int_equal(mix_model_save_weights(mixed, in_folder("weights.npz")), MIX_OK);
  assert_true(weight_of(plain) != value);
  assert_int_equal(mix_model_load_weights(plain, in_folder("weights.npz")), MIX_OK);
  assert_no_error();
  assert_true(weight_of(plain) == value);
}

/* Rate 1, momentum 1: v is 2, 1, -1. A second model restores the state after the first step. */
static mix_model *momentum_model(void) {
  mix_optimizer *optimizer = mix_loss_scale_optimizer(mix_sgd(.learning_rate = 1, .momentum = 1),
                                                      .initial_scale = 1, .dynamic_growth_steps = 2);
  mix_model *model = unit_model("mixed_float16", optimizer);
  mix_variable_assign(mix_list_get(mix_model_weights(model), 0), mix_fill(MIX_SHAPE(1, 1), 2, F32));
  return model;
}
static double momentum_of(mix_model *model) {
  mix_optimizer *inner = mix_optimizer_inner(mix_model_optimizer(model));
  mix_variable *slot = mix_optimizer_slot(inner, mix_list_get(mix_model_weights(model), 0), "m");
  if (!slot) slot = mix_optimizer_slot(inner, mix_list_get(mix_model_weights(model), 0), "momentum");
  assert_non_null(slot);
  return at(mix_variable_true_value(slot), 0);
}
static void O33_a_checkpoint_file_has_scale_counter_and_slots(void **state) {
  (void)state;
  forget("backup");
  mix_model *first = momentum_model(), *again = momentum_model();
  step_once(first);
  assert_int_equal(mix_checkpoint_save(checkpoint_of(first), 1, NULL), MIX_OK);
  step_once(first);
  mix_model *models[] = {first, again}; /* the model itself goes back, and another one goes on */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(mix_checkpoint_restore(checkpoint_of(models[i]), NULL), 1);
    assert_no_error();
    assert_true(weight_of(models[i]) == 1 && momentum_of(models[i]) == -1);
    assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(models[i])), 1);
    expect_scale(models[i], 1, 1);
    step_once(models[i]);
    assert_true(weight_of(models[i]) == -1 && momentum_of(models[i]) == -2);
    assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(models[i])), 2);
    expect_scale(models[i], 2, 0);
  }
}

static void O34_fit_goes_on_from_a_checkpoint_file(void **state) {
  (void)state;
  forget("backup");
  mix_model *model =
      unit_model("mixed_float16", mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.5), .initial_scale = 1,
                                                           .dynamic_growth_steps = 2));
  mix_list *three = ones(3);
#define FIT(steps_)                                                                                          \
  mix_model_fit(model, mix_list_get(three, 0), mix_list_get(three, 1), .batch_size = 1, .steps = (steps_),   \
                .verbose = MIX_SILENT)
  FIT(3);
  expect_scale(model, 2, 1);
  mix_checkpoint *checkpoint = checkpoint_of(model);
  assert_int_equal(mix_checkpoint_save(checkpoint, 3, NULL), MIX_OK);
  FIT(1);
  expect_scale(model, 4, 0);
  assert_int_equal(mix_checkpoint_restore(checkpoint, NULL), 3);
  expect_scale(model, 2, 1);
  FIT(1);
  expect_scale(model, 4, 0);
#undef FIT
  assert_no_error();
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_custom_loop_resumes_from_any_step),
                                     TEST(V22_weights_of_a_mixed_model_in_a_float32_model),
                                     TEST(O33_a_checkpoint_file_has_scale_counter_and_slots),
                                     TEST(O34_fit_goes_on_from_a_checkpoint_file),
                                     TEST(entries_of_a_checkpoint),
                                     TEST(mismatches_are_named),
                                     TEST(fit_rejects_another_runs_checkpoint),
                                     TEST(caches_keep_their_order),
                                     TEST(another_data_set_is_refused),
                                     TEST(the_previous_one_replaces_a_damaged_one),
                                     TEST(memory_that_runs_out),
                                     TEST(an_unreadable_file_stops),
                                     TEST(a_folder_in_use_is_locked),
                                     TEST(folders_are_flushed),
                                     TEST(another_run_is_named),
                                     TEST(other_settings_are_named),
                                     TEST(force_without_an_optimizer),
                                     TEST(a_generator_is_warned_of),
                                     TEST(fit_names_other_data),
                                     TEST(custom_callbacks_have_state),
                                     TEST(a_resumed_epoch_sets_the_rate_once),
                                     TEST(frequencies)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
