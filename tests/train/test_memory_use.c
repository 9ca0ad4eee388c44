/* The use of memory of training steps (mix_set_memory): with "least", and with "auto" where copies are large,
 * the plan of a step of few examples comes within 10 % of the least, is hardly larger than float32's, and
 * gives the same bits as with "fast", whatever the loss scale; normalisations move few operands. Bytes come
 * from plans: nothing is measured. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/mixtape.h>
#include <stdlib.h>
#include <string.h>

/* A gradient of UNITS x UNITS takes 8 MiB in 16 bits: large enough for speculative updates. */
enum { INPUTS = 96, UNITS = 2048, EXAMPLES = 8, STEPS = 3, MAX_INPUTS = 784, MAX_EXAMPLES = 128 };

typedef struct shape {
  int inputs, units, examples, steps;
} shape;
static const shape small = {INPUTS, UNITS, EXAMPLES, STEPS};

/* Trainable weights of the guide's model. */
static int64_t weights_of(shape s) { return (int64_t)s.units * (s.units + s.inputs + 12) + 10; }
enum { WEIGHTS = UNITS * (UNITS + INPUTS + 12) + 10 };

typedef struct trained {
  mix_plan_report report;
  float *weights;
} trained;

static void train_shape(shape s, const char *policy, const char *memory, double scale, trained *result) {
  int64_t used = 0, labels[MAX_EXAMPLES];
  static double numbers[MAX_EXAMPLES * MAX_INPUTS];
  for (int i = 0; i < s.examples * s.inputs; i++) numbers[i] = (double)((i * 7919 + 5) % 257 - 128) / 128;
  for (int i = 0; i < s.examples; i++) labels[i] = i * 7 % 10;
  mix_set_seed(3);
  mix_set_memory(memory);
  MIX_SCOPE {
    mix_set_global_policy(policy);
    mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = s.units, .activation = "relu"),
                                                  mix_dense(.units = s.units), mix_dense(.units = 10),
                                                  mix_activation("softmax", .dtype = "float32")));
    mix_optimizer *optimizer = mix_rmsprop(.learning_rate = 0x1p-12);
    if (scale) optimizer = mix_loss_scale_optimizer(optimizer, .initial_scale = scale);
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = optimizer);
    mix_tensor *x = mix_tensor_from_doubles(numbers, MIX_FLOAT32, MIX_SHAPE(s.examples, s.inputs)),
               *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(s.examples));
    for (int i = 0; i < s.steps; i++) mix_model_train_on_batch(model, x, y);
    mix_function_report(mix_model_train_function(model), &result->report, sizeof result->report);
    mix_list *weights = mix_model_get_weights(model);
    result->weights = malloc(sizeof(float) * (size_t)weights_of(s));
    for (int i = 0; i < mix_list_count(weights); i++) {
      const int64_t count = mix_shape_size(mix_tensor_shape(mix_list_get(weights, i)));
      assert_true(used + count <= weights_of(s));
      mix_tensor_read(mix_list_get(weights, i), MIX_FLOAT32, result->weights + used, (size_t)count);
      used += count;
    }
    assert_int_equal(used, weights_of(s));
    if (mix_error()) fail_msg("%s", mix_error_message());
  }
  mix_set_memory("auto");
}

static void train(const char *policy, const char *memory, double scale, trained *result) {
  train_shape(small, policy, memory, scale, result);
}

/* Scales for which gradients are proven finite, are only tested, and are infinite, so that steps are skipped.
 */
static void plans_near_the_least_and_the_same_bits(void **state) {
  (void)state;
  static const struct {
    const char *policy;
    double scale;
  } rows[] = {
      {"mixed_bfloat16", 0}, {"mixed_float16", 1}, {"mixed_float16", 0x1p15}, {"mixed_float16", 0x1p24}};
  trained wide, fast, least;
  train("float32", "fast", 0, &wide);
  assert_int_equal(wide.report.copy_bytes, 0);
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
    train(rows[i].policy, "fast", rows[i].scale, &fast);
    train(rows[i].policy, "least", rows[i].scale, &least);
    assert_memory_equal(fast.weights, least.weights, sizeof(float) * WEIGHTS);
    /* Copies of 16 bits beside each kernel; gradients of 16 bits where they wait for the test. */
    assert_true(fast.report.copy_bytes > 2 * UNITS * UNITS);
    assert_true((fast.report.arena_bytes > 2 * UNITS * UNITS) == (rows[i].scale > 0));
    /* Of the kernels only the last is too small for its examples. Kernels of other processors multiply 16
     * bits as such and keep the copies. */
    if (least.report.copy_bytes < 4 * UNITS * 12) {
      assert_true(10 * least.report.peak_bytes <= 11 * least.report.least_bytes);
      /* Above float32's at most by the copies that are left and by the float32 forms of two activations. */
      assert_true(least.report.peak_bytes <=
                  wide.report.peak_bytes + least.report.copy_bytes + 2 * sizeof(float) * EXAMPLES * UNITS);
    }
    assert_true(least.report.arena_bytes < 2 * UNITS * UNITS);
    free(fast.weights);
    free(least.weights);
  }
  free(wide.weights);
}

/* The guide's model at batch 128, whose copies take 38 MiB: the default does without them where 16 bits are
 * multiplied in float32. No step can do without weights, slots and the batch. */
static void the_default_at_4096_units(void **state) {
  (void)state;
  const shape s = {784, 4096, 128, 1};
  const size_t weights = (size_t)weights_of(s), copies = 2 * weights,
               formula = 2 * sizeof(float) * weights + 128 * (784 * sizeof(float) + sizeof(int64_t)),
               activations = 2 * sizeof(float) * 128 * 4096;
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  trained wide, of[3];
  train_shape(s, "float32", "auto", 0, &wide);
  assert_true(wide.report.peak_bytes >= formula);
  free(wide.weights);
  for (int p = 0; p < 2; p++) {
    static const char *const settings[] = {"auto", "fast", "least"};
    for (int i = 0; i < 3; i++) train_shape(s, policies[p], settings[i], 0, &of[i]);
    const mix_plan_report *chosen = &of[0].report, *fast = &of[1].report, *least = &of[2].report;
    assert_true(fast->peak_bytes >= formula + copies);
    assert_true(least->peak_bytes <= chosen->peak_bytes);
    if (chosen->copy_bytes < copies / 10) { /* 16 bits are only widened */
      assert_true(10 * chosen->peak_bytes <= 11 * chosen->least_bytes);
      assert_true(10 * chosen->peak_bytes <= 11 * formula);
      assert_true(chosen->peak_bytes <= wide.report.peak_bytes + chosen->copy_bytes + activations);
    } else {
      assert_int_equal(chosen->peak_bytes, fast->peak_bytes);
    }
    for (int i = 1; i < 3; i++) {
      assert_memory_equal(of[0].weights, of[i].weights, sizeof(float) * weights);
      free(of[i].weights);
    }
    free(of[0].weights);
  }
}

/* 1,024 units: the copies take 3.5 MiB, and the default keeps them. */
static void the_default_keeps_small_copies(void **state) {
  (void)state;
  const shape s = {784, 1024, 32, 1};
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  trained chosen, fast;
  for (int p = 0; p < 2; p++) {
    train_shape(s, policies[p], "auto", 0, &chosen);
    train_shape(s, policies[p], "fast", 0, &fast);
    assert_true(chosen.report.copy_bytes >= 2 * 1024 * (1024 + 784));
    assert_int_equal(chosen.report.peak_bytes, fast.report.peak_bytes);
    free(chosen.weights);
    free(fast.weights);
  }
}

/* 1,120 units: the gradients take 4.1 MiB, but none of them 4 MiB, so that the default computes none again:
 * both are stored until the finite test. */
static void the_default_stores_small_gradients(void **state) {
  (void)state;
  const shape s = {784, 1120, 128, 1};
  trained chosen;
  train_shape(s, "mixed_float16", "auto", 0x1p15, &chosen);
  assert_true(chosen.report.arena_bytes >= 2 * 1120 * (1120 + 784));
  free(chosen.weights);
}

/* ---- normalisations ---- */

enum { ROWS = 2048, WIDTH = 512 };

/* Arguments: x and the gradient of y. Results: the gradients of the weights and of x. */
static mix_list *layer_gradients(void *context, mix_list *arguments) {
  mix_layer *layer = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_call(layer, x, .training = MIX_TRUE);
  mix_tape_end(tape);
  mix_list *sources = mix_layer_trainable_weights(layer);
  mix_list_append(sources, x);
  return mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(mix_list_get(arguments, 1)), sources);
}

/* In bytes of x: x once or twice for the moments, x and dy for the sums, x and dy for dx, and dx. Half an
 * operand more is left to statistics, of which there is one for 64 elements of a group. Sums over the places
 * of an image are no ends of programs: the gradient of groups stores what is summed. */
static void normalisations_in_few_passes(void **state) {
  (void)state;
  mix_set_global_policy("float32");
  const mix_shape matrix = MIX_SHAPE(ROWS, WIDTH);
  const struct {
    mix_layer *layer;
    mix_shape shape;
    double passes;
  } rows[] = {{mix_batch_normalization(), matrix, 7},
              {mix_layer_normalization(), matrix, 6},
              {mix_group_normalization(.groups = 8), matrix, 6},
              {mix_group_normalization(.groups = 8), MIX_SHAPE(ROWS / 64, 8, 8, WIDTH), 13},
              {mix_rms_normalization(), matrix, 6}};
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++)
    MIX_SCOPE {
      mix_generator *generator = mix_generator_new(1);
      mix_tensor *x = mix_random_uniform(generator, rows[i].shape, MIX_FLOAT32),
                 *dy = mix_random_uniform(generator, rows[i].shape, MIX_FLOAT32);
      mix_layer_build(rows[i].layer, rows[i].shape);
      mix_function *function = mix_function_new(layer_gradients, rows[i].layer);
      mix_plan_report report;
      mix_function_call(function, mix_list_of(x, dy));
      mix_function_report(function, &report, sizeof report);
      if (mix_error()) fail_msg("%s", mix_error_message());
      const double passes = (double)report.moved_bytes / (4.0 * ROWS * WIDTH);
      if (passes > rows[i].passes + 0.5) fail_msg("layer %d moves %.2f operands", i, passes);
    }
}

int main(void) {
  mix_set_threads(2); /* each thread adds a workspace to the plan */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plans_near_the_least_and_the_same_bits), cmocka_unit_test(the_default_at_4096_units),
      cmocka_unit_test(the_default_keeps_small_copies), cmocka_unit_test(the_default_stores_small_gradients),
      cmocka_unit_test(normalisations_in_few_passes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
