/* --loop custom: the guide's second half. A captured step of tape, scaled loss and optimizer, over batches of a shuffled data set. */
#include "cli/cli.h"

#include <math.h>
#include <string.h>

typedef struct training {
  mix_model *model;
  mix_loss *loss_object;
  mix_optimizer *optimizer;
} training;

/* Bytes of images are divided by 255 in float32, before the model. */
static mix_tensor *model_input(mix_tensor *x) {
  return mix_tensor_dtype(x) == MIX_UINT8 ? mix_divide(mix_cast(x, MIX_FLOAT32), mix_scalar(255, MIX_FLOAT32)) : x;
}

static mix_tensor *batch_accuracy(mix_tensor *labels, mix_tensor *predictions) {
  mix_tensor *right = mix_equal(mix_argmax(predictions, -1), mix_cast(labels, MIX_INT64));
  return mix_reduce_mean(mix_cast(right, MIX_FLOAT32), MIX_ALL_AXES, false);
}

static mix_list *train_step(void *context, mix_list *batch) {
  training *t = context;
  mix_list *variables = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, model_input(mix_list_get(batch, 0)), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss_object, mix_list_get(batch, 1), predictions);
  mix_tensor *scaled_loss = mix_optimizer_scale_loss(t->optimizer, loss);
  mix_tape_end(tape);
  mix_list *scaled_gradients = mix_tape_gradient(tape, scaled_loss, variables);
  mix_optimizer_apply(t->optimizer, scaled_gradients, variables);
  mix_tensor *applied = mix_optimizer_applied(t->optimizer);
  return mix_list_of(loss, batch_accuracy(mix_list_get(batch, 1), predictions), applied ? applied : mix_scalar(1, MIX_BOOL));
}

/* The record of a step for its log. */
static void log_step(const training *t, cli_step_log *log, int64_t step, int64_t epoch, mix_list *results, mix_logs *metrics) {
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
  if (good_steps) record.has_good_steps = true, record.good_steps = (int64_t)mix_tensor_item(mix_variable_value(good_steps));
  if (mix_error() == MIX_OK) cli_step_log_write(log, &record);
}

static mix_tensor *rows(mix_tensor *x, int64_t first, int64_t count) {
  mix_shape begin = mix_tensor_shape(x), size = begin;
  memset(begin.dims, 0, sizeof begin.dims);
  begin.dims[0] = first;
  size.dims[0] = count;
  return mix_slice(x, begin, size);
}

bool cli_train_custom(const cli_options *options, mix_model *model, const cli_data *data, cli_history *history, cli_step_log *log) {
  training t = {.model = model, .loss_object = mix_loss_new(options->loss), .optimizer = mix_model_optimizer(model)};
  mix_tensor *x = data->x_train, *y = data->y_train, *x_held = NULL, *y_held = NULL;
  int64_t total = mix_tensor_shape(x).dims[0], count = (int64_t)floor((double)total * (1.0 - options->validation_split));
  if (count == 0 || (count == total && options->validation_split > 0)) {
    fprintf(stderr, "mixtape train: --validation-split %g of %lld examples leaves a part empty\n", options->validation_split,
            (long long)total);
    return false;
  }
  if (count < total) {
    x_held = rows(x, count, total - count);
    y_held = rows(y, count, total - count);
    x = rows(x, 0, count);
    y = rows(y, 0, count);
  }
  int64_t batch_size = options->batch_size ? options->batch_size : 32;
  int64_t epochs = options->epochs ? options->epochs : options->steps ? INT64_MAX / 2 : 1;
  mix_dataset *train = mix_dataset_from_tensors(x, y);
  if (!options->no_shuffle) train = mix_dataset_shuffle(train, 10000, .seed = options->seed);
  train = mix_dataset_batch(train, batch_size);
  mix_function *step = mix_function_new(train_step, &t, .jit_compile = options->jit_compile);
  for (int64_t epoch = 0; epoch < epochs && mix_error() == MIX_OK && (!options->steps || history->steps < options->steps); epoch++)
    MIX_SCOPE {
      double loss = 0, right = 0, seen = 0;
      mix_iterator *batches = mix_dataset_iterate(train);
      for (mix_list *batch;
           mix_error() == MIX_OK && (!options->steps || history->steps < options->steps) && (batch = mix_iterator_next(batches));)
        MIX_SCOPE {
          mix_list *results = mix_function_call(step, batch);
          if (results) {
            double size = (double)mix_tensor_shape(mix_list_get(batch, 1)).dims[0],
                   accuracy = mix_tensor_item(mix_list_get(results, 1));
            loss += size * mix_tensor_item(mix_list_get(results, 0));
            right += size * accuracy;
            seen += size;
            history->steps++;
            if (log->file) {
              mix_logs *metrics = mix_logs_of(1, (const char *const[]){"accuracy"}, &accuracy);
              log_step(&t, log, history->steps, epoch, results, metrics);
            }
          }
        }
      if (mix_error() == MIX_OK) {
        cli_history_add(history, epoch, "loss", loss / seen);
        cli_history_add(history, epoch, "accuracy", right / seen);
        if (options->verbose) fprintf(stderr, "Epoch %lld: loss=%g - accuracy=%g\n", (long long)epoch, loss / seen, right / seen);
        mix_logs *held = x_held ? mix_model_evaluate(model, x_held, y_held, .batch_size = batch_size, .verbose = MIX_SILENT) : NULL;
        char name[256];
        for (int i = 0; i < mix_logs_count(held); i++) {
          snprintf(name, sizeof name, "val_%s", mix_logs_name(held, i));
          cli_history_add(history, epoch, name, mix_logs_value(held, i));
        }
      }
    }
  return mix_error() == MIX_OK;
}
