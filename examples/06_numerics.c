/* A model whose values exceed float16's range. The numerics report names the layer that overflows and the
 * remedy, with which the model trains.
 *
 *   06_numerics [FILE.png]      draws the report of the first run */
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <string.h>

/* Sums of 4,096 inputs of about 30, like raw sensor counts: about 120,000, beyond float16's maximum,
 * 65,504. */
static mix_model *make_model(const char *float32_layer) {
  const char *totals = float32_layer && !strcmp(float32_layer, "totals") ? "float32" : NULL;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4096), .name = "counts");
  mix_tensor *x = mix_call(
      mix_dense(.units = 4, .kernel_initializer = "ones", .dtype = totals, .name = "totals"), inputs);
  /* float32: its input is as large */
  x = mix_call(mix_batch_normalization(.dtype = "float32", .name = "normal"), x);
  x = mix_call(mix_dense(.units = 16, .activation = "relu", .name = "hidden"), x);
  x = mix_call(mix_dense(.units = 1, .dtype = "float32", .name = "prediction"), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
  return model;
}

/* Each row has a different level from 20 to 40; its target is between -1 and 1. */
static void make_data(mix_tensor **x, mix_tensor **y) {
  enum { ROWS = 256 };
  mix_tensor *level = mix_reshape(mix_range(0, ROWS, 1, MIX_FLOAT32), MIX_SHAPE(ROWS, 1));
  level = mix_divide(level, mix_scalar(ROWS, MIX_FLOAT32));
  mix_tensor *rows = mix_add(mix_multiply(level, mix_scalar(20, MIX_FLOAT32)), mix_scalar(20, MIX_FLOAT32));
  *x = mix_broadcast_to(rows, MIX_SHAPE(ROWS, 4096));
  *y = mix_subtract(mix_multiply(level, mix_scalar(2, MIX_FLOAT32)), mix_scalar(1, MIX_FLOAT32));
  mix_evaluate(2, (mix_tensor *[]){*x, *y});
}

int main(int argc, char **argv) {
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x, *y;
  mix_set_seed(1);
  mix_set_global_policy("mixed_float16");
  make_data(&x, &y);

  mix_numerics *report = mix_numerics_run(make_model(NULL), x, y, .steps = 40);
  if (report) printf("%s", mix_numerics_table(report, false));
  if (argc > 1) mix_numerics_write_png(report, argv[1]);
  const char *layer = mix_numerics_layer(report);
  printf("\nThe layer to blame: %s\n", layer ? layer : "none");

  mix_model *model = make_model(layer); /* that layer in float32, the others in float16 as before */
  report = mix_numerics_new();
  mix_history *history = mix_model_fit(model, x, y, .epochs = 20, .verbose = MIX_SILENT,
                                       .callbacks = mix_list_of(mix_numerics_report(.report = report)));
  if (history) {
    printf("With %s in float32: %s, %lld of %lld steps skipped\n", layer, mix_numerics_status(report),
           (long long)mix_numerics_skipped(report), (long long)mix_numerics_steps(report));
    printf("loss of the first epoch %.4f, of the last %.4f\n",
           mix_logs_get(mix_history_epoch(history, 0), "loss"),
           mix_logs_get(mix_history_epoch(history, 19), "loss"));
  }
  mix_scope_end(scope);
  return MIX_EXIT_CODE();
}
