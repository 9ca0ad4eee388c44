/* Each pass alone, on graphs as text: passes/graphs has a file for each pass. A case is
 *
 *   == title
 *   the graph
 *   -- identity, amp=float16        the passes to run (and the target dtype of the rewrite)
 *   the graph after them, or "same" if they must not change it
 *
 * Both graphs are also read and written, and must come out unchanged. */
#include "support/skip.h"
#include "compile/support.h"

#include "amp/setting.h"
#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "passes/passes.h"
#include <dirent.h>
#include <stdio.h>

enum { MAX_TEXT = 1 << 18 };

typedef struct text_case {
  const char *file;
  char *title, *before, *passes, *after;
} text_case;

static char *slurp(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("cannot open %s", path);
  char *text = calloc(1, MAX_TEXT);
  size_t size = fread(text, 1, MAX_TEXT - 1, file);
  assert_true(size < MAX_TEXT - 1);
  fclose(file);
  return text;
}

/* Returns the text of the resulting graph; the caller frees it. */
static char *run_passes(const text_case *c, const char *graph, char *passes) {
  mix_ir *ir = mix_ir_read(c->title, graph, strlen(graph), 1 << 20);
  if (!ir) fail_msg("%s, '%s': %s", c->file, c->title, mix_error_message());
  for (char *rest = passes, *name; rest && (name = strtok_r(rest, " ,", &rest));) {
    char *value = strchr(name, '=');
    if (value) *value++ = 0;
    mix_amp_set_target(value ? mix_dtype_from_name(value) : MIX_DTYPE_NONE);
    if (!mix_pass_run(ir, name))
      fail_msg("%s, '%s', pass %s: %s", c->file, c->title, name, mix_error_message());
    mix_amp_set_target(MIX_DTYPE_NONE);
  }
  char *text = strdup(mix_ir_text(ir));
  mix_ir_free(ir);
  no_error();
  return text;
}

static void equal(const text_case *c, const char *what, const char *is, const char *expected) {
  if (strcmp(is, expected) != 0)
    fail_msg("%s, '%s', %s:\n%s\nexpected:\n%s", c->file, c->title, what, is, expected);
}

/* Checks a case. Returns true if the passes must leave the graph unchanged. */
static bool check_case(const text_case *c) {
  bool same = !strcmp(c->after, "same\n");
  char nothing[] = "";
  char *again = run_passes(c, c->before, nothing);
  equal(c, "read and written", again, c->before);
  free(again);
  char *after = run_passes(c, c->before, c->passes);
  equal(c, "after the passes", after, same ? c->before : c->after);
  free(after);
  if (!same) {
    again = run_passes(c, c->after, nothing);
    equal(c, "the result, read and written", again, c->after);
    free(again);
  }
  return same;
}

/* Cuts the file at its "==" and "--" lines. */
static int run_file(const char *directory, const char *name, int *untouched) {
  char path[1024];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  char *text = slurp(path);
  int cases = 0;
  for (char *at = strstr(text, "== "); at;) {
    text_case c = {.file = name, .title = at + 3};
    char *next = strstr(at, "\n== ");
    if (next) next[1] = 0;
    c.before = strchr(c.title, '\n');
    assert_non_null(c.before);
    *c.before++ = 0;
    c.passes = strstr(c.before, "\n-- ");
    if (!c.passes) fail_msg("%s, '%s': no line '-- pass'", name, c.title);
    c.passes[1] = 0;
    c.passes += 4;
    c.after = strchr(c.passes, '\n');
    assert_non_null(c.after);
    *c.after++ = 0;
    size_t length = strlen(c.after); /* empty lines before the next case */
    while (length > 1 && c.after[length - 1] == '\n' && c.after[length - 2] == '\n') c.after[--length] = 0;
    *untouched += check_case(&c);
    cases++;
    if (next) next[1] = '=';
    at = next ? next + 1 : NULL;
  }
  free(text);
  return cases;
}

/* Each pass has a file of its name with at least three cases, and at least one where it must not act. */
static void every_pass(void **state) {
  (void)state;
  const char *tests = getenv("MIXTAPE_TESTS_DIR");
  if (!tests) SKIP("MIXTAPE_TESTS_DIR is not set");
  char directory[900];
  snprintf(directory, sizeof directory, "%s/passes/graphs", tests);
  for (int i = 0; mix_pass_name(i); i++) {
    char name[64];
    int untouched = 0;
    snprintf(name, sizeof name, "%s.txt", mix_pass_name(i));
    mix_set_memory(strcmp(mix_pass_name(i), "round_weights") ? "fast" : "least"); /* else it does nothing */
    int cases = run_file(directory, name, &untouched);
    if (cases < 3 || untouched < 1)
      fail_msg("%s: %d cases, %d of them 'same'; at least 3 and 1 are wanted", name, cases, untouched);
  }
}

/* The other files: several passes in a row. */
static void several_passes(void **state) {
  (void)state;
  const char *tests = getenv("MIXTAPE_TESTS_DIR");
  if (!tests) SKIP("MIXTAPE_TESTS_DIR is not set");
  char directory[900];
  int cases = 0, untouched = 0;
  snprintf(directory, sizeof directory, "%s/passes/graphs", tests);
  DIR *entries = opendir(directory);
  assert_non_null(entries);
  for (struct dirent *entry; (entry = readdir(entries));) {
    size_t length = strlen(entry->d_name);
    bool text = length > 4 && !strcmp(entry->d_name + length - 4, ".txt"), single = false;
    for (int i = 0; mix_pass_name(i); i++)
      single |=
          !strncmp(entry->d_name, mix_pass_name(i), length - 4) && strlen(mix_pass_name(i)) == length - 4;
    if (text && !single) cases += run_file(directory, entry->d_name, &untouched);
  }
  closedir(entries);
  assert_true(cases > 0);
}

static void no_such_pass(void **state) {
  (void)state;
  mix_ir *ir = mix_ir_read("empty", "return\n", 7, 0);
  assert_non_null(ir);
  assert_false(mix_pass_run(ir, "fuse_epilogue"));
  expect_error(MIX_VALUE_ERROR, "'fuse_epilogue'; did you mean 'fuse_epilogues'?");
  assert_false(mix_pass_run(ir, "fold2"));
  expect_error(MIX_VALUE_ERROR, "'fold2'", "remove_identities", "fuse_epilogues");
  mix_ir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_pass), TEST(several_passes), TEST(no_such_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
