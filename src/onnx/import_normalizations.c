/* Normalisations of ONNX as layers. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"

static mix_tensor *weight(mix_import *in, int index, mix_shape shape) {
  mix_import_value *value = mix_import_input(in, index);
  if (!value) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks input %d", index);
  mix_tensor *tensor = value->shared ? NULL : mix_import_constant(in, value);
  if (!tensor)
    return mix_import_fail(in, MIX_UNSUPPORTED, "input %d is read by nodes of another kind", index);
  if (mix_shape_equal(mix_tensor_shape(tensor), shape)) return tensor;
  return mix_import_fail(in, MIX_FORMAT_ERROR, "input %d has shape %s; expected %s", index,
                         MIX_SHAPE_TEXT(mix_tensor_shape(tensor)), MIX_SHAPE_TEXT(shape));
}

static const char *name_of(const mix_import *in) {
  const mix_import_value *value = mix_import_input(in, 1);
  return value && value->weight ? value->weight : "";
}

static bool call(mix_import *in, const char *class_name, json_t *config, mix_tensor *x, int count,
                 mix_tensor *const *weights) {
  mix_list *result = mix_import_call_layer(in, class_name, config, x, NULL, name_of(in),
                                           mix_import_share_key(in, 1), count, weights);
  return result && mix_import_bind(in, 0, mix_list_get(result, 0));
}

static json_t *common(const mix_import *in, const mix_tensor *x) {
  return MIX_PACK("{s:f,s:s}", "epsilon", mix_onnx_number(in->node, "epsilon", 1e-5), "dtype",
                  mix_dtype_name(mix_tensor_dtype(x)));
}

bool mix_import_batch_normalization(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0), *weights[4];
  if (!x) return false;
  const mix_shape shape = mix_tensor_shape(x);
  if (shape.rank < 2 || shape.dims[1] < 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "an input of shape %s", MIX_SHAPE_TEXT(shape));
  if (mix_onnx_integer(in->node, "training_mode", 0) || mix_import_is_used(in, 1) ||
      mix_import_is_used(in, 2))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "its running statistics are used; expected a graph for inference");
  for (int i = 0; i < 4; i++)
    if (!(weights[i] = weight(in, i + 1, MIX_SHAPE(shape.dims[1])))) return false;
  json_t *config = common(in, x);
  mix_json_set(config, "axis", json_integer(1));
  mix_json_set(config, "momentum", json_real(mix_onnx_number(in->node, "momentum", 0.9)));
  return call(in, "BatchNormalization", config, x, 4, weights);
}

/* Of the axes from `axis` on. */
bool mix_import_layer_normalization(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0), *weights[2] = {NULL};
  if (!x) return false;
  const mix_shape shape = mix_tensor_shape(x);
  const int axis = mix_import_axis(in, mix_onnx_integer(in->node, "axis", -1), shape.rank);
  if (axis < 0) return false;
  if (mix_import_is_used(in, 1) || mix_import_is_used(in, 2))
    return mix_import_fail(in, MIX_UNSUPPORTED, "its mean or deviation is used");
  mix_shape inner = {.rank = 0};
  json_t *axes = json_array();
  for (int i = axis; i < shape.rank; i++) {
    inner.dims[inner.rank++] = shape.dims[i];
    mix_json_append(axes, json_integer(i));
  }
  json_t *config = common(in, x);
  if (inner.rank == 1) {
    json_decref(axes);
    axes = json_integer(-1);
  }
  mix_json_set(config, "axis", axes);
  const bool shifts = mix_import_input(in, 2);
  mix_json_set(config, "center", json_boolean(shifts));
  weights[0] = weight(in, 1, inner);
  if (shifts) weights[1] = weight(in, 2, inner);
  if (mix_failed()) return json_decref(config), false;
  return call(in, "LayerNormalization", config, x, shifts ? 2 : 1, weights);
}

static bool all_are(mix_tensor *x, double number) {
  mix_tensor *apart = mix_abs(mix_subtract(x, mix_import_number_like(x, number)));
  return mix_tensor_item(mix_reduce_max(apart, MIX_AXES(0), false)) == 0 && !mix_failed();
}

/* A group of its own for each channel, or num_groups of them (GroupNormalization from operator set 21). A
 * scale of 1 and a bias of 0 stand where PyTorch has none, before those of GroupNorm in nodes of their own.
 */
bool mix_import_instance_normalization(mix_import *in) {
  mix_tensor *x = mix_import_operand(in, 0), *weights[2];
  if (!x) return false;
  const mix_shape shape = mix_tensor_shape(x);
  if (shape.rank < 3 || shape.dims[1] < 1)
    return mix_import_fail(in, MIX_UNSUPPORTED, "an input of shape %s", MIX_SHAPE_TEXT(shape));
  for (int i = 0; i < 2; i++)
    if (!(weights[i] = weight(in, i + 1, MIX_SHAPE(shape.dims[1])))) return false;
  const bool plain = all_are(weights[0], 1) && all_are(weights[1], 0);
  json_t *config = common(in, x);
  mix_json_set(config, "axis", json_integer(1));
  mix_json_set(config, "groups", json_integer(mix_onnx_integer(in->node, "num_groups", shape.dims[1])));
  mix_json_set(config, "scale", json_boolean(!plain));
  mix_json_set(config, "center", json_boolean(!plain));
  return call(in, "GroupNormalization", config, x, plain ? 0 : 2, weights);
}
