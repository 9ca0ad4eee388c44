/* Products of ONNX as Dense where a weight stands, else as products of two tensors. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <string.h>

/* The bias that a node after this one adds, which then needs no conversion: constant, one number a unit. None
 * where products share the kernel, which may have a bias each. */
static mix_tensor *following_bias(mix_import *in, int64_t units, mix_import_value **result) {
  mix_import_value *product = mix_import_value_named(in, in->node->outputs[0]);
  if (!product || product->uses != 1 || !product->reader || mix_import_share_key(in, 1)) return NULL;
  const mix_onnx_node *add = &product->reader->node;
  if (strcmp(add->op, "Add") || add->input_count != 2 || add->output_count != 1 || *add->domain) return NULL;
  const int other = strcmp(add->inputs[0], in->node->outputs[0]) ? 0 : 1;
  mix_import_value *bias = mix_import_value_named(in, add->inputs[other]);
  if (!bias || !bias->weight || bias->shared || (bias->uses != 1 && !bias->uniform) ||
      !mix_import_is_constant(bias))
    return NULL;
  mix_tensor *value = mix_import_constant(in, bias);
  const mix_shape shape = mix_tensor_shape(value);
  if (shape.rank < 1 || shape.dims[shape.rank - 1] != units || mix_shape_size(shape) != units) return NULL;
  *result = mix_import_value_named(in, add->outputs[0]);
  if (shape.rank > 2 || !*result || (*result)->bound) return NULL;
  product->reader->done = true;
  return mix_import_evaluated(in, mix_reshape(value, MIX_SHAPE(units)));
}

/* x . kernel + bias; kernel (in, units). */
static mix_tensor *dense(mix_import *in, mix_tensor *x, mix_tensor *kernel, mix_tensor *bias) {
  if (!kernel || !x) return NULL;
  mix_tensor *weights[] = {kernel, bias};
  const mix_shape shape = mix_tensor_shape(x);
  if (shape.dims[shape.rank - 1] != mix_tensor_shape(kernel).dims[0])
    return mix_import_fail(in, MIX_FORMAT_ERROR, "data of shape %s, and a kernel of shape %s",
                           MIX_SHAPE_TEXT(shape), MIX_SHAPE_TEXT(mix_tensor_shape(kernel)));
  const mix_import_value *named = mix_import_input(in, 1);
  const char *name = named && named->weight ? named->weight : "";
  json_t *config = MIX_PACK("{s:I,s:b,s:s}", "units", (json_int_t)mix_tensor_shape(kernel).dims[1],
                            "use_bias", bias != NULL, "dtype", mix_dtype_name(mix_tensor_dtype(kernel)));
  mix_list *result = mix_import_call_layer(in, "Dense", config, x, NULL, name, mix_import_share_key(in, 1),
                                           bias ? 2 : 1, weights);
  return result ? mix_list_get(result, 0) : NULL;
}

/* A constant of two axes after data of a known last axis: the kernel of a Dense. */
static bool is_kernel(mix_import *in, const mix_tensor *x, int index) {
  if (!x || !mix_tensor_is_symbolic(x) || mix_tensor_shape(x).rank < 2 || !mix_import_is_weight(in, index))
    return false;
  mix_tensor *kernel = mix_import_constant(in, mix_import_input(in, index));
  return kernel && mix_tensor_shape(kernel).rank == 2 && mix_shape_size(mix_tensor_shape(kernel)) > 0;
}

bool mix_import_matmul(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0);
  if (!x) return false;
  if (!is_kernel(in, x, 1)) {
    mix_tensor *b = mix_import_operand(in, 1);
    return b && mix_import_bind(in, 0, mix_import_apply_two(in, "Matmul", x, b));
  }
  mix_tensor *kernel = mix_import_constant(in, mix_import_input(in, 1));
  mix_import_value *sum = NULL;
  mix_tensor *bias =
      in->node->output_count ? following_bias(in, mix_tensor_shape(kernel).dims[1], &sum) : NULL;
  mix_tensor *y = dense(in, x, kernel, bias);
  if (y && bias) {
    sum->tensor = y;
    sum->bound = true;
  }
  return mix_import_bind(in, 0, y);
}

static mix_tensor *scaled(mix_import *in, mix_tensor *x, double factor) {
  if (factor == 1 || !x) return x;
  return mix_import_apply_two(in, "Multiply", x, mix_import_number_like(x, factor));
}

static mix_tensor *transposed(mix_import *in, mix_tensor *x) {
  return x ? mix_import_apply(in, "Transpose", x, MIX_PACK("{s:[i,i]}", "axes", 1, 0)) : NULL;
}

static bool general(mix_import *in, mix_tensor *a, bool transposes_b, double alpha, double beta) {
  mix_tensor *b = mix_import_operand(in, 1);
  if (b && transposes_b) b = transposed(in, b);
  mix_tensor *y = b ? scaled(in, mix_import_apply_two(in, "Matmul", a, b), alpha) : NULL;
  if (y && mix_import_input(in, 2) && beta != 0)
    y = mix_import_apply_two(in, "Add", y, scaled(in, mix_import_operand(in, 2), beta));
  return mix_import_bind(in, 0, y);
}

/* alpha A' B' + beta C */
bool mix_import_gemm(mix_import *in) {
  const bool transposes_b = mix_onnx_integer(in->node, "transB", 0) != 0;
  const double alpha = mix_onnx_number(in->node, "alpha", 1), beta = mix_onnx_number(in->node, "beta", 1);
  mix_tensor *a = mix_import_operand(in, 0);
  if (a && mix_onnx_integer(in->node, "transA", 0)) a = transposed(in, a);
  if (!a) return false;
  if (!is_kernel(in, a, 1)) return general(in, a, transposes_b, alpha, beta);
  mix_tensor *kernel = mix_import_constant(in, mix_import_input(in, 1));
  if (transposes_b) kernel = mix_import_transposed(in, kernel, MIX_AXES(1, 0));
  if (alpha != 1 && kernel) kernel = scaled(in, kernel, alpha);
  const int64_t units = kernel ? mix_tensor_shape(kernel).dims[1] : 0;
  mix_tensor *bias = NULL;
  if (kernel && mix_import_input(in, 2) && mix_import_is_weight(in, 2)) {
    mix_tensor *c = mix_import_constant(in, mix_import_input(in, 2));
    const mix_shape shape = c ? mix_tensor_shape(c) : MIX_SCALAR;
    if (c && shape.rank && mix_shape_size(shape) == units && shape.dims[shape.rank - 1] == units)
      bias = scaled(in, mix_import_evaluated(in, mix_reshape(c, MIX_SHAPE(units))), beta);
  }
  mix_tensor *y = mix_failed() ? NULL : dense(in, a, kernel, bias);
  if (y && !bias && mix_import_input(in, 2) && beta != 0)
    y = mix_import_apply_two(in, "Add", y, scaled(in, mix_import_operand(in, 2), beta));
  return mix_import_bind(in, 0, y);
}
