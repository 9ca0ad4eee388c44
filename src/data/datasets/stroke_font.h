/* The strokes of the built-in digits. */
#ifndef MIX_DATA_DATASETS_STROKE_FONT_H
#define MIX_DATA_DATASETS_STROKE_FONT_H

#include <stdint.h>

#define MIX_GLYPH_STROKES 3
#define MIX_GLYPH_POINTS 12

/* A stroke passes through its points in turn (Catmull-Rom); corners are where one stroke ends and another begins. x to the right, y down,
 * both 0 to 100 in the box of the digit. Repeating a point makes a corner of it. */
typedef struct mix_stroke {
  int count;
  int8_t points[MIX_GLYPH_POINTS][2];
} mix_stroke;

/* One way to write a digit. */
typedef struct mix_stroke_glyph {
  int digit, stroke_count;
  mix_stroke strokes[MIX_GLYPH_STROKES];
} mix_stroke_glyph;

#define MIX_GLYPH_VARIANTS 3
/* Variants of each digit, all present. */
extern const mix_stroke_glyph mix_stroke_font[10][MIX_GLYPH_VARIANTS];

#endif
