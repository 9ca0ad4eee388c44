/* Masks in models: how they reach the losses, the metrics, the gradients and nested models. The numbers are
 * those of tf_keras 2.21 and Keras 3.15. */
#include "graph/node.h"
#include "model/support.h"

static mix_layer *dense(void) { return mix_dense(.units = 1, .kernel_initializer = "ones"); }
static mix_tensor *inputs_of(mix_tensor **y) {
  *y = ARRAY(F32, MIX_SHAPE(1, 3, 1), 1, 9, 2);
  return ARRAY(F32, MIX_SHAPE(1, 3, 2), 1, 2, 0, 0, 3, 4); /* the second step is masked */
}
static mix_tensor *input(void) { return mix_input(.shape = MIX_SHAPE(3, 2)); }

/* Predictions 3, 0 and 7 for 1, 9 and 2: without the mask the loss would be 36.67 and the mae 5.33. The step
 * is 0.1 times the gradient (17, 24) of the kernel and 7 of the bias. */
static void expect_masked(mix_model *model) {
  mix_tensor *y, *x = inputs_of(&y);
  mix_model_compile(model, .loss = "mse", .metrics = {"mae"}, .optimizer = mix_sgd(.learning_rate = 0.1));
  mix_logs *logs = mix_model_evaluate(model, x, y, .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(mix_logs_get(logs, "loss"), 14.5, 1e-6);
  assert_near(mix_logs_get(logs, "mae"), 3.5, 1e-6);
  mix_model_fit(model, x, y, .verbose = MIX_SILENT);
  assert_no_error();
  assert_near(weight_at(model, 0, 0), -0.7, 1e-6);
  assert_near(weight_at(model, 0, 1), -1.4, 1e-6);
  assert_near(weight_at(model, 1, 0), -0.7, 1e-6);
}

/* A layer that leaves masks to its inner layers. */
typedef struct around {
  mix_layer *masking, *dense;
} around;
static mix_list *around_call(mix_layer *layer, const mix_call_args *args) {
  const around *a = mix_layer_data(layer);
  return mix_list_of(mix_call(a->dense, mix_call(a->masking, mix_call_input(args, 0))));
}
static const mix_layer_class around_class = {
    .size = sizeof(mix_layer_class), .name = "Around", .instance_size = sizeof(around), .call = around_call};
static mix_layer *around_new(void) {
  mix_layer *layer = mix_layer_new(&around_class);
  around a = {mix_layer_add_layer(layer, mix_masking()), mix_layer_add_layer(layer, dense())};
  *(around *)mix_layer_data(layer) = a;
  return layer;
}

static void in_both(void (*test)(void)) {
  static const char *const generations[] = {"tf_keras", "keras3"};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(generations[i]);
    test();
  }
}

static void plain(void) {
  expect_masked(mix_sequential(mix_list_of(mix_masking(), dense())));
  mix_tensor *x = input();
  expect_masked(mix_model_new(x, mix_call(dense(), mix_call(mix_masking(), x))));
  expect_masked(mix_sequential(mix_list_of(around_new())));
}
/* Layers without mask support: one returns its input with its mask; one has two results, neither with a mask.
 * One with support and two results masks only the first. */
static mix_list *pass_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_list_of(mix_call_input(args, 0));
}
static const mix_layer_class pass_class = {
    .size = sizeof(mix_layer_class), .name = "Pass", .call = pass_call};
static mix_list *twice_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_list_of(mix_negative(x), mix_add(x, x));
}
static const mix_layer_class twice_class = {
    .size = sizeof(mix_layer_class), .name = "Twice", .call = twice_call, .supports_masking = true};
static mix_tensor *unchanged(void *context, const mix_call_args *args) {
  (void)context;
  return mix_call_input(args, 0);
}
static void custom(void) {
  expect_masked(mix_sequential(mix_list_of(mix_masking(), mix_layer_new(&pass_class), dense())));
  expect_masked(mix_sequential(mix_list_of(mix_masking(), mix_lambda(unchanged), dense())));
  mix_tensor *y, *x = inputs_of(&y);
  x = mix_call(mix_masking(), x);
  mix_list *results = mix_call_outputs(mix_layer_new(&twice_class), x);
  assert_int_equal(mix_list_count(results), 2);
  assert_ptr_equal(((mix_tensor *)mix_list_get(results, 0))->mask, x->mask);
  assert_null(((mix_tensor *)mix_list_get(results, 1))->mask);
  assert_null(mix_call(mix_reshape_layer(.target_shape = MIX_SHAPE(3, 2)), x)
                  ->mask); /* the same shape, but no mask */
}
static void masks_of_custom_layers(void **state) {
  (void)state;
  in_both(custom);
}

static void masks_reach_losses_metrics_and_gradients(void **state) {
  (void)state;
  in_both(plain);
}

static void made_inside(void) {
  mix_tensor *x = input();
  mix_model *inner = mix_model_new(x, mix_call(mix_masking(), x));
  mix_tensor *y = input();
  expect_masked(mix_model_new(y, mix_call(dense(), mix_call(mix_model_layer(inner), y))));
  inner = mix_sequential(mix_list_of(mix_masking()));
  y = input();
  expect_masked(mix_model_new(y, mix_call(dense(), mix_call(mix_model_layer(inner), y))));
}
static void made_outside(void) {
  mix_tensor *x = input(), *same = input(), *y = input();
  mix_model *inner = mix_model_new(x, mix_call(dense(), x)), *identity = mix_model_new(same, same);
  expect_masked(mix_model_new(y, mix_call(mix_model_layer(inner), mix_call(mix_masking(), y))));
  y = input();
  expect_masked(
      mix_model_new(y, mix_call(dense(), mix_call(mix_model_layer(identity), mix_call(mix_masking(), y)))));
  expect_masked(
      mix_sequential(mix_list_of(mix_masking(), mix_model_layer(mix_sequential(mix_list_of(dense()))))));
}
static void models_inside_models_pass_masks_on(void **state) {
  (void)state;
  in_both(made_inside);
  in_both(made_outside);
}

static void explicit_mask(void) {
  mix_tensor *y, *x = inputs_of(&y), *mask = ARRAY(MIX_BOOL, MIX_SHAPE(1, 3), 1, 0, 1);
  mix_model *models[] = {NULL, mix_sequential(mix_list_of(dense()))};
  mix_tensor *symbol = input();
  models[0] = mix_model_new(symbol, mix_call(dense(), symbol));
  for (int i = 0; i < 2; i++) {
    mix_tensor *result = mix_call(mix_model_layer(models[i]), x, .mask = mask);
    assert_ptr_equal(result->mask, mask);
    assert_null(x->mask);
    assert_null(mix_model_call(models[i], x)->mask);
    assert_near(at(mix_loss_call(mix_loss_new("mse"), y, result), 0), 14.5, 1e-6);
  }
}
static void a_mask_may_be_given_to_a_model(void **state) {
  (void)state;
  in_both(explicit_mask);
}

/* Rescaling passes masks on in keras3 only. */
static void rescaling(void **state) {
  (void)state;
  static const double losses[] = {83.333336, 84.5};
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_tensor *y, *x = inputs_of(&y);
    mix_model *model = mix_sequential(mix_list_of(mix_masking(), mix_rescaling(2), dense()));
    mix_model_compile(model, .loss = "mse");
    assert_near(mix_logs_get(mix_model_evaluate(model, x, y, .verbose = MIX_SILENT), "loss"), losses[i],
                1e-5);
  }
}

static void ids(void) {
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(3), .dtype = "int32");
  mix_layer *embedding =
      mix_embedding(.input_dim = 4, .output_dim = 2, .mask_zero = true, .embeddings_initializer = "ones");
  mix_model *model = mix_model_new(x, mix_call(dense(), mix_call(embedding, x)));
  mix_model_compile(model, .loss = "mse", .metrics = {"mae"}, .optimizer = mix_sgd(.learning_rate = 0.1));
  mix_tensor *y, *given = ARRAY(MIX_INT32, MIX_SHAPE(1, 3), 1, 0, 2);
  inputs_of(&y);
  mix_logs *logs = mix_model_evaluate(model, given, y, .verbose = MIX_SILENT);
  assert_near(mix_logs_get(logs, "loss"), 0.5, 1e-6);
  assert_near(mix_logs_get(logs, "mae"), 0.5, 1e-6);
  mix_model_fit(model, given, y, .verbose = MIX_SILENT);
  assert_no_error();
  static const double rows[] = {1, 1, 0.9, 0.9, 1, 1, 1, 1}, kernel[] = {0.9, 0.9};
  for (int i = 0; i < 8; i++) assert_near(weight_at(model, 0, i), rows[i], 1e-6);
  for (int i = 0; i < 2; i++) assert_near(weight_at(model, 1, i), kernel[i], 1e-6);
  assert_near(weight_at(model, 2, 0), -0.1, 1e-6);
}
static void embeddings_mask_zeros(void **state) {
  (void)state;
  in_both(ids);
}

/* tf_keras counts the penalties of frozen weights, Keras 3 does not. */
static void penalties_of_frozen_weights(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    mix_set_semantics(i ? "keras3" : "tf_keras");
    mix_model *model =
        mix_sequential(mix_list_of(mix_dense(.units = 1, .kernel_initializer = "ones", .not_trainable = true,
                                             .kernel_regularizer = mix_regularizer_new("l2", .l2 = 0.1))));
    mix_model_compile(model, .loss = "mse");
    mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2);
    assert_near(mix_logs_get(mix_model_evaluate(model, x, x, .verbose = MIX_SILENT), "loss"), i ? 0 : 0.1,
                1e-7);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(masks_reach_losses_metrics_and_gradients),
                                     TEST(masks_of_custom_layers),
                                     TEST(models_inside_models_pass_masks_on),
                                     TEST(a_mask_may_be_given_to_a_model),
                                     TEST(rescaling),
                                     TEST(embeddings_mask_zeros),
                                     TEST(penalties_of_frozen_weights)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
