/* The model of the Keras mixed precision guide, trained with fit and evaluated.
 *
 *   01_guide [mnist|digits [UNITS [BATCH_SIZE [EPOCHS]]]]
 *
 * The guide's numbers are `01_guide mnist 4096 8192 5`; 64 units are its choice for a machine without a
 * GPU. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "mnist";
  const int units = argc > 2 ? atoi(argv[2]) : 64, batch_size = argc > 3 ? atoi(argv[3]) : 8192,
            epochs = argc > 4 ? atoi(argv[4]) : 5;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_set_global_policy("mixed_float16");
  printf("Compute dtype: %s\n", mix_dtype_name(mix_policy_compute_dtype(mix_global_policy())));
  printf("Variable dtype: %s\n", mix_dtype_name(mix_policy_variable_dtype(mix_global_policy())));

  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  /* The softmax is computed in float32: its sum of exponentials is inaccurate in float16. */
  mix_tensor *outputs = mix_call(mix_activation("softmax", .dtype = "float32", .name = "predictions"), x);
  mix_model *model = mix_model_new(inputs, outputs);
  printf("Outputs dtype: %s\n", mix_dtype_name(mix_tensor_dtype(outputs)));

  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop(),
                    .metrics = {"accuracy"});
  mix_images data = strcmp(name, "digits") ? mix_mnist_load() : mix_digits_load();
  if (data.source) printf("Data: %s\n", data.source);
  mix_model_fit(model, data.x_train, data.y_train, .batch_size = batch_size, .epochs = epochs,
                .validation_split = 0.2);
  mix_logs *scores = mix_model_evaluate(model, data.x_test, data.y_test, .verbose = 2);
  if (scores) {
    printf("Test loss: %g\nTest accuracy: %g\n", mix_logs_get(scores, "loss"),
           mix_logs_get(scores, "accuracy"));
    /* Under mixed_float16 compile wraps the optimizer in dynamic loss scaling. */
    printf("Loss scale: %g\n", mix_tensor_item(mix_optimizer_loss_scale(mix_model_optimizer(model))));
  }

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
