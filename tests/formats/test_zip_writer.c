/* The zip writer: archives that libzip finds consistent, whatever their names, sizes, sources and alignment.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "formats/zip_members.h"
#include "formats/zip_writer.h"
#include "support/expect.h"
#include "support/folder.h"
#include <mixtape/mixtape.h>
#include <zip.h>

static int end(void **state) {
  mix_error_clear();
  mix_shutdown();
  return folder_end(state);
}

static bool write_archive(const char *name, int count, const mix_zip_member *members, const char *comment) {
  const char *path = in_folder(name);
  unlink(path);
  return mix_zip_write("test", path, path, count, members, comment);
}

static zip_t *open_archive(const char *name) {
  zip_t *zip = zip_open(in_folder(name), ZIP_RDONLY | ZIP_CHECKCONS, NULL);
  if (!zip) fail_msg("libzip finds no consistent archive");
  return zip;
}

/* The member's bytes, whose check sum libzip compares. */
static void expect_member(zip_t *zip, zip_uint64_t index, const char *name, const void *data, size_t size) {
  zip_stat_t status;
  assert_int_equal(zip_stat_index(zip, index, 0, &status), 0);
  assert_string_equal(status.name, name);
  assert_int_equal(status.size, size);
  assert_int_equal(status.comp_method, ZIP_CM_STORE);
  char *bytes = malloc(size + 1);
  zip_file_t *file = zip_fopen_index(zip, index, 0);
  assert_true(bytes && file);
  assert_int_equal(zip_fread(file, bytes, size + 1), size);
  assert_memory_equal(bytes, data, size);
  assert_int_equal(zip_fclose(file), 0);
  free(bytes);
}

/* The byte 0 and its followers, in pieces of one size. */
typedef struct counting {
  uint64_t size, done, piece, fails_at;
  unsigned char bytes[4096];
} counting;

static bool next(void *context, mix_bytes *piece) {
  counting *c = context;
  if (c->done >= c->fails_at) return mix_fail_runtime("the source ends early"), false;
  size_t size = c->size - c->done < c->piece ? (size_t)(c->size - c->done) : (size_t)c->piece;
  for (size_t i = 0; i < size; i++) c->bytes[i] = (unsigned char)(c->done + i);
  c->done += size;
  *piece = (mix_bytes){c->bytes, size};
  return true;
}

static mix_piece_source source_of(counting *c) { return (mix_piece_source){c->size, next, c}; }

static void members_of_memory_and_of_sources(void **state) {
  (void)state;
  unsigned char expected[10000];
  for (size_t i = 0; i < sizeof expected; i++) expected[i] = (unsigned char)i;
  counting c = {.size = 10000, .piece = 777, .fails_at = UINT64_MAX}, none = {.piece = 1, .fails_at = 1};
  const mix_zip_member members[] = {{.name = "empty"},
                                    {.name = "two", .pieces = {{"ab", 2}, {"cde", 3}}},
                                    {.name = "Gr\xc3\xb6\xc3\x9f"
                                             "e/\xe5\xb1\x82",
                                     .source = source_of(&c)},
                                    {.name = "none", .source = source_of(&none)}};
  assert_true(write_archive("a.zip", 4, members, "a comment"));
  zip_t *zip = open_archive("a.zip");
  assert_int_equal(zip_get_num_entries(zip, 0), 4);
  expect_member(zip, 0, "empty", "", 0);
  expect_member(zip, 1, "two", "abcde", 5);
  expect_member(zip, 2, members[2].name, expected, sizeof expected);
  expect_member(zip, 3, "none", "", 0);
  int length;
  const char *comment = zip_get_archive_comment(zip, &length, 0);
  assert_int_equal(length, 9);
  assert_memory_equal(comment, "a comment", 9);
  zip_discard(zip);
}

/* An archive without members is the record at its end. */
static void nothing(void **state) {
  (void)state;
  assert_true(write_archive("a.zip", 0, NULL, NULL));
  zip_t *zip = open_archive("a.zip");
  assert_int_equal(zip_get_num_entries(zip, 0), 0);
  zip_discard(zip);
}

/* Whatever comes before: every length of a name, and of a member. */
static void members_at_multiples(void **state) {
  (void)state;
  char name[130];
  for (size_t length = 1; length < sizeof name; length++)
    for (int alignment = 8; alignment <= 64; alignment *= 8) {
      counting c = {.size = 100, .piece = 100, .fails_at = UINT64_MAX};
      memset(name, 'n', length);
      name[length] = 0;
      const mix_zip_member members[] = {{.name = "first", .pieces = {{name, length}}},
                                        {.name = name, .source = source_of(&c), .alignment = alignment}};
      assert_true(write_archive("a.zip", 2, members, NULL));
      zip_t *zip = open_archive("a.zip");
      unsigned char expected[100];
      for (int i = 0; i < 100; i++) expected[i] = (unsigned char)i;
      expect_member(zip, 1, name, expected, 100);
      zip_discard(zip);
      unsigned char bytes[1024];
      FILE *file = fopen(in_folder("a.zip"), "rb");
      const size_t size = fread(bytes, 1, sizeof bytes, file);
      fclose(file);
      const unsigned char *at = bytes;
      while (at < bytes + size - 100 && memcmp(at, expected, 100)) at++;
      assert_true(at < bytes + size - 100 && (at - bytes) % alignment == 0);
    }
}

/* More than 16 bits count. */
static void many_members(void **state) {
  (void)state;
  enum { COUNT = 70000 };
  char(*names)[16] = calloc(COUNT, sizeof *names);
  mix_zip_member *members = calloc(COUNT, sizeof *members);
  assert_true(names && members);
  for (int i = 0; i < COUNT; i++) {
    snprintf(names[i], sizeof names[i], "%d", i);
    members[i] = (mix_zip_member){.name = names[i], .pieces = {{names[i], strlen(names[i])}}};
  }
  for (int count = 65534; count <= COUNT; count = count < 65536 ? count + 1 : count + COUNT - 65536) {
    assert_true(write_archive("a.zip", count, members, NULL));
    zip_t *zip = open_archive("a.zip");
    assert_int_equal(zip_get_num_entries(zip, 0), count);
    expect_member(zip, 65533, "65533", "65533", 5);
    zip_discard(zip);
    if (count == COUNT) break;
  }
  free(names);
  free(members);
}

static void what_is_refused(void **state) {
  (void)state;
  const mix_zip_member same[] = {{.name = "a", .pieces = {{"1", 1}}},
                                 {.name = "b", .pieces = {{"2", 1}}},
                                 {.name = "a", .pieces = {{"3", 1}}}};
  assert_false(write_archive("a.zip", 3, same, NULL));
  expect_error(MIX_VALUE_ERROR, "test: two members are called 'a'");
  char *name = malloc(65537);
  memset(name, 'n', 65536);
  name[65536] = 0;
  assert_false(write_archive("a.zip", 1, &(mix_zip_member){.name = name, .pieces = {{"1", 1}}}, NULL));
  expect_error(MIX_VALUE_ERROR, "has 65536 bytes; expected at most 65535");
  free(name);
  assert_int_equal(folder_count(), 0);
}

/* The part goes, the error is the source's. */
static void a_source_that_fails(void **state) {
  (void)state;
  for (uint64_t at = 0; at < 300; at += 100) {
    counting c = {.size = 300, .piece = 100, .fails_at = at};
    assert_false(write_archive("a.zip", 1, &(mix_zip_member){.name = "a", .source = source_of(&c)}, NULL));
    expect_error(MIX_RUNTIME_ERROR, "the source ends early");
    assert_int_equal(folder_count(), 0);
  }
}

int main(void) {
#define ZIP_TEST(function) cmocka_unit_test_setup_teardown(function, folder_begin, end)
  const struct CMUnitTest tests[] = {ZIP_TEST(members_of_memory_and_of_sources),
                                     ZIP_TEST(nothing),
                                     ZIP_TEST(members_at_multiples),
                                     ZIP_TEST(many_members),
                                     ZIP_TEST(what_is_refused),
                                     ZIP_TEST(a_source_that_fails)};
  return cmocka_run_group_tests_name("zip writer", tests, NULL, NULL);
}
