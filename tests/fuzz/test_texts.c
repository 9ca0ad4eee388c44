/* The target of configs and option texts on damaged ones. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_texts.c"

static const char *const texts[] = {
    "layer\n{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"trainable\":true,\"dtype\":\"float32\","
    "\"units\":4,\"activation\":\"relu\",\"use_bias\":true,\"kernel_initializer\":{\"class_name\":"
    "\"GlorotUniform\",\"config\":{\"seed\":null}},\"kernel_regularizer\":{\"class_name\":\"L2\",\"config\":"
    "{\"l2\":0.01}}}}",
    "optimizer\n{\"class_name\":\"Adam\",\"config\":{\"name\":\"Adam\",\"learning_rate\":0.001,"
    "\"beta_1\":0.9,\"beta_2\":0.999,\"epsilon\":1e-07,\"amsgrad\":false}}",
    "optimizer\n{\"class_name\":\"SGD\",\"config\":{\"learning_rate\":{\"class_name\":\"ExponentialDecay\","
    "\"config\":{\"initial_learning_rate\":0.1,\"decay_steps\":10,\"decay_rate\":0.5,\"staircase\":true}},"
    "\"momentum\":0.9,\"nesterov\":true}}",
    "policy\n{\"class_name\":\"Policy\",\"config\":{\"name\":\"mixed_float16\"}}",
    "loss_scale\n{\"class_name\":\"DynamicLossScale\",\"config\":{\"initial_loss_scale\":32.0,"
    "\"increment_period\":20,\"multiplier\":2.0}}",
    "schedule\n{\"class_name\":\"PiecewiseConstantDecay\",\"config\":{\"boundaries\":[10,20],\"values\":"
    "[0.1,0.01,0.001],\"name\":null}}",
    "auc\n{\"name\":\"auc\",\"dtype\":\"float32\",\"num_thresholds\":20,\"curve\":\"PR\","
    "\"summation_method\":\"interpolation\",\"multi_label\":false}",
    "mean_io_u\n{\"name\":\"iou\",\"dtype\":\"float32\",\"num_classes\":3,\"ignore_class\":null,"
    "\"sparse_y_true\":true,\"sparse_y_pred\":false,\"axis\":-1}",
    "top_k\n{\"name\":\"top\",\"dtype\":\"float32\",\"k\":3}",
    "precision\n{\"name\":\"p\",\"dtype\":\"float32\",\"thresholds\":[0.25,0.5],\"top_k\":2,\"class_id\":1}",
    "recall_at_precision\n{\"name\":\"r\",\"dtype\":\"float32\",\"num_thresholds\":20,\"precision\":0.5,"
    "\"class_id\":null}",
    "optimizer_text\nsgd:learning_rate=0.1,momentum=0.9,nesterov=true",
    "metric_text\nauc:curve=PR,num_thresholds=50,name=area",
    "metric_text\nmean_io_u:num_classes=10,sparse_y_true=false",
    "callback_text\nearly_stopping:monitor=val_loss,patience=3,restore_best_weights=true",
    "loss_scale_text\ndynamic",
};

static void damaged_texts(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    static bytes good;
    good.size = 0;
    put(&good, texts[i], strlen(texts[i]));
    mutate_and_run(&good, 3000, 80 + i);
    misplaced_words(&good, 1000, 100 + i);
  }
}

/* So that the mutations begin at something that is read. */
static void the_whole_texts_are_read(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
      const char *end = strchr(texts[i], '\n');
      const size_t length = strlen(kinds[k].name);
      if ((size_t)(end - texts[i]) != length || strncmp(texts[i], kinds[k].name, length)) continue;
      MIX_SCOPE {
        if (!kinds[k].read(end + 1)) fail_msg("%s: %s", texts[i], mix_error_message());
      }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_whole_texts_are_read),
                                     cmocka_unit_test(damaged_texts)};
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  mix_shutdown();
  return failed;
}
