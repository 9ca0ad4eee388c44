/* In place of train/numerics/raster.c. No canvas opens, so that nothing is drawn. */
#include "base/features.h"
#include "train/numerics/raster.h"

bool mix_canvas_available(const char *call) { return mix_fail_absent(call, "drawing"); }
bool mix_canvas_open(mix_canvas *canvas, int width, int height, double scale, const char *call) {
  *canvas = (mix_canvas){.call = call};
  return mix_fail_absent(call, "drawing");
}
void mix_canvas_close(mix_canvas *canvas) {}
bool mix_canvas_write_png(const mix_canvas *canvas, const char *path) {
  return mix_fail_absent(canvas->call, "drawing");
}
void mix_raster_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour) {}
void mix_raster_text(mix_canvas *canvas, int x, int y, int letter, mix_colour colour, const char *text) {}
