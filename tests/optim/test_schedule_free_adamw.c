/* ScheduleFreeAdamW against loops over doubles (O07 to O12). */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

enum { COUNT = 3, STEPS = 5 };
static const double start[COUNT] = {1, -2, 0.5};
static const double gradients[STEPS][COUNT] = {
    {0.5, -0.25, 0.125}, {0.5, 0.25, -0.125}, {-1, 0.75, 0.5}, {0.25, -0.5, 1}, {2, 1, -0.5}};
#define CAST(x) ((double)(float)(x))

typedef struct follower {
  double w[COUNT], z[COUNT], v[COUNT];
} follower;

static void follow(follower *f, int t, double decay, double warmup) {
  const double b1 = CAST(0.75), b2 = CAST(0.999), rate = 0.125, own = rate * fmin(warmup ? t / warmup : 1, 1);
  for (int i = 0; i < COUNT; i++) {
    const double g = gradients[t - 1][i];
    f->w[i] -= f->w[i] * decay * rate;
    f->v[i] += (g * g - f->v[i]) * (1 - b2);
    f->z[i] -= own * g / (sqrt(f->v[i] / (1 - pow(b2, t))) + CAST(1e-8));
    const double x = (f->w[i] - (1 - b1) * f->z[i]) / b1;
    f->w[i] = (1 - b1) * f->z[i] + b1 * ((1 - 1.0 / t) * x + f->z[i] / t);
  }
}

/* O12: in a captured function z starts at zero; made before, or by an update outside, at the weights. */
static void it_follows_its_rule(void **unused) {
  (void)unused;
  for (int how = 0; how < 3; how++)
    for (int warmup = 0; warmup <= 2; warmup += 2)
      MIX_SCOPE {
        mix_set_semantics("keras3");
        mix_optimizer *optimizer = mix_schedule_free_adamw(.learning_rate = 0.125, .beta_1 = 0.75,
                                                           .weight_decay = 0.5, .warmup_steps = warmup);
        mix_variable *weight = mix_variable_new(vector_of(MIX_FLOAT64, COUNT, start), .name = "w");
        captured_update update = captured_update_of(optimizer, mix_list_of(weight));
        follower f = {.v = {0}};
        memcpy(f.w, start, sizeof start);
        if (how) memcpy(f.z, start, sizeof start);
        if (how == 1) mix_optimizer_build(optimizer, update.variables);
        for (int t = 1; t <= STEPS; t++) {
          mix_list *given = mix_list_of(vector_of(MIX_FLOAT64, COUNT, gradients[t - 1]));
          if (how == 2)
            mix_optimizer_apply_gradients(optimizer, given, update.variables);
          else
            run_captured(&update, given);
          follow(&f, t, 0.5, warmup);
          assert_no_error();
          for (int i = 0; i < COUNT; i++) {
            assert_near(value_at(weight, i), f.w[i], 1e-12);
            assert_near(value_at(mix_optimizer_slot(optimizer, weight, "momentum"), i), f.z[i], 1e-12);
          }
          /* O12: the initial weights are forgotten */
          if (t == 1 && how == 0)
            for (int i = 0; i < COUNT; i++) assert_near(value_at(weight, i), f.z[i], 1e-12);
        }
        mix_list *state = mix_optimizer_variables(optimizer); /* O11 */
        assert_int_equal(mix_list_count(state), 4);
        assert_ptr_equal(mix_list_get(state, 2), mix_optimizer_slot(optimizer, weight, "momentum"));
        assert_ptr_equal(mix_list_get(state, 3), mix_optimizer_slot(optimizer, weight, "velocity"));
      }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(it_follows_its_rule)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
