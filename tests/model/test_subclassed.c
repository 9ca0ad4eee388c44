/* Subclassed models: a layer of the user's with a call function and layers of its own, trained, saved and
 * read as any other model, with the bits of the functional model that does the same. */
#include "model/support.h"
#include "support/folder.h"

enum { ROWS = 60, WIDTH = 5, CLASSES = 3 };

typedef struct residual {
  mix_layer *first, *branch, *add, *last; /* borrowed from the model */
} residual;

static mix_layer *dense(int64_t units, const char *activation, const char *name, uint64_t seed,
                        const char *dtype) {
  return mix_dense(.units = units, .activation = activation, .name = name, .dtype = dtype,
                   .kernel_initializer_object = mix_initializer_new("glorot_uniform", .seed = seed));
}

static mix_tensor *through(residual *r, mix_tensor *x) {
  mix_tensor *h = mix_call(r->first, x);
  return mix_call(r->last, mix_call(r->add, mix_list_of(h, mix_call(r->branch, h))));
}
static void make_layers(residual *r) {
  *r = (residual){.first = dense(8, "relu", "first", 1, NULL),
                  .branch = dense(8, "tanh", "branch", 2, NULL),
                  .add = mix_add_layer(.name = "add"),
                  .last = dense(CLASSES, "softmax", "last", 3, "float32")};
}

static int calls_in_training;
static mix_list *residual_call(mix_layer *layer, const mix_call_args *args) {
  calls_in_training += args->training;
  return mix_list_of(through(mix_layer_data(layer), mix_call_input(args, 0)));
}
static const mix_layer_class residual_class = {.size = sizeof(mix_layer_class),
                                               .name = "Residual",
                                               .instance_size = sizeof(residual),
                                               .call = residual_call};

static mix_model *subclassed(void) {
  mix_layer *layer = mix_layer_new(.layer_class = &residual_class, .name = "net");
  residual *r = mix_layer_data(layer);
  make_layers(r);
  mix_layer *const inner[] = {r->first, r->branch, r->add, r->last};
  for (int i = 0; i < 4; i++) mix_layer_add_layer(layer, inner[i]);
  return mix_subclassed(layer);
}

static mix_model *functional(void) {
  residual r;
  make_layers(&r);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(WIDTH));
  return mix_model_new(x, through(&r, x), .name = "net");
}

static void compile(mix_model *model) {
  assert_int_equal(mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                                     .optimizer = mix_adam(.learning_rate = 0.01), .metrics = {"accuracy"}),
                   MIX_OK);
}

static void same_weights(mix_model *a, mix_model *b) {
  size_t x_size, y_size;
  unsigned char *x = bits_of(mix_model_weights(a), &x_size), *y = bits_of(mix_model_weights(b), &y_size);
  assert_int_equal(x_size, y_size);
  assert_memory_equal(x, y, x_size);
  free(x);
  free(y);
}

/* M: fit, evaluate and predict give the functional model's bits, under each policy and generation. */
static void it_trains_as_the_functional_model_does(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  for (int p = 0; p < 3; p++) {
    mix_set_global_policy(policies[p]);
    examples e = examples_of(ROWS, WIDTH, CLASSES);
    mix_model *mine = subclassed(), *other = functional();
    mix_model *const models[] = {mine, other};
    mix_logs *logs[2];
    mix_history *histories[2];
    calls_in_training = 0;
    for (int m = 0; m < 2; m++) {
      compile(models[m]);
      mix_set_seed(5);
      histories[m] = mix_model_fit(models[m], e.x, e.y, .epochs = 3, .batch_size = 16, .no_shuffle = true,
                                   .verbose = MIX_SILENT);
      assert_no_error();
      logs[m] = mix_model_evaluate(models[m], e.x, e.y, .verbose = MIX_SILENT);
    }
    assert_true(calls_in_training > 0);
    for (int i = 0; i < 3; i++)
      assert_true(mix_logs_get(mix_history_epoch(histories[0], i), "loss") ==
                  mix_logs_get(mix_history_epoch(histories[1], i), "loss"));
    assert_true(mix_logs_get(logs[0], "accuracy") == mix_logs_get(logs[1], "accuracy"));
    same_weights(mine, other);
    mix_tensor *a = mix_list_get(mix_model_predict(mine, e.x), 0),
               *b = mix_list_get(mix_model_predict(other, e.x), 0);
    for (int i = 0; i < ROWS * CLASSES; i++) assert_true(at(a, i) == at(b, i));
    assert_no_error();
  }
  mix_set_global_policy("float32");
}

static void weights_are_saved_and_read(void **state) {
  (void)state;
  mix_model *model = subclassed(), *again = subclassed();
  assert_int_equal(mix_model_save_weights(model, in_folder("early.npz")), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "has no weights yet");
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, WIDTH)), MIX_OK);
  assert_int_equal(mix_model_build(again, MIX_SHAPE(MIX_UNKNOWN, WIDTH)), MIX_OK);
  assert_int_equal(mix_list_count(mix_model_weights(model)), 6);
  mix_variable_assign(mix_list_get(mix_model_weights(model), 0), mix_fill(MIX_SHAPE(WIDTH, 8), 0.5, F32));
  assert_int_equal(mix_model_save_weights(model, in_folder("net.npz")), MIX_OK);
  assert_int_equal(mix_model_load_weights(again, in_folder("net.npz")), MIX_OK);
  same_weights(model, again);
}

static void the_summary_lists_its_layers(void **state) {
  (void)state;
  mix_model *model = subclassed();
  mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, WIDTH));
  const char *text = mix_model_summary(model);
  assert_no_error();
  static const char *const expected[] = {"Model: \"net\"", "first (Dense)", "branch (Dense)", "last (Dense)",
                                         "Total params: 147 "};
  for (int i = 0; i < 5; i++)
    if (!strstr(text, expected[i])) fail_msg("\"%s\" is not in\n%s", expected[i], text);
}

/* ---- several inputs and outputs ---- */

static mix_list *pair_call(mix_layer *layer, const mix_call_args *args) {
  mix_list *layers = mix_layer_layers(layer);
  mix_tensor *a = mix_call(mix_list_get(layers, 0), mix_call_input(args, 0)),
             *b = mix_call(mix_list_get(layers, 1), mix_call_input(args, 1));
  return mix_list_of(a, mix_add(a, b));
}
static const mix_layer_class pair_class = {
    .size = sizeof(mix_layer_class), .name = "Pair", .call = pair_call};

static void two_inputs_and_two_outputs(void **state) {
  (void)state;
  mix_layer *layer = mix_layer_new(.layer_class = &pair_class);
  for (int i = 0; i < 2; i++)
    mix_layer_add_layer(
        layer, mix_dense(.units = 1, .no_bias = true,
                         .kernel_initializer_object = mix_initializer_new("constant", .value = i + 2)));
  mix_model *model = mix_subclassed(layer, .inputs = 2, .outputs = 2);
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 1)), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "2 inputs");
  assert_int_equal(mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.5)),
                   MIX_OK);
  mix_tensor *x = ARRAY(F32, MIX_SHAPE(2, 1), 1, 2), *y = ARRAY(F32, MIX_SHAPE(2, 1), 0, 0);
  mix_logs *logs = mix_model_evaluate(model, mix_list_of(x, x), mix_list_of(y, y), .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_get(logs, "output_1_loss") == (4 + 16) / 2.0);
  assert_true(mix_logs_get(logs, "output_2_loss") == (25 + 100) / 2.0);
  assert_true(mix_logs_get(logs, "loss") == 72.5);
  mix_history *history = mix_model_fit(model, mix_list_of(x, x), mix_list_of(y, y), .verbose = MIX_SILENT);
  assert_no_error();
  assert_true(mix_logs_get(mix_history_epoch(history, 0), "loss") == 72.5);
}

static void what_is_no_layer_is_refused(void **state) {
  (void)state;
  assert_null(mix_subclassed(NULL));
  assert_error(MIX_TYPE_ERROR, "layer is NULL");
  assert_null(mix_subclassed((void *)mix_scalar(1, F32)));
  assert_error(MIX_TYPE_ERROR, "another object");
  mix_model *model = functional();
  assert_null(mix_subclassed(mix_model_layer(model)));
  assert_error(MIX_VALUE_ERROR, "'net' is a model already");
  assert_null(mix_subclassed(mix_dense(1), .outputs = MIX_MODEL_MAX + 1));
  assert_error(MIX_VALUE_ERROR, "17 outputs");
  assert_int_equal(mix_sequential_add(subclassed(), mix_dense(1)), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "subclassed model");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(it_trains_as_the_functional_model_does),
      TEST(weights_are_saved_and_read),
      TEST(the_summary_lists_its_layers),
      TEST(two_inputs_and_two_outputs),
      TEST(what_is_no_layer_is_refused),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
