/* A model file of ONNX as it is read: nodes, initialisers, inputs and outputs, all in the scope of the call
 * that opened it. Texts are copies; numbers of tensors stay views into the file. */
#pragma once

#include "formats/protobuf_reader.h"
#include "onnx/onnx.h"
#include "tensor/memory.h"
#include <mixtape/tensor.h>

typedef struct mix_onnx_tensor {
  const char *name; /* "": of an attribute */
  mix_dtype dtype;  /* MIX_DTYPE_NONE: none that tensors have here, `type` says which */
  int64_t type;
  mix_shape shape;
  bool too_many_axes;
  mix_wire message; /* all of it; values are read when they are needed */
} mix_onnx_tensor;

typedef struct mix_onnx_graph mix_onnx_graph;

typedef struct mix_onnx_attribute {
  const char *name;
  const char *reference; /* in a function: the attribute of the call that it is; NULL: it has a value */
  int64_t type;          /* MIX_ONNX_IS_... */
  int64_t i;
  float f;
  const char *s; /* NULL: none, or not a text */
  int64_t *ints;
  float *floats;
  const char **strings;
  int count; /* of ints, floats or strings */
  mix_onnx_tensor *tensor;
  mix_onnx_graph *graph;
} mix_onnx_attribute;

typedef struct mix_onnx_node {
  const char *name, *op, *domain, *overload; /* "": none */
  const char **inputs, **outputs;            /* "": an optional one that is not there */
  mix_onnx_attribute *attributes;
  int input_count, output_count, attribute_count;
} mix_onnx_node;

typedef struct mix_onnx_value_info {
  const char *name;
  mix_dtype dtype;
  int64_t type;
  mix_shape shape; /* MIX_UNKNOWN where a dimension has a name or nothing */
  bool has_shape, too_many_axes;
} mix_onnx_value_info;

struct mix_onnx_graph {
  mix_onnx_node *nodes;
  mix_onnx_tensor *initializers;
  mix_onnx_value_info *inputs, *outputs;
  int node_count, initializer_count, input_count, output_count;
};

/* An operator that the model defines by nodes. */
typedef struct mix_onnx_function {
  const char *name, *domain, *overload;
  const char **inputs, **outputs;
  mix_onnx_attribute *defaults;
  mix_onnx_node *nodes;
  int64_t opset; /* of the default operators; 0: it names none */
  int input_count, output_count, default_count, node_count;
} mix_onnx_function;

/* A file of external data, which many tensors may lie in. */
typedef struct mix_onnx_beside {
  const char *path; /* NULL: none was read yet */
  mix_memory *memory;
  bool mapped;
} mix_onnx_beside;

typedef struct mix_onnx_file {
  const char *path, *producer;
  mix_memory *memory; /* retained by the scope */
  bool mapped, copies;
  mix_onnx_beside *beside; /* that was read last */
  int64_t opset;           /* of the default operators */
  mix_onnx_graph graph;
  mix_onnx_function *functions;
  int function_count;
} mix_onnx_file;

/* Reads a file. False with the error recorded: FormatError where it is damaged. */
bool mix_onnx_open(mix_onnx_file *file, const char *path, bool copies);
/* The same of bytes that outlive it. No external data is read then. */
bool mix_onnx_open_memory(mix_onnx_file *file, const char *name, const void *data, size_t size);

/* NULL: the node has none of that name. */
const mix_onnx_attribute *mix_onnx_find(const mix_onnx_node *node, const char *name);
int64_t mix_onnx_integer(const mix_onnx_node *node, const char *name, int64_t absent);
double mix_onnx_number(const mix_onnx_node *node, const char *name, double absent);
const char *mix_onnx_string(const mix_onnx_node *node, const char *name, const char *absent);

/* tensor_values.c: the tensor with its numbers, in the scope; large ones that are aligned lie in the mapping.
 * NULL with the error recorded. */
mix_tensor *mix_onnx_tensor_value(const mix_onnx_file *file, const mix_onnx_tensor *tensor);
