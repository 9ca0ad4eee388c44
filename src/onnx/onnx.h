/* The numbers of ONNX's protobuf messages that both ways need, and its element types. */
#pragma once

#include <mixtape/dtype.h>
#include <stdbool.h>

/* Fields, by message. */
enum {
  MIX_ONNX_MODEL_IR_VERSION = 1,
  MIX_ONNX_MODEL_PRODUCER = 2,
  MIX_ONNX_MODEL_PRODUCER_VERSION = 3,
  MIX_ONNX_MODEL_GRAPH = 7,
  MIX_ONNX_MODEL_OPSET = 8,
  MIX_ONNX_MODEL_FUNCTIONS = 25
};
enum { MIX_ONNX_OPSET_DOMAIN = 1, MIX_ONNX_OPSET_VERSION = 2 };
enum {
  MIX_ONNX_GRAPH_NODE = 1,
  MIX_ONNX_GRAPH_NAME = 2,
  MIX_ONNX_GRAPH_INITIALIZER = 5,
  MIX_ONNX_GRAPH_INPUT = 11,
  MIX_ONNX_GRAPH_OUTPUT = 12,
  MIX_ONNX_GRAPH_VALUE_INFO = 13,
  MIX_ONNX_GRAPH_SPARSE_INITIALIZER = 15
};
enum {
  MIX_ONNX_NODE_INPUT = 1,
  MIX_ONNX_NODE_OUTPUT = 2,
  MIX_ONNX_NODE_NAME = 3,
  MIX_ONNX_NODE_OP_TYPE = 4,
  MIX_ONNX_NODE_ATTRIBUTE = 5,
  MIX_ONNX_NODE_DOMAIN = 7
};
enum {
  MIX_ONNX_ATTRIBUTE_NAME = 1,
  MIX_ONNX_ATTRIBUTE_F = 2,
  MIX_ONNX_ATTRIBUTE_I = 3,
  MIX_ONNX_ATTRIBUTE_S = 4,
  MIX_ONNX_ATTRIBUTE_T = 5,
  MIX_ONNX_ATTRIBUTE_G = 6,
  MIX_ONNX_ATTRIBUTE_FLOATS = 7,
  MIX_ONNX_ATTRIBUTE_INTS = 8,
  MIX_ONNX_ATTRIBUTE_STRINGS = 9,
  MIX_ONNX_ATTRIBUTE_TYPE = 20
};
/* Of the field `type` of an attribute. */
enum {
  MIX_ONNX_IS_FLOAT = 1,
  MIX_ONNX_IS_INT = 2,
  MIX_ONNX_IS_STRING = 3,
  MIX_ONNX_IS_TENSOR = 4,
  MIX_ONNX_IS_GRAPH = 5,
  MIX_ONNX_IS_FLOATS = 6,
  MIX_ONNX_IS_INTS = 7,
  MIX_ONNX_IS_STRINGS = 8
};
enum {
  MIX_ONNX_TENSOR_DIMS = 1,
  MIX_ONNX_TENSOR_TYPE = 2,
  MIX_ONNX_TENSOR_FLOATS = 4,
  MIX_ONNX_TENSOR_INT32S = 5,
  MIX_ONNX_TENSOR_INT64S = 7,
  MIX_ONNX_TENSOR_NAME = 8,
  MIX_ONNX_TENSOR_RAW = 9,
  MIX_ONNX_TENSOR_DOUBLES = 10,
  MIX_ONNX_TENSOR_UINT64S = 11,
  MIX_ONNX_TENSOR_EXTERNAL = 13,
  MIX_ONNX_TENSOR_LOCATION = 14
};
enum { MIX_ONNX_ENTRY_KEY = 1, MIX_ONNX_ENTRY_VALUE = 2 }; /* of external data */
enum { MIX_ONNX_VALUE_NAME = 1, MIX_ONNX_VALUE_TYPE = 2 };
enum { MIX_ONNX_TYPE_TENSOR = 1 };
enum { MIX_ONNX_TENSOR_TYPE_ELEMENT = 1, MIX_ONNX_TENSOR_TYPE_SHAPE = 2 };
enum { MIX_ONNX_SHAPE_DIM = 1 };
enum { MIX_ONNX_DIM_VALUE = 1, MIX_ONNX_DIM_PARAM = 2 };

/* The range of versions of the default operator set that is read and written. */
enum { MIX_ONNX_OLDEST_OPSET = 17, MIX_ONNX_NEWEST_OPSET = 23 };

/* TensorProto.DataType of a dtype; 0: ONNX has none. */
int mix_onnx_type_of(mix_dtype dtype);
/* The dtype of a TensorProto.DataType; MIX_DTYPE_NONE: tensors have none like it. */
mix_dtype mix_onnx_dtype_of(long long type);
