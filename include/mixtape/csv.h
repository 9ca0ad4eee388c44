/* Tables in CSV files (RFC 4180): columns of numbers and of words, as arrays or as a data set. */
#ifndef MIXTAPE_CSV_H
#define MIXTAPE_CSV_H

#include <mixtape/dataset.h>

MIX_BEGIN_DECLARATIONS

/* What the columns of a table are: names, numbers or words, the words of each, the means of numbers. An
 * object, which owns the strings that it returns. A model that learned from one table reads others by it, so
 * that equal words are equal numbers; keep it beside the model's file. */
typedef struct mix_csv_columns mix_csv_columns;

typedef struct mix_csv_options {
  size_t size;
  const char *path; /* required; a regular file in UTF-8 */
  /* The column that is y; NULL: none. */
  const char *label;
  /* The columns that are x, in that order, as in a line of the file: "age,\"height, cm\"". NULL: all but the
   * label. */
  const char *features;
  /* Columns that hold words although their first value is a number, such as postal codes; as `features`. */
  const char *words;
  /* Of an empty field, or one that says NA, N/A, NaN, nan, NULL or null. NULL: "error"; "drop" leaves the row
   * out; "mean", or a number such as "0", fills numbers, and in a column of words the missing ones are a word
   * of their own, "". A label is never filled. */
  const char *missing;
  /* Of a word that the columns do not have. NULL: "error"; "index": in a feature the number of its words. */
  const char *unknown;
  /* Of another table: it then says label, features, words and, unless they are given, missing and unknown. */
  const mix_csv_columns *columns;
  bool no_label;         /* with columns: without y, for a table that has no label */
  const char *delimiter; /* one character; NULL: "," */
  bool no_header;        /* the first line is data; the columns are called "1", "2", ... */
  /* ---- of mix_csv_dataset ---- */
  int64_t batch_size;     /* 0: 32 */
  int64_t shuffle_buffer; /* rows among which each is drawn at random; 0: in the order of the file */
  int64_t seed;           /* of that: 0: derived from the global seed; MIX_INT_ZERO: 0 */
} mix_csv_options;

/* x: float32 (rows, features). y: (rows), float32 of numbers, int64 of words. A word is its number in the
 * sorted list of the column's words. What is not made is NULL, and all is after an error. */
typedef struct mix_csv_table {
  mix_tensor *x, *y;
  mix_dataset *dataset;
  mix_csv_columns *columns;
  int64_t rows;
} mix_csv_table;

/* Reads a table into x and y. A column holds numbers if its first value is one. The first line has the names,
 * quotes may hold delimiters, ends of lines and, written twice, quotes; blanks around fields without quotes
 * and blank lines are skipped.
 *
 * FormatError for what is no such file: a line with more or fewer fields than the first, a quote that is not
 * closed, a zero byte, no UTF-8, a field over 1 MiB. ValueError for what it holds: no such column, no number
 * where one is expected, a missing value, an unknown word; over 1,048,576 words in a column. Messages name
 * file, line and column. */
MIX_API mix_csv_table mix_csv_load_with(const mix_csv_options *options);
/* The same as a data set of batches (x, y), or (x), for files larger than memory: it is read once at first,
 * for the words, the means and the number of rows, and again in each pass, in pieces of 64 KiB, ahead of the
 * steps of fit. A file that changes in between is an IOError of the pass. */
MIX_API mix_csv_table mix_csv_dataset_with(const mix_csv_options *options);
#ifndef __cplusplus
/* mix_csv_load("iris.csv", .label = "species"), mix_csv_dataset("clicks.csv", .label = "bought",
 * .batch_size = 1024, .shuffle_buffer = 100000) */
#define mix_csv_load(...)                                                                                    \
  mix_csv_load_with(MIX_ARGUMENTS("mix_csv_load", "path, label, features", #__VA_ARGS__, mix_csv_options,    \
                                  .path = __VA_ARGS__))
#define mix_csv_dataset(...)                                                                                 \
  mix_csv_dataset_with(MIX_ARGUMENTS("mix_csv_dataset", "path, label, features", #__VA_ARGS__,               \
                                     mix_csv_options, .path = __VA_ARGS__))
#endif

/* The features; -1 is the label below. */
MIX_API int mix_csv_columns_count(const mix_csv_columns *columns);
/* The name of column `index`; NULL for -1: there is no label. ValueError out of range. */
MIX_API const char *mix_csv_columns_name(const mix_csv_columns *columns, int index);
/* How many words the column has; 0: it holds numbers. ValueError out of range. */
MIX_API int mix_csv_columns_word_count(const mix_csv_columns *columns, int index);
/* The word of that number. ValueError out of range. */
MIX_API const char *mix_csv_columns_word(const mix_csv_columns *columns, int index, int number);
/* As JSON in a file, which is replaced as a whole, and from there. FormatError for other contents. */
MIX_API mix_status mix_csv_columns_save(const mix_csv_columns *columns, const char *path);
MIX_API mix_csv_columns *mix_csv_columns_load(const char *path);

MIX_END_DECLARATIONS
#endif
