/* The recorded decisions of TensorFlow's graph rewrite (MIXTAPE_REFERENCE_DIR/rewrite, its README.md). Each
 * graph is a test named after its file, which compares status, dtypes, casts with their consumers, and
 * renamed ops. Casts are compared as sets, because their ids are arbitrary. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* vasprintf */
#endif
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "support/skip.h"
#include "base/alloc.h"
#include "support/rewrite_file.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RECORDED = 224, MAX = 512 };

static char directory[1024];
static char names[MAX][256];
static size_t count;

static const char *text_of(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  assert_non_null(text);
  return text;
}

static const json_t *cast_named(const json_t *casts, const char *name, size_t length) {
  const json_t *cast;
  size_t i;
  json_array_foreach((json_t *)(uintptr_t)casts, i, cast) {
    const char *id = text_of(cast, "id");
    if (strlen(id) == length && !strncmp(id, name, length)) return cast;
  }
  return NULL;
}

static int by_text(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts texts and joins them; frees them. */
static char *join(char **texts, size_t n) {
  qsort(texts, n, sizeof *texts, by_text);
  size_t size = 1;
  for (size_t i = 0; i < n; i++) size += strlen(texts[i]) + 1;
  char *all = calloc(size, 1);
  assert_non_null(all);
  for (size_t i = 0, used = 0; i < n; i++) {
    used += (size_t)snprintf(all + used, size - used, "%s\n", texts[i]);
    free(texts[i]);
  }
  return all;
}

static char *MIX_PRINTF(1, 2) new_text(const char *format, ...) {
  char *text = NULL;
  va_list list;
  va_start(list, format);
  assert_true(vasprintf(&text, format, list) >= 0);
  va_end(list);
  return text;
}

/* A cast that reads another cast is described by what it reads and what reads it, without ids: "from(to_dtype
 * device)[node:input ...]". */
static char *cast_text(const json_t *casts, const json_t *cast, bool inner) {
  const json_t *consumers = json_object_get(cast, "consumers");
  size_t n = json_array_size(consumers);
  char **readers = calloc(n + 1, sizeof *readers);
  for (size_t i = 0; i < n; i++) {
    const json_t *pair = json_array_get(consumers, i);
    const char *node = json_string_value(json_array_get(pair, 0));
    assert_non_null(node);
    /* At most two casts in a row. */
    const json_t *behind = inner ? NULL : cast_named(casts, node, strlen(node));
    readers[i] = behind ? cast_text(casts, behind, true)
                        : new_text("%s:%lld", node, (long long)json_integer_value(json_array_get(pair, 1)));
  }
  char *all = join(readers, n);
  free(readers);
  char *text = new_text("%s %s %s {%s}", inner ? "cast" : text_of(cast, "from"), text_of(cast, "to_dtype"),
                        text_of(cast, "device"), all);
  free(all);
  return text;
}

static char *casts_text(const json_t *casts) {
  size_t n = json_array_size(casts), used = 0;
  char **texts = calloc(n + 1, sizeof *texts);
  for (size_t i = 0; i < n; i++) {
    const json_t *cast = json_array_get(casts, i);
    const char *from = text_of(cast, "from"), *colon = strrchr(from, ':');
    if (!colon || !cast_named(casts, from, (size_t)(colon - from)))
      texts[used++] = cast_text(casts, cast, false);
  }
  char *all = join(texts, used);
  free(texts);
  return all;
}

static void assert_same(const json_t *expected, const json_t *got, const char *key) {
  const json_t *a = json_object_get(expected, key), *b = json_object_get(got, key);
  if ((!a && !b) || json_equal(a, b)) return;
  char *at = a ? json_dumps(a, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL,
       *bt = b ? json_dumps(b, JSON_ENCODE_ANY | JSON_SORT_KEYS) : NULL;
  fail_msg("%s: TensorFlow %s, Mixtape %s", key, at ? at : "(none)", bt ? bt : "(none)");
}

static void run_recorded(void **state) {
  char path[2048];
  snprintf(path, sizeof path, "%s/%s.json", directory, (const char *)*state);
  json_t *file = json_load_file(path, 0, NULL);
  const json_t *expected = json_object_get(file, "expected");
  assert_non_null(expected);
  MIX_SCOPE {
    cli_rewrite_case *item = read_rewrite_file(path);
    if (!item) fail_msg("%s", mix_error_message());
    mix_amp_result *result = mix_amp_rewrite(item->graph, &item->options);
    assert_non_null(result);
    char *text = cli_rewrite_text(item, result), *table = mix_amp_report(result),
         *explained = cli_explain_text(item, result);
    assert_non_null(text);
    assert_non_null(table);
    assert_non_null(explained);
    assert_null(strchr(text, '\n'));
    json_t *got = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(got);
    assert_same(file, got, "name");
    static const char *const keys[] = {"status", "dtypes", "ops", "attrs_added", "nodes_added"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) assert_same(expected, got, keys[i]);
    char *theirs = casts_text(json_object_get(expected, "casts")),
         *ours = casts_text(json_object_get(got, "casts"));
    if (strcmp(theirs, ours) != 0) fail_msg("casts: TensorFlow\n%sMixtape\n%s", theirs, ours);
    assert_int_equal(json_array_size(json_object_get(got, "casts")),
                     json_integer_value(json_object_get(expected, "nodes_added")));
    free(theirs);
    free(ours);
    json_decref(got);
    mix_free(text);
    mix_free(table);
    mix_free(explained);
  }
  json_decref(file);
  assert_int_equal(mix_error(), MIX_OK);
}

/* A file that is not read would not be compared. */
static void all_graphs_are_there(void **state) {
  (void)state;
  assert_int_equal(count, RECORDED);
}

static void recorded_lists(void **state) {
  (void)state;
  static const struct {
    const char *mode;
    int cuda, cudnn, sizes[4]; /* README.md: allow, infer, deny, clear */
  } modes[] = {{"cuda_float16", 11050, 8302, {39, 43, 9, 110}},
               {"cpu_float16", 0, 0, {39, 43, 9, 110}},
               {"onednn_bfloat16", 0, 0, {14, 48, 7, 111}}};
  static const mix_amp_class classes[] = {MIX_AMP_ALLOW, MIX_AMP_INFER, MIX_AMP_DENY, MIX_AMP_CLEAR};
  char path[2048];
  snprintf(path, sizeof path, "%s/lists.json", directory);
  json_t *file = json_load_file(path, 0, NULL);
  assert_non_null(file);
  for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
    const mix_amp_options options = {
        .mode = (mix_amp_mode)mix_amp_mode_of(modes[m].mode), .cuda = modes[m].cuda, .cudnn = modes[m].cudnn};
    mix_amp_lists lists;
    assert_true(mix_amp_lists_make(&lists, &options, NULL));
    assert_null(lists.conflict);
    for (int c = 0; c < 4; c++) {
      const json_t *recorded = json_object_get(json_object_get(json_object_get(file, "lists"), modes[m].mode),
                                               mix_amp_class_name(classes[c]));
      int n;
      const char **ops = mix_amp_lists_ops(&lists, classes[c], &n);
      assert_non_null(ops);
      assert_int_equal(n, modes[m].sizes[c]);
      assert_int_equal(json_array_size(recorded), n);
      for (int i = 0; i < n; i++)
        assert_int_equal(mix_amp_lists_class(&lists, json_string_value(json_array_get(recorded, (size_t)i))),
                         classes[c]);
      mix_free(ops);
    }
    mix_amp_lists_free(&lists);
  }
  json_decref(file);
}

static void no_reference_graphs(void **state) {
  (void)state;
  SKIP("MIXTAPE_REFERENCE_DIR is not set");
}

static int by_name(const void *a, const void *b) { return strcmp(a, b); }

static bool find_graphs(void) {
  DIR *folder = opendir(directory);
  if (!folder) return false;
  for (struct dirent *entry; (entry = readdir(folder)) && count < MAX;) {
    size_t length = strlen(entry->d_name);
    if (length < 6 || strcmp(entry->d_name + length - 5, ".json") != 0 ||
        !strcmp(entry->d_name, "lists.json"))
      continue;
    snprintf(names[count++], sizeof names[0], "%.*s", (int)length - 5, entry->d_name);
  }
  closedir(folder);
  qsort(names, count, sizeof names[0], by_name);
  return true;
}

int main(void) {
  static struct CMUnitTest tests[MAX + 2];
  const char *reference = getenv("MIXTAPE_REFERENCE_DIR");
  size_t n = 0;
  if (reference && *reference) {
    snprintf(directory, sizeof directory, "%s/rewrite", reference);
    if (!find_graphs()) {
      fprintf(stderr, "%s cannot be read\n", directory);
      return 1;
    }
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(all_graphs_are_there);
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(recorded_lists);
    for (size_t i = 0; i < count; i++)
      tests[n++] = (struct CMUnitTest){names[i], run_recorded, NULL, NULL, names[i]};
  } else {
    tests[n++] = (struct CMUnitTest)cmocka_unit_test(no_reference_graphs);
  }
  return _cmocka_run_group_tests("rewrite", tests, n, NULL, NULL);
}
