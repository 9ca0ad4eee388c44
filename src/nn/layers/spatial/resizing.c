/* Resizing and CenterCrop. */
#include "base/error.h"
#include "nn/layers/spatial/spatial.h"
#include "tensor/convert.h"

/* ---- Resizing ---- */

static mix_shape resizing_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_resizing_options *o = mix_layer_data(layer);
  return mix_image_shape(input_shapes[0], o->data_format, o->height, o->width);
}

/* Rounded and cut to the dtype's range, as integer images of 8 and 16 bits are. */
static mix_tensor *rounded(mix_tensor *y, mix_dtype dtype) {
  y = mix_round(y);
  if (y && mix_dtype_is_integer(dtype) && mix_dtype_size(dtype) <= 2)
    y = mix_clip(y, mix_scalar_like(y, (double)mix_dtype_lowest(dtype)),
                 mix_scalar_like(y, (double)mix_dtype_highest(dtype)));
  return mix_cast(y, dtype);
}

static mix_list *resizing_call(mix_layer *layer, const mix_call_args *args) {
  const mix_resizing_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_tensor *images = mix_image_batch(layer, x, o->data_format);
  if (!images) return NULL;
  const mix_dtype given = mix_tensor_dtype(x);
  const bool integer = !mix_dtype_is_floating(given) && layer->semantics->resizing_keeps_integers;
  const mix_dtype result = integer ? given : mix_dtype_is_floating(layer->compute) ? layer->compute : given;
  const mix_shape in = mix_tensor_shape(x);
  if (mix_is_open(images, 1, 2))
    return mix_one_result(mix_cast(mix_open_result(x, resizing_output_shape(layer, 1, &in)), result));
  if (o->crop_to_aspect_ratio) images = mix_crop_to_aspect(images, o->height, o->width);
  if (o->pad_to_aspect_ratio) images = mix_pad_to_aspect(images, o->height, o->width, o->fill_value);
  mix_tensor *y =
      mix_resize_images(images, o->height, o->width, mix_interpolation_named(o->interpolation), o->antialias);
  y = integer ? rounded(y, given) : y ? mix_cast(y, result) : NULL;
  return mix_one_result(mix_image_result(y, x, o->data_format));
}

static bool resizing_check(void *options, const mix_layer_kind *kind) {
  const mix_resizing_options *o = options;
  if (!o->crop_to_aspect_ratio || !o->pad_to_aspect_ratio) return true;
  return mix_fail_value("%s: both crop_to_aspect_ratio and pad_to_aspect_ratio were given; give one",
                        kind->call);
}

/* Keras 3 alone takes channels first. */
#define NEWER .only = MIX_RULE(config_image_data_format)
#define SIZE_FIELDS(type)                                                                                    \
  {MIX_FIELD(type, height), &mix_field_integer, .range = MIX_POSITIVE}, {                                    \
    MIX_FIELD(type, width), &mix_field_integer, .range = MIX_POSITIVE                                        \
  }
static const mix_field_row resizing_fields[] = {
    SIZE_FIELDS(mix_resizing_options),
    {MIX_FIELD(mix_resizing_options, interpolation), &mix_field_interpolation, .text = "bilinear"},
    {MIX_FIELD(mix_resizing_options, crop_to_aspect_ratio), &mix_field_boolean},
    {MIX_FIELD(mix_resizing_options, pad_to_aspect_ratio), &mix_field_boolean, NEWER},
    {"fill_mode", 0, &mix_field_fixed, .text = "\"constant\"", NEWER},
    {MIX_FIELD(mix_resizing_options, fill_value), &mix_field_number, NEWER},
    {MIX_FIELD(mix_resizing_options, antialias), &mix_field_boolean, NEWER},
    MIX_IMAGE_DATA_FORMAT_FIELD(mix_resizing_options),
    {0}};
MIX_LAYER_KIND(resizing, mix_resizing_options, .fields = resizing_fields, .check = resizing_check,
               MIX_LAYER_CLASS(.name = "Resizing", .call = resizing_call,
                               .output_shape = resizing_output_shape))

/* ---- CenterCrop ---- */

static mix_shape center_crop_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_center_crop_options *o = mix_layer_data(layer);
  return mix_image_shape(input_shapes[0], o->data_format, o->height, o->width);
}

static mix_tensor *crop_center(mix_tensor *x, int64_t height, int64_t width) {
  if (!x) return NULL;
  const int64_t top = mix_tensor_shape(x).dims[1] - height, left = mix_tensor_shape(x).dims[2] - width;
  if (top >= 0 && left >= 0) return mix_crop(x, top / 2, left / 2, height, width);
  return mix_crop_and_resize(x, height, width);
}

mix_tensor *mix_crop_and_resize(mix_tensor *x, int64_t height, int64_t width) {
  if (!x) return NULL;
  mix_tensor *y = mix_resize_images(mix_crop_to_aspect(x, height, width), height, width, MIX_BILINEAR, false);
  return y ? mix_cast(y, mix_tensor_dtype(x)) : NULL;
}

static mix_list *center_crop_call(mix_layer *layer, const mix_call_args *args) {
  const mix_center_crop_options *o = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_tensor *images = mix_image_batch(layer, x, o->data_format);
  if (!images) return NULL;
  const mix_shape in = mix_tensor_shape(x);
  if (mix_is_open(images, 1, 2))
    return mix_one_result(mix_open_result(x, center_crop_output_shape(layer, 1, &in)));
  return mix_one_result(mix_image_result(crop_center(images, o->height, o->width), x, o->data_format));
}

static const mix_field_row center_crop_fields[] = {
    SIZE_FIELDS(mix_center_crop_options), MIX_IMAGE_DATA_FORMAT_FIELD(mix_center_crop_options), {0}};
MIX_LAYER_KIND(center_crop, mix_center_crop_options, .fields = center_crop_fields,
               MIX_LAYER_CLASS(.name = "CenterCrop", .call = center_crop_call,
                               .output_shape = center_crop_output_shape))
