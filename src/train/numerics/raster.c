/* Pictures in memory by cairo, which is loaded for the first one: few programs draw one, and it brings fonts
 * and a window system with it. */
#include "train/numerics/raster.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "formats/file.h"
#include <cairo.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- the library ---- */

#define FUNCTIONS(_)                                                                                         \
  _(image_surface_create_for_data)                                                                           \
  _(create)                                                                                                  \
  _(destroy)                                                                                                 \
  _(surface_destroy)                                                                                         \
  _(surface_write_to_png_stream)                                                                             \
  _(scale)                                                                                                   \
  _(paint)                                                                                                   \
  _(set_source_rgb)                                                                                          \
  _(rectangle)                                                                                               \
  _(move_to)                                                                                                 \
  _(fill)                                                                                                    \
  _(select_font_face)                                                                                        \
  _(set_font_size)                                                                                           \
  _(font_options_create)                                                                                     \
  _(font_options_destroy)                                                                                    \
  _(font_options_set_hint_metrics)                                                                           \
  _(font_options_set_antialias)                                                                              \
  _(set_font_options)                                                                                        \
  _(text_extents)                                                                                            \
  _(show_text)                                                                                               \
  _(status)                                                                                                  \
  _(status_to_string)

/* Declared as in cairo's own header. */
static struct {
#define POINTER(name) __typeof__(&cairo_##name) name;
  FUNCTIONS(POINTER)
#undef POINTER
  bool loaded;
} cairo;

static void load_library(void) {
#define ROW(name) {"cairo_" #name, &cairo.name},
  static const mix_library_function functions[] = {FUNCTIONS(ROW){NULL, NULL}};
#undef ROW
  cairo.loaded = mix_load_library((const char *const[]){"libcairo.so.2", NULL}, functions);
}

/* What fontconfig takes when it starts, and the fonts. */
enum { ROOM = 64 << 20 };

bool mix_canvas_available(const char *call) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (!mix_has_room(ROOM)) return false;
  pthread_once(&once, load_library);
  if (cairo.loaded) return true;
  return mix_fail_unsupported(
      "%s: pictures are drawn by the library cairo, which cannot be loaded; install it (on "
      "Debian the package libcairo2)",
      call);
}

static bool fail(const char *call, cairo_status_t status) {
  /* libpng has no other reason. */
  if (status == CAIRO_STATUS_NO_MEMORY || status == CAIRO_STATUS_PNG_ERROR)
    return mix_fail_memory("a picture");
  return mix_fail_internal("%s: cairo: %s", call, cairo.status_to_string(status));
}

/* ---- opening ---- */

/* The advance of a letter must not depend on the scale. */
static void choose_font(cairo_t *context) {
  cairo_font_options_t *options = cairo.font_options_create();
  cairo.font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo.font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo.set_font_options(context, options);
  cairo.font_options_destroy(options);
  cairo.select_font_face(context, "monospace", CAIRO_FONT_SLANT_NORMAL, CAIRO_FONT_WEIGHT_NORMAL);
}

bool mix_canvas_open(mix_canvas *canvas, int width, int height, double scale, const char *call) {
  *canvas = (mix_canvas){.call = call};
  if (!mix_canvas_available(call)) return false;
  const int columns = (int)fmax(1, width * scale), rows = (int)fmax(1, height * scale);
  canvas->pixels = mix_calloc((size_t)columns * (size_t)rows, 4);
  if (!canvas->pixels) return false;
  canvas->surface =
      cairo.image_surface_create_for_data(canvas->pixels, CAIRO_FORMAT_RGB24, columns, rows, 4 * columns);
  canvas->context = cairo.create(canvas->surface);
  cairo.set_source_rgb(canvas->context, 1, 1, 1);
  cairo.paint(canvas->context);
  cairo.scale(canvas->context, scale, scale);
  choose_font(canvas->context);
  const cairo_status_t status = cairo.status(canvas->context);
  if (status == CAIRO_STATUS_SUCCESS) return true;
  mix_canvas_close(canvas);
  return fail(call, status);
}

void mix_canvas_close(mix_canvas *canvas) {
  if (canvas->context) cairo.destroy(canvas->context);
  if (canvas->surface) cairo.surface_destroy(canvas->surface);
  mix_free(canvas->pixels);
  *canvas = (mix_canvas){0};
}

/* ---- drawing ---- */

static void set_colour(cairo_t *context, mix_colour colour) {
  cairo.set_source_rgb(context, (colour >> 16) / 255.0, (colour >> 8 & 0xff) / 255.0,
                       (colour & 0xff) / 255.0);
}

void mix_raster_fill(mix_canvas *canvas, int x, int y, int width, int height, mix_colour colour) {
  set_colour(canvas->context, colour);
  cairo.rectangle(canvas->context, x, y, width, height);
  cairo.fill(canvas->context);
}

void mix_raster_text(mix_canvas *canvas, int x, int y, int letter, mix_colour colour, const char *text) {
  cairo_text_extents_t extents;
  cairo.set_font_size(canvas->context, 2 * letter);
  cairo.text_extents(canvas->context, "H", &extents);
  if (!(extents.x_advance > 0)) return;
  const double size = 2.0 * letter * letter / extents.x_advance;
  cairo.set_font_size(canvas->context, size);
  cairo.text_extents(canvas->context, "H", &extents);
  set_colour(canvas->context, colour);
  cairo.move_to(canvas->context, x, y - extents.y_bearing);
  cairo.show_text(canvas->context, text);
}

/* ---- writing ---- */

typedef struct png_file {
  unsigned char *bytes;
  size_t size, capacity;
} png_file;

static cairo_status_t append(void *context, const unsigned char *bytes, unsigned count) {
  png_file *file = context;
  if (file->size + count > file->capacity) {
    const size_t capacity = 2 * (file->size + count);
    unsigned char *grown = mix_realloc(file->bytes, capacity);
    if (!grown) return CAIRO_STATUS_NO_MEMORY;
    file->bytes = grown, file->capacity = capacity;
  }
  memcpy(file->bytes + file->size, bytes, count);
  file->size += count;
  return CAIRO_STATUS_SUCCESS;
}

bool mix_canvas_write_png(const mix_canvas *canvas, const char *path) {
  png_file file = {0};
  cairo_status_t status = cairo.status(canvas->context);
  if (status == CAIRO_STATUS_SUCCESS)
    status = cairo.surface_write_to_png_stream(canvas->surface, append, &file);
  const bool good = status == CAIRO_STATUS_SUCCESS
                        ? mix_file_replace(path, &(mix_bytes){file.bytes, file.size}, 1, canvas->call)
                        : fail(canvas->call, status);
  mix_free(file.bytes);
  return good;
}
