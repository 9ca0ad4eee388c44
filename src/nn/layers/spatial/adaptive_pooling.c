/* AdaptiveMaxPooling1D, 2D, 3D and AdaptiveAveragePooling1D, 2D, 3D (Keras 3): axis by axis. */
#include "base/error.h"
#include "nn/layers/spatial/spatial.h"
#include <mixtape/pooling.h>

typedef mix_tensor *pool_function(mix_tensor *x, const mix_pool_window *window);

/* Of an axis: each is a node of the graph. */
enum { BIN_LIMIT = 65536 };

/* A window of `length` elements along one axis. */
static mix_pool_window window_along(int axes, int axis, int64_t length) {
  mix_pool_window window = {.size = {.rank = axes}};
  for (int d = 0; d < axes; d++) window.size.dims[d] = d == axis ? length : 1;
  return window;
}

/* i n / count, rounded down, of i <= count <= BIN_LIMIT, where i n may be too large a number. */
static int64_t portion(int64_t i, int64_t n, int64_t count) {
  return i * (n / count) + i * (n % count) / count;
}

/* Bin i of n elements in `count` bins is floor(i n / count) to ceil((i + 1) n / count). */
static mix_tensor *pool_axis(mix_tensor *x, int axes, int axis, int64_t count, pool_function *pool) {
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  const int64_t n = shape.dims[axis + 1];
  mix_pool_window window = window_along(axes, axis, n / count);
  if (n % count == 0 && n > 0) return pool(x, &window);
  mix_list *bins = mix_list_new(0, NULL);
  for (int64_t i = 0; i < count && !mix_failed(); i++) {
    mix_shape begin = {.rank = shape.rank}, size = shape;
    begin.dims[axis + 1] = portion(i, n, count);
    size.dims[axis + 1] = n - portion(count - 1 - i, n, count) - begin.dims[axis + 1];
    window = window_along(axes, axis, size.dims[axis + 1]);
    mix_list_append(bins, pool(mix_slice(x, begin, size), &window));
  }
  return mix_failed() ? NULL
                      : mix_concat(mix_list_count(bins), (mix_tensor **)mix_list_items(bins), axis + 1);
}

static mix_shape adaptive_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_adaptive_pooling_options *o = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  const int begin = mix_spatial_begin(o->data_format);
  for (int d = 0; d < o->output_size.rank && begin + d < shape.rank; d++)
    shape.dims[begin + d] = o->output_size.dims[d];
  return shape;
}

static mix_list *adaptive_call(mix_layer *layer, const mix_call_args *args, pool_function *pool) {
  const mix_adaptive_pooling_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_to_channels_last(mix_call_input(args, 0), o->data_format);
  if (!x) return NULL;
  for (int d = 0; d < o->output_size.rank; d++)
    if (mix_tensor_shape(x).dims[d + 1] < 1)
      return mix_fail_value("%s: the size of spatial axis %d must be known and positive", layer->name, d);
  for (int d = 0; d < o->output_size.rank; d++)
    x = pool_axis(x, o->output_size.rank, d, o->output_size.dims[d], pool);
  return mix_one_result(mix_from_channels_last(x, o->data_format));
}
static mix_list *max_call(mix_layer *layer, const mix_call_args *args) {
  return adaptive_call(layer, args, mix_max_pool);
}
static mix_list *average_call(mix_layer *layer, const mix_call_args *args) {
  return adaptive_call(layer, args, mix_avg_pool);
}

static bool adaptive_ready(mix_layer *layer) {
  const mix_shape *sizes = &((const mix_adaptive_pooling_options *)layer->data)->output_size;
  for (int d = 0; d < sizes->rank; d++)
    if (sizes->dims[d] > BIN_LIMIT)
      return mix_fail_value("%s: output_size has %lld; expected at most %d along an axis", layer->name,
                            (long long)sizes->dims[d], BIN_LIMIT);
  return mix_layer_spatial(layer, sizes->rank);
}

#define ADAPTIVE(axes)                                                                                       \
  static const mix_field_row fields_##axes[] = {{MIX_FIELD(mix_adaptive_pooling_options, output_size),       \
                                                 &mix_field_per_axis, .number = axes, .required = true,      \
                                                 .one = offsetof(mix_adaptive_pooling_options, output)},     \
                                                MIX_DATA_FORMAT_FIELD(mix_adaptive_pooling_options),         \
                                                {0}};                                                        \
  MIX_LAYER_KIND_ONLY(adaptive_max_pooling##axes##d, mix_adaptive_pooling_options, .fields = fields_##axes,  \
                      .ready = adaptive_ready, .keras3_only = true,                                          \
                      MIX_LAYER_CLASS(.name = "AdaptiveMaxPooling" #axes "D", .call = max_call,              \
                                      .output_shape = adaptive_output_shape))                                \
  MIX_LAYER_KIND_ONLY(adaptive_average_pooling##axes##d, mix_adaptive_pooling_options,                       \
                      .fields = fields_##axes, .ready = adaptive_ready,                                      \
                      MIX_LAYER_CLASS(.name = "AdaptiveAveragePooling" #axes "D", .call = average_call,      \
                                      .output_shape = adaptive_output_shape))
ADAPTIVE(1)
ADAPTIVE(2)
ADAPTIVE(3)

mix_adaptive_pooling_options mix_adaptive_pooling_defaults(void) {
  return (mix_adaptive_pooling_options){.size = sizeof(mix_adaptive_pooling_options)};
}
