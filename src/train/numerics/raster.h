/* What draws the pixels of a canvas that is not SVG; it opens, closes and writes one too (canvas.h). */
#pragma once

#include "train/numerics/canvas.h"

void mix_raster_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour);
void mix_raster_text(mix_canvas *canvas, int x, int y, int letter, mix_colour colour, const char *text);
