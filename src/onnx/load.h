/* Models from files of ONNX, for whoever loads models. */
#pragma once

#include <mixtape/model.h>

/* Does the file begin as a model of ONNX? */
bool mix_is_onnx(const char *path);
/* The model of a file, functional, of layers and operations of Keras, in float32 or as the graph has them;
 * scoped, not compiled. semantics NULL: Keras 3's, which alone has operations. NULL with the error recorded:
 * FormatError for damaged files, NotImplementedError, with operator, node and operator set, for what no layer
 * or operation stands for. */
mix_model *mix_onnx_load(const char *path, const mix_semantics *semantics, bool copies);
