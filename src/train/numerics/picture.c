/* The picture of a report, as PNG or in a page: a strip for each tensor. The strip shades the histogram of
 * magnitudes over powers of two, drawn over the range of the dtype. A bar in front shows zeros; marks behind
 * it show infinities and NaN. */
#include "base/error.h"
#include "base/format.h"
#include "train/numerics/canvas.h"
#include "train/numerics/numerics.h"
#include "ops/magnitudes.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>

enum {
  LETTER = 12, /* the width of one */
  TITLE = 18,
  MARGIN = 24,
  ROW = 26,
  STRIP = 20,
  LINE = 24,
  LINE_LETTERS = 127, /* of text */
  DTYPE = 60,         /* columns */
  ZEROS = 84,
  CELLS_WIDTH = 760,
  CELL_MIN = 7,
  LOWEST = -70, /* exponents */
  HIGHEST = 45,
  NAME_LETTERS = 128, /* letters */
  WIDTH_MIN = 1274    /* of the legend */
};

static const mix_colour INK = 0x1a1a1a, FAINT = 0x777777, GRID = 0xd0d0d0, OUTSIDE = 0xdedede,
                        NORMAL = 0xffffff, SUBNORMAL = 0xffe3b3, FEW = 0xc3daf0, MANY = 0x08306b,
                        ZERO = 0x9aa5ad, INFINITY_MARK = 0xd62728, NAN_MARK = 0x7b2d8b;

typedef struct picture {
  mix_canvas canvas;
  const mix_numerics *report;
  int lowest, highest, cell, name_width; /* lowest, highest: exponents shown; cell, name_width: pixels */
  int dtype_at, zeros_at, strip_at, marks_at, y;
  int max_rows, max_name, mark; /* of a panel; letters of a name; the width of a mark */
} picture;

static int strip_width(const picture *p) { return (p->highest - p->lowest + 1) * p->cell; }

/* ---- measuring ---- */

static int rows(const picture *p, bool gradient) {
  int count = 0;
  for (int i = 0; i < p->report->entry_count; i++)
    count += mix_numerics_drawn(&p->report->entries[i], gradient);
  return count < p->max_rows ? count : p->max_rows;
}

/* Extends the shown exponents to those that occur, and to the range of 16-bit tensors. */
static void extend_range(picture *p, const mix_numerics_entry *entry, const mix_numerics_sum *sum) {
  int lowest = mix_magnitude_lowest(entry->dtype);
  bool float16 = entry->dtype == MIX_FLOAT16;
  for (int b = 0; b < mix_magnitude_bins(entry->dtype); b++) {
    int exponent = lowest + b;
    if (!sum->bins[b] && !(float16 && (b == 0 || exponent == mix_magnitude_highest(MIX_FLOAT16)))) continue;
    if (exponent < p->lowest) p->lowest = exponent;
    if (exponent > p->highest) p->highest = exponent;
  }
}

static void measure(picture *p) {
  const mix_numerics *r = p->report;
  int longest = 12;
  p->lowest = -20, p->highest = 8;
  for (int i = 0; i < r->entry_count; i++) {
    const mix_numerics_entry *entry = &r->entries[i];
    if (!mix_numerics_drawn(entry, false)) continue;
    extend_range(p, entry, &entry->forward);
    extend_range(p, entry, &entry->gradient);
    int length = (int)(mix_letters(entry->layer) + mix_letters(entry->tensor)) + 1;
    if (length > longest) longest = length < p->max_name ? length : p->max_name;
  }
  p->lowest = p->lowest - 2 < LOWEST ? LOWEST : p->lowest - 2;
  p->highest = p->highest + 2 > HIGHEST ? HIGHEST : p->highest + 2;
  p->cell = CELLS_WIDTH / (p->highest - p->lowest + 1);
  if (p->cell < CELL_MIN) p->cell = CELL_MIN;
  p->name_width = LETTER * longest;
  p->dtype_at = MARGIN + p->name_width + 16;
  p->zeros_at = p->dtype_at + DTYPE;
  p->strip_at = p->zeros_at + ZEROS + 16;
  p->marks_at = p->strip_at + strip_width(p) + 10;
}

/* ---- text ---- */

/* Wraps text at spaces to lines of at most `max_letters` letters and draws them if `draw`. Returns the number
 * of lines. */
static int wrap_text(picture *p, const char *text, int max_letters, mix_colour colour, bool draw) {
  int lines = 0;
  while (*text) {
    char line[4 * LINE_LETTERS + 1];
    if (max_letters > LINE_LETTERS) max_letters = LINE_LETTERS;
    int length = (int)mix_letters_bytes(text, (size_t)max_letters);
    if (text[length]) {
      const int whole = length;
      while (length > whole / 2 && text[length] != ' ') length--;
      if (text[length] != ' ') length = whole;
    }
    snprintf(line, sizeof line, "%.*s", length, text);
    if (draw) mix_canvas_text(&p->canvas, MARGIN, p->y + lines * LINE, LETTER, colour, line);
    lines++;
    text += length;
    while (*text == ' ') text++;
  }
  return lines;
}

/* Title, verdict and advice. Returns the height. */
static int heading(picture *p, int width, bool draw) {
  const mix_numerics *r = p->report;
  const mix_numerics_conclusion *c = mix_numerics_conclude(r);
  int max_letters = (width - 2 * MARGIN) / LETTER, first = p->y;
  char text[2 * MIX_NUMERICS_TEXT];
  snprintf(text, sizeof text, "Numerics of %lld steps, policy %s; %lld skipped", (long long)r->steps,
           r->policy ? r->policy : "none", (long long)r->skipped);
  if (draw) mix_canvas_text(&p->canvas, MARGIN, p->y, TITLE, INK, text);
  p->y += LINE + 16;
  snprintf(text, sizeof text, "Verdict: %s. %s", c->status, c->text);
  p->y += LINE * wrap_text(p, text, max_letters, INK, draw);
  for (int i = 0; i < c->advice_count; i++) {
    snprintf(text, sizeof text, "* %s", c->advice[i].text);
    p->y += LINE * wrap_text(p, text, max_letters, FAINT, draw);
  }
  return p->y - first;
}

/* ---- strips ---- */

static int exponent_at(const picture *p, int exponent) {
  return p->strip_at + (exponent - p->lowest) * p->cell;
}

static void fill_exponents(picture *p, int y, int first, int last, mix_colour colour) {
  if (first < p->lowest) first = p->lowest;
  if (last > p->highest) last = p->highest;
  if (first <= last)
    mix_canvas_fill(&p->canvas, exponent_at(p, first), y, (last - first + 1) * p->cell, STRIP, colour);
}

/* The shade of a share of the nonzero values, on a logarithmic scale from a millionth to all. */
static mix_colour shade(double share) {
  double t = 1 + log10(share) / 6;
  return mix_colour_between(FEW, MANY, t < 0 ? 0 : t > 1 ? 1 : t);
}

static void draw_bins(picture *p, const mix_numerics_entry *entry, const mix_numerics_sum *sum, int y) {
  int lowest = mix_magnitude_lowest(entry->dtype), bins = mix_magnitude_bins(entry->dtype);
  double total = 0;
  int64_t below = 0, above = 0;
  for (int b = 0; b < bins; b++) total += (double)sum->bins[b];
  for (int b = 0; b < bins; b++) {
    if (!sum->bins[b]) continue;
    int exponent = lowest + b;
    if (exponent <= p->lowest || exponent >= p->highest) {
      /* The outermost cell counts everything beyond it. */
      int64_t *edge = exponent <= p->lowest ? &below : &above;
      *edge += sum->bins[b];
      exponent = exponent <= p->lowest ? p->lowest : p->highest;
      fill_exponents(p, y, exponent, exponent, shade((double)*edge / total));
      continue;
    }
    fill_exponents(p, y, exponent, exponent, shade((double)sum->bins[b] / total));
  }
}

static void draw_zeros(picture *p, const mix_numerics_statistics *s, int y) {
  double share = s->elements ? (double)s->zeros / (double)s->elements : 0;
  char text[16];
  snprintf(text, sizeof text,
           share > 0 && share < 0.01   ? "<1%%"
           : share < 1 && share > 0.99 ? ">99%%"
                                       : "%.0f%%",
           100 * share);
  mix_canvas_fill(&p->canvas, p->zeros_at, y, (int)(ZEROS * share + 0.5), STRIP, ZERO);
  mix_canvas_fill(&p->canvas, p->zeros_at, y + STRIP - 1, ZEROS, 1, GRID);
  if (s->zeros) mix_canvas_text(&p->canvas, p->zeros_at + 4, y + 3, LETTER, INK, text);
}

/* With the number on a page, else with its name. */
static void draw_mark(picture *p, int64_t count, int column, int y, mix_colour colour, const char *name) {
  char text[24];
  snprintf(text, sizeof text, "%lld", (long long)count);
  int x = p->marks_at + column * p->mark;
  if (count) {
    mix_canvas_fill(&p->canvas, x, y, p->mark - 4, STRIP, colour);
    mix_canvas_text(&p->canvas, x + 3, y + 3, LETTER, 0xffffff, p->canvas.svg ? text : name);
  } else {
    mix_canvas_fill(&p->canvas, x, y + STRIP - 1, p->mark - 4, 1, GRID);
  }
}

static const char *short_dtype(mix_dtype dtype) {
  return dtype == MIX_FLOAT16 ? "f16" : dtype == MIX_BFLOAT16 ? "bf16" : dtype == MIX_FLOAT32 ? "f32" : "f64";
}

static void draw_row(picture *p, const mix_numerics_entry *entry, bool gradient) {
  const mix_numerics_sum *sum = gradient ? &entry->gradient : &entry->forward;
  char name[4 * NAME_LETTERS + 1], full[4 * NAME_LETTERS];
  bool wrong = !mix_numerics_finite(&sum->statistics);
  snprintf(full, sizeof full, "%s/%s", entry->layer, entry->tensor);
  const bool cut = (int)mix_letters(full) > p->max_name;
  snprintf(name, sizeof name, "%.*s%s",
           (int)mix_letters_bytes(full, (size_t)(cut ? p->max_name - 2 : p->max_name)), full,
           cut ? ".." : "");
  mix_canvas_text(&p->canvas, MARGIN, p->y + 3, LETTER, wrong ? INFINITY_MARK : INK, name);
  if (gradient ? entry->first_gradient : entry->first_forward)
    mix_canvas_fill(&p->canvas, MARGIN - 14, p->y, 8, STRIP, INFINITY_MARK);
  mix_canvas_text(&p->canvas, p->dtype_at, p->y + 3, LETTER, FAINT, short_dtype(entry->dtype));
  draw_zeros(p, &sum->statistics, p->y);
  fill_exponents(p, p->y, p->lowest, p->highest, OUTSIDE);
  fill_exponents(p, p->y, mix_magnitude_lowest(entry->dtype), mix_magnitude_normal(entry->dtype) - 1,
                 SUBNORMAL);
  fill_exponents(p, p->y, mix_magnitude_normal(entry->dtype), mix_magnitude_highest(entry->dtype), NORMAL);
  for (int e = (p->lowest / 10) * 10; e <= p->highest; e += 10)
    if (e > p->lowest) mix_canvas_fill(&p->canvas, exponent_at(p, e), p->y, 1, STRIP, GRID);
  draw_bins(p, entry, sum, p->y);
  mix_canvas_fill(&p->canvas, p->strip_at, p->y + STRIP, strip_width(p), 1, GRID);
  draw_mark(p, sum->statistics.infinities, 0, p->y, INFINITY_MARK, "inf");
  draw_mark(p, sum->statistics.nans, 1, p->y, NAN_MARK, "nan");
  p->y += ROW;
}

static void draw_axis(picture *p) {
  mix_canvas_text(&p->canvas, p->zeros_at, p->y, LETTER, FAINT, "zeros");
  mix_canvas_text(&p->canvas, p->marks_at + 3, p->y, LETTER, FAINT, "inf");
  mix_canvas_text(&p->canvas, p->marks_at + p->mark + 3, p->y, LETTER, FAINT, "nan");
  for (int e = (p->lowest / 10) * 10; e <= p->highest; e += 10) {
    char text[16];
    snprintf(text, sizeof text, "2^%d", e);
    if (e <= p->lowest || exponent_at(p, e) + LETTER * (int)strlen(text) > p->marks_at) continue;
    mix_canvas_text(&p->canvas, exponent_at(p, e), p->y, LETTER, FAINT, text);
    mix_canvas_fill(&p->canvas, exponent_at(p, e), p->y + 18, 1, LINE - 18, FAINT);
  }
  p->y += LINE;
}

static void draw_panel(picture *p, const char *title, bool gradient) {
  const mix_numerics *r = p->report;
  int left = rows(p, gradient);
  mix_canvas_text(&p->canvas, MARGIN, p->y, LETTER, INK, title);
  p->y += LINE + 4;
  draw_axis(p);
  for (int i = 0; i < r->entry_count && left; i++) {
    const mix_numerics_entry *entry = &r->entries[gradient ? r->entry_count - 1 - i : i];
    if (!mix_numerics_drawn(entry, gradient)) continue;
    draw_row(p, entry, gradient);
    left--;
  }
  p->y += LINE;
}

static void draw_legend(picture *p) {
  static const struct {
    mix_colour colour;
    const char *text;
  } boxes[] = {{NORMAL, "normal"}, {SUBNORMAL, "subnormal"}, {OUTSIDE, "outside of the dtype"}};
  int x = MARGIN;
  for (int i = 0; i < 3; i++) {
    mix_canvas_fill(&p->canvas, x, p->y, 30, STRIP, FAINT);
    mix_canvas_fill(&p->canvas, x + 1, p->y + 1, 28, STRIP - 2, boxes[i].colour);
    mix_canvas_text(&p->canvas, x + 38, p->y + 3, LETTER, INK, boxes[i].text);
    x += 38 + LETTER * (int)strlen(boxes[i].text) + 24;
  }
  for (int i = 0; i <= 6; i++)
    mix_canvas_fill(&p->canvas, x + 24 * i, p->y, 24, STRIP, shade(pow(10, i - 6)));
  mix_canvas_text(&p->canvas, x + 7 * 24 + 8, p->y + 3, LETTER, INK, "0.0001% to 100% of the nonzero values");
  p->y += ROW;
  if (!p->report->incident_count) return;
  mix_canvas_fill(&p->canvas, MARGIN - 14, p->y, 8, STRIP, INFINITY_MARK);
  mix_canvas_text(&p->canvas, MARGIN, p->y + 3, LETTER, INK, "where a step went wrong first");
}

/* The height of what follows the heading. */
static int panels_height(const picture *p) {
  return LINE + (rows(p, true) ? 2 : 1) * (3 * LINE + 4) + (rows(p, false) + rows(p, true) + 2) * ROW;
}

static void draw_panels(picture *p) {
  draw_panel(p, "Forward pass: magnitudes as powers of two", false);
  if (rows(p, true))
    draw_panel(p,
               p->report->scaled ? "Gradients of the scaled loss, in backward order"
                                 : "Gradients of the loss, in backward order",
               true);
  draw_legend(p);
}

/* Returns the width. */
static int lay_out(picture *p) {
  measure(p);
  const int width = p->marks_at + 2 * p->mark + MARGIN;
  return width < WIDTH_MIN ? WIDTH_MIN : width;
}

void mix_numerics_put_picture(const mix_numerics *report, mix_text *page) {
  picture p = {.canvas.svg = page,
               .report = report,
               .y = 2,
               .max_rows = INT_MAX,
               .max_name = NAME_LETTERS,
               .mark = 130}; /* of ten digits */
  const int width = lay_out(&p), height = panels_height(&p);
  mix_text_put(page, "<svg id=\"strips\" width=\"100%%\" viewBox=\"0 0 %d %d\">\n", width, height);
  draw_panels(&p);
  mix_text_put(page, "</svg>\n");
}

mix_status mix_numerics_write_png(mix_numerics *report, const char *path) {
  if (!mix_given(report, &mix_numerics_class, "numerics_write_png", "a numerics report") ||
      !mix_numerics_given(report, "numerics_write_png"))
    return mix_error();
  if (!path || !*path) return mix_fail_status(MIX_TYPE_ERROR, "numerics_write_png: no path");
  picture p = {.report = report, .y = MARGIN, .max_rows = 1000, .max_name = 32, .mark = 44};
  const int width = lay_out(&p), height = 2 * MARGIN + heading(&p, width, false) + panels_height(&p);
  if (!mix_canvas_open(&p.canvas, width, height, mix_canvas_scale(width, height, 1), "numerics_write_png"))
    return mix_error();
  p.y = MARGIN;
  heading(&p, width, true);
  p.y += LINE;
  draw_panels(&p);
  mix_canvas_write_png(&p.canvas, path);
  mix_canvas_close(&p.canvas);
  return mix_error();
}
