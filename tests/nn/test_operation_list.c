/* The operations of keras.ops that docs/manual/files.md lists are those of the tables, and what it says is
 * not supported is what they refuse. MIXTAPE_WRITE_MANUAL=1 writes the section anew. */
#include "nn/support.h"

#include "base/alloc.h"
#include "base/text.h"
#include "nn/layers/operations/operation.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROWS = 512, WIDTH = 110 };
static const char begin_mark[] = "load\nwith these operations of `keras.ops`:\n\n",
                  end_mark[] = "\nOthers are an error";

static const mix_keras_operation *rows[MOST_ROWS];
static int row_count;

static int by_module_and_name(const void *a, const void *b) {
  const mix_keras_operation *x = *(mix_keras_operation *const *)a, *y = *(mix_keras_operation *const *)b;
  const int order = strcmp(x->kind.module, y->kind.module);
  return order ? order : strcmp(x->operation.name, y->operation.name);
}

static void collect(void) {
#define TABLE(family) mix_keras_##family##_operations,
  static const mix_keras_operation *const tables[] = {MIX_KERAS_FAMILIES(TABLE)};
#undef TABLE
  row_count = 0;
  for (size_t t = 0; t < sizeof tables / sizeof *tables; t++)
    for (const mix_keras_operation *row = tables[t]; row->operation.name; row++) {
      assert_true(row_count < MOST_ROWS);
      rows[row_count++] = row;
    }
  qsort(rows, (size_t)row_count, sizeof *rows, by_module_and_name);
}

/* Words, broken before the column; further lines are indented by two. */
typedef struct wrapped {
  mix_text text;
  int column;
} wrapped;
static void put_word(wrapped *w, const char *word) {
  const int length = (int)strlen(word);
  const bool breaks = w->column > 2 && w->column + 1 + length > WIDTH;
  mix_text_put(&w->text, "%s%s", breaks ? "\n  " : " ", word);
  w->column = breaks ? 2 + length : w->column + 1 + length;
}
static void begin_item(wrapped *w) {
  mix_text_put(&w->text, "*");
  w->column = 1;
}

static const char *module_of(const mix_keras_operation *row) {
  return row->kind.module + strlen("keras.src.ops.");
}

static void put_supported(wrapped *w) {
  char word[128];
  for (int i = 0; i < row_count; i++) {
    const mix_keras_operation *row = rows[i];
    int next = i + 1;
    while (next < row_count && rows[next]->operation.refusal) next++;
    if (row->operation.refusal) continue;
    int before = i - 1;
    while (before >= 0 && rows[before]->operation.refusal) before--;
    const bool first = before < 0 || strcmp(module_of(rows[before]), module_of(row)),
               last = next == row_count || strcmp(module_of(rows[next]), module_of(row));
    if (first) {
      begin_item(w);
      snprintf(word, sizeof word, "`%s`:", module_of(row));
      put_word(w, word);
    }
    snprintf(word, sizeof word, "%s%s", row->operation.name, !last ? "," : next == row_count ? "." : ";");
    put_word(w, word);
    if (last) mix_text_put(&w->text, "\n");
  }
}

static void put_refused(wrapped *w) {
  char words[512];
  mix_text_put(&w->text, "\nNot supported, and why:\n\n");
  for (int i = 0; i < row_count; i++) {
    if (!rows[i]->operation.refusal) continue;
    begin_item(w);
    snprintf(words, sizeof words, "%s: %s.", rows[i]->operation.name, rows[i]->operation.refusal);
    for (char *word = strtok(words, " "); word; word = strtok(NULL, " ")) put_word(w, word);
    mix_text_put(&w->text, "\n");
  }
}

static char *read_whole(const char *path) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  rewind(file);
  char *text = calloc((size_t)size + 1, 1);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  fclose(file);
  return text;
}

static void manual_lists_the_tables(void **state) {
  (void)state;
  char path[1024];
  wrapped w = {.text = {.grows = true}};
  snprintf(path, sizeof path, "%s/../docs/manual/files.md", getenv("MIXTAPE_TESTS_DIR"));
  char *manual = read_whole(path), *begin = strstr(manual, begin_mark);
  assert_non_null(begin);
  begin += strlen(begin_mark);
  char *end = strstr(begin, end_mark);
  assert_non_null(end);
  collect();
  put_supported(&w);
  put_refused(&w);
  assert_false(w.text.failed);
  const bool same =
      strlen(w.text.text) == (size_t)(end - begin) && !strncmp(begin, w.text.text, (size_t)(end - begin));
  const char *writes = getenv("MIXTAPE_WRITE_MANUAL");
  if (!same && writes && *writes) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    fprintf(file, "%.*s%s%s", (int)(begin - manual), manual, w.text.text, end);
    fclose(file);
  } else if (!same) {
    fail_msg(
        "docs/manual/files.md does not list the operations of the tables; MIXTAPE_WRITE_MANUAL=1 writes:\n%s",
        w.text.text);
  }
  mix_free(w.text.text);
  free(manual);
}

/* Each class once, with a way to compute it or the reason why not. */
static void rows_are_whole(void **state) {
  (void)state;
  collect();
  for (int i = 0; i < row_count; i++) {
    const mix_operation *o = &rows[i]->operation;
    const int ways = (o->unary != NULL) + (o->binary != NULL) + (o->reduce != NULL) + (o->build != NULL) +
                     (o->join != NULL) + (o->results != NULL) + (o->refusal != NULL) +
                     (o->activation != NULL && !o->build);
    if (ways != 1) fail_msg("%s has %d ways to be computed", o->name, ways);
    assert_ptr_equal(mix_keras_operation_named(o->name), rows[i]);
    if (i) assert_true(by_module_and_name(&rows[i - 1], &rows[i]) < 0);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(manual_lists_the_tables),
                                     cmocka_unit_test(rows_are_whole)};
  return cmocka_run_group_tests_name("nn/operation_list", tests, NULL, NULL);
}
