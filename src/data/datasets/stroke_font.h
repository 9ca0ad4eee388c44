/* The stroke font of the built-in digits. */
#pragma once

#include <stdint.h>

#define MIX_GLYPH_STROKES 3
#define MIX_GLYPH_POINTS 12

/* A Catmull-Rom curve through its points. x points right, y points down, both 0 to 100 in the box of the
 * digit. A repeated point makes a corner. */
typedef struct mix_stroke {
  int count;
  int8_t points[MIX_GLYPH_POINTS][2];
} mix_stroke;

/* One variant of a digit. */
typedef struct mix_stroke_glyph {
  int digit, stroke_count;
  mix_stroke strokes[MIX_GLYPH_STROKES];
} mix_stroke_glyph;

#define MIX_GLYPH_VARIANTS 3
/* Every digit has all variants. */
extern const mix_stroke_glyph mix_stroke_font[10][MIX_GLYPH_VARIANTS];
