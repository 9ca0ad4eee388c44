/* Nested and named data in fit, evaluate, predict and train_on_batch. Numbers and rules are Keras's: see
 * tests/spec/recorded/record_nested.py. */
#include "model/support.h"
#include "support/folder.h"
#include <mixtape/callback.h>
#include <mixtape/dataset.h>

static char warned[2000];
static void keep_warning(void *context, mix_log_level level, const char *message) {
  (void)context;
  size_t used = strlen(warned);
  if (level == MIX_LOG_WARNING) snprintf(warned + used, sizeof warned - used, "%s\n", message);
}

static mix_layer *ones(const char *name) {
  return mix_dense(.units = 1, .no_bias = true, .name = name,
                   .kernel_initializer_object = mix_initializer_new("constant", .value = 1));
}

/* Inputs a and b, outputs o1 = a and o2 = b; the loss is the squared error. */
static mix_model *two(void) {
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1), .name = "a"),
             *b = mix_input(.shape = MIX_SHAPE(1), .name = "b");
  mix_model *model =
      mix_model_new(mix_list_of(a, b), mix_list_of(mix_call(ones("o1"), a), mix_call(ones("o2"), b)));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO),
                    .weighted_metrics = {"mae"});
  assert_no_error();
  return model;
}
static mix_model *one(void) {
  mix_tensor *a = mix_input(.shape = MIX_SHAPE(1), .name = "a");
  mix_model *model = mix_model_new(a, mix_call(ones("o1"), a));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  return model;
}

#define COLUMN(...) ARRAY(F32, MIX_SHAPE(2, 1), __VA_ARGS__)
typedef struct arrays {
  mix_tensor *a, *b, *y1, *y2, *w1, *w2;
} arrays;
static arrays data(void) {
  return (arrays){COLUMN(1, 2),
                  COLUMN(3, 6),
                  COLUMN(0, 0),
                  COLUMN(1, 1),
                  ARRAY(F32, MIX_SHAPE(2), 1, 2),
                  ARRAY(F32, MIX_SHAPE(2), 3, 0)};
}

/* The losses of evaluate: total, o1, o2. */
static void check(void *x, void *y, void *weights, double total, double o1, double o2) {
  mix_logs *logs =
      mix_model_evaluate(two(), x, y, .sample_weight = weights, .verbose = MIX_SILENT, .batch_size = 2);
  assert_no_error();
  assert_near(mix_logs_get(logs, "loss"), total, 0);
  assert_near(mix_logs_get(logs, "o1_loss"), o1, 0);
  assert_near(mix_logs_get(logs, "o2_loss"), o2, 0);
}
#define REFUSED(x, y, weights, status, part)                                                                 \
  do {                                                                                                       \
    assert_null(mix_model_evaluate(two(), x, y, .sample_weight = weights, .verbose = MIX_SILENT));           \
    assert_error(status, part);                                                                              \
  } while (0)

static void arrays_by_place_and_by_name_are_the_same(void **state) {
  (void)state;
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b), *ys = mix_list_of(d.y1, d.y2);
  mix_list *named_x = mix_dict_of("b", d.b, "a", d.a), *named_y = mix_dict_of("o2", d.y2, "o1", d.y1);
  check(xs, ys, NULL, 17, 2.5, 14.5);
  check(named_x, named_y, NULL, 17, 2.5, 14.5);
  check(mix_list_of(mix_list_of(d.a), d.b), ys, NULL, 17, 2.5, 14.5);
  check(named_x, ys, mix_list_of(d.w1, d.w2), 10.5, 4.5, 6);
  check(xs, named_y, mix_dict_of("o1", d.w1, "o2", d.w2), 10.5, 4.5, 6);
  check(xs, named_y, d.w1, 31.5, 4.5, 27);
  check(xs, ys, mix_list_of(d.w1, NULL), 19, 4.5, 14.5);
  mix_list *outputs = mix_model_predict(two(), named_x);
  assert_near(at(mix_list_get(outputs, 1), 1), 6, 0);
  outputs = mix_model_call_outputs(two(), named_x);
  assert_near(at(mix_list_get(outputs, 0), 1), 2, 0);
}

static void a_wrong_name_is_named(void **state) {
  (void)state;
  arrays d = data();
  mix_list *ys = mix_list_of(d.y1, d.y2), *xs = mix_list_of(d.a, d.b);
  REFUSED(mix_dict_of("a", d.a, "c", d.b), ys, NULL, MIX_VALUE_ERROR,
          "missing data for input 'b'; the names given are ['a', 'c'], expected ['a', 'b']");
  REFUSED(xs, mix_dict_of("o1", d.y1, "zz", d.y2), NULL, MIX_VALUE_ERROR,
          "y has 'zz', which is no output of the model; its outputs are ['o1', 'o2']");
  REFUSED(xs, ys, mix_dict_of("z", d.w1), MIX_VALUE_ERROR, "sample_weight has 'z'");
  REFUSED(mix_list_of(mix_list_of(d.a)), ys, NULL, MIX_VALUE_ERROR, "1 inputs given; the model has 2");
  REFUSED(mix_list_of(mix_list_of(d.a), NULL), ys, NULL, MIX_TYPE_ERROR,
          "component (1) of x is not a tensor");
  REFUSED(mix_dict_of("a", mix_list_of(d.a), "b", d.b), ys, NULL, MIX_VALUE_ERROR, "'a' is a list");
  assert_null(mix_model_fit(two(), mix_dict_of("a", d.a), ys, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "fit: missing data for input 'b'");
  assert_null(mix_model_call(two(), mix_dict_of("a", d.a)));
  assert_error(MIX_VALUE_ERROR, "model_call: missing data for input 'b'");
  assert_null(mix_model_fit(two(), xs, ys, .validation_x = xs, .validation_y = mix_dict_of("o1", mix_sgd()),
                            .verbose = MIX_SILENT));
  assert_error(MIX_TYPE_ERROR, "component ('o1') of validation_y is not a tensor");
}

static void names_that_are_no_inputs_are_ignored(void **state) {
  (void)state;
  for (int keras3 = 0; keras3 < 2; keras3++) {
    mix_set_semantics(keras3 ? "keras3" : "tf_keras");
    arrays d = data();
    warned[0] = 0;
    mix_set_log_callback(keep_warning, NULL);
    mix_logs *logs = mix_model_evaluate(one(), mix_dict_of("A", d.b, "a", d.a), d.y2, .verbose = MIX_SILENT);
    mix_set_log_callback(NULL, NULL);
    assert_no_error();
    assert_near(mix_logs_get(logs, "loss"), 0.5, 0);
    assert_int_equal(strstr(warned, "'A' is no input of the model") != NULL, !keras3);
  }
}

/* tf_keras leaves out the loss of outputs without labels, and weighs outputs without weights by one. */
static void tf_keras_takes_part_of_the_names(void **state) {
  (void)state;
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b);
  check(xs, mix_dict_of("o1", d.y1), NULL, 2.5, 2.5, 0);
  check(xs, mix_dict_of("o1", d.y1, "o2", d.y2), mix_dict_of("o1", d.w1), 19, 4.5, 14.5);
  mix_model *model = two();
  mix_logs *logs = mix_model_evaluate(model, xs, mix_dict_of("o1", d.y1, "o2", d.y2), .verbose = MIX_SILENT,
                                      .sample_weight = mix_dict_of("o1", d.w1));
  assert_near(mix_logs_get(logs, "o1_mae"), 1.6666666269302368, 1e-6);
  assert_near(mix_logs_get(logs, "o2_mae"), 3.5, 0);
  /* The same model with all labels, and again without some. */
  for (int i = 0; i < 2; i++) {
    logs = mix_model_evaluate(model, xs, mix_dict_of("o2", d.y2), .verbose = MIX_SILENT);
    assert_near(mix_logs_get(logs, "loss"), 14.5, 0);
    logs = mix_model_evaluate(model, xs, mix_list_of(d.y1, d.y2), .verbose = MIX_SILENT);
    assert_near(mix_logs_get(logs, "loss"), 17, 0);
  }
  mix_history *history = mix_model_fit(model, xs, mix_dict_of("o1", d.y1), .verbose = MIX_SILENT,
                                       .validation_split = 0.5, .no_shuffle = true);
  assert_no_error();
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), 1, 0);
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "val_loss"), 4, 0);
}

static void keras3_takes_all_names(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b), *named_y = mix_dict_of("o1", d.y1, "o2", d.y2);
  check(xs, named_y, NULL, 17, 2.5, 14.5);
  check(xs, named_y, mix_dict_of("o1", d.w1, "o2", d.w2), 10.5, 4.5, 6);
  check(xs, mix_list_of(d.y1, d.y2), mix_list_of(d.w1, NULL), 19, 4.5, 14.5);
  REFUSED(xs, mix_dict_of("o1", d.y1), NULL, MIX_VALUE_ERROR, "y lacks the output 'o2'");
  REFUSED(xs, mix_list_of(d.y1, NULL), NULL, MIX_VALUE_ERROR, "y lacks the output 'o2'");
  REFUSED(xs, named_y, mix_dict_of("o1", d.w1), MIX_VALUE_ERROR, "sample_weight lacks the output 'o2'");
  REFUSED(xs, mix_list_of(d.y1, d.y2), mix_dict_of("o1", d.w1, "o2", d.w2), MIX_VALUE_ERROR,
          "sample_weight and y are nested differently");
}

static mix_logs *of_dataset(mix_model *model, mix_dataset *rows) {
  return mix_model_evaluate(model, mix_dataset_batch(rows, 2), NULL, .verbose = MIX_SILENT);
}

static void data_sets_are_fed_by_their_structure(void **state) {
  (void)state;
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b), *ys = mix_list_of(d.y1, d.y2);
  mix_list *named_x = mix_dict_of("b", d.b, "a", d.a), *named_y = mix_dict_of("o2", d.y2, "o1", d.y1),
           *named_w = mix_dict_of("o2", d.w2, "o1", d.w1);
  struct {
    mix_dataset *rows;
    double loss;
  } const rows[] = {{mix_dataset_from_tensors(xs, ys), 17},
                    {mix_dataset_from_tensors(xs, ys, mix_list_of(d.w1, d.w2)), 10.5},
                    {mix_dataset_from_tensors(xs, ys, d.w1), 31.5},
                    {mix_dataset_from_tensors(named_x, named_y, named_w), 10.5},
                    {mix_dataset_from_tensors(d.a, d.b, d.y1, d.y2), 17}, /* flat */
                    {mix_dataset_from_tensors(xs, mix_dict_of("o1", d.y1)), 2.5}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    mix_logs *logs = of_dataset(two(), rows[i].rows);
    assert_no_error();
    assert_near(mix_logs_get(logs, "loss"), rows[i].loss, 0);
    mix_history *history =
        mix_model_fit(two(), mix_dataset_batch(rows[i].rows, 2), NULL, .epochs = 2, .verbose = MIX_SILENT,
                      .validation_x = mix_dataset_batch(rows[0].rows, 1));
    assert_no_error();
    assert_near(mix_logs_get(mix_history_epoch(history, 1), "loss"), rows[i].loss, 0);
    assert_near(mix_logs_get(mix_history_epoch(history, 1), "val_loss"), 17, 0);
  }
  mix_dataset *const inputs[] = {mix_dataset_from_list(named_x), mix_dataset_from_tensors(named_x, d.y1),
                                 mix_dataset_from_tensors(xs, ys)};
  for (int i = 0; i < 3; i++) {
    mix_list *outputs = mix_model_predict(two(), mix_dataset_batch(inputs[i], 1));
    assert_no_error();
    assert_near(at(mix_list_get(outputs, 1), 1), 6, 0);
  }
}

static void elements_that_do_not_fit_are_refused(void **state) {
  (void)state;
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b), *ys = mix_list_of(d.y1, d.y2);
  assert_null(of_dataset(two(), mix_dataset_from_tensors(xs, ys, d.w1, d.w2)));
  assert_error(MIX_VALUE_ERROR, "the data set's elements are ((., .), (., .), ., .); expected (x, y) or");
  assert_null(of_dataset(two(), mix_dataset_from_tensors(xs)));
  assert_error(MIX_VALUE_ERROR, "expected (x, y) or (x, y, sample_weight)");
  assert_null(of_dataset(two(), mix_dataset_from_tensors(mix_dict_of("a", d.a), ys)));
  assert_error(MIX_VALUE_ERROR, "missing data for input 'b'");
  assert_null(mix_model_evaluate(two(), mix_dataset_from_tensors(xs, mix_list_of(d.w1, d.w2)), NULL,
                                 .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "component (1, 0) of the data set's elements is a scalar");
}

static void one_batch_takes_names_too(void **state) {
  (void)state;
  arrays d = data();
  mix_model *model = two();
  mix_list *x = mix_dict_of("b", d.b, "a", d.a), *y = mix_dict_of("o2", d.y2, "o1", d.y1);
  assert_near(mix_logs_get(mix_model_train_on_batch(model, x, y), "loss"), 17, 0);
  assert_near(mix_logs_get(mix_model_test_on_batch(model, x, mix_dict_of("o1", d.y1)), "loss"), 2.5, 0);
  assert_near(mix_logs_get(mix_model_test_on_batch(model, x, y), "loss"), 17, 0);
  assert_no_error();
}

static void class_weights_need_one_output(void **state) {
  (void)state;
  arrays d = data();
  assert_null(mix_model_fit(two(), mix_list_of(d.a, d.b), mix_dict_of("o1", d.y1, "o2", d.y2),
                            .class_weight_count = 1, .class_weights = {2}, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "class weights need a model of one output");
  mix_history *history =
      mix_model_fit(one(), mix_dict_of("a", d.a), mix_dict_of("o1", d.y2), .class_weight_count = 2,
                    .class_labels = {0, 1}, .class_weights = {1, 3}, .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "loss"), 1.5, 0);
}

/* ---- subclassed models ---- */

static int dicts_seen;
static mix_list *sum_call(mix_layer *layer, const mix_call_args *args) {
  bool named = mix_dict_name(args->inputs, 0) != NULL;
  dicts_seen += named;
  mix_tensor *a = named ? mix_dict_get(args->inputs, "a") : mix_call_input(args, 0),
             *b = named ? mix_dict_get(args->inputs, "b") : mix_call_input(args, 1);
  mix_layer *inner = *(mix_layer **)mix_layer_data(layer);
  return mix_list_of(mix_call(inner, mix_add(a, mix_multiply(b, mix_scalar_like(b, 10)))));
}
static const mix_layer_class sum_class = {
    .size = sizeof(mix_layer_class), .name = "Sum", .instance_size = sizeof(mix_layer *), .call = sum_call};

static mix_model *subclassed(const char *dtype) {
  mix_layer *layer = mix_layer_new(.layer_class = &sum_class, .dtype = dtype), *inner = ones("inner");
  *(mix_layer **)mix_layer_data(layer) = inner;
  mix_layer_add_layer(layer, inner);
  mix_model *model = mix_subclassed(layer, .inputs = 2);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  assert_no_error();
  return model;
}

static void a_call_function_gets_a_list_or_a_dict(void **state) {
  (void)state;
  arrays d = data();
  mix_list *xs = mix_list_of(d.a, d.b), *named = mix_dict_of("b", d.b, "a", d.a);
  dicts_seen = 0;
  mix_model *model = subclassed(NULL);
  assert_near(mix_logs_get(mix_model_evaluate(model, xs, d.y1, .verbose = MIX_SILENT), "loss"), 2402.5, 0);
  assert_int_equal(dicts_seen, 0);
  assert_near(mix_logs_get(mix_model_evaluate(model, named, d.y1, .verbose = MIX_SILENT), "loss"), 2402.5, 0);
  assert_true(dicts_seen > 0);
  assert_near(mix_logs_get(of_dataset(model, mix_dataset_from_tensors(named, d.y1)), "loss"), 2402.5, 0);
  assert_near(mix_logs_get(of_dataset(model, mix_dataset_from_tensors(xs, d.y1)), "loss"), 2402.5, 0);
  assert_near(at(mix_list_get(mix_model_predict(model, named), 0), 1), 62, 0);
  assert_near(at(mix_model_call(model, named), 0), 31, 0);
  dicts_seen = 0;
  mix_history *history =
      mix_model_fit(subclassed("mixed_float16"), named, d.y1, .verbose = MIX_SILENT, .validation_split = 0.5);
  assert_no_error();
  assert_true(dicts_seen >= 2); /* the steps of training and of validation */
  assert_near(mix_logs_get(mix_history_epoch(history, 0), "val_loss"), 62 * 62, 0);
  assert_null(mix_model_predict(subclassed(NULL), mix_dict_of("a", d.a)));
  assert_error(MIX_VALUE_ERROR, "1 inputs given; the model has 2, as .inputs of mix_subclassed says");
}

/* A dict is kept while a model is built, and by the models that replay its calls. */
static void models_call_models_by_name(void **state) {
  (void)state;
  arrays d = data();
  for (int own = 0; own < 2; own++) {
    mix_tensor *p = mix_input(.shape = MIX_SHAPE(1), .name = "p"),
               *q = mix_input(.shape = MIX_SHAPE(1), .name = "q");
    mix_model *inner = own ? subclassed("mixed_float16") : two();
    mix_list *called = mix_call_outputs(mix_model_layer(inner), mix_dict_of("b", p, "a", q));
    mix_model *outer = mix_model_new(mix_list_of(p, q), called);
    assert_no_error();
    mix_tensor *y = mix_model_call(outer, mix_dict_of("p", d.a, "q", d.b));
    assert_no_error();
    assert_near(at(y, 1), own ? 26 : 6, 0); /* a is q, b is p */
  }
  assert_null(mix_call(mix_model_layer(two()), mix_dict_of("a", d.a, "c", d.b)));
  assert_error(MIX_VALUE_ERROR, "missing data for input 'b'");
}

static void a_sequential_model_goes_by_its_input_layer(void **state) {
  (void)state;
  arrays d = data();
  mix_model *model = mix_sequential(mix_list_of(mix_list_get(mix_model_layers(one()), 0), ones("o1")));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = MIX_ZERO));
  assert_near(mix_logs_get(mix_model_evaluate(model, mix_dict_of("a", d.a), mix_dict_of("o1", d.y2),
                                              .verbose = MIX_SILENT),
                           "loss"),
              0.5, 0);
  model = mix_sequential(mix_list_of(ones("o1")));
  mix_model_compile(model, .loss = "mse");
  assert_null(mix_model_evaluate(model, mix_dict_of("a", d.a), d.y2, .verbose = MIX_SILENT));
  assert_error(MIX_VALUE_ERROR, "has no name; begin the model with an input layer");
}

/* ---- checkpoints ---- */

static mix_model *learning(void) {
  mix_model *model = two();
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.1));
  return model;
}
static mix_dataset *named_rows(void) {
  mix_tensor *x = mix_reshape(mix_range(0, 12, 1, F32), MIX_SHAPE(12, 1)), *y = mix_multiply(x, x);
  return mix_dataset_batch(mix_dataset_shuffle(mix_dataset_from_tensors(mix_dict_of("b", x, "a", y),
                                                                        mix_dict_of("o1", x, "o2", y)),
                                               12, .seed = 3),
                           3);
}

/* A run that is resumed in the middle of an epoch has the weights of one that was not. */
static void a_resumed_run_continues_in_nested_data(void **state) {
  (void)state;
  mix_model *whole = learning(), *first = learning(), *second = learning();
  mix_model_fit(whole, named_rows(), NULL, .epochs = 3, .verbose = MIX_SILENT);
  mix_model_fit(first, named_rows(), NULL, .epochs = 3, .verbose = MIX_SILENT, .steps = 6,
                .callbacks =
                    mix_list_of(mix_backup_and_restore(in_folder("backup"), .keep_checkpoint = true)));
  mix_model_fit(second, named_rows(), NULL, .epochs = 3, .verbose = MIX_SILENT,
                .callbacks = mix_list_of(mix_backup_and_restore(in_folder("backup"))));
  assert_no_error();
  assert_int_equal(mix_history_steps(mix_model_history(second)), 12);
  for (int i = 0; i < 2; i++) assert_true(weight_at(whole, i, 0) == weight_at(second, i, 0));
}

static int begin_folder(void **state) { return setup(state) || folder_begin(state); }
static int end_folder(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_by_place_and_by_name_are_the_same),
      TEST(a_wrong_name_is_named),
      TEST(names_that_are_no_inputs_are_ignored),
      TEST(tf_keras_takes_part_of_the_names),
      TEST(keras3_takes_all_names),
      TEST(data_sets_are_fed_by_their_structure),
      TEST(elements_that_do_not_fit_are_refused),
      TEST(one_batch_takes_names_too),
      TEST(class_weights_need_one_output),
      TEST(a_call_function_gets_a_list_or_a_dict),
      TEST(models_call_models_by_name),
      TEST(a_sequential_model_goes_by_its_input_layer),
      cmocka_unit_test_setup_teardown(a_resumed_run_continues_in_nested_data, begin_folder, end_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
