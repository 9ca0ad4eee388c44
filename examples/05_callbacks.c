/* Callbacks of Keras and a custom one, called while a model trains on the built-in digits. They set the
 * learning rate, monitor the loss scale, stop early, and write the best weights, a CSV log and TensorBoard
 * event files.
 *
 *   05_callbacks [FOLDER [EPOCHS]]
 *   tensorboard --logdir FOLDER/logs */
#include <mixtape/callback.h>
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

/* The learning rate of an epoch from the previous one: constant for three epochs, then halved in each. */
static double constant_then_halved(void *context, int64_t epoch, double learning_rate) {
  (void)context;
  return epoch < 3 ? learning_rate : learning_rate / 2;
}

/* A custom callback. Its context holds what it needs between hooks. Values it adds to the logs are visible to
 * the history and to later callbacks. */
typedef struct watch {
  int64_t skipped; /* steps skipped by loss scaling before the epoch */
} watch;

static mix_status begin_epoch(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  (void)epoch, (void)logs;
  ((watch *)context)->skipped = mix_optimizer_skipped_steps(mix_model_optimizer(model));
  return MIX_OK;
}

static mix_status report_epoch(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  const watch *w = context;
  mix_optimizer *optimizer = mix_model_optimizer(model);
  const int64_t skipped = mix_optimizer_skipped_steps(optimizer) - w->skipped;
  const double scale = mix_tensor_item(mix_optimizer_loss_scale(optimizer));
  printf("Epoch %lld: learning rate %g, loss scale %g, %lld steps skipped, val_loss %.3f\n", (long long)epoch,
         mix_optimizer_learning_rate(optimizer), scale, (long long)skipped, mix_logs_get(logs, "val_loss"));
  /* A status other than MIX_OK would end fit with that error. */
  return mix_logs_set(logs, "loss_scale", scale);
}

static mix_model *guide_model(int units) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  return mix_model_new(inputs,
                       mix_call(mix_activation("softmax", .dtype = "float32", .name = "predictions"), x));
}

int main(int argc, char **argv) {
  const char *folder = argc > 1 ? argv[1] : ".";
  const int epochs = argc > 2 ? atoi(argv[2]) : 30;
  char logs[1024], table[1024], weights[1024], backup[1024];
  snprintf(logs, sizeof logs, "%s/logs", folder);
  snprintf(table, sizeof table, "%s/log.csv", folder);
  snprintf(backup, sizeof backup, "%s/backup", folder);
  snprintf(weights, sizeof weights, "%s/best.npz", folder);

  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  mix_images digits = mix_digits_load();
  mix_model *model = guide_model(64);
  /* The initial scale is far too large: steps are skipped until it has come down. */
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"},
                    .optimizer = mix_loss_scale_optimizer(mix_rmsprop(), .initial_scale = 0x1p30));

  watch context = {0};
  mix_list *callbacks = mix_list_of(
      mix_learning_rate_scheduler(constant_then_halved, NULL), /* before callbacks that read it */
      mix_callback_new(.on_epoch_begin = begin_epoch, .on_epoch_end = report_epoch, .context = &context),
      mix_early_stopping(.patience = 2, .min_delta = 0.005, .restore_best_weights = true), /* on val_loss */
      mix_model_checkpoint(weights, .save_best_only = true), /* the weights only */
      mix_terminate_on_nan(), mix_csv_logger(table),         /* one row per epoch */
      mix_tensorboard(logs, .histogram_freq = 1, .update_freq = 50),
      mix_backup_and_restore(backup)); /* a killed run resumes where it was */
  mix_history *history =
      mix_model_fit(model, digits.x_train, digits.y_train, .batch_size = 128, .epochs = epochs, .seed = 1,
                    .validation_split = 0.2, .verbose = MIX_SILENT, .callbacks = callbacks);

  /* The model and the file both hold the weights of the best epoch. */
  mix_logs *restored = mix_model_evaluate(model, digits.x_test, digits.y_test, .verbose = MIX_SILENT);
  mix_model_load_weights(model, weights);
  mix_logs *loaded = mix_model_evaluate(model, digits.x_test, digits.y_test, .verbose = MIX_SILENT);
  if (!mix_error())
    printf("%lld of %d epochs, test accuracy %.3f, from the file %.3f\n",
           (long long)mix_history_epochs(history), epochs, mix_logs_get(restored, "accuracy"),
           mix_logs_get(loaded, "accuracy"));

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
