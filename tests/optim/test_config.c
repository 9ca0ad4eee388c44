/* Optimizers from names, command-line text and configs; configs of all generations. */
#include "optim/support.h"

#include <jansson.h>

static json_t *parsed(const char *text) {
  assert_non_null(text);
  json_t *json = json_loads(text, 0, NULL);
  assert_non_null(json);
  return json;
}

static void names(void **state) {
  (void)state;
  assert_string_equal(mix_optimizer_class_name(mix_optimizer_from_name("RMSPROP")), "RMSprop");
  assert_string_equal(mix_optimizer_name(mix_optimizer_from_name("adam")), "Adam");
  mix_set_semantics("keras3");
  assert_string_equal(mix_optimizer_name(mix_optimizer_from_name("SGD")), "sgd");
  assert_null(mix_optimizer_from_name("sgdx"));
  assert_non_null(strstr(mix_error_message(), "sgd, rmsprop, adam"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void command_line_text(void **state) {
  (void)state;
  mix_optimizer *optimizer =
      mix_optimizer_from_text("sgd:learning_rate=0.1,momentum=0.9,nesterov=true", NULL);
  assert_no_error();
  json_t *config = parsed(mix_optimizer_get_config(optimizer));
  assert_true(json_real_value(json_object_get(config, "learning_rate")) == (double)0.1f);
  assert_true(json_real_value(json_object_get(config, "momentum")) == 0.9);
  assert_true(json_is_true(json_object_get(config, "nesterov")));
  json_decref(config);
  assert_true(mix_optimizer_learning_rate(mix_optimizer_from_text("adam:learning_rate=0", NULL)) == 0);
  assert_string_equal(
      mix_optimizer_class_name(mix_optimizer_from_text("rmsprop", mix_semantics_named("keras3"))), "RMSprop");
  static const char *const wrong[] = {"sgd:rate=1",
                                      "sgd:momentum",
                                      "sgd:momentum=x",
                                      "sgd:nesterov=2",
                                      "sgd:momentum=0.5,,",
                                      "sgd:momentum=2",
                                      ":"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_null(mix_optimizer_from_text(wrong[i], NULL));
    if (i == 0) assert_non_null(strstr(mix_error_message(), "learning_rate, weight_decay, clipnorm"));
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
}

static void a_rate_and_a_schedule_are_refused(void **state) {
  (void)state;
  mix_schedule *schedule = mix_exponential_decay(0.1, 10, 0.5, false);
  assert_null(mix_adam(.learning_rate = 0.25, .schedule = schedule));
  assert_string_equal(mix_error_message(),
                      "adam: .learning_rate is 0.25, and .schedule is given too; give one of them");
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_null(mix_sgd(.learning_rate = MIX_ZERO, .schedule = schedule));
  assert_non_null(strstr(mix_error_message(), ".learning_rate is 0, and .schedule"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_non_null(mix_adam(.schedule = schedule));
}

static void a_rate_that_is_no_number_is_refused(void **state) {
  (void)state;
  assert_null(mix_adam(.learning_rate = NAN));
  assert_string_equal(mix_error_message(), "adam: learning_rate is nan; expected a number");
  ASSERT_ERROR(MIX_VALUE_ERROR);
  mix_optimizer *adam = mix_adam(.learning_rate = 0.25);
  assert_int_equal(mix_optimizer_set_learning_rate(adam, NAN), MIX_VALUE_ERROR);
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_true(mix_optimizer_learning_rate(adam) == 0.25);
}

static void a_misspelled_optimizer_is_corrected(void **state) {
  (void)state;
  assert_null(mix_optimizer_from_text("adm:learning_rate=0.5", NULL));
  assert_non_null(strstr(mix_error_message(), "\"adm\"; did you mean 'adam'?"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_null(mix_optimizer_from_text("adam:beta1=0.5", NULL));
  assert_non_null(strstr(mix_error_message(), "'beta1'; did you mean 'beta_1'?"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_null(mix_optimizer_from_name("rms_prop"));
  assert_non_null(strstr(mix_error_message(), "; did you mean 'rmsprop'?"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

/* The config creates the same optimizer again: same class, same config. */
static void configs_come_back(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "keras3", "experimental"};
  for (int g = 0; g < 3; g++) {
    mix_set_semantics(generations[g]);
    mix_optimizer *optimizers[] = {mix_sgd(.momentum = 0.5, .nesterov = true),
                                   mix_rmsprop(.rho = 0.8, .centered = true, .epsilon = MIX_ZERO),
                                   mix_adam(.learning_rate = 0.5, .amsgrad = true, .clipnorm = 2),
                                   mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.25),
                                                            .initial_scale = 4, .dynamic_growth_steps = 3),
                                   mix_adamw(.weight_decay = MIX_ZERO),
                                   mix_adagrad(),
                                   mix_adadelta(.rho = 0.5),
                                   mix_nadam(),
                                   mix_adamax(),
                                   mix_lion(),
                                   mix_ftrl(.beta = 1)};
    for (size_t i = 0; i < sizeof optimizers / sizeof *optimizers; i++) {
      mix_optimizer *again = mix_optimizer_deserialize(mix_optimizer_serialize(optimizers[i]), NULL);
      assert_no_error();
      assert_string_equal(mix_optimizer_serialize(again), mix_optimizer_serialize(optimizers[i]));
    }
  }
}

static void numbers_have_the_fewest_digits_that_come_back(void **state) {
  (void)state;
  const char *text = mix_optimizer_serialize(
      mix_adam(.beta_1 = 0.9, .beta_2 = 0.1 + 0.2, .epsilon = 1e-7, .weight_decay = 3e22));
  static const char *const parts[] = {"\"beta_1\": 0.9,", "\"beta_2\": 0.30000000000000004,",
                                      "\"epsilon\": 1e-07,", "\"weight_decay\": 3e+22,"};
  for (int i = 0; i < 4; i++)
    if (!strstr(text, parts[i])) fail_msg("%s is missing in %s", parts[i], text);
}

static void config_keys_of_each_generation(void **state) {
  (void)state;
  static const struct {
    const char *semantics;
    const char *has, *lacks;
  } rows[] = {{"tf_keras", "use_ema", "loss_scale_factor"},
              {"keras3", "gradient_accumulation_steps", "decay"},
              {"experimental", "decay", "use_ema"}};
  for (int i = 0; i < 3; i++) {
    mix_set_semantics(rows[i].semantics);
    json_t *config = parsed(mix_optimizer_get_config(mix_rmsprop()));
    assert_non_null(json_object_get(config, rows[i].has));
    assert_null(json_object_get(config, rows[i].lacks));
    json_decref(config);
  }
  mix_set_semantics("tf_keras");
  json_t *config = parsed(mix_optimizer_get_config(mix_rmsprop()));
  assert_int_equal(json_integer_value(json_object_get(config, "ema_overwrite_frequency")), 100);
  assert_true(json_is_null(json_object_get(config, "clipnorm")));
  json_decref(config);
  assert_null(mix_optimizer_deserialize("{\"class_name\"", NULL));
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
}

/* As from_config of tf_keras 2.21 (SGD and legacy.SGD) and Keras 3.15; NULL: accepted. */
static void unknown_keywords_of_configs(void **state) {
  (void)state;
  enum { TYPE = MIX_TYPE_ERROR, VALUE = MIX_VALUE_ERROR };
  static const char *const generations[] = {"tf_keras", "experimental", "keras3"};
  static const struct {
    const char *keyword;
    int errors[3];
  } rows[] = {{"foo", {TYPE, TYPE, VALUE}},
              {"loss_scale_factor", {TYPE, TYPE}},
              {"gradient_accumulation_steps", {TYPE, TYPE}},
              {"weight_decay", {0, TYPE}},
              {"use_ema", {0, TYPE}},
              {"jit_compile", {0, TYPE}}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (int g = 0; g < 3; g++) {
      char config[80];
      snprintf(config, sizeof config, "{\"learning_rate\": 0.5, \"%s\": null}", rows[i].keyword);
      mix_optimizer *optimizer =
          mix_optimizer_from_config("SGD", config, mix_semantics_named(generations[g]));
      assert_int_equal(optimizer == NULL, rows[i].errors[g] != 0);
      if (optimizer) continue;
      assert_non_null(strstr(mix_error_message(), rows[i].keyword));
      assert_non_null(strstr(mix_error_message(), "known: name, learning_rate, "));
      ASSERT_ERROR((mix_status)rows[i].errors[g]);
    }
  assert_null(mix_optimizer_deserialize("{\"module\": \"keras.optimizers.legacy\", \"class_name\": \"SGD\", "
                                        "\"config\": {\"use_ema\": false}}",
                                        NULL));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

/* `decay` is an argument of the legacy family, in configs as tf_keras serializes them and in older ones
 * without a module. Expected are Keras's weights from 0 with gradients of 1 and the learning rate 0.1. */
static void decay_of_the_legacy_family(void **state) {
  (void)state;
  static const char *const texts[] = {
      "{\"module\": \"keras.optimizers.legacy\", \"class_name\": \"SGD\", \"config\": {\"name\": \"SGD\", "
      "\"learning_rate\": 0.1, \"decay\": 0.5, \"momentum\": 0.0, \"nesterov\": false}, "
      "\"registered_name\": null}",
      "{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.1, \"decay\": 0.5}}"};
  const double weights[] = {-0.1, -0.16666667, -0.21666667};
  for (int i = 0; i < 2; i++) {
    mix_variable *weight = VARIABLE(MIX_FLOAT32, "w", 0);
    mix_optimizer *optimizer = mix_optimizer_deserialize(texts[i], NULL);
    assert_no_error();
    for (int t = 0; t < 3; t++) {
      mix_optimizer_apply_gradients(optimizer, mix_list_of(VECTOR(MIX_FLOAT32, 1)), mix_list_of(weight));
      ASSERT_VALUES(weight, 1e-7, weights[t]);
    }
    json_t *config = parsed(mix_optimizer_get_config(optimizer));
    assert_true(json_number_value(json_object_get(config, "decay")) == 0.5);
    json_decref(config);
  }
}

static int decay_warnings;
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  decay_warnings += level == MIX_LOG_WARNING && strstr(message, "decay");
}

/* tf_keras rejects it for the new family, even 0; Keras 3 ignores it with a warning. */
static void decay_of_the_new_family(void **state) {
  (void)state;
  mix_set_log_callback(listen, NULL);
  decay_warnings = 0;
  static const char *const configs[] = {"{\"decay\": 0.5}", "{\"decay\": 0.0}"};
  for (int i = 0; i < 2; i++) {
    assert_null(mix_optimizer_from_config("SGD", configs[i], mix_semantics_named("tf_keras")));
    assert_non_null(strstr(mix_error_message(), "decay"));
    ASSERT_ERROR(MIX_VALUE_ERROR);
    assert_non_null(mix_optimizer_from_config("SGD", configs[i], mix_semantics_named("keras3")));
    assert_int_equal(decay_warnings, i + 1);
    assert_non_null(mix_optimizer_from_config("SGD", configs[i], mix_semantics_named("experimental")));
  }
  assert_non_null(mix_optimizer_from_config("SGD", "{\"decay\": null}", mix_semantics_named("keras3")));
  assert_int_equal(decay_warnings, 2);
  mix_set_log_callback(NULL, NULL);
  assert_null(mix_optimizer_deserialize("{\"module\": \"keras.optimizers\", \"class_name\": \"SGD\", "
                                        "\"config\": {\"decay\": 0.5, \"is_legacy_optimizer\": false}}",
                                        NULL));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

/* ---- loss-scale optimizers ---- */

static void O18_get_config(void **state) {
  (void)state;
  mix_optimizer *optimizer =
      mix_loss_scale_optimizer(mix_sgd(.learning_rate = 2), .initial_scale = 4, .dynamic_growth_steps = 3);
  json_t *config = parsed(mix_optimizer_get_config(optimizer));
  assert_int_equal(json_object_size(config), 4);
  assert_true(json_is_true(json_object_get(config, "dynamic")));
  assert_true(json_number_value(json_object_get(config, "initial_scale")) == 4);
  assert_int_equal(json_integer_value(json_object_get(config, "dynamic_growth_steps")), 3);
  json_t *inner = json_object_get(config, "inner_optimizer");
  assert_string_equal(json_string_value(json_object_get(inner, "class_name")), "SGD");
  assert_true(json_number_value(json_object_get(json_object_get(inner, "config"), "learning_rate")) == 2);
  json_decref(config);
  config = parsed(
      mix_optimizer_get_config(mix_loss_scale_optimizer(mix_sgd(), .fixed = true, .initial_scale = 8)));
  assert_true(json_is_false(json_object_get(config, "dynamic")));
  assert_true(json_is_null(json_object_get(config, "dynamic_growth_steps")));
  json_decref(config);
}

static mix_optimizer *from_experimental(const char *loss_scale) {
  char text[512];
  snprintf(
      text, sizeof text,
      "{\"optimizer\": {\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}, \"loss_scale\": %s}",
      loss_scale);
  return mix_optimizer_from_config("LossScaleOptimizer", text, NULL);
}

static void O19_O20_experimental_configs(void **state) {
  (void)state;
  mix_optimizer *optimizer =
      from_experimental("{\"class_name\": \"FixedLossScale\", \"config\": {\"loss_scale_value\": 2}}");
  assert_no_error();
  assert_false(mix_optimizer_dynamic(optimizer));
  assert_true(scale_of(optimizer) == 2);
  optimizer =
      from_experimental("{\"class_name\": \"DynamicLossScale\", \"config\": {\"initial_loss_scale\": 2, "
                        "\"increment_period\": 3, \"multiplier\": 2}}");
  assert_no_error();
  assert_true(mix_optimizer_dynamic(optimizer) && scale_of(optimizer) == 2);
  assert_int_equal(mix_optimizer_dynamic_growth_steps(optimizer), 3);
  assert_true(mix_optimizer_learning_rate(optimizer) == 0.5);
}

static void O21_other_multiplier(void **state) {
  (void)state;
  assert_null(
      from_experimental("{\"class_name\": \"DynamicLossScale\", \"config\": {\"initial_loss_scale\": 2, "
                        "\"increment_period\": 3, \"multiplier\": 4}}"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O22_other_loss_scales(void **state) {
  (void)state;
  assert_null(from_experimental("{\"class_name\": \"MyLossScale\", \"config\": {}}"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
  assert_null(from_experimental("null"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O25_dynamic_is_no_boolean(void **state) {
  (void)state;
  assert_null(mix_optimizer_from_config(
      "LossScaleOptimizer",
      "{\"inner_optimizer\": {\"class_name\": \"SGD\", \"config\": {}}, \"dynamic\": \"dynamic\"}", NULL));
  ASSERT_ERROR(MIX_TYPE_ERROR);
}

static void O65_keras3_config(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  json_t *config = parsed(mix_optimizer_get_config(mix_loss_scale_optimizer(mix_sgd(), .name = NULL)));
  assert_int_equal(json_object_size(config), 4);
  static const char *const keys[] = {"name", "inner_optimizer", "initial_scale", "dynamic_growth_steps"};
  for (int i = 0; i < 4; i++) assert_non_null(json_object_get(config, keys[i]));
  assert_string_equal(json_string_value(json_object_get(config, "name")), "loss_scale_optimizer");
  json_decref(config);
}

static mix_optimizer *keras3_with(const char *keywords) {
  char text[1024];
  snprintf(text, sizeof text,
           "{\"inner_optimizer\": {\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}%s}",
           keywords);
  return mix_optimizer_from_config("LossScaleOptimizer", text, mix_semantics_named("keras3"));
}

static void O67_unknown_keywords(void **state) {
  (void)state;
  assert_null(keras3_with(", \"foo\": 1, \"bar\": 2"));
  assert_non_null(strstr(mix_error_message(), "foo"));
  assert_non_null(strstr(mix_error_message(), "bar"));
  ASSERT_ERROR(MIX_VALUE_ERROR);
}

static void O68_base_keywords(void **state) {
  (void)state;
  static const char *const keywords[] = {"\"weight_decay\": 0.5",
                                         "\"clipnorm\": 1",
                                         "\"global_clipnorm\": 1",
                                         "\"clipvalue\": 1",
                                         "\"use_ema\": true",
                                         "\"ema_momentum\": 0.5",
                                         "\"ema_overwrite_frequency\": 2",
                                         "\"loss_scale_factor\": 2",
                                         "\"gradient_accumulation_steps\": 2"};
  for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
    char text[64];
    snprintf(text, sizeof text, ", %s", keywords[i]);
    assert_null(keras3_with(text));
    assert_non_null(strstr(mix_error_message(), "inner optimizer"));
    ASSERT_ERROR(MIX_VALUE_ERROR);
  }
}

static void O69_base_keywords_at_defaults(void **state) {
  (void)state;
  assert_non_null(keras3_with(
      ", \"weight_decay\": null, \"clipnorm\": null, \"global_clipnorm\": null, \"clipvalue\": null, "
      "\"use_ema\": false, \"ema_momentum\": 0.99, \"ema_overwrite_frequency\": null, "
      "\"loss_scale_factor\": null, \"gradient_accumulation_steps\": null, \"dynamic\": true"));
  assert_no_error();
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(names),
                                     TEST(command_line_text),
                                     TEST(a_misspelled_optimizer_is_corrected),
                                     TEST(a_rate_and_a_schedule_are_refused),
                                     TEST(a_rate_that_is_no_number_is_refused),
                                     TEST(configs_come_back),
                                     TEST(numbers_have_the_fewest_digits_that_come_back),
                                     TEST(config_keys_of_each_generation),
                                     TEST(unknown_keywords_of_configs),
                                     TEST(decay_of_the_legacy_family),
                                     TEST(decay_of_the_new_family),
                                     TEST(O18_get_config),
                                     TEST(O19_O20_experimental_configs),
                                     TEST(O21_other_multiplier),
                                     TEST(O22_other_loss_scales),
                                     TEST(O25_dynamic_is_no_boolean),
                                     TEST(O65_keras3_config),
                                     TEST(O67_unknown_keywords),
                                     TEST(O68_base_keywords),
                                     TEST(O69_base_keywords_at_defaults)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
