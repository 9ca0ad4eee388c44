/* Writes a model of ONNX: the message of its graph without tensors, and the tensors behind it, or beside it
 * in a file of their own. */
#pragma once

#include "onnx/emit.h"

typedef struct mix_onnx_export_file {
  const char *call, *path;
  int opset;
  mix_message *graph; /* everything but the tensors */
  const mix_onnx_initializer *tensors;
  int tensor_count;
  int64_t external_bytes; /* of tensors from which on they are beside the file */
} mix_onnx_export_file;

/* False with the error recorded. */
bool mix_onnx_write(const mix_onnx_export_file *file);
