/* A picture: in memory, drawn by cairo and written as PNG, or as elements of SVG in a text. */
#pragma once

#include "base/text.h"

typedef uint32_t mix_colour; /* 0xRRGGBB */

typedef struct mix_canvas {
  struct _cairo_surface *surface;
  struct _cairo *context;
  unsigned char *pixels;
  const char *call; /* whose errors name it */
  mix_text *svg;    /* the text in which it is drawn, without the rest; NULL: by cairo */
} mix_canvas;

/* Loads cairo; false with the error recorded where it is missing. Opening a canvas does it too. */
bool mix_canvas_available(const char *call);
/* Pixels a unit: the largest scale up to `wanted` at which a picture of that size can be drawn. */
double mix_canvas_scale(int width, int height, double wanted);
/* Opens a white canvas of `width` x `height` units; false with the error recorded. */
bool mix_canvas_open(mix_canvas *canvas, int width, int height, double scale, const char *call);
void mix_canvas_close(mix_canvas *canvas);
void mix_canvas_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour);
/* Draws a line of text whose capital letters begin at (x, y), above and to the left. Letters are `letter`
 * wide. What is not UTF-8 becomes '?'. */
void mix_canvas_text(mix_canvas *canvas, int x, int y, int letter, mix_colour colour, const char *text);
/* Interpolates between two colours: t = 0 is the first, 1 the second. */
mix_colour mix_colour_between(mix_colour a, mix_colour b, double t);
/* Replaces the file atomically. False with the error recorded, also one of drawing. */
bool mix_canvas_write_png(const mix_canvas *canvas, const char *path);
