/* MaxPooling1D, 2D, 3D and AveragePooling1D, 2D, 3D. */
#include "base/error.h"
#include "nn/layers/spatial/spatial.h"
#include <mixtape/pooling.h>

static bool is_same(const mix_pooling_options *o) { return !strcmp(o->padding, "same"); }

/* The output's shape; a dimension below 1 is an error, which the op reports. */
static mix_shape pooling_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_pooling_options *o = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  const int begin = mix_spatial_begin(o->data_format);
  for (int d = 0; d < o->pool_size.rank && begin + d < shape.rank; d++) {
    int64_t *n = &shape.dims[begin + d];
    if (is_same(o))
      *n = mix_same_length(*n, o->strides.dims[d]);
    else if (*n != MIX_UNKNOWN)
      *n = *n < o->pool_size.dims[d] ? 0 : (*n - o->pool_size.dims[d]) / o->strides.dims[d] + 1;
  }
  return shape;
}

/* The window over x with its channels last. Unknown axes, which a symbolic x may have, stay unpadded. */
static bool window_of(const mix_layer *layer, const mix_pooling_options *o, mix_shape x,
                      mix_pool_window *window) {
  *window = (mix_pool_window){.size = o->pool_size, .strides = o->strides};
  window->before.rank = window->after.rank = o->pool_size.rank;
  for (int d = 0; d < o->pool_size.rank; d++) {
    const int64_t n = x.dims[d + 1], size = o->pool_size.dims[d];
    if (n == MIX_UNKNOWN) continue;
    if (is_same(o) && n > 0)
      window->after.dims[d] =
          mix_same_padding(n, size, o->strides.dims[d], &window->before.dims[d]) - window->before.dims[d];
    if (n < 1 || (!is_same(o) && n < size)) {
      return mix_fail_value(
          "%s: the output would be empty: the input has shape %s, pool_size %lld along spatial "
          "axis %d, padding '%s'",
          layer->name, MIX_SHAPE_TEXT(x), (long long)size, d, o->padding);
    }
  }
  return true;
}

static mix_list *pooling_call(mix_layer *layer, const mix_call_args *args,
                              mix_tensor *(*pool)(mix_tensor *x, const mix_pool_window *window)) {
  const mix_pooling_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_to_channels_last(mix_call_input(args, 0), o->data_format);
  mix_pool_window window;
  if (!x || !window_of(layer, o, mix_tensor_shape(x), &window)) return NULL;
  return mix_one_result(mix_from_channels_last(pool(x, &window), o->data_format));
}
static mix_list *max_call(mix_layer *layer, const mix_call_args *args) {
  return pooling_call(layer, args, mix_max_pool);
}
static mix_list *average_call(mix_layer *layer, const mix_call_args *args) {
  return pooling_call(layer, args, mix_avg_pool);
}

static bool pooling_ready(mix_layer *layer) {
  return mix_layer_spatial(layer, ((const mix_pooling_options *)layer->data)->pool_size.rank);
}

/* keras3 has no default for the size of averages. */
static bool resolve_average_size(const mix_field *field) {
  if (field->rules->average_pooling_size_required && !mix_field_given(field->row, field->options))
    return mix_fail_type("%s: %s is missing; expected %s", field->call, field->name,
                         mix_field_per_axis.expected);
  return mix_resolve_per_axis(field);
}
static const mix_value_kind average_size = {.expected = "an integer or a list of integers",
                                            .size = sizeof(mix_shape),
                                            .resolve = resolve_average_size,
                                            .write = mix_write_per_axis,
                                            .read = mix_read_per_axis};

#define ROWS(name, size_kind, axes)                                                                          \
  static const mix_field_row name[] = {{MIX_FIELD(mix_pooling_options, pool_size), size_kind,                \
                                        .number = axes, .text = "2",                                         \
                                        .one = offsetof(mix_pooling_options, pool)},                         \
                                       {MIX_FIELD(mix_pooling_options, padding), &mix_field_padding},        \
                                       {MIX_FIELD(mix_pooling_options, strides), &mix_field_per_axis,        \
                                        .number = axes, .other = offsetof(mix_pooling_options, pool_size)},  \
                                       MIX_DATA_FORMAT_FIELD(mix_pooling_options),                           \
                                       {0}};
#define POOLING(axes)                                                                                        \
  ROWS(max_fields_##axes, &mix_field_per_axis, axes)                                                         \
  ROWS(average_fields_##axes, &average_size, axes)                                                           \
  MIX_LAYER_KIND_ONLY(max_pooling##axes##d, mix_pooling_options, .fields = max_fields_##axes,                \
                      .ready = pooling_ready, .built_from_start = true,                                      \
                      MIX_LAYER_CLASS(.name = "MaxPooling" #axes "D", .call = max_call,                      \
                                      .output_shape = pooling_output_shape))                                 \
  MIX_LAYER_KIND_ONLY(average_pooling##axes##d, mix_pooling_options, .fields = average_fields_##axes,        \
                      .ready = pooling_ready, .built_from_start = true,                                      \
                      MIX_LAYER_CLASS(.name = "AveragePooling" #axes "D", .call = average_call,              \
                                      .output_shape = pooling_output_shape))
POOLING(1)
POOLING(2)
POOLING(3)

mix_pooling_options mix_pooling_defaults(void) {
  return (mix_pooling_options){.size = sizeof(mix_pooling_options)};
}
