/* Properties of every rule: an update is one pass over its operands, a skipped step changes no bit, and eager
 * and captured updates give the same bits. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

static const char *const rules[] = {
    "sgd",
    "sgd:momentum=0.9",
    "sgd:momentum=0.9,nesterov=true,weight_decay=0.01",
    "rmsprop",
    "rmsprop:centered=true,momentum=0.9",
    "adam",
    "adam:amsgrad=true,use_ema=true,ema_overwrite_frequency=2",
    "adamw",
    "adagrad",
    "adadelta",
    "adamax",
    "nadam",
    "lion",
    "ftrl",
    "ftrl:beta=0.1,l1_regularization_strength=0.01,l2_shrinkage_regularization_strength=0.1",
    "ftrl:learning_rate_power=-0.7",
    "schedulefreeadamw",
    "lamb",
    "adafactor",
    "muon"};
enum {
  RULES = sizeof rules / sizeof *rules,
  NORM_RULES = 3
}; /* the last three need norms of whole variables before a weight changes */
static const char *const generations[] = {"tf_keras", "keras3", "experimental"};

/* Gradients for a kernel (5, 7) and a bias (3): numbers without a pattern, fixed by `seed`. */
static mix_tensor *numbers(mix_shape shape, unsigned seed) {
  double values[64];
  int64_t count = mix_shape_size(shape);
  for (int64_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    values[i] = ((double)(seed >> 8) / (1 << 23) - 1) * 0.5;
  }
  return mix_tensor_from_doubles(values, MIX_FLOAT32, shape);
}
static mix_list *like_a_layer(unsigned seed) {
  return mix_list_of(numbers(MIX_SHAPE(5, 7), seed), numbers(MIX_SHAPE(3), seed + 1));
}

static mix_list *variables_of_a_layer(void) {
  mix_list *values = like_a_layer(1);
  return mix_list_of(mix_variable_new(mix_list_get(values, 0), .name = "kernel"),
                     mix_variable_new(mix_list_get(values, 1), .name = "bias"));
}

/* The values of the variables and of an optimizer's slots, concatenated. */
typedef struct state {
  float values[512];
  int64_t count;
} state;
static void append(state *all, mix_list *variables, int first) {
  for (int i = first; i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    int64_t count = mix_shape_size(mix_variable_shape(variable));
    assert_true(all->count + count <= 512);
    mix_tensor_read(mix_variable_true_value(variable), MIX_FLOAT32, all->values + all->count, count);
    all->count += count;
  }
}
static state state_of(mix_list *variables, mix_optimizer *plain) {
  state all = {.count = 0};
  append(&all, variables, 0);
  append(&all, mix_optimizer_variables(plain), 2);
  assert_no_error();
  return all;
}
static bool same_bits(const state *a, const state *b) {
  return a->count == b->count && memcmp(a->values, b->values, sizeof *a->values * (size_t)a->count) == 0;
}

/* One step for each variable reads and writes everything that the rule uses. The rest is bookkeeping of
 * scalars. */
static void an_update_is_one_pass(void **unused) {
  (void)unused;
  for (int g = 0; g < 3; g++)
    for (int r = 0; r < RULES - NORM_RULES; r++)
      MIX_SCOPE {
        mix_set_semantics(generations[g]);
        captured_update update =
            captured_update_of(mix_optimizer_from_text(rules[r], NULL), variables_of_a_layer());
        run_captured(&update, like_a_layer(10));
        assert_no_error();
        const char *plan = mix_function_dump(update.function, "plan");
        mix_plan_report report;
        mix_function_report(update.function, &report, sizeof report);
        if (lines_with(plan, "(5, 7)") != 1 || lines_with(plan, "(3)") != 1 || report.arena_bytes > 16 * 64)
          fail_msg("%s, %s: not one pass for each variable, or more than scalars between:\n%s",
                   generations[g], rules[r], plan);
      }
}

/* The same under a dynamic loss scale: unscaling is part of the pass, and the finite test reads each gradient
 * once more. */
static void a_guarded_update_is_one_pass(void **unused) {
  (void)unused;
  for (int r = 0; r < RULES - NORM_RULES; r++)
    MIX_SCOPE {
      mix_set_semantics("keras3");
      mix_optimizer *optimizer =
          mix_loss_scale_optimizer(mix_optimizer_from_text(rules[r], NULL), .initial_scale = 8);
      captured_update update = captured_update_of(optimizer, variables_of_a_layer());
      run_captured(&update, like_a_layer(10));
      assert_no_error();
      const char *plan = mix_function_dump(update.function, "plan");
      if (lines_with(plan, "(5, 7)") != 2 || lines_with(plan, "all_finite") != 2)
        fail_msg("%s: more than a finite test and one pass for each variable:\n%s", rules[r], plan);
    }
}

/* Plan steps that use the kernel (5, 7) of a rule that needs norms first. Lamb: two norms, each a program
 * that ends in a sum and writes nothing, and the update. Adafactor: the squares with their row means, the
 * column means, its two norms, and the update. Under a guard the finite test is one more. The bias (3) has no
 * rows. */
static void norms_are_read_once(void **unused) {
  (void)unused;
  static const struct {
    const char *rule;
    /* guarded: additional steps over the kernel under a loss scale. */
    int kernel, bias, guarded;
  } rows[] = {{"lamb", 3, 3, 1}, {"adafactor", 5, 3, 1}};
  for (int guarded = 0; guarded < 2; guarded++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
      MIX_SCOPE {
        mix_set_semantics("keras3");
        mix_optimizer *optimizer = mix_optimizer_from_text(rows[r].rule, NULL);
        if (guarded) optimizer = mix_loss_scale_optimizer(optimizer, .initial_scale = 8);
        captured_update update = captured_update_of(optimizer, variables_of_a_layer());
        run_captured(&update, like_a_layer(10));
        assert_no_error();
        const char *plan = mix_function_dump(update.function, "plan");
        if (lines_with(plan, "(5, 7)") != rows[r].kernel + (guarded ? rows[r].guarded : 0) ||
            lines_with(plan, "float32(3)") != rows[r].bias + guarded)
          fail_msg("%s%s: %d steps over the kernel, %d over the bias:\n%s", rows[r].rule,
                   guarded ? ", guarded" : "", lines_with(plan, "(5, 7)"), lines_with(plan, "float32(3)"),
                   plan);
      }
}

/* One non-finite gradient leaves every weight and slot as it was; the next finite one changes them again. */
static void a_skipped_step_changes_no_bit(void **unused) {
  (void)unused;
  for (int g = 0; g < 3; g++)
    for (int r = 0; r < RULES; r++)
      for (int captured = 0; captured < 2; captured++)
        MIX_SCOPE {
          mix_set_semantics(generations[g]);
          mix_optimizer *inner = mix_optimizer_from_text(rules[r], NULL);
          mix_optimizer *optimizer =
              g == 2 ? mix_loss_scale_optimizer(inner, .loss_scale = mix_dynamic_loss_scale(8, 100, 2))
                     : mix_loss_scale_optimizer(inner, .initial_scale = 8);
          captured_update update = captured_update_of(optimizer, variables_of_a_layer());
          state states[4];
          for (int step = 0; step < 4; step++) {
            mix_list *gradients = like_a_layer(20 + (unsigned)step);
            if (step == 2)
              gradients =
                  mix_list_of(mix_list_get(gradients, 0), VECTOR(MIX_FLOAT32, 0.5, (double)INFINITY, 0.25));
            if (captured)
              run_captured(&update, gradients);
            else
              mix_optimizer_apply_gradients(optimizer, gradients, update.variables);
            states[step] = state_of(update.variables, inner);
          }
          assert_no_error();
          if (!same_bits(&states[1], &states[2]))
            fail_msg("%s, %s: a skipped step changed something", generations[g], rules[r]);
          if (same_bits(&states[2], &states[3]))
            fail_msg("%s, %s: the step after a skip changed nothing", generations[g], rules[r]);
          for (int64_t i = 0; i < states[3].count; i++) assert_true(isfinite(states[3].values[i]));
          assert_int_equal(mix_optimizer_iterations(inner), g == 0 ? 4 : 3);
        }
}

static void captured_and_direct_updates_agree_in_every_bit(void **unused) {
  (void)unused;
  for (int g = 0; g < 3; g++)
    for (int r = 0; r < RULES; r++)
      MIX_SCOPE {
        mix_set_semantics(generations[g]);
        mix_optimizer *direct = mix_optimizer_from_text(rules[r], NULL);
        captured_update update =
            captured_update_of(mix_optimizer_from_text(rules[r], NULL), variables_of_a_layer());
        mix_list *variables = variables_of_a_layer();
        if (!strcmp(rules[r], "schedulefreeadamw")) /* a function would start its average at zero */
          mix_optimizer_build(update.optimizer, update.variables);
        for (unsigned step = 0; step < 4; step++) {
          mix_list *gradients = like_a_layer(30 + step);
          mix_optimizer_apply_gradients(direct, gradients, variables);
          run_captured(&update, gradients);
          state a = state_of(variables, direct), b = state_of(update.variables, update.optimizer);
          if (!same_bits(&a, &b)) fail_msg("%s, %s: step %u differs", generations[g], rules[r], step + 1);
        }
        assert_int_equal(update.traces, 1);
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(an_update_is_one_pass), TEST(a_guarded_update_is_one_pass),
                                     TEST(norms_are_read_once), TEST(a_skipped_step_changes_no_bit),
                                     TEST(captured_and_direct_updates_agree_in_every_bit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
