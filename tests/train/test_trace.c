/* Traces: the file's form, that every step of every traced run is there, and errors. */
#include "model/support.h"
#include "support/folder.h"
#include "support/trace.h"
#include <sys/stat.h>

static mix_model *small_model(void) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *x = mix_call(mix_dense(.units = 8, .activation = "relu", .name = "hidden"), inputs);
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1, .name = "last \"one\""), x));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "adam");
  return model;
}

static void train(mix_model *model, int64_t steps) {
  mix_tensor *x = mix_fill(MIX_SHAPE(8, 4), 1, F32), *y = mix_fill(MIX_SHAPE(8, 1), 1, F32);
  mix_model_fit(model, x, y, .batch_size = 8, .epochs = steps, .verbose = MIX_SILENT);
  assert_no_error();
}

static int count_events(json_t *events, const char *layer, const char *op) {
  size_t i;
  json_t *event;
  int count = 0;
  json_array_foreach(events, i, event) {
    if (!is_kernel(event)) continue;
    const json_t *args = json_object_get(event, "args");
    count += strstr(text_of(args, "layer"), layer) && !strcmp(text_of(args, "op"), op);
  }
  return count;
}

/* Two steps of five are skipped, two traced. Each has the products of both layers: forward of each, and
 * backward of the kernels of both and of the input of the second. */
static void every_step_of_a_few_runs(void **state) {
  (void)state;
  char *path = in_folder("trace.json");
  mix_model *model = small_model();
  assert_int_equal(mix_trace_start(path, .skip = 2, .steps = 2), MIX_OK);
  train(model, 5);
  assert_int_equal(mix_trace_stop(), MIX_OK);
  mix_plan_report report;
  assert_int_equal(mix_function_report(mix_model_train_function(model), &report, sizeof report), MIX_OK);
  json_t *root, *events = events_of(path, &root);
  assert_int_equal(check_runs(events, "train_step"), 2);
  assert_int_equal((int)number_of(json_object_get(run_of(events, "train_step"), "args"), "steps"),
                   report.nodes);
  assert_true(count_events(events, "hidden", "matmul") >= 2);
  assert_true(count_events(events, "last \"one\"", "matmul") >= 2); /* quotes are escaped */
  json_decref(root);
  assert_int_equal(mix_trace_start(path, .skip = 4), MIX_OK);
  train(model, 5);
  assert_int_equal(mix_trace_stop(), MIX_OK);
  assert_int_equal(check_runs(events_of(path, &root), "train_step"), 1);
  json_decref(root);
}

/* The sums of what a plan's steps move is the report's figure. Shapes and dtypes are those of the operands.
 */
static mix_list *product(void *context, mix_list *arguments) {
  (void)context;
  return mix_list_of(mix_matmul(mix_list_get(arguments, 0), mix_list_get(arguments, 1), false, false));
}
static void one_product_in_numbers(void **state) {
  (void)state;
  char *path = in_folder("product.json");
  mix_function *function = mix_function_new(product, NULL, .name = "product");
  mix_tensor *a = mix_fill(MIX_SHAPE(4, 8), 1, F32), *b = mix_fill(MIX_SHAPE(8, 2), 1, F32);
  mix_evaluate(2, (mix_tensor *[]){a, b});
  assert_int_equal(mix_trace_start(path), MIX_OK);
  assert_non_null(mix_function_call(function, mix_list_of(a, b)));
  assert_int_equal(mix_trace_stop(), MIX_OK);
  json_t *root, *events = events_of(path, &root), *event, *found = NULL;
  assert_int_equal(check_runs(events, "product"), 1);
  size_t i;
  json_array_foreach(events, i, event) if (is_kernel(event) && !strcmp(text_of(event, "name"), "matmul"))
      found = event;
  assert_non_null(found);
  const json_t *args = json_object_get(found, "args");
  assert_string_equal(text_of(args, "operands"), "float32 (4, 8), float32 (8, 2)");
  assert_string_equal(text_of(args, "results"), "float32 (4, 2)");
  assert_int_equal((int)number_of(args, "bytes"), 4 * (4 * 8 + 8 * 2 + 4 * 2));
  json_decref(root);
}

/* An infinite gradient: the update of that step is there, as skipped. */
static void a_skipped_update_is_marked(void **state) {
  (void)state;
  char *path = in_folder("skipped.json");
  mix_set_global_policy("mixed_float16");
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(1));
  mix_model *model = mix_model_new(inputs, mix_call(mix_dense(.units = 1, .dtype = "float32"), inputs));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "adam");
  mix_tensor *x = mix_fill(MIX_SHAPE(2, 1), INFINITY, F32), *y = mix_fill(MIX_SHAPE(2, 1), 1, F32);
  assert_int_equal(mix_trace_start(path, .steps = 1), MIX_OK);
  mix_model_fit(model, x, y, .verbose = MIX_SILENT);
  assert_int_equal(mix_trace_stop(), MIX_OK);
  json_t *root, *events = events_of(path, &root), *event;
  assert_int_equal(check_runs(events, "train_step"), 1);
  int skipped = 0;
  size_t i;
  json_array_foreach(events, i, event) skipped +=
      json_is_true(json_object_get(json_object_get(event, "args"), "skipped"));
  assert_true(skipped > 0);
  json_decref(root);
}

/* More threads than one: their shares of a large step are there, and the bits are those without a trace. */
static void all_threads_and_the_same_bits(void **state) {
  (void)state;
  char *path = in_folder("threads.json");
  mix_set_threads(2);
  mix_tensor *a = mix_fill(MIX_SHAPE(256, 256), 0.7, F32);
  mix_evaluate(1, &a);
  mix_function *function = mix_function_new(product, NULL, .name = "product");
  double plain = at(mix_list_get(mix_function_call(function, mix_list_of(a, a)), 0), 77);
  assert_int_equal(mix_trace_start(path), MIX_OK);
  double traced = at(mix_list_get(mix_function_call(function, mix_list_of(a, a)), 0), 77);
  assert_int_equal(mix_trace_stop(), MIX_OK);
  assert_near(traced, plain, 0);
  json_t *root, *events = events_of(path, &root), *event;
  assert_int_equal(check_runs(events, "product"), 1);
  bool shares[2] = {0};
  size_t i;
  json_array_foreach(events, i, event) if (is_kernel(event))
      shares[(int)number_of(json_object_get(event, "args"), "share")] = true;
  assert_true(shares[0] && shares[1]);
  json_decref(root);
  mix_set_threads(1);
}

static mix_list *with_label(void *context, mix_list *element) {
  (void)context;
  mix_tensor *x = mix_fill(MIX_SHAPE(4), 1, F32);
  return mix_list_of(x, mix_slice(x, MIX_SHAPE(0), MIX_SHAPE(1)));
}

static int count_inputs(json_t *events, const char *name, bool of_others) {
  const double own = number_of(run_of(events, "train_step"), "tid");
  size_t i;
  json_t *event;
  int count = 0;
  json_array_foreach(events, i, event) if (is_input(event, name)) {
    assert_true(number_of(event, "dur") >= 0);
    count += (number_of(event, "tid") != own) == of_others;
  }
  return count;
}

/* Each traced step has a wait before it, on its own thread; the elements are made on other threads. */
static void waits_for_input_and_its_work(void **state) {
  (void)state;
  char *path = in_folder("input.json");
  mix_model *model = small_model();
  mix_dataset *data = mix_dataset_map(mix_dataset_range(0, 24, 1), with_label, .num_parallel_calls = 2);
  data = mix_dataset_prefetch(mix_dataset_batch(data, 4), 1);
  assert_int_equal(mix_trace_start(path, .skip = 1, .steps = 3), MIX_OK);
  mix_model_fit(model, data, NULL, .verbose = MIX_SILENT);
  assert_no_error();
  assert_int_equal(mix_trace_stop(), MIX_OK);
  json_t *root, *events = events_of(path, &root);
  assert_int_equal(check_runs(events, "train_step"), 3);
  assert_int_equal(count_inputs(events, "input", false), 3);
  assert_int_equal(count_inputs(events, "input", true), 0);
  assert_int_equal(count_inputs(events, "map", false) + count_inputs(events, "batch", false), 0);
  json_decref(root);
  assert_int_equal(mix_trace_start(path, .steps = 6), MIX_OK);
  mix_model_fit(model, data, NULL, .verbose = MIX_SILENT);
  assert_int_equal(mix_trace_stop(), MIX_OK);
  events = events_of(path, &root);
  assert_int_equal(count_inputs(events, "input", false), 6);
  assert_true(count_inputs(events, "map", true) >= 4 && count_inputs(events, "batch", true) >= 1);
  json_decref(root);
}

static void errors_are_said(void **state) {
  (void)state;
  char *path = in_folder("errors.json");
  assert_int_equal(mix_trace_stop(), MIX_RUNTIME_ERROR);
  assert_error(MIX_RUNTIME_ERROR, "no trace has been started");
  assert_int_equal(mix_trace_start("/nonexistent/trace.json"), MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "/nonexistent/trace.json");
  assert_int_equal(mix_trace_start(NULL), MIX_TYPE_ERROR);
  assert_error(MIX_TYPE_ERROR, "path is NULL");
  assert_int_equal(mix_trace_start(path, .steps = -1), MIX_VALUE_ERROR);
  assert_error(MIX_VALUE_ERROR, "steps is -1");
  assert_int_equal(mix_trace_start(path), MIX_OK);
  assert_int_equal(mix_trace_start(path), MIX_RUNTIME_ERROR);
  assert_error(MIX_RUNTIME_ERROR, "mix_trace_stop ends it");
  mix_matmul(NULL, NULL, false, false); /* an error of the caller's stays, and the file is written */
  assert_int_equal(mix_trace_stop(), MIX_OK);
  assert_error(MIX_TYPE_ERROR, "matmul");
  json_t *root, *events = events_of(path, &root);
  assert_int_equal(check_runs(events, "none"), 0);
  json_decref(root);
  /* a folder that is gone by then */
  char *folder = in_folder("gone"), inside[600];
  char kept[512];
  snprintf(kept, sizeof kept, "%s", folder);
  assert_int_equal(mkdir(kept, 0777), 0);
  snprintf(inside, sizeof inside, "%s/t.json", kept);
  assert_int_equal(mix_trace_start(inside), MIX_OK);
  assert_int_equal(rmdir(kept), 0);
  assert_int_equal(mix_trace_stop(), MIX_IO_ERROR);
  assert_error(MIX_IO_ERROR, "t.json");
  assert_int_equal(mix_trace_start(path), MIX_OK); /* the failed one is over */
  assert_int_equal(mix_trace_stop(), MIX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_step_of_a_few_runs),     TEST(one_product_in_numbers),
      TEST(a_skipped_update_is_marked),   TEST(all_threads_and_the_same_bits),
      TEST(waits_for_input_and_its_work), TEST(errors_are_said),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
