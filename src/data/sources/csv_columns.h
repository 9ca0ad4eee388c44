/* What the columns of a table hold. */
#pragma once

#include "base/key_map.h"
#include "base/object.h"
#include <mixtape/csv.h>

enum { MIX_CSV_WORDS_MAX = 1 << 20 }; /* of a column */

/* Words, numbered in the order of their finding until they are sorted. Zeroed: none. */
typedef struct mix_vocabulary {
  char **items;
  int count, room;
  mix_key_map numbers; /* by hash */
} mix_vocabulary;
/* The number of the word; -1: it is none. */
int mix_vocabulary_find(const mix_vocabulary *words, const char *word);
/* The number of the word, which is added if need be; -1 with the error recorded. */
int mix_vocabulary_add(mix_vocabulary *words, const char *word);
bool mix_vocabulary_sort(mix_vocabulary *words);
void mix_vocabulary_release(mix_vocabulary *words);

typedef struct mix_csv_column {
  char *name;
  bool known;    /* what it holds; a first value decides */
  bool of_words; /* else of numbers */
  double mean;   /* of numbers; while they are read their sum */
  int64_t count;
  mix_vocabulary words;
} mix_csv_column;

/* What becomes of missing values and unknown words. */
typedef struct mix_csv_rules {
  enum { MIX_CSV_REFUSE, MIX_CSV_DROP, MIX_CSV_MEAN, MIX_CSV_FILL } missing;
  double fill;
  bool unknown_index;
} mix_csv_rules;
/* Reads the options' words; NULL leaves what is there. False with the error recorded. */
bool mix_csv_rules_read(mix_csv_rules *rules, const char *missing, const char *unknown, const char *call);

struct mix_csv_columns {
  mix_object object;
  mix_csv_column *items; /* features, then the label */
  int features, count, room;
  mix_csv_rules rules;
};
/* With one reference, the caller's. */
mix_csv_columns *mix_csv_columns_new(void);
/* A new last column. NULL with the error recorded. */
mix_csv_column *mix_csv_columns_add(mix_csv_columns *columns, const char *name);
static inline bool mix_csv_columns_labelled(const mix_csv_columns *columns) {
  return columns->count > columns->features;
}
bool mix_csv_columns_given(const mix_csv_columns *columns, const char *call);
