/* UpSampling1D, 2D, 3D: repeat cells; 2D also interpolates. */
#include "base/error.h"
#include "nn/layers/spatial/spatial.h"

static mix_shape up_sampling_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_up_sampling_options *o = mix_layer_data(layer);
  mix_shape shape = input_shapes[0];
  const int begin = mix_spatial_begin(o->data_format);
  for (int d = 0; d < o->factors.rank && begin + d < shape.rank; d++) {
    int64_t *n = &shape.dims[begin + d];
    if (*n != MIX_UNKNOWN && __builtin_mul_overflow(*n, o->factors.dims[d], n)) *n = INT64_MAX;
  }
  return shape;
}

static mix_list *up_sampling_call(mix_layer *layer, const mix_call_args *args) {
  const mix_up_sampling_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  const int begin = mix_spatial_begin(o->data_format);
  const mix_shape in = mix_tensor_shape(x), out = up_sampling_output_shape(layer, 1, &in);
  if (mix_is_open(x, begin, o->factors.rank)) return mix_one_result(mix_open_result(x, out));
  if (o->interpolation && mix_interpolation_named(o->interpolation) != MIX_NEAREST) {
    mix_tensor *images = mix_to_channels_last(mix_layer_floating(layer, x), o->data_format);
    mix_tensor *y = mix_resize_images(images, out.dims[begin], out.dims[begin + 1],
                                      mix_interpolation_named(o->interpolation), false);
    if (y) y = mix_cast(y, mix_tensor_dtype(images));
    return mix_one_result(mix_from_channels_last(y, o->data_format));
  }
  for (int d = 0; d < o->factors.rank; d++) x = mix_repeat_axis(x, begin + d, o->factors.dims[d]);
  return mix_one_result(x);
}

static bool up_sampling_ready(mix_layer *layer) {
  return mix_layer_spatial(layer, ((const mix_up_sampling_options *)layer->data)->factors.rank);
}

/* Options that the 2D layer alone has, or all but the 1D layer. */
static bool up_sampling_check(void *options, const mix_layer_kind *kind) {
  const mix_up_sampling_options *o = options;
  if (o->factors.rank == 1 && mix_is_channels_first(o->data_format))
    mix_fail_value("%s: data_format '%.60s' is not known; expected none", kind->call, o->data_format);
  if (o->factors.rank != 2 && o->interpolation)
    mix_fail_value("%s: interpolation '%.60s' is not known; expected none", kind->call, o->interpolation);
  return !mix_failed();
}

/* `optional`: one number, which configs have as it is. */
#define FACTORS(axes, ...)                                                                                   \
  {                                                                                                          \
    "size", offsetof(mix_up_sampling_options, factors), &mix_field_per_axis,                                 \
        .number = axes, .text = "2", .one = offsetof(mix_up_sampling_options, factor), __VA_ARGS__           \
  }
static const mix_field_row fields_1[] = {FACTORS(1, .optional = true), {0}};
static const mix_field_row fields_2[] = {
    FACTORS(2, .optional = false),
    MIX_DATA_FORMAT_FIELD(mix_up_sampling_options),
    {MIX_FIELD(mix_up_sampling_options, interpolation), &mix_field_interpolation, .text = "nearest"},
    {0}};
static const mix_field_row fields_3[] = {
    FACTORS(3, .optional = false), MIX_DATA_FORMAT_FIELD(mix_up_sampling_options), {0}};
#define UP_SAMPLING(axes)                                                                                    \
  MIX_LAYER_KIND_ONLY(up_sampling##axes##d, mix_up_sampling_options, .fields = fields_##axes,                \
                      .ready = up_sampling_ready, .check = up_sampling_check,                                \
                      MIX_LAYER_CLASS(.name = "UpSampling" #axes "D", .call = up_sampling_call,              \
                                      .output_shape = up_sampling_output_shape))
UP_SAMPLING(1)
UP_SAMPLING(2)
UP_SAMPLING(3)

mix_up_sampling_options mix_up_sampling_defaults(void) {
  return (mix_up_sampling_options){.size = sizeof(mix_up_sampling_options)};
}
