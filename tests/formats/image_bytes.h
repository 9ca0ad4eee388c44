/* Small PNG and JPEG images in memory. */
#ifndef TESTS_FORMATS_IMAGE_BYTES_H
#define TESTS_FORMATS_IMAGE_BYTES_H

#include "data/support.h"

#include <jpeglib.h>
#include <png.h>

/* channels: 1 grey, 3 RGB, 4 RGBA. */
static inline void put_png(bytes *b, int height, int width, int channels, const unsigned char *pixels) {
  png_image image = {
      .version = PNG_IMAGE_VERSION, .width = (png_uint_32)width, .height = (png_uint_32)height};
  image.format = channels == 1 ? PNG_FORMAT_GRAY : channels == 3 ? PNG_FORMAT_RGB : PNG_FORMAT_RGBA;
  png_alloc_size_t size = sizeof b->data - b->size;
  assert_true(png_image_write_to_memory(&image, b->data + b->size, &size, 0, pixels, 0, NULL));
  b->size += size;
}

/* channels: 1 grey, 3 RGB; without subsampling of the colours. Quality 95: above 97 the fast transform that
 * decodes them, as in TensorFlow, loses more than finer steps save (libjpeg.txt, dct_method). */
static inline void put_jpeg(bytes *b, int height, int width, int channels, const unsigned char *pixels,
                            bool progressive) {
  struct jpeg_compress_struct info;
  struct jpeg_error_mgr errors;
  unsigned char *made = NULL;
  unsigned long size = 0;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  jpeg_mem_dest(&info, &made, &size);
  info.image_width = (JDIMENSION)width;
  info.image_height = (JDIMENSION)height;
  info.input_components = channels;
  info.in_color_space = channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 95, TRUE);
  if (channels == 3) info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = 1;
  if (progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  while (info.next_scanline < info.image_height) {
    JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + (size_t)info.next_scanline * (size_t)(width * channels));
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  put(b, made, size);
  free(made);
}

#endif
