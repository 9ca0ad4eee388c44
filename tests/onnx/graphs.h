/* Files of ONNX for tests of the reader, written field by field. */
#ifndef TESTS_ONNX_GRAPHS_H
#define TESTS_ONNX_GRAPHS_H

#include "formats/protobuf.h"
#include "onnx/onnx.h"
#include <stdint.h>
#include <string.h>

/* A graph on its way. */
typedef struct graph {
  mix_message message;
} graph;

/* ---- attributes of the next node ---- */

static mix_message graph_attributes;

static inline void attribute(const char *name, int type, mix_message *inner) {
  mix_message_text(inner, MIX_ONNX_ATTRIBUTE_NAME, name);
  mix_message_integer(inner, MIX_ONNX_ATTRIBUTE_TYPE, type);
  mix_message_message(&graph_attributes, MIX_ONNX_NODE_ATTRIBUTE, inner);
}
static inline void set_int(const char *name, int64_t value) {
  mix_message inner = {0};
  mix_message_integer(&inner, MIX_ONNX_ATTRIBUTE_I, value);
  attribute(name, MIX_ONNX_IS_INT, &inner);
}
static inline void set_float(const char *name, float value) {
  mix_message inner = {0};
  mix_message_float(&inner, MIX_ONNX_ATTRIBUTE_F, value);
  attribute(name, MIX_ONNX_IS_FLOAT, &inner);
}
static inline void set_string(const char *name, const char *value) {
  mix_message inner = {0};
  mix_message_text(&inner, MIX_ONNX_ATTRIBUTE_S, value);
  attribute(name, MIX_ONNX_IS_STRING, &inner);
}
static inline void set_ints(const char *name, int count, const int64_t *values) {
  mix_message inner = {0};
  for (int i = 0; i < count; i++) mix_message_number(&inner, MIX_ONNX_ATTRIBUTE_INTS, values[i]);
  attribute(name, MIX_ONNX_IS_INTS, &inner);
}
#define SET_INTS(name, ...)                                                                                  \
  set_ints(name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})

/* ---- parts of a graph ---- */

/* Words with blanks between, each a field. */
static inline void add_words(mix_message *message, int field, const char *words) {
  while (*words) {
    const size_t length = strcspn(words, " ");
    mix_message_bytes(message, field, words, *words == '_' && length == 1 ? 0 : length);
    words += length + (words[length] == ' ');
  }
}

/* "_" is an input or output that is not there. */
static inline void add_node(graph *g, const char *op, const char *inputs, const char *outputs) {
  mix_message node = {0};
  add_words(&node, MIX_ONNX_NODE_INPUT, inputs);
  add_words(&node, MIX_ONNX_NODE_OUTPUT, outputs);
  mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, op);
  if (graph_attributes.size) mix_message_append(&node, &graph_attributes);
  graph_attributes = (mix_message){0};
  mix_message_message(&g->message, MIX_ONNX_GRAPH_NODE, &node);
}

static inline mix_message tensor_message(const char *name, mix_dtype dtype, int rank, const int64_t *dims,
                                         const void *data) {
  mix_message tensor = {0};
  size_t size = mix_dtype_size(dtype);
  for (int i = 0; i < rank; i++) {
    mix_message_number(&tensor, MIX_ONNX_TENSOR_DIMS, dims[i]);
    size *= (size_t)dims[i];
  }
  mix_message_integer(&tensor, MIX_ONNX_TENSOR_TYPE, mix_onnx_type_of(dtype));
  mix_message_text(&tensor, MIX_ONNX_TENSOR_NAME, name);
  if (data) mix_message_bytes(&tensor, MIX_ONNX_TENSOR_RAW, data, size);
  return tensor;
}
static inline void add_tensor(graph *g, const char *name, mix_dtype dtype, int rank, const int64_t *dims,
                              const void *data) {
  mix_message tensor = tensor_message(name, dtype, rank, dims, data);
  mix_message_message(&g->message, MIX_ONNX_GRAPH_INITIALIZER, &tensor);
}
#define DIMS(...)                                                                                            \
  (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
static inline void add_ints(graph *g, const char *name, int count, const int64_t *values) {
  const int64_t dims[] = {count};
  add_tensor(g, name, MIX_INT64, 1, dims, values);
}
#define ADD_INTS(g, name, ...)                                                                               \
  add_ints(g, name, (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]){__VA_ARGS__})
/* Floats 1/8, 2/8, ... that repeat after 7, so that products of them are exact. */
static inline void add_floats(graph *g, const char *name, int rank, const int64_t *dims) {
  static float values[4096];
  for (int i = 0; i < 4096; i++) values[i] = (float)(i % 7 - 3) / 8;
  add_tensor(g, name, MIX_FLOAT32, rank, dims, values);
}

/* A dimension of -1 has the name N. */
static inline void add_value(graph *g, int field, const char *name, mix_dtype dtype, int rank,
                             const int64_t *dims) {
  mix_message info = {0}, type = {0}, tensor = {0}, shape = {0};
  for (int i = 0; i < rank; i++) {
    mix_message dim = {0};
    if (dims[i] < 0)
      mix_message_text(&dim, MIX_ONNX_DIM_PARAM, "N");
    else
      mix_message_number(&dim, MIX_ONNX_DIM_VALUE, dims[i]);
    mix_message_message(&shape, MIX_ONNX_SHAPE_DIM, &dim);
  }
  mix_message_integer(&tensor, MIX_ONNX_TENSOR_TYPE_ELEMENT, mix_onnx_type_of(dtype));
  mix_message_message(&tensor, MIX_ONNX_TENSOR_TYPE_SHAPE, &shape);
  mix_message_message(&type, MIX_ONNX_TYPE_TENSOR, &tensor);
  mix_message_text(&info, MIX_ONNX_VALUE_NAME, name);
  mix_message_message(&info, MIX_ONNX_VALUE_TYPE, &type);
  mix_message_message(&g->message, field, &info);
}
static inline void add_input(graph *g, const char *name, mix_dtype dtype, int rank, const int64_t *dims) {
  add_value(g, MIX_ONNX_GRAPH_INPUT, name, dtype, rank, dims);
}
static inline void add_output(graph *g, const char *name) {
  add_value(g, MIX_ONNX_GRAPH_OUTPUT, name, MIX_FLOAT32, DIMS(-1));
}

/* The model of the graph, which is freed; free the result. */
static inline mix_message model_of(graph *g, int64_t opset) {
  mix_message model = {0}, version = {0};
  mix_message_integer(&model, MIX_ONNX_MODEL_IR_VERSION, 8);
  mix_message_text(&model, MIX_ONNX_MODEL_PRODUCER, "test");
  mix_message_message(&model, MIX_ONNX_MODEL_GRAPH, &g->message);
  mix_message_text(&version, MIX_ONNX_OPSET_DOMAIN, "");
  mix_message_integer(&version, MIX_ONNX_OPSET_VERSION, opset);
  mix_message_message(&model, MIX_ONNX_MODEL_OPSET, &version);
  return model;
}

/* ---- graphs that the test of values and the fuzz target share ---- */

/* x (N, 4): a Gemm, Relu, MatMul with a bias by Add, Softmax. */
static inline mix_message graph_mlp(void) {
  graph g = {{0}};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_floats(&g, "fc1.weight", DIMS(5, 4));
  add_floats(&g, "fc1.bias", DIMS(5));
  add_floats(&g, "fc2.weight", DIMS(5, 3));
  add_floats(&g, "fc2.bias", DIMS(3));
  set_int("transB", 1);
  set_float("alpha", 2);
  add_node(&g, "Gemm", "x fc1.weight fc1.bias", "a");
  add_node(&g, "Relu", "a", "b");
  add_node(&g, "MatMul", "b fc2.weight", "c");
  add_node(&g, "Add", "fc2.bias c", "d");
  set_int("axis", -1);
  add_node(&g, "Softmax", "d", "y");
  add_output(&g, "y");
  return model_of(&g, 17);
}

/* x (N, 2, 6, 6): convolutions with pads, depthwise, batch normalisation, pooling, a Reshape by Shape. */
static inline mix_message graph_cnn(void) {
  graph g = {{0}};
  static const float ones[] = {1, 2, 0.5F, 1};
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 2, 6, 6));
  add_floats(&g, "conv.weight", DIMS(4, 2, 3, 3));
  add_floats(&g, "conv.bias", DIMS(4));
  add_floats(&g, "wise.weight", DIMS(4, 1, 2, 2));
  add_tensor(&g, "bn.weight", MIX_FLOAT32, DIMS(4), ones);
  add_floats(&g, "bn.bias", DIMS(4));
  add_floats(&g, "bn.mean", DIMS(4));
  add_tensor(&g, "bn.var", MIX_FLOAT32, DIMS(4), ones);
  ADD_INTS(&g, "zero", 0);
  ADD_INTS(&g, "rest", -1);
  SET_INTS("pads", 1, 1, 1, 1);
  SET_INTS("strides", 2, 2);
  add_node(&g, "Conv", "x conv.weight conv.bias", "a");
  set_int("group", 4);
  add_node(&g, "Conv", "a wise.weight", "b");
  set_float("epsilon", 0.5F);
  add_node(&g, "BatchNormalization", "b bn.weight bn.bias bn.mean bn.var", "c");
  SET_INTS("kernel_shape", 2, 2);
  SET_INTS("pads", 1, 1, 0, 0);
  add_node(&g, "MaxPool", "c", "d");
  add_node(&g, "Shape", "d", "e");
  set_int("axis", 0);
  add_node(&g, "Gather", "e zero", "f");
  set_int("axis", 0);
  add_node(&g, "Concat", "f rest", "s");
  add_node(&g, "Reshape", "d s", "y");
  add_output(&g, "y");
  return model_of(&g, 17);
}

/* ids (N, 3): words and positions that are trained, a normalisation, an LSTM, the table again as a product.
 */
static inline mix_message graph_words(void) {
  graph g = {{0}};
  add_input(&g, "ids", MIX_INT64, DIMS(-1, 3));
  add_floats(&g, "words", DIMS(6, 4));
  add_floats(&g, "positions", DIMS(1, 3, 4));
  add_floats(&g, "norm.weight", DIMS(4));
  add_floats(&g, "norm.bias", DIMS(4));
  add_floats(&g, "w", DIMS(1, 16, 4));
  add_floats(&g, "r", DIMS(1, 16, 4));
  add_floats(&g, "b", DIMS(1, 32));
  ADD_INTS(&g, "one", 1);
  add_node(&g, "Gather", "words ids", "a");
  add_node(&g, "Add", "a positions", "c");
  add_node(&g, "LayerNormalization", "c norm.weight norm.bias", "d");
  SET_INTS("perm", 1, 0, 2);
  add_node(&g, "Transpose", "d", "e");
  set_int("hidden_size", 4);
  add_node(&g, "LSTM", "e w r b", "f");
  add_node(&g, "Squeeze", "f one", "s");
  SET_INTS("perm", 1, 0, 2);
  add_node(&g, "Transpose", "s", "h");
  SET_INTS("perm", 1, 0);
  add_node(&g, "Transpose", "words", "t");
  add_node(&g, "MatMul", "h t", "y");
  add_output(&g, "y");
  return model_of(&g, 17);
}
/* ---- graphs in nodes, and functions ---- */

static inline void set_graph(const char *name, graph *body) {
  mix_message inner = {0};
  mix_message_message(&inner, MIX_ONNX_ATTRIBUTE_G, &body->message);
  attribute(name, MIX_ONNX_IS_GRAPH, &inner);
}

/* A node of a function of the model's own, in the domain "own". */
static inline void add_call(graph *g, const char *function, const char *inputs, const char *outputs) {
  mix_message node = {0};
  add_words(&node, MIX_ONNX_NODE_INPUT, inputs);
  add_words(&node, MIX_ONNX_NODE_OUTPUT, outputs);
  mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, function);
  mix_message_text(&node, MIX_ONNX_NODE_DOMAIN, "own");
  mix_message_message(&g->message, MIX_ONNX_GRAPH_NODE, &node);
}

/* The function `name` of a to b: a node of `op` on a and a, or a call of that function by `calls`, twice. */
static inline void add_function(mix_message *model, const char *name, const char *op, const char *calls) {
  mix_message function = {0}, opset = {0};
  mix_message_text(&function, MIX_ONNX_FUNCTION_NAME, name);
  mix_message_text(&function, MIX_ONNX_FUNCTION_INPUT, "a");
  mix_message_text(&function, MIX_ONNX_FUNCTION_OUTPUT, "b");
  mix_message_text(&function, MIX_ONNX_FUNCTION_DOMAIN, "own");
  for (int i = 0; i < 2; i++) {
    mix_message node = {0};
    const char *from = i ? "t" : "a";
    add_words(&node, MIX_ONNX_NODE_INPUT, from);
    if (op) add_words(&node, MIX_ONNX_NODE_INPUT, from);
    add_words(&node, MIX_ONNX_NODE_OUTPUT, i ? "b" : "t");
    mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, op ? op : calls);
    if (!op) mix_message_text(&node, MIX_ONNX_NODE_DOMAIN, "own");
    mix_message_message(&function, MIX_ONNX_FUNCTION_NODE, &node);
  }
  for (int i = 0; i < 2; i++) {
    mix_message_text(&opset, MIX_ONNX_OPSET_DOMAIN, i ? "own" : "");
    mix_message_integer(&opset, MIX_ONNX_OPSET_VERSION, i ? 1 : 17);
    mix_message_message(&function, MIX_ONNX_FUNCTION_OPSET, &opset);
    opset = (mix_message){0};
  }
  mix_message_message(model, MIX_ONNX_MODEL_FUNCTIONS, &function);
}

static inline mix_message model_with_functions(graph *g) {
  mix_message model = model_of(g, 17), opset = {0};
  mix_message_text(&opset, MIX_ONNX_OPSET_DOMAIN, "own");
  mix_message_integer(&opset, MIX_ONNX_OPSET_VERSION, 1);
  mix_message_message(&model, MIX_ONNX_MODEL_OPSET, &opset);
  return model;
}

/* The body of a Loop: s by w, while `again` says so. */
static inline graph loop_body(const char *again) {
  graph body = {{0}};
  add_value(&body, MIX_ONNX_GRAPH_INPUT, "step", MIX_INT64, 0, NULL);
  add_value(&body, MIX_ONNX_GRAPH_INPUT, "go", MIX_BOOL, 0, NULL);
  add_input(&body, "s", MIX_FLOAT32, DIMS(-1, 4));
  add_node(&body, "Identity", again, "more");
  add_node(&body, "MatMul", "s w", "next");
  add_value(&body, MIX_ONNX_GRAPH_OUTPUT, "more", MIX_BOOL, 0, NULL);
  add_output(&body, "next");
  return body;
}

/* x (N, 4): three times by w in a Loop, the branch of an If that adds w's first row, four times that by a
 * function. */
static inline mix_message graph_steps(void) {
  graph g = {{0}}, body = loop_body("go"), yes = {{0}}, no = {{0}};
  const bool on = true;
  add_input(&g, "x", MIX_FLOAT32, DIMS(-1, 4));
  add_floats(&g, "w", DIMS(4, 4));
  add_floats(&g, "v", DIMS(4));
  add_tensor(&g, "times", MIX_INT64, 0, NULL, &(int64_t){3});
  add_tensor(&g, "on", MIX_BOOL, 0, NULL, &on);
  set_graph("body", &body);
  add_node(&g, "Loop", "times on x", "looped");
  add_node(&yes, "Add", "looped v", "added");
  add_output(&yes, "added");
  add_node(&no, "Sub", "looped v", "taken");
  add_output(&no, "taken");
  set_graph("then_branch", &yes);
  set_graph("else_branch", &no);
  add_node(&g, "If", "on", "chosen");
  add_call(&g, "twice", "chosen", "y");
  add_output(&g, "y");
  mix_message model = model_with_functions(&g);
  add_function(&model, "twice", "Add", NULL);
  return model;
}

#endif
