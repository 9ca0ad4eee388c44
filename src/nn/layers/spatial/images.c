/* What the layers for images share: batches, sizes, aspect ratios, interpolations. */
#include "base/error.h"
#include "nn/layers/moments.h"
#include "nn/layers/spatial/spatial.h"
#include <math.h>
#include <strings.h>

/* ---- batches ---- */

mix_tensor *mix_image_batch(const mix_layer *layer, mix_tensor *x, const char *data_format) {
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (shape.rank != 3 && shape.rank != 4)
    return mix_fail_value("%s: the input has shape %s; expected images of rank 4, or one image of rank 3",
                          layer->name, MIX_SHAPE_TEXT(shape));
  return mix_to_channels_last(shape.rank == 4 ? x : mix_expand_dims(x, 0), data_format);
}

mix_tensor *mix_image_result(mix_tensor *y, mix_tensor *x, const char *data_format) {
  y = mix_from_channels_last(y, data_format);
  return mix_tensor_shape(x).rank == 4 ? y : mix_squeeze(y, MIX_AXES(0));
}

mix_shape mix_image_shape(mix_shape shape, const char *data_format, int64_t height, int64_t width) {
  const int at = shape.rank - 3 + (mix_is_channels_first(data_format) ? 1 : 0);
  if (at < 0 || at + 1 >= shape.rank) return shape;
  shape.dims[at] = height;
  shape.dims[at + 1] = width;
  return shape;
}

/* ---- interpolations ---- */

static const struct {
  const char *name;
  mix_interpolation interpolation;
  bool older; /* not of keras3 */
} names[] = {{"nearest", MIX_NEAREST, false},   {"bilinear", MIX_BILINEAR, false},
             {"bicubic", MIX_BICUBIC, false},   {"lanczos3", MIX_LANCZOS3, false},
             {"lanczos5", MIX_LANCZOS5, false}, {"area", MIX_AREA, true},
             {"gaussian", MIX_GAUSSIAN, true},  {"mitchellcubic", MIX_MITCHELL_CUBIC, true}};
enum { NAMES = sizeof names / sizeof *names };

static int index_of(const char *name) {
  for (int i = 0; i < NAMES; i++)
    if (!strcasecmp(name, names[i].name)) return i;
  return -1;
}
mix_interpolation mix_interpolation_named(const char *name) { return names[index_of(name)].interpolation; }

static bool resolve_interpolation(const mix_field *field) {
  const char **name = field->value;
  if (!*name) *name = field->row->text;
  const int index = index_of(*name);
  if (index >= 0 && !(names[index].older && field->rules->interpolations_fewer))
    return *name = names[index].name, true;
  return mix_fail_value(
      "%s: %s '%.60s' is not known; expected nearest, bilinear, bicubic, lanczos3 or lanczos5%s", field->call,
      field->name, *name, field->rules->interpolations_fewer ? "" : ", area, gaussian or mitchellcubic");
}
const mix_value_kind mix_field_interpolation = {.expected = "an interpolation",
                                                .size = sizeof(char *),
                                                .resolve = resolve_interpolation,
                                                .write = mix_write_text,
                                                .read = mix_read_text,
                                                .parse = mix_parse_text};

/* ---- sizes ---- */

mix_tensor *mix_resize_images(mix_tensor *x, int64_t height, int64_t width, mix_interpolation interpolation,
                              bool antialias) {
  if (!x) return NULL;
  x = mix_cast(x, mix_widened(mix_tensor_dtype(x)));
  x = mix_resize_axis(x, 1, height, interpolation, antialias);
  return mix_resize_axis(x, 2, width, interpolation, antialias);
}

mix_tensor *mix_crop(mix_tensor *x, int64_t top, int64_t left, int64_t height, int64_t width) {
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (!top && !left && height == shape.dims[1] && width == shape.dims[2]) return x;
  return mix_slice(x, MIX_SHAPE(0, top, left, 0), MIX_SHAPE(-1, height, width, -1));
}

/* a b / c in float32, as TensorFlow computes it. */
static int64_t scaled(int64_t a, int64_t b, int64_t c) { return (int64_t)((float)(a * b) / (float)c); }
static int64_t at_least_one(int64_t n) { return n < 1 ? 1 : n; }
static int64_t min_of(int64_t a, int64_t b) { return a < b ? a : b; }

mix_tensor *mix_crop_to_aspect(mix_tensor *x, int64_t height, int64_t width) {
  if (!x) return NULL;
  const int64_t h = mix_tensor_shape(x).dims[1], w = mix_tensor_shape(x).dims[2];
  const int64_t rows = at_least_one(min_of(h, scaled(w, height, width))),
                columns = at_least_one(min_of(w, scaled(h, width, height)));
  return mix_crop(x, (h - rows) / 2, (w - columns) / 2, rows, columns);
}

mix_tensor *mix_pad_to_aspect(mix_tensor *x, int64_t height, int64_t width, double fill_value) {
  if (!x) return NULL;
  const int64_t h = mix_tensor_shape(x).dims[1], w = mix_tensor_shape(x).dims[2];
  const int64_t rows = (scaled(w, height, width) - h) / 2, columns = (scaled(h, width, height) - w) / 2;
  const mix_shape around = MIX_SHAPE(0, rows > 0 ? rows : 0, columns > 0 ? columns : 0, 0);
  return mix_pad(x, around, around, fill_value);
}

/* What is ahead of a side of `size` (not yet rounded to pixels) in the middle of `whole`. */
static int64_t centered(int64_t whole, float size) {
  const float before = floorf(((float)whole - size) / 2);
  return before > 0 ? (int64_t)before : 0;
}

/* In float32, as TensorFlow computes it: a side can become a pixel shorter than the exact number. */
mix_tensor *mix_resize_with_pad(const char *name, mix_tensor *x, int64_t height, int64_t width,
                                mix_interpolation interpolation) {
  if (!x) return NULL;
  const int64_t h = mix_tensor_shape(x).dims[1], w = mix_tensor_shape(x).dims[2];
  const float ratio = fmaxf((float)w / (float)width, (float)h / (float)height);
  const float exact_rows = (float)h / ratio, exact_columns = (float)w / ratio;
  const int64_t rows = (int64_t)exact_rows, columns = (int64_t)exact_columns;
  if (rows < 1 || columns < 1)
    return mix_fail_value(
        "%s: %lld x %lld pixels, padded to the aspect ratio, leave none in an image of %lld x %lld; "
        "choose a larger size",
        name, (long long)h, (long long)w, (long long)height, (long long)width);
  const int64_t top = centered(height, exact_rows), left = centered(width, exact_columns);
  x = mix_resize_images(x, rows, columns, interpolation, false);
  return mix_pad(x, MIX_SHAPE(0, top, left, 0), MIX_SHAPE(0, height - top - rows, width - left - columns, 0),
                 0);
}
