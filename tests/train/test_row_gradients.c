/* Models with an Embedding: fit, a captured loop and a loop without a capture train to the same bits. */
/* Holds docs/NUMERICS.md: Optimizers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/mixtape.h>
#include <string.h>

enum { WORDS = 30, LENGTH = 5, EXAMPLES = 32, BATCH = 8, DEPTH = 4, MAX_WEIGHTS = 512 };

typedef struct training {
  mix_model *model;
  mix_loss *loss;
  mix_optimizer *optimizer;
} training;

static mix_list *step_body(void *context, mix_list *batch) {
  training *t = context;
  mix_list *variables = mix_model_trainable_variables(t->model);
  mix_tape *tape = mix_tape_begin();
  mix_tensor *predictions = mix_model_call(t->model, mix_list_get(batch, 0), .training = MIX_TRUE);
  mix_tensor *loss = mix_loss_call(t->loss, mix_list_get(batch, 1), predictions);
  mix_tensor *scaled = mix_optimizer_scale_loss(t->optimizer, loss);
  mix_tape_end(tape);
  mix_optimizer_apply(t->optimizer, mix_tape_gradient(tape, scaled, variables), variables);
  return mix_list_of(loss);
}

static training training_of(const char *policy, const char *optimizer) {
  mix_set_global_policy(policy);
  mix_set_seed(5);
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(LENGTH), .dtype = "int32");
  mix_layer *embedding = mix_embedding(.input_dim = WORDS, .output_dim = DEPTH);
  /* called twice, so that two gradients of rows add up */
  mix_tensor *x =
      mix_call(mix_concatenate(), mix_list_of(mix_call(embedding, inputs), mix_call(embedding, inputs)));
  x = mix_call(mix_dense(.units = 1, .dtype = "float32"), mix_call(mix_flatten(), x));
  return (training){mix_model_new(inputs, x), mix_mean_squared_error(),
                    mix_optimizer_for_policy(mix_optimizer_from_text(optimizer, NULL), mix_global_policy())};
}

static mix_tensor *words(int first, int count) {
  int32_t tokens[EXAMPLES * LENGTH];
  for (int i = 0; i < count * LENGTH; i++) tokens[i] = (first * LENGTH + i) * 17 % (WORDS - 3);
  return mix_tensor_from(tokens, MIX_INT32, MIX_SHAPE(count, LENGTH));
}
static mix_tensor *targets(int first, int count) {
  float y[EXAMPLES];
  for (int i = 0; i < count; i++) y[i] = (float)((first + i) % 5) - 2;
  return mix_tensor_from(y, MIX_FLOAT32, MIX_SHAPE(count, 1));
}

static int weights_of(const training *t, float *out) {
  mix_list *weights = mix_model_trainable_variables(t->model);
  int count = 0;
  for (int i = 0; i < mix_list_count(weights); i++) {
    mix_tensor *value = mix_variable_true_value(mix_list_get(weights, i));
    const int size = (int)mix_shape_size(mix_tensor_shape(value));
    assert_true(count + size <= MAX_WEIGHTS);
    assert_int_equal(mix_tensor_read(value, MIX_FLOAT32, out + count, size), MIX_OK);
    count += size;
  }
  return count;
}

static int by_fit(const char *policy, const char *optimizer, float *weights) {
  training t = training_of(policy, optimizer);
  mix_model_compile(t.model, .loss_object = t.loss, .optimizer = t.optimizer);
  mix_model_fit(t.model, words(0, EXAMPLES), targets(0, EXAMPLES), .batch_size = BATCH, .no_shuffle = true,
                .verbose = MIX_SILENT);
  return weights_of(&t, weights);
}

static int by_loop(const char *policy, const char *optimizer, bool captured, float *weights) {
  training t = training_of(policy, optimizer);
  mix_function *step = mix_function_new(step_body, &t, .name = "step");
  for (int i = 0; i < EXAMPLES; i += BATCH)
    MIX_SCOPE {
      mix_list *batch = mix_list_of(words(i, BATCH), targets(i, BATCH));
      captured ? mix_function_call(step, batch) : step_body(&t, batch);
    }
  mix_optimizer_finalize_variable_values(t.optimizer,
                                         mix_model_trainable_variables(t.model)); /* as fit does */
  return weights_of(&t, weights);
}

static void fit_and_loops_agree(void **state) {
  (void)state;
  static const char *const optimizers[] = {"sgd",
                                           "adagrad",
                                           "adam",
                                           "rmsprop",
                                           "sgd:momentum=0.9,clipnorm=1",
                                           "adagrad:use_ema=true,ema_overwrite_frequency=3"};
  static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};
  for (size_t o = 0; o < sizeof optimizers / sizeof *optimizers; o++)
    for (int p = 0; p < 3; p++)
      MIX_SCOPE {
        float fitted[MAX_WEIGHTS], captured[MAX_WEIGHTS], eager[MAX_WEIGHTS];
        const int count = by_fit(policies[p], optimizers[o], fitted);
        by_loop(policies[p], optimizers[o], true, captured);
        by_loop(policies[p], optimizers[o], false, eager);
        if (mix_error()) fail_msg("%s: %s", optimizers[o], mix_error_message());
        assert_memory_equal(captured, fitted, sizeof *fitted * (size_t)count);
        assert_memory_equal(eager, fitted, sizeof *fitted * (size_t)count);
      }
  mix_set_global_policy("float32");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fit_and_loops_agree)};
  return cmocka_run_group_tests_name("row_gradients", tests, NULL, NULL);
}
