/* An RGB image in memory: rectangles and text, written as PNG. */
#ifndef MIX_TRAIN_NUMERICS_CANVAS_H
#define MIX_TRAIN_NUMERICS_CANVAS_H

#include <stdbool.h>
#include <stdint.h>

/* with one dot between letters */
enum { MIX_GLYPH_ROWS = 9, MIX_GLYPH_WIDTH = 6, MIX_GLYPH_HEIGHT = 7 /* without descenders */ };
/* ' ' to '~' */
extern const uint8_t mix_bitmap_font[95][MIX_GLYPH_ROWS];

typedef uint32_t mix_colour; /* 0xRRGGBB */

typedef struct mix_canvas {
  int width, height;
  uint8_t *pixels; /* (height, width, 3) */
} mix_canvas;

/* Opens a white canvas; false with the error recorded. */
bool mix_canvas_open(mix_canvas *canvas, int width, int height);
void mix_canvas_close(mix_canvas *canvas);
/* Clips to the canvas. */
void mix_canvas_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour);
/* Draws text with its upper left corner at (x, y), each dot a square of `size`. Non-ASCII characters become
 * '?'. */
void mix_canvas_text(mix_canvas *canvas, int x, int y, int size, mix_colour colour, const char *text);
static inline int mix_canvas_text_width(int size, int letters) { return letters * MIX_GLYPH_WIDTH * size; }
/* Interpolates between two colours: t = 0 is the first, 1 the second. */
mix_colour mix_colour_between(mix_colour a, mix_colour b, double t);
/* Replaces the file atomically. False with the error recorded. */
bool mix_canvas_write_png(const mix_canvas *canvas, const char *path, const char *call);

#endif
