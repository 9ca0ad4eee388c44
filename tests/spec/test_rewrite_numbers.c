/* The numeric half of the rows of the graph rewrite: recorded graphs (MIXTAPE_REFERENCE_DIR/rewrite), run
 * before and after the rewrite. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#include "support/skip.h"
#include "spec/graph_run.h"

#include "base/alloc.h"
#include "support/rewrite_file.h"

/* |after - before| <= absolute + relative |before|: the bounds of docs/spec/graph_rewrite.md. bfloat16 has 8
 * times float16's roundoff; where a row gives it no bound of its own, it gets 8 times float16's. */
typedef struct row {
  const char *name;
  double absolute, relative;
  /* 0: 64. The gradient of a pool jumps where two numbers are within a rounding of each other, so it gets
   * numbers so coarse that none of them rounds. */
  int steps;
} row;

static const row rows[] = {
#define UNARY(op, absolute, relative)                                                                        \
  { "G18-between-" #op, absolute, relative }
    UNARY(elu, 1e-3, 1e-3),
    UNARY(erf, 1e-3, 0),
    UNARY(erfc, 1e-3, 0),
    UNARY(inv, 0, 1e-3),
    UNARY(log, 1e-3, 2e-3),
    UNARY(log1p, 1e-3, 5e-3),
    UNARY(logsoftmax, 0, 1e-2),
    UNARY(reciprocal, 0, 1e-3),
    UNARY(sigmoid, 1e-3, 0),
    UNARY(softmax, 2e-3, 0),
    UNARY(softplus, 1e-3, 1e-3),
    UNARY(sqrt, 1e-3, 1e-3),
    UNARY(tanh, 1e-3, 0),
#define LOOP(number, rest)                                                                                   \
  {"G" #number "-loop-" rest, 2e-3, 1e-3, 0}, { "G" #number "-bf16-loop-" rest, 2e-2, 0 }
    LOOP(40, "w-c-c"),
    LOOP(41, "c-c-w"),
    LOOP(42, "w-g-w"),
    LOOP(43, "w-gbg-w"),
    LOOP(44, "b-gwc-c"),
    LOOP(45, "b-cwcg-c"),
    LOOP(46, "c-gwcg-c"),
    LOOP(47, "c-cgbgwc-g"),
#define NET(number, rest, bound, steps)                                                                      \
  {"G" #number "-" rest, bound, bound, steps}, { "G" #number "-bf16-" rest, 8 * (bound), 8 * (bound), steps }
    NET(50, "conv-bn", 1e-3, 0),
    NET(51, "conv-pool", 1e-3, 0),
    NET(52, "conv-bn-dropout", 1e-3, 0),
    NET(53, "depthwise", 2e-3, 0),
    NET(54, "loop-gradient", 1e-3, 0),
    NET(55, "two-loop-variables", 1e-3, 0),
    NET(56, "split-chains", 1e-3, 2),
    NET(57, "branches", 1e-3, 0),
    NET(59, "function-call", 1e-3, 0),
    NET(60, "train-in-loop", 1e-3, 0)};
enum { ROWS = sizeof rows / sizeof *rows };

static char directory[1024];

static double *fetched(const row *r, const json_t *graph, const json_t *rewrite, const char *fetch,
                       int64_t *count) {
  static graph_run run;
  run = (graph_run){
      .nodes = json_object_get(graph, "nodes"), .rewrite = rewrite, .steps = r->steps ? r->steps : 64};
  mix_tensor *value = value_of(&run, fetch, 0);
  *count = mix_shape_size(mix_tensor_shape(value));
  double *numbers = calloc((size_t)*count, sizeof *numbers);
  assert_int_equal(mix_tensor_read(value, MIX_FLOAT64, numbers, *count), MIX_OK);
  return numbers;
}

/* Returns the largest number. */
static double compare(const row *r, const json_t *graph, const json_t *rewrite, const char *fetch) {
  int64_t count, after_count;
  double *before = fetched(r, graph, NULL, fetch, &count),
         *after = fetched(r, graph, rewrite, fetch, &after_count);
  double largest = 0;
  assert_int_equal(after_count, count);
  for (int64_t i = 0; i < count; i++) {
    assert_true(isfinite(before[i]));
    largest = fmax(largest, fabs(before[i]));
    if (!(fabs(after[i] - before[i]) <= r->absolute + r->relative * fabs(before[i])))
      fail_msg("%s, element %lld: %.9g, before the rewrite %.9g", fetch, (long long)i, after[i], before[i]);
  }
  free(before);
  free(after);
  return largest;
}

/* G60 fetches the counter of its loop. Its step has these numbers. */
static const json_t *fetches_of(const row *r, const json_t *graph) {
  static json_t *step;
  if (strncmp(r->name, "G60", 3)) return json_object_get(graph, "fetch");
  if (!step)
    step = json_pack("[ss]", "loop/loss", "loop/gradients/loop/matmul_grad/tuple/control_dependency_1");
  return step;
}

static void run_row(void **state) {
  const row *r = *state;
  char path[2048];
  snprintf(path, sizeof path, "%s/%s.json", directory, r->name);
  json_t *file = json_load_file(path, 0, NULL);
  assert_non_null(file);
  const json_t *graph = json_object_get(file, "graph"), *fetches = fetches_of(r, graph);
  MIX_SCOPE {
    cli_rewrite_case *item = read_rewrite_file(path);
    if (!item) fail_msg("%s", mix_error_message());
    char *text = cli_rewrite_text(item, mix_amp_rewrite(item->graph, &item->options));
    assert_non_null(text);
    json_t *rewrite = json_loads(text, 0, NULL);
    assert_true(json_array_size(json_object_get(rewrite, "casts")) > 0);
    double largest = 0;
    for (size_t i = 0; i < json_array_size(fetches); i++)
      largest = fmax(largest, compare(r, graph, rewrite, json_string_value(json_array_get(fetches, i))));
    assert_true(largest > 0.01); /* numbers, not zeros */
    json_decref(rewrite);
    mix_free(text);
  }
  json_decref(file);
}

static void no_reference_graphs(void **state) {
  (void)state;
  SKIP("MIXTAPE_REFERENCE_DIR is not set");
}

int main(void) {
  static struct CMUnitTest tests[ROWS];
  const char *reference = getenv("MIXTAPE_REFERENCE_DIR");
  size_t n = 0;
  if (reference && *reference) {
    snprintf(directory, sizeof directory, "%s/rewrite", reference);
    for (; n < ROWS; n++)
      tests[n] = (struct CMUnitTest){rows[n].name, run_row, NULL, NULL, (void *)(uintptr_t)&rows[n]};
  } else {
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_reference_graphs);
  }
  return _cmocka_run_group_tests("rewrite_numbers", tests, n, NULL, NULL);
}
