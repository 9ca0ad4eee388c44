/* Stopped and resumed runs: runs of several kinds, their final state, and a bit-for-bit comparison. */
#ifndef MIX_TESTS_SAVING_RESUME_SUPPORT_H
#define MIX_TESTS_SAVING_RESUME_SUPPORT_H

#include "model/support.h"
#include "support/folder.h"
#include <mixtape/callback.h>
#include <mixtape/checkpoint.h>
#include <mixtape/recurrent.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct run_kind {
  const char *optimizer, *policy, *semantics;
  /* Of a dynamic loss scale; 0: the default. */
  double initial_scale;
  bool dropout, normalization, validation, class_weights, no_shuffle, callbacks, dataset, frozen, stateful;
  int64_t rows, batch_size, epochs, steps_per_epoch;
  mix_dataset *(*pipeline)(mix_dataset *rows);
} run_kind;

/* The final state of a run. */
typedef struct run_result {
  unsigned char *bits; /* weights, then optimizer and loss scale */
  size_t size;
  double history[256];
  int history_count;
  step_losses_seen steps;
} run_result;

static inline mix_model *model_of(const run_kind *kind) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(6), .batch_size = kind->stateful ? kind->batch_size : 0);
  mix_tensor *x = mix_call(mix_dense(.units = 7, .activation = "relu"), inputs);
  if (kind->stateful) {
    x = mix_call(mix_reshape_layer(MIX_SHAPE(7, 1)), x);
    x = mix_call(mix_bidirectional(mix_gru(3, .stateful = true, .return_sequences = true)), x);
    x = mix_call(mix_lstm(4, .stateful = true, .dropout = 0.25, .recurrent_dropout = 0.25), x);
  }
  if (kind->normalization) x = mix_call(mix_batch_normalization(.momentum = 0.9), x);
  if (kind->dropout) x = mix_call(mix_dropout(.rate = 0.3), x);
  if (kind->dropout) x = mix_call(mix_gaussian_noise(.stddev = 0.1), x);
  x = mix_call(mix_dense(.units = 3, .not_trainable = kind->frozen), x);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_optimizer *optimizer = mix_optimizer_from_text(kind->optimizer ? kind->optimizer : "rmsprop", NULL);
  if (kind->initial_scale > 0)
    optimizer =
        mix_loss_scale_optimizer(optimizer, .initial_scale = kind->initial_scale, .dynamic_growth_steps = 3);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer,
                    .metrics = {"accuracy", "sparse_top_k_categorical_accuracy"});
  assert_no_error();
  return model;
}

/* One run as in a new process: `seed` is its seed, all objects are new. steps 0: to the end. backup NULL: no
 * checkpoints. */
static inline void run_once(const run_kind *kind, uint64_t seed, int64_t steps, mix_callback *backup,
                            run_result *result) {
  mix_set_seed(seed);
  mix_set_semantics(kind->semantics ? kind->semantics : "tf_keras");
  mix_set_global_policy(kind->policy ? kind->policy : "float32");
  mix_model *model = model_of(kind);
  examples e = examples_of(kind->rows, 6, 3), v = examples_of(10, 6, 3);
  mix_list *callbacks = mix_list_new(0, NULL);
  if (backup) mix_list_append(callbacks, backup); /* it saves after the others' hooks although it is first */
  if (kind->callbacks) {
    mix_list_append(callbacks, mix_early_stopping(.monitor = "loss", .patience = 1, .min_delta = 0.02,
                                                  .restore_best_weights = true));
    mix_list_append(callbacks, mix_reduce_lr_on_plateau(.monitor = "loss", .patience = 1, .factor = 0.5,
                                                        .min_delta = 0.05));
    mix_list_append(callbacks, mix_csv_logger(in_folder("log.csv")));
    mix_list_append(callbacks,
                    mix_model_checkpoint(in_folder("best.npz"), .monitor = "loss", .save_best_only = true));
  }
  mix_fit_options fit = {.size = sizeof fit,
                         .x = e.x,
                         .y = e.y,
                         .batch_size = kind->batch_size,
                         .epochs = kind->epochs,
                         .no_shuffle = kind->no_shuffle,
                         .verbose = MIX_SILENT,
                         .steps = steps,
                         .steps_per_epoch = kind->steps_per_epoch,
                         .on_step = see_step,
                         .context = &result->steps,
                         .callbacks = callbacks};
  if (kind->dataset) {
    mix_dataset *rows = mix_dataset_from_tensors(e.x, e.y);
    fit.x = kind->pipeline ? kind->pipeline(rows)
                           : mix_dataset_batch(mix_dataset_shuffle(rows, 7), kind->batch_size);
    fit.y = NULL;
    fit.batch_size = 0;
  }
  if (kind->validation) fit.validation_x = v.x, fit.validation_y = v.y;
  if (kind->class_weights) {
    fit.class_weight_count = 3;
    memcpy(fit.class_labels, (const int64_t[]){0, 1, 2}, sizeof(int64_t[3]));
    memcpy(fit.class_weights, (const double[]){1, 2, 0.5}, sizeof(double[3]));
  }
  mix_history *history = mix_model_fit_with(model, &fit);
  assert_no_error();
  mix_list *all = mix_model_weights(model), *state = mix_optimizer_variables(mix_model_optimizer(model));
  for (int i = 0; i < mix_list_count(state); i++) mix_list_append(all, mix_list_get(state, i));
  mix_variable *counter = mix_optimizer_dynamic_counter(mix_model_optimizer(model));
  if (counter) mix_list_append(all, counter);
  if (counter)
    mix_list_append(
        all, mix_loss_scale_skipped_steps(mix_optimizer_loss_scale_object(mix_model_optimizer(model))));
  if (counter)
    mix_list_append(all,
                    mix_loss_scale_variable(mix_optimizer_loss_scale_object(mix_model_optimizer(model))));
  free(result->bits);
  result->bits = bits_of(all, &result->size);
  result->history_count = 0;
  for (int64_t epoch = 0; epoch < mix_history_epochs(history); epoch++) {
    const mix_logs *logs = mix_history_epoch(history, epoch);
    for (int i = 0; i < mix_logs_count(logs); i++)
      result->history[result->history_count++] = mix_logs_value(logs, i);
  }
}

static inline void assert_same_run(const run_result *straight, const run_result *resumed, int64_t stop) {
  if (straight->size != resumed->size || memcmp(straight->bits, resumed->bits, straight->size))
    fail_msg("stopped after step %lld, the run ends with other weights or state", (long long)stop);
  if (straight->history_count != resumed->history_count ||
      memcmp(straight->history, resumed->history,
             sizeof *straight->history * (size_t)straight->history_count))
    fail_msg("stopped after step %lld, the run has another history (%d numbers, %d straight)",
             (long long)stop, resumed->history_count, straight->history_count);
  /* The first run's steps, then the second's: none twice, none missing. */
  assert_int_equal(straight->steps.count, resumed->steps.count);
  size_t size = (size_t)straight->steps.count;
  assert_memory_equal(straight->steps.loss, resumed->steps.loss, sizeof(double) * size);
  assert_memory_equal(straight->steps.applied, resumed->steps.applied, sizeof(bool) * size);
  assert_memory_equal(straight->steps.scale, resumed->steps.scale, sizeof(double) * size);
  assert_memory_equal(straight->steps.good_steps, resumed->steps.good_steps, sizeof(int64_t) * size);
}

static inline void read_whole(const char *path, char *text, size_t size) {
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  size_t used = fread(text, 1, size - 1, file);
  fclose(file);
  text[used] = 0;
}

/* Stops the run after each of its steps (or every `stride`-th), resumes as in a new process with another
 * seed, and compares. */
static inline void resume_from_every_step(const run_kind *kind, int64_t stride) {
  static run_result straight, resumed;
  static char csv[2][4096];
  memset(&straight, 0, sizeof straight);
  memset(&resumed, 0, sizeof resumed);
  MIX_SCOPE { run_once(kind, 1, 0, NULL, &straight); }
  if (kind->callbacks) read_whole(in_folder("log.csv"), csv[0], sizeof csv[0]);
  for (int64_t stop = 1; stop < straight.steps.count; stop += stride) {
    forget("backup");
    resumed.steps.count = 0;
    MIX_SCOPE {
      run_once(kind, 1, stop, mix_backup_and_restore(in_folder("backup"), .keep_checkpoint = true), &resumed);
    }
    assert_int_equal(resumed.steps.count, stop);
    MIX_SCOPE { run_once(kind, 77, 0, mix_backup_and_restore(in_folder("backup")), &resumed); }
    assert_same_run(&straight, &resumed, stop);
    if (kind->callbacks) {
      read_whole(in_folder("log.csv"), csv[1], sizeof csv[1]);
      assert_string_equal(csv[0], csv[1]);
    }
    assert_int_equal(access(in_folder("backup"), F_OK), -1); /* removed at the end of training */
  }
  free(straight.bits);
  free(resumed.bits);
}

#endif
