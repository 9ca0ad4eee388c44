/* Names of graphs in nodes and of functions as they are read: none is another's, and there are not too many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "onnx/read_bytes.h"
#include <mixtape/mixtape.h>
#include <stdio.h>

static void has_too_many(mix_message bytes) {
  assert_null(read_bytes(bytes));
  assert_int_equal(mix_error(), MIX_UNSUPPORTED);
  assert_non_null(strstr(mix_error_message(), "together more than 131072 nodes and names"));
  mix_error_clear();
}

static graph empty_body(void) {
  graph body = {{0}};
  add_value(&body, MIX_ONNX_GRAPH_INPUT, "step", MIX_INT64, 0, NULL);
  add_value(&body, MIX_ONNX_GRAPH_INPUT, "go", MIX_BOOL, 0, NULL);
  add_input(&body, "s", MIX_FLOAT32, DIMS(-1, 4));
  add_value(&body, MIX_ONNX_GRAPH_OUTPUT, "go", MIX_BOOL, 0, NULL);
  return body;
}

/* x (N, 4), so many times through the body. */
static graph loop_over(graph *body, int64_t times) {
  graph g = {{0}};
  const bool on = true;
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_tensor(&g, "times", MIX_INT64, 0, NULL, &times);
  add_tensor(&g, "on", MIX_BOOL, 0, NULL, &on);
  add_output(&g, "y");
  set_graph("body", body);
  return g;
}

/* Names that are made for a body look like those of the graph here, whichever number they get: s = |s| + 12
 * |x| in each of two steps, of small integers. */
static void made_names_are_no_names_of_the_graph(void **state) {
  (void)state;
  MIX_SCOPE {
    char name[16], all[256] = "t";
    graph body = empty_body();
    for (int i = 1; i <= 12; i++) {
      snprintf(name, sizeof name, " t#%d", i);
      strcat(all, name);
    }
    add_node(&body, "Abs", "s", "t");
    add_node(&body, "Sum", all, "next");
    add_output(&body, "next");
    graph g = loop_over(&body, 2), whole = {{0}};
    for (int i = 1; i <= 12; i++) {
      mix_message node = {0};
      snprintf(name, sizeof name, "t#%d", i);
      mix_message_text(&node, MIX_ONNX_NODE_INPUT, "x");
      mix_message_text(&node, MIX_ONNX_NODE_OUTPUT, name);
      mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, "Abs");
      mix_message_message(&whole.message, MIX_ONNX_GRAPH_NODE, &node);
    }
    mix_message_append(&whole.message, &g.message);
    add_node(&whole, "Loop", "times on x", "y");
    mix_model *model = read_bytes(model_of(&whole, 17));
    assert_non_null(model);
    const float x[] = {-1, 2, -3, 4};
    float y[4];
    mix_tensor *result = mix_model_call(model, mix_tensor_from(x, MIX_FLOAT32, MIX_SHAPE(1, 4)));
    assert_int_equal(mix_tensor_read(result, MIX_FLOAT32, y, 4), MIX_OK);
    for (int i = 0; i < 4; i++) assert_float_equal(y[i], 25 * (x[i] < 0 ? -x[i] : x[i]), 0);
  }
  assert_int_equal(mix_error(), MIX_OK);
}

/* Names of letters of two bytes, of which one lies across each place where a name may be cut. */
static void long_names_are_cut_between_letters(void **state) {
  (void)state;
  for (int odd = 0; odd < 2; odd++)
    MIX_SCOPE {
      char name[512] = "";
      graph body = empty_body();
      for (int i = 0; i < 200; i++) strcat(name, i || !odd ? "\xc3\xa9" : "a");
      add_node(&body, "Relu", "s", name);
      add_output(&body, name);
      graph g = loop_over(&body, 2);
      add_node(&g, "Loop", "times on x", "y");
      assert_non_null(read_bytes(model_of(&g, 17)));
    }
  assert_int_equal(mix_error(), MIX_OK);
}

/* ---- what grows by the product of two parts of a file ---- */

enum { CALLS = 500, NAMES = 1000, STEPS = 500 };

/* y by a function in the domain "own" of a and of `inputs` others to b, one call after the other. */
static mix_message calls_of(mix_message *node, int inputs) {
  graph g = {{0}};
  char from[16], to[16];
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  for (int i = 0; i < CALLS; i++) {
    snprintf(from, sizeof from, i ? "t%d" : "x", i);
    snprintf(to, sizeof to, i < CALLS - 1 ? "t%d" : "y", i + 1);
    add_call(&g, "f", from, to);
  }
  add_output(&g, "y");
  mix_message model = model_with_functions(&g), function = {0}, opset = {0};
  mix_message_text(&function, MIX_ONNX_FUNCTION_NAME, "f");
  mix_message_text(&function, MIX_ONNX_FUNCTION_DOMAIN, "own");
  mix_message_text(&function, MIX_ONNX_FUNCTION_INPUT, "a");
  for (int i = 0; i < inputs; i++) {
    snprintf(from, sizeof from, "i%d", i);
    mix_message_text(&function, MIX_ONNX_FUNCTION_INPUT, from);
  }
  mix_message_text(&function, MIX_ONNX_FUNCTION_OUTPUT, "b");
  mix_message_append(&function, node);
  mix_message_text(&opset, MIX_ONNX_OPSET_DOMAIN, "");
  mix_message_integer(&opset, MIX_ONNX_OPSET_VERSION, 17);
  mix_message_message(&function, MIX_ONNX_FUNCTION_OPSET, &opset);
  mix_message_message(&model, MIX_ONNX_MODEL_FUNCTIONS, &function);
  return model;
}

/* The node of a function. */
static mix_message node_of(const char *op, const char *inputs, const char *outputs) {
  mix_message node = {0}, field = {0};
  add_words(&node, MIX_ONNX_NODE_INPUT, inputs);
  add_words(&node, MIX_ONNX_NODE_OUTPUT, outputs);
  mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, op);
  if (graph_attributes.size) mix_message_append(&node, &graph_attributes);
  graph_attributes = (mix_message){0};
  mix_message_message(&field, MIX_ONNX_FUNCTION_NODE, &node);
  return field;
}

static void names_of_calls_are_counted(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_message node = node_of("Relu", "a", "b");
    has_too_many(calls_of(&node, NAMES));
  }
  MIX_SCOPE { /* the same calls of few names are read */
    mix_message node = node_of("Relu", "a", "b");
    assert_non_null(read_bytes(calls_of(&node, 1)));
  }
  MIX_SCOPE {
    char name[16];
    graph yes = {{0}}, no = {{0}};
    add_node(&yes, "Relu", "a", "p");
    add_output(&yes, "p");
    add_node(&no, "Abs", "a", "p");
    add_output(&no, "p");
    for (int i = 0; i < NAMES; i++) {
      snprintf(name, sizeof name, "w%d", i);
      add_floats(&no, name, DIMS(1));
    }
    set_graph("then_branch", &yes);
    set_graph("else_branch", &no);
    mix_message node = node_of("If", "a", "b");
    has_too_many(calls_of(&node, 0));
  }
  assert_int_equal(mix_error(), MIX_OK);
}

static void rows_of_steps_are_counted(void **state) {
  (void)state;
  MIX_SCOPE {
    graph body = empty_body();
    add_node(&body, "Relu", "s", "next");
    for (int i = 0; i < NAMES; i++) add_output(&body, "next");
    graph g = loop_over(&body, STEPS);
    add_node(&g, "Loop", "times on x", "y");
    has_too_many(model_of(&g, 17));
  }
  assert_int_equal(mix_error(), MIX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(made_names_are_no_names_of_the_graph),
      cmocka_unit_test(long_names_are_cut_between_letters),
      cmocka_unit_test(names_of_calls_are_counted),
      cmocka_unit_test(rows_of_steps_are_counted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
