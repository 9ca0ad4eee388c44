/* Which layers must compute in float32? The search trains the model several times and finds the smallest set
 * with which float16 trains as well as float32.
 *
 *   13_precision_tuning         prints each run, the set, and what to paste */
#include <mixtape/mixtape.h>
#include <math.h>
#include <stdio.h>

enum { COUNTERS = 1024, ROWS = 256, TEST_ROWS = 64 };
static const char *const layers[] = {"totals", "normal", "hidden", "curve", "prediction", NULL};

typedef struct data {
  mix_tensor *x, *y, *test_x, *test_y;
} data;

/* Sums of 1,024 counters of about 130 are about 130,000, beyond float16's maximum of 65,504: "totals"
 * overflows float16, and so does the cast of the input of "normal", which brings them back to ordinary size.
 */
static mix_model *make_model(const mix_tune_trial *trial) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(COUNTERS), .name = "counters");
  mix_tensor *x = mix_call(mix_dense(.units = 4, .kernel_initializer = "ones", .name = "totals",
                                     .dtype = mix_tune_dtype(trial, "totals")),
                           inputs);
  x = mix_call(mix_rescaling(.scale = 1e-5, .name = "normal", .dtype = mix_tune_dtype(trial, "normal")), x);
  x = mix_call(mix_dense(.units = 32, .activation = "tanh", .name = "hidden",
                         .dtype = mix_tune_dtype(trial, "hidden")),
               x);
  x = mix_call(
      mix_dense(.units = 32, .activation = "tanh", .name = "curve", .dtype = mix_tune_dtype(trial, "curve")),
      x);
  x = mix_call(mix_dense(.units = 1, .name = "prediction", .dtype = mix_tune_dtype(trial, "prediction")), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.001));
  return model;
}

/* Trains as the trial says and returns the loss on the test rows. */
static double train(void *context, const mix_tune_trial *trial) {
  const data *d = context;
  mix_set_seed(trial->seed);
  mix_set_global_policy(trial->policy);
  mix_model *model = make_model(trial);
  mix_history *history = mix_model_fit(model, d->x, d->y, .batch_size = 32, .epochs = 10, .seed = trial->seed,
                                       .quiet = true, .callbacks = trial->callbacks);
  mix_logs *test = history ? mix_model_evaluate(model, d->test_x, d->test_y, .quiet = true) : NULL;
  return test ? mix_logs_get(test, "loss") : NAN;
}

/* Each row has a different level from 100 to 160; its target is a wave over the levels. */
static void make_rows(int64_t rows, mix_tensor **x, mix_tensor **y) {
  mix_tensor *level = mix_reshape(mix_range(0, (double)rows, 1, MIX_FLOAT32), MIX_SHAPE(rows, 1));
  level = mix_divide(level, mix_scalar((double)rows, MIX_FLOAT32));
  mix_tensor *counts =
      mix_add(mix_multiply(level, mix_scalar(60, MIX_FLOAT32)), mix_scalar(100, MIX_FLOAT32));
  *x = mix_broadcast_to(counts, MIX_SHAPE(rows, COUNTERS));
  *y = mix_sin(mix_multiply(level, mix_scalar(5, MIX_FLOAT32)));
  mix_evaluate(2, (mix_tensor *[]){*x, *y});
}

int main(void) {
  mix_scope *scope = mix_scope_begin();
  data d;
  make_rows(ROWS, &d.x, &d.y);
  make_rows(TEST_ROWS, &d.test_x, &d.test_y);

  mix_tuning *tuning = mix_tune_precision(train, layers, .context = &d);
  if (tuning) printf("%s\n", mix_tuning_table(tuning));
  if (mix_tuning_layers(tuning)) printf("%s", mix_tuning_overrides(tuning));

  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
