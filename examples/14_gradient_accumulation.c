/* Gradient accumulation: four batches of 32 give one update, as a batch of 128 would, in the memory of 32.
 * The loss is scaled; the sums of gradients are float32. Both steps are captured.
 *
 *   14_gradient_accumulation [EPOCHS] */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 4, PART_ROWS = 32 };

typedef struct training {
  mix_model *model;
  mix_loss *loss_object;
  mix_optimizer *optimizer;
  mix_list *variables, *sums;
} training;

/* Adds the gradients of one part of a batch to the sums. */
static mix_list *accumulate(void *context, mix_list *part) {
  training *t = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(part, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss_object, mix_list_get(part, 1), predictions);
  mix_tensor *share = mix_multiply(loss, mix_scalar(1.0 / PARTS, mix_tensor_dtype(loss)));
  mix_tensor *scaled = mix_optimizer_get_scaled_loss(t->optimizer, share);
  mix_tape_end(tape);
  mix_variables_assign_add(t->sums, mix_tape_gradient(tape, scaled, t->variables));
  return mix_list_of(loss);
}

/* The update; a sum that is not finite skips it and lowers the scale, as one gradient would. */
static mix_list *update(void *context, mix_list *none) {
  training *t = context;
  (void)none;
  mix_list *gradients = mix_optimizer_get_unscaled_gradients(t->optimizer, mix_variables_values(t->sums));
  mix_optimizer_apply_gradients(t->optimizer, gradients, t->variables);
  mix_variables_assign_zeros(t->sums);
  return NULL;
}

static mix_model *make_model(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784));
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu"), inputs);
  x = mix_call(mix_activation("softmax", .dtype = "float32"), mix_call(mix_dense(.units = 10), x));
  return mix_model_new(inputs, x);
}

int main(int argc, char **argv) {
  const int epochs = argc > 1 ? atoi(argv[1]) : 3;
  mix_scope *scope = mix_scope_begin();
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  training t = {.model = make_model(),
                .loss_object = mix_sparse_categorical_crossentropy(),
                .optimizer = mix_loss_scale_optimizer(mix_adam())};
  t.variables = mix_model_trainable_variables(t.model);
  t.sums = mix_variables_zeros_like(t.variables);

  mix_images digits = mix_digits_load();
  mix_dataset *parts = mix_data_pipeline(mix_dataset_from_tensors(digits.x_train, digits.y_train),
                                         mix_step_shuffle(12000, .seed = 1),
                                         mix_step_batch(PART_ROWS, .drop_remainder = true));
  mix_function *add = mix_function_new(accumulate, &t), *apply = mix_function_new(update, &t);
  mix_list *nothing = mix_list_new(0, NULL);
  MIX_CHECK(nothing);

  for (int epoch = 0; epoch < epochs; epoch++) {
    MIX_SCOPE_HERE;
    mix_metric *mean = mix_metric_mean();
    mix_iterator *iterator = mix_dataset_iterate(parts);
    mix_variables_assign_zeros(t.sums); /* parts without an update at the end of an epoch are dropped */
    int64_t count = 0;
    for (mix_list *part; (part = mix_iterator_next(iterator));) {
      MIX_SCOPE_HERE;
      mix_metric_update(mean, mix_list_get(mix_function_call(add, part), 0));
      if (++count % PARTS == 0) mix_function_call(apply, nothing);
    }
    const double loss = mix_metric_result(mean);
    if (!mix_error())
      printf("Epoch %d: loss %.4f after %lld updates\n", epoch + 1, loss,
             (long long)mix_optimizer_iterations(t.optimizer));
  }
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
