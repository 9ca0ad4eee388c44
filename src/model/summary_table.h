/* The table of a summary: boxes, as rich draws them for Keras 3, or plain columns, as tf_keras prints them.
 */
#pragma once

#include "base/text.h"

enum { MIX_SUMMARY_COLUMNS = 4 };

typedef struct mix_summary_table {
  mix_text *out;
  bool boxes;
  int columns, width;
  int ends[MIX_SUMMARY_COLUMNS];   /* plain: where each column ends */
  int widths[MIX_SUMMARY_COLUMNS]; /* boxes: of the text in each */
  int rows;                        /* so far, the header included */
} mix_summary_table;

/* Begins a table of layers with or without their connections, for a terminal of that width. */
mix_summary_table mix_summary_table_begin(mix_text *out, bool boxes, bool connected, int terminal);
/* `cells` has a text for each column, which takes as many lines as it needs. */
void mix_summary_table_row(mix_summary_table *table, const char *const *cells);
void mix_summary_table_end(mix_summary_table *table);
/* Behind the totals. */
void mix_summary_table_close(mix_summary_table *table);
