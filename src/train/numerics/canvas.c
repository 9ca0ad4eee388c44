/* Rectangles and text, as SVG or in a picture of pixels (raster.h). */
#include "train/numerics/canvas.h"
#include "base/format.h"
#include "train/numerics/raster.h"
#include <math.h>
#include <string.h>

enum { MAX_SIDE = 32767 /* cairo's */, MAX_PIXELS = 1 << 28, TEXT_BYTES = 512 };

double mix_canvas_scale(int width, int height, double wanted) {
  const double side = MAX_SIDE / (double)(width > height ? width : height),
               area = sqrt(MAX_PIXELS / ((double)width * height));
  return fmin(wanted, fmin(side, area));
}

void mix_canvas_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour) {
  if (!canvas->svg) {
    mix_raster_fill(canvas, x, y, width, height, colour);
    return;
  }
  mix_text_put(canvas->svg, "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\"/>\n", x, y,
               width, height, (unsigned)colour);
}

/* The bytes of the UTF-8 character at `text`; 0: there is none. */
static int character_bytes(const unsigned char *text) {
  static const unsigned smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  const int bytes = text[0] < 0x80 ? 1 : text[0] < 0xc0 ? 0 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
  if (bytes < 2) return bytes;
  unsigned code = text[0] & (0x7fu >> bytes);
  for (int i = 1; i < bytes; i++) {
    if ((text[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (text[i] & 0x3f);
  }
  return code < smallest[bytes] || code > 0x10ffff || code >> 11 == 0x1b || text[0] >= 0xf8 ? 0 : bytes;
}

/* Cairo draws nothing more after a text that it refuses. */
static void make_printable(char *to, size_t size, const char *text) {
  const unsigned char *from = (const unsigned char *)text;
  size_t used = 0;
  while (*from) {
    const int bytes = character_bytes(from), taken = bytes ? bytes : 1;
    if (used + (size_t)taken >= size) break;
    if (bytes && *from >= ' ')
      memcpy(to + used, from, (size_t)bytes);
    else
      to[used] = '?';
    used += (size_t)taken, from += taken;
  }
  to[used] = '\0';
}

/* Monospaced letters are 0.6 of their size wide, capitals 0.72 high; textLength is for fonts that differ. */
static void put_text(mix_text *svg, int x, int y, int letter, mix_colour colour, const char *text) {
  mix_text_put(svg, "<text x=\"%d\" y=\"%d\" font-size=\"%d\" textLength=\"%d\" fill=\"#%06x\">", x,
               y + letter * 6 / 5, letter * 5 / 3, letter * (int)mix_letters(text), (unsigned)colour);
  mix_text_put_escaped(svg, text);
  mix_text_put(svg, "</text>\n");
}

void mix_canvas_text(mix_canvas *canvas, int x, int y, int letter, mix_colour colour, const char *text) {
  char printable[TEXT_BYTES];
  make_printable(printable, sizeof printable, text);
  if (canvas->svg)
    put_text(canvas->svg, x, y, letter, colour, printable);
  else
    mix_raster_text(canvas, x, y, letter, colour, printable);
}

mix_colour mix_colour_between(mix_colour a, mix_colour b, double t) {
  mix_colour mixed = 0;
  for (int shift = 0; shift <= 16; shift += 8) {
    double from = (double)(a >> shift & 0xff), to = (double)(b >> shift & 0xff);
    mixed |= (mix_colour)(from + (to - from) * t + 0.5) << shift;
  }
  return mixed;
}
