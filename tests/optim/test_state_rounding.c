/* State in bfloat16: each optimizer against a plain model of the rounding, which takes one step in float32
 * from the stored numbers and rounds what that gives; threads, skipped steps, memory, errors. */
/* Holds docs/NUMERICS.md: State in bfloat16. */
#include "optim/support.h"

#include "ops/stochastic_round.h"
#include "optim/optimizer.h"
#include <mixtape/device.h>
#include <mixtape/random.h>

static const char *const rules[] = {"sgd:momentum=0.9,nesterov=true,weight_decay=0.01",
                                    "rmsprop",
                                    "rmsprop:centered=true,momentum=0.9",
                                    "adam",
                                    "adam:amsgrad=true",
                                    "adamw:clipvalue=0.25",
                                    "adagrad",
                                    "adadelta",
                                    "adamax",
                                    "nadam",
                                    "lion",
                                    "ftrl:l1_regularization_strength=0.01",
                                    "lamb",
                                    "adafactor",
                                    "muon",
                                    "schedulefreeadamw"};
enum {
  RULES = sizeof rules / sizeof *rules,
  ROWS = 5,
  COLUMNS = 7,
  SIZE = ROWS * COLUMNS,
  BIAS = 3,
  STEPS = 4
};
static const char *const states[] = {"bfloat16", "bfloat16-stochastic", "bfloat16-kahan"};

static float nearest(float x) { return mix_bits_float(mix_nearest_bits(mix_float_bits(x))); }

/* bfloat16 numbers without a pattern, so that gradients are the same in both dtypes. */
static mix_tensor *numbers(mix_dtype dtype, mix_shape shape, unsigned seed) {
  double values[SIZE];
  for (int64_t i = 0; i < mix_shape_size(shape); i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = nearest((float)(((double)(seed >> 8) / (1 << 23) - 1) * 0.5));
  }
  return mix_tensor_from_doubles(values, dtype, shape);
}
static mix_list *like_a_layer(mix_dtype dtype, unsigned seed) {
  return mix_list_of(numbers(dtype, MIX_SHAPE(ROWS, COLUMNS), seed),
                     numbers(dtype, MIX_SHAPE(BIAS), seed + 1));
}
static mix_list *variables_of_a_layer(mix_dtype dtype) {
  mix_list *values = like_a_layer(dtype, 1);
  return mix_list_of(mix_variable_new(mix_list_get(values, 0), .name = "kernel"),
                     mix_variable_new(mix_list_get(values, 1), .name = "bias"));
}

static mix_optimizer *with_state(const char *rule, const char *state) {
  char text[200];
  snprintf(text, sizeof text, "%s%sstate=%s%s", rule, strchr(rule, ':') ? "," : ":", state,
           strcmp(state, "bfloat16-stochastic") ? "" : ",state_seed=11");
  return mix_optimizer_from_text(text, NULL);
}

static void read(mix_variable *variable, float *values) {
  const int64_t count = mix_shape_size(mix_variable_shape(variable));
  assert_true(count <= SIZE);
  assert_int_equal(mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT32, values, count), MIX_OK);
}
static void write(mix_variable *variable, const float *values) {
  mix_tensor *value = mix_tensor_from(values, MIX_FLOAT32, variable->shape);
  assert_int_equal(mix_variable_assign(variable, mix_cast(value, variable->dtype)), MIX_OK);
}

/* ---- the model ---- */

/* The number that the optimizer keeps in place of `exact`. */
static float kept(const mix_optimizer *optimizer, float exact, int64_t step, int index, int what, int64_t i) {
  const uint32_t bits = mix_float_bits(exact);
  if (optimizer->rounding != MIX_STATE_STOCHASTIC) return mix_bits_float(mix_nearest_bits(bits));
  return mix_bits_float(mix_stochastic_bits(bits, mix_stochastic_draw(11, step, 8 * index + what, i)));
}

/* What the optimizer has of a variable, and its float32 twin: the weight (0) or slot `what` - 3. */
static mix_variable *part(const mix_optimizer *optimizer, int index, int what) {
  if (what == 0) return optimizer->trainable[index];
  return optimizer->slots[what - 3] ? optimizer->slots[what - 3][index] : NULL;
}

typedef struct run {
  const char *name;
  mix_optimizer *optimizer, *model;
  mix_list *variables, *twins;
} run;

/* The model's numbers become those that the optimizer keeps. */
static void give_numbers(run *r) {
  float values[SIZE], rest[SIZE];
  for (int index = 0; index < 2; index++)
    for (int what = 0; what < 3 + MIX_MAX_SLOTS; what += what ? 1 : 3) {
      mix_variable *from = part(r->optimizer, index, what);
      if (!from) continue;
      read(from, values);
      mix_variable *compensation =
          what == 0 && r->optimizer->compensations ? r->optimizer->compensations[index] : NULL;
      if (compensation) read(compensation, rest);
      for (int i = 0; compensation && i < SIZE; i++) values[i] += rest[i];
      write(part(r->model, index, what), values);
    }
}

static void compare_numbers(run *r, int64_t step) {
  float exact[SIZE], got[SIZE], rest[SIZE];
  for (int index = 0; index < 2; index++)
    for (int what = 0; what < 3 + MIX_MAX_SLOTS; what += what ? 1 : 3) {
      mix_variable *variable = part(r->optimizer, index, what);
      if (!variable) continue;
      read(part(r->model, index, what), exact);
      read(variable, got);
      const bool narrow = variable->dtype == MIX_BFLOAT16;
      mix_variable *compensation =
          what == 0 && r->optimizer->compensations ? r->optimizer->compensations[index] : NULL;
      if (compensation) read(compensation, rest);
      for (int64_t i = 0; i < mix_shape_size(variable->shape); i++) {
        const float expected = narrow ? kept(r->optimizer, exact[i], step, index, what, i) : exact[i];
        if (got[i] != expected)
          fail_msg("%s: step %d, %s[%d] is %.9g; expected %.9g of %.9g", r->name, (int)step, variable->name,
                   (int)i, got[i], expected, exact[i]);
        if (compensation && rest[i] != nearest(exact[i] - expected))
          fail_msg("%s: step %d, %s[%d]: the rest is %.9g of %.9g", r->name, (int)step, variable->name,
                   (int)i, rest[i], exact[i] - expected);
      }
    }
}

static bool can_have(const char *rule, const char *state, mix_dtype weights) {
  if (strstr(rule, "schedulefree") && strcmp(state, "bfloat16-stochastic")) return false;
  return weights == MIX_BFLOAT16 || strcmp(state, "bfloat16-kahan");
}

static void rules_round_once(void **unused) {
  (void)unused;
  const mix_dtype weights[] = {MIX_FLOAT32, MIX_BFLOAT16};
  for (int rule = 0; rule < RULES; rule++)
    for (int s = 0; s < 3; s++)
      for (int w = 0; w < 2; w++) {
        if (!can_have(rules[rule], states[s], weights[w])) continue;
        MIX_SCOPE {
          char name[200];
          snprintf(name, sizeof name, "%s, %s, %s weights", rules[rule], states[s],
                   mix_dtype_name(weights[w]));
          mix_set_semantics("keras3");
          run r = {name, with_state(rules[rule], states[s]), mix_optimizer_from_text(rules[rule], NULL),
                   variables_of_a_layer(weights[w]), variables_of_a_layer(MIX_FLOAT32)};
          mix_optimizer_build(r.optimizer, r.variables);
          mix_optimizer_build(r.model, r.twins);
          assert_no_error();
          captured_update update = captured_update_of(r.optimizer, r.variables);
          for (int64_t step = 0; step < STEPS; step++) {
            give_numbers(&r);
            if (step % 2)
              mix_optimizer_apply_gradients(r.optimizer, like_a_layer(weights[w], 30 + (unsigned)step),
                                            r.variables);
            else
              run_captured(&update, like_a_layer(weights[w], 30 + (unsigned)step));
            mix_optimizer_apply_gradients(r.model, like_a_layer(MIX_FLOAT32, 30 + (unsigned)step), r.twins);
            assert_no_error();
            compare_numbers(&r, step);
          }
        }
      }
}

/* ---- one pass, threads, skipped steps ---- */

/* The rounding is part of the program that updates a variable. */
static void an_update_is_one_pass(void **unused) {
  (void)unused;
  mix_set_semantics("keras3");
  for (int s = 0; s < 3; s++)
    MIX_SCOPE {
      mix_optimizer *optimizer = mix_loss_scale_optimizer(with_state("adam", states[s]), .initial_scale = 8);
      captured_update update = captured_update_of(optimizer, variables_of_a_layer(MIX_BFLOAT16));
      run_captured(&update, like_a_layer(MIX_BFLOAT16, 3));
      assert_no_error();
      const char *plan = mix_function_dump(update.function, "plan");
      if (lines_with(plan, "(5, 7)") != 2 || lines_with(plan, "all_finite") != 2)
        fail_msg("%s: more than a finite test and one pass for each variable:\n%s", states[s], plan);
    }
}

enum { LARGE = 70000 };

static void train_large(int threads, uint16_t *weight, uint16_t *slot) {
  MIX_SCOPE {
    assert_int_equal(mix_set_threads(threads), MIX_OK);
    mix_tensor *start = mix_cast(mix_range(0, LARGE, 1, MIX_FLOAT32), MIX_BFLOAT16);
    mix_variable *variable = mix_variable_new(start, .name = "large");
    captured_update update =
        captured_update_of(with_state("rmsprop", "bfloat16-stochastic"), mix_list_of(variable));
    for (int step = 0; step < 3; step++)
      run_captured(&update, mix_list_of(mix_fill(MIX_SHAPE(LARGE), 0.3 + step, MIX_BFLOAT16)));
    mix_tensor_read(mix_variable_true_value(variable), MIX_BFLOAT16, weight, LARGE);
    mix_variable *velocity = mix_optimizer_slot(update.optimizer, variable, "velocity");
    mix_tensor_read(mix_variable_true_value(velocity), MIX_BFLOAT16, slot, LARGE);
    assert_no_error();
  }
  mix_set_threads(0);
}

static void threads_change_no_bit(void **unused) {
  (void)unused;
  static uint16_t weight[2][LARGE], slot[2][LARGE];
  train_large(1, weight[0], slot[0]);
  bool differs = false; /* equal gradients, unequal draws */
  for (int i = 1; i < LARGE; i++) differs = differs || slot[0][i] != slot[0][0];
  assert_true(differs);
  for (int threads = 2; threads <= 3; threads++) {
    train_large(threads, weight[1], slot[1]);
    assert_memory_equal(weight[0], weight[1], sizeof *weight);
    assert_memory_equal(slot[0], slot[1], sizeof *slot);
  }
}

static void a_skipped_step_changes_nothing(void **unused) {
  (void)unused;
  mix_set_semantics("keras3");
  for (int s = 0; s < 3; s++)
    MIX_SCOPE {
      mix_optimizer *plain = with_state("adam", states[s]);
      mix_optimizer *optimizer = mix_loss_scale_optimizer(plain, .initial_scale = 8);
      mix_list *variables = variables_of_a_layer(MIX_BFLOAT16);
      captured_update update = captured_update_of(optimizer, variables);
      float before[3][SIZE], after[SIZE];
      run_captured(&update, like_a_layer(MIX_BFLOAT16, 40));
      mix_variable *watched[] = {plain->trainable[0], plain->slots[0][0],
                                 plain->compensations ? plain->compensations[0] : plain->slots[1][0]};
      for (int i = 0; i < 3; i++) read(watched[i], before[i]);
      run_captured(&update, mix_list_of(mix_fill(MIX_SHAPE(ROWS, COLUMNS), INFINITY, MIX_BFLOAT16),
                                        mix_fill(MIX_SHAPE(BIAS), 1, MIX_BFLOAT16)));
      assert_no_error();
      for (int i = 0; i < 3; i++) {
        read(watched[i], after);
        assert_memory_equal(before[i], after, sizeof after);
      }
    }
}

/* ---- what the ways of rounding are for ---- */

/* Steps of 2^-12 from 1, where the numbers are 2^-7 apart. */
static double end_of_small_steps(const char *state) {
  double mean = 0;
  MIX_SCOPE {
    mix_variable *weight = mix_variable_new(mix_fill(MIX_SHAPE(1024), 1, MIX_BFLOAT16), .name = "w");
    mix_optimizer *optimizer = with_state("sgd:learning_rate=0.000244140625", state);
    captured_update update = captured_update_of(optimizer, mix_list_of(weight));
    for (int step = 0; step < 512; step++)
      run_captured(&update, mix_list_of(mix_fill(MIX_SHAPE(1024), -1, MIX_BFLOAT16)));
    mean = mix_tensor_item(
        mix_reduce_mean(mix_cast(mix_variable_true_value(weight), MIX_FLOAT32), MIX_ALL_AXES, false));
    assert_no_error();
  }
  return mean;
}

/* 1 + 512 / 4096. By chance: of 1024 weights that move up 16 times of 512, with a variance below 16 each, the
 * mean is within 8 standard deviations of 4 / 32 numbers. By Kahan's rule each weight is at most one number
 * off. */
static void small_steps_add_up(void **unused) {
  (void)unused;
  assert_near(end_of_small_steps("bfloat16"), 1, 0);
  assert_near(end_of_small_steps("bfloat16-stochastic"), 1.125, 8 * 4.0 / 32 * 0x1p-7);
  assert_near(end_of_small_steps("bfloat16-kahan"), 1.125, 0x1p-7);
}

static void slots_take_half(void **unused) {
  (void)unused;
  for (int s = 0; s < 2; s++)
    MIX_SCOPE {
      mix_optimizer *optimizer = with_state("adam", states[s]);
      mix_list *variables = variables_of_a_layer(MIX_FLOAT32);
      assert_int_equal(mix_optimizer_build(optimizer, variables), MIX_OK);
      for (int i = 0; i < 2; i++)
        for (int slot = 0; slot < 2; slot++) assert_int_equal(optimizer->slots[slot][i]->dtype, MIX_BFLOAT16);
    }
}

/* Rows at indices, one of them twice, and the dense tensor that they stand for. In tf_keras rows with one
 * index are summed first, as the dense gradient is. */
static void rows_are_made_dense(void **unused) {
  (void)unused;
  for (int s = 0; s < 2; s++)
    MIX_SCOPE {
      float tables[2][18], slots[2][18];
      for (int dense = 0; dense < 2; dense++) {
        mix_tensor *values = numbers(MIX_FLOAT32, MIX_SHAPE(4, 3), 9);
        mix_tensor *indices = mix_tensor_from((const int32_t[]){4, 0, 4, 2}, MIX_INT32, MIX_SHAPE(4));
        mix_tensor *gradient = mix_rows(values, indices, 6);
        mix_variable *table = mix_variable_new(numbers(MIX_FLOAT32, MIX_SHAPE(6, 3), 5), .name = "table");
        mix_optimizer *optimizer = with_state("adagrad", states[s]);
        for (int step = 0; step < 2; step++)
          mix_optimizer_apply_gradients(optimizer, mix_list_of(dense ? mix_identity(gradient) : gradient),
                                        mix_list_of(table));
        assert_no_error();
        read(table, tables[dense]);
        read(optimizer->slots[0][0], slots[dense]);
      }
      assert_memory_equal(tables[0], tables[1], sizeof *tables);
      assert_memory_equal(slots[0], slots[1], sizeof *slots);
    }
}

/* ---- errors ---- */

#define REFUSED(expression, ...)                                                                             \
  do {                                                                                                       \
    const char *parts[] = {__VA_ARGS__};                                                                     \
    (void)(expression);                                                                                      \
    assert_int_equal(mix_error(), MIX_VALUE_ERROR);                                                          \
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)                                                \
      if (!strstr(mix_error_message(), parts[p])) fail_msg("%s", mix_error_message());                       \
    mix_error_clear();                                                                                       \
  } while (0)

static void states_that_cannot_be_are_refused(void **unused) {
  (void)unused;
  REFUSED(mix_adam(.state = "bfloat17"), "adam", "bfloat17", "bfloat16-stochastic");
  REFUSED(mix_adam(.state = "bfloat16", .state_seed = 3), "adam", "state_seed", "\"bfloat16\"");
  REFUSED(mix_schedule_free_adamw(.state = "bfloat16"), "schedulefreeadamw", "holds weights",
          "bfloat16-stochastic");
  REFUSED(mix_optimizer_build(mix_adam(.state = "bfloat16-kahan"), variables_of_a_layer(MIX_FLOAT32)),
          "bfloat16-kahan", "policy bfloat16");
  REFUSED(mix_optimizer_build(mix_adam(.state = "bfloat16"), variables_of_a_layer(MIX_FLOAT16)), "kernel",
          "float16", "mixed_float16");
  REFUSED(mix_optimizer_build(mix_adam(.state = "bfloat16"), variables_of_a_layer(MIX_FLOAT64)), "float64");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(rules_round_once),      TEST(an_update_is_one_pass),
                                     TEST(threads_change_no_bit), TEST(small_steps_add_up),
                                     TEST(slots_take_half),       TEST(a_skipped_step_changes_nothing),
                                     TEST(rows_are_made_dense),   TEST(states_that_cannot_be_are_refused)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
