/* Training with rematerialization: the bits of training without, in each policy, and the memory that it
 * saves. */
#include "model/support.h"
#include "nn/layer/layer.h"
#include <mixtape/attention.h>
#include <mixtape/convolution.h>
#include <mixtape/function.h>
#include <mixtape/random.h>
#include <mixtape/recurrent.h>
#include <mixtape/remat.h>

enum { BATCH = 8, STEPS = 3, LENGTH = 6, UNITS = 16, HEADS = 2, MAX_BYTES = 1 << 20 };

/* ---- models: every kind of layer that has state, draws numbers or loops ---- */

static mix_tensor *normalized(mix_tensor *x) { return mix_call(mix_layer_normalization(.name = NULL), x); }
static mix_tensor *add(mix_tensor *x, mix_tensor *y) {
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}
static mix_tensor *block(mix_tensor *x, int64_t units, int64_t heads) {
  mix_tensor *query = normalized(x);
  x = add(x, mix_call(mix_multi_head_attention(heads, units / heads, .dropout = 0.1), query,
                      .arguments = mix_list_of(query), .use_causal_mask = true));
  mix_tensor *y = mix_call(mix_dense(4 * units, .activation = "gelu"), normalized(x));
  return add(x, mix_call(mix_dropout(0.1), mix_call(mix_dense(units), y)));
}

static mix_model *transformer(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH, UNITS)), *x = inputs;
  for (int i = 0; i < 2; i++) x = block(x, UNITS, HEADS);
  return mix_model_new(inputs, mix_call(mix_dense(1), mix_call(mix_flatten(.name = NULL), x)));
}

static mix_model *perceptron(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH, UNITS));
  mix_tensor *x = mix_call(mix_flatten(.name = NULL), inputs);
  for (int i = 0; i < 3; i++) {
    x = mix_call(mix_dense(UNITS, .activation = i == 1 ? "tanh" : "relu"), x);
    x = mix_call(mix_dropout(0.25), mix_call(mix_batch_normalization(.name = NULL), x));
  }
  return mix_model_new(inputs, mix_call(mix_dense(1), x));
}

static mix_model *convolutions(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH, UNITS));
  mix_tensor *x = mix_call(mix_reshape_layer(MIX_SHAPE(LENGTH, UNITS, 1)), inputs);
  x = mix_call(mix_conv2d(4, 3, .padding = "same", .activation = "relu"), x);
  mix_tensor *y = mix_call(mix_conv2d(4, 3, .padding = "same", .no_bias = true), x);
  x = add(x, mix_call(mix_activation("relu"), mix_call(mix_batch_normalization(.name = NULL), y)));
  x = mix_call(mix_max_pooling2d(.pool_size = MIX_SHAPE(2)), x);
  x = mix_call(mix_global_average_pooling2d(.name = NULL), x);
  return mix_model_new(inputs, mix_call(mix_dense(1), x));
}

static mix_model *loops(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH, UNITS));
  mix_tensor *x = mix_call(mix_lstm(UNITS, .return_sequences = true, .dropout = 0.2), inputs);
  x = mix_call(mix_gru(UNITS, .return_sequences = true), x);
  x = mix_call(mix_simple_rnn(UNITS, .recurrent_dropout = 0.2), x);
  return mix_model_new(inputs, mix_call(mix_dense(1, .activation = "sigmoid"), x));
}

/* Of the layers that compute in float8. */
static mix_model *products(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH, UNITS)), *x = inputs;
  for (int i = 0; i < 3; i++)
    x = mix_call(mix_dense(UNITS, .activation = "tanh", .dtype = "float8_from_mixed_bfloat16"), x);
  x = mix_call(mix_dropout(0.25), mix_call(mix_flatten(.name = NULL), x));
  return mix_model_new(inputs, mix_call(mix_dense(1), x));
}

typedef mix_model *(*builder)(void);
static const struct {
  const char *name;
  builder build;
} models[] = {{"transformer", transformer},
              {"perceptron", perceptron},
              {"convolutions", convolutions},
              {"loops", loops}};
enum { MODELS = sizeof models / sizeof *models };

/* ---- what training leaves ---- */

typedef struct trained {
  size_t bytes;
  unsigned char weights[MAX_BYTES];
  double losses[STEPS];
  mix_plan_report report;
} trained;

static void train(builder build, const char *policy, const mix_remat_scope_options *options,
                  trained *result) {
  memset(result, 0, sizeof *result);
  MIX_SCOPE {
    const bool rewrite = !strcmp(policy, "rewrite");
    mix_clear_names();
    mix_set_seed(5);
    mix_set_global_policy(rewrite ? "float32" : policy);
    mix_remat_scope *scope = options ? mix_remat_scope_begin_with(options) : NULL;
    mix_model *model = build();
    mix_remat_scope_end(scope);
    mix_optimizer *optimizer = mix_adam(.learning_rate = 0.01);
    if (rewrite) optimizer = mix_enable_mixed_precision_graph_rewrite(optimizer);
    mix_model_compile(model, .loss = "mse", .optimizer = optimizer);
    mix_generator *numbers = mix_generator_new(11);
    mix_tensor *x = mix_random_uniform(numbers, MIX_SHAPE(BATCH, LENGTH, UNITS), MIX_FLOAT32),
               *y = mix_random_uniform(numbers, MIX_SHAPE(BATCH, 1), MIX_FLOAT32);
    for (int i = 0; i < STEPS; i++)
      result->losses[i] = mix_logs_get(mix_model_train_on_batch(model, x, y), "loss");
    mix_function_report(mix_model_train_function(model), &result->report, sizeof result->report);
    mix_list *weights = mix_model_weights(model);
    for (int i = 0; i < mix_list_count(weights); i++) {
      mix_tensor *value = mix_variable_value(mix_list_get(weights, i));
      const int64_t count = mix_shape_size(mix_tensor_shape(value));
      assert_true(result->bytes + (size_t)count * sizeof(double) <= MAX_BYTES);
      mix_tensor_read(value, MIX_FLOAT64, result->weights + result->bytes, count);
      result->bytes += (size_t)count * sizeof(double);
    }
    if (rewrite) mix_disable_mixed_precision_graph_rewrite();
    mix_set_global_policy("float32");
  }
  assert_no_error();
  assert_true(result->bytes > 0);
}

static const char *const listed[] = {"dense_1", "lstm", "conv2d_1", "multi_head_attention", NULL};
static const mix_remat_scope_options modes[] = {
    {.size = sizeof *modes, .mode = "full"},
    {.size = sizeof *modes, .mode = "activations"},
    {.size = sizeof *modes, .mode = "larger_than", .output_size_threshold = 600},
    {.size = sizeof *modes, .mode = "list_of_layers", .layer_names = listed}};
enum { MODES = sizeof modes / sizeof *modes };

static trained plain, repeated;

static void same_bits_of(const char *name, builder build, const char *policy) {
  train(build, policy, NULL, &plain);
  for (int k = 0; k < MODES; k++) {
    train(build, policy, &modes[k], &repeated);
    assert_int_equal(repeated.bytes, plain.bytes);
    if (memcmp(repeated.losses, plain.losses, sizeof plain.losses) ||
        memcmp(repeated.weights, plain.weights, plain.bytes))
      fail_msg("%s, %s, %s: other bits than without", name, policy, modes[k].mode);
  }
}
static void same_bits(const char *policy) {
  for (int m = 0; m < MODELS; m++) same_bits_of(models[m].name, models[m].build, policy);
}

static void the_bits_are_the_same_in_float32(void **state) {
  (void)state;
  same_bits("float32");
}
static void the_bits_are_the_same_in_mixed_float16(void **state) {
  (void)state;
  same_bits("mixed_float16");
}
static void the_bits_are_the_same_in_mixed_bfloat16(void **state) {
  (void)state;
  same_bits("mixed_bfloat16");
}
static void the_bits_are_the_same_in_float64(void **state) {
  (void)state;
  same_bits("float64");
}

/* Scales and histories of the layers change in each call: once. */
static void the_bits_are_the_same_in_float8(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  same_bits_of("products", products, "float32");
}

/* The rewrite decides on the dtype of each repeated operation by what is around it there, so it may round
 * elsewhere. Numbers of float16 in weights and losses about 1, after three small steps. */
static void losses_are_close_under_the_graph_rewrite(void **state) {
  (void)state;
  for (int m = 0; m < MODELS; m++) {
    train(models[m].build, "rewrite", NULL, &plain);
    for (int k = 0; k < MODES; k++) {
      train(models[m].build, "rewrite", &modes[k], &repeated);
      for (int i = 0; i < STEPS; i++)
        assert_near(repeated.losses[i], plain.losses[i], 0x1p-6 * (1 + fabs(plain.losses[i])));
    }
  }
}

/* ---- memory ---- */

enum { LAYERS = 6, WIDE = 32, LONG = 32 };

/* Each block is a model inside the model, "block_0" and so on. */
static mix_model *stack(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LONG, WIDE)), *x = inputs;
  for (int i = 0; i < LAYERS; i++) {
    char name[32];
    snprintf(name, sizeof name, "block_%d", i);
    mix_tensor *inside = mix_input(.shape = MIX_SHAPE(LONG, WIDE));
    x = mix_call(mix_model_layer(mix_model_new(inside, block(inside, WIDE, HEADS), .name = name)), x);
  }
  return mix_model_new(inputs, mix_call(mix_dense(1), mix_call(mix_flatten(.name = NULL), x)));
}

static const char *const blocks[] = {"block_0", "block_1", "block_2", "block_3", "block_4", "block_5", NULL};

static size_t bytes_of_stack(const char *policy, const mix_remat_scope_options *options) {
  mix_plan_report report;
  MIX_SCOPE {
    mix_set_seed(5);
    mix_set_global_policy(policy);
    mix_remat_scope *scope = options ? mix_remat_scope_begin_with(options) : NULL;
    mix_model *model = stack();
    mix_remat_scope_end(scope);
    mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd());
    mix_tensor *x = mix_random_uniform(mix_generator_new(1), MIX_SHAPE(BATCH, LONG, WIDE), MIX_FLOAT32);
    mix_model_train_on_batch(model, x, mix_fill(MIX_SHAPE(BATCH, 1), 0, MIX_FLOAT32));
    mix_function_report(mix_model_train_function(model), &report, sizeof report);
    mix_set_global_policy("float32");
  }
  assert_no_error();
  return report.arena_bytes;
}

/* Of a block its input is kept, one value in more than ten, and the values of one block are there at a time:
 * a sixth. The bound leaves as much again for gradients. */
static void a_stack_of_blocks_needs_less_than_half(void **state) {
  (void)state;
  static const mix_remat_scope_options by_block = {
      .size = sizeof by_block, .mode = "list_of_layers", .layer_names = blocks};
  static const char *const policies[] = {"float32", "mixed_float16"};
  for (int p = 0; p < 2; p++) {
    const double all = (double)bytes_of_stack(policies[p], NULL),
                 some = (double)bytes_of_stack(policies[p], &by_block),
                 full = (double)bytes_of_stack(policies[p], &modes[0]);
    print_message("%s: %.0f bytes, %.2f by block, %.2f full\n", policies[p], all, some / all, full / all);
    assert_true(some <= 0.45 * all);
    assert_true(full <= 0.6 * all);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_bits_are_the_same_in_float32),         TEST(the_bits_are_the_same_in_mixed_float16),
      TEST(the_bits_are_the_same_in_mixed_bfloat16),  TEST(the_bits_are_the_same_in_float64),
      TEST(losses_are_close_under_the_graph_rewrite), TEST(the_bits_are_the_same_in_float8),
      TEST(a_stack_of_blocks_needs_less_than_half)};
  return cmocka_run_group_tests_name("remat", tests, NULL, NULL);
}
