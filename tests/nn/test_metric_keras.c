/* Metrics against Keras: results and state after two batches, with and without weights, in both generations,
 * as recorded by recorded/record_metrics.py. The inputs are multiples of 1/64, so every count is exact.
 * Differences are the order of float32 sums, and logarithms: a few ulp (6e-8) of up to 30 summands of similar
 * size. */
#include "nn/support.h"
#include "base/error.h"
#include "nn/metrics/metric.h"
#include "tensor/shape.h"

static const double TOLERANCE = 30 * 6e-8;

typedef struct recorded_batch {
  const double *y_true, *y_pred, *weight;
  mix_shape shape, weight_shape;
} recorded_batch;
#define LIST(...)                                                                                            \
  ((const double[]){__VA_ARGS__}), (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))
#define SIZED .size = sizeof(mix_metric_options)
#include "recorded/metrics.inc"

static void compare(const char *what, const char *text, mix_tensor *got, const double *expected, int count,
                    int *at) {
  int64_t size = mix_shape_size(mix_tensor_shape(got));
  double values[1024];
  assert_true(size <= 1024);
  assert_int_equal(mix_tensor_read(got, MIX_FLOAT64, values, size), MIX_OK);
  for (int64_t i = 0; i < size && *at < count; i++, (*at)++) {
    double want = expected[*at];
    if (!(isnan(want) ? isnan(values[i]) : fabs(values[i] - want) <= TOLERANCE * (1 + fabs(want))))
      fail_msg("%s: %s %d is %.9g, expected %.9g", text, what, *at, values[i], want);
  }
}

static void check(const char *semantics, const recorded_batch *batches, int batch_count, bool weighted,
                  const double *expected, int result_count, const double *expected_state, int state_count,
                  const mix_metric_options *options, const char *given) {
  char text[512];
  snprintf(text, sizeof text, "%s %s %s%s", semantics, options->metric, given, weighted ? ", weighted" : "");
  mix_metric_options o = *options;
  o.semantics = mix_semantics_named(semantics);
  mix_metric *metric = mix_metric_with(&o);
  for (int i = 0; i < batch_count; i++) {
    const recorded_batch *b = &batches[i];
    mix_tensor *y = mix_tensor_from_doubles(b->y_true, MIX_FLOAT32, b->shape),
               *p = mix_tensor_from_doubles(b->y_pred, MIX_FLOAT32, b->shape);
    mix_tensor *weight = weighted ? mix_tensor_from_doubles(b->weight, MIX_FLOAT32, b->weight_shape) : NULL;
    mix_metric_update(metric, y, p, .sample_weight = weight);
  }
  if (mix_failed()) fail_msg("%s: %s", text, mix_error_message());
  int at = 0;
  mix_tensor *result = mix_metric_result_tensor(metric);
  if (mix_failed()) fail_msg("%s: %s", text, mix_error_message());
  assert_int_equal(mix_shape_size(mix_tensor_shape(result)), result_count);
  mix_list *variables = mix_metric_variables(metric);
  for (int i = 0, s = 0; i < mix_list_count(variables); i++)
    compare("number of the state", text, mix_variable_true_value(mix_list_get(variables, i)), expected_state,
            state_count, &s);
  compare("result", text, result, expected, result_count, &at);
  assert_int_equal(at, result_count);
}

#define CHECK(semantics, name, batches, count, weighted, result, results, state, states, ...)                \
  MIX_SCOPE {                                                                                                \
    check(semantics, batches, count, weighted, result, results, state, states,                               \
          &(const mix_metric_options){.metric = name, __VA_ARGS__}, #__VA_ARGS__);                           \
  }
#define EXPANDED(...) CHECK(__VA_ARGS__)

static void as_recorded(void **state) {
  (void)state;
  RECORDED_CASES(EXPANDED)
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(as_recorded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
