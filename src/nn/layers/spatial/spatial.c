#include "nn/layers/spatial/spatial.h"
#include "base/error.h"
#include "ops/table.h"
#include <stdlib.h>
#include <strings.h>

/* ---- sizes for each axis ---- */

bool mix_resolve_per_axis(const mix_field *field) {
  mix_shape *sizes = field->value;
  const int axes = (int)field->row->number;
  if (!sizes->rank && field->row->text) *sizes = MIX_SHAPE(atoi(field->row->text));
  if (!sizes->rank && field->other) *sizes = *(mix_shape *)field->other;
  if (sizes->rank == 1)
    for (; sizes->rank < axes; sizes->rank++) sizes->dims[sizes->rank] = sizes->dims[0];
  if (sizes->rank != axes)
    return mix_fail_value("%s: %s has %d numbers; expected one, or %d", field->call, field->name, sizes->rank,
                          axes);
  for (int i = 0; i < axes; i++)
    if (sizes->dims[i] < 1)
      return mix_fail_value("%s: %s has %lld; expected numbers above 0", field->call, field->name,
                            (long long)sizes->dims[i]);
  return true;
}

bool mix_read_per_axis(const mix_field *field, const json_t *value) {
  if (!json_is_integer(value)) return mix_field_sizes.read(field, value);
  mix_shape *sizes = field->value;
  sizes->rank = 1;
  return mix_field_read_size(field, value, &sizes->dims[0]);
}

json_t *mix_write_per_axis(const mix_field *field) {
  const mix_shape *sizes = field->value;
  /* an optional row has one axis, whose number is no list */
  return field->row->optional ? json_integer(sizes->dims[0]) : mix_field_sizes.write(field);
}
const mix_value_kind mix_field_per_axis = {.expected = "an integer or a list of integers",
                                           .size = sizeof(mix_shape),
                                           .resolve = mix_resolve_per_axis,
                                           .write = mix_write_per_axis,
                                           .read = mix_read_per_axis};

/* ---- padding ---- */

static bool resolve_padding(const mix_field *field) {
  const char **padding = field->value;
  if (!*padding || !strcasecmp(*padding, "valid")) return *padding = "valid", true;
  if (!strcasecmp(*padding, "same")) return *padding = "same", true;
  return mix_fail_value("%s: padding '%.60s' is not known; expected valid or same", field->call, *padding);
}
const mix_value_kind mix_field_padding = {.expected = "valid or same",
                                          .size = sizeof(char *),
                                          .resolve = resolve_padding,
                                          .write = mix_write_text,
                                          .read = mix_read_text,
                                          .parse = mix_parse_text};

int64_t mix_same_length(int64_t n, int64_t stride) {
  return n == MIX_UNKNOWN ? MIX_UNKNOWN : n / stride + (n % stride != 0);
}

int64_t mix_same_padding(int64_t n, int64_t window, int64_t stride, int64_t *before) {
  const int64_t covered = (mix_same_length(n, stride) - 1) * stride; /* before the last window, at most n */
  const int64_t total = window > n - covered ? window - (n - covered) : 0;
  *before = total / 2;
  return total;
}

/* ---- channels ---- */

mix_tensor *mix_to_channels_last(mix_tensor *x, const char *data_format) {
  if (!x || !mix_is_channels_first(data_format)) return x;
  mix_axes order = {.count = mix_tensor_shape(x).rank};
  if (order.count < 2)
    return mix_fail_value("data_format 'channels_first': expected (batch, channels, ...), got shape %s",
                          MIX_SHAPE_TEXT(mix_tensor_shape(x)));
  for (int i = 2; i < order.count; i++) order.axis[i - 1] = i;
  order.axis[order.count - 1] = 1;
  return mix_transpose(x, order);
}

mix_tensor *mix_from_channels_last(mix_tensor *x, const char *data_format) {
  if (!x || !mix_is_channels_first(data_format)) return x;
  mix_axes order = {.count = mix_tensor_shape(x).rank};
  order.axis[1] = order.count - 1;
  for (int i = 2; i < order.count; i++) order.axis[i] = i - 1;
  return mix_transpose(x, order);
}

bool mix_is_open(mix_tensor *x, int begin, int axes) {
  const mix_shape shape = mix_tensor_shape(x);
  bool open = false;
  for (int d = begin; d < begin + axes && d < shape.rank; d++) open |= shape.dims[d] == MIX_UNKNOWN;
  return open && mix_tensor_is_symbolic(x);
}

mix_tensor *mix_open_result(mix_tensor *x, mix_shape shape) {
  return mix_apply(&mix_op_reshape, &(mix_shape_attributes){.shape = shape}, 1, &x);
}

mix_tensor *mix_repeat_axis(mix_tensor *x, int axis, int64_t times) {
  if (!x || times == 1) return x;
  mix_shape shape = mix_tensor_shape(x), apart = {.rank = shape.rank + 1};
  for (int d = 0; d < apart.rank; d++) apart.dims[d] = shape.dims[d <= axis ? d : d - 1];
  apart.dims[axis + 1] = 1;
  mix_tensor *y = mix_layer_reshape(x, apart);
  apart.dims[axis + 1] = times;
  if (__builtin_mul_overflow(shape.dims[axis], times, &shape.dims[axis]))
    return mix_fail_value("upsampling: %lld times %lld elements cannot be counted", (long long)times,
                          (long long)apart.dims[axis]);
  return mix_layer_reshape(mix_broadcast_to(y, apart), shape);
}

bool mix_layer_spatial(mix_layer *layer, int axes) {
  mix_input_spec spec = {.size = sizeof spec, .rank = axes + 2};
  return mix_layer_set_input_spec(layer, &spec) == MIX_OK;
}
