/* Data parallel training: every process computes its share of each batch, and all hold the same weights.
 *
 *   mpirun -n 2 15_mpi [POLICY [EPOCHS]]
 *
 * Started alone it trains in one process, to the same losses but for rounding. The policy is mixed_float16 if
 * none is given. */
#include <mixtape/mixtape.h>

#include <stdio.h>
#include <stdlib.h>

static mix_model *digit_model(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(784), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(128, .activation = "relu"), inputs);
  /* moments over the rows of all processes */
  x = mix_call(mix_batch_normalization(.synchronized = true), x);
  x = mix_call(mix_dense(10), x);
  return mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
}

int main(int argc, char **argv) {
  mix_scope *scope = mix_scope_begin();
  mix_distribution *ranks = mix_distribution_mpi();
  mix_set_distribution(ranks);
  const int rank = mix_distribution_rank(ranks);
  if (!rank) mix_set_log_callback(mix_log_to_stderr, NULL); /* warnings are the same on all */

  mix_set_global_policy(argc > 1 ? argv[1] : "mixed_float16");
  mix_model *model = digit_model();
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_adam(),
                    .metrics = {"accuracy"});
  mix_images digits = mix_digits_load(.train = 4000, .test = 1000);
  mix_tensor *x = mix_reshape(digits.x_train, MIX_SHAPE(-1, 784)),
             *x_test = mix_reshape(digits.x_test, MIX_SHAPE(-1, 784));

  /* batch_size counts the rows of all processes; losses and metrics are those of all rows */
  mix_history *history =
      mix_model_fit(model, x, digits.y_train, .batch_size = 128, .epochs = argc > 2 ? atoi(argv[2]) : 3,
                    .seed = 1, .verbose = rank ? MIX_SILENT : 2);
  mix_logs *test = mix_model_evaluate(model, x_test, digits.y_test, .verbose = MIX_SILENT);
  if (!rank && history && test)
    printf("ranks: %d, test loss %.4f, test accuracy %.3f\n", mix_distribution_size(ranks),
           mix_logs_get(test, "loss"), mix_logs_get(test, "accuracy"));

  if (mix_error()) { /* one process that fails ends all of them */
    fprintf(stderr, "rank %d: ", rank);
    mix_distribution_end_job(ranks, MIX_EXIT_CODE());
    return 1;
  }
  mix_set_distribution(NULL); /* with the scope's reference, MPI ends here */
  mix_scope_end(scope);
  return 0;
}
