/* What the names of an ONNX graph stand for while it is converted. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <math.h>
#include <string.h>

enum { LEAST_OF_MASKS = 10000 };

/* ---- inputs ---- */

mix_tensor *mix_import_constant(mix_import *in, mix_import_value *value) {
  if (value->stored) {
    value->tensor = mix_onnx_tensor_value(in->file, value->stored);
    if (!value->tensor) return NULL;
    value->stored = NULL;
  }
  if (value->tensor && !mix_tensor_is_symbolic(value->tensor)) return value->tensor;
  return mix_import_fail(in, MIX_UNSUPPORTED, "an input is computed from the data; expected a constant");
}

static mix_tensor *vector_of_sizes(mix_import *in, const mix_import_value *value) {
  mix_list *parts = mix_list_new(0, NULL);
  for (int i = 0; i < value->size_count && !mix_failed(); i++) {
    const mix_import_size *size = &value->sizes[i];
    mix_tensor *part;
    if (size->open) {
      mix_tensor *ones = mix_import_ones(in, size, MIX_INT64);
      part =
          ones ? mix_import_apply(in, "Sum", ones, MIX_PACK("{s:[i],s:b}", "axis", 0, "keepdims", 1)) : NULL;
    } else {
      part = mix_tensor_from(&size->value, MIX_INT64, MIX_SHAPE(1));
    }
    mix_list_append(parts, part);
  }
  if (mix_failed()) return NULL;
  mix_tensor *vector =
      mix_import_run_one(in, "Concatenate", value->size_count, (mix_tensor *const *)mix_list_items(parts),
                         MIX_PACK("{s:i}", "axis", 0));
  return value->size_scalar && vector
             ? mix_import_apply(in, "Squeeze", vector, MIX_PACK("{s:[i]}", "axis", 0))
             : vector;
}

mix_tensor *mix_import_tensor_of(mix_import *in, mix_import_value *value) {
  if (value->stored && !mix_import_constant(in, value)) return NULL;
  if (!value->tensor && value->fill)
    value->tensor = mix_import_expanded(in, value->fill, value->size_count, value->sizes);
  else if (!value->tensor)
    value->tensor = vector_of_sizes(in, value);
  return value->tensor;
}

bool mix_import_has_symbolic(mix_import *in) {
  for (int i = 0; i < in->node->input_count; i++) {
    const mix_import_value *value = mix_import_input(in, i);
    if (value && (value->shared || !mix_import_is_constant(value))) return true;
  }
  return false;
}

/* Masks that are added to logits. */
bool mix_import_is_mask(mix_import *in, mix_tensor *x) {
  const bool constant = !mix_tensor_is_symbolic(x) && mix_shape_size(mix_tensor_shape(x)) > 0;
  if (!constant || mix_tensor_dtype(x) == MIX_DTYPE_NONE) return false;
  mix_tensor *most = mix_import_evaluated(in, mix_reduce_max(mix_abs(x), MIX_ALL_AXES, false));
  return most && mix_tensor_item(most) >= LEAST_OF_MASKS;
}

mix_tensor *mix_import_operand(mix_import *in, int index) {
  mix_import_value *value = mix_import_input(in, index);
  if (!value) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks input %d", index);
  mix_tensor *tensor = mix_import_tensor_of(in, value);
  if (!tensor || !value->weight || !mix_import_has_symbolic(in)) return tensor;
  if (!value->parameter && !value->shared && mix_import_is_mask(in, tensor)) {
    value->weight = NULL;
    return tensor;
  }
  if (value->uniform) return mix_import_parameter(in, tensor, value->weight, true);
  if (!value->parameter) value->parameter = mix_import_parameter(in, tensor, value->weight, true);
  return value->parameter;
}

int mix_import_integers(mix_import *in, int index, int most, int64_t *numbers) {
  mix_import_value *value = mix_import_input(in, index);
  mix_tensor *tensor = value ? mix_import_constant(in, value) : NULL;
  if (!tensor) return value ? -1 : 0;
  const int64_t count = mix_shape_size(mix_tensor_shape(tensor));
  if (count > most || !mix_dtype_is_integer(mix_tensor_dtype(tensor)))
    return mix_import_fail(in, MIX_UNSUPPORTED, "input %d is %s %s; expected at most %d integers", index,
                           mix_dtype_name(mix_tensor_dtype(tensor)), MIX_SHAPE_TEXT(mix_tensor_shape(tensor)),
                           most),
           -1;
  return mix_tensor_read(tensor, MIX_INT64, numbers, count) ? -1 : (int)count;
}

int mix_import_integers_of(mix_import *in, const char *name, int index, int most, int64_t *numbers) {
  const mix_onnx_attribute *attribute = mix_onnx_find(in->node, name);
  if (!attribute) return mix_import_integers(in, index, most, numbers);
  if (attribute->count > most || (attribute->count && !attribute->ints))
    return mix_import_fail(in, MIX_FORMAT_ERROR, "%s has %d numbers; expected at most %d", name,
                           attribute->count, most),
           -1;
  if (attribute->count) memcpy(numbers, attribute->ints, (size_t)attribute->count * sizeof *numbers);
  return attribute->count;
}

int mix_import_sizes(mix_import *in, mix_import_value *value, int most, mix_import_size *sizes) {
  int64_t numbers[MIX_MAX_RANK * 4];
  if (value->sizes && !value->fill) {
    if (value->size_count > most)
      return mix_import_fail(in, MIX_UNSUPPORTED, "%d sizes; expected at most %d", value->size_count, most),
             -1;
    memcpy(sizes, value->sizes, (size_t)value->size_count * sizeof *sizes);
    return value->size_count;
  }
  mix_tensor *tensor = mix_import_constant(in, value);
  if (!tensor) return -1;
  const int64_t count = mix_shape_size(mix_tensor_shape(tensor));
  if (most > MIX_MAX_RANK * 4) most = MIX_MAX_RANK * 4;
  if (count > most || mix_dtype_is_floating(mix_tensor_dtype(tensor)))
    return mix_import_fail(in, MIX_UNSUPPORTED, "sizes of shape %s; expected at most %d integers",
                           MIX_SHAPE_TEXT(mix_tensor_shape(tensor)), most),
           -1;
  if (mix_tensor_read(tensor, MIX_INT64, numbers, count)) return -1;
  for (int i = 0; i < count; i++) sizes[i] = (mix_import_size){.value = numbers[i]};
  return (int)count;
}

double mix_import_scalar(mix_import *in, int index) {
  mix_import_value *value = mix_import_input(in, index);
  mix_tensor *tensor = value ? mix_import_constant(in, value) : NULL;
  if (!tensor) return NAN;
  if (mix_shape_size(mix_tensor_shape(tensor)) == 1) {
    double number;
    return mix_tensor_read(tensor, MIX_FLOAT64, &number, 1) ? NAN : number;
  }
  mix_import_fail(in, MIX_UNSUPPORTED, "input %d has shape %s; expected one number", index,
                  MIX_SHAPE_TEXT(mix_tensor_shape(tensor)));
  return NAN;
}
