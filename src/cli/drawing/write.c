/* Drawings as graphviz text, SVG and PNG. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/drawing/drawing.h"
#include "formats/file.h"
#include "train/numerics/canvas.h"
#include <string.h>

enum { ARROW = 4, BIG = 2, LINES = 0x444444 };

static char *finished(mix_text *out) {
  if (!out->failed) return out->text;
  mix_free(out->text);
  return NULL;
}

/* ---- graphviz ---- */

static void put_dot_line(mix_text *out, const char *line) {
  for (; *line; line++) mix_text_put(out, "%s%c", *line == '"' || *line == '\\' ? "\\" : "", *line);
}

char *drawing_dot(const drawing *d) {
  mix_text out = {.grows = true};
  mix_text_put(&out, "digraph model {\n  node [shape=box, style=filled, fontname=monospace, fontsize=10];\n");
  for (int i = 0; i < d->node_count; i++) {
    mix_text_put(&out, "  n%d [fillcolor=\"#%06x\", label=\"", i, (unsigned)d->nodes[i].colour);
    for (int line = 0; line < drawing_line_count(&d->nodes[i]); line++) {
      mix_text_put(&out, line ? "\\n" : "");
      put_dot_line(&out, d->nodes[i].lines[line]);
    }
    mix_text_put(&out, "\"];\n");
  }
  for (int i = 0; i < d->edge_count; i++)
    mix_text_put(&out, "  n%d -> n%d;\n", d->edges[i].from, d->edges[i].to);
  mix_text_put(&out, "}\n");
  return finished(&out);
}

/* ---- SVG ---- */

static void put_box(mix_text *out, const drawing_node *node) {
  const double left = node->centre - node->width / 2.0;
  mix_text_put(
      out, "<rect x=\"%.1f\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#%06x\" stroke=\"#444\" rx=\"2\"/>\n",
      left, node->y, node->width, node->height, (unsigned)node->colour);
  for (int i = 0; i < drawing_line_count(node); i++) {
    mix_text_put(out, "<text x=\"%.1f\" y=\"%d\"%s>", node->centre,
                 node->y + DRAWING_MARGIN / 2 + DRAWING_LINE * (i + 1) - 3, i ? "" : " font-weight=\"bold\"");
    mix_text_put_escaped(out, node->lines[i]);
    mix_text_put(out, "</text>\n");
  }
}

static void put_edge(mix_text *out, const drawing *d, const drawing_edge *edge) {
  const drawing_node *from = &d->nodes[edge->from], *to = &d->nodes[edge->to];
  mix_text_put(out, "<path d=\"M%.1f %dV%dH%.1fV%d\"/>\n", from->centre, from->y + from->height,
               drawing_edge_height(d, edge), to->centre, to->y + (to->waypoint ? to->height : 0));
  if (!to->waypoint)
    mix_text_put(out, "<path d=\"M%.1f %dl-%d -%dh%dz\" fill=\"#444\"/>\n", to->centre, to->y, ARROW,
                 2 * ARROW, 2 * ARROW);
}

char *drawing_svg(const drawing *d) {
  mix_text out = {.grows = true};
  mix_text_put(&out,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
               "<g fill=\"none\" stroke=\"#444\">\n",
               d->width * 3 / 2, d->height * 3 / 2, d->width, d->height);
  for (int i = 0; i < d->edge_count; i++) put_edge(&out, d, &d->edges[i]);
  mix_text_put(&out, "</g>\n<g font-family=\"monospace\" font-size=\"10\" text-anchor=\"middle\">\n");
  for (int i = 0; i < d->node_count; i++)
    if (!d->nodes[i].waypoint) put_box(&out, &d->nodes[i]);
  mix_text_put(&out, "</g>\n</svg>\n");
  return finished(&out);
}

/* ---- PNG ---- */

static void draw_line(mix_canvas *canvas, double x, double y, double past_x, double past_y) {
  const double left = x < past_x ? x : past_x, right = x < past_x ? past_x : x;
  mix_canvas_fill(canvas, left - 0.5, y, right - left + 1, past_y - y + 1, LINES);
}

static void draw_edge(mix_canvas *canvas, const drawing *d, const drawing_edge *edge) {
  const drawing_node *from = &d->nodes[edge->from], *to = &d->nodes[edge->to];
  const int height = drawing_edge_height(d, edge);
  draw_line(canvas, from->centre, from->y + from->height, from->centre, height);
  draw_line(canvas, from->centre, height, to->centre, height);
  draw_line(canvas, to->centre, height, to->centre, to->y + (to->waypoint ? to->height : -1));
  const double arrow[3][2] = {
      {to->centre, to->y}, {to->centre - ARROW, to->y - 2 * ARROW}, {to->centre + ARROW, to->y - 2 * ARROW}};
  if (!to->waypoint) mix_canvas_triangle(canvas, arrow, LINES);
}

static void draw_box(mix_canvas *canvas, const drawing_node *node) {
  const double left = node->centre - node->width / 2.0;
  mix_canvas_fill(canvas, left, node->y, node->width, node->height, LINES);
  mix_canvas_fill(canvas, left + 1, node->y + 1, node->width - 2, node->height - 2, node->colour);
  for (int i = 0; i < drawing_line_count(node); i++)
    mix_canvas_text(canvas, node->centre - DRAWING_LETTER * (double)mix_letters(node->lines[i]) / 2.0,
                    node->y + DRAWING_MARGIN / 2 + DRAWING_LINE * i + 3, DRAWING_LETTER, 0x000000,
                    node->lines[i]);
}

bool drawing_write_png(const drawing *d, const char *path) {
  const double scale = mix_canvas_scale(d->width, d->height, BIG);
  if (scale < 1)
    return mix_fail(MIX_VALUE_ERROR, "%s: %d x %d points are too many for a PNG; name an .svg", path,
                    d->width, d->height);
  mix_canvas canvas;
  if (!mix_canvas_open(&canvas, d->width, d->height, scale, "summary")) return false;
  for (int i = 0; i < d->edge_count; i++) draw_edge(&canvas, d, &d->edges[i]);
  for (int i = 0; i < d->node_count; i++)
    if (!d->nodes[i].waypoint) draw_box(&canvas, &d->nodes[i]);
  const bool good = mix_canvas_write_png(&canvas, path);
  mix_canvas_close(&canvas);
  return good;
}

/* ---- by the name's end ---- */

static bool write_text(const char *path, char *text) {
  const bool good = text && mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, "summary");
  mix_free(text);
  return good;
}

bool cli_draw_model(const char *path, mix_model *model) {
  drawing d;
  const char *end = strrchr(path, '.');
  const bool dot = !strcmp(end, ".dot");
  bool good = drawing_of_model(&d, model) && (dot || drawing_lay_out(&d));
  if (good)
    good = dot                    ? write_text(path, drawing_dot(&d))
           : !strcmp(end, ".svg") ? write_text(path, drawing_svg(&d))
                                  : drawing_write_png(&d, path);
  drawing_free(&d);
  return good;
}
