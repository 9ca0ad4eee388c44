/* Shared by the tests of data/: a temporary folder, files with given bytes, and archives built byte by
 * byte. */
#ifndef TESTS_DATA_SUPPORT_H
#define TESTS_DATA_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/object.h>
#include <mixtape/tensor.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "support/folder.h"

/* Teardown of the folder and of the library's caches. */
static inline int data_end(void **state) {
  mix_error_clear();
  mix_shutdown();
  return folder_end(state);
}
#define FOLDER_TEST(test) cmocka_unit_test_setup_teardown(test, folder_begin, data_end)

static inline void write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}

/* The whole file; `*size` bytes, in memory that the next call reuses. */
static inline const unsigned char *read_file(const char *path, size_t *size) {
  static unsigned char data[1 << 16];
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  *size = fread(data, 1, sizeof data, file);
  fclose(file);
  return data;
}

/* Expects a pending error of that kind whose message contains `part` (NULL: any). */
static inline void assert_failed(mix_status status, const char *part) {
  char message[2048];
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status) print_message("%s: %s\n", mix_status_name(got), message);
  assert_int_equal(got, status);
  if (part && !strstr(message, part)) print_message("the message lacks '%s': %s\n", part, message);
  if (part) assert_non_null(strstr(message, part));
}

/* A growing array of bytes. */
typedef struct bytes {
  unsigned char data[1 << 17];
  size_t size;
} bytes;

static inline void put(bytes *b, const void *data, size_t size) {
  assert_true(b->size + size <= sizeof b->data);
  if (size) memcpy(b->data + b->size, data, size);
  b->size += size;
}

/* The lowest `width` bytes of the value, little-endian. */
static inline void put_little(bytes *b, uint64_t value, int width) {
  for (int i = 0; i < width; i++) put(b, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

static inline void put_big(bytes *b, uint64_t value, int width) {
  for (int i = width - 1; i >= 0; i--) put(b, &(unsigned char){(unsigned char)(value >> 8 * i)}, 1);
}

/* A .npy file of format version 1 (or `version`) with this dictionary. */
static inline void put_npy(bytes *b, int version, const char *dictionary, const void *elements, size_t size) {
  put(b, "\x93NUMPY", 6);
  put_little(b, (uint64_t)version, 2);
  put_little(b, strlen(dictionary), version == 1 ? 2 : 4);
  put(b, dictionary, strlen(dictionary));
  put(b, elements, size);
}

/* A zip archive as Python's zipfile writes it, one member at a time: local headers first; put_zip_end writes
 * the directory. */
typedef struct zip_writer {
  bytes file, directory;
  int count;
} zip_writer;

/* Deflates into `to`, raw as in a zip. */
static inline size_t deflated(const void *data, size_t size, void *to, size_t capacity) {
  z_stream stream = {.next_in = (Bytef *)(uintptr_t)data,
                     .avail_in = (uInt)size,
                     .next_out = to,
                     .avail_out = (uInt)capacity};
  assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY), Z_OK);
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  size_t made = stream.total_out;
  deflateEnd(&stream);
  return made;
}

/* `declared` is the size in the headers (numpy's own files: size). */
static inline void put_member(zip_writer *zip, const char *name, const void *data, size_t size,
                              int compressed, size_t declared) {
  static unsigned char packed[1 << 13];
  uint32_t checksum = (uint32_t)crc32(0, data, (uInt)size);
  size_t packed_size = size;
  if (compressed) {
    packed_size = deflated(data, size, packed, sizeof packed);
    data = packed;
  }
  size_t offset = zip->file.size;
  bytes fields = {.size = 0};
  put_little(&fields, 20, 2); /* version needed */
  put_little(&fields, 0, 2);  /* flags */
  put_little(&fields, compressed ? 8 : 0, 2);
  put_little(&fields, 0, 2);    /* time */
  put_little(&fields, 0x21, 2); /* date: 1980-01-01 */
  put_little(&fields, checksum, 4);
  put_little(&fields, packed_size, 4);
  put_little(&fields, declared, 4);
  put_little(&fields, strlen(name), 2);
  put_little(&fields, 0, 2); /* extra */
  put(&zip->file, "PK\3\4", 4);
  put(&zip->file, fields.data, fields.size);
  put(&zip->file, name, strlen(name));
  put(&zip->file, data, packed_size);
  put(&zip->directory, "PK\1\2\24\0", 6); /* made by version 20 */
  put(&zip->directory, fields.data, fields.size);
  put_little(&zip->directory, 0, 2); /* comment */
  put_little(&zip->directory, 0, 2); /* disk */
  put_little(&zip->directory, 0, 2); /* internal attributes */
  put_little(&zip->directory, 0, 4); /* external attributes */
  put_little(&zip->directory, offset, 4);
  put(&zip->directory, name, strlen(name));
  zip->count++;
}

static inline void put_zip_end(zip_writer *zip) {
  size_t offset = zip->file.size;
  put(&zip->file, zip->directory.data, zip->directory.size);
  put(&zip->file, "PK\5\6\0\0\0\0", 8);
  put_little(&zip->file, (uint64_t)zip->count, 2);
  put_little(&zip->file, (uint64_t)zip->count, 2);
  put_little(&zip->file, zip->directory.size, 4);
  put_little(&zip->file, offset, 4);
  put_little(&zip->file, 0, 2);
}

#endif
