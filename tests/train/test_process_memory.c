/* What a plan's report says beside what the process takes: each training runs in a process of its own, whose
 * peak, less that of a process that trains 8 units on one example, is within a tenth of the report's total
 * and the caller's arrays. Nothing is timed. What cannot be counted: pages of the program's and the library's
 * code, tables of pages, and what the C library keeps; the smallest training has them too. */
#include "model/support.h"

#include "support/sanitizer.h"
#include "support/skip.h"
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum kind { GUIDE, WEIGHTS, CONVOLUTIONS, TRANSFORMER, LSTM } kind;

typedef struct training {
  kind kind;
  const char *policy;
  int64_t units, batch;
  int64_t batches; /* of fit; 0: train_on_batch */
} training;

/* ---- models ---- */

static mix_tensor *attention_block(mix_tensor *x, int64_t units) {
  mix_tensor *query = mix_call(mix_layer_normalization(), x);
  mix_tensor *attended =
      mix_call(mix_multi_head_attention(4, units / 4), query, .arguments = mix_list_of(query));
  x = mix_call(mix_add_layer(.name = NULL), mix_list_of(x, attended));
  mix_tensor *y =
      mix_call(mix_dense(4 * units, .activation = "gelu"), mix_call(mix_layer_normalization(), x));
  y = mix_call(mix_dropout(0.1), mix_call(mix_dense(units), y));
  return mix_call(mix_add_layer(.name = NULL), mix_list_of(x, y));
}

static mix_shape input_shape(const training *t) {
  switch (t->kind) {
  case CONVOLUTIONS: return MIX_SHAPE(64, 64, 3);
  case TRANSFORMER: return MIX_SHAPE(128, t->units);
  case LSTM: return MIX_SHAPE(64, t->units);
  default: return MIX_SHAPE(784);
  }
}

static mix_tensor *hidden(const training *t, mix_tensor *x) {
  switch (t->kind) {
  case CONVOLUTIONS:
    for (int i = 0; i < 3; i++) {
      x = mix_call(mix_conv2d(t->units, 3, .padding = "same"), x);
      x = mix_call(mix_activation("relu"), mix_call(mix_batch_normalization(), x));
    }
    return mix_call(mix_global_average_pooling2d(), x);
  case TRANSFORMER:
    return mix_call(mix_global_average_pooling1d(), attention_block(attention_block(x, t->units), t->units));
  case LSTM: return mix_call(mix_lstm(t->units), x);
  default:
    x = mix_call(mix_dense(t->units, .activation = "relu"), x);
    return mix_call(mix_dense(t->units, .activation = "relu"), x);
  }
}

static mix_model *model_of(const training *t) {
  mix_set_global_policy(t->policy);
  mix_tensor *inputs = mix_input(.shape = input_shape(t));
  mix_tensor *x = mix_call(mix_dense(10), hidden(t, inputs));
  mix_model *model = mix_model_new(inputs, mix_call(mix_activation("softmax", .dtype = "float32"), x));
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy",
                    .optimizer = t->kind == GUIDE     ? mix_rmsprop()
                                 : t->kind == WEIGHTS ? mix_sgd()
                                                      : mix_adam());
  return model;
}

/* ---- processes ---- */

typedef struct bytes {
  size_t plan, arrays; /* arrays: of the caller, that are no arguments of the plan */
  long peak;
} bytes;

/* In the child. */
static bool train(const training *t, bytes *counted) {
  mix_plan_report report;
  mix_model *model = model_of(t);
  mix_shape shape = {.rank = 1, .dims = {t->batch * (t->batches ? t->batches : 1)}}, input = input_shape(t);
  for (int d = 0; d < input.rank; d++) shape.dims[shape.rank++] = input.dims[d];
  mix_tensor *x = mix_fill(shape, 0.5, F32), *y = mix_fill(MIX_SHAPE(shape.dims[0]), 3, MIX_INT64);
  if (mix_evaluate(2, (mix_tensor *[]){x, y}) != MIX_OK) return false;
  if (t->batches) mix_model_fit(model, x, y, .batch_size = t->batch, .epochs = 2, .verbose = MIX_SILENT);
  for (int i = 0; i < 2 && !t->batches; i++)
    MIX_SCOPE { mix_model_train_on_batch(model, x, y); }
  if (mix_function_report(mix_model_train_function(model), &report, sizeof report) != MIX_OK) return false;
  counted->plan = report.peak_bytes;
  counted->arrays = t->batches ? (size_t)mix_shape_size(shape) * sizeof(float) : 0;
  return true;
}

static bytes of_process(const training *t) {
  bytes counted = {0};
  int ends[2], status;
  struct rusage usage;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    mix_scope *scope = mix_scope_begin();
    const bool good = train(t, &counted);
    if (!good) print_error("%s\n", mix_error_message());
    mix_scope_end(scope);
    _exit(good && write(ends[1], &counted, sizeof counted) == sizeof counted ? 0 : 1);
  }
  assert_int_equal(wait4(child, &status, 0, &usage), child);
  assert_int_equal(status, 0);
  assert_int_equal(read(ends[0], &counted, sizeof counted), sizeof counted);
  close(ends[0]);
  close(ends[1]);
  counted.peak = usage.ru_maxrss * 1024;
  return counted;
}

static void agree(const training *t) {
  if (UNDER_SANITIZER) SKIP("a sanitizer keeps freed memory");
  if (!on_host()) SKIP("the memory of this device is not the plan's alone");
  const training least = {t->kind, t->policy, 8, 1, 0};
  const bytes empty = of_process(&least), full = of_process(t);
  const double process = (double)(full.peak - empty.peak),
               counted = (double)(full.plan + full.arrays - empty.plan);
  print_message("kind %d, %s, %lld units, batch %lld%s: counted %.1f MiB, process %.1f, ratio %.3f\n",
                (int)t->kind, t->policy, (long long)t->units, (long long)t->batch, t->batches ? ", fit" : "",
                counted / (1 << 20), process / (1 << 20), process / counted);
  assert_true(process <= 1.1 * counted);
  assert_true(process >= 0.9 * counted);
}

static const char *const policies[] = {"float32", "mixed_float16", "mixed_bfloat16"};

static void in_each_policy(training t) {
  for (size_t p = 0; p < sizeof policies / sizeof *policies; p++) {
    t.policy = policies[p];
    agree(&t);
  }
}

/* Weights of SGD have no slots: their initial values are the peak where these exist twice. */
static void weights_alone(void **state) {
  (void)state;
  in_each_policy((training){WEIGHTS, NULL, 2048, 8, 0});
}

static void guide_of_few_examples(void **state) {
  (void)state;
  in_each_policy((training){GUIDE, NULL, 2048, 128, 0});
}
static void guide_of_many_examples(void **state) {
  (void)state;
  in_each_policy((training){GUIDE, NULL, 1024, 4096, 0});
}
static void convolutions(void **state) {
  (void)state;
  in_each_policy((training){CONVOLUTIONS, NULL, 16, 32, 0});
}
static void transformer(void **state) {
  (void)state;
  in_each_policy((training){TRANSFORMER, NULL, 128, 32, 0});
}
static void lstm(void **state) {
  (void)state;
  in_each_policy((training){LSTM, NULL, 256, 128, 0});
}
static void fit_of_arrays(void **state) {
  (void)state;
  in_each_policy((training){GUIDE, NULL, 1024, 2048, 4});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_alone),
                                     cmocka_unit_test(guide_of_few_examples),
                                     cmocka_unit_test(guide_of_many_examples),
                                     cmocka_unit_test(convolutions),
                                     cmocka_unit_test(transformer),
                                     cmocka_unit_test(lstm),
                                     cmocka_unit_test(fit_of_arrays)};
  return cmocka_run_group_tests_name("train/process_memory", tests, NULL, NULL);
}
