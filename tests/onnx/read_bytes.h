/* A model of bytes that tests write, as the reader makes it. */
#pragma once

#include "onnx/graphs.h"
#include "onnx/import.h"

/* The model of a file, which is freed. The bytes stay until the end of the test program. */
static inline mix_model *read_bytes(mix_message bytes) {
  mix_onnx_file file;
  assert_false(bytes.failed);
  mix_model *model =
      mix_onnx_open_memory(&file, "test.onnx", bytes.data, bytes.size) ? mix_import_file(&file, NULL) : NULL;
  mix_message_free(&bytes);
  return model;
}
