/* The report as one page of HTML that needs no other file: verdict and advice, curves of loss and loss scale,
 * and the picture, as inline SVG. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/number.h"
#include "formats/file.h"
#include "train/numerics/numerics.h"
#include <math.h>
#include <string.h>

enum { WIDTH = 720, CURVE = 140 };

static const char *const style =
    "body{font:14px sans-serif;color:#1a1a1a;max-width:1150px;margin:2em auto}"
    "svg{display:block}.curve text{font:11px sans-serif;fill:#777}#strips text{font-family:monospace}";

/* Between two texts. Not by %f, which writes 0,5 in some locales. */
static void put_number(mix_text *t, const char *before, char form, int digits, double x, const char *after) {
  char number[400]; /* the largest double with %.1f has 311 characters */
  mix_number_write(number, sizeof number, form, digits, x);
  mix_text_put(t, "%s%s%s", before, number, after);
}

static void put_heading(mix_text *t, const mix_numerics *r) {
  const mix_numerics_conclusion *c = mix_numerics_conclude(r);
  mix_text_put(t,
               "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>Numerics</title>");
  mix_text_put(t, "<style>%s</style></head><body>\n<h1>Numerics of %lld steps, policy ", style,
               (long long)r->steps);
  mix_text_put_escaped(t, r->policy ? r->policy : "none");
  mix_text_put(t, "; %lld skipped</h1>\n<p id=\"verdict\"><b>Verdict: %s.</b> ", (long long)r->skipped,
               c->status);
  mix_text_put_escaped(t, c->text);
  mix_text_put(t, "</p>\n");
  if (c->advice_count) mix_text_put(t, "<ul id=\"advice\">\n");
  for (int i = 0; i < c->advice_count; i++) {
    mix_text_put(t, "<li>");
    mix_text_put_escaped(t, c->advice[i].text);
    mix_text_put(t, "</li>\n");
  }
  if (c->advice_count) mix_text_put(t, "</ul>\n");
}

/* ---- curves ---- */

static double loss_at(const mix_numerics_point *p) { return p->loss; }
static double scale_at(const mix_numerics_point *p) { return p->scale; }

static void put_end(mix_text *t, int y, int digits, double value) {
  mix_text_put(t, "<text x=\"%d\" y=\"%d\">", WIDTH + 6, y);
  put_number(t, "", 'g', digits, value, "</text>");
}

/* With as many digits as tell the ends apart; one number where the curve is flat. */
static void put_ends(mix_text *t, double low, double high) {
  char a[40], b[40];
  int digits = 4;
  for (; digits < 17; digits++) {
    mix_number_write(a, sizeof a, 'g', digits, low);
    mix_number_write(b, sizeof b, 'g', digits, high);
    if (low == high || strcmp(a, b)) break;
  }
  if (low == high) {
    put_end(t, CURVE / 2 + 4, digits, low);
    return;
  }
  put_end(t, 12, digits, high);
  put_end(t, CURVE, digits, low);
}

/* On a logarithmic axis where all values are positive. Steps that were skipped are red dots below. */
static void put_curve(mix_text *t, const mix_numerics *r, const char *id, const char *title,
                      double (*value)(const mix_numerics_point *)) {
  double low = INFINITY, high = -INFINITY;
  for (int i = 0; i < r->point_count; i++) {
    const double v = value(&r->points[i]);
    if (isfinite(v)) low = fmin(low, v), high = fmax(high, v);
  }
  const bool any = low <= high, logarithmic = any && low > 0;
  const double bottom = logarithmic ? log2(low) : low, span = (logarithmic ? log2(high) : high) - bottom;
  const double step = r->point_count > 1 ? (double)WIDTH / (r->point_count - 1) : 0;
  mix_text_put(t, "<h2>%s</h2>\n<svg id=\"%s\" class=\"curve\" width=\"%d\" height=\"%d\">", title, id,
               WIDTH + 120, CURVE + 24);
  mix_text_put(t, "<rect width=\"%d\" height=\"%d\" fill=\"#f6f6f6\"/>", WIDTH, CURVE);
  bool drawing = false;
  for (int i = 0; i < r->point_count; i++) {
    const double v = value(&r->points[i]), x = step * i;
    if (!isfinite(v)) {
      if (drawing) mix_text_put(t, "\"/>");
      drawing = false;
      continue;
    }
    const double y =
        CURVE - 8 - (CURVE - 16) * (span > 0 ? ((logarithmic ? log2(v) : v) - bottom) / span : 0.5);
    if (!drawing)
      mix_text_put(t, "<polyline fill=\"none\" stroke=\"#08306b\" stroke-width=\"1.5\" points=\"");
    drawing = true;
    put_number(t, "", 'f', 1, x, ",");
    put_number(t, "", 'f', 1, y, " ");
  }
  if (drawing) mix_text_put(t, "\"/>");
  for (int i = 0; i < r->point_count; i++)
    if (!r->points[i].applied) {
      put_number(t, "<circle class=\"skipped\" cx=\"", 'f', 1, step * i, "\"");
      mix_text_put(t, " cy=\"%d\" r=\"2\" fill=\"#d62728\"/>", CURVE - 3);
    }
  if (any) put_ends(t, low, high);
  mix_text_put(t, "<text x=\"0\" y=\"%d\">step 1</text><text x=\"%d\" y=\"%d\">%lld</text></svg>\n",
               CURVE + 16, WIDTH - 20, CURVE + 16, (long long)r->steps);
}

mix_status mix_numerics_write_html(mix_numerics *r, const char *path) {
  if (!mix_given(r, &mix_numerics_class, "numerics_write_html", "a numerics report") ||
      !mix_numerics_given(r, "numerics_write_html"))
    return mix_error();
  if (!path || !*path) return mix_fail_status(MIX_TYPE_ERROR, "numerics_write_html: no path");
  mix_text t = {.grows = true};
  put_heading(&t, r);
  put_curve(&t, r, "loss", "Loss", loss_at);
  if (r->scaled) put_curve(&t, r, "scale", "Loss scale; red: skipped steps", scale_at);
  mix_numerics_put_picture(r, &t);
  mix_text_put(&t, "</body></html>\n");
  if (!t.failed) mix_file_replace(path, &(mix_bytes){t.text, t.used}, 1, "numerics_write_html");
  mix_free(t.text);
  return mix_error();
}
