/* Nodes: dtypes against signatures, names in messages, what evaluation releases, and graphs deeper than any
 * stack. */
/* Holds docs/NUMERICS.md: Terms. */
#include "../compile/support.h"

#include "base/alloc.h"
#include "graph/capture.h"
#include <pthread.h>

static void mixing_dtypes_names_both_operands_and_the_op(void **state) {
  (void)state;
  assert_null(mix_add(vec(MIX_FLOAT32, 1, 2), vec(MIX_FLOAT16, 1, 2)));
  expect_error(MIX_TYPE_ERROR, "add:", "float32 (2)", "float16 (2)", "mix_cast");
  assert_null(mix_matmul(mix_fill(MIX_SHAPE(2, 3), 1, MIX_BFLOAT16),
                         mix_fill(MIX_SHAPE(3, 4), 1, MIX_FLOAT64), false, false));
  expect_error(MIX_TYPE_ERROR, "matmul:", "bfloat16 (2, 3)", "float64 (3, 4)");
  assert_null(mix_select(mix_scalar(1, MIX_BOOL), scalar(1), mix_scalar(1, MIX_INT32)));
  expect_error(MIX_TYPE_ERROR, "select:", "bool ()", "float32 ()", "int32 ()");
}

static void the_message_names_the_layer(void **state) {
  (void)state;
  const char *former = mix_graph_scope_set(mix_intern("model/dense_1"));
  mix_add(scalar(1), mix_scalar(1, MIX_INT8));
  expect_error(MIX_TYPE_ERROR, "add (in layer model/dense_1):", "float32 ()", "int8 ()");
  mix_graph_scope_set(former);
  mix_add(scalar(1), mix_scalar(1, MIX_INT8));
  assert_null(strstr(mix_error_message(), "layer"));
  mix_error_clear();
}

static void operands_have_the_dtypes_of_the_signature(void **state) {
  (void)state;
  assert_null(mix_exp(mix_scalar(1, MIX_INT32)));
  expect_error(MIX_TYPE_ERROR, "exp:", "operand 0 is int32", "float");
  assert_null(mix_square(mix_scalar(1, MIX_BOOL)));
  expect_error(MIX_TYPE_ERROR, "square:", "operand 0 is bool");
  assert_null(mix_select(scalar(1), scalar(1), scalar(1)));
  expect_error(MIX_TYPE_ERROR, "select:", "operand 0 is float32", "expected bool");
  assert_null(mix_logical_and(mix_scalar(1, MIX_BOOL), scalar(1)));
  expect_error(MIX_TYPE_ERROR, "logical_and:", "operand 1 is float32");
  mix_tensor *labels = vec(MIX_INT8, 0, 1);
  assert_null(mix_gather(scalar(1), labels, 0));
  assert_int_not_equal(mix_error(), MIX_OK);
  mix_error_clear();
  assert_int_equal(mix_tensor_dtype(mix_less(scalar(1), scalar(2))), MIX_BOOL);
  assert_int_equal(mix_tensor_dtype(mix_argmax(vec(MIX_FLOAT16, 1, 2), 0)), MIX_INT64);
  no_error();
}

/* A node with too few operands is a bug of the library. It must still be an error, never a read past the
 * end. */
static void too_few_or_too_many_operands_are_an_internal_error(void **state) {
  (void)state;
  for (const mix_op *const *op = mix_all_ops; *op; op++) {
    const char *arrow = strstr((*op)->signature, "->");
    bool many = memchr((*op)->signature, '*', (size_t)(arrow - (*op)->signature)) != NULL;
    int operands = 0;
    for (const char *p = (*op)->signature; p < arrow; p++) operands += *p != ',' && *p != '*';
    if (many || ((*op)->flags & MIX_OP_SOURCE)) continue;
    mix_node *x = mix_node_placeholder(MIX_FLOAT32, MIX_SHAPE(2, 2), true),
             *flag = mix_node_placeholder(MIX_BOOL, MIX_SHAPE(2, 2), true),
             *index = mix_node_placeholder(MIX_INT32, MIX_SHAPE(2, 2), true),
             *state_64 = mix_node_placeholder(MIX_INT64, MIX_SHAPE(2, 2), true);
    mix_edge edges[8];
    int e = 0;
    for (const char *p = (*op)->signature; p < arrow; p++)
      if (*p != ',')
        edges[e++] = (mix_edge){*p == 'b' ? flag : *p == 'i' ? index : *p == 'l' ? state_64 : x, 0};
    edges[e] = (mix_edge){x, 0};
    for (int wrong = 0; wrong < 2; wrong++) {
      int count = wrong ? operands + 1 : operands - 1;
      if (count < 0) continue;
      assert_null(mix_node_new(*op, NULL, count, edges));
      if (mix_error() != MIX_INTERNAL_ERROR && mix_error() != MIX_TYPE_ERROR)
        fail_msg("%s: %s", (*op)->name, mix_error_message());
      mix_error_clear();
    }
    mix_release(x), mix_release(flag), mix_release(index), mix_release(state_64);
  }
}

static void null_gives_null_and_leaves_the_first_error(void **state) {
  (void)state;
  assert_null(mix_add(scalar(1), NULL));
  expect_error(MIX_TYPE_ERROR, "add:", "operand 1 is NULL");
  assert_null(mix_exp((mix_tensor *)mix_list_new(0, NULL)));
  expect_error(MIX_TYPE_ERROR, "exp:");
  mix_tensor *bad = mix_add(scalar(1), mix_scalar(1, MIX_FLOAT64));
  mix_multiply(mix_exp(bad), scalar(3));
  expect_error(MIX_TYPE_ERROR, "add:", "float64 ()");
}

static void shapes_that_overflow_are_refused(void **state) {
  (void)state;
  mix_tensor *big = mix_fill(MIX_SHAPE(1 << 20, 1 << 20), 0, MIX_INT8);
  no_error();
  assert_null(mix_add(mix_reshape(big, MIX_SHAPE(1 << 20, 1 << 20, 1, 1)),
                      mix_fill(MIX_SHAPE(1 << 20, 1 << 20), 0, MIX_INT8)));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  mix_error_clear();
}

static void nodes_carry_scope_capture_and_order(void **state) {
  (void)state;
  const char *path = mix_intern("model/block"), *former = mix_graph_scope_set(path);
  mix_tensor *a = mix_exp(scalar(1));
  assert_ptr_equal(mix_graph_scope_set(former), path);
  mix_tensor *b = mix_exp(a);
  assert_ptr_equal(a->node->scope, path);
  assert_null(b->node->scope);
  assert_true(a->node->sequence < b->node->sequence);
  mix_capture capture = {0}, *outer = mix_capture_set(&capture);
  mix_tensor *c = mix_exp(scalar(1));
  mix_capture_set(outer);
  assert_ptr_equal(c->node->capture, &capture);
  assert_null(b->node->capture);
}

static void symbolic_is_inherited(void **state) {
  (void)state;
  mix_node *input = mix_node_placeholder(MIX_FLOAT32, MIX_SHAPE(MIX_UNKNOWN, 3), true);
  mix_tensor *x = mix_tensor_of(input, 0), *y = mix_add(mix_exp(x), vec(MIX_FLOAT32, 1, 2, 3));
  mix_release(input);
  assert_true(mix_tensor_is_symbolic(y));
  assert_int_equal(mix_tensor_shape(y).dims[0], MIX_UNKNOWN);
  assert_false(mix_tensor_is_symbolic(scalar(1)));
}

static void evaluation_detaches_unless_a_tape_recorded(void **state) {
  (void)state;
  mix_tensor *x = vec(MIX_FLOAT32, 1, 2), *y = mix_square(x), *z = mix_square(y);
  has_values(z, 1, 16);
  assert_int_equal(z->node->input_count, 0);
  assert_int_equal(y->node->input_count, 1); /* not evaluated itself, value not kept */
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *u = mix_square(x);
  has_values(u, 1, 4);
  assert_int_equal(u->node->input_count, 1);
  has_values(mix_list_get(mix_tape_gradient(tape, u, mix_list_of(x)), 0), 2, 4);
  assert_int_equal(u->node->input_count, 0); /* the tape released it */
}

static void *deep_graph(void *unused) {
  (void)unused;
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x = mix_retain(vec(MIX_FLOAT64, 0, 1));
  for (int i = 0; i < 200000; i++) {
    mix_scope *inner = mix_scope_begin();
    mix_tensor *next = mix_retain(i % 2 ? mix_negative(x) : mix_abs(x));
    mix_release(x);
    x = next;
    mix_scope_end(inner);
  }
  mix_release(x); /* the only reference to 200,000 nodes */
  x = mix_retain(vec(MIX_FLOAT64, 0, 1));
  mix_tensor *one = mix_scalar(1, MIX_FLOAT64);
  for (int i = 0; i < 5000; i++) {
    mix_tensor *next = mix_retain(mix_add(x, one));
    mix_release(x);
    x = next;
  }
  double got[2] = {0};
  mix_tensor_read(x, MIX_FLOAT64, got, 2);
  mix_release(x);
  mix_scope_end(scope);
  static bool good;
  good = mix_error() == MIX_OK && got[0] == 5000 && got[1] == 5001;
  return good ? &good : NULL;
}

/* Walks and releases are iterative: the thread's stack holds at most a few thousand frames. */
static void deep_graphs_need_no_stack(void **state) {
  (void)state;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 256 << 10), 0);
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, &attributes, deep_graph, NULL), 0);
  void *good;
  pthread_join(thread, &good);
  pthread_attr_destroy(&attributes);
  assert_non_null(good);
}

static void text_of_a_tensor_computes_nothing(void **state) {
  (void)state;
  char text[200];
  mix_tensor *x = vec(MIX_FLOAT16, 1, -2.5), *y = mix_abs(x);
  assert_string_equal(mix_tensor_text(x, text, sizeof text), "<tensor float16 (2) [1, -2.5]>");
  assert_string_equal(mix_tensor_text(y, text, sizeof text), "<tensor float16 (2) = abs, not computed>");
  has_values(y, 1, 2.5);
  assert_string_equal(mix_tensor_text(y, text, sizeof text), "<tensor float16 (2) [1, 2.5]>");
  assert_string_equal(mix_tensor_text(NULL, text, sizeof text), "<no tensor>");
}

/* Wrapped memory is given back once, by the last user of the tensor. A failed call does not take it. */
static int given_back;
static void give_back(void *data) {
  (void)data;
  given_back++;
}
static void wrapped_memory(void **state) {
  (void)state;
  float numbers[] = {1, 2, 3};
  bool failed = true;
  for (int64_t count = 0; failed && count < 100; count++) {
    given_back = 0;
    mix_scope *scope = mix_scope_begin();
    mix_inject_allocation_failure(count);
    mix_tensor *x = mix_tensor_wrap(numbers, MIX_FLOAT32, MIX_SHAPE(3), give_back);
    mix_inject_allocation_failure(-1);
    failed = x == NULL;
    assert_int_equal(mix_error(), failed ? MIX_MEMORY_ERROR : MIX_OK);
    mix_error_clear();
    if (x) assert_ptr_equal(mix_tensor_data(x), numbers);
    assert_int_equal(given_back, 0);
    mix_scope_end(scope);
    assert_int_equal(given_back, failed ? 0 : 1);
  }
  assert_false(failed);
  assert_null(mix_tensor_wrap(numbers, MIX_STRING, MIX_SHAPE(3), give_back));
  mix_error_clear();
  assert_int_equal(given_back, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(mixing_dtypes_names_both_operands_and_the_op),
      TEST(the_message_names_the_layer),
      TEST(operands_have_the_dtypes_of_the_signature),
      TEST(too_few_or_too_many_operands_are_an_internal_error),
      TEST(null_gives_null_and_leaves_the_first_error),
      TEST(shapes_that_overflow_are_refused),
      TEST(nodes_carry_scope_capture_and_order),
      TEST(symbolic_is_inherited),
      TEST(evaluation_detaches_unless_a_tape_recorded),
      TEST(deep_graphs_need_no_stack),
      TEST(text_of_a_tensor_computes_nothing),
      TEST(wrapped_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
