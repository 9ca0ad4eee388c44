/* Fused programs over more than 2^31 elements: loads of every kind, casts, sums, finite checks, an
 * optimizer's update in place, a product's epilogue. Uses at most 0.4 GB of memory. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "backend/enormous.h"
#include "ir/program.h"
#include <assert.h>
#include <math.h>

/* 2^31 + 6 million elements, also as text. */
#define ROWS 2097155
#define WIDTH 1027
#define SPACE 2153778185
#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
static_assert((int64_t)ROWS * WIDTH == SPACE, "the space is that of the rows");
#define OVER_SPACE "over (" TEXT(SPACE) ")\n"
#define OVER_ROWS "over (" TEXT(ROWS) ", " TEXT(WIDTH) ")\n"

/* Parses a program (ir/program.h), which must match the operands and results. */
static void run_program(const mix_op *op, const void *attributes, const char *text, int input_count,
                        const operand *inputs, int output_count, const operand *outputs) {
  mix_program_reading reading;
  mix_type types[2 * MAX_OPERANDS];
  char problem[256];
  mix_program_read_begin(&reading);
  for (const char *end; *text; text = end + (*end == '\n')) {
    end = strchr(text, '\n') ? strchr(text, '\n') : text + strlen(text);
    mix_scan line = {.at = text, .end = end};
    if (!mix_program_read_line(&reading, &line, problem, sizeof problem)) fail_msg("%s: %s", problem, text);
  }
  for (int i = 0; i < input_count + output_count; i++) {
    const operand *x = i < input_count ? &inputs[i] : &outputs[i - input_count];
    types[i] = (mix_type){x->dtype, x->shape};
  }
  if (!mix_program_check(&reading.program, input_count, types, output_count, types + input_count, problem,
                         sizeof problem))
    fail_msg("%s", problem);
  run_on(2, op, attributes, &reading.program, input_count, inputs, output_count, outputs);
}
static void run_fused(const char *text, int input_count, const operand *inputs, int output_count,
                      const operand *outputs) {
  run_program(&mix_op_fused, NULL, text, input_count, inputs, output_count, outputs);
}

static operand scalar(mix_dtype dtype, double value) { return operand_of(dtype, MIX_SCALAR, &value); }

/* The last three elements are 1, -2 and 3. */
static const double far_numbers[] = {1, -2, 3};
static void set_far(operand x) {
  for (int i = 0; i < 3; i++)
    mix_store_double(x.data, x.dtype, mix_shape_size(x.shape) - 3 + i, far_numbers[i]);
}
static double far_at(int64_t i) { return i < SPACE - 3 ? 0 : far_numbers[i - (SPACE - 3)]; }

static void elements_in_their_order(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(SPACE)), factor = scalar(MIX_FLOAT16, 2),
          y = written(MIX_FLOAT16, MIX_SHAPE(SPACE));
  operand finite = operand_of(MIX_BOOL, MIX_SCALAR, NULL);
  set_far(x);
  run_fused(OVER_SPACE "r0 = float16 load 0 strides (1)\n"
                       "r1 = float16 load 1 strides (0)\n"
                       "r2 = float16 multiply r0, r1\n"
                       "r3 = float16 relu r2\n"
                       "store r3 -> 0\n"
                       "all_finite of r3 -> 1",
            2, (operand[]){x, factor}, 2, (operand[]){y, finite});
  FOR_WRITTEN(y, i) assert_true(element(y, i) == (far_at(i) > 0 ? 2 * far_at(i) : 0));
  assert_true(*(bool *)finite.data);
  forget(x), forget(y);
  free(factor.data), free(finite.data);
}

static void rows_and_columns_broadcast(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)),
          bias = operand_of(MIX_FLOAT16, MIX_SHAPE(WIDTH), NULL);
  operand column = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, 1)), y = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH));
  set_far(x), set_far(column);
  for (int j = 0; j < WIDTH; j++) mix_store_double(bias.data, MIX_FLOAT16, j, j % 7);
  run_fused(OVER_ROWS "r0 = float16 load 0 strides (1027, 1)\n"
                      "r1 = float16 load 1 strides (0, 1)\n"
                      "r2 = float16 load 2 strides (1, 0)\n"
                      "r3 = float16 add r0, r1\n"
                      "r4 = float16 add r3, r2\n"
                      "store r4 -> 0",
            3, (operand[]){x, bias, column}, 1, &y);
  FOR_WRITTEN(y, i) {
    const int64_t row = i / WIDTH;
    const double of_row = row < ROWS - 3 ? 0 : far_numbers[row - (ROWS - 3)];
    assert_true(element(y, i) == far_at(i) + (double)(i % WIDTH % 7) + of_row);
  }
  forget(x), forget(column), forget(y);
  free(bias.data);
}

/* Few elements with a large stride in their operand. */
static void large_strides(void **state) {
  (void)state;
  enum { COLUMNS = 600, PITCH = 4194305 };
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(COLUMNS, PITCH)), y = vast(MIX_FLOAT16, MIX_SHAPE(WIDTH, COLUMNS));
  for (int64_t i = 0; i < WIDTH; i++)
    for (int64_t j = COLUMNS - 3; j < COLUMNS; j++)
      mix_store_double(x.data, MIX_FLOAT16, j * PITCH + i, (double)(i + j));
  run_fused("over (1027, 600)\n"
            "r0 = float16 load 0 strides (1, 4194305)\n"
            "r1 = float16 negative r0\n"
            "store r1 -> 0",
            1, &x, 1, &y);
  for (int64_t i = 0; i < WIDTH; i++)
    for (int64_t j = 0; j < COLUMNS; j++)
      assert_true(element(y, i * COLUMNS + j) == (j < COLUMNS - 3 ? 0 : -(double)(i + j)));
  forget(x), forget(y);
}

static void casts(void **state) {
  (void)state;
  static const struct {
    mix_dtype from, to;
    const char *text;
  } pairs[] = {
      {MIX_FLOAT16, MIX_FLOAT32,
       OVER_SPACE "r0 = float16 load 0 strides (1)\n"
                  "r1 = float32 cast r0\n"
                  "store r1 -> 0"},
      {MIX_FLOAT32, MIX_BFLOAT16,
       OVER_SPACE "r0 = float32 load 0 strides (1)\n"
                  "r1 = bfloat16 cast r0\n"
                  "store r1 -> 0"},
      {MIX_INT8, MIX_FLOAT16,
       OVER_SPACE "r0 = int8 load 0 strides (1)\n"
                  "r1 = float16 cast r0\n"
                  "store r1 -> 0"},
  };
  for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
    operand x = vast(pairs[p].from, MIX_SHAPE(SPACE)), y = written(pairs[p].to, MIX_SHAPE(SPACE));
    if (pairs[p].from == MIX_INT8)
      for (int i = 0; i < 3; i++) ((int8_t *)x.data)[SPACE - 3 + i] = (int8_t)far_numbers[i];
    else
      set_far(x);
    run_fused(pairs[p].text, 1, &x, 1, &y);
    FOR_WRITTEN(y, i) assert_true(element(y, i) == far_at(i));
    forget(x), forget(y);
  }
}

static void sums_and_means_of_rows(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH)), sum = operand_of(MIX_FLOAT32, MIX_SCALAR, NULL);
  operand means = vast(MIX_FLOAT32, MIX_SHAPE(ROWS));
  set_far(x);
  mix_store_double(x.data, MIX_FLOAT16, 0, 5);
  run_fused(OVER_SPACE "r0 = float16 load 0 strides (1)\n"
                       "r1 = float32 cast r0\n"
                       "r2 = float32 abs r1\n"
                       "sum of r2 -> 0",
            1, &x, 1, &sum);
  assert_true(element(sum, 0) == 5 + 1 + 2 + 3);
  run_fused(OVER_SPACE "r0 = float16 load 0 strides (1)\n"
                       "r1 = float32 cast r0\n"
                       "r2 = float32 abs r1\n"
                       "mean of r2 -> 0\n"
                       "in rows of " TEXT(WIDTH),
            1, &x, 1, &means);
  for (int64_t i = 0; i < ROWS; i++)
    assert_true(element(means, i) == (i == 0          ? (float)(5.0 / WIDTH)
                                      : i == ROWS - 1 ? (float)(6.0 / WIDTH)
                                                      : 0));
  forget(x), forget(means);
  free(sum.data);
}

/* Finite checks of gradients as they are stored, without arithmetic. */
static void finite_checks_of_scaled_gradients(void **state) {
  (void)state;
  operand x = vast(MIX_FLOAT16, MIX_SHAPE(SPACE)), scale = scalar(MIX_FLOAT32, 0x1p-15);
  operand finite = operand_of(MIX_BOOL, MIX_SCALAR, NULL);
  for (int infinite = 0; infinite < 2; infinite++) {
    if (infinite) mix_store_double(x.data, MIX_FLOAT16, SPACE - 1, INFINITY);
    run_fused(OVER_SPACE "r0 = float16 load 0 strides (1)\n"
                         "r1 = float32 load 1 strides (0)\n"
                         "r2 = float32 cast r0\n"
                         "r3 = float32 multiply r2, r1\n"
                         "all_finite of r3 -> 0",
              2, (operand[]){x, scale}, 1, &finite);
    assert_true(*(bool *)finite.data == !infinite);
  }
  forget(x);
  free(scale.data), free(finite.data);
}

/* SGD with momentum, one pass over three arrays of more than 8 GB. */
static void updates_in_place(void **state) {
  (void)state;
  operand gradient = vast(MIX_FLOAT32, MIX_SHAPE(SPACE)), rate = scalar(MIX_FLOAT32, 0.3),
          momentum = scalar(MIX_FLOAT32, 0.9);
  operand speed = written(MIX_FLOAT32, MIX_SHAPE(SPACE)), weight = written(MIX_FLOAT32, MIX_SHAPE(SPACE));
  float before;
  memset(&before, UNTOUCHED, sizeof before); /* of both */
  set_far(gradient);
  run_fused(OVER_SPACE "r0 = float32 load 0 strides (1)\n"
                       "r1 = float32 load 1 strides (1)\n"
                       "r2 = float32 load 2 strides (1)\n"
                       "r3 = float32 load 3 strides (0)\n"
                       "r4 = float32 load 4 strides (0)\n"
                       "r5 = float32 multiply r0, r3\n"
                       "r6 = float32 multiply r1, r4\n"
                       "r7 = float32 subtract r6, r5\n"
                       "r8 = float32 add r2, r7\n"
                       "store r7 -> 0\n"
                       "store r8 -> 1",
            5, (operand[]){gradient, speed, weight, rate, momentum}, 2, (operand[]){speed, weight});
  FOR_WRITTEN(weight, i) {
    const float descent = (float)far_at(i) * 0.3f, slower = before * 0.9f, moved = slower - descent;
    assert_true(((const float *)speed.data)[i] == moved);
    assert_true(((const float *)weight.data)[i] == before + moved);
  }
  forget(gradient), forget(speed), forget(weight);
  free(rate.data), free(momentum.data);
}

static void epilogues(void **state) {
  (void)state;
  enum { DEPTH = 17 };
  operand a = vast(MIX_FLOAT16, MIX_SHAPE(ROWS, DEPTH)),
          b = operand_of(MIX_FLOAT16, MIX_SHAPE(DEPTH, WIDTH), NULL);
  operand bias = operand_of(MIX_FLOAT16, MIX_SHAPE(WIDTH), NULL),
          y = written(MIX_FLOAT16, MIX_SHAPE(ROWS, WIDTH));
  set_far(a); /* of the last row: 1, -2, 3 at the end of k */
  for (int i = 0; i < DEPTH * WIDTH; i++) mix_store_double(b.data, MIX_FLOAT16, i, i % 5);
  for (int j = 0; j < WIDTH; j++) mix_store_double(bias.data, MIX_FLOAT16, j, j % 7 - 3);
  run_program(&mix_op_matmul, &(mix_matmul_attributes){.transpose_a = false},
              OVER_ROWS "r0 = float16 product\n"
                        "r1 = float16 load 2 strides (0, 1)\n"
                        "r2 = float16 add r0, r1\n"
                        "r3 = float16 relu r2\n"
                        "store r3 -> 0",
              3, (operand[]){a, b, bias}, 1, &y);
  FOR_WRITTEN(y, i) {
    const int64_t j = i % WIDTH;
    double sum = (double)(j % 7 - 3);
    for (int k = 0; k < 3 && i / WIDTH == ROWS - 1; k++)
      sum += far_numbers[k] * (double)(((DEPTH - 3 + k) * WIDTH + j) % 5);
    assert_true(element(y, i) == (sum > 0 ? sum : 0));
  }
  forget(a), forget(y);
  free(b.data), free(bias.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_in_their_order), cmocka_unit_test(rows_and_columns_broadcast),
      cmocka_unit_test(large_strides),           cmocka_unit_test(casts),
      cmocka_unit_test(sums_and_means_of_rows),  cmocka_unit_test(finite_checks_of_scaled_gradients),
      cmocka_unit_test(updates_in_place),        cmocka_unit_test(epilogues),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
