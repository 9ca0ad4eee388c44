/* Precision tuning of a model that overflows float16 in two layers, by training it. */
#include "train/tune_support.h"
#include <mixtape/saving.h>

static const char *const all[] = {"before", "up", "down", "after", "last", NULL};
enum { ROWS = 256, EPOCHS = 3 };

typedef struct data {
  mix_tensor *x, *y, *test_x, *test_y;
  bool by_json; /* the overrides come by .float32_layers instead of mix_tune_dtype */
} data;

static void make_data(data *d) {
  pair_data(ROWS, 0, &d->x, &d->y);
  pair_data(ROWS / 4, 1e4, &d->test_x, &d->test_y);
}

static mix_model *made_for(const data *d, const mix_tune_trial *trial) {
  if (!d->by_json) return model_with_a_pair(mix_tune_dtype(trial, "up"), mix_tune_dtype(trial, "down"));
  mix_model *model = mix_model_from_json(mix_model_to_json(model_with_a_pair(NULL, NULL)), .no_compile = true,
                                         .float32_layers = trial->float32_layers);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.01));
  return model;
}

static double train(void *context, const mix_tune_trial *trial) {
  const data *d = context;
  mix_set_seed(trial->seed);
  mix_set_global_policy(trial->policy);
  mix_model *model = made_for(d, trial);
  mix_history *history =
      mix_model_fit(model, d->x, d->y, .batch_size = 16, .epochs = EPOCHS, .seed = trial->seed,
                    .verbose = MIX_SILENT, .callbacks = trial->callbacks);
  mix_logs *logs = history ? mix_model_evaluate(model, d->test_x, d->test_y, .verbose = MIX_SILENT) : NULL;
  return logs ? mix_logs_get(logs, "loss") : NAN;
}

static void assert_pair(mix_tuning *tuning) {
  assert_no_error();
  if (strcmp(mix_tuning_status(tuning), "found") || mix_tuning_count(tuning) != 2)
    fail_msg("%s", mix_tuning_table(tuning));
  assert_string_equal(mix_tuning_layers(tuning)[0], "up");
  assert_string_equal(mix_tuning_layers(tuning)[1], "down");
}

/* The report names up, and then down: of the runs before the first that passes none is wasted. */
static void advice_leads_to_the_pair(void **state) {
  (void)state;
  data d = {0};
  make_data(&d);
  mix_tuning *tuning = mix_tune_precision(train, all, .context = &d);
  assert_pair(tuning);
  assert_true(mix_tuning_confirmed(tuning));
  mix_tuning_run run;
  /* three of float32; none, up, up and down; without up; two to confirm; float32 with their seeds, if these
   * are hard */
  assert_true(mix_tuning_run_count(tuning) >= 9);
  for (int i = 0; i < 3; i++) {
    mix_tuning_get_run(tuning, i, &run, sizeof run);
    assert_string_equal(run.purpose, "float32");
  }
  mix_tuning_get_run(tuning, 3, &run, sizeof run);
  assert_null(run.float32_layers[0]);
  assert_string_equal(run.stopped, "stalled");
  mix_tuning_get_run(tuning, 4, &run, sizeof run);
  assert_string_equal(run.float32_layers[0], "up");
  assert_null(run.float32_layers[1]);
  assert_string_equal(run.stopped, "stalled");
  mix_tuning_get_run(tuning, 5, &run, sizeof run);
  assert_string_equal(run.float32_layers[0], "up");
  assert_string_equal(run.float32_layers[1], "down");
  assert_true(run.passed);
  assert_null(run.stopped);
}

static void overrides_by_json_are_the_same(void **state) {
  (void)state;
  data d = {.by_json = true};
  make_data(&d);
  assert_pair(mix_tune_precision(train, all, .context = &d));
}

/* bfloat16 has float32's range. */
static void bfloat16_needs_none(void **state) {
  (void)state;
  data d = {0};
  make_data(&d);
  mix_tuning *tuning = mix_tune_precision(train, all, .context = &d, .policy = "mixed_bfloat16");
  assert_no_error();
  assert_string_equal(mix_tuning_status(tuning), "found");
  assert_int_equal(mix_tuning_count(tuning), 0);
}

/* Without a loss scale the loss is infinite at once: the run ends after its first step. */
static int64_t unscaled_steps;
static double train_unscaled(void *context, const mix_tune_trial *trial) {
  const data *d = context;
  mix_set_seed(trial->seed);
  mix_set_global_policy(trial->policy);
  mix_model *model = made_for(d, trial);
  mix_history *history = mix_model_fit(model, d->x, d->y, .batch_size = 16, .epochs = 2,
                                       .verbose = MIX_SILENT, .callbacks = trial->callbacks);
  if (strcmp(trial->policy, "float32") && !trial->float32_layers[0])
    unscaled_steps = mix_history_steps(history);
  return history ? mix_logs_get(mix_history_epoch(history, 0), "loss") : NAN;
}
static void a_hopeless_run_without_scaling_ends_early(void **state) {
  (void)state;
  data d = {0};
  make_data(&d);
  mix_tuning *tuning = mix_tune_precision(train_unscaled, all, .context = &d, .policy = "float16");
  assert_no_error();
  mix_tuning_run run;
  mix_tuning_get_run(tuning, 3, &run, sizeof run);
  assert_string_equal(run.stopped, "loss not finite");
  assert_int_equal(unscaled_steps, 1);
}

/* A gradient as large makes the scale fall for good in a fit of fewer steps than that takes. */
static double train_briefly(void *context, const mix_tune_trial *trial) {
  const data *d = context;
  mix_set_seed(trial->seed);
  mix_set_global_policy(trial->policy);
  mix_model_fit(made_for(d, trial), d->x, d->y, .batch_size = 64, .steps = 4, .verbose = MIX_SILENT,
                .callbacks = trial->callbacks);
  return 1; /* as before: nothing was trained */
}
static void a_run_without_an_update_fails(void **state) {
  (void)state;
  data d = {0};
  make_data(&d);
  mix_tuning *tuning = mix_tune_precision(train_briefly, all, .context = &d);
  assert_pair(tuning);
  mix_tuning_run run;
  mix_tuning_get_run(tuning, 3, &run, sizeof run);
  assert_string_equal(run.stopped, "no step applied");
  assert_false(run.passed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(advice_leads_to_the_pair),      TEST(overrides_by_json_are_the_same),
      TEST(bfloat16_needs_none),           TEST(a_hopeless_run_without_scaling_ends_early),
      TEST(a_run_without_an_update_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
