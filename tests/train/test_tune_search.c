/* Precision tuning on made-up trainings: which sets it asks about, and what it makes of the answers. */
#include "model/support.h"
#include "support/every_allocation.h"
#include "support/skip.h"
#include <jansson.h>
#include <mixtape/tuning.h>
#include <stdlib.h>
#include <string.h>

static const char *const eight[] = {"a", "b", "c", "d", "e", "f", "g", "h", NULL};

/* A training whose loss depends on the set alone, and in float32 on the seed: 1.0, 1.1, 1.2, 1.0, ... */
typedef struct training {
  bool (*enough)(const struct training *t, const mix_tune_trial *trial);
  const char *suspects[4][3]; /* of the nth run under 16 bits */
  bool new_seeds_need_h;      /* seeds after 3 pass only with layer h in float32 */
  int runs;
  int float32_runs;
} training;

static bool has(const mix_tune_trial *trial, const char *layer) {
  bool listed = false;
  for (int i = 0; trial->float32_layers[i]; i++) listed |= !strcmp(trial->float32_layers[i], layer);
  const char *dtype = mix_tune_dtype(trial, layer);
  assert_true(listed == (dtype != NULL));
  if (dtype) assert_string_equal(dtype, "float32");
  return listed;
}

static double train(void *context, const mix_tune_trial *trial) {
  training *t = context;
  const bool float32 = !strcmp(trial->policy, "float32"); /* which needs no report */
  assert_int_equal(mix_list_count(trial->callbacks), float32 ? 1 : 2);
  if (float32) {
    t->float32_runs++;
    return 0.9 + 0.1 * (double)((trial->seed - 1) % 3 + 1);
  }
  assert_string_equal(trial->policy, "mixed_float16");
  if (t->runs < 4)
    for (int i = 0; i < 3 && t->suspects[t->runs][i]; i++) mix_tune_suspect(trial, t->suspects[t->runs][i]);
  t->runs++;
  if (trial->seed > 3 && t->new_seeds_need_h) return has(trial, "h") ? 1 : 2;
  return t->enough(t, trial) ? 1.2 : 1.31;
}

static mix_tuning *tune(training *t, int64_t max_trials) {
  mix_tuning *tuning = mix_tune_precision(train, eight, .context = t, .max_trials = max_trials);
  assert_no_error();
  assert_int_equal(mix_tuning_run_count(tuning), t->runs + t->float32_runs);
  return tuning;
}

static void assert_set(mix_tuning *tuning, const char *status, const char *expected) {
  char names[64] = "";
  for (int i = 0; i < mix_tuning_count(tuning); i++) strcat(names, mix_tuning_layers(tuning)[i]);
  if (strcmp(names, expected) || strcmp(mix_tuning_status(tuning), status))
    fail_msg("%s {%s}, expected %s {%s}\n%s", mix_tuning_status(tuning), names, status, expected,
             mix_tuning_table(tuning));
}

static bool always(const training *t, const mix_tune_trial *trial) {
  (void)t, (void)trial;
  return true;
}
static bool never(const training *t, const mix_tune_trial *trial) { return !always(t, trial); }
static bool pair_cf(const training *t, const mix_tune_trial *trial) {
  (void)t;
  return has(trial, "c") && has(trial, "f");
}
/* Two pairs: each layer of a pair needs the other. */
static bool two_pairs(const training *t, const mix_tune_trial *trial) {
  return pair_cf(t, trial) && has(trial, "a") && has(trial, "b");
}
/* Not monotone: with c, f must be there too, but neither is fine as long as g is. */
static bool pair_or_neither(const training *t, const mix_tune_trial *trial) {
  (void)t;
  return has(trial, "g") && has(trial, "c") == has(trial, "f");
}

/* The losses 1.0, 1.1 and 1.2 have the mean 1.1 and the sample deviation 0.1, so 1.3 is the limit. */
static void the_goal_is_two_deviations_above_the_mean(void **state) {
  (void)state;
  training t = {.enough = always};
  mix_tuning *tuning = tune(&t, 0);
  mix_tuning_goal goal;
  assert_int_equal(mix_tuning_get_goal(tuning, &goal, sizeof goal), MIX_OK);
  assert_near(goal.mean, 1.1, 1e-12);
  assert_near(goal.deviation, 0.1, 1e-12);
  assert_near(goal.limit, 1.3, 1e-12);
  assert_int_equal(t.float32_runs, 3);
}

/* Without any layer: one run, and two that confirm on the seeds 4 and 5. */
static void all_in_16_bits_comes_first(void **state) {
  (void)state;
  training t = {.enough = always};
  mix_tuning *tuning = tune(&t, 0);
  assert_set(tuning, "found", "");
  assert_int_equal(t.runs, 3);
  assert_true(mix_tuning_confirmed(tuning));
  mix_tuning_run run;
  static const struct {
    const char *purpose;
    uint64_t seed;
  } expected[] = {{"float32", 1}, {"float32", 2}, {"float32", 3},
                  {"search", 1},  {"confirm", 4}, {"confirm", 5}};
  for (int i = 0; i < 6; i++) {
    assert_int_equal(mix_tuning_get_run(tuning, i, &run, sizeof run), MIX_OK);
    assert_string_equal(run.purpose, expected[i].purpose);
    assert_int_equal(run.seed, expected[i].seed);
    assert_true((run.float32_layers == NULL) == (i < 3));
    assert_true(run.passed);
  }
  assert_non_null(strstr(mix_tuning_overrides(tuning), "No layer needs float32"));
}

/* c is named, then f and e, of which e is left out again. Asked are none, c, cef, ef, cf and f, each once;
 * two runs confirm. */
static void suspects_are_added_until_it_passes(void **state) {
  (void)state;
  training t = {.enough = pair_cf, .suspects = {{"c"}, {"f", "e"}}};
  mix_tuning *tuning = tune(&t, 0);
  assert_set(tuning, "found", "cf");
  mix_tuning_run run;
  static const char *const purposes[] = {"search", "search", "search", "reduce"};
  for (int i = 0; i < 4; i++) {
    mix_tuning_get_run(tuning, 3 + i, &run, sizeof run);
    assert_string_equal(run.purpose, purposes[i]);
  }
  assert_int_equal(t.runs, 8);
}

/* Without a word of advice, as with one that leads nowhere: delta debugging from all layers. */
static void coupled_pairs_are_found_without_advice(void **state) {
  (void)state;
  training blind = {.enough = two_pairs}, led_astray = {.enough = two_pairs, .suspects = {{"h"}, {"g"}}};
  assert_set(tune(&blind, 0), "found", "abcf");
  assert_set(tune(&led_astray, 0), "found", "abcf");
  assert_true(blind.runs <= 40);
}

/* Every set that passes and loses nothing without any one layer is right. */
static void what_is_not_monotone_still_ends(void **state) {
  (void)state;
  training t = {.enough = pair_or_neither};
  assert_set(tune(&t, 0), "found", "g");
  training advised = {.enough = pair_or_neither, .suspects = {{"c", "f", "g"}}};
  mix_tuning *tuning = tune(&advised, 0);
  /* c and f can only be left out together: the set is one from which no single layer can be. */
  assert_set(tuning, "found", "cfg");
}

static void no_set_at_all(void **state) {
  (void)state;
  training t = {.enough = never};
  mix_tuning *tuning = tune(&t, 0);
  assert_set(tuning, "none", "");
  assert_int_equal(mix_tuning_count(tuning), -1);
  assert_null(mix_tuning_layers(tuning));
  assert_int_equal(t.runs, 2); /* none and all */
  assert_null(mix_tuning_overrides(tuning));
  assert_error(MIX_RUNTIME_ERROR, "'none'");
}

static void a_limit_is_said(void **state) {
  (void)state;
  training t = {.enough = two_pairs};
  mix_tuning *tuning = tune(&t, 3); /* one to search, which fails, and two that need no set */
  assert_set(tuning, "limit", "");
  assert_int_equal(mix_tuning_count(tuning), -1);
  assert_int_equal(t.runs, 1);
  training more = {.enough = two_pairs};
  tuning = tune(&more, 4); /* none, all, and all confirmed: there is a set, though not the smallest */
  assert_set(tuning, "limit", "abcdefgh");
  assert_true(mix_tuning_confirmed(tuning));
  assert_int_equal(more.runs, 4);
  /* none, cf, f and c; two do not confirm cf; none is left for all layers */
  training confirming = {.enough = pair_cf, .suspects = {{"c", "f"}}, .new_seeds_need_h = true};
  assert_set(tune(&confirming, 6), "limit", "");
  assert_int_equal(confirming.runs, 6);
}

/* What passes on the search's seed alone is not taken: of larger sets the first that holds is. */
static void new_seeds_decide(void **state) {
  (void)state;
  training t = {.enough = pair_cf, .suspects = {{"c", "f"}}, .new_seeds_need_h = true};
  mix_tuning *tuning = tune(&t, 0);
  assert_set(tuning, "found", "abcdefgh");
  mix_tuning_run run;
  mix_tuning_get_run(tuning, mix_tuning_run_count(tuning) - 1, &run, sizeof run);
  assert_string_equal(run.purpose, "confirm");
  assert_int_equal(run.seed, 7); /* 4 and 5 for cf, 6 and 7 for all */
  assert_non_null(strstr(mix_tuning_table(tuning), "some layers of this one may not be needed."));
  assert_null(strstr(mix_tuning_table(tuning), "No layer of this set can be left out"));
}

/* One of the new seeds may be above the limit, if their mean is not; a NaN never passes. */
static double confirm_by_seed(void *context, const mix_tune_trial *trial) {
  const double *losses = context;
  if (!strcmp(trial->policy, "float32")) return 0.9 + 0.1 * (double)((trial->seed - 1) % 3 + 1);
  return trial->seed > 3 ? losses[trial->seed - 4] : 1;
}
static void the_mean_of_new_seeds_decides(void **state) {
  (void)state;
  static const char *const one[] = {"a", NULL};
  double good[] = {1.35, 1.2}, bad[] = {1.35, 1.3, 1.35, 1.3}, nan[] = {1, -NAN, 1, -NAN};
  mix_tuning *tuning = mix_tune_precision(confirm_by_seed, one, .context = good);
  assert_string_equal(mix_tuning_status(tuning), "found");
  assert_int_equal(mix_tuning_count(tuning), 0);
  assert_string_equal(mix_tuning_status(mix_tune_precision(confirm_by_seed, one, .context = bad)),
                      "unconfirmed");
  tuning = mix_tune_precision(confirm_by_seed, one, .context = nan);
  assert_string_equal(mix_tuning_status(tuning), "unconfirmed");
  assert_int_equal(mix_tuning_count(tuning), -1);
  json_t *root = json_loads(mix_tuning_json(tuning), 0, NULL);
  assert_true(json_is_null(json_object_get(root, "float32_layers")));
  /* A NaN is no matter of the seed: float32 is not asked again. */
  assert_int_equal(json_array_size(json_object_get(root, "runs")), 3 + 1 + 2 + 1 + 2);
  assert_null(strstr(mix_tuning_table(tuning), "-nan"));
  json_t *last = json_array_get(json_object_get(root, "runs"), 8);
  assert_string_equal(json_string_value(json_object_get(last, "loss")), "nan");
  json_decref(root);
}

/* Seeds 4 and 5 are hard: 2.0 under any policy. In float32 they join the other three: 1.46 + 2 0.498 is the
 * limit then, which 2 does not exceed. */
static double hard_seeds(void *context, const mix_tune_trial *trial) {
  *(int *)context += !strcmp(trial->policy, "float32");
  return trial->seed > 3 ? 2 : 0.9 + 0.1 * (double)trial->seed;
}
static void hard_seeds_are_asked_of_float32(void **state) {
  (void)state;
  int float32_runs = 0;
  mix_tuning_goal goal;
  mix_tuning *tuning = mix_tune_precision(hard_seeds, eight, .context = &float32_runs);
  assert_string_equal(mix_tuning_status(tuning), "found");
  assert_int_equal(mix_tuning_count(tuning), 0);
  assert_int_equal(float32_runs, 5);
  mix_tuning_get_goal(tuning, &goal, sizeof goal);
  assert_near(goal.mean, (1 + 1.1 + 1.2 + 2 + 2) / 5, 1e-12);
  assert_near(goal.deviation, sqrt((0.2116 + 0.1296 + 0.0676 + 2 * 0.2916) / 4), 1e-12);
}

/* Seeds that change nothing: s is 0, and the tolerance says what passes. */
static double the_same(void *context, const mix_tune_trial *trial) {
  return strcmp(trial->policy, "float32") ? *(const double *)context : 2;
}
static void seeds_that_change_nothing(void **state) {
  (void)state;
  double near = 2.02, far = 2.021, exact = 2;
  mix_tuning_goal goal;
  mix_tuning *tuning = mix_tune_precision(the_same, eight, .context = &near);
  mix_tuning_get_goal(tuning, &goal, sizeof goal);
  assert_true(goal.deviation == 0 && goal.mean == 2);
  assert_near(goal.limit, 2.02, 1e-12);
  assert_string_equal(mix_tuning_status(tuning), "found");
  assert_string_equal(mix_tuning_status(mix_tune_precision(the_same, eight, .context = &far)), "none");
  tuning = mix_tune_precision(the_same, eight, .context = &near, .tolerance = MIX_ZERO);
  assert_string_equal(mix_tuning_status(tuning), "none");
  tuning = mix_tune_precision(the_same, eight, .context = &exact, .tolerance = MIX_ZERO);
  assert_string_equal(mix_tuning_status(tuning), "found");
}

static double failing(void *context, const mix_tune_trial *trial) {
  const int *when = context;
  if (*when == 0) return INFINITY;
  if (*when == 1 && strcmp(trial->policy, "float32")) mix_tune_suspect(trial, "z");
  if (*when == 2) mix_tune_dtype(trial, NULL);
  return 1;
}
static void errors_name_what_is_wrong(void **state) {
  (void)state;
  int when = 0;
  assert_null(mix_tune_precision(failing, eight, .context = &when));
  assert_error(MIX_RUNTIME_ERROR, "in float32, with seed 1, the loss is inf");
  when = 1;
  assert_null(mix_tune_precision(failing, eight, .context = &when));
  assert_error(MIX_VALUE_ERROR, "tune_suspect: 'z' is none of the 8 layers");
  when = 2;
  assert_null(mix_tune_precision(failing, eight, .context = &when));
  assert_error(MIX_VALUE_ERROR, "tune_dtype: 'NULL'");
  assert_null(mix_tune_precision(NULL, eight));
  assert_error(MIX_TYPE_ERROR, "function is NULL");
  assert_null(mix_tune_precision(failing, NULL));
  assert_error(MIX_VALUE_ERROR, "no layer is given");
  assert_null(mix_tune_precision(failing, (const char *const[]){"a", "b", "a", NULL}));
  assert_error(MIX_VALUE_ERROR, "'a' is given twice");
  assert_null(mix_tune_precision(failing, eight, .seeds = 2));
  assert_error(MIX_VALUE_ERROR, "seeds is 2; expected at least 3");
  assert_null(mix_tune_precision(failing, eight, .max_trials = 2));
  assert_error(MIX_VALUE_ERROR, "more than the 2 runs that confirm");
  assert_null(mix_tune_precision(failing, eight, .confirmations = -1));
  assert_error(MIX_VALUE_ERROR, "confirmations is -1");
  assert_null(mix_tune_precision(failing, eight, .policy = "float32"));
  assert_error(MIX_VALUE_ERROR, "policy is float32; expected one that computes in 16 bits");
  assert_null(mix_tune_precision(failing, eight, .tolerance = -1));
  assert_error(MIX_VALUE_ERROR, "tolerance is -1");
  assert_null(mix_tune_dtype(NULL, "a"));
  assert_error(MIX_TYPE_ERROR, "tune_dtype");
  assert_null(mix_tuning_table(NULL));
  assert_error(MIX_TYPE_ERROR, "tuning_table");
}

static void the_text_says_all(void **state) {
  (void)state;
  training t = {.enough = pair_cf, .suspects = {{"c", "f"}}};
  mix_tuning *tuning = tune(&t, 0);
  const char *table = mix_tuning_table(tuning);
  assert_non_null(strstr(table, "mean loss 1.1, deviation 0.1; a set passes at 1.3 or less"));
  assert_non_null(strstr(table, "2 of 8 layers in float32: c f\n"));
  assert_non_null(strstr(table, "No layer of this set can be left out; new seeds confirm it."));
  const char *paste = mix_tuning_overrides(tuning);
  assert_non_null(strstr(paste, "(const char *const[]){\"c\", \"f\", NULL}"));
  /* Both generations read configs; layer.dtype_policy can be set in Keras 3 alone. */
  assert_non_null(strstr(paste, "Keras 3 and tf_keras, a model under mixed_float16, before compile"));
  assert_null(strstr(paste, "dtype_policy"));
  assert_non_null(strstr(paste, "def to_float32(value):\n"
                                "    for item in value.values() if isinstance(value, dict) else value:\n"
                                "        if isinstance(item, (dict, list)):\n"
                                "            to_float32(item)\n"
                                "    if isinstance(value, dict) and \"dtype\" in value:\n"
                                "        value[\"dtype\"] = \"float32\"\n\n"
                                "config, weights = model.get_config(), model.get_weights()\n"
                                "for path in [\"c\", \"f\"]:\n    layer = config\n"));
  assert_non_null(strstr(paste, "    to_float32(layer)\n\nmodel = type(model).from_config(config)\n"
                                "model.set_weights(weights)\nmixtape:\n"));
  assert_non_null(strstr(paste, "--policy mixed_float16 --float32-layers c,f\n"));
  json_t *root = json_loads(mix_tuning_json(tuning), 0, NULL);
  assert_string_equal(json_string_value(json_object_get(root, "status")), "found");
  assert_int_equal(json_array_size(json_object_get(root, "float32_layers")), 2);
  assert_int_equal(json_integer_value(json_object_get(root, "trials")), t.runs);
  json_decref(root);
}

/* What is printed is all of it, or an error. */
static void json_without_memory_is_an_error(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  training t = {.enough = pair_cf, .suspects = {{"c", "f"}}};
  mix_tuning *tuning = tune(&t, 0);
  char *whole = strdup(mix_tuning_json(tuning));
  int64_t after = 0;
  for (const char *text = NULL; !text; after++) {
    allocations_left = after;
    text = mix_tuning_json(tuning);
    allocations_left = -1;
    if (text) assert_string_equal(text, whole);
    assert_int_equal(mix_error_take(NULL, 0), text ? MIX_OK : MIX_MEMORY_ERROR);
  }
  assert_true(after > 20);
  free(whole);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_goal_is_two_deviations_above_the_mean),
      TEST(all_in_16_bits_comes_first),
      TEST(suspects_are_added_until_it_passes),
      TEST(coupled_pairs_are_found_without_advice),
      TEST(what_is_not_monotone_still_ends),
      TEST(no_set_at_all),
      TEST(a_limit_is_said),
      TEST(new_seeds_decide),
      TEST(the_mean_of_new_seeds_decides),
      TEST(hard_seeds_are_asked_of_float32),
      TEST(seeds_that_change_nothing),
      TEST(errors_name_what_is_wrong),
      TEST(the_text_says_all),
      TEST(json_without_memory_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
