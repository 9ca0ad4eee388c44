/* Rectangles and text on an RGB image, written as PNG. */
#include "train/numerics/canvas.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <png.h>
#include <string.h>

bool mix_canvas_open(mix_canvas *canvas, int width, int height) {
  size_t bytes = 3 * (size_t)width * (size_t)height;
  *canvas = (mix_canvas){width, height, mix_alloc(bytes)};
  if (canvas->pixels) memset(canvas->pixels, 0xff, bytes);
  return canvas->pixels != NULL;
}

void mix_canvas_close(mix_canvas *canvas) {
  mix_free(canvas->pixels);
  canvas->pixels = NULL;
}

void mix_canvas_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour) {
  int right = x + width < canvas->width ? x + width : canvas->width,
      below = y + height < canvas->height ? y + height : canvas->height;
  for (int row = y < 0 ? 0 : y; row < below; row++)
    for (int column = x < 0 ? 0 : x; column < right; column++) {
      uint8_t *pixel = canvas->pixels + 3 * ((size_t)row * (size_t)canvas->width + (size_t)column);
      pixel[0] = (uint8_t)(colour >> 16), pixel[1] = (uint8_t)(colour >> 8), pixel[2] = (uint8_t)colour;
    }
}

void mix_canvas_text(mix_canvas *canvas, int x, int y, int size, mix_colour colour, const char *text) {
  for (; *text; text++, x += MIX_GLYPH_WIDTH * size) {
    const uint8_t *glyph = mix_bitmap_font[(*text >= ' ' && *text <= '~' ? *text : '?') - ' '];
    for (int row = 0; row < MIX_GLYPH_ROWS; row++)
      for (int column = 0; column < MIX_GLYPH_WIDTH - 1; column++)
        if (glyph[row] >> (MIX_GLYPH_WIDTH - 2 - column) & 1)
          mix_canvas_fill(canvas, x + column * size, y + row * size, size, size, colour);
  }
}

mix_colour mix_colour_between(mix_colour a, mix_colour b, double t) {
  mix_colour mixed = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double from = (double)(a >> shift & 0xff), to = (double)(b >> shift & 0xff);
    mixed |= (mix_colour)(from + (to - from) * t + 0.5) << shift;
  }
  return mixed;
}

bool mix_canvas_write_png(const mix_canvas *canvas, const char *path, const char *call) {
  png_image image = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)canvas->width,
                     .height = (png_uint_32)canvas->height,
                     .format = PNG_FORMAT_RGB};
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  void *file = mix_alloc(size);
  if (!file) return false;
  bool good = png_image_write_to_memory(&image, file, &size, 0, canvas->pixels, 0, NULL) != 0;
  if (!good) mix_fail(MIX_INTERNAL_ERROR, "%s: libpng: %s", call, image.message);
  good = good && mix_file_replace(path, &(mix_bytes){file, size}, 1, call);
  mix_free(file);
  return good;
}
