/* Which products of a training step have their element-wise neighbours in an epilogue: bias, activation,
 * residual add and cast forward, the activation's gradient backward, for each policy and for rows of more
 * than one dimension; and that no bit changes. */
/* Holds docs/NUMERICS.md: Element-wise operations; Excess precision. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <mixtape/mixtape.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 32, STEPS = 3, WIDTH = 24 };

typedef struct design {
  const char *policy, *activation;
  /* sequence: inputs (batch, 4, width). */
  bool residual, sequence;
} design;

static bool jit_compile; /* of the models made by make() */

static mix_model *make(design d) {
  mix_set_seed(3);
  assert_int_equal(mix_set_global_policy(d.policy), MIX_OK);
  mix_tensor *inputs = mix_input(.shape = d.sequence ? MIX_SHAPE(4, WIDTH) : MIX_SHAPE(WIDTH));
  mix_tensor *x = mix_call(mix_dense(.units = 40, .activation = d.activation), inputs);
  mix_tensor *y = mix_call(mix_dense(.units = 40, .activation = d.activation), x);
  if (d.residual)
    y = mix_call(mix_add_layer(.name = "residual"), mix_list_of(x, mix_call(mix_dense(.units = 40), y)));
  if (d.sequence) y = mix_call(mix_flatten(.name = "flat"), y);
  mix_tensor *logits = mix_call(mix_dense(.units = 20), y);
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), logits));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = mix_sgd(.learning_rate = 0.125), .metrics = {"accuracy"},
                    .jit_compile = jit_compile);
  return model;
}

/* Trains some steps. Returns all weights and the plan. */
static size_t train(design d, const char *disabled, unsigned char *weights, size_t capacity, char *plan,
                    size_t plan_size) {
  size_t used = 0;
  setenv("MIXTAPE_DISABLE_PASSES", disabled, 1);
  MIX_SCOPE {
    mix_model *model = make(d);
    static double numbers[BATCH * 4 * WIDTH];
    int64_t rows = BATCH, labels[BATCH], width = d.sequence ? 4 * WIDTH : WIDTH;
    for (int64_t i = 0; i < rows * width; i++) numbers[i] = (double)((i * 7919 + 5) % 257 - 128) / 128;
    for (int64_t i = 0; i < rows; i++) labels[i] = i * 7 % 20;
    mix_tensor *x = mix_tensor_from_doubles(numbers, MIX_FLOAT32,
                                            d.sequence ? MIX_SHAPE(rows, 4, WIDTH) : MIX_SHAPE(rows, WIDTH));
    mix_tensor *y = mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(rows));
    for (int i = 0; i < STEPS; i++) mix_model_train_on_batch(model, x, y);
    mix_list *list = mix_model_get_weights(model);
    for (int i = 0; list && i < mix_list_count(list); i++) {
      mix_tensor *w = mix_list_get(list, i);
      mix_shape shape = mix_tensor_shape(w);
      size_t bytes = mix_dtype_size(mix_tensor_dtype(w));
      for (int axis = 0; axis < shape.rank; axis++) bytes *= (size_t)shape.dims[axis];
      assert_true(used + bytes <= capacity);
      memcpy(weights + used, mix_tensor_data(w), bytes);
      used += bytes;
    }
    const char *text = mix_function_dump(mix_model_train_function(model), "plan");
    if (plan) snprintf(plan, plan_size, "%s", text ? text : "");
  }
  unsetenv("MIXTAPE_DISABLE_PASSES");
  if (mix_error() != MIX_OK) fail_msg("%s %s: %s", d.policy, d.activation, mix_error_message());
  return used;
}

/* Of layers 0 to count - 1, the steps that are element-wise programs over a whole activation and should be in
 * an epilogue. `bare`: products without one. Programs over scalars, weights and biases belong to the
 * optimizer. */
static void expect_epilogues(design d, const char *plan) {
  char text[96], forward[160];
  snprintf(text, sizeof text, d.sequence ? "(%d, 4, 40)" : "(%d, 40)", BATCH);
  for (const char *line = plan, *end; *line && strncmp(line, "memory:", 7); line = end + 1) {
    end = line + strcspn(line, "\n");
    const char *arrow = strstr(line, " -> ");
    snprintf(forward, sizeof forward, "%.*s", (int)(end - line < 150 ? end - line : 150), line);
    if (!strstr(forward, " fused [") || !arrow || arrow > end) continue;
    char results[512];
    snprintf(results, sizeof results, "%.*s", (int)(end - arrow < 500 ? end - arrow : 500), arrow);
    if (strstr(results, text))
      fail_msg("%s %s%s%s: an element-wise step of its own: %s\n%s", d.policy, d.activation,
               d.residual ? " residual" : "", d.sequence ? " sequence" : "", forward, plan);
  }
}

static void products_have_epilogues(void **state) {
  (void)state;
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  static const char *const activations[] = {"relu", "sigmoid", "tanh", "gelu", "silu"};
  static unsigned char with[1 << 18], without[1 << 18];
  static char plan[1 << 17];
  for (int p = 0; p < 3; p++)
    for (int a = 0; a < 5; a++)
      for (int form = 0; form < 4; form++) {
        design d = {policies[p], activations[a], form & 1, form >> 1};
        size_t bytes = train(d, "", with, sizeof with, plan, sizeof plan);
        expect_epilogues(d, plan);
        assert_int_equal(train(d, "fuse_epilogues", without, sizeof without, NULL, 0), bytes);
        if (memcmp(with, without, bytes))
          fail_msg("%s %s, form %d: other bits without epilogues", d.policy, d.activation, form);
      }
  mix_set_global_policy("float32");
}

/* All passes and plan optimisations disabled, one by one and together: whole training steps with the same
 * bits. */
static void no_pass_changes_a_bit(void **state) {
  (void)state;
  static const char *const lists[] = {
      "remove_identities",
      "simplify_casts",
      "fold_transposes",
      "sink_broadcasts",
      "constant_fold",
      "cse",
      "dce",
      "select_to_predicate",
      "cache_weight_casts",
      "expand_add_n",
      "row_moments",
      "fuse",
      "fuse_epilogues",
      "inplace",
      "memory_plan",
      ("remove_identities,simplify_casts,fold_transposes,sink_broadcasts,constant_fold,cse,dce,"
       "select_to_predicate,cache_weight_casts,expand_add_n,row_moments,fuse,fuse_epilogues,inplace,"
       "memory_plan")};
  static unsigned char with[1 << 18], without[1 << 18];
  static const design designs[] = {{"mixed_float16", "gelu", true, false},
                                   {"mixed_bfloat16", "silu", false, true},
                                   {"float32", "relu", true, true}};
  for (int i = 0; i < 3; i++) {
    size_t bytes = train(designs[i], "", with, sizeof with, NULL, 0);
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
      assert_int_equal(train(designs[i], lists[l], without, sizeof without, NULL, 0), bytes);
      if (memcmp(with, without, bytes)) fail_msg("%s: other bits without %s", designs[i].policy, lists[l]);
    }
  }
  mix_set_global_policy("float32");
}

/* Under jit_compile whole steps stay as close to float64 as before, and a float32 model keeps its bits.
 * Compares the weights after three steps: their mean distance from those of a float64 model is at most 1.1
 * times that of the rounded form, because omitting a rounding can also increase an error by chance. */
static double mean_distance(design d, bool jit, const unsigned char *exact, size_t exact_bytes) {
  static unsigned char weights[1 << 18];
  jit_compile = jit;
  size_t bytes = train(d, "", weights, sizeof weights, NULL, 0);
  jit_compile = false;
  assert_int_equal(2 * bytes, exact_bytes);
  double sum = 0;
  for (size_t i = 0; i < bytes / 4; i++)
    sum += fabs((double)((float *)weights)[i] - ((const double *)exact)[i]);
  return sum / ((double)bytes / 4);
}

static void jit_steps_are_as_close(void **state) {
  (void)state;
  static unsigned char exact[1 << 19], with[1 << 18], without[1 << 18];
  static const char *const policies[] = {"mixed_float16", "mixed_bfloat16"};
  static const char *const activations[] = {"relu", "tanh", "gelu", "silu"};
  for (int a = 0; a < 4; a++) {
    design d = {"float64", activations[a], true, false};
    size_t bytes = train(d, "", exact, sizeof exact, NULL, 0);
    for (int p = 0; p < 2; p++) {
      d.policy = policies[p];
      double rounded = mean_distance(d, false, exact, bytes), kept = mean_distance(d, true, exact, bytes);
      if (!(kept <= 1.1 * rounded))
        fail_msg("%s %s: %g from float64 under jit, %g without", d.policy, d.activation, kept, rounded);
    }
    d.policy = "float32";
    bytes = train(d, "", without, sizeof without, NULL, 0);
    jit_compile = true;
    assert_int_equal(train(d, "", with, sizeof with, NULL, 0), bytes);
    jit_compile = false;
    assert_memory_equal(with, without, bytes);
  }
  mix_set_global_policy("float32");
}

/* The loss scale detects float16 overflow as without jit: a scale that is too large is halved as often. */
static double scale_after(bool jit) {
  double scale = 0;
  MIX_SCOPE {
    mix_set_seed(3);
    mix_set_global_policy("mixed_float16");
    mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(WIDTH));
    mix_tensor *x = mix_call(mix_dense(.units = 40, .activation = "relu"), inputs);
    mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1, .dtype = "float32"), x));
    mix_optimizer *optimizer =
        mix_loss_scale_optimizer(mix_sgd(.learning_rate = 0.0009765625), .initial_scale = 0x1p24);
    mix_model_compile(model, .loss = "mean_squared_error", .optimizer = optimizer, .jit_compile = jit);
    static double numbers[BATCH * WIDTH], targets[BATCH];
    for (int i = 0; i < BATCH * WIDTH; i++) numbers[i] = (double)((i * 7919 + 5) % 257 - 128) / 16;
    for (int i = 0; i < BATCH; i++) targets[i] = i * 4;
    mix_tensor *batch = mix_tensor_from_doubles(numbers, MIX_FLOAT32, MIX_SHAPE(BATCH, WIDTH));
    mix_tensor *y = mix_tensor_from_doubles(targets, MIX_FLOAT32, MIX_SHAPE(BATCH, 1));
    for (int i = 0; i < 30; i++) mix_model_train_on_batch(model, batch, y);
    scale = mix_tensor_item(mix_optimizer_loss_scale(mix_model_optimizer(model)));
  }
  if (mix_error() != MIX_OK) fail_msg("%s", mix_error_message());
  return scale;
}

static void the_loss_scale_sees_the_same_overflows(void **state) {
  (void)state;
  double plain = scale_after(false);
  assert_true(plain < 0x1p20 && plain >= 1);
  assert_true(scale_after(true) == plain);
  mix_set_global_policy("float32");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(products_have_epilogues), cmocka_unit_test(no_pass_changes_a_bit),
      cmocka_unit_test(jit_steps_are_as_close), cmocka_unit_test(the_loss_scale_sees_the_same_overflows)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
