/* Memory budgets (mix_set_memory_budget): training steps of the examples' models and of random ones give the
 * same bits at every budget, down to the smallest that is found; a budget below it is an error that has it.
 */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "compile/budget_models.h"

#include "base/alloc.h"

static void in_each_policy(const task *t) {
  for (int p = 0; p < POLICIES; p++) assert_true(same_bits_at_all_budgets(t, policies[p], 0) > 0);
}

static void the_guides_model(void **state) {
  (void)state;
  in_each_policy(&(task){.build = guide, .rows = 512, .optimizer = "rmsprop"});
}
static void a_resnet(void **state) {
  (void)state;
  in_each_policy(&(task){.build = resnet, .rows = 8, .side = 12, .optimizer = "sgd"});
}
static void a_transformer(void **state) {
  (void)state;
  in_each_policy(&(task){.build = transformer, .rows = 16, .tokens = 12, .optimizer = "adam"});
}
static void an_lstm(void **state) {
  (void)state;
  in_each_policy(&(task){.build = lstm, .rows = 16, .tokens = 12, .optimizer = "adam"});
}

/* Layers whose calls are computed again anyway: so is what goes into them, where a budget asks for it. */
static mix_model *rematerialized(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(40)), *x = inputs;
  mix_remat_scope *scope = mix_remat_scope_begin("full");
  for (int i = 0; i < 12; i++) x = call(mix_dense(32, .activation = "gelu"), x);
  mix_remat_scope_end(scope);
  return classifier(inputs, x);
}
static void a_rematerialized_model(void **state) {
  (void)state;
  const task t = {.build = rematerialized, .rows = 512, .optimizer = "adam"};
  trained plain, least;
  assert_true(same_bits_at_all_budgets(&t, "float32", 1) > 0);
  assert_true(train(&t, "float32", 1, 0, &plain));
  assert_false(train(&t, "float32", 1, 1, &least));
  assert_true(smallest_budget(1) < plain.report.peak_bytes / 4 * 3);
  free(plain.numbers);
  free(least.numbers);
}

/* By day a few, each in one policy. */
static void random_models(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd", "adam", "lamb", "adafactor"};
  int repeating = 0;
  for (int seed = 1; seed <= 6; seed++) {
    const task t = {.build = random_model, .rows = 64, .optimizer = optimizers[seed % 4]};
    for (int p = 0; p < POLICIES; p++)
      if (seed % POLICIES == p) repeating += same_bits_at_all_budgets(&t, policies[p], seed) > 0;
  }
  assert_true(repeating >= 3);
}

static void other_budgets_have_other_plans(void **state) {
  (void)state;
  const task t = {.build = resnet, .rows = 8, .side = 12, .optimizer = "sgd"};
  MIX_SCOPE {
    mix_plan_report reports[3];
    int64_t labels[8] = {1, 2, 3};
    mix_set_global_policy("float32");
    mix_model *model = t.build();
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .optimizer = mix_optimizer_from_name("sgd"));
    for (int i = 0; i < 3; i++) {
      mix_set_memory_budget(i == 1 ? reports[0].peak_bytes - reports[0].arena_bytes / 4 : 0);
      mix_model_train_on_batch(model, numbers_of(&t), mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(8)));
      mix_function_report(mix_model_train_function(model), &reports[i], sizeof reports[i]);
      if (mix_error()) fail_msg("%s", mix_error_message());
    }
    assert_true(reports[1].peak_bytes < reports[0].peak_bytes);
    assert_int_equal(reports[2].peak_bytes, reports[0].peak_bytes);
  }
}

static char logged[256];
static void take_message(void *context, mix_log_level level, const char *message) {
  (void)context, (void)level;
  if (strstr(message, "the memory budget of")) snprintf(logged, sizeof logged, "%s", message);
}

/* MIXTAPE_VERBOSE=compile says what a budget repeats, in the numbers of the report. */
static void what_is_repeated_is_logged(void **state) {
  (void)state;
  const task t = {.build = rematerialized, .rows = 512, .optimizer = "sgd"};
  trained plain, other;
  char expected[256];
  assert_true(train(&t, "float32", 1, 0, &plain));
  mix_set_log_callback(take_message, NULL);
  setenv("MIXTAPE_VERBOSE", "compile", 1);
  const size_t budget = plain.report.peak_bytes / 8 * 7;
  const bool fits = train(&t, "float32", 1, budget, &other);
  unsetenv("MIXTAPE_VERBOSE");
  mix_set_log_callback(NULL, NULL);
  assert_true(fits && other.report.recomputed_nodes > 0);
  snprintf(expected, sizeof expected, "the memory budget of %zu bytes repeats %d nodes, %zu bytes", budget,
           other.report.recomputed_nodes, other.report.recomputed_bytes);
  if (!strstr(logged, expected)) fail_msg("got \"%s\"; expected \"%s\"", logged, expected);
  free(plain.numbers);
  free(other.numbers);
}

/* Whichever allocation of the planning fails, the call fails and the next one plans. */
static void failed_allocations(void **state) {
  (void)state;
  const task t = {.build = rematerialized, .rows = 64};
  int64_t labels[64] = {1, 2, 3};
  int failures = 0;
  MIX_SCOPE {
    mix_plan_report plain, fitting;
    mix_set_global_policy("mixed_bfloat16");
    mix_set_memory("least"); /* no copies of weights that could be given up instead */
    mix_model *model = t.build();
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                      .optimizer = mix_optimizer_from_name("sgd"));
    mix_tensor *x = numbers_of(&t), *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(64));
    mix_model_train_on_batch(model, x, y);
    mix_function_report(mix_model_train_function(model), &plain, sizeof plain);
    mix_set_memory_budget(plain.peak_bytes - plain.arena_bytes / 4);
    for (int k = 0; mix_error() == MIX_OK; k += 1 + k / 8) {
      assert_in_range(k, 0, 10000000);
      mix_inject_allocation_failure(k);
      mix_model_train_on_batch(model, x, y);
      mix_inject_allocation_failure(-1);
      if (mix_error() == MIX_OK) break;
      assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
      mix_error_clear();
      failures++;
    }
    mix_function_report(mix_model_train_function(model), &fitting, sizeof fitting);
    mix_set_memory("auto");
    assert_int_equal(mix_error(), MIX_OK);
    assert_true(fitting.recomputed_nodes > 0 && fitting.peak_bytes < plain.peak_bytes);
  }
  assert_true(failures > 50);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(the_guides_model),
                                     TEST(a_resnet),
                                     TEST(a_transformer),
                                     TEST(an_lstm),
                                     TEST(a_rematerialized_model),
                                     TEST(what_is_repeated_is_logged),
                                     TEST(failed_allocations),
                                     TEST(random_models),
                                     TEST(other_budgets_have_other_plans)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
