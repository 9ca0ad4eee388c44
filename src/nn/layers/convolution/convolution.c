/* What convolution layers share. */
#include "nn/layers/convolution/convolution.h"
#include "base/error.h"
#include "nn/layer/remat.h"
#include <string.h>
#include <strings.h>

/* ---- sizes ---- */

static bool resolve_per_axis(const mix_field *field) {
  return mix_shape_option(*(mix_shape *)field->value, field->call, field->name);
}

static json_t *write_per_axis(const mix_field *field) {
  const mix_shape *numbers = field->value;
  return numbers->rank ? mix_field_sizes.write(field) : json_null();
}

static bool read_per_axis(const mix_field *field, const json_t *value) {
  mix_shape *numbers = field->value;
  const size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (json_is_null(value)) return true;
  if (count > MIX_MAX_RANK)
    return mix_fail_value("config: \"%s\" is a list of %zu numbers; expected at most %d", field->name, count,
                          MIX_MAX_RANK);
  numbers->rank = (int)count;
  for (size_t i = 0; i < count; i++) {
    const json_t *number = json_is_array(value) ? json_array_get(value, i) : value;
    if (!mix_field_read_size(field, number, &numbers->dims[i])) return false;
  }
  return true;
}

const mix_value_kind mix_field_window_sizes = {"an integer or a list of integers",
                                               sizeof(mix_shape),
                                               resolve_per_axis,
                                               NULL,
                                               write_per_axis,
                                               read_per_axis,
                                               NULL};

/* One number for each axis, each at least `least`; none given is `none`. */
static bool expand(const char *call, const char *name, int axes, int64_t none, int64_t least,
                   mix_shape *numbers) {
  if (numbers->rank == 0) *numbers = MIX_SHAPE(none);
  if (numbers->rank == 1)
    for (int i = 1; i < axes; i++) numbers->dims[i] = numbers->dims[0];
  else if (numbers->rank != axes)
    return mix_fail_value("%s: %s has %d numbers; expected %d, or one for all axes", call, name,
                          numbers->rank, axes);
  numbers->rank = axes;
  for (int i = 0; i < axes; i++)
    if (numbers->dims[i] < least)
      return mix_fail_value("%s: %s holds %lld; expected numbers of at least %lld", call, name,
                            (long long)numbers->dims[i], (long long)least);
  return true;
}

static bool is_over_one(const mix_shape *numbers) {
  for (int i = 0; i < numbers->rank; i++)
    if (numbers->dims[i] > 1) return true;
  return false;
}

static bool check_output_padding(const char *call, int axes, const mix_window_options *window) {
  if (!window->output_padding || !window->output_padding->rank) return true;
  if (!expand(call, "output_padding", axes, 0, 0, window->output_padding)) return false;
  for (int i = 0; i < axes; i++)
    if (window->output_padding->dims[i] >= window->strides->dims[i])
      return mix_fail_value("%s: output_padding is %lld along axis %d; expected less than the stride, %lld",
                            call, (long long)window->output_padding->dims[i], i,
                            (long long)window->strides->dims[i]);
  return true;
}

static bool check_padding(const char *call, const mix_window_options *window) {
  static const char *const known[] = {"valid", "same", "causal"};
  for (int i = 0; i < 2 + window->causal; i++)
    if (!strcasecmp(*window->padding, known[i])) {
      *window->padding = known[i];
      return true;
    }
  return mix_fail_value("%s: padding '%.60s' is not known; expected valid or same%s", call, *window->padding,
                        window->causal ? ", or causal" : "");
}

bool mix_check_window(const char *call, int axes, const mix_window_options *window) {
  if (!expand(call, "kernel_size", axes, 0, 1, window->kernel_size) ||
      !expand(call, "strides", axes, 1, 1, window->strides) ||
      !expand(call, "dilation_rate", axes, 1, 1, window->dilation_rate) || !check_padding(call, window) ||
      !check_output_padding(call, axes, window))
    return false;
  if (!is_over_one(window->strides) || !is_over_one(window->dilation_rate)) return true;
  return mix_fail_value("%s: both strides and dilation_rate are above 1; give one of them", call);
}

bool mix_check_positive(const char *call, const char *name, int64_t number) {
  return number > 0 ||
         (mix_fail_value("%s: %s is %lld; expected a positive number", call, name, (long long)number), false);
}

/* ---- channels ---- */

static bool is_first(const char *data_format) { return !strcmp(data_format, "channels_first"); }

int64_t mix_conv_channels(mix_layer *layer, int axes, const char *data_format, int count,
                          const mix_shape *input_shapes) {
  const mix_shape shape = input_shapes[0];
  const int axis = is_first(data_format) ? 1 : axes + 1;
  if (count != 1) return mix_fail_value("%s: got %d inputs; expected one", layer->name, count), -1;
  if (shape.rank != axes + 2 || shape.dims[axis] < 1)
    return mix_fail_value(
               "%s: the input has shape %s; expected %d dimensions, and a known number of channels along "
               "axis %d",
               layer->name, MIX_SHAPE_TEXT(shape), axes + 2, axis),
           -1;
  const int64_t channels = shape.dims[axis];
  return mix_layer_require_size(layer, axes + 2, axis, channels) == MIX_OK ? channels : -1;
}

mix_tensor *mix_channels_to_last(mix_tensor *x, const char *data_format) {
  if (!x || !is_first(data_format)) return x;
  mix_axes order = {.count = mix_tensor_shape(x).rank};
  for (int i = 1; i < order.count; i++) order.axis[i] = i + 1 < order.count ? i + 1 : 1;
  return mix_transpose(x, order);
}

mix_tensor *mix_channels_from_last(mix_tensor *x, const char *data_format) {
  if (!x || !is_first(data_format)) return x;
  mix_axes order = {.count = mix_tensor_shape(x).rank};
  for (int i = 1; i < order.count; i++) order.axis[i] = i > 1 ? i - 1 : order.count - 1;
  return mix_transpose(x, order);
}

mix_tensor *mix_conv_input(const mix_layer *layer, const mix_call_args *args, const char *data_format) {
  return mix_channels_to_last(mix_layer_floating(layer, mix_call_input(args, 0)), data_format);
}

mix_list *mix_conv_result(const mix_layer *layer, mix_tensor *y, mix_variable *bias, const char *data_format,
                          const char *activation) {
  if (y && bias) y = mix_bias_add(y, mix_variable_value(bias));
  y = mix_channels_from_last(y, data_format);
  return y ? mix_one_result(mix_layer_activate(layer, activation, y)) : NULL;
}

mix_shape mix_kernel_shape(mix_shape cells, int64_t in, int64_t out) {
  cells.dims[cells.rank++] = in;
  cells.dims[cells.rank++] = out;
  return cells;
}
