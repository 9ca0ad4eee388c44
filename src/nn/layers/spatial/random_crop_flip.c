/* RandomCrop and RandomFlip. */
#include "nn/layers/spatial/random_images.h"
#include "ops/with_number.h"

/* ---- RandomCrop ---- */

static mix_shape random_crop_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_random_crop_options *o = mix_layer_data(layer);
  return mix_image_shape(input_shapes[0], o->data_format, o->height, o->width);
}

/* `count` elements along the axis from a drawn place on: the indices start + 0, 1, ... */
static mix_tensor *drawn_part(mix_tensor *x, int axis, int64_t count, mix_generator *generator) {
  const int64_t places = mix_tensor_shape(x).dims[axis] - count + 1;
  mix_tensor *uniform = mix_random_uniform(generator, MIX_SCALAR, MIX_FLOAT32);
  mix_tensor *start = mix_floor(mix_times(uniform, (double)places));
  /* a product may round up to `places` */
  start = mix_minimum(start, mix_scalar_like(start, (double)(places - 1)));
  return mix_gather(x, mix_add(mix_cast(start, MIX_INT64), mix_range(0, (double)count, 1, MIX_INT64)), axis);
}

static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

/* keras3's rule for images that are not larger: height x width pixels, as far as there are any, from where
 * the part of the aspect ratio begins, resized. */
static mix_tensor *middle_resized(mix_tensor *x, int64_t height, int64_t width) {
  const int64_t h = mix_tensor_shape(x).dims[1], w = mix_tensor_shape(x).dims[2];
  mix_tensor *part = mix_crop_to_aspect(x, height, width);
  if (!part) return NULL;
  const int64_t top = (h - mix_tensor_shape(part).dims[1]) / 2,
                left = (w - mix_tensor_shape(part).dims[2]) / 2;
  mix_tensor *y = mix_crop(x, top, left, min_of(height, h - top), min_of(width, w - left));
  y = mix_resize_images(y, height, width, MIX_BILINEAR, false);
  return y ? mix_cast(y, mix_tensor_dtype(x)) : NULL;
}

static mix_list *random_crop_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_crop_options *r = mix_layer_data(layer);
  const int64_t height = r->height, width = r->width;
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_tensor *y = mix_image_batch(layer, x, r->data_format);
  if (!y) return NULL;
  const mix_shape in = mix_tensor_shape(x), images = mix_tensor_shape(y);
  if (args->symbolic) return mix_one_result(mix_open_result(x, random_crop_output_shape(layer, 1, &in)));
  if (!args->training && layer->semantics->config_image_data_format) return mix_one_result(x);
  const bool larger = images.dims[1] >= height && images.dims[2] >= width;
  if (!args->training || (!larger && !layer->semantics->config_image_data_format))
    y = mix_crop_and_resize(y, height, width);
  else if (!larger)
    y = middle_resized(y, height, width);
  else
    y = drawn_part(drawn_part(y, 1, height, mix_generator_of(layer)), 2, width, mix_generator_of(layer));
  return mix_one_result(mix_image_result(y, x, r->data_format));
}

static const mix_field_row crop_fields[] = {
    {MIX_FIELD(mix_random_crop_options, height), &mix_field_integer, .range = MIX_POSITIVE},
    {MIX_FIELD(mix_random_crop_options, width), &mix_field_integer, .range = MIX_POSITIVE},
    {MIX_FIELD(mix_random_crop_options, seed), &mix_field_seed},
    MIX_IMAGE_DATA_FORMAT_FIELD(mix_random_crop_options),
    MIX_RANDOM_TYPE_FIELD,
    {0}};
/* One crop for a batch. */
static bool crops_together(const mix_layer *layer) { return true; }
MIX_LAYER_KIND(random_crop, mix_random_crop_options, .fields = crop_fields, .call_training = MIX_TRUE,
               .seed = offsetof(mix_random_crop_options, seed), .mixes_samples = crops_together,
               MIX_LAYER_CLASS(.name = "RandomCrop", .call = random_crop_call,
                               .output_shape = random_crop_output_shape))

/* ---- RandomFlip ---- */

static mix_tensor *reversed(mix_tensor *x, int axis) {
  return mix_gather(x, mix_range((double)mix_tensor_shape(x).dims[axis] - 1, -1, -1, MIX_INT64), axis);
}

/* Which images of a batch are flipped. */
static mix_tensor *draw(mix_layer *layer, int64_t batch) {
  mix_tensor *uniform = mix_random_uniform(mix_generator_of(layer), MIX_SHAPE(batch, 1, 1, 1), MIX_FLOAT32);
  return mix_less_equal(uniform, mix_scalar_like(uniform, 0.5));
}

static mix_list *random_flip_call(mix_layer *layer, const mix_call_args *args) {
  const mix_random_flip_options *r = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0));
  mix_tensor *y = mix_image_batch(layer, x, r->data_format);
  if (!y) return NULL;
  if (!args->training || args->symbolic) return mix_one_result(x);
  const bool vertical = strcmp(r->mode, "horizontal") != 0, horizontal = strcmp(r->mode, "vertical") != 0;
  const int64_t batch = mix_tensor_shape(y).dims[0];
  mix_tensor *flips = draw(layer, batch);
  if (horizontal) y = mix_select(flips, reversed(y, 2), y);
  if (vertical && horizontal && !layer->semantics->random_flip_once) flips = draw(layer, batch);
  if (vertical) y = mix_select(flips, reversed(y, 1), y);
  return mix_one_result(mix_image_result(y, x, r->data_format));
}

static const mix_field_row flip_fields[] = {{MIX_FIELD(mix_random_flip_options, mode), &mix_field_text,
                                             .text = "horizontal_and_vertical",
                                             .choices = "horizontal_and_vertical|horizontal|vertical"},
                                            {MIX_FIELD(mix_random_flip_options, seed), &mix_field_seed},
                                            MIX_IMAGE_DATA_FORMAT_FIELD(mix_random_flip_options),
                                            MIX_RANDOM_TYPE_FIELD,
                                            {0}};
MIX_LAYER_KIND(random_flip, mix_random_flip_options, .fields = flip_fields, .call_training = MIX_TRUE,
               .seed = offsetof(mix_random_flip_options, seed),
               MIX_LAYER_CLASS(.name = "RandomFlip", .call = random_flip_call,
                               .output_shape = mix_layer_same_shape))
