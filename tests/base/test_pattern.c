/* Whole matches of Python's regular expressions: each row as re.fullmatch of Python 3.11 answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/pattern.h"
#include <string.h>

/* A row: the expression, texts that it matches, texts that it does not; NULL ends either. */
typedef struct row {
  const char *pattern, *matched[5], *others[5];
} row;

static const row rows[] = {
    {"", {""}, {"a"}},
    {"fc.*", {"fc", "fc1", "fc/x"}, {"f", "xfc", "FC1", "fc\n"}},
    {"enc/.*", {"enc/q", "enc/a/b", "enc/"}, {"enc", "enc2/a"}},
    {"fc[12]", {"fc1", "fc2"}, {"fc3", "fc", "fc12"}},
    {"a|bc|", {"a", "bc", ""}, {"b", "abc", "ac"}},
    {"(a|b)c", {"ac", "bc"}, {"a", "c"}},
    {"(?:ab)+", {"ab", "abab"}, {"", "aba"}},
    {"(?P<n>a)b?", {"a", "ab"}, {"b", "abb"}},
    {"a*?b", {"b", "aab"}, {"a"}},
    {"(a*)*b", {"b", "aaaab"}, {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}},
    {"a{2}", {"aa"}, {"a", "aaa"}},
    {"a{2,}", {"aa", "aaaa"}, {"a"}},
    {"a{,2}", {"", "a", "aa"}, {"aaa"}},
    {"(ab){1,3}c", {"abc", "ababc", "abababc"}, {"c", "ababababc"}},
    {"a{x", {"a{x"}, {"a", "ax"}},
    {"a{", {"a{"}, {"a"}},
    {"a{}", {"a{}"}, {"a"}},
    {"dense_\\d+", {"dense_1", "dense_23"}, {"dense_", "dense_x"}},
    {"\\w+/\\D", {"a_1/x"}, {"a b/x", "a/1"}},
    {"[^/]+", {"dense", "a b"}, {"", "a/b"}},
    {"[]a]+", {"]a", "a"}, {"b"}},
    {"[a\\]-]+", {"a-]"}, {"b"}},
    {"[\\w.]+", {"a.b"}, {"a-b"}},
    {"[a-c-]", {"b", "-"}, {"d", "bb"}},
    {"\\x41\\u0042\\103\\0?", {"ABC"}, {"abc"}},
    {"[\\b]", {"\b"}, {"b"}},
    {"^a$", {"a"}, {"b", "a\n"}},
    {"\\Aa\\Z", {"a"}, {"ab"}},
    {"a\\b.b", {"a/b"}, {"axb"}},
    {"a\\B.", {"ax"}, {"a/"}},
    {"gr\xc3\xbc.e",
     {"gr\xc3\xbc\xc3\x9f"
      "e"},
     {"gr\xc3\xbc"
      "e"}},
    {"[\xc3\xa4-\xc3\xbc]", {"\xc3\xb6"}, {"o", "\xc3\x9f"}},
    {"a.c", {"abc"}, {"a\nc"}},
    {"]}", {"]}"}, {"]"}},
    {"(|a){3}b", {"b", "aab"}, {"aaaab"}},
};

static void whole_texts_match(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    for (int k = 0; rows[i].matched[k]; k++)
      if (!mix_pattern_matches(rows[i].pattern, rows[i].matched[k], "test"))
        fail_msg("'%s' does not match '%s': %s", rows[i].pattern, rows[i].matched[k], mix_error_message());
    for (int k = 0; rows[i].others[k]; k++)
      if (mix_pattern_matches(rows[i].pattern, rows[i].others[k], "test"))
        fail_msg("'%s' matches '%s'", rows[i].pattern, rows[i].others[k]);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void expect(const char *pattern, mix_status status, const char *text) {
  assert_false(mix_pattern_matches(pattern, "a", "test"));
  if (mix_error() != status || !strstr(mix_error_message(), text))
    fail_msg("'%s': %d, %s", pattern, mix_error(), mix_error_message());
  mix_error_clear();
}

/* Where Python has re.error, by its words. */
static void bad_expressions_are_errors(void **state) {
  (void)state;
  static const char *const bad[][2] = {{"*a", "nothing to repeat at position 0"},
                                       {"a|*", "nothing to repeat at position 2"},
                                       {"{2}", "nothing to repeat at position 0"},
                                       {"^*", "nothing to repeat"},
                                       {"a\\b+", "nothing to repeat at position 3"},
                                       {"a**", "multiple repeat at position 2"},
                                       {"a{2}{3}", "multiple repeat at position 4"},
                                       {"(a", "missing ), unterminated subpattern at position 0"},
                                       {"a)", "unbalanced parenthesis at position 1"},
                                       {"[a", "unterminated character set at position 0"},
                                       {"[]", "unterminated character set"},
                                       {"[z-a]", "bad character range"},
                                       {"[a-\\d]", "bad character range"},
                                       {"\\q", "bad escape at position 0"},
                                       {"a\\", "bad escape (end of pattern) at position 1"},
                                       {"\\x4", "bad escape"},
                                       {"a{3,2}", "min repeat greater than max repeat"},
                                       {"(?P<>a)", "bad name of a group"},
                                       {"(?y)", "unknown extension"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) expect(bad[i][0], MIX_VALUE_ERROR, bad[i][1]);
}

static void other_languages_are_refused(void **state) {
  (void)state;
  static const char *const refused[] = {"(?=a)a", "(?!b)a", "(?<=b)a",       "(?<!b)a", "(a)\\1",
                                        "(?i)A",  "a++",    "a*+",           "a?+",     "(?>a)",
                                        "(?P=n)", "(?i:A)", "\\N{DIGIT ONE}"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
    expect(refused[i], MIX_UNSUPPORTED, "which this library does not match");
  expect("((a{100}){100}){100}", MIX_UNSUPPORTED, "too large");
  char deep[1000];
  memset(deep, '(', sizeof deep - 1);
  deep[sizeof deep - 1] = 0;
  expect(deep, MIX_UNSUPPORTED, "groups in too many groups");
}

/* Backtracking would take 2^30 steps. */
static void time_is_linear(void **state) {
  (void)state;
  assert_true(mix_pattern_matches("(a?){30}a{30}", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "test"));
  assert_false(mix_pattern_matches("(a|a)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "test"));
}

static void parts_of_texts_match(void **state) {
  (void)state;
  static const struct {
    const char *pattern, *text;
    bool found;
  } rows[] = {{"", "", true},
              {"dense", "a/dense_1/kernel", true},
              {"^dense", "a/dense", false},
              {"kernel$", "a/kernel", true},
              {"kernel$", "kernel\n", true},
              {"^b", "a\nb", false},
              {"b|x", "abc", true},
              {"\\d{2}", "a1", false},
              {"\\bout\\b", "a\nout b", true}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (mix_pattern_is_in(rows[i].pattern, rows[i].text, "test") != rows[i].found || mix_failed())
      fail_msg("'%s' in '%s'", rows[i].pattern, rows[i].text);
  assert_false(mix_pattern_is_in("a)(b", "ab", "test"));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  mix_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_texts_match), cmocka_unit_test(parts_of_texts_match),
      cmocka_unit_test(bad_expressions_are_errors), cmocka_unit_test(other_languages_are_refused),
      cmocka_unit_test(time_is_linear)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
