#include "formats/image_file.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "graph/unfilled_tensor.h"
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>

#include <jerror.h>

/* Of a file, and of the pixels of an image: more is damage or an attack. */
#define FILE_LIMIT ((size_t)1 << 30)
#define PIXEL_LIMIT (INT64_C(1) << 28)

enum { RGBA = 4 };

static mix_tensor *damaged(const char *name, const char *format, const char *reason) {
  return mix_fail(MIX_FORMAT_ERROR, "%s: not a usable %s image: %.200s", name, format, reason);
}

/* A tensor for the image, and its elements. */
static mix_tensor *new_image(const char *name, const char *format, int64_t height, int64_t width,
                             int channels, void **pixels) {
  if (height < 1 || width < 1 || height > PIXEL_LIMIT / width)
    return damaged(name, format, "it has no pixels, or more than 2^28");
  return mix_tensor_unfilled(MIX_UINT8, MIX_SHAPE(height, width, channels), pixels);
}

/* ---- PNG ---- */

/* Opacity is dropped, not applied; grey is libpng's 0.299 R + 0.587 G + 0.114 B. */
static void pick_channels(unsigned char *to, const unsigned char *rgba, int64_t count, int channels) {
  for (int64_t i = 0; i < count; i++, rgba += RGBA, to += channels) {
    if (channels == 1)
      to[0] = (unsigned char)((9798 * rgba[0] + 19235 * rgba[1] + 3735 * rgba[2] + 16384) >> 15);
    else
      memcpy(to, rgba, (size_t)channels);
  }
}

static mix_tensor *read_png(const char *name, const void *data, size_t size, int channels) {
  png_image image = {.version = PNG_IMAGE_VERSION};
  if (!png_image_begin_read_from_memory(&image, data, size)) return damaged(name, "PNG", image.message);
  void *pixels;
  mix_tensor *result = new_image(name, "PNG", image.height, image.width, channels, &pixels);
  image.format = PNG_FORMAT_RGBA;
  unsigned char *rgba = result ? mix_alloc(PNG_IMAGE_SIZE(image)) : NULL;
  if (rgba && png_image_finish_read(&image, NULL, rgba, 0, NULL)) {
    pick_channels(pixels, rgba, (int64_t)image.height * image.width, channels);
  } else if (rgba) {
    damaged(name, "PNG", image.message);
  }
  mix_free(rgba);
  png_image_free(&image);
  return mix_failed() ? NULL : result;
}

/* ---- JPEG ---- */

typedef struct jpeg_errors {
  struct jpeg_error_mgr base;
  jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
} jpeg_errors;

static void jpeg_fails(j_common_ptr info) {
  jpeg_errors *errors = (jpeg_errors *)info->err;
  info->err->format_message(info, errors->message);
  longjmp(errors->jump, 1);
}
/* libjpeg fills in what is missing, with a warning. Harmless are bytes between markers, and colours that it
 * guesses. */
static void jpeg_warns(j_common_ptr info, int level) {
  const int code = info->err->msg_code;
  if (level < 0 && code != JWRN_EXTRANEOUS_DATA && code != JWRN_ADOBE_XFORM) jpeg_fails(info);
}
static void jpeg_is_silent(j_common_ptr info) { (void)info; }

/* What outlives a jump. */
typedef struct jpeg_reader {
  struct jpeg_decompress_struct info;
  jpeg_errors errors;
  mix_tensor *result;
} jpeg_reader;

static void decode_jpeg(jpeg_reader *r, const char *name, const void *data, size_t size, int channels) {
  void *pixels;
  jpeg_create_decompress(&r->info);
  jpeg_mem_src(&r->info, data, (unsigned long)size);
  jpeg_read_header(&r->info, TRUE);
  r->info.out_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_calc_output_dimensions(&r->info);
  r->result = new_image(name, "JPEG", r->info.output_height, r->info.output_width, channels, &pixels);
  if (!r->result) return;
  jpeg_start_decompress(&r->info);
  while (r->info.output_scanline < r->info.output_height) {
    JSAMPROW row =
        (JSAMPROW)pixels + (size_t)r->info.output_scanline * r->info.output_width * (size_t)channels;
    jpeg_read_scanlines(&r->info, &row, 1);
  }
  jpeg_finish_decompress(&r->info);
}

static mix_tensor *read_jpeg(const char *name, const void *data, size_t size, int channels) {
  if (channels == RGBA)
    return mix_fail(MIX_UNSUPPORTED, "%s: a JPEG image has no opacity; ask for 1 or 3 channels", name);
  jpeg_reader *r = mix_calloc(1, sizeof *r);
  if (!r) return NULL;
  r->info.err = jpeg_std_error(&r->errors.base);
  r->errors.base.error_exit = jpeg_fails;
  r->errors.base.emit_message = jpeg_warns;
  r->errors.base.output_message = jpeg_is_silent;
  if (setjmp(r->errors.jump))
    damaged(name, "JPEG", r->errors.message);
  else
    decode_jpeg(r, name, data, size, channels);
  jpeg_destroy_decompress(&r->info);
  mix_tensor *result = mix_failed() ? NULL : r->result;
  mix_free(r);
  return result;
}

/* ---- both ---- */

mix_tensor *mix_image_read_memory(const char *name, const void *data, size_t size, int channels) {
  static const unsigned char png[] = {0x89, 'P', 'N', 'G'}, jpeg[] = {0xff, 0xd8, 0xff};
  if (mix_failed()) return NULL;
  if (size >= sizeof png && !memcmp(data, png, sizeof png)) return read_png(name, data, size, channels);
  if (size >= sizeof jpeg && !memcmp(data, jpeg, sizeof jpeg)) return read_jpeg(name, data, size, channels);
  return mix_fail(MIX_UNSUPPORTED, "%s: neither a PNG nor a JPEG image; other formats are not read", name);
}

mix_tensor *mix_image_load(const char *path, int channels) {
  if (mix_failed()) return NULL;
  size_t size;
  void *data = mix_file_read(path, FILE_LIMIT, &size);
  mix_tensor *image = data ? mix_image_read_memory(path, data, size, channels) : NULL;
  mix_free(data);
  return image;
}
