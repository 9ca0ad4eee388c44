/* The Fourier transform along the last axis as products with cosines and sines: runtimes have no complex
 * numbers in common. */
#include "onnx/emit.h"

#include "base/alloc.h"
#include "tensor/convert.h"
#include <math.h>

enum { LONGEST = 2048 }; /* the two matrices take 32 MB then */

/* cos or sin of 2 pi j k / n as (n, n). */
static const char *waves(mix_onnx_emitter *e, int64_t n, mix_dtype dtype, double (*function)(double)) {
  void *data = mix_calloc((size_t)(n * n) + 1, mix_dtype_size(dtype));
  if (!data) {
    e->failed = true;
    return "";
  }
  for (int64_t i = 0; i < n * n; i++)
    mix_store_double(data, dtype, i, function(2 * M_PI * (double)(i / n * (i % n) % n) / (double)n));
  const char *name = mix_onnx_constant(e, dtype, MIX_SHAPE(n, n), data);
  mix_free(data);
  return name;
}

void mix_onnx_emit_fourier(mix_onnx_emitter *e, const mix_ir_node *node) {
  const mix_type type = mix_onnx_operand_type(e, node, 0);
  const int64_t n = type.shape.dims[type.shape.rank - 1];
  if (n > LONGEST || mix_onnx_axis(e, node->inputs[0], type.shape.rank - 1).factor) {
    mix_onnx_refuse(e, node, "more than %d values along the axis", LONGEST);
    return;
  }
  const bool inverse = ((const mix_fourier_attributes *)node->attributes)->inverse;
  const char *real = mix_onnx_operand(e, node, 0), *imaginary = mix_onnx_operand(e, node, 1),
             *cosines = waves(e, n, type.dtype, cos), *sines = waves(e, n, type.dtype, sin);
  const char *rc = mix_onnx_node2(e, "MatMul", real, cosines), *rs = mix_onnx_node2(e, "MatMul", real, sines),
             *ic = mix_onnx_node2(e, "MatMul", imaginary, cosines),
             *is = mix_onnx_node2(e, "MatMul", imaginary, sines);
  mix_onnx_result(e, node, 0, mix_onnx_node2(e, inverse ? "Sub" : "Add", rc, is));
  mix_onnx_result(e, node, 1, mix_onnx_node2(e, inverse ? "Add" : "Sub", ic, rs));
}
