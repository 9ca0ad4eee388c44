/* Records of delimited text: quotes, ends of lines, blanks, and what is refused with its place. */
#include "data/support.h"

#include "base/alloc.h"
#include "formats/csv.h"

/* Records as "a|b/c|d/", with the lines of their first fields in `lines`. */
static const char *records_of(const char *text, size_t size, char delimiter, int64_t *lines) {
  static char out[1 << 12];
  size_t used = 0;
  mix_csv_reader r;
  bool good = mix_csv_open_memory(&r, "t", text, size, delimiter);
  out[0] = 0;
  while (good && mix_csv_next(&r)) {
    *lines++ = r.fields[0].line;
    for (int i = 0; i < r.count; i++)
      used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", i ? "|" : "", r.fields[i].text);
    used += (size_t)snprintf(out + used, sizeof out - used, "/");
  }
  mix_csv_close(&r);
  return out;
}

static void records_are_split(void **state) {
  (void)state;
  static const struct {
    const char *text;
    char delimiter;
    const char *records;
    int64_t lines[4];
  } cases[] = {
      {"a,b\n1,2\n", ',', "a|b/1|2/", {1, 2}},
      {"a,b\r\n1,2\r\n", ',', "a|b/1|2/", {1, 2}},
      {"a,b\r1,2", ',', "a|b/1|2/", {1, 2}},
      {"\xef\xbb\xbf"
       "a;b\n1;2",
       ';',
       "a|b/1|2/",
       {1, 2}},
      {"\n\r\n  \na,b\n\n\n1,2\n\n", ',', "a|b/1|2/", {4, 7}},
      {",\n,,\n", ',', "|/||/", {1, 2}},
      {" a ,\tb\t\n \"x \" ,y z \n", ',', "a|b/x |y z/", {1, 2}},
      {"a\tb\n\t2\n", '\t', "a|b/|2/", {1, 2}},
      {"\"a,\"\"b\"\"\",c\n1,2", ',', "a,\"b\"|c/1|2/", {1, 2}},
      {"\"a\nb\r\nc\",d\r\n1,2\n", ',', "a\nb\r\nc|d/1|2/", {1, 4}},
      {"5\" pipe,a\"b\n", ',', "5\" pipe|a\"b/", {1}},
      {"\"\",\"\"\n", ',', "|/", {1}},
      {"gr\xc3\xbc\xc3\x9f,\xf0\x9f\x98\x80\n", ',', "gr\xc3\xbc\xc3\x9f|\xf0\x9f\x98\x80/", {1}},
      {"", ',', "", {0}},
      {"\n \n", ',', "", {0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t lines[8] = {0};
    assert_string_equal(records_of(cases[i].text, strlen(cases[i].text), cases[i].delimiter, lines),
                        cases[i].records);
    assert_int_equal(mix_error(), MIX_OK);
    for (int l = 0; l < 4; l++) assert_int_equal(lines[l], cases[i].lines[l]);
  }
}

static void bad_text_is_refused_with_its_place(void **state) {
  (void)state;
  static const struct {
    const char *text;
    size_t size; /* 0: its length */
    const char *message;
  } cases[] = {
      {"a,b\n1,\"2\n3\n", 0, "t, line 2, field 2: its quote is not closed"},
      {"a,b\n\"1\"x,2\n", 0, "t, line 2, field 1: text follows its closing quote"},
      {"a\n\"b\nc\"\n\"", 0, "t, line 4, field 1: its quote"},
      {"a,b\n1,x\0y\n", 10, "t, line 2, field 2: it has a zero byte"},
      {"\xff\xfe"
       "a\0,\0",
       6, "t: it begins as UTF-16"},
      {"a,b\n1,\xfc\n", 0, "t, line 2, field 2: it is no UTF-8"},
      {"a\n\xc3\n", 0, "no UTF-8"},
      {"a\n\xc0\x80\n", 0, "no UTF-8"},
      {"a\n\xed\xa0\x80\n", 0, "no UTF-8"},
      {"a\n\xf4\x90\x80\x80\n", 0, "no UTF-8"},
      {"a\n\xe0\x80\xaf\n", 0, "no UTF-8"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    int64_t lines[8];
    records_of(cases[i].text, cases[i].size ? cases[i].size : strlen(cases[i].text), ',', lines);
    assert_failed(MIX_FORMAT_ERROR, cases[i].message);
  }
}

static void a_field_has_at_most_a_mebibyte(void **state) {
  (void)state;
  char *text = malloc(MIX_CSV_FIELD_MAX + 3);
  memcpy(text, "b\n", 2);
  memset(text + 2, 'x', MIX_CSV_FIELD_MAX + 1);
  for (int more = 0; more < 2; more++) {
    mix_csv_reader r;
    assert_true(mix_csv_open_memory(&r, "t", text, (size_t)MIX_CSV_FIELD_MAX + 2 + (size_t)more, ','));
    assert_true(mix_csv_next(&r));
    assert_int_equal(mix_csv_next(&r), !more);
    if (!more) assert_int_equal(strlen(r.fields[0].text), MIX_CSV_FIELD_MAX);
    mix_csv_close(&r);
    if (more) assert_failed(MIX_FORMAT_ERROR, "t, line 2, field 1: it is longer than 1 MiB");
  }
  free(text);
}

/* Longer than the pieces that are read, with a quoted end of a line at each place of their borders. */
static void files_come_in_pieces(void **state) {
  (void)state;
  enum { PIECE = 1 << 16 };
  static char text[PIECE + 64];
  for (int shift = 0; shift < 12; shift++) {
    memset(text, 'x', sizeof text);
    memcpy(text + PIECE - shift, "\n\"a\"\"\r\nb\",c\r\nd", 14);
    write_file(in_folder("t"), text, PIECE - (size_t)shift + 14);
    mix_csv_reader r;
    assert_true(mix_csv_open(&r, in_folder("t"), ','));
    assert_true(mix_csv_next(&r));
    assert_int_equal(strlen(r.fields[0].text), PIECE - shift);
    assert_true(mix_csv_next(&r));
    assert_int_equal(r.count, 2);
    assert_string_equal(r.fields[0].text, "a\"\r\nb");
    assert_string_equal(r.fields[1].text, "c");
    assert_true(mix_csv_next(&r));
    assert_int_equal(r.fields[0].line, 4);
    assert_false(mix_csv_next(&r));
    mix_csv_close(&r);
    assert_int_equal(mix_error(), MIX_OK);
  }
}

static void files_that_cannot_be_read(void **state) {
  (void)state;
  const char *const paths[] = {in_folder("none"), in_folder(".")};
  for (int i = 0; i < 2; i++) {
    mix_csv_reader r;
    assert_false(mix_csv_open(&r, paths[i], ','));
    assert_failed(MIX_IO_ERROR, paths[i]);
    mix_csv_close(&r);
  }
}

static void memory_may_run_out(void **state) {
  (void)state;
  const char text[] = "a,b\n\"1\",2\n";
  write_file(in_folder("t"), text, sizeof text - 1);
  bool done = false;
  for (int count = 0; !done; count++) {
    mix_csv_reader r;
    mix_inject_allocation_failure(count);
    int records = 0;
    if (mix_csv_open(&r, in_folder("t"), ','))
      while (mix_csv_next(&r)) records++;
    mix_csv_close(&r);
    mix_inject_allocation_failure(-1);
    done = mix_error() == MIX_OK;
    if (done) assert_int_equal(records, 2);
    if (!done) assert_failed(MIX_MEMORY_ERROR, NULL);
    if (!done) assert_true(count < 20);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(records_are_split),
      cmocka_unit_test(bad_text_is_refused_with_its_place),
      cmocka_unit_test(a_field_has_at_most_a_mebibyte),
      FOLDER_TEST(files_come_in_pieces),
      FOLDER_TEST(files_that_cannot_be_read),
      FOLDER_TEST(memory_may_run_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
