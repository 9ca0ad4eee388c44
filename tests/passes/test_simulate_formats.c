/* Simulated formats: what becomes of the operands of products, against blocks by hand and a reference of the
 * test's own, which products are concerned, and what is counted. */
#include "compile/support.h"

#include "graph/capture.h"
#include "tensor/convert.h"
#include "tensor/float8_reference.h"
#include <mixtape/attention.h>
#include <mixtape/convolution.h>
#include <mixtape/einsum.h>
#include <mixtape/simulate.h>

static int end_simulation(void **state) {
  mix_simulate_products(.format = "none");
  return end_test(state);
}
#define SIMULATED(function) cmocka_unit_test_setup_teardown(function, begin_test, end_simulation)

enum { N = 64 };
typedef struct job {
  const char *layer;
  mix_dtype dtype;
  bool transposed, einsum, gradient; /* gradient: what is rounded is the gradient of the product */
} job;

/* A product with the unit matrix gives its other operand, as it was rounded: 1 and 0 stay what they are. */
static mix_list *times_unit(void *context, mix_list *arguments) {
  const job *j = context;
  const char *former = mix_graph_scope_set(j->layer);
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), j->dtype),
             *unit = mix_cast(mix_list_get(arguments, 1), j->dtype), *y;
  if (j->gradient) {
    mix_tensor *weight = mix_identity(unit);
    mix_tape *tape = mix_tape_begin();
    mix_tape_watch(tape, weight);
    mix_tensor *product = j->einsum ? mix_einsum("ab,bc->ac", 2, (mix_tensor *[]){weight, unit})
                                    : mix_matmul(weight, unit, false, false);
    y = mix_list_get(mix_tape_gradient(tape, mix_multiply(product, x), mix_list_of(weight)), 0);
  } else if (j->einsum) {
    y = mix_einsum("ab,bc->ac", 2, (mix_tensor *[]){x, unit});
  } else {
    y = mix_matmul(x, unit, j->transposed, false);
  }
  mix_graph_scope_set(former);
  return mix_list_of(mix_cast(y, MIX_FLOAT32));
}

/* The first row (with `transposed` column) of x is `numbers`, the others are zeros. */
static void run(job j, const float *numbers, float *result) {
  static float x[N * N], unit[N * N];
  memset(x, 0, sizeof x);
  for (int i = 0; i < N; i++) unit[i * N + i] = 1, x[j.transposed ? i * N : i] = numbers[i];
  mix_tensor *operands[] = {mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(N, N)),
                            mix_tensor_from(unit, MIX_FLOAT32, MIX_SHAPE(N, N))};
  if (!j.layer) j.layer = "model/block/dense";
  if (!j.dtype) j.dtype = MIX_BFLOAT16;
  mix_function *f = mix_function_new(times_unit, &j);
  mix_list *results = mix_function_call(f, mix_list_of(operands[0], operands[1]));
  no_error();
  memcpy(result, mix_tensor_data(mix_list_get(results, 0)), N * sizeof *result);
}

/* Numbers of bfloat16 over 2^range, of both signs. */
static void sample(float *numbers, int range) {
  for (int i = 0; i < N; i++)
    numbers[i] = ldexpf((float)(128 + i * 37 % 128), -7 - i * 29 % range) * (i % 3 ? 1 : -1);
}

static double nearest(const double *numbers, int count, double x) {
  double best = 0;
  for (int i = 0; i < count; i++) {
    const double is = fabs(numbers[i] - fabs(x)), was = fabs(best - fabs(x));
    if (is < was || (is == was && i % 2 == 0)) best = numbers[i];
  }
  return copysign(best, x);
}
static double to_float8(int format, double x) {
  const float8_format *f = &float8_formats[format];
  const double max = float8_decode(f, f->largest);
  return float8_decode(f, float8_nearest(f, fmax(-max, fmin(max, x))));
}
static float largest_of(const float *numbers, int count) {
  float largest = 0;
  for (int i = 0; i < count; i++) largest = fmaxf(largest, fabsf(numbers[i]));
  return largest;
}

/* OCP MX 1.0, 6.3: X = 2^(floor(log2 of the largest magnitude) - 8). */
static void mxfp8_shares_a_power_of_two(void **state) {
  (void)state;
  float x[N], y[N];
  mix_simulate_products(.format = "mxfp8");
  for (int form = 0; form < 4; form++) {
    sample(x, 20);
    x[0] = 500, x[1] = 0x1p-11f, x[2] = 0x1p-9f, x[3] = 17; /* 500 is beyond 448 */
    run((job){.transposed = form == 1, .einsum = form >= 2, .gradient = form == 3}, x, y);
    assert_true(y[0] == 448 && y[1] == 0 && y[2] == 0x1p-9f && y[3] == 16);
    for (int i = 0; i < N; i++) {
      const double scale = ldexp(1, ilogbf(largest_of(x + i / 32 * 32, 32)) - 8);
      if ((double)y[i] != scale * to_float8(0, x[i] / scale))
        fail_msg("form %d: %g gives %g", form, x[i], y[i]);
    }
  }
}

/* Numbers of 4 bits: x times (the tensor's scale over the block's), and back in float32. */
static void nvfp4_has_scales_of_blocks_and_of_the_tensor(void **state) {
  (void)state;
  static const double e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  float x[N], y[N];
  mix_simulate_products(.format = "nvfp4");
  sample(x, 9);
  run((job){.dtype = MIX_BFLOAT16}, x, y);
  const float tensor = 2688 / largest_of(x, N);
  for (int i = 0; i < N; i++) {
    const float block = (float)to_float8(0, (double)(largest_of(x + i / 16 * 16, 16) / 6 * tensor)),
                size = (float)nearest(e2m1, 8, (double)(fabsf(x[i]) * (tensor / block)));
    assert_true(y[i] == mix_round_to(copysignf(size * (block * (1 / tensor)), x[i]), MIX_BFLOAT16));
  }
}

static void float8_current_has_another_format_for_gradients(void **state) {
  (void)state;
  float x[N], y[N];
  mix_simulate_products(.format = "float8-current");
  sample(x, 20);
  for (int gradient = 0; gradient < 2; gradient++) {
    run((job){.gradient = gradient}, x, y);
    const float scale = (gradient ? 57344 : 448) / largest_of(x, N);
    for (int i = 0; i < N; i++) {
      const float size = (float)to_float8(gradient, (double)(fabsf(x[i]) * scale));
      assert_true(y[i] == mix_round_to(copysignf(size * (1 / scale), x[i]), MIX_BFLOAT16));
    }
  }
}

static void other_products_stay(void **state) {
  (void)state;
  float x[N], y[N];
  sample(x, 20);
  static const char *const names[] = {"other", "block/dense", NULL};
  const job jobs[] = {{.dtype = MIX_FLOAT32}, {.layer = ""}, {.layer = "model/other"}, {0}};
  mix_simulate_products(.format = "nvfp4", .except_layers = names);
  for (int i = 0; i < COUNT(jobs); i++) {
    job j = jobs[i];
    if (j.layer && !*j.layer) j.layer = "other/x";
    run(j, x, y);
    assert_memory_equal(x, y, sizeof x);
  }
  run((job){.layer = "model/block/dense_1"}, x, y);
  assert_memory_not_equal(x, y, sizeof x);
  mix_simulate_products(.format = NULL);
  run((job){.layer = "model/block/dense_1"}, x, y);
  assert_memory_equal(x, y, sizeof x);
}

static void blocks_that_are_not_finite_stay(void **state) {
  (void)state;
  float x[N], y[N];
  static const char *const formats[] = {"mxfp8", "nvfp4", "float8-current"};
  for (int f = 0; f < COUNT(formats); f++) {
    mix_simulate_products(.format = formats[f]);
    for (int i = 0; i < N; i++) x[i] = 1.0078125f; /* in no format */
    x[40] = -INFINITY;
    run((job){0}, x, y);
    /* infinity times the zeros of the unit matrix is NaN, in the whole row: the loss scale sees it */
    assert_true(isnan(y[0]) && isinf(y[40]));
  }
}

/* ---- products of other kinds ---- */

/* A convolution of one pixel with unit kernels, in four groups of 16 channels: blocks end with the group. */
static mix_list *grouped(void *context, mix_list *arguments) {
  (void)context;
  const char *former = mix_graph_scope_set("model/grouped");
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), MIX_BFLOAT16),
             *kernel = mix_cast(mix_list_get(arguments, 1), MIX_BFLOAT16);
  mix_tensor *y = mix_conv(x, kernel, .groups = 4);
  mix_graph_scope_set(former);
  return mix_list_of(mix_cast(y, MIX_FLOAT32));
}

static void blocks_end_with_the_group(void **state) {
  (void)state;
  float x[N];
  static float kernel[16 * N];
  for (int filter = 0; filter < N; filter++) kernel[filter % 16 * N + filter] = 1;
  sample(x, 20);
  for (int i = 0; i < N; i++) x[i] *= i / 16 % 2 ? 0x1p-12f : 1; /* other scales than of blocks of 32 */
  mix_simulate_products(.format = "mxfp8");
  mix_function *f = mix_function_new(grouped, NULL);
  mix_list *results =
      mix_function_call(f, mix_list_of(mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(1, 1, 1, N)),
                                       mix_tensor_from(kernel, MIX_FLOAT32, MIX_SHAPE(1, 1, 16, N))));
  no_error();
  const float *y = mix_tensor_data(mix_list_get(results, 0));
  bool differs = false;
  for (int i = 0; i < N; i++) {
    const double scale = ldexp(1, ilogbf(largest_of(x + i / 16 * 16, 16)) - 8),
                 whole = ldexp(1, ilogbf(largest_of(x + i / 32 * 32, 32)) - 8);
    assert_true((double)y[i] == scale * to_float8(0, x[i] / scale));
    differs |= (double)y[i] != whole * to_float8(0, x[i] / whole);
  }
  assert_true(differs);
}

/* One token attends to itself, with unit projections: its probability is 1, and the result its value, of
 * which each number is a block of the product with the probabilities. */
static mix_list *attends(void *layer, mix_list *arguments) {
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), MIX_BFLOAT16);
  return mix_list_of(mix_cast(mix_call(layer, x, .arguments = mix_list_of(x)), MIX_FLOAT32));
}

static mix_layer *unit_attention(void) {
  mix_layer *layer = mix_multi_head_attention(.num_heads = 1, .key_dim = N, .no_bias = true, .name = "mha",
                                              .dtype = "mixed_bfloat16");
  mix_tensor *x = mix_fill(MIX_SHAPE(1, 1, N), 1, MIX_FLOAT32);
  mix_call(layer, x, .arguments = mix_list_of(x));
  static float unit[N * N];
  for (int i = 0; i < N; i++) unit[i * N + i] = 1;
  mix_list *weights = mix_layer_weights(layer);
  assert_int_equal(mix_list_count(weights), 4);
  for (int i = 0; i < 4; i++) {
    mix_variable *weight = mix_list_get(weights, i);
    mix_variable_assign(weight, mix_tensor_from(unit, MIX_FLOAT32, mix_variable_shape(weight)));
  }
  no_error();
  return layer;
}

static bool has_row(const char *layer, const char *operand) {
  mix_simulated_row row;
  for (int i = 0; i < mix_simulated_count(); i++)
    if (mix_simulated_get(i, &row, sizeof row) == MIX_OK && !strcmp(row.layer, layer) &&
        !strcmp(row.operand, operand))
      return true;
  return false;
}

static void attention_has_two_products_of_its_own(void **state) {
  (void)state;
  float x[N];
  sample(x, 20);
  mix_layer *layer = unit_attention();
  static const char *const names[] = {"query",  "key",      "value", "attention_output",
                                      "scores", "combined", NULL};
  for (int except = 0; except < 2; except++) {
    const char *const *left = names; /* all six, or the four projections alone */
    const char *projections[] = {names[0], names[1], names[2], names[3], NULL};
    mix_simulate_products(.format = "mxfp8", .except_layers = except ? left : projections);
    mix_function *f = mix_function_new(attends, layer);
    mix_list *results =
        mix_function_call(f, mix_list_of(mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(1, 1, N))));
    no_error();
    const float *y = mix_tensor_data(mix_list_get(results, 0));
    for (int i = 0; i < N; i++) {
      const double scale = ldexp(1, ilogbf(x[i]) - 8),
                   expected = except ? (double)x[i] : scale * to_float8(0, x[i] / scale);
      assert_true((double)y[i] == expected);
    }
    assert_int_equal(has_row("mha/scores", "input"), !except);
    assert_int_equal(has_row("mha/combined", "input"), !except);
    assert_false(has_row("mha/query", "kernel"));
  }
}

/* Their gradients too: four products. */
static mix_list *attention_gradient(void *layer, mix_list *arguments) {
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), MIX_BFLOAT16);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(layer, x, .arguments = mix_list_of(x));
  return mix_tape_gradient(tape, mix_multiply(y, y), mix_list_of(x));
}

static void gradients_of_attention_are_simulated(void **state) {
  (void)state;
  mix_layer *layer = unit_attention();
  mix_simulate_products(.format = "nvfp4", .stochastic_rounding = true);
  mix_function *f = mix_function_new(attention_gradient, layer);
  mix_function_call(
      f, mix_list_of(mix_sin(mix_reshape(mix_range(0, 3 * N, 1, MIX_FLOAT32), MIX_SHAPE(1, 3, N)))));
  no_error();
  assert_true(has_row("mha/scores", "gradient") && has_row("mha/combined", "gradient"));
  assert_true(has_row("mha/query", "kernel") && has_row("mha/query", "gradient"));
}

static void stochastic_rounding_keeps_the_mean(void **state) {
  (void)state;
  float x[N], y[N], again[N];
  for (int i = 0; i < N; i++) x[i] = 4.5f;
  x[0] = x[16] = x[32] = x[48] = 6; /* so all scales are 1, and 4.5 is between 4 and 6 */
  int up = 0;
  for (uint64_t seed = 0; seed < 40; seed++) {
    mix_simulate_products(.format = "nvfp4", .stochastic_rounding = true, .seed = seed);
    run((job){.gradient = true}, x, y);
    for (int i = 0; i < N; i++) {
      assert_true(y[i] == 4 || y[i] == 6);
      up += x[i] != 6 && y[i] == 6;
    }
  }
  run((job){.gradient = true}, x, again);
  assert_memory_equal(y, again, sizeof y);
  /* 2400 draws of probability 1/4: mean 600, deviation 21.2; five of them */
  assert_in_range(up, 494, 706);
  run((job){0}, x, y); /* only gradients */
  for (int i = 0; i < N; i++) assert_true(y[i] == (x[i] == 6 ? 6 : 4));
}

static void counts_by_layer_and_operand(void **state) {
  (void)state;
  float x[N] = {500, 0x1p-11f}, y[N];
  mix_simulate_products(.format = "mxfp8");
  run((job){.layer = "counted"}, x, y);
  run((job){.layer = "counted"}, x, y);
  mix_simulated_row row = {0};
  int found = 0;
  for (int i = 0; i < mix_simulated_count(); i++) {
    assert_int_equal(mix_simulated_get(i, &row, sizeof row), MIX_OK);
    assert_string_equal(row.layer, "counted");
    assert_string_equal(row.operand, "input"); /* the unit matrix too: it is no variable */
    found++;
  }
  assert_int_equal(found, 1);
  assert_int_equal(row.numbers, 2 * (2 + N));
  assert_int_equal(row.saturated, 2);
  assert_int_equal(row.flushed, 2);
  assert_int_equal(mix_simulated_get(1, &row, sizeof row), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "row 1 is outside");
  mix_simulate_products(.format = "mxfp8");
  assert_int_equal(mix_simulated_count(), 0);
  assert_int_equal(mix_simulate_products(.format = "mxfp6"), MIX_VALUE_ERROR);
  expect_error(MIX_VALUE_ERROR, "expected mxfp8, nvfp4");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      SIMULATED(mxfp8_shares_a_power_of_two),
      SIMULATED(nvfp4_has_scales_of_blocks_and_of_the_tensor),
      SIMULATED(float8_current_has_another_format_for_gradients),
      SIMULATED(other_products_stay),
      SIMULATED(blocks_that_are_not_finite_stay),
      SIMULATED(blocks_end_with_the_group),
      SIMULATED(attention_has_two_products_of_its_own),
      SIMULATED(gradients_of_attention_are_simulated),
      SIMULATED(stochastic_rounding_keeps_the_mean),
      SIMULATED(counts_by_layer_and_operand),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
