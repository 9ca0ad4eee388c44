/* Reads tables: finds columns by name, learns what they hold, converts fields to numbers. */
#include "data/sources/csv_table.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/number.h"
#include "base/text.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* The names of a file's columns, and where each stands; TWICE: the name is that of several. */
typedef struct header {
  mix_vocabulary names;
  int *places, room;
} header;
enum { TWICE = -2 };

static void release_header(header *h) {
  mix_vocabulary_release(&h->names);
  mix_free(h->places);
}

/* From the record that was read last. */
static bool read_header(header *h, const mix_csv_reader *reader, bool no_header) {
  char number[16];
  for (int i = 0; i < reader->count; i++) {
    snprintf(number, sizeof number, "%d", i + 1);
    const int known = h->names.count,
              name = mix_vocabulary_add(&h->names, no_header ? number : reader->fields[i].text);
    if (name < 0 || !mix_reserve(&h->places, &h->room, h->names.count, sizeof *h->places)) return false;
    h->places[name] = h->names.count > known ? i : TWICE;
  }
  return true;
}

static const char *list_names(const header *h, char *list, size_t size) {
  mix_text out = {.text = list, .size = size};
  for (int i = 0; i < h->names.count; i++) mix_text_put(&out, "%s%s", i ? ", " : "", h->names.items[i]);
  return list;
}

/* -1 with the error recorded. */
static int place_of(const header *h, const char *name, const char *path) {
  char list[300];
  const int number = mix_vocabulary_find(&h->names, name);
  if (number >= 0 && h->places[number] >= 0) return h->places[number];
  if (number >= 0)
    mix_fail_value("%s: several columns are called '%s'; give them names of their own", path, name);
  else
    mix_fail_value("%s: no column '%s'; the columns are %s", path, name, list_names(h, list, sizeof list));
  return -1;
}

/* ---- a pass ---- */

static bool find_places(mix_csv_pass *pass, const header *h) {
  const mix_csv_source *source = pass->source;
  const int count = source->columns->features + source->labelled;
  pass->places = mix_alloc((size_t)count * sizeof *pass->places);
  for (int i = 0; pass->places && i < count; i++)
    if ((pass->places[i] = place_of(h, source->columns->items[i].name, source->path)) < 0) return false;
  return pass->places;
}

/* Opens the file and reads its first record. */
static bool open_table(mix_csv_pass *pass, const mix_csv_source *source, header *h) {
  *pass = (mix_csv_pass){.source = source, .held = source->no_header};
  if (!mix_csv_open(&pass->reader, source->path, source->delimiter)) return false;
  if (!mix_csv_next(&pass->reader))
    return mix_failed() ? false : mix_fail_format("%s: the file is empty", source->path);
  pass->width = pass->reader.count;
  return read_header(h, &pass->reader, source->no_header);
}

bool mix_csv_pass_begin(mix_csv_pass *pass, const mix_csv_source *source) {
  header h = {.room = 0};
  const bool good = open_table(pass, source, &h) && find_places(pass, &h);
  release_header(&h);
  return good;
}

void mix_csv_pass_end(mix_csv_pass *pass) {
  if (pass->source) mix_csv_close(&pass->reader);
  mix_free(pass->places);
  *pass = (mix_csv_pass){0};
}

static bool next_record(mix_csv_pass *pass) {
  if (pass->held) return pass->held = false, true;
  if (!mix_csv_next(&pass->reader)) return false;
  if (pass->reader.count == pass->width) return true;
  return mix_fail_format("%s, line %lld: %d fields, and the first line has %d", pass->source->path,
                         (long long)pass->reader.fields[0].line, pass->reader.count, pass->width);
}

/* The first letter says of most texts that they are not. */
static bool is_missing(const char *text) {
  return !*text || ((*text == 'N' || *text == 'n') && mix_is_choice("NA|N/A|NaN|nan|NULL|null", text));
}

static const mix_csv_field *field_of(const mix_csv_pass *pass, int column) {
  return &pass->reader.fields[pass->places[column]];
}

static bool bad_value(const mix_csv_pass *pass, int column, const char *what) {
  const mix_csv_field *field = field_of(pass, column);
  return mix_fail_value("%s, line %lld, column '%.100s': '%.100s' %s", pass->source->path,
                        (long long)field->line, pass->source->columns->items[column].name, field->text, what);
}

/* Is the row kept? False too with the error recorded. */
static bool is_kept(const mix_csv_pass *pass) {
  const mix_csv_source *source = pass->source;
  const int features = source->columns->features, count = features + source->labelled;
  if (source->rules.missing == MIX_CSV_MEAN || source->rules.missing == MIX_CSV_FILL) {
    if (!source->labelled || !is_missing(field_of(pass, features)->text)) return true;
    return bad_value(pass, features, "is a missing label, which nothing fills; give it, or drop such rows");
  }
  for (int i = 0; i < count; i++) {
    if (!is_missing(field_of(pass, i)->text)) continue;
    return source->rules.missing == MIX_CSV_DROP
               ? false
               : bad_value(pass, i, "is a missing value; `missing` may be drop, mean or a number");
  }
  return true;
}

/* The next record whose row is kept. */
static bool next_row(mix_csv_pass *pass) {
  while (next_record(pass)) {
    if (is_kept(pass)) return true;
    if (mix_failed()) return false;
  }
  return false;
}

static bool is_number(const char *text, double *number) {
  char *end;
  *number = mix_number_read(text, &end);
  while (*end == ' ' || *end == '\t') end++;
  return end > text && !*end && isfinite((float)*number);
}

static bool read_number(const mix_csv_pass *pass, int column, double *number) {
  return is_number(field_of(pass, column)->text, number) ||
         bad_value(pass, column, "is no finite float32; a column of words is to be named among `words`");
}

/* In a column of words those that are missing are one. */
static const char *word_of(const mix_csv_pass *pass, int column) {
  const char *text = field_of(pass, column)->text;
  return is_missing(text) ? "" : text;
}

static bool convert_word(const mix_csv_pass *pass, int column, int64_t *number) {
  const mix_csv_source *source = pass->source;
  const mix_vocabulary *words = &source->columns->items[column].words;
  *number = mix_vocabulary_find(words, word_of(pass, column));
  if (*number >= 0) return true;
  *number = words->count;
  if (column == source->columns->features) return bad_value(pass, column, "is none of the label's words");
  return source->rules.unknown_index ||
         bad_value(pass, column, "is none of the column's words; `unknown` may be index");
}

static bool convert(const mix_csv_pass *pass, int column, mix_csv_label *value) {
  const mix_csv_source *source = pass->source;
  const mix_csv_column *about = &source->columns->items[column];
  if (about->of_words) {
    const bool good = convert_word(pass, column, &value->word);
    value->number = (float)value->word;
    return good;
  }
  double number = source->rules.missing == MIX_CSV_FILL ? source->rules.fill : about->mean;
  const bool good = is_missing(field_of(pass, column)->text) || read_number(pass, column, &number);
  value->number = (float)number;
  return good;
}

bool mix_csv_pass_row(mix_csv_pass *pass, float *x, mix_csv_label *label) {
  const int features = pass->source->columns->features;
  if (!next_row(pass)) return false;
  for (int i = 0; i < features; i++) {
    mix_csv_label value;
    if (!convert(pass, i, &value)) return false;
    x[i] = value.number;
  }
  return !pass->source->labelled || convert(pass, features, label);
}

/* ---- learning ---- */

static bool learn_field(mix_csv_pass *pass, int column) {
  mix_csv_column *about = &pass->source->columns->items[column];
  const char *text = field_of(pass, column)->text;
  double number;
  if (!about->known && !is_missing(text)) about->known = true, about->of_words = !is_number(text, &number);
  if (!about->of_words) {
    if (is_missing(text)) return true;
    if (!read_number(pass, column, &number)) return false;
    about->mean += number;
    about->count++;
    return true;
  }
  if (about->words.count == MIX_CSV_WORDS_MAX && mix_vocabulary_find(&about->words, text) < 0)
    return bad_value(pass, column, "is the word after 1,048,576 others; such a column is no feature");
  return mix_vocabulary_add(&about->words, word_of(pass, column)) >= 0;
}

/* A column of words that begins with missing values. */
static bool learn_missing(mix_csv_column *about, bool missing) {
  return !missing || !about->of_words || mix_vocabulary_add(&about->words, "") >= 0;
}

static bool finish(mix_csv_source *source, const bool *missing) {
  for (int i = 0; i < source->columns->count; i++) {
    mix_csv_column *about = &source->columns->items[i];
    if (!about->known && source->rules.missing == MIX_CSV_MEAN)
      return mix_fail_value("%s: column '%s' has no value, and so no mean; leave it out", source->path,
                            about->name);
    if (about->count) about->mean /= (double)about->count;
    if (!learn_missing(about, missing[i]) || !mix_vocabulary_sort(&about->words)) return false;
  }
  return true;
}

static bool learn_rows(mix_csv_source *source, mix_csv_pass *pass) {
  const int count = source->columns->count;
  bool *missing = mix_calloc((size_t)count, sizeof *missing);
  while (missing && next_row(pass)) {
    for (int i = 0; i < count; i++) {
      missing[i] |= is_missing(field_of(pass, i)->text);
      if (!learn_field(pass, i)) return mix_free(missing), false;
    }
    source->rows++;
  }
  const bool good = missing && !mix_failed() && finish(source, missing);
  mix_free(missing);
  return good;
}

/* Names with commas between, as in a line of the file. */
static bool split_names(mix_csv_reader *names, const char *text, const char *what) {
  if (!mix_csv_open_memory(names, what, text, strlen(text), ',')) return false;
  return mix_csv_next(names) || (mix_failed() ? false : mix_fail_value("%s: '%s' has no names", what, text));
}

static bool add_feature(mix_csv_source *source, const header *h, const char *name, const char *label) {
  if (place_of(h, name, source->path) < 0) return false;
  if (label && !strcmp(name, label))
    return mix_fail_value("%s: column '%s' is the label and a feature; expected one", source->path, name);
  if (!*name) /* as pandas writes the numbers of rows */
    return mix_fail_value("%s: a column has no name; say which are features", source->path);
  return mix_csv_columns_add(source->columns, name);
}

static bool choose_features(mix_csv_source *source, const header *h, const char *features,
                            const char *label) {
  if (!features) {
    for (int i = 0; i < h->names.count; i++)
      if ((!label || strcmp(h->names.items[i], label)) && !add_feature(source, h, h->names.items[i], label))
        return false;
    return true;
  }
  mix_csv_reader names;
  bool good = split_names(&names, features, "features");
  for (int i = 0; good && i < names.count; i++) good = add_feature(source, h, names.fields[i].text, label);
  mix_csv_close(&names);
  return good;
}

static bool mark_words(mix_csv_source *source, const char *words) {
  mix_csv_reader names;
  bool good = split_names(&names, words, "words");
  for (int i = 0; good && i < names.count; i++) {
    bool found = false;
    for (int c = 0; c < source->columns->count; c++)
      if (!strcmp(source->columns->items[c].name, names.fields[i].text))
        source->columns->items[c].known = source->columns->items[c].of_words = found = true;
    if (!found)
      good = mix_fail_value("%s: words has '%s', which is neither feature nor label", source->path,
                            names.fields[i].text);
  }
  mix_csv_close(&names);
  return good;
}

static bool choose_columns(mix_csv_source *source, const header *h, const mix_csv_options *o) {
  if (!choose_features(source, h, o->features, o->label)) return false;
  if (!source->columns->count)
    return mix_fail_value("%s: there are no features beside '%s'", source->path, o->label);
  source->columns->features = source->columns->count;
  if (o->label &&
      (place_of(h, o->label, source->path) < 0 || !mix_csv_columns_add(source->columns, o->label)))
    return false;
  return !o->words || mark_words(source, o->words);
}

static bool learn(mix_csv_source *source, const mix_csv_options *o) {
  header h = {.room = 0};
  mix_csv_pass pass;
  source->columns = mix_csv_columns_new();
  const bool good = source->columns && open_table(&pass, source, &h) && choose_columns(source, &h, o) &&
                    find_places(&pass, &h) && learn_rows(source, &pass);
  if (source->columns) mix_csv_pass_end(&pass);
  release_header(&h);
  return good;
}

static bool count(mix_csv_source *source) {
  mix_csv_pass pass;
  float *row = mix_alloc((size_t)source->columns->features * sizeof *row);
  if (row && mix_csv_pass_begin(&pass, source))
    for (mix_csv_label label; mix_csv_pass_row(&pass, row, &label);) source->rows++;
  if (row) mix_csv_pass_end(&pass);
  mix_free(row);
  return !mix_failed();
}

/* ---- options ---- */

static bool check(const mix_csv_options *o, const char *call) {
  const char *extra = o->label ? "label" : o->features ? "features" : o->words ? "words" : NULL;
  if (!o->path) return mix_fail_type("%s: path is NULL", call);
  if (o->columns && !mix_csv_columns_given(o->columns, call)) return false;
  if (o->columns && extra) return mix_fail_value("%s: columns says which; leave %s out", call, extra);
  if (!o->columns && o->no_label) return mix_fail_value("%s: no_label goes with columns", call);
  if (o->delimiter && (strlen(o->delimiter) != 1 || strchr("\"\r\n", *o->delimiter)))
    return mix_fail_value("%s: delimiter is '%s'; expected one character such as ;", call, o->delimiter);
  return true;
}

bool mix_csv_source_begin(mix_csv_source *source, const mix_csv_options *o, const char *call) {
  *source = (mix_csv_source){.delimiter = o->delimiter ? *o->delimiter : ',', .no_header = o->no_header};
  if (!check(o, call)) return false;
  if (o->columns) source->rules = o->columns->rules;
  if (!mix_csv_rules_read(&source->rules, o->missing, o->unknown, call)) return false;
  source->labelled = o->columns ? mix_csv_columns_labelled(o->columns) && !o->no_label : o->label != NULL;
  if (!(source->path = mix_intern(o->path))) return false;
  if (o->columns) source->columns = mix_retain((mix_csv_columns *)o->columns);
  if (!(o->columns ? count(source) : learn(source, o))) return false;
  if (!o->columns) source->columns->rules = source->rules;
  if (!source->rows) return mix_fail_value("%s: no rows in %s", call, source->path);
  return true;
}

void mix_csv_source_release(mix_csv_source *source) {
  mix_release(source->columns);
  *source = (mix_csv_source){0};
}
