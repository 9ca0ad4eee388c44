/* Checks and conversions shared by the loaders of labelled images. */
#include "data/datasets/images.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <stdarg.h>
#include <stdio.h>

#define CLASSES 10

const char *mix_images_source(const char *format, ...) {
  char text[1200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  return mix_intern(text);
}

static bool check_pair(const char *source, const char *what, mix_tensor *images, mix_tensor *labels) {
  mix_shape x = mix_tensor_shape(images), y = mix_tensor_shape(labels);
  if (x.rank != 3 || y.rank != 1 || x.dims[0] != y.dims[0] || mix_shape_size(x) < 1)
    return mix_fail_format(
        "%s: %s images have shape %s and labels %s; expected (n, height, width) and (n), n >= 1", source,
        what, MIX_SHAPE_TEXT(x), MIX_SHAPE_TEXT(y));
  const uint8_t *label = mix_tensor_data(labels);
  if (!label) return false;
  for (int64_t i = 0; i < y.dims[0]; i++)
    if (label[i] >= CLASSES)
      return mix_fail_format("%s: %s label %lld is %d; expected 0 to 9", source, what, (long long)i,
                             label[i]);
  return true;
}

bool mix_images_check(const char *source, mix_tensor *const arrays[4]) {
  if (!check_pair(source, "training", arrays[0], arrays[1]) ||
      !check_pair(source, "test", arrays[2], arrays[3]))
    return false;
  mix_shape train = mix_tensor_shape(arrays[0]), test = mix_tensor_shape(arrays[2]);
  if (train.dims[1] == test.dims[1] && train.dims[2] == test.dims[2]) return true;
  return mix_fail_format("%s: training images are %lld x %lld, test images %lld x %lld", source,
                         (long long)train.dims[1], (long long)train.dims[2], (long long)test.dims[1],
                         (long long)test.dims[2]);
}

/* uint8 (n, height, width) to float32 (n, height * width), divided by 255 in float32 as in the Keras
 * guide. */
static mix_tensor *scaled(mix_tensor *images) {
  const uint8_t *bytes = mix_tensor_data(images);
  mix_shape shape = mix_tensor_shape(images);
  int64_t count = mix_shape_size(shape);
  void *data;
  mix_tensor *result =
      bytes ? mix_tensor_unfilled(
                  MIX_FLOAT32, (mix_shape){.rank = 2, .dims = {shape.dims[0], count / shape.dims[0]}}, &data)
            : NULL;
  if (!result) return NULL;
  float table[256];
  for (int i = 0; i < 256; i++) table[i] = (float)i / 255.0f;
  for (int64_t i = 0; i < count; i++) ((float *)data)[i] = table[bytes[i]];
  return result;
}

static mix_tensor *widened(mix_tensor *labels) {
  const uint8_t *bytes = mix_tensor_data(labels);
  void *data;
  mix_tensor *result = bytes ? mix_tensor_unfilled(MIX_INT64, mix_tensor_shape(labels), &data) : NULL;
  if (!result) return NULL;
  for (int64_t i = 0; i < mix_tensor_shape(labels).dims[0]; i++) ((int64_t *)data)[i] = bytes[i];
  return result;
}

void mix_images_finish(mix_images *images, mix_tensor *const arrays[4], bool bytes) {
  images->x_train = bytes ? arrays[0] : scaled(arrays[0]);
  images->y_train = bytes ? arrays[1] : widened(arrays[1]);
  images->x_test = bytes ? arrays[2] : scaled(arrays[2]);
  images->y_test = bytes ? arrays[3] : widened(arrays[3]);
}

void mix_images_leave(mix_images *images) {
  if (mix_failed()) *images = (mix_images){0};
  mix_scope_leave(images->x_train);
  mix_scope_leave(images->y_train);
  mix_scope_leave(images->x_test);
  mix_scope_leave(images->y_test);
  if (mix_failed()) *images = (mix_images){0};
}
