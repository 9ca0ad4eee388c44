/* Rows of a summary, broken into lines as rich and tf_keras break them. */
#include "model/summary_table.h"

#include <string.h>

/* ---- characters ---- */

static bool is_first_byte(char c) { return ((unsigned char)c & 0xC0) != 0x80; }

/* The number of characters in so many bytes of UTF-8. */
static int length_of(const char *text, size_t bytes) {
  int length = 0;
  for (size_t i = 0; i < bytes; i++) length += is_first_byte(text[i]);
  return length;
}

/* The bytes of the first characters, at most `count` of them. */
static size_t bytes_of(const char *text, int count) {
  size_t i = 0;
  while (text[i] && (count > 0 || !is_first_byte(text[i]))) count -= is_first_byte(text[i++]);
  return i;
}

static void put_times(mix_text *out, const char *piece, int times) {
  for (int i = 0; i < times; i++) mix_text_put(out, "%s", piece);
}

/* ---- boxes ---- */

typedef struct line_marks {
  const char *left, *line, *between, *right;
} line_marks;
static const line_marks top = {"┏", "━", "┳", "┓"}, below_header = {"┡", "━", "╇", "┩"},
                        between_rows = {"├", "─", "┼", "┤"}, bottom = {"└", "─", "┴", "┘"};

static void put_line(const mix_summary_table *t, const line_marks *marks) {
  for (int i = 0; i < t->columns; i++) {
    mix_text_put(t->out, "%s", i ? marks->between : marks->left);
    put_times(t->out, marks->line, t->widths[i] + 2);
  }
  mix_text_put(t->out, "%s\n", marks->right);
}

/* The bytes of the next line. Lines end between words; a word that is too long for a line is not broken. */
static size_t next_line(const char *text, int width) {
  size_t end = 0;
  for (int used = 0; text[end];) {
    const size_t word = strcspn(text + end, " "), whole = word + strspn(text + end + word, " ");
    if (end && width - used < length_of(text + end, word)) break;
    used += length_of(text + end, whole);
    end += whole;
  }
  return end;
}

/* One line of a cell, with an ellipsis if it is too long. Numbers are aligned at the right. */
static void put_cell(const mix_summary_table *t, int column, const char *text, size_t bytes) {
  const int width = t->widths[column];
  const bool number = column == 2;
  while (bytes && text[bytes - 1] == ' ') bytes--;
  const int length = length_of(text, bytes), spaces = length < width ? width - length : 0;
  if (number) put_times(t->out, " ", spaces);
  if (length > width)
    mix_text_put(t->out, "%.*s…", (int)bytes_of(text, width - 1), text);
  else
    mix_text_put(t->out, "%.*s", (int)bytes, text);
  if (!number) put_times(t->out, " ", spaces);
}

static void put_box_row(mix_summary_table *t, const char *const *cells) {
  const char *left[MIX_SUMMARY_COLUMNS], *mark = t->rows ? "│" : "┃";
  bool more = true;
  put_line(t, t->rows == 0 ? &top : t->rows == 1 ? &below_header : &between_rows);
  for (int i = 0; i < t->columns; i++) left[i] = cells[i];
  while (more) {
    more = false;
    for (int i = 0; i < t->columns; i++) {
      const size_t bytes = next_line(left[i], t->widths[i]);
      mix_text_put(t->out, "%s ", mark);
      put_cell(t, i, left[i], bytes);
      mix_text_put(t->out, " ");
      left[i] += bytes;
      more |= *left[i] != 0;
    }
    mix_text_put(t->out, "%s\n", mark);
  }
}

/* ---- plain ---- */

/* A line of a shape or a list ends behind an item. */
static size_t end_of_item(const char *text, size_t bytes) {
  static const char *const ends[] = {"),", "},", "],", "',"};
  for (size_t end = 2; end <= bytes; end++)
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
      if (!memcmp(text + end - 2, ends[i], 2)) return end;
  return bytes;
}

static bool any_left(const mix_summary_table *t, const char *const *left) {
  for (int i = 0; i < t->columns; i++)
    if (*left[i]) return true;
  return false;
}

static void put_plain_row(const mix_summary_table *t, const char *const *cells) {
  const char *left[MIX_SUMMARY_COLUMNS];
  for (int i = 0; i < t->columns; i++) left[i] = cells[i];
  while (any_left(t, left)) {
    int at = 0;
    for (int i = 0; i < t->columns; i++) {
      const bool last = i == t->columns - 1;
      const int room = t->ends[i] - (i ? t->ends[i - 1] : 0) - (last ? 0 : 3);
      const size_t bytes = end_of_item(left[i], bytes_of(left[i], room));
      if (!i) mix_text_put(t->out, " "), at++;
      mix_text_put(t->out, "%.*s%s", (int)bytes, left[i], last ? "" : "  ");
      at += length_of(left[i], bytes) + (last ? 0 : 2);
      left[i] += bytes;
      for (; at < t->ends[i]; at++) mix_text_put(t->out, " ");
    }
    mix_text_put(t->out, "\n");
  }
}

static void put_rule(const mix_summary_table *t, const char *piece) {
  put_times(t->out, piece, t->width);
  mix_text_put(t->out, "\n");
}

/* ---- tables ---- */

/* Shares of the width at which the columns end, in percent. */
static void lay_out(mix_summary_table *t, const int *percents) {
  for (int i = 0; i < t->columns; i++) t->ends[i] = t->width * percents[i] / 100;
}

/* rich takes what the frames are too wide, a share of each column in turn, rounded to even. */
static void narrow_boxes(mix_summary_table *t) {
  int excess = 3 * t->columns + 1;
  for (int i = 0; i < t->columns; i++) {
    const int left = t->columns - i, twice = 2 * excess;
    int share = (twice + left) / (2 * left);
    if ((twice + left) % (2 * left) == 0 && share % 2) share--;
    t->widths[i] = t->ends[i] - (i ? t->ends[i - 1] : 0) - share;
    if (t->widths[i] < 1) t->widths[i] = 1;
    excess -= share;
  }
}

mix_summary_table mix_summary_table_begin(mix_text *out, bool boxes, bool connected, int terminal) {
  static const int percents[2][2][MIX_SUMMARY_COLUMNS] = {{{45, 85, 100}, {30, 60, 70, 100}},
                                                          {{45, 80, 100}, {30, 56, 74, 100}}};
  static const int widths[2][2] = {{65, 98}, {88, 108}};
  static const char *const header[] = {"Layer (type)", "Output Shape", "Param #", "Connected to"};
  mix_summary_table t = {
      .out = out, .boxes = boxes, .columns = connected ? 4 : 3, .width = widths[boxes][connected]};
  if (boxes && terminal - 4 < t.width) t.width = terminal > 24 ? terminal - 4 : 20;
  lay_out(&t, percents[boxes][connected]);
  if (boxes)
    narrow_boxes(&t);
  else
    put_rule(&t, "_");
  mix_summary_table_row(&t, header);
  return t;
}

void mix_summary_table_row(mix_summary_table *t, const char *const *cells) {
  if (t->boxes)
    put_box_row(t, cells);
  else
    put_plain_row(t, cells);
  if (!t->boxes) put_rule(t, t->rows ? " " : "=");
  t->rows++;
}

void mix_summary_table_end(mix_summary_table *t) {
  if (t->boxes)
    put_line(t, &bottom);
  else
    put_rule(t, "=");
}

void mix_summary_table_close(mix_summary_table *t) {
  if (!t->boxes) put_rule(t, "_");
}
