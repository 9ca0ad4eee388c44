/* The columns of a table: their words, and their form in JSON. */
#include "data/sources/csv_columns.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "base/number.h"
#include "base/text.h"
#include "formats/file.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static uint64_t hash(const char *word) { /* FNV-1a */
  uint64_t h = UINT64_C(14695981039346656037);
  for (; *word; word++) h = (h ^ (unsigned char)*word) * UINT64_C(1099511628211);
  return h;
}

/* The number of the word, or -1 and the key that is free for it. */
static int find(const mix_vocabulary *words, const char *word, uint64_t *key) {
  for (*key = hash(word);; ++*key) {
    const int number = mix_key_map_get(&words->numbers, *key);
    if (number < 0 || !strcmp(words->items[number], word)) return number;
  }
}

int mix_vocabulary_find(const mix_vocabulary *words, const char *word) {
  return find(words, word, &(uint64_t){0});
}

int mix_vocabulary_add(mix_vocabulary *words, const char *word) {
  uint64_t key;
  const int number = find(words, word, &key);
  if (number >= 0) return number;
  char *copy = mix_reserve(&words->items, &words->room, words->count + 1, sizeof *words->items)
                   ? mix_strdup(word)
                   : NULL;
  if (!copy || !mix_key_map_set(&words->numbers, key, words->count)) return mix_free(copy), -1;
  words->items[words->count] = copy;
  return words->count++;
}

static int by_text(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

bool mix_vocabulary_sort(mix_vocabulary *words) {
  if (words->count) qsort(words->items, (size_t)words->count, sizeof *words->items, by_text);
  mix_key_map_clear(&words->numbers);
  uint64_t key;
  for (int i = 0; i < words->count; i++)
    if (find(words, words->items[i], &key) >= 0 || !mix_key_map_set(&words->numbers, key, i)) return false;
  return true;
}

void mix_vocabulary_release(mix_vocabulary *words) {
  for (int i = 0; i < words->count; i++) mix_free(words->items[i]);
  mix_free(words->items);
  mix_key_map_clear(&words->numbers);
  *words = (mix_vocabulary){0};
}

/* ---- rules ---- */

bool mix_csv_rules_read(mix_csv_rules *rules, const char *missing, const char *unknown, const char *call) {
  char *end = NULL;
  if (missing && !strcmp(missing, "error"))
    rules->missing = MIX_CSV_REFUSE;
  else if (missing && !strcmp(missing, "drop"))
    rules->missing = MIX_CSV_DROP;
  else if (missing && !strcmp(missing, "mean"))
    rules->missing = MIX_CSV_MEAN;
  else if (missing) {
    rules->missing = MIX_CSV_FILL;
    rules->fill = mix_number_read(missing, &end);
    if (!*missing || *end || !isfinite((float)rules->fill))
      return mix_fail_value("%s: missing is '%s'; expected error, drop, mean or a number", call, missing);
  }
  if (unknown && strcmp(unknown, "error") && strcmp(unknown, "index"))
    return mix_fail_value("%s: unknown is '%s'; expected error or index", call, unknown);
  if (unknown) rules->unknown_index = *unknown == 'i';
  return true;
}

/* ---- columns ---- */

static void finalize(void *object) {
  mix_csv_columns *columns = object;
  for (int i = 0; i < columns->count; i++) {
    mix_free(columns->items[i].name);
    mix_vocabulary_release(&columns->items[i].words);
  }
  mix_free(columns->items);
}

static const mix_class columns_class = {.name = "csv_columns", .finalize = finalize};

mix_csv_columns *mix_csv_columns_new(void) { return mix_object_new(sizeof(mix_csv_columns), &columns_class); }

mix_csv_column *mix_csv_columns_add(mix_csv_columns *columns, const char *name) {
  if (!mix_reserve(&columns->items, &columns->room, columns->count + 1, sizeof *columns->items)) return NULL;
  mix_csv_column *column = &columns->items[columns->count];
  *column = (mix_csv_column){.name = mix_strdup(name)};
  if (!column->name) return NULL;
  columns->count++;
  return column;
}

bool mix_csv_columns_given(const mix_csv_columns *columns, const char *call) {
  return mix_given(columns, &columns_class, call, "the columns of a table");
}

int mix_csv_columns_count(const mix_csv_columns *columns) {
  return mix_is(columns, &columns_class) ? columns->features : 0;
}

/* NULL with the error recorded. */
static const mix_csv_column *column_at(const mix_csv_columns *columns, int index, const char *call) {
  if (!mix_csv_columns_given(columns, call)) return NULL;
  if (index >= 0 && index < columns->features) return &columns->items[index];
  if (index == -1 && mix_csv_columns_labelled(columns)) return &columns->items[columns->features];
  return mix_fail_value("%s: column %d of %d features%s", call, index, columns->features,
                        mix_csv_columns_labelled(columns) ? "; -1 is the label" : " and no label");
}

const char *mix_csv_columns_name(const mix_csv_columns *columns, int index) {
  if (index == -1 && mix_is(columns, &columns_class) && !mix_csv_columns_labelled(columns)) return NULL;
  const mix_csv_column *column = column_at(columns, index, "csv_columns_name");
  return column ? column->name : NULL;
}

int mix_csv_columns_word_count(const mix_csv_columns *columns, int index) {
  const mix_csv_column *column = column_at(columns, index, "csv_columns_word_count");
  return column ? column->words.count : 0;
}

const char *mix_csv_columns_word(const mix_csv_columns *columns, int index, int number) {
  const mix_csv_column *column = column_at(columns, index, "csv_columns_word");
  if (!column) return NULL;
  if (number >= 0 && number < column->words.count) return column->words.items[number];
  return mix_fail_value("csv_columns_word: word %d of '%s', which has %d", number, column->name,
                        column->words.count);
}

/* ---- JSON ---- */

static json_t *column_to_json(const mix_csv_column *column) {
  json_t *json = json_object();
  bool good = mix_json_set(json, "name", json_string(column->name));
  if (good && !column->of_words) good = mix_json_set(json, "mean", mix_json_real(column->mean));
  json_t *words = good && column->of_words ? json_array() : NULL;
  for (int i = 0; words && i < column->words.count && good; i++)
    good = mix_json_append(words, json_string(column->words.items[i]));
  if (good && column->of_words)
    mix_json_set(json, "words", words);
  else
    json_decref(words);
  return mix_json_whole(json);
}

static json_t *missing_to_json(const mix_csv_rules *rules) {
  static const char *const names[] = {"error", "drop", "mean"};
  return rules->missing == MIX_CSV_FILL ? mix_json_real(rules->fill) : json_string(names[rules->missing]);
}

static json_t *to_json(const mix_csv_columns *columns) {
  json_t *json = json_object(), *features = json_array();
  bool good = features != NULL;
  for (int i = 0; i < columns->features && good; i++)
    good = mix_json_append(features, column_to_json(&columns->items[i]));
  mix_json_set(json, "features", features);
  if (mix_csv_columns_labelled(columns))
    mix_json_set(json, "label", column_to_json(&columns->items[columns->features]));
  mix_json_set(json, "missing", missing_to_json(&columns->rules));
  mix_json_set(json, "unknown", json_string(columns->rules.unknown_index ? "index" : "error"));
  return mix_json_whole(json);
}

mix_status mix_csv_columns_save(const mix_csv_columns *columns, const char *path) {
  if (!mix_csv_columns_given(columns, "csv_columns_save")) return mix_error();
  if (!path) return mix_fail_status(MIX_TYPE_ERROR, "csv_columns_save: path is NULL");
  json_t *json = to_json(columns);
  char *text = json ? mix_json_text(json) : NULL;
  json_decref(json);
  if (text) mix_file_replace(path, (mix_bytes[]){{text, strlen(text)}, {"\n", 1}}, 2, "csv_columns_save");
  mix_free(text);
  return mix_error();
}

/* Of a text that is no such file. */
static bool unusable(const char *path, const char *what) {
  return mix_fail_format("%s: no columns of a table: %s", path, what);
}

static bool read_words(mix_vocabulary *words, const json_t *json, const char *path) {
  if (json_array_size(json) > MIX_CSV_WORDS_MAX) return unusable(path, "a column has too many words");
  for (size_t i = 0; i < json_array_size(json); i++) {
    const char *word = json_string_value(json_array_get(json, i));
    if (!word) return unusable(path, "a word is no string");
    const int number = mix_vocabulary_add(words, word);
    if (number >= 0 && number != (int)i) return unusable(path, "a column has a word twice");
    if (number < 0) return false;
  }
  return true;
}

static bool read_column(mix_csv_columns *columns, const json_t *json, const char *path) {
  const char *name = json_string_value(json_object_get(json, "name"));
  const json_t *words = json_object_get(json, "words"), *mean = json_object_get(json, "mean");
  if (!name || json_is_array(words) == json_is_number(mean))
    return unusable(path, "expected for each column a name, and words or a mean");
  mix_csv_column *column = mix_csv_columns_add(columns, name);
  if (!column) return false;
  column->known = true;
  column->of_words = words != NULL;
  column->mean = json_number_value(mean);
  if (!isfinite((float)column->mean)) return unusable(path, "a mean is too large");
  return read_words(&column->words, words, path);
}

static bool read_rules(mix_csv_rules *rules, const json_t *json, const char *path) {
  const json_t *missing = json_object_get(json, "missing"), *unknown = json_object_get(json, "unknown");
  if (!json_is_string(unknown) || (!json_is_string(missing) && !json_is_number(missing)))
    return unusable(path, "expected missing and unknown");
  if (json_is_number(missing)) rules->missing = MIX_CSV_FILL, rules->fill = json_number_value(missing);
  if (!isfinite((float)rules->fill)) return unusable(path, "a number is too large");
  return mix_csv_rules_read(rules, json_string_value(missing), json_string_value(unknown), path);
}

static bool from_json(mix_csv_columns *columns, const json_t *json, const char *path) {
  const json_t *features = json_object_get(json, "features"), *label = json_object_get(json, "label");
  const size_t count = json_array_size(features);
  if (!count || count > INT32_MAX - 1) return unusable(path, "expected an object with features");
  for (size_t i = 0; i < count; i++)
    if (!read_column(columns, json_array_get(features, i), path)) return false;
  columns->features = (int)count;
  return (!label || read_column(columns, label, path)) && read_rules(&columns->rules, json, path);
}

/* The text of a file; mix_free it. NULL with the error recorded. */
static char *read_text(const char *path) {
  size_t size;
  char *data = mix_file_read(path, (size_t)1 << 28, &size);
  char *text = data ? mix_realloc(data, size + 1) : NULL;
  if (!text) return mix_free(data), NULL;
  text[size] = 0;
  if (strlen(text) == size && mix_json_has_few_values(text, path)) return text;
  if (!mix_failed()) unusable(path, "it has a zero byte");
  mix_free(text);
  return NULL;
}

mix_csv_columns *mix_csv_columns_load(const char *path) {
  if (mix_failed()) return NULL;
  if (!path) return mix_fail_type("csv_columns_load: path is NULL");
  char *text = read_text(path);
  json_t *json = text ? mix_json_parse(text, path) : NULL;
  mix_free(text);
  mix_csv_columns *columns = json ? mix_csv_columns_new() : NULL;
  if (columns) from_json(columns, json, path);
  json_decref(json);
  if (mix_error() == MIX_VALUE_ERROR) {
    mix_error_aside error;
    mix_error_set_aside(&error);
    mix_fail(MIX_FORMAT_ERROR, "%s", error.message);
  }
  if (!mix_failed()) return mix_scoped(columns);
  mix_release(columns);
  return NULL;
}
