/* Calls of 4,000 batch sizes, each in a process of its own: the plans that are kept stay below 200 MB. */
/* Holds docs/NUMERICS.md: Padded batches. */
#include "model/support.h"

#include "support/sanitizer.h"
#include "support/skip.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZES = 4000, FEATURES = 64, CLASSES = 10, LIMIT_MB = 200 };

static float features[SIZES * FEATURES];
static int64_t labels[SIZES];
static mix_tensor *rows(int64_t count) {
  return mix_tensor_wrap(features, F32, MIX_SHAPE(count, FEATURES), NULL);
}

static mix_model *new_model(void) {
  for (int i = 0; i < SIZES * FEATURES; i++) features[i] = (float)(i % 17) * 0.125f - 1;
  for (int i = 0; i < SIZES; i++) labels[i] = i % CLASSES;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(FEATURES));
  mix_tensor *x = mix_call(mix_dense(.units = 64, .activation = "relu"), inputs);
  x = mix_call(mix_dense(.units = 64, .activation = "relu"), x);
  x = mix_call(mix_dense(.units = CLASSES, .activation = "softmax"), x);
  mix_model *model = mix_model_new(inputs, x);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .metrics = {"accuracy"});
  return model;
}

static bool predicts(mix_model *model, int64_t count) {
  mix_list *outputs = mix_model_predict(model, rows(count), .batch_size = count);
  return outputs && mix_tensor_shape(mix_list_get(outputs, 0)).dims[0] == count;
}

static bool evaluates(mix_model *model, int64_t count) {
  mix_tensor *y = mix_tensor_wrap(labels, MIX_INT64, MIX_SHAPE(count), NULL);
  return mix_model_evaluate(model, rows(count), y, .batch_size = count, .verbose = MIX_SILENT) != NULL;
}

static mix_list *forward(void *model, mix_list *arguments) {
  return mix_list_of(mix_model_call(model, mix_list_get(arguments, 0), .training = MIX_FALSE));
}
static mix_function *function;
static bool calls(mix_model *model, int64_t count) {
  (void)model;
  mix_list *outputs = mix_function_call(function, mix_list_of(rows(count)));
  mix_tensor *y = outputs ? mix_list_get(outputs, 0) : NULL;
  return y && mix_tensor_shape(y).dims[0] == count && mix_tensor_data(y);
}
static bool calls_a_function(mix_model *model, int64_t count) {
  if (!function) function = mix_retain(mix_function_new(forward, model));
  return calls(model, count);
}
static bool calls_a_function_of_any_batch(mix_model *model, int64_t count) {
  if (!function) function = mix_retain(mix_function_new(forward, model, .batch = MIX_ANY));
  return calls(model, count);
}

/* In the child: large and small batches by turns. */
static int serve(bool (*call)(mix_model *model, int64_t count)) {
  bool good = true;
  mix_scope *scope = mix_scope_begin();
  mix_model *model = new_model();
  for (int64_t i = 0; i < SIZES && good; i++)
    MIX_SCOPE { good = call(model, 1 + i * 1601 % SIZES); }
  if (!good) print_error("%s\n", mix_error_message());
  mix_release(function);
  mix_scope_end(scope);
  return good ? 0 : 1;
}

static void stays_small(bool (*call)(mix_model *model, int64_t count)) {
  if (UNDER_SANITIZER) SKIP("a sanitizer keeps freed memory");
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) _exit(serve(call));
  int status;
  struct rusage usage;
  assert_int_equal(wait4(child, &status, 0, &usage), child);
  assert_int_equal(status, 0);
  print_message("at most %ld MB\n", usage.ru_maxrss >> 10);
  assert_true(usage.ru_maxrss >> 10 < LIMIT_MB);
}

static void predict(void **state) { (void)state, stays_small(predicts); }
static void evaluate(void **state) { (void)state, stays_small(evaluates); }
static void a_function(void **state) { (void)state, stays_small(calls_a_function); }
static void a_function_of_any_batch(void **state) {
  (void)state;
  stays_small(calls_a_function_of_any_batch);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(predict), cmocka_unit_test(evaluate),
                                     cmocka_unit_test(a_function), cmocka_unit_test(a_function_of_any_batch)};
  return cmocka_run_group_tests_name("train/serving_memory", tests, NULL, NULL);
}
