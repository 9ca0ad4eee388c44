/* The numerics report of float8 layers: their scales and histories are rows, with their next values as
 * gradients, and what is not finite in a history is traced to its layer. */
/* Holds docs/NUMERICS.md: Numerics report; Float8 training. */
#include "train/numerics_support.h"

static mix_model *float8_model(void) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(8));
  mix_tensor *y = mix_call(mix_dense(4, .name = "first", .activation = "relu"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(2, .name = "second"), y));
  mix_model_quantize(model, "float8", .amax_history_length = 3);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
  assert_no_error();
  return model;
}

static mix_numerics *report_of(mix_model *model) {
  mix_numerics *report = mix_numerics_run(model, mix_fill(MIX_SHAPE(16, 8), 0.5, F32),
                                          mix_fill(MIX_SHAPE(16, 2), 1, F32), .batch_size = 4, .steps = 3);
  assert_no_error();
  return report;
}

static void a_healthy_run(void **state) {
  (void)state;
  mix_numerics *report = report_of(float8_model());
  assert_string_equal(mix_numerics_status(report), "healthy");
  const mix_numerics_row scale = row_of(report, "first", "inputs_scale", F32),
                         history = row_of(report, "second", "outputs_grad_amax_history", F32),
                         kernel = row_of(report, "first", "kernel", F32);
  assert_true(kernel.has_gradient);
  assert_true(scale.forward.largest == 1 && scale.gradient.largest == 1);
  assert_int_equal(history.forward.elements, 9);
  for (int i = 0; i < mix_numerics_row_count(report); i++) {
    mix_numerics_row row;
    mix_numerics_get_row(report, i, &row, sizeof row);
    assert_true(row.dtype != MIX_FLOAT8_E4M3FN && row.dtype != MIX_FLOAT8_E5M2);
  }
}

static void a_nan_in_a_history_is_named(void **state) {
  (void)state;
  mix_model *model = float8_model();
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    if (!strcmp(mix_variable_name(mix_list_get(weights, i)), "second/kernel_amax_history"))
      mix_variable_assign(mix_list_get(weights, i), ARRAY(F32, MIX_SHAPE(3), NAN, 1, 1));
  mix_numerics *report = report_of(model);
  assert_int_equal(mix_numerics_event_count(report), 2); /* until it leaves the window */
  const mix_numerics_event event = event_of(report, 0);
  assert_string_equal(event.layer, "second");
  assert_string_equal(event.tensor, "kernel_amax_history");
  assert_true(event.nan);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_healthy_run), TEST(a_nan_in_a_history_is_named)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
