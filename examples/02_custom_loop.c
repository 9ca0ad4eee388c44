/* The second half of the guide: a custom training loop, in which the loss-scale optimizer scales the loss and
 * unscales the gradients. The whole step (02_training_step.h) is captured once per batch shape and runs as
 * one plan.
 *
 *   02_custom_loop [mnist|digits [UNITS [BATCH_SIZE [EPOCHS]]]] */
#include "02_training_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static mix_list *test_step(void *context, mix_list *batch) {
  return mix_list_of(
      mix_model_call(((training *)context)->model, mix_list_get(batch, 0), .training = MIX_FALSE));
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
  const char *name = argc > 1 ? argv[1] : "mnist";
  const int units = argc > 2 ? atoi(argv[2]) : 64, batch_size = argc > 3 ? atoi(argv[3]) : 8192,
            epochs = argc > 4 ? atoi(argv[4]) : 5;
  mix_scope *scope = mix_scope_begin();
  mix_set_global_policy("mixed_float16");
  training t = {.model = guide_model(units),
                .loss_object = mix_sparse_categorical_crossentropy(),
                .optimizer = mix_loss_scale_optimizer(mix_rmsprop())};

  mix_images data = strcmp(name, "digits") ? mix_mnist_load() : mix_digits_load();
  mix_dataset *train = mix_data_pipeline(mix_dataset_from_tensors(data.x_train, data.y_train),
                                         mix_step_shuffle(10000), mix_step_batch(batch_size));
  mix_dataset *test = mix_dataset_batch(mix_dataset_from_tensors(data.x_test, data.y_test), batch_size);
  mix_function *step = mix_function_new(train_step, &t), *predict = mix_function_new(test_step, &t);

  for (int epoch = 0; epoch < epochs; epoch++) {
    MIX_SCOPE_HERE;
    mix_metric *epoch_loss = mix_metric_mean(),
               *test_accuracy = mix_metric_new("sparse_categorical_accuracy");
    mix_iterator *batches = mix_dataset_iterate(train);
    for (mix_list *batch; (batch = mix_iterator_next(batches));) {
      MIX_SCOPE_HERE;
      mix_metric_update(epoch_loss, mix_list_get(mix_function_call(step, batch), 0));
    }
    batches = mix_dataset_iterate(test);
    for (mix_list *batch; (batch = mix_iterator_next(batches));) {
      MIX_SCOPE_HERE;
      mix_metric_update(test_accuracy, mix_list_get(batch, 1),
                        mix_list_get(mix_function_call(predict, batch), 0));
    }
    const double loss = mix_metric_result(epoch_loss), accuracy = mix_metric_result(test_accuracy);
    if (!mix_error()) printf("Epoch %d: loss=%g, test accuracy=%g\n", epoch + 1, loss, accuracy);
  }
  const double scale = mix_tensor_item(mix_optimizer_loss_scale(t.optimizer));
  if (!mix_error())
    printf("Loss scale: %g after %lld steps\n", scale, (long long)mix_optimizer_iterations(t.optimizer));

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
