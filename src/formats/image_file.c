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

enum { RGBA = 4, INKS = 4 };

static mix_tensor *damaged(const char *name, const char *format, const char *reason) {
  return mix_fail_format("%s: not a usable %s image: %.200s", name, format, reason);
}

/* A tensor for the image, and its elements. */
static mix_tensor *new_image(const char *name, const char *format, int64_t height, int64_t width,
                             int channels, void **pixels) {
  if (height < 1 || width < 1 || height > PIXEL_LIMIT / width)
    return damaged(name, format, "it has no pixels, or more than 2^28");
  return mix_tensor_unfilled(MIX_UINT8, MIX_SHAPE(height, width, channels), pixels);
}

/* ---- PNG ---- */

enum { DEPTH = 8 }; /* bits of a value in the result */

/* What outlives a jump. */
typedef struct png_reader {
  png_structp png;
  png_infop info;
  jmp_buf jump;
  char message[200];
  const unsigned char *data;
  size_t left;
  mix_tensor *result;
} png_reader;

static void png_fails(png_structp png, png_const_charp message) {
  png_reader *r = png_get_error_ptr(png);
  snprintf(r->message, sizeof r->message, "%s", message);
  longjmp(r->jump, 1);
}
/* Of damage outside the pixels. */
static void png_is_silent(png_structp png, png_const_charp message) {}

static void take_bytes(png_structp png, png_bytep to, size_t count) {
  png_reader *r = png_get_io_ptr(png);
  if (count > r->left) png_error(png, "the file ends too early");
  memcpy(to, r->data, count);
  r->data += count;
  r->left -= count;
}

/* Chunks without pixels or colours, which can be large once unpacked. */
static void skip_chunks(png_structp png) {
  static const png_byte names[] = "bKGD\0eXIf\0hIST\0iTXt\0oFFs\0pCAL\0pHYs\0sCAL\0sPLT\0tEXt\0tIME\0zTXt";
  png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, names, (int)sizeof names / 5);
}

/* TensorFlow's choices, so that the bytes are its bytes: values of 16 bits lose the low byte; opacity is
 * dropped, not applied; grey is 0.299 R + 0.587 G + 0.114 B, and only for it gAMA counts; opacity that is
 * added has the bits that the file's values have. */
static void choose_conversions(const png_reader *r, int channels) {
  const int type = png_get_color_type(r->png, r->info), depth = png_get_bit_depth(r->png, r->info);
  const bool grey = !(type & PNG_COLOR_MASK_COLOR), opacity = type & PNG_COLOR_MASK_ALPHA;
  const bool one_clear_colour = png_get_valid(r->png, r->info, PNG_INFO_tRNS);
  if (channels != RGBA)
    png_set_strip_alpha(r->png);
  else if (!opacity && one_clear_colour)
    png_set_tRNS_to_alpha(r->png);
  else if (!opacity)
    png_set_add_alpha(r->png, (1u << depth) - 1, PNG_FILLER_AFTER);
  if (depth > DEPTH) png_set_strip_16(r->png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
  if (grey && depth < DEPTH) png_set_expand_gray_1_2_4_to_8(r->png);
  if (grey && channels > 1) png_set_gray_to_rgb(r->png);
  if (!grey && channels == 1) png_set_rgb_to_gray_fixed(r->png, PNG_ERROR_ACTION_NONE, 29900, 58700);
}

static void decode_png(png_reader *r, const char *name, int channels) {
  void *pixels;
  r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, png_fails, png_is_silent);
  r->info = r->png ? png_create_info_struct(r->png) : NULL;
  if (!r->info) {
    mix_fail_memory("a reader of PNG images");
    return;
  }
  png_set_read_fn(r->png, r, take_bytes);
  skip_chunks(r->png);
  png_read_info(r->png, r->info);
  const size_t height = png_get_image_height(r->png, r->info), width = png_get_image_width(r->png, r->info);
  choose_conversions(r, channels);
  const int passes = png_set_interlace_handling(r->png);
  png_read_update_info(r->png, r->info);
  if (png_get_rowbytes(r->png, r->info) != width * (size_t)channels) png_error(r->png, "unknown colours");
  r->result = new_image(name, "PNG", (int64_t)height, (int64_t)width, channels, &pixels);
  if (!r->result) return;
  for (int pass = 0; pass < passes; pass++)
    for (size_t row = 0; row < height; row++)
      png_read_row(r->png, (png_bytep)pixels + row * width * (size_t)channels, NULL);
  png_read_end(r->png, NULL);
}

static mix_tensor *read_png(const char *name, const void *data, size_t size, int channels) {
  png_reader *r = mix_calloc(1, sizeof *r);
  if (!r) return NULL;
  r->data = data;
  r->left = size;
  if (setjmp(r->jump))
    damaged(name, "PNG", r->message);
  else
    decode_png(r, name, channels);
  png_destroy_read_struct(&r->png, &r->info, NULL);
  mix_tensor *result = mix_failed() ? NULL : r->result;
  mix_free(r);
  return result;
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
static void jpeg_is_silent(j_common_ptr info) {}

/* What outlives a jump. */
typedef struct jpeg_reader {
  struct jpeg_decompress_struct info;
  jpeg_errors errors;
  mix_tensor *result;
  unsigned char *inks; /* a row in CMYK */
} jpeg_reader;

/* As TensorFlow mixes them; Adobe's files hold the complements. */
static void convert_inks(unsigned char *rgb, const unsigned char *inks, size_t width, bool complements) {
  for (size_t i = 0; i < width; i++, inks += INKS)
    for (int c = 0; c < INKS - 1; c++)
      *rgb++ = (unsigned char)(complements ? inks[INKS - 1] * inks[c] / 255
                                           : (255 - inks[INKS - 1]) * (255 - inks[c]) / 255);
}

/* TensorFlow's choices, so that the bytes are its bytes; all others are libjpeg's own. */
static void choose_decoding(struct jpeg_decompress_struct *info, int channels) {
  const bool inks = info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK;
  info->out_color_space = channels == 1 ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
  info->dct_method = JDCT_IFAST;
}

static void decode_jpeg(jpeg_reader *r, const char *name, const void *data, size_t size, int channels) {
  void *pixels;
  jpeg_create_decompress(&r->info);
  jpeg_mem_src(&r->info, data, (unsigned long)size);
  jpeg_read_header(&r->info, TRUE);
  choose_decoding(&r->info, channels);
  jpeg_calc_output_dimensions(&r->info);
  const size_t height = r->info.output_height, width = r->info.output_width;
  r->result = new_image(name, "JPEG", (int64_t)height, (int64_t)width, channels, &pixels);
  if (r->result && r->info.out_color_space == JCS_CMYK) r->inks = mix_alloc(width * INKS);
  if (mix_failed()) return;
  jpeg_start_decompress(&r->info);
  while (r->info.output_scanline < height) {
    unsigned char *row = (unsigned char *)pixels + r->info.output_scanline * width * (size_t)channels;
    JSAMPROW to = r->inks ? r->inks : row;
    jpeg_read_scanlines(&r->info, &to, 1);
    if (r->inks) convert_inks(row, r->inks, width, r->info.saw_Adobe_marker);
  }
  jpeg_finish_decompress(&r->info);
}

static mix_tensor *read_jpeg(const char *name, const void *data, size_t size, int channels) {
  if (channels == RGBA)
    return mix_fail_unsupported("%s: a JPEG image has no opacity; ask for 1 or 3 channels", name);
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
  mix_free(r->inks);
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
  return mix_fail_unsupported("%s: neither a PNG nor a JPEG image; other formats are not read", name);
}

mix_tensor *mix_image_load(const char *path, int channels) {
  if (mix_failed()) return NULL;
  size_t size;
  void *data = mix_file_read(path, FILE_LIMIT, &size);
  mix_tensor *image = data ? mix_image_read_memory(path, data, size, channels) : NULL;
  mix_free(data);
  return image;
}
