/* A pass over a table: its records become rows of numbers. */
#pragma once

#include "data/sources/csv_columns.h"
#include "formats/csv.h"

/* Which file, and how it is read. */
typedef struct mix_csv_source {
  const char *path; /* interned */
  char delimiter;
  bool no_header, labelled;
  mix_csv_columns *columns; /* retained */
  mix_csv_rules rules;
  int64_t rows; /* that are kept */
} mix_csv_source;

/* Takes the options and reads the file once: learns its columns, unless the options have them, and counts the
 * rows. False with the error recorded; release it in any case. */
bool mix_csv_source_begin(mix_csv_source *source, const mix_csv_options *options, const char *call);
void mix_csv_source_release(mix_csv_source *source);

typedef struct mix_csv_pass {
  const mix_csv_source *source;
  mix_csv_reader reader;
  int *places; /* of the columns among the fields */
  int width;   /* fields of a record */
  bool held;   /* the first record, which is no header, is still to be taken */
} mix_csv_pass;

typedef struct mix_csv_label {
  float number;
  int64_t word;
} mix_csv_label;

/* Opens the file and finds the columns. False with the error recorded; end it in any case. */
bool mix_csv_pass_begin(mix_csv_pass *pass, const mix_csv_source *source);
/* Converts the next row that is kept. False at the end, or with the error recorded. */
bool mix_csv_pass_row(mix_csv_pass *pass, float *x, mix_csv_label *label);
void mix_csv_pass_end(mix_csv_pass *pass);
