/* Pictures that were written, as pixels. */
#ifndef MIX_TESTS_SUPPORT_PICTURE_H
#define MIX_TESTS_SUPPORT_PICTURE_H

#include <png.h>
#include <stdlib.h>

typedef struct picture {
  png_image image;       /* width and height */
  unsigned char *pixels; /* of three bytes; free them */
} picture;

static inline picture read_picture(const char *path) {
  picture p = {.image = {.version = PNG_IMAGE_VERSION}};
  assert_true(png_image_begin_read_from_file(&p.image, path));
  p.image.format = PNG_FORMAT_RGB;
  p.pixels = malloc(PNG_IMAGE_SIZE(p.image));
  assert_non_null(p.pixels);
  assert_true(png_image_finish_read(&p.image, NULL, p.pixels, 0, NULL));
  return p;
}

static inline unsigned pixel_at(const picture *p, int x, int y) {
  const unsigned char *pixel = p->pixels + 3 * ((size_t)y * p->image.width + (size_t)x);
  return (unsigned)pixel[0] << 16 | (unsigned)pixel[1] << 8 | pixel[2];
}

/* How many pixels of a rectangle have the colour. */
static inline int pixels_in(const picture *p, int x, int y, int width, int height, unsigned colour) {
  int count = 0;
  for (int row = y; row < y + height; row++)
    for (int column = x; column < x + width; column++) count += pixel_at(p, column, row) == colour;
  return count;
}
static inline int pixels_of(const picture *p, unsigned colour) {
  return pixels_in(p, 0, 0, (int)p->image.width, (int)p->image.height, colour);
}

#endif
