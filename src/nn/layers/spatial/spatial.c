#include "nn/layers/spatial/spatial.h"
#include "base/error.h"
#include "ops/table.h"
#include <stdlib.h>
#include <strings.h>

/* ---- sizes for each axis ---- */

static bool resolve_per_axis(const mix_fields *fields, const mix_field_row *field, void *options) {
  mix_shape *sizes = mix_field_at(field, options);
  const int axes = (int)field->number;
  if (!sizes->rank && field->text) *sizes = MIX_SHAPE(atoi(field->text));
  if (!sizes->rank && field->other) *sizes = *(const mix_shape *)mix_field_other(field, options);
  if (sizes->rank == 1)
    for (; sizes->rank < axes; sizes->rank++) sizes->dims[sizes->rank] = sizes->dims[0];
  if (sizes->rank != axes)
    return mix_fail_value("%s: %s has %d numbers; expected one, or %d", fields->call, field->name,
                          sizes->rank, axes);
  for (int i = 0; i < axes; i++)
    if (sizes->dims[i] < 1)
      return mix_fail_value("%s: %s has %lld; expected numbers above 0", fields->call, field->name,
                            (long long)sizes->dims[i]);
  return true;
}

static bool read_per_axis(const mix_fields *fields, const mix_field_row *field, const json_t *value,
                          void *options) {
  if (!json_is_integer(value)) return mix_field_sizes.read(fields, field, value, options);
  mix_shape *sizes = mix_field_at(field, options);
  sizes->rank = 1;
  return mix_field_read_size(field, value, &sizes->dims[0]);
}

static json_t *write_per_axis(const mix_fields *fields, const mix_field_row *field, const void *options) {
  const mix_shape *sizes = mix_field_at(field, options);
  /* an optional row has one axis, whose number is no list */
  return field->optional ? json_integer(sizes->dims[0]) : mix_field_sizes.write(fields, field, options);
}
const mix_value_kind mix_field_per_axis = {.expected = "an integer or a list of integers",
                                           .size = sizeof(mix_shape),
                                           .resolve = resolve_per_axis,
                                           .write = write_per_axis,
                                           .read = read_per_axis};

/* ---- padding ---- */

static bool resolve_padding(const mix_fields *fields, const mix_field_row *field, void *options) {
  const char **padding = mix_field_at(field, options);
  if (!*padding || !strcasecmp(*padding, "valid")) return *padding = "valid", true;
  if (!strcasecmp(*padding, "same")) return *padding = "same", true;
  return mix_fail_value("%s: padding '%.60s' is not known; expected valid or same", fields->call, *padding);
}
static json_t *write_padding(const mix_fields *fields, const mix_field_row *field, const void *options) {
  return mix_field_text.write(fields, field, options);
}
static bool read_padding(const mix_fields *fields, const mix_field_row *field, const json_t *value,
                         void *options) {
  return mix_field_text.read(fields, field, value, options);
}
static json_t *parse_padding(const char *text) { return mix_field_text.parse(text); }
const mix_value_kind mix_field_padding = {.expected = "valid or same",
                                          .size = sizeof(char *),
                                          .resolve = resolve_padding,
                                          .write = write_padding,
                                          .read = read_padding,
                                          .parse = parse_padding};

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
