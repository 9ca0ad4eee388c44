/* Mixed precision without changes to the model: the guide's program in float32, trained twice. The second
 * time one call wraps the optimizer. What is compiled afterwards is rewritten to float16 where that is safe,
 * with loss scaling.
 *
 *   08_graph_rewrite [mnist|digits [EPOCHS]] */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* This function does not mention mixed precision. */
static mix_model *build(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = 64, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .name = "predictions"), x));
}

static double train(const char *name, mix_optimizer *optimizer, const mix_images *data, int epochs) {
  mix_set_seed(1);
  mix_model *model = build();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer,
                    .metrics = {"accuracy"});
  mix_model_fit(model, data->x_train, data->y_train, .batch_size = 128, .epochs = epochs, .verbose = 2);
  mix_logs *scores = mix_model_evaluate(model, data->x_test, data->y_test, .verbose = 2);
  double accuracy = scores ? mix_logs_get(scores, "accuracy") : 0;
  printf("%s: test accuracy %.4f\n", name, accuracy);
  return accuracy;
}

int main(int argc, char **argv) {
  const char *name = argc > 1 ? argv[1] : "mnist";
  const int epochs = argc > 2 ? atoi(argv[2]) : 5;
  mix_set_log_callback(mix_log_to_stderr, NULL);
  mix_scope *scope = mix_scope_begin();
  mix_images data = strcmp(name, "digits") ? mix_mnist_load() : mix_digits_load();
  if (!data.source) return fprintf(stderr, "%s\n", mix_error_message()), 1;
  printf("Data: %s\n", data.source);
  double full = train("float32", mix_rmsprop(), &data, epochs);

  mix_optimizer *optimizer = mix_enable_mixed_precision_graph_rewrite(mix_rmsprop()); /* the one call */
  double mixed = train("rewritten", optimizer, &data, epochs);
  printf("rewritten to %s, loss scale %g, %lld steps\n", mix_dtype_name(mix_graph_rewrite_dtype()),
         mix_tensor_item(mix_optimizer_loss_scale(optimizer)),
         (long long)mix_optimizer_iterations(optimizer));
  mix_disable_mixed_precision_graph_rewrite();
  printf("difference: %.4f\n", mixed - full);

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
