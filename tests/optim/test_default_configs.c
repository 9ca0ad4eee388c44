/* Every default, as in get_config of Keras 3.15, tf_keras 2.21 and tf_keras.optimizers.legacy (jit_compile on
 * a machine without a GPU). */
/* Holds docs/NUMERICS.md: Optimizers. */
#include "optim/support.h"

#include <jansson.h>

/* The common part of a generation's configs, with its defaults. */
static const struct {
  const char *semantics, *config;
} common[] = {
    {"tf_keras",
     "{\"weight_decay\": null, \"clipnorm\": null, \"global_clipnorm\": null, \"clipvalue\": null, "
     "\"use_ema\": false, \"ema_momentum\": 0.99, \"ema_overwrite_frequency\": null, \"jit_compile\": false, "
     "\"is_legacy_optimizer\": false}"},
    {"keras3", "{\"weight_decay\": null, \"clipnorm\": null, \"global_clipnorm\": null, \"clipvalue\": null, "
               "\"use_ema\": false, \"ema_momentum\": 0.99, \"ema_overwrite_frequency\": null, "
               "\"loss_scale_factor\": null, \"gradient_accumulation_steps\": null}"},
    {"experimental", "{\"decay\": 0.0}"},
};

/* The additional or different part of a class. */
static const struct {
  const char *semantics, *class_name, *config;
} rows[] = {
    {"tf_keras", "SGD",
     "{\"name\": \"SGD\", \"learning_rate\": 0.009999999776482582, \"momentum\": 0.0, \"nesterov\": false}"},
    {"tf_keras", "RMSprop",
     "{\"name\": \"RMSprop\", \"ema_overwrite_frequency\": 100, \"learning_rate\": 0.0010000000474974513, "
     "\"rho\": 0.9, \"momentum\": 0.0, \"epsilon\": 1e-07, \"centered\": false}"},
    {"tf_keras", "Adam",
     "{\"name\": \"Adam\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07, \"amsgrad\": false}"},
    {"tf_keras", "AdamW",
     "{\"name\": \"AdamW\", \"weight_decay\": 0.004, \"learning_rate\": 0.0010000000474974513, "
     "\"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": 1e-07, \"amsgrad\": false}"},
    {"tf_keras", "Adagrad",
     "{\"name\": \"Adagrad\", \"learning_rate\": 0.0010000000474974513, \"initial_accumulator_value\": 0.1, "
     "\"epsilon\": 1e-07}"},
    {"tf_keras", "Adadelta",
     "{\"name\": \"Adadelta\", \"learning_rate\": 0.0010000000474974513, \"rho\": 0.95, \"epsilon\": 1e-07}"},
    {"tf_keras", "Adamax",
     "{\"name\": \"Adamax\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"tf_keras", "Nadam",
     "{\"name\": \"Nadam\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"tf_keras", "Lion",
     "{\"name\": \"Lion\", \"learning_rate\": 9.999999747378752e-05, \"beta_1\": 0.9, \"beta_2\": 0.99}"},
    {"tf_keras", "Ftrl",
     "{\"name\": \"Ftrl\", \"learning_rate\": 0.0010000000474974513, \"learning_rate_power\": -0.5, "
     "\"initial_accumulator_value\": 0.1, \"l1_regularization_strength\": 0.0, "
     "\"l2_regularization_strength\": 0.0, \"l2_shrinkage_regularization_strength\": 0.0, \"beta\": 0.0}"},
    {"tf_keras", "Adafactor",
     "{\"name\": \"Adafactor\", \"learning_rate\": 0.0010000000474974513, \"beta_2_decay\": -0.8, "
     "\"epsilon_1\": 1e-30, \"epsilon_2\": 0.001, \"clip_threshold\": 1.0, \"relative_step\": true}"},
    {"keras3", "SGD",
     "{\"name\": \"sgd\", \"learning_rate\": 0.009999999776482582, \"momentum\": 0.0, \"nesterov\": false}"},
    {"keras3", "RMSprop",
     "{\"name\": \"rm_sprop\", \"learning_rate\": 0.0010000000474974513, \"rho\": 0.9, \"momentum\": 0.0, "
     "\"epsilon\": 1e-07, \"centered\": false}"},
    {"keras3", "Adam",
     "{\"name\": \"adam\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07, \"amsgrad\": false}"},
    {"keras3", "AdamW",
     "{\"name\": \"adam_w\", \"learning_rate\": 0.0010000000474974513, \"weight_decay\": 0.004, "
     "\"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": 1e-07, \"amsgrad\": false}"},
    {"keras3", "Adagrad",
     "{\"name\": \"adagrad\", \"learning_rate\": 0.0010000000474974513, \"initial_accumulator_value\": 0.1, "
     "\"epsilon\": 1e-07}"},
    {"keras3", "Adadelta",
     "{\"name\": \"adadelta\", \"learning_rate\": 0.0010000000474974513, \"rho\": 0.95, \"epsilon\": 1e-07}"},
    {"keras3", "Adamax",
     "{\"name\": \"adamax\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"keras3", "Nadam",
     "{\"name\": \"nadam\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"keras3", "Lion",
     "{\"name\": \"lion\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.99}"},
    {"keras3", "Ftrl",
     "{\"name\": \"ftrl\", \"learning_rate\": 0.0010000000474974513, \"learning_rate_power\": -0.5, "
     "\"initial_accumulator_value\": 0.1, \"l1_regularization_strength\": 0.0, "
     "\"l2_regularization_strength\": 0.0, \"l2_shrinkage_regularization_strength\": 0.0, \"beta\": 0.0}"},
    {"keras3", "Lamb",
     "{\"name\": \"lamb\", \"learning_rate\": 0.0010000000474974513, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"keras3", "Adafactor",
     "{\"name\": \"adafactor\", \"learning_rate\": 0.0010000000474974513, \"beta_2_decay\": -0.8, "
     "\"epsilon_1\": 1e-30, \"epsilon_2\": 0.001, \"clip_threshold\": 1.0, \"relative_step\": true}"},
    {"keras3", "Muon",
     "{\"name\": \"muon\", \"learning_rate\": 0.0010000000474974513, \"weight_decay\": 0.004, "
     "\"adam_beta_1\": 0.9, \"adam_beta_2\": 0.999, \"epsilon\": 1e-07, \"exclude_layers\": [], "
     "\"muon_a\": 3.4445, \"muon_b\": -4.775, \"muon_c\": 2.0315, \"adam_lr_ratio\": 1.0, "
     "\"momentum\": 0.95, \"ns_steps\": 5, \"nesterov\": true, \"exclude_embeddings\": true, "
     "\"adam_weight_decay\": 0.004, \"rms_rate\": 0.2}"},
    {"keras3", "ScheduleFreeAdamW",
     "{\"name\": \"schedule_free_adam_w\", \"learning_rate\": 0.0024999999441206455, \"beta_1\": 0.9, "
     "\"beta_2\": 0.999, \"epsilon\": 1e-08, \"warmup_steps\": 0}"},
    {"experimental", "SGD",
     "{\"name\": \"SGD\", \"learning_rate\": 0.01, \"momentum\": 0.0, \"nesterov\": false}"},
    {"experimental", "RMSprop",
     "{\"name\": \"RMSprop\", \"learning_rate\": 0.001, \"rho\": 0.9, \"momentum\": 0.0, \"epsilon\": 1e-07, "
     "\"centered\": false}"},
    {"experimental", "Adam",
     "{\"name\": \"Adam\", \"learning_rate\": 0.001, \"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": 1e-07, "
     "\"amsgrad\": false}"},
    {"experimental", "Adagrad",
     "{\"name\": \"Adagrad\", \"learning_rate\": 0.001, \"initial_accumulator_value\": 0.1, "
     "\"epsilon\": 1e-07}"},
    {"experimental", "Adadelta",
     "{\"name\": \"Adadelta\", \"learning_rate\": 0.001, \"rho\": 0.95, \"epsilon\": 1e-07}"},
    {"experimental", "Adamax",
     "{\"name\": \"Adamax\", \"learning_rate\": 0.001, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"experimental", "Nadam",
     "{\"name\": \"Nadam\", \"learning_rate\": 0.001, \"decay\": 0.004, \"beta_1\": 0.9, \"beta_2\": 0.999, "
     "\"epsilon\": 1e-07}"},
    {"experimental", "Ftrl",
     "{\"name\": \"Ftrl\", \"learning_rate\": 0.001, \"initial_accumulator_value\": 0.1, "
     "\"learning_rate_power\": -0.5, \"l1_regularization_strength\": 0.0, "
     "\"l2_regularization_strength\": 0.0, \"beta\": 0.0, \"l2_shrinkage_regularization_strength\": 0.0}"},
};

static json_t *parsed(const char *text) {
  json_t *json = json_loads(text, 0, NULL);
  if (!json) fail_msg("no JSON: %s", text ? text : "NULL");
  return json;
}

/* The legacy family writes the learning rate as given, the others as their float32 variable. */
static void round_learning_rate(json_t *config) {
  double rate = json_real_value(json_object_get(config, "learning_rate"));
  json_object_set_new(config, "learning_rate", json_real((double)(float)rate));
}

static void defaults_are_those_of_keras(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t g = 0;
    while (strcmp(common[g].semantics, rows[i].semantics)) g++;
    json_t *expected = parsed(common[g].config), *own = parsed(rows[i].config);
    json_object_update(expected, own);
    round_learning_rate(expected);
    mix_set_semantics(rows[i].semantics);
    json_t *got = parsed(mix_optimizer_get_config(mix_optimizer_from_name(rows[i].class_name)));
    assert_no_error();
    if (!json_equal(got, expected)) {
      char *text = json_dumps(expected, JSON_SORT_KEYS), *other = json_dumps(got, JSON_SORT_KEYS);
      fail_msg("%s, %s\nexpected %s\ngot      %s", rows[i].semantics, rows[i].class_name, text, other);
    }
    json_decref(expected);
    json_decref(own);
    json_decref(got);
  }
}

/* An options struct of zeros means the same as no argument. */
static void options_at_zero_are_the_defaults(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_optimizer *optimizers[] = {mix_sgd(),     mix_rmsprop(),
                                   mix_adam(),    mix_adamw(),
                                   mix_adagrad(), mix_adadelta(),
                                   mix_adamax(),  mix_nadam(),
                                   mix_lion(),    mix_ftrl(),
                                   mix_lamb(),    mix_adafactor(),
                                   mix_muon(),    mix_schedule_free_adamw()};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
      mix_optimizer *named = mix_optimizer_from_name(mix_optimizer_class_name(optimizers[i]));
      assert_no_error();
      assert_string_equal(mix_optimizer_get_config(optimizers[i]), mix_optimizer_get_config(named));
      mix_optimizer *again = mix_optimizer_deserialize(mix_optimizer_serialize(named), NULL);
      assert_no_error();
      assert_string_equal(mix_optimizer_serialize(again), mix_optimizer_serialize(named));
    }
  }
}

/* epsilon * sqrt(1 - beta_2^t): a first step of lr * |g| / (|g| + epsilon), by hand with g = 1, epsilon = 1,
 * lr = 0.1. */
static void adaptive_epsilon_of_tf_keras(void **state) {
  (void)state;
  mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0);
  mix_optimizer *optimizer = mix_adam(.learning_rate = 0.1, .epsilon = 1, .adaptive_epsilon = true);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1)), mix_list_of(weight));
  /* 1 - beta_2 in float32 is 1.3e-5 from the double in the moment: a quarter of that in the step of 0.05. */
  ASSERT_VALUES(weight, 4e-7, -0.05);
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(g ? "experimental" : "keras3");
    assert_null(mix_adam(.adaptive_epsilon = true));
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
}

/* OptimizerV2's Nadam: `decay` belongs to its momentum schedule, and the learning rate is constant. With
 * beta_1 = 0.5 the first u is 0.25 (for decay 0: 1 - 0.5), so P = 0.25, m = 0.5, m^ = 0.25 * 0.5 / (1 -
 * 0.0625) + 0.75 / 0.75. */
static void decay_of_the_legacy_nadam(void **state) {
  (void)state;
  mix_set_semantics("experimental");
  mix_variable *weight = VARIABLE(MIX_FLOAT64, "w", 0);
  mix_optimizer *optimizer =
      mix_nadam(.learning_rate = 0.5, .beta_1 = 0.5, .beta_2 = MIX_ZERO, .decay = MIX_ZERO);
  mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT64, 1)), mix_list_of(weight));
  assert_no_error();
  ASSERT_VALUES(weight, 1e-12, -0.5 * (0.125 / 0.9375 + 1) / (1 + 1e-7));
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(defaults_are_those_of_keras),
                                     TEST(options_at_zero_are_the_defaults),
                                     TEST(adaptive_epsilon_of_tf_keras), TEST(decay_of_the_legacy_nadam)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
