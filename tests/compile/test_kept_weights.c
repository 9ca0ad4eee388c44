/* Weights that stay packed between runs of a function: the results are those of kernels that pack in each run
 * (the least use of memory keeps nothing), whatever has changed the weights since the run before. */
/* Holds docs/NUMERICS.md: Products; The same bits again. */
#include "base/alloc.h"
#include "compile/support.h"
#include "support/device.h"
#include "support/memory.h"
#include <mixtape/convolution.h>
#include <mixtape/random.h>
#include <pthread.h>

/* Products that pack B: more terms than one block of k has, columns and channels that fill no panel. */
enum { ROWS = 40, TERMS = 300, COLUMNS = 200, SIDE = 9, CHANNELS = 24, FILTERS = 70, RESULTS = 4 };

typedef struct net {
  mix_variable *dense, *kernel, *strided, *grouped;
  mix_dtype dtype; /* that weights are read in */
} net;

static mix_tensor *numbers(uint64_t seed, mix_shape shape) {
  mix_tensor *x = mix_random_uniform(mix_generator_new(seed), shape, MIX_FLOAT32);
  return mix_subtract(x, scalar(0.5));
}

static net new_net(mix_dtype dtype) {
  return (net){.dense = variable("dense", numbers(1, MIX_SHAPE(TERMS, COLUMNS))),
               .kernel = variable("kernel", numbers(2, MIX_SHAPE(3, 3, CHANNELS, FILTERS))),
               .strided = variable("strided", numbers(3, MIX_SHAPE(3, 3, CHANNELS, 2 * COLUMNS))),
               .grouped = variable("grouped", numbers(4, MIX_SHAPE(1, 1, CHANNELS / 2, 4 * FILTERS))),
               .dtype = dtype};
}

static mix_list *inputs(void) {
  mix_tensor *x = numbers(5, MIX_SHAPE(ROWS, TERMS)), *y = numbers(6, MIX_SHAPE(2, SIDE, SIDE, CHANNELS));
  mix_evaluate(2, (mix_tensor *[]){x, y});
  return mix_list_of(x, y);
}

static mix_tensor *read(const net *n, mix_variable *weight) {
  return mix_cast(mix_variable_value(weight), n->dtype);
}

static mix_list *forward(void *context, mix_list *arguments) {
  const net *n = context;
  mix_tensor *x = mix_cast(mix_list_get(arguments, 0), n->dtype),
             *image = mix_cast(mix_list_get(arguments, 1), n->dtype);
  return mix_list_of(mix_relu(mix_matmul(x, read(n, n->dense), false, false)),
                     mix_conv(image, read(n, n->kernel), .padding = "same"),
                     mix_relu(mix_conv(image, read(n, n->strided), .strides = MIX_SHAPE(2, 2))),
                     mix_conv(image, read(n, n->grouped), .groups = 2));
}

/* A step that trains the smallest weight: most are frozen. */
static mix_list *tune(void *context, mix_list *arguments) {
  const net *n = context;
  mix_list *results = forward(context, arguments);
  mix_variable_assign(n->grouped, mix_add(mix_variable_value(n->grouped), scalar(0.125)));
  return results;
}

/* A step that passes gradients through a frozen weight, which it reads in both directions. */
static mix_list *adapt(void *context, mix_list *arguments) {
  const net *n = context;
  mix_tensor *dense = mix_variable_value(n->dense),
             *y = mix_relu(mix_matmul(mix_list_get(arguments, 0), dense, false, false));
  mix_variable_assign(n->grouped, mix_add(mix_variable_value(n->grouped), scalar(0.125)));
  return mix_list_of(mix_matmul(y, dense, false, true));
}

/* A training step: reads the weights and writes most of them. */
static mix_list *step(void *context, mix_list *arguments) {
  const net *n = context;
  mix_list *results = forward(context, arguments);
  mix_variable_assign(n->dense, mix_multiply(mix_variable_value(n->dense), scalar(0.75)));
  mix_variable_assign(n->kernel, mix_add(mix_variable_value(n->kernel), scalar(0.125)));
  mix_variable_assign(n->strided, mix_multiply(mix_variable_value(n->strided), scalar(0.5)));
  return results;
}

static mix_list *call(mix_function *function, mix_list *arguments, const char *memory) {
  mix_set_memory(memory);
  mix_list *results = mix_function_call(function, arguments);
  mix_set_memory("auto");
  no_error();
  return results;
}

static bool same(mix_list *a, mix_list *b, int result) {
  const mix_value *x = mix_tensor_value(mix_list_get(a, result)),
                  *y = mix_tensor_value(mix_list_get(b, result));
  return !memcmp(bytes_of_memory(x->memory), bytes_of_memory(y->memory), mix_memory_bytes(x->memory));
}

/* The function's results on weights that are packed, and on those that are not. */
static void check(mix_function *function, mix_list *arguments, const char *after) {
  MIX_SCOPE {
    mix_list *kept = call(function, arguments, "auto"), *least = call(function, arguments, "least");
    for (int i = 0; i < RESULTS; i++)
      if (!same(kept, least, i)) fail_msg("result %d after %s", i, after);
  }
}

/* The results of a step that keeps what it only reads, beside those of a function that keeps nothing. */
static void check_step(mix_function *training, mix_function *function, mix_list *arguments) {
  MIX_SCOPE {
    mix_list *least = call(function, arguments, "least"), *kept = call(training, arguments, "auto");
    for (int i = 0; i < RESULTS; i++)
      if (!same(kept, least, i)) fail_msg("result %d of a step with frozen weights", i);
  }
}

static void changes_are_seen(void **state) {
  (void)state;
  const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int threads = 1; threads <= (on_host() ? 3 : 1); threads++) /* of others they are none of ours */
      MIX_SCOPE {
        net n = new_net(dtypes[d]);
        mix_list *arguments = inputs();
        mix_set_threads(threads);
        mix_function *function = mix_function_new(forward, &n), *training = mix_function_new(step, &n),
                     *tuning = mix_function_new(tune, &n);
        check(function, arguments, "nothing");
        check(function, arguments, "a run");
        mix_variable_assign(n.dense, numbers(7, MIX_SHAPE(TERMS, COLUMNS)));
        check(function, arguments, "an assignment");
        mix_variable_assign_add(n.grouped, mix_ones_like(mix_variable_value(n.grouped)));
        check(function, arguments, "an addition");
        for (int i = 0; i < 2; i++) {
          call(training, arguments, i ? "auto" : "fast");
          check(function, arguments, "a training step");
          check_step(tuning, function, arguments);
        }
        mix_memory *file = mix_memory_new(&mix_host_memory, sizeof(float) * TERMS * COLUMNS);
        for (int i = 0; i < TERMS * COLUMNS; i++) ((float *)bytes_of_memory(file))[i] = (float)(i % 7);
        assert_int_equal(mix_variable_borrow(n.dense, file),
                         on_host()); /* a file lies in the host's memory */
        mix_release(file);
        check(function, arguments, "weights in a file");
        mix_variable_assign(n.dense, numbers(8, MIX_SHAPE(TERMS, COLUMNS)));
        check(function, arguments, "an assignment to weights in a file");
      }
}

typedef struct writer {
  mix_variable *variable;
  mix_tensor *values[2];
  int count;
  bool good;
} writer;

static void *assign_in_turn(void *context) {
  writer *w = context;
  for (int i = 0; i < w->count; i++)
    MIX_SCOPE { mix_variable_assign(w->variable, w->values[i % 2]); }
  w->good = mix_error() == MIX_OK;
  return NULL;
}

/* A run that packs while the weight changes may read either value; the next one reads the last. */
static void another_thread_changes_a_weight(void **state) {
  (void)state;
  net n = new_net(MIX_FLOAT32);
  mix_list *arguments = inputs();
  mix_function *function = mix_function_new(forward, &n);
  writer w = {
      n.dense, {numbers(7, MIX_SHAPE(TERMS, COLUMNS)), numbers(8, MIX_SHAPE(TERMS, COLUMNS))}, 0, false};
  mix_evaluate(2, w.values);
  for (int round = 0; round < 5; round++) {
    pthread_t thread;
    w.count = 100 + round; /* the last value is another one in each round */
    assert_int_equal(pthread_create(&thread, NULL, assign_in_turn, &w), 0);
    for (int i = 0; i < 20; i++)
      MIX_SCOPE { call(function, arguments, "auto"); }
    pthread_join(thread, NULL);
    assert_true(w.good);
    check(function, arguments, "assignments by another thread");
  }
}

static mix_plan_report report_of(mix_function_body body, net *n, const char *memory) {
  mix_plan_report report = {0};
  mix_function *function = mix_function_new(body, n);
  call(function, inputs(), memory);
  mix_function_report(function, &report, sizeof report);
  return report;
}

/* Two functions pack the same weights, which they find changed or not by whoever came before. They run at
 * once while another thread changes a weight, and then one after the other. */
typedef struct caller {
  mix_function *function;
  mix_list *arguments;
  bool good;
} caller;

static void *call_often(void *context) {
  caller *c = context;
  for (int i = 0; i < 20; i++)
    MIX_SCOPE { mix_function_call(c->function, c->arguments); }
  c->good = mix_error() == MIX_OK;
  return NULL;
}

static void functions_share_panels(void **state) {
  (void)state;
  net n = new_net(MIX_FLOAT32);
  mix_set_device("cpu");
  caller callers[2];
  for (int i = 0; i < 2; i++) callers[i] = (caller){mix_function_new(forward, &n), inputs(), false};
  writer w = {
      n.dense, {numbers(7, MIX_SHAPE(TERMS, COLUMNS)), numbers(8, MIX_SHAPE(TERMS, COLUMNS))}, 0, false};
  mix_evaluate(2, w.values);
  for (int round = 0; round < 5; round++) {
    pthread_t threads[2], writing;
    w.count = round ? 100 + round : 0; /* in the first round both find nothing packed */
    assert_int_equal(pthread_create(&writing, NULL, assign_in_turn, &w), 0);
    for (int i = 0; i < 2; i++)
      assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    for (int i = 0; i < 2; i++) {
      pthread_join(threads[i], NULL);
      assert_true(callers[i].good);
    }
    pthread_join(writing, NULL);
    assert_true(w.good);
    check(callers[round % 2].function, callers[0].arguments, "runs at once");
    mix_variable_assign_add(n.kernel, mix_ones_like(mix_variable_value(n.kernel)));
    check(callers[0].function, callers[0].arguments, "a change that the first one sees first");
    check(callers[1].function, callers[0].arguments, "a change that the second one sees second");
  }
}

/* Bytes in buffers that another function takes once it has run. */
static size_t bytes_of_another(net *n, mix_list *arguments) {
  const size_t before = mix_buffer_bytes();
  call(mix_function_new(forward, n), arguments, "auto");
  return mix_buffer_bytes() - before;
}

static void shared_panels_take_memory_once(void **state) {
  (void)state;
  net n = new_net(MIX_FLOAT32);
  mix_list *arguments = inputs();
  mix_set_device("cpu");
  mix_set_threads(1);
  const size_t first = bytes_of_another(&n, arguments), second = bytes_of_another(&n, arguments);
  assert_true(first >= second + sizeof(float) * TERMS * COLUMNS);
}

/* A product of so many terms that its panels are larger than all else that it asks for. */
enum { DEEP_TERMS = 2048, DEEP_COLUMNS = 400, DEEP_BYTES = DEEP_TERMS * DEEP_COLUMNS * (int)sizeof(float) };

static mix_list *deep(void *context, mix_list *arguments) {
  return mix_list_of(mix_matmul(mix_list_get(arguments, 0), mix_variable_value(context), false, false));
}

static size_t workspace_of(mix_function *function) {
  mix_plan_report report = {0};
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  return report.workspace_bytes;
}

/* Panels save time alone: where they find no memory, the run does without. */
static void panels_may_find_no_memory(void **state) {
  (void)state;
  mix_set_device("cpu");
  mix_set_threads(1);
  mix_variable *weight = variable("deep", numbers(1, MIX_SHAPE(DEEP_TERMS, DEEP_COLUMNS)));
  mix_tensor *x = numbers(2, MIX_SHAPE(ROWS, DEEP_TERMS));
  mix_evaluate(1, &x);
  mix_list *arguments = mix_list_of(x);
  mix_function *kept = mix_function_new(deep, weight), *left_out = mix_function_new(deep, weight);
  mix_limit_allocations(DEEP_BYTES - 1);
  mix_list *without = mix_function_call(left_out, arguments);
  mix_limit_allocations(0);
  no_error();
  mix_list *with = mix_function_call(kept, arguments);
  no_error();
  assert_true(same(with, without, 0));
  assert_true(workspace_of(left_out) < DEEP_BYTES && workspace_of(kept) >= DEEP_BYTES);
}

/* Panels are at least as large as the weights. A training step has them where most weights are frozen and no
 * gradient passes them, or time alone counts. */
static void memory_is_counted(void **state) {
  (void)state;
  enum { WEIGHTS = TERMS * COLUMNS };
  net n = new_net(MIX_FLOAT32);
  mix_set_device("cpu");
  mix_set_threads(1);
  const size_t least = report_of(forward, &n, "least").workspace_bytes;
  assert_true(report_of(forward, &n, "auto").workspace_bytes >= least / 2 + sizeof(float) * WEIGHTS);
  const size_t trains = report_of(step, &n, "least").workspace_bytes;
  assert_int_equal(report_of(step, &n, "auto").workspace_bytes, trains);
  assert_true(report_of(step, &n, "fast").workspace_bytes > trains);
  const size_t tunes = report_of(tune, &n, "least").workspace_bytes;
  assert_true(report_of(tune, &n, "auto").workspace_bytes >= tunes / 2 + sizeof(float) * WEIGHTS);
  const size_t adapts = report_of(adapt, &n, "least").workspace_bytes;
  assert_int_equal(report_of(adapt, &n, "auto").workspace_bytes, adapts);
  assert_true(report_of(adapt, &n, "fast").workspace_bytes > adapts);
  net narrow = n;
  narrow.dtype = MIX_BFLOAT16; /* frozen weights are rounded once, and not in each step */
  assert_true(report_of(tune, &narrow, "auto").copy_bytes >= sizeof(uint16_t) * WEIGHTS);
  const mix_plan_report free = report_of(tune, &n, "auto");
  mix_set_memory_budget(free.peak_bytes - 1); /* panels go before anything is computed twice */
  const mix_plan_report tight = report_of(tune, &n, "auto");
  assert_true(tight.peak_bytes < free.peak_bytes && tight.workspace_bytes < free.workspace_bytes);
  assert_int_equal(tight.recomputed_nodes, 0);
  mix_set_memory_budget(0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(changes_are_seen),          TEST(another_thread_changes_a_weight),
      TEST(functions_share_panels),    TEST(shared_panels_take_memory_once),
      TEST(panels_may_find_no_memory), TEST(memory_is_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
