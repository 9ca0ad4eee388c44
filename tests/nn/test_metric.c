/* Metrics: rows C16 and C17 of docs/spec/keras.md, 19.4, the accuracies, weights, masks, and updates inside a
 * capture. */
/* Holds docs/NUMERICS.md: Softmax, cross-entropies, losses. */
#include "nn/support.h"
#include "nn/metrics/metric.h"
#include <mixtape/model.h>

static void expect_result(mix_metric *metric, double value, double tolerance) {
  double result = mix_metric_result(metric);
  if (!(fabs(result - value) <= tolerance))
    fail_msg("%s is %.9g, expected %.9g", mix_metric_name(metric), result, value);
}

static void C16_weighted_mean(void **state) {
  (void)state;
  mix_metric *mean = mix_metric_mean();
  expect_result(mean, 0, 0); /* nothing counted */
  mix_metric_update(mean, VECTOR(MIX_FLOAT32, 1, 3, 5, 7), .sample_weight = VECTOR(MIX_FLOAT32, 1, 1, 0, 0));
  expect_result(mean, 2, 0);
  mix_metric_reset(mean);
  expect_result(mean, 0, 0);
}
static void mean_over_updates(void **state) {
  (void)state;
  mix_metric *mean = mix_metric_mean(.name = "epoch_loss"), *sum = mix_metric_sum();
  mix_metric_update(mean, mix_scalar(2, MIX_FLOAT16));
  mix_metric_update(mean, VECTOR(MIX_FLOAT64, 3, 4));
  expect_result(mean, 3, 0);
  mix_metric_update(sum, VECTOR(MIX_FLOAT32, 1, 2));
  mix_metric_update(sum, MATRIX(MIX_FLOAT32, 2, 2, 1, 1, 1, 1));
  mix_metric_update(sum, VECTOR(MIX_FLOAT32, 10, 20), .sample_weight = VECTOR(MIX_FLOAT32, 0, 1));
  expect_result(sum, 27, 0);
  assert_string_equal(mix_metric_name(mean), "epoch_loss");
  assert_int_equal(mix_list_count(mix_metric_variables(mean)), 2);
  assert_int_equal(mix_list_count(mix_metric_variables(sum)), 1);
  assert_int_equal(mix_variable_true_dtype(mix_list_get(mix_metric_variables(mean), 0)), MIX_FLOAT32);
}

/* ---- accuracies ---- */

static mix_tensor *predictions(void) {
  return MATRIX(MIX_FLOAT32, 3, 3, .1, .7, .2, .6, .3, .1, .2, .2, .6);
} /* classes 1, 0, 2 */

/* "crossentropy" and "ce" choose by the shapes of the first batch and keep the given name. In keras3 they are
 * names of losses. */
static void crossentropy_chooses(void **state) {
  (void)state;
  static const char *const generations[] = {"tf_keras", "experimental"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_metric *sparse = mix_metric_new("crossentropy"), *column = mix_metric_new("ce"),
               *categorical = mix_metric_new("CE"), *binary = mix_metric_new("Crossentropy");
    mix_tensor *p = MATRIX(MIX_FLOAT32, 2, 2, .25, .75, .5, .5);
    mix_metric_update(sparse, VECTOR(MIX_INT32, 0, 1), p);
    mix_metric_update(column, MATRIX(MIX_INT32, 2, 1, 1, 1), p);
    mix_metric_update(categorical, MATRIX(MIX_FLOAT32, 2, 2, 1, 0, 0, 1), p);
    mix_metric_update(binary, MATRIX(MIX_FLOAT32, 2, 1, 1, 0), MATRIX(MIX_FLOAT32, 2, 1, .25, .5));
    /* means of -log p of the label: single precision, with epsilon 1e-7 against numbers above 0.25 */
    expect_result(sparse, (log(4) + log(2)) / 2, 1e-6);
    expect_result(column, (log(4.0 / 3) + log(2)) / 2, 1e-6);
    expect_result(categorical, (log(4) + log(2)) / 2, 1e-6);
    expect_result(binary, (log(4) + log(2)) / 2, 1e-6);
    assert_string_equal(mix_metric_name(sparse), "crossentropy");
    assert_string_equal(mix_metric_name(column), "ce");
    expect_refused(mix_metric_new("ce", .from_logits = true), MIX_TYPE_ERROR,
                   "unexpected argument 'from_logits'");
  }
  mix_set_semantics("keras3");
  static const char *const refused[] = {"crossentropy", "ce", "CE"};
  for (int i = 0; i < 3; i++)
    expect_refused(mix_metric_new(refused[i]), MIX_VALUE_ERROR, "is not known to keras3");
  assert_non_null(mix_loss_new("ce"));
  /* The only convenience name that it has. */
  mix_metric_update(mix_metric_new("acc"), VECTOR(MIX_INT32, 0), MATRIX(MIX_FLOAT32, 1, 2, 1, 0));
  assert_int_equal(mix_error(), MIX_OK);
  mix_set_semantics("tf_keras");
  expect_refused(mix_loss_new("ce"), MIX_VALUE_ERROR, "is not known to tf_keras");
}

static void C17_accuracy_chooses(void **state) {
  (void)state;
  mix_metric *sparse = mix_metric_new("accuracy"), *column = mix_metric_new("acc"),
             *categorical = mix_metric_new("accuracy"), *binary = mix_metric_new("accuracy");
  mix_metric_update(sparse, VECTOR(MIX_INT64, 1, 2, 2), predictions());
  expect_result(sparse, 2.0 / 3, 1e-7);
  assert_string_equal(sparse->kind->name, "sparse_categorical_accuracy");
  assert_string_equal(mix_metric_name(sparse), "accuracy");
  mix_metric_update(column, MATRIX(MIX_UINT8, 3, 1, 1, 2, 2), predictions());
  expect_result(column, 2.0 / 3, 1e-7);
  assert_string_equal(mix_metric_name(column), "acc");
  mix_metric_update(categorical, MATRIX(MIX_FLOAT32, 3, 3, 0, 1, 0, 0, 0, 1, 0, 0, 1), predictions());
  expect_result(categorical, 2.0 / 3, 1e-7);
  assert_string_equal(categorical->kind->name, "categorical_accuracy");
  /* .5 is not above the threshold. */
  mix_metric_update(binary, VECTOR(MIX_INT32, 1, 0, 1, 0), MATRIX(MIX_FLOAT32, 4, 1, .9, .2, .4, .5));
  expect_result(binary, 0.75, 0);
  assert_string_equal(binary->kind->name, "binary_accuracy");
}
static void named_accuracies(void **state) {
  (void)state;
  mix_metric *exact = mix_metric_new("Accuracy"),
             *binary = mix_metric_new("binary_accuracy", .threshold = .3);
  mix_metric_update(exact, MATRIX(MIX_FLOAT32, 4, 1, 1, 2, 3, 4), MATRIX(MIX_FLOAT32, 4, 1, 0, 2, 3, 4));
  expect_result(exact, 0.75, 0);
  assert_string_equal(mix_metric_name(exact), "accuracy");
  mix_metric_update(binary, MATRIX(MIX_INT32, 2, 2, 1, 0, 1, 0), MATRIX(MIX_FLOAT32, 2, 2, .4, .4, .2, .1));
  expect_result(binary, 0.5, 0);
  assert_string_equal(mix_metric_name(mix_metric_new("SparseCategoricalAccuracy")),
                      "sparse_categorical_accuracy");
}
static void top_k(void **state) {
  (void)state;
  mix_metric *top = mix_metric_new("sparse_top_k_categorical_accuracy", .k = 2),
             *one_hot = mix_metric_new("top_k_categorical_accuracy", .k = 2);
  /* ranks of the labels: 1st, 3rd, tie of 2nd and 3rd (counts as correct) */
  mix_metric_update(top, VECTOR(MIX_INT32, 1, 2, 0), predictions());
  expect_result(top, 2.0 / 3, 1e-7);
  mix_metric_update(one_hot, MATRIX(MIX_FLOAT32, 3, 3, 0, 1, 0, 0, 0, 1, 1, 0, 0), predictions());
  expect_result(one_hot, 2.0 / 3, 1e-7);
  mix_metric *nan = mix_metric_new("sparse_top_k_categorical_accuracy");
  mix_metric_update(nan, VECTOR(MIX_INT32, 0), MATRIX(MIX_FLOAT32, 1, 3, NAN, 1, 2));
  expect_result(nan, 0, 0);
}
/* Made with tf_keras 2.21 and keras 3 on TensorFlow: only the sample of finite predictions with an existing
 * label counts, for every k. */
static void top_k_of_labels_outside_and_of_infinities(void **state) {
  (void)state;
  mix_tensor *p = MATRIX(MIX_FLOAT32, 8, 3, 1, NAN, 2, 1, INFINITY, 2, 1, -INFINITY, 2, -1, -7, -2, -3, -4,
                         -3, 1, 2, 3, INFINITY, 1, 2, 5, 4, NAN);
  static const int64_t ks[] = {1, 2, 3, 5};
  for (int i = 0; i < 4; i++) {
    mix_metric *top = mix_metric_new("sparse_top_k_categorical_accuracy", .k = ks[i]);
    mix_metric_update(top, VECTOR(MIX_INT32, 2, 2, 2, 5, -1, 2, 0, 0), p);
    expect_result(top, 1.0 / 8, 0);
  }
}
static void top_k_of_labels_of_every_integer_dtype(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_UINT8, MIX_INT8, MIX_INT16, MIX_INT32, MIX_INT64};
  for (int d = 0; d < 5; d++) {
    mix_metric *top = mix_metric_new("SparseTopKCategoricalAccuracy", .k = 2),
               *one_hot = mix_metric_new("TopKCategoricalAccuracy", .k = 2);
    mix_metric_update(top, VECTOR(dtypes[d], 1, 2, 0), predictions());
    expect_result(top, 2.0 / 3, 1e-7);
    mix_metric_update(one_hot, MATRIX(dtypes[d], 3, 3, 0, 1, 0, 0, 0, 1, 1, 0, 0), predictions());
    expect_result(one_hot, 2.0 / 3, 1e-7);
    expect_status(
        mix_metric_update(one_hot, VECTOR(dtypes[d], 1, 2, 0), predictions()), MIX_VALUE_ERROR,
        "the labels have shape (3); expected one-hot labels of the predictions' shape (3, 3) (for class "
        "numbers use sparse_top_k_categorical_accuracy)");
  }
}
/* keras3 compares class ids in the prediction's dtype: 2049 is 2048 in float16. tf_keras compares in
 * float32. */
static void large_class_ids_in_float16(void **state) {
  (void)state;
  mix_tensor *p = mix_cast(mix_one_hot(VECTOR(MIX_INT32, 2048), 2100, MIX_FLOAT32), MIX_FLOAT16),
             *y = VECTOR(MIX_INT32, 2049);
  mix_metric *metric = mix_metric_new("sparse_categorical_accuracy");
  mix_metric_update(metric, y, p);
  expect_result(metric, 0, 0);
  mix_set_semantics("keras3");
  metric = mix_metric_new("sparse_categorical_accuracy");
  mix_metric_update(metric, y, p);
  expect_result(metric, 1, 0);
}
static void weights_and_masks(void **state) {
  (void)state;
  mix_metric *metric = mix_metric_new("accuracy");
  mix_metric_update(metric, VECTOR(MIX_INT64, 1, 2, 2), predictions(),
                    .sample_weight = VECTOR(MIX_FLOAT32, 1, 2, 1));
  expect_result(metric, 0.5, 0);
  mix_tensor *p = predictions();
  p->mask = mix_retain(VECTOR(MIX_BOOL, 1, 0, 1));
  metric = mix_metric_new("accuracy");
  mix_metric_update(metric, VECTOR(MIX_INT64, 1, 2, 2), p);
  expect_result(metric, 1, 0);
  /* values (batch, time) with weights (batch): each sample's mean */
  metric = mix_metric_new("mse");
  mix_metric_update(metric, mix_fill(MIX_SHAPE(2, 2, 1), 0, MIX_FLOAT32),
                    mix_reshape(VECTOR(MIX_FLOAT32, 1, 3, 2, 2), MIX_SHAPE(2, 2, 1)),
                    .sample_weight = VECTOR(MIX_FLOAT32, 1, 3));
  expect_result(metric, (5 + 3 * 4) / 4.0, 0);
}
static void losses_as_metrics(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 2, 2, 1, 4, 0, 0), *p = MATRIX(MIX_FLOAT32, 2, 2, 2, 1, 0, 2);
  static const struct {
    const char *name, *shown;
    double value;
  } rows[] = {{"mse", "mse", 3.5},
              {"MeanAbsoluteError", "mean_absolute_error", 1.5},
              {"root_mean_squared_error", "root_mean_squared_error", 1.8708287},
              {"hinge", "hinge", 0.25 * (0 + 0 + 1 + 1)}};
  for (int i = 0; i < 4; i++) {
    mix_metric *metric = mix_metric_new(rows[i].name);
    mix_metric_update(metric, y, p);
    expect_result(metric, rows[i].value, 1e-6);
    assert_string_equal(mix_metric_name(metric), rows[i].shown);
  }
  mix_metric *similarity = mix_metric_new("cosine_similarity");
  mix_metric_update(similarity, MATRIX(MIX_FLOAT32, 1, 2, 1, 4), MATRIX(MIX_FLOAT32, 1, 2, 2, 1));
  expect_result(similarity, 6 / sqrt(85), 1e-6); /* positive, unlike the loss */
}
static void M07_float32_from_float16(void **state) {
  (void)state;
  mix_set_global_policy("mixed_float16");
  mix_metric *metric = mix_metric_new("accuracy");
  mix_metric_update(metric, VECTOR(MIX_INT64, 1, 2, 2), mix_cast(predictions(), MIX_FLOAT16));
  expect_dtype(mix_metric_result_tensor(metric), MIX_FLOAT32);
  mix_metric *many = mix_metric_mean(); /* a count of 4096 ones and a 1: float16 would lose the last */
  mix_metric_update(many, mix_fill(MIX_SHAPE(4096), 1, MIX_FLOAT16));
  mix_metric_update(many, VECTOR(MIX_FLOAT16, 0));
  expect_result(many, 4096.0 / 4097, 1e-7);
}
static void refusals(void **state) {
  (void)state;
  expect_refused(mix_metric_new("acuracy"), MIX_VALUE_ERROR, "acuracy");
  expect_refused(mix_metric_new(NULL), MIX_VALUE_ERROR, "name or a function");
  expect_status(mix_metric_update(mix_metric_new("accuracy"), VECTOR(MIX_INT32, 1)), MIX_TYPE_ERROR,
                "predictions");
  expect_status(mix_metric_update(mix_metric_mean(), NULL), MIX_TYPE_ERROR, "no values");
}

/* Keras's errors, each naming the argument. */
static void arguments_are_checked(void **state) {
  (void)state;
  expect_refused(mix_metric_new("precision", .num_labels = 3), MIX_TYPE_ERROR,
                 "unexpected argument 'num_labels'");
  expect_refused(mix_metric_new("accuracy", .threshold = 0.3), MIX_TYPE_ERROR,
                 "unexpected argument 'threshold'");
  expect_refused(mix_metric_new("mse", .k = 3), MIX_TYPE_ERROR, "unexpected argument 'k'");
  expect_refused(mix_metric_new("precision", .thresholds = MIX_NUMBERS(0.5, 1.5)), MIX_VALUE_ERROR, "[0, 1]");
  expect_refused(mix_metric_new("auc", .num_thresholds = 1), MIX_VALUE_ERROR, "above 1");
  expect_refused(mix_metric_new("auc", .curve = "RCO"), MIX_VALUE_ERROR, "ROC, PR or PRGAIN");
  expect_refused(mix_metric_new("auc", .summation_method = "middle"), MIX_VALUE_ERROR,
                 "interpolation, majoring or minoring");
  expect_refused(mix_metric_new("auc", .num_labels = 3), MIX_VALUE_ERROR, "multi_label");
  expect_refused(mix_metric_new("auc", .label_weights = MIX_NUMBERS(1, -1)), MIX_VALUE_ERROR, "not negative");
  expect_refused(mix_metric_new("sensitivity_at_specificity"), MIX_TYPE_ERROR, "'specificity' is missing");
  expect_refused(mix_metric_new("precision_at_recall", .recall = 1.5), MIX_VALUE_ERROR, "recall is 1.5");
  expect_refused(mix_metric_new("recall_at_precision", .precision = 0.5, .num_thresholds = -1),
                 MIX_VALUE_ERROR, "num_thresholds");
  expect_refused(mix_metric_new("f1_score", .average = "mean"), MIX_VALUE_ERROR, "micro, macro, weighted");
  expect_refused(mix_metric_new("fbeta_score", .beta = -1), MIX_VALUE_ERROR, "beta");
  expect_refused(mix_metric_new("f1_score", .threshold = 1.5), MIX_VALUE_ERROR, "(0, 1]");
  expect_refused(mix_metric_new("f1_score", .beta = 2), MIX_TYPE_ERROR, "unexpected argument 'beta'");
  expect_refused(mix_metric_new("r2_score", .class_aggregation = "sum"), MIX_VALUE_ERROR,
                 "variance_weighted_average");
  expect_refused(mix_metric_new("r2_score", .num_regressors = -1), MIX_VALUE_ERROR, "num_regressors");
  expect_refused(mix_metric_new("mean_io_u"), MIX_TYPE_ERROR, "num_classes");
  expect_refused(mix_metric_new("IoU", .num_classes = 3), MIX_TYPE_ERROR, "'target_class_ids' is missing");
  expect_refused(mix_metric_new("IoU", .num_classes = 3, .target_class_ids = MIX_NUMBERS(0, 3)),
                 MIX_VALUE_ERROR, "out of range");
  expect_refused(mix_metric_new("mean_relative_error"), MIX_TYPE_ERROR, "'normalizer' is missing");
  expect_refused(mix_metric_new("pearson_correlation"), MIX_VALUE_ERROR, "not known to tf_keras");
  mix_set_semantics("keras3");
  expect_refused(mix_metric_new("mean_tensor"), MIX_VALUE_ERROR, "not known to keras3");
}
/* None of them counts as class 0, in no generation. */
static void what_is_no_class_is_refused(void **state) {
  (void)state;
  static const struct {
    double value;
    const char *part;
  } cases[] = {{NAN, "which NaN becomes as an integer, (element 1)"},
               {-INFINITY, "which -inf becomes as an integer, (element 1)"},
               {-0.5, "index with a fraction (element 1)"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (int keras3 = 0; keras3 < 2; keras3++) {
      mix_tensor *good = VECTOR(MIX_FLOAT32, 0, 1), *bad = VECTOR(MIX_FLOAT32, 0, cases[i].value);
      mix_set_semantics(keras3 ? "keras3" : "tf_keras");
      mix_metric *iou = mix_metric_new("mean_io_u", .num_classes = 2);
      expect_status(mix_metric_update(iou, bad, good), MIX_VALUE_ERROR, cases[i].part);
      expect_status(mix_metric_update(iou, good, bad), MIX_VALUE_ERROR, cases[i].part);
    }
  mix_set_semantics("tf_keras");
  /* -2^63 and 2^62 times 2 and 4 classes are 0 */
  static const double far[] = {-0x1p63, 0x1p62, -1, 2};
  for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
    mix_metric *iou = mix_metric_new("mean_io_u", .num_classes = i == 1 ? 4 : 2);
    expect_status(mix_metric_update(iou, VECTOR(MIX_INT64, 0, far[i]), VECTOR(MIX_INT64, 0, 1)),
                  MIX_VALUE_ERROR, "segment_sum");
  }
}
static void updates_are_checked(void **state) {
  (void)state;
  mix_tensor *y = MATRIX(MIX_FLOAT32, 2, 2, 1, 0, 0, 1), *p = MATRIX(MIX_FLOAT32, 2, 3, 1, 0, 0, 1, 0, 0);
  expect_status(mix_metric_update(mix_metric_new("precision"), y, p), MIX_VALUE_ERROR, "expected the same");
  expect_status(mix_metric_update(mix_metric_new("precision"), y), MIX_TYPE_ERROR, "predictions");
  expect_status(mix_metric_update(mix_metric_new("recall", .top_k = 3), y, y), MIX_VALUE_ERROR, "top_k is 3");
  expect_status(mix_metric_update(mix_metric_new("recall", .has_class_id = true, .class_id = 2), y, y),
                MIX_VALUE_ERROR, "class_id is 2");
  expect_status(mix_metric_update(mix_metric_new("recall", .has_class_id = true), VECTOR(MIX_FLOAT32, 1, 0),
                                  VECTOR(MIX_FLOAT32, 1, 0)),
                MIX_VALUE_ERROR, "(samples, classes)");
  expect_status(mix_metric_update(mix_metric_new("auc", .multi_label = true), VECTOR(MIX_FLOAT32, 1, 0),
                                  VECTOR(MIX_FLOAT32, 1, 0)),
                MIX_VALUE_ERROR, "(samples, labels)");
  expect_status(mix_metric_update(mix_metric_new("auc", .multi_label = true, .num_labels = 3), y, y),
                MIX_VALUE_ERROR, "(samples, 3)");
  expect_status(
      mix_metric_update(mix_metric_new("f1_score"), VECTOR(MIX_FLOAT32, 1, 0), VECTOR(MIX_FLOAT32, 1, 0)),
      MIX_VALUE_ERROR, "ranks");
  /* A class index outside the matrix is an error of the step in tf_keras; keras3 ignores it. */
  expect_status(mix_metric_update(mix_metric_new("mean_io_u", .num_classes = 2), VECTOR(MIX_FLOAT32, 0, 1),
                                  VECTOR(MIX_FLOAT32, 0, 2)),
                MIX_VALUE_ERROR, "");
  mix_set_semantics("keras3");
  mix_metric *iou = mix_metric_new("mean_io_u", .num_classes = 2);
  mix_metric_update(iou, VECTOR(MIX_FLOAT32, 0, 1, 1), VECTOR(MIX_FLOAT32, 0, 2, 1));
  expect_result(iou, 1, 1e-6);
  assert_int_equal(mix_metric_dtype(iou), MIX_INT64);
  mix_metric *tensor = mix_metric_new("mean_tensor", .semantics = mix_semantics_named("tf_keras"));
  mix_metric_update(tensor, VECTOR(MIX_FLOAT32, 1, 2));
  expect_status(mix_metric_update(tensor, VECTOR(MIX_FLOAT32, 1, 2, 3)), MIX_VALUE_ERROR,
                "as in the first update");
}
/* NaN predictions are above no threshold; infinities are. */
static void not_finite_predictions(void **state) {
  (void)state;
  mix_tensor *y = VECTOR(MIX_FLOAT32, 1, 1, 1, 0), *p = VECTOR(MIX_FLOAT32, NAN, INFINITY, -INFINITY, NAN);
  mix_metric *hits = mix_metric_new("true_positives"), *misses = mix_metric_new("false_negatives"),
             *auc = mix_metric_new("auc");
  mix_metric_update(hits, y, p);
  mix_metric_update(misses, y, p);
  mix_metric_update(auc, y, p);
  expect_result(hits, 1, 0);
  expect_result(misses, 2, 0);
  /* True positives. */
  mix_tensor *state_of_auc = mix_variable_true_value(mix_list_get(mix_metric_variables(auc), 0));
  double counted[200];
  assert_int_equal(mix_tensor_read(state_of_auc, MIX_FLOAT64, counted, 200), MIX_OK);
  assert_true(counted[0] == 2 && counted[1] == 1 && counted[199] == 0); /* 0 is above -1e-7 */
}
/* State that depends on shapes is created once, by build or by the first update. */
static void built_by_hand(void **state) {
  (void)state;
  mix_metric *metric = mix_metric_new("mean_tensor");
  assert_int_equal(mix_list_count(mix_metric_variables(metric)), 0);
  for (int round = 0; round < 2; round++) {
    assert_int_equal(mix_metric_build(metric, MIX_SHAPE(3), MIX_SCALAR), MIX_OK);
    assert_int_equal(mix_list_count(mix_metric_variables(metric)), 2);
  }
  assert_true(
      mix_shape_equal(mix_variable_shape(mix_list_get(mix_metric_variables(metric), 0)), MIX_SHAPE(3)));
}
/* The mean of each element over the updates. */
static void mean_tensors(void **state) {
  (void)state;
  mix_metric *metric = mix_metric_new("mean_tensor");
  mix_metric_update(metric, VECTOR(MIX_FLOAT32, 1, 3, 5));
  mix_metric_update(metric, VECTOR(MIX_FLOAT32, 3, 0, 9), .sample_weight = VECTOR(MIX_FLOAT32, 1, 0, 3));
  double mean[3];
  assert_int_equal(mix_tensor_read(mix_metric_result_tensor(metric), MIX_FLOAT64, mean, 3), MIX_OK);
  assert_true(mean[0] == 2 && mean[1] == 3 && mean[2] == 8);
  expect_refused((mix_metric_result(metric), NULL), MIX_VALUE_ERROR, "3 numbers");
}
/* A lower-case name is kept; a class name gets Keras's counter. */
static void default_names(void **state) {
  (void)state;
  static const char *const rows[][2] = {{"precision", "precision"},
                                        {"Precision", "precision"},
                                        {"Precision", "precision_1"},
                                        {"AUC", "auc"},
                                        {"auc", "auc"},
                                        {"F1Score", "f1_score"},
                                        {"LogCoshError", "logcosh"},
                                        {"mse", "mse"},
                                        {"KLDivergence", "kullback_leibler_divergence"},
                                        {"TruePositives", "true_positives"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    assert_string_equal(mix_metric_name(mix_metric_new(rows[i][0])), rows[i][1]);
  assert_string_equal(mix_metric_name(mix_metric_new("MeanIoU", .num_classes = 2)), "mean_io_u");
}
/* A metric created from another's config has the same config. */
static void configs(void **state) {
  (void)state;
  mix_metric *made[] = {
      mix_metric_new("Precision", .thresholds = MIX_NUMBERS(0.25, 0.5), .top_k = 2, .has_class_id = true),
      mix_metric_new("AUC", .curve = "PR", .num_thresholds = 7, .label_weights = MIX_NUMBERS(1, 2)),
      mix_metric_new("BinaryAccuracy", .threshold = MIX_ZERO),
      mix_metric_new("FBetaScore", .beta = 2, .average = "macro"),
      mix_metric_new("R2Score", .class_aggregation = "none", .num_regressors = 1),
      mix_metric_new("OneHotIoU", .num_classes = 3, .target_class_ids = MIX_NUMBERS(0, 2), .name = "over"),
      mix_metric_new("SensitivityAtSpecificity", .specificity = 0.25),
      mix_metric_new("MeanTensor", .shape = MIX_SHAPE(2, 3)),
      mix_metric_new("CategoricalCrossentropy", .from_logits = true, .label_smoothing = 0.125)};
  char text[512];
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    snprintf(text, sizeof text, "%s", mix_metric_get_config(made[i]));
    mix_metric *again = mix_metric_from_config(mix_metric_class_name(made[i]), text, NULL);
    assert_non_null(again);
    assert_string_equal(mix_metric_get_config(again), text);
  }
  snprintf(text, sizeof text, "%s", mix_metric_get_config(made[0]));
  assert_non_null(strstr(text, "\"thresholds\": [0.25, 0.5]"));
  assert_non_null(strstr(text, "\"class_id\": 0"));
  assert_non_null(strstr(mix_metric_get_config(made[3]), "\"threshold\": null"));
  expect_refused(mix_metric_from_config("Precision", "{", NULL), MIX_VALUE_ERROR, "");
  expect_refused(mix_metric_from_config("Precision", "{\"thresholds\": [\"a\"]}", NULL), MIX_TYPE_ERROR,
                 "expected a list of numbers");
}

static mix_list *body(void *metric, mix_list *arguments) {
  mix_metric_update(metric, mix_list_get(arguments, 0), mix_list_get(arguments, 1));
  return mix_list_of(mix_metric_result_tensor(metric));
}
static void captured(void **state) {
  (void)state;
  mix_metric *metric = mix_metric_new("accuracy");
  mix_function *function = mix_function_new(body, metric);
  static const double labels[2][3] = {{1, 2, 2}, {1, 0, 2}}, after[2] = {2.0 / 3, 5.0 / 6};
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      mix_tensor *result = mix_list_get(
          mix_function_call(function, mix_list_of(vector(MIX_INT64, 3, labels[i]), predictions())), 0);
      assert_true(fabs(mix_tensor_item(result) - after[i]) < 1e-7);
      expect_result(metric, after[i], 1e-7);
    }
  mix_metric_reset(metric);
  expect_result(metric, 0, 0);
}
/* The guide's loop: updates leave no objects in the caller's scope. */
static void updates_do_not_accumulate_objects(void **state) {
  (void)state;
  mix_metric *mean = mix_metric_mean();
  mix_tensor *value = mix_scalar(0.5, MIX_FLOAT32);
  int before = mix_references(value);
  for (int i = 0; i < 100; i++) mix_metric_update(mean, value);
  expect_result(mean, 0.5, 0);
  assert_int_equal(mix_references(value), before);
}

static void from_text(void **state) {
  (void)state;
  mix_metric *metric = mix_metric_from_text("auc:curve=PR,num_thresholds=50,name=area", NULL);
  assert_string_equal(mix_metric_name(metric), "area");
  assert_non_null(strstr(mix_metric_get_config(metric), "\"curve\": \"PR\""));
  assert_non_null(strstr(mix_metric_get_config(metric), "\"num_thresholds\": 50"));
  metric = mix_metric_from_text("io_u:num_classes=3,target_class_ids=0:2,sparse_y_pred=False", NULL);
  assert_non_null(strstr(mix_metric_get_config(metric), "\"target_class_ids\": [0, 2]"));
  assert_non_null(strstr(mix_metric_get_config(metric), "\"sparse_y_pred\": false"));
  metric = mix_metric_from_text("sensitivity_at_specificity:specificity=0", NULL); /* an explicit zero */
  assert_non_null(strstr(mix_metric_get_config(metric), "\"specificity\": 0.0"));
  assert_string_equal(mix_metric_name(mix_metric_from_text("accuracy", NULL)), "accuracy");
  assert_string_equal(mix_metric_name(mix_metric_from_text("binary_crossentropy:from_logits=true", NULL)),
                      "binary_crossentropy");
  assert_int_equal(mix_error(), MIX_OK);
  expect_refused(mix_metric_from_text("mean_io_u", NULL), MIX_TYPE_ERROR, "'num_classes' is missing");
  expect_refused(mix_metric_from_text("mean_io_u:num_classes=-2", NULL), MIX_VALUE_ERROR,
                 "num_classes is -2");
  expect_refused(mix_metric_from_text("mean_io_u:num_classes=ten", NULL), MIX_VALUE_ERROR,
                 "'ten'; expected an integer");
  expect_refused(mix_metric_from_text("mean_io_u:classes=10", NULL), MIX_TYPE_ERROR,
                 "known: name, dtype, num_classes");
  expect_refused(mix_metric_from_text("precision:thresholds=0.1:x", NULL), MIX_VALUE_ERROR,
                 "numbers with colons between");
  expect_refused(mix_metric_from_text("accuracy:threshold=0.1", NULL), MIX_TYPE_ERROR,
                 "unexpected argument 'threshold'");
  expect_refused(mix_metric_from_text("auc:", NULL), MIX_VALUE_ERROR, "key=value");
  expect_refused(mix_metric_from_text("auc:=3", NULL), MIX_VALUE_ERROR, "key=value");
  expect_refused(mix_metric_from_text("auc:name=\xff", NULL), MIX_VALUE_ERROR, "UTF-8");
  expect_refused(mix_metric_from_text("auc:curve=\xff", NULL), MIX_VALUE_ERROR, "expected a word");
  expect_refused(mix_metric_from_text(NULL, NULL), MIX_TYPE_ERROR, "no text");
}

static void unknown_names_get_a_suggestion(void **state) {
  (void)state;
  expect_refused(mix_metric_new("acuracy"), MIX_VALUE_ERROR, "did you mean 'accuracy'?");
  expect_refused(mix_metric_new("mea_squared_error"), MIX_VALUE_ERROR, "did you mean 'mean_squared_error'?");
  expect_refused(mix_metric_new("speed"), MIX_VALUE_ERROR, "known: accuracy, mean, ");
}

/* Also a TypeError in Keras: a mean of the labels does not depend on the model. */
static void means_of_values_compare_nothing(void **state) {
  (void)state;
  static const char *const names[] = {"mean", "sum"};
  for (int i = 0; i < 2; i++) {
    mix_metric *metric = mix_metric_new(names[i]);
    mix_metric_update(metric, VECTOR(MIX_FLOAT32, 0, 1), VECTOR(MIX_FLOAT32, 0, 2));
    assert_int_equal(mix_error(), MIX_TYPE_ERROR);
    assert_non_null(strstr(mix_error_message(), "got labels and predictions"));
    mix_error_clear();
  }
}

/* ---- numbers of tf_keras 2.21 and Keras 3.15 on these arrays ---- */

static void ignored_class(void **state) {
  (void)state;
  mix_tensor *p = MATRIX(MIX_FLOAT32, 3, 3, .1, .2, .7, .5, .25, .25, .3, .3, .4),
             *y = VECTOR(MIX_INT32, 0, 1, 2);
  mix_metric *metric = mix_metric_new("SparseCategoricalCrossentropy", .has_ignore_class = true);
  mix_metric_update(metric, y, p);
  expect_result(metric, 1.1512926, 1e-6);
  mix_metric_update(metric, y, p, .sample_weight = VECTOR(MIX_FLOAT32, 5, 1, 1));
  expect_result(metric, 1.1512926, 1e-6);
}

/* (batch) against (batch, 1): tf_keras counts one value for the batch, keras3 one for each sample. */
static void ranks_are_aligned(void **state) {
  (void)state;
  static const struct {
    const char *semantics, *metric;
    double value, count;
  } rows[] = {{"tf_keras", "mse", 0.47666669, 2},
              {"tf_keras", "binary_crossentropy", 1.2851191, 2},
              {"tf_keras", "binary_accuracy", 1. / 3, 2},
              {"keras3", "mse", 0.395, 4},
              {"keras3", "binary_accuracy", 0.5, 4}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_set_semantics(rows[i].semantics);
    mix_metric *metric = mix_metric_new(rows[i].metric);
    mix_metric_update(metric, VECTOR(MIX_FLOAT32, 0, 1, 1), MATRIX(MIX_FLOAT32, 3, 1, .2, .7, .1));
    mix_metric_update(metric, VECTOR(MIX_FLOAT32, 1), MATRIX(MIX_FLOAT32, 1, 1, .2));
    expect_result(metric, rows[i].value, 1e-6);
    EXPECT_EXACT(mix_metric_value(metric, 1), rows[i].count);
  }
  mix_set_semantics("tf_keras");
  mix_metric *cosine = mix_metric_new("CosineSimilarity");
  mix_metric_update(cosine, VECTOR(MIX_FLOAT32, 0, 1, 1), MATRIX(MIX_FLOAT32, 3, 1, .2, .7, .1));
  expect_result(cosine, 0.76980037, 1e-6);
}

/* compile gives tf_keras's metrics labels (batch) as (batch, 1). */
static void accuracy_of_a_column(void **state) {
  (void)state;
  mix_tensor *x = MATRIX(MIX_FLOAT32, 4, 1, .2, .7, .1, .2), *y = VECTOR(MIX_FLOAT32, 0, 1, 1, 1),
             *weight = VECTOR(MIX_FLOAT32, 1, 2, 5, 2);
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int g = 0; g < 2; g++) {
    mix_set_semantics(generations[g]);
    mix_model *plain = mix_sequential(mix_list_of(mix_activation("linear"))),
              *weighted = mix_sequential(mix_list_of(mix_activation("linear")));
    mix_model_compile(plain, .loss = "mse", .metrics = {"accuracy"});
    mix_model_compile(weighted, .loss = "mse", .weighted_metrics = {"accuracy"});
    mix_logs *logs = mix_model_evaluate(plain, x, y, .batch_size = 3, .verbose = MIX_SILENT);
    assert_float_equal(mix_logs_get(logs, "accuracy"), .5, 1e-7);
    logs =
        mix_model_evaluate(weighted, x, y, .batch_size = 3, .verbose = MIX_SILENT, .sample_weight = weight);
    assert_float_equal(mix_logs_get(logs, "accuracy"), .3, 1e-7);
  }
}

/* An option with the default 0 = last axis uses MIX_AXIS_0 for axis 0; texts and configs use 0. */
static void the_first_axis(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_tensor *y = MATRIX(MIX_FLOAT32, 3, 2, 1, 2, 3, 1, 0, 5),
             *p = MATRIX(MIX_FLOAT32, 3, 2, 1, 0, 2, 1, 4, 3);
  mix_metric *metrics[] = {mix_metric_new("PearsonCorrelation", .axis = MIX_AXIS_0),
                           mix_metric_from_text("pearson_correlation:axis=0", NULL),
                           mix_metric_from_config("PearsonCorrelation", "{\"axis\": 0}", NULL),
                           mix_metric_new("cosine_similarity", .axis = MIX_AXIS_0),
                           mix_metric_from_config("CosineSimilarity", "{\"axis\": 0}", NULL)};
  for (int i = 0; i < 5; i++) {
    mix_metric_update(metrics[i], y, p);
    expect_result(metrics[i], i < 3 ? 0.16931395 : 0.70340312, 1e-6);
    assert_non_null(strstr(mix_metric_get_config(metrics[i]), "\"axis\": 0"));
  }
  assert_non_null(strstr(mix_metric_get_config(mix_metric_new("cosine_similarity")), "\"axis\": -1"));
  mix_metric *overlap = mix_metric_new("one_hot_mean_io_u", .num_classes = 2, .axis = MIX_AXIS_0);
  mix_metric_update(overlap, MATRIX(MIX_FLOAT32, 2, 3, 1, 0, 1, 0, 1, 0),
                    MATRIX(MIX_FLOAT32, 2, 3, .9, .2, .3, .1, .8, .7));
  expect_result(overlap, 0.5, 1e-6);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(C16_weighted_mean),
                                     TEST(mean_over_updates),
                                     TEST(C17_accuracy_chooses),
                                     TEST(crossentropy_chooses),
                                     TEST(named_accuracies),
                                     TEST(top_k),
                                     TEST(top_k_of_labels_outside_and_of_infinities),
                                     TEST(top_k_of_labels_of_every_integer_dtype),
                                     TEST(large_class_ids_in_float16),
                                     TEST(weights_and_masks),
                                     TEST(losses_as_metrics),
                                     TEST(M07_float32_from_float16),
                                     TEST(refusals),
                                     TEST(arguments_are_checked),
                                     TEST(updates_are_checked),
                                     TEST(what_is_no_class_is_refused),
                                     TEST(not_finite_predictions),
                                     TEST(built_by_hand),
                                     TEST(mean_tensors),
                                     TEST(default_names),
                                     TEST(configs),
                                     TEST(from_text),
                                     TEST(unknown_names_get_a_suggestion),
                                     TEST(means_of_values_compare_nothing),
                                     TEST(captured),
                                     TEST(updates_do_not_accumulate_objects),
                                     TEST(ignored_class),
                                     TEST(ranks_are_aligned),
                                     TEST(accuracy_of_a_column),
                                     TEST(the_first_axis)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
