/* The bytes of files of the HDF5 writer against the "HDF5 File Format Specification 3.0": this test reads
 * them by itself, more strictly than the reader, since the library's other readers trust them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "formats/hdf5.h"
#include "formats/written_hdf5.h"
#include "support/expect.h"
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static written_hdf5 file;

static int end(void **state) {
  (void)state;
  free(file.data);
  file = (written_hdf5){0};
  mix_error_clear();
  mix_shutdown();
  return 0;
}

/* For tests/oracle/hdf5_files.py, which reads the files by the HDF5 library. */
static void keep(void) {
  static int number;
  char path[1024];
  if (!getenv("MIXTAPE_HDF5_OUT")) return;
  snprintf(path, sizeof path, "%s/%02d.h5", getenv("MIXTAPE_HDF5_OUT"), number++);
  FILE *out = fopen(path, "wb");
  assert_true(out && fwrite(file.data, 1, file.size, out) == file.size && fclose(out) == 0);
}

static void take(mix_hdf5_writer *writer) {
  assert_true(take_hdf5(writer, &file));
  keep();
}

/* The bytes [at, at + size), which the file must have. */
static const unsigned char *bytes_at(uint64_t at, size_t size) {
  assert_true(at <= file.size && size <= file.size - at);
  return file.data + at;
}

static uint64_t number_at(uint64_t at, int size) {
  uint64_t number = 0;
  memcpy(&number, bytes_at(at, (size_t)size), (size_t)size);
  return number;
}

static mix_tensor *zeros(mix_dtype dtype, int64_t count) { return mix_fill(MIX_SHAPE(count), 0, dtype); }

/* ---- the superblock ---- */

static void superblock(void **state) {
  (void)state;
  static const unsigned char head[] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n', 0, 0, 0, 0,
                                       0,    8,   8,   0,   4,    0,    16,   0,    0, 0, 0, 0};
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_group(writer, "a"));
  take(writer);
  assert_memory_equal(bytes_at(0, sizeof head), head, sizeof head);
  assert_true(number_at(24, 8) == 0);          /* base */
  assert_true(number_at(32, 8) == UINT64_MAX); /* free space */
  assert_true(number_at(40, 8) == file.size);
  assert_true(number_at(48, 8) == UINT64_MAX); /* driver */
  const uint64_t header = number_at(64, 8);
  assert_int_equal(number_at(72, 4), 1); /* the symbol table's addresses follow */
  /* they are those of the root's own message */
  assert_int_equal(number_at(header + 16, 2), 0x11);
  assert_memory_equal(bytes_at(80, 16), bytes_at(header + 24, 16), 16);
}

/* ---- groups ---- */

typedef struct group {
  uint64_t names, names_size;
  char last[5000]; /* the name that came last */
  int links, level;
  uint64_t previous[8]; /* the last node of each level */
} group;

static const char *name_at(const group *g, uint64_t place) {
  assert_true(place < g->names_size && place % 8 == 0);
  const char *name = (const char *)bytes_at(g->names + place, 1);
  assert_true(strnlen(name, g->names_size - place) < g->names_size - place);
  return name;
}

static void check_leaf(group *g, uint64_t at, const char *least, const char *greatest) {
  assert_memory_equal(bytes_at(at, 8 + 8 * 40), "SNOD\1", 6);
  const int count = (int)number_at(at + 6, 2);
  assert_in_range(count, 1, 8);
  for (int i = 0; i < count; i++) {
    const uint64_t entry = at + 8 + 40 * (uint64_t)i;
    const char *name = name_at(g, number_at(entry, 8));
    assert_true(strcmp(g->last, name) < 0 && strcmp(least, name) < 0 && strcmp(name, greatest) <= 0);
    strcpy(g->last, name);
    assert_int_equal(*bytes_at(number_at(entry + 8, 8), 16), 1); /* an object header of version 1 */
    assert_int_equal(number_at(entry + 16, 4), 0);
    g->links++;
  }
}

static void check_node(group *g, uint64_t at, int level) {
  assert_memory_equal(bytes_at(at, 24 + 8 * 65), "TREE", 5);
  assert_int_equal(number_at(at + 5, 1), level);
  const int count = (int)number_at(at + 6, 2);
  assert_in_range(count, g->links || level < g->level, 32);
  assert_true(number_at(at + 8, 8) == (g->previous[level] ? g->previous[level] : UINT64_MAX));
  if (g->previous[level]) assert_true(number_at(g->previous[level] + 16, 8) == at);
  g->previous[level] = at;
  for (int i = 0; i < count; i++) {
    const uint64_t key = at + 24 + 16 * (uint64_t)i;
    const char *least = name_at(g, number_at(key, 8)), *greatest = name_at(g, number_at(key + 16, 8));
    const uint64_t child = number_at(key + 8, 8);
    if (level)
      check_node(g, child, level - 1);
    else
      check_leaf(g, child, least, greatest);
    assert_string_equal(g->last, greatest);
  }
}

/* The links of the root. */
static int check_root(void) {
  group g = {0};
  const uint64_t tree = number_at(80, 8), heap = number_at(88, 8);
  assert_memory_equal(bytes_at(heap, 32), "HEAP\0\0\0", 8);
  g.names_size = number_at(heap + 8, 8);
  assert_true(number_at(heap + 16, 8) == 1); /* nothing is free */
  g.names = number_at(heap + 24, 8);
  bytes_at(g.names, g.names_size);
  assert_string_equal(name_at(&g, 0), "");
  g.level = (int)number_at(tree + 5, 1);
  check_node(&g, tree, g.level);
  for (int level = 0; level <= g.level; level++)
    assert_true(number_at(g.previous[level] + 16, 8) == UINT64_MAX);
  return g.links;
}

/* Around what fills a leaf, a node of 32 leaves, and a tree of two levels; and one of three. */
static void groups_of_any_size(void **state) {
  (void)state;
  static const int counts[] = {0, 1, 7, 8, 9, 255, 256, 257, 8192, 8193, 10000};
  for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
    mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
    for (int i = 0; i < counts[c]; i++) {
      char name[32];
      snprintf(name, sizeof name, "layer_%d", i * 7919 % 10007);
      assert_true(mix_hdf5_write_group(writer, name));
    }
    take(writer);
    assert_int_equal(check_root(), counts[c]);
    assert_int_equal(number_at(number_at(80, 8) + 5, 1), counts[c] <= 256 ? 0 : counts[c] <= 8192 ? 1 : 2);
    free(file.data);
    file.data = NULL;
  }
}

static bool same_name(void *context, const char *name, bool is_group) {
  const char *const **expected = context;
  assert_false(is_group);
  assert_string_equal(name, *(*expected)++);
  return true;
}

/* Sorted as bytes: names that are prefixes of others, of every length modulo 8, not ASCII. */
static void names(void **state) {
  (void)state;
  static char longest[4000];
  static const char *const sorted[] = {"\x01",
                                       " ",
                                       "0",
                                       "1",
                                       "10",
                                       "A",
                                       "a",
                                       "a b",
                                       "aa",
                                       "aaaaaaa",
                                       "aaaaaaaa",
                                       "aaaaaaaaa",
                                       longest,
                                       "\xc3\xa9t\xc3\xa9",
                                       "\xe5\xb1\x82",
                                       "\xf0\x9f\x98\x80"};
  enum { COUNT = sizeof sorted / sizeof *sorted };
  memset(longest, 'z', sizeof longest - 1);
  mix_hdf5 open;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  for (int i = 0; i < COUNT; i++)
    assert_true(mix_hdf5_write_tensor(writer, sorted[i * 7 % COUNT], zeros(MIX_FLOAT32, 1 + i * 7 % COUNT)));
  take(writer);
  assert_int_equal(check_root(), COUNT);
  assert_true(mix_hdf5_open(&open, "names", file.data, file.size));
  const char *const *next = sorted;
  assert_true(mix_hdf5_list(&open, "", same_name, &next));
  for (int i = 0; i < COUNT; i++) {
    mix_dtype dtype;
    mix_shape shape;
    assert_true(mix_hdf5_describe(&open, sorted[i], &dtype, &shape) && shape.dims[0] == 1 + i);
  }
  mix_hdf5_close(&open);
}

/* ---- data sets ---- */

/* The body of the first message of that type in the only object of the root. */
static uint64_t message_of_first(int type, size_t *size) {
  const uint64_t tree = number_at(80, 8), leaf = number_at(tree + 32, 8), header = number_at(leaf + 16, 8);
  assert_int_equal(*bytes_at(header, 16), 1);
  const int count = (int)number_at(header + 2, 2);
  uint64_t at = header + 16, found = 0, left = number_at(header + 8, 4);
  assert_int_equal(number_at(header + 4, 4), 1);
  for (int i = 0; i < count; i++) {
    const size_t body = number_at(at + 2, 2);
    assert_true(body % 8 == 0 && left >= body + 8);
    if (!found && number_at(at, 2) == (uint64_t)type) found = at + 8, *size = body;
    at += body + 8;
    left -= body + 8;
  }
  assert_true(found && left == 0);
  return found;
}

static void types(void **state) {
  (void)state;
  static const struct {
    mix_dtype dtype;
    size_t size;
    const char *bytes; /* IV.A.2.d of the specification */
  } rows[] = {{MIX_FLOAT16, 20, "\x11\x20\x0f\0\2\0\0\0\0\0\x10\0\x0a\5\0\x0a\x0f\0\0\0"},
              {MIX_FLOAT32, 20, "\x11\x20\x1f\0\4\0\0\0\0\0\x20\0\x17\x08\0\x17\x7f\0\0\0"},
              {MIX_FLOAT64, 20, "\x11\x20\x3f\0\x08\0\0\0\0\0\x40\0\x34\x0b\0\x34\xff\3\0\0"},
              {MIX_INT8, 12, "\x10\x08\0\0\1\0\0\0\0\0\x08\0"},
              {MIX_INT16, 12, "\x10\x08\0\0\2\0\0\0\0\0\x10\0"},
              {MIX_INT32, 12, "\x10\x08\0\0\4\0\0\0\0\0\x20\0"},
              {MIX_INT64, 12, "\x10\x08\0\0\x08\0\0\0\0\0\x40\0"},
              {MIX_UINT8, 12, "\x10\0\0\0\1\0\0\0\0\0\x08\0"},
              {MIX_BFLOAT16, 8, "\x15\0\0\0\2\0\0\0"},
              {MIX_BOOL, 38, "\x18\2\0\0\1\0\0\0\x10\x08\0\0\1\0\0\0\0\0\x08\0FALSE\0\0\0TRUE\0\0\0\0\0\1"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t size = 0;
    mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
    assert_true(mix_hdf5_write_tensor(writer, "0", zeros(rows[i].dtype, 3)));
    take(writer);
    const uint64_t type = message_of_first(3, &size);
    assert_int_equal(size, (rows[i].size + 7) / 8 * 8);
    assert_memory_equal(bytes_at(type, size), rows[i].bytes, rows[i].size);
    const uint64_t space = message_of_first(1, &size), layout = message_of_first(8, &size);
    assert_memory_equal(bytes_at(space, 16), "\1\1\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);
    assert_memory_equal(bytes_at(layout, 2), "\3\1", 2);
    assert_int_equal(number_at(layout + 10, 8), 3 * mix_dtype_size(rows[i].dtype));
    free(file.data);
    file.data = NULL;
  }
}

static uint64_t place_of(mix_hdf5 *open, const char *path) {
  mix_tensor *borrowed = mix_hdf5_borrow(open, path);
  const unsigned char *data = borrowed ? mix_tensor_data(borrowed) : NULL;
  assert_true(data >= file.data && data < file.data + file.size);
  return (uint64_t)(data - file.data);
}

/* 4096 bytes and more at multiples of 64, less at multiples of 8; what lies between is zeros. */
static void places(void **state) {
  (void)state;
  static const int sizes[] = {1, 4096, 3, 4095, 4097, 8, 100000, 0, 5, 3 << 20, 64};
  enum { COUNT = sizeof sizes / sizeof *sizes };
  mix_hdf5 open;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  for (int i = 0; i < COUNT; i++) {
    char name[16];
    snprintf(name, sizeof name, "%02d", i);
    mix_tensor *values = mix_fill(MIX_SHAPE(sizes[i]), i + 1, MIX_UINT8);
    assert_true(mix_hdf5_write_tensor(writer, name, values));
  }
  take(writer);
  assert_true(mix_hdf5_open(&open, "places", file.data, file.size));
  uint64_t used = 96;
  for (int i = 0; i < COUNT; i++) {
    char name[16];
    snprintf(name, sizeof name, "%02d", i);
    if (!sizes[i]) continue;
    const uint64_t at = place_of(&open, name), alignment = sizes[i] < 4096 ? 8 : 64;
    assert_true(at >= used && at - used < alignment && at % alignment == 0);
    for (; used < at; used++) assert_int_equal(file.data[used], 0);
    for (; used < at + (uint64_t)sizes[i]; used++) assert_int_equal(file.data[used], i + 1);
  }
  mix_hdf5_close(&open);
}

/* What is saved is what the variables had when they were noted. */
static void values_are_those_of_the_call(void **state) {
  (void)state;
  mix_hdf5 open;
  mix_variable *variable = mix_variable_new(zeros(MIX_FLOAT32, 500000), .name = "v");
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_tensor(writer, "v", mix_variable_value(variable)));
  mix_variable_assign(variable, mix_fill(MIX_SHAPE(500000), 1, MIX_FLOAT32));
  take(writer);
  assert_true(mix_hdf5_open(&open, "values", file.data, file.size));
  assert_true(mix_tensor_item(mix_reduce_sum(mix_hdf5_tensor(&open, "v"), MIX_ALL_AXES, false)) == 0);
  assert_true(mix_tensor_item(mix_reduce_sum(mix_variable_value(variable), MIX_ALL_AXES, false)) == 500000);
  mix_hdf5_close(&open);
}

/* ---- attributes ---- */

static void expect_text(mix_hdf5 *open, const char *name, const char *expected) {
  mix_hdf5_value value;
  assert_true(mix_hdf5_attribute(open, "", name, &value));
  assert_int_equal(value.count, 1);
  assert_string_equal(value.texts[0], expected);
  mix_hdf5_value_free(&value);
}

/* Collections whose last room is 0, 8, 16 and more bytes; texts that end them; one longer than any. */
static void collections(void **state) {
  (void)state;
  static const size_t lengths[] = {4064, 4060, 4056, 4049,  4048, 4041, 4040, 100,
                                   3900, 60,   1,    70000, 7,    8,    9};
  enum { COUNT = sizeof lengths / sizeof *lengths };
  static char texts[COUNT][70001];
  char name[16];
  mix_hdf5 open;
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  for (int i = 0; i < COUNT; i++) {
    memset(texts[i], 'a' + i, lengths[i]);
    snprintf(name, sizeof name, "%d", i);
    assert_true(mix_hdf5_write_text(writer, "", name, texts[i]));
  }
  take(writer);
  int found = 0;
  for (uint64_t at = 96; !memcmp(bytes_at(at, 16), "GCOL\1\0\0", 8); found++) {
    const uint64_t size = number_at(at + 8, 8);
    assert_true(size >= 4096 && size % 8 == 0);
    uint64_t object = at + 16;
    while (at + size - object >= 16 && number_at(object, 2)) {
      assert_int_equal(number_at(object + 2, 6), 0);
      object += 16 + (number_at(object + 8, 8) + 7) / 8 * 8;
    }
    if (at + size - object >= 16) assert_true(number_at(object + 8, 8) == at + size - object);
    at += size;
  }
  assert_int_equal(found, 11);
  assert_true(mix_hdf5_open(&open, "collections", file.data, file.size));
  for (int i = 0; i < COUNT; i++) {
    snprintf(name, sizeof name, "%d", i);
    expect_text(&open, name, texts[i]);
  }
  mix_hdf5_close(&open);
}

/* A message holds 65528 bytes: 8 of sizes, 8 of the type, 16 of the space, the name, and the texts. */
static void an_attribute_at_its_limit(void **state) {
  (void)state;
  enum { ROOM = 65528 - 8 - 8 - 16 - 64512 };
  static char text[64513], name[ROOM + 1];
  const char *const texts[] = {text};
  mix_hdf5 open;
  memset(text, 't', sizeof text - 1);
  memset(name, 'n', ROOM - 1);
  mix_hdf5_writer *writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_texts(writer, "", "short", 1, texts));
  assert_true(mix_hdf5_write_texts(writer, "", name, 1, texts));
  take(writer);
  assert_true(mix_hdf5_open(&open, "limit", file.data, file.size));
  expect_text(&open, "short", text);
  expect_text(&open, name, text);
  mix_hdf5_close(&open);
  name[ROOM - 1] = 'n';
  written_hdf5 none;
  writer = mix_hdf5_writer_new("test");
  assert_true(mix_hdf5_write_texts(writer, "", name, 1, texts));
  assert_false(take_hdf5(writer, &none));
  expect_error(MIX_VALUE_ERROR, "takes 65536 bytes; HDF5 files take at most 65528");
}

int main(void) {
#define LAYOUT_TEST(function) cmocka_unit_test_teardown(function, end)
  const struct CMUnitTest tests[] = {LAYOUT_TEST(superblock),  LAYOUT_TEST(groups_of_any_size),
                                     LAYOUT_TEST(names),       LAYOUT_TEST(types),
                                     LAYOUT_TEST(places),      LAYOUT_TEST(values_are_those_of_the_call),
                                     LAYOUT_TEST(collections), LAYOUT_TEST(an_attribute_at_its_limit)};
  return cmocka_run_group_tests_name("HDF5 layout", tests, NULL, NULL);
}
