/* Writes zip archives as PKWARE's APPNOTE 6.3 lays them out, with the fields of 64 bits where they are
 * needed. */
#include "formats/zip_writer.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/output_file.h"
#include "formats/protobuf.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

enum {
  DATE = 0x21, /* 1980-01-01 */
  PLAIN = 20,  /* versions that a reader needs */
  WIDE = 45,
  UNIX = 3 << 8, /* who gives the mode of a file its meaning */
  UTF8_NAME = 1 << 11,
  WIDE_FIELD = 1,
  PADDING_FIELD = 0xD935, /* as zipalign's: the alignment, then zeros */
  FIELD_HEAD = 4,
  LOCAL_HEAD = 30,
  CRC_PLACE = 14 /* in a local header */
};
#define MODE UINT32_C(0100644)
#define NARROW_MAX UINT32_MAX /* says that the number stands in a field of 64 bits */

typedef struct entry {
  uint64_t offset, size;
  uint32_t crc;
} entry;

typedef struct archive {
  mix_output_file output;
  entry *entries;
  bool failed; /* errno says why, unless an error is recorded */
} archive;

static void put(archive *a, const void *data, size_t size) {
  if (!a->failed && !mix_output_put(&a->output, data, size)) a->failed = true;
}

static void put_number(archive *a, uint64_t number, int bytes) {
  unsigned char data[8];
  mix_put_le(data, number, bytes);
  put(a, data, (size_t)bytes);
}

static uint64_t narrow(uint64_t number) { return number < NARROW_MAX ? number : NARROW_MAX; }

/* ---- members ---- */

static uint64_t member_size(const mix_zip_member *member) {
  return member->pieces[0].size + member->pieces[1].size + (member->source.next ? member->source.size : 0);
}

static int name_flags(const char *name) {
  for (; *name; name++)
    if ((unsigned char)*name >= 0x80) return UTF8_NAME;
  return 0;
}

/* What both headers of a member have from the flags to the length of its name. */
static void put_common(archive *a, const mix_zip_member *member, const entry *e) {
  put_number(a, (uint64_t)name_flags(member->name), 2);
  put_number(a, 0, 4); /* stored; no time */
  put_number(a, DATE, 2);
  put_number(a, e->crc, 4);
  put_number(a, narrow(e->size), 4);
  put_number(a, narrow(e->size), 4);
  put_number(a, strlen(member->name), 2);
}

/* The size of a field that puts the member's first byte where it is wanted; 0: it is there without. */
static size_t padding_size(const archive *a, const mix_zip_member *member, size_t head) {
  const size_t alignment = (size_t)member->alignment, least = FIELD_HEAD + 2;
  const uint64_t data = a->output.size + head;
  if (!alignment || data % alignment == 0) return 0;
  return least + (size_t)(-(data + least) % alignment);
}

static void put_padding(archive *a, const mix_zip_member *member, size_t size) {
  put_number(a, PADDING_FIELD, 2);
  put_number(a, size - FIELD_HEAD, 2);
  put_number(a, (uint64_t)member->alignment, 2);
  for (size_t i = FIELD_HEAD + 2; i < size; i++) put_number(a, 0, 1);
}

static void put_local_header(archive *a, const mix_zip_member *member, const entry *e) {
  const bool wide = e->size >= NARROW_MAX;
  const size_t extra = wide ? FIELD_HEAD + 16 : 0;
  const size_t padding = padding_size(a, member, LOCAL_HEAD + strlen(member->name) + extra);
  put(a, "PK\3\4", 4);
  put_number(a, wide ? WIDE : PLAIN, 2);
  put_common(a, member, e);
  put_number(a, extra + padding, 2);
  put(a, member->name, strlen(member->name));
  if (wide) {
    put_number(a, WIDE_FIELD, 2);
    put_number(a, 16, 2);
    put_number(a, e->size, 8);
    put_number(a, e->size, 8);
  }
  if (padding) put_padding(a, member, padding);
}

/* The check sum is known at the end, and goes into the header then. */
static void put_source(archive *a, const mix_piece_source *source, entry *e) {
  unsigned char crc[4];
  mix_bytes piece;
  do {
    if (!source->next(source->context, &piece)) a->failed = true;
    if (a->failed) return;
    put(a, piece.data, piece.size);
    if (piece.size) e->crc = (uint32_t)crc32_z(e->crc, piece.data, piece.size);
  } while (piece.size);
  mix_put_le(crc, e->crc, sizeof crc);
  if (!a->failed && !mix_output_change(&a->output, e->offset + CRC_PLACE, crc, sizeof crc)) a->failed = true;
}

static void put_member(archive *a, const mix_zip_member *member, entry *e) {
  *e = (entry){a->output.size, member_size(member), 0};
  for (int i = 0; i < 2; i++)
    if (member->pieces[i].size)
      e->crc = (uint32_t)crc32_z(e->crc, member->pieces[i].data, member->pieces[i].size);
  put_local_header(a, member, e);
  for (int i = 0; i < 2; i++) put(a, member->pieces[i].data, member->pieces[i].size);
  if (member->source.next && !a->failed) put_source(a, &member->source, e);
}

/* ---- the directory ---- */

static void put_directory_entry(archive *a, const mix_zip_member *member, const entry *e) {
  const bool wide_size = e->size >= NARROW_MAX, wide_offset = e->offset >= NARROW_MAX;
  const int wide = 16 * wide_size + 8 * wide_offset;
  put(a, "PK\1\2", 4);
  put_number(a, UNIX | WIDE, 2);
  put_number(a, wide ? WIDE : PLAIN, 2);
  put_common(a, member, e);
  put_number(a, wide ? (uint64_t)(FIELD_HEAD + wide) : 0, 2);
  put_number(a, 0, 6); /* no comment; the first disk; no text */
  put_number(a, MODE << 16, 4);
  put_number(a, narrow(e->offset), 4);
  put(a, member->name, strlen(member->name));
  if (!wide) return;
  put_number(a, WIDE_FIELD, 2);
  put_number(a, (uint64_t)wide, 2);
  if (wide_size) put_number(a, e->size, 8), put_number(a, e->size, 8);
  if (wide_offset) put_number(a, e->offset, 8);
}

static void put_wide_end(archive *a, uint64_t count, uint64_t begin, uint64_t size) {
  const uint64_t here = a->output.size;
  put(a, "PK\6\6", 4);
  put_number(a, 44, 8);
  put_number(a, UNIX | WIDE, 2);
  put_number(a, WIDE, 2);
  put_number(a, 0, 8);
  put_number(a, count, 8);
  put_number(a, count, 8);
  put_number(a, size, 8);
  put_number(a, begin, 8);
  put(a, "PK\6\7", 4);
  put_number(a, 0, 4);
  put_number(a, here, 8);
  put_number(a, 1, 4);
}

static void put_end(archive *a, uint64_t count, uint64_t begin, const char *comment) {
  const uint64_t size = a->output.size - begin, narrow_count = count < UINT16_MAX ? count : UINT16_MAX;
  const size_t length = comment ? strlen(comment) : 0;
  if (count >= UINT16_MAX || size >= NARROW_MAX || begin >= NARROW_MAX) put_wide_end(a, count, begin, size);
  put(a, "PK\5\6", 4);
  put_number(a, 0, 4);
  put_number(a, narrow_count, 2);
  put_number(a, narrow_count, 2);
  put_number(a, narrow(size), 4);
  put_number(a, narrow(begin), 4);
  put_number(a, length, 2);
  put(a, comment, length);
}

/* ---- the archive ---- */

static int by_name(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Sorts the names. */
static bool check_names(const char *call, int count, const char **names) {
  qsort(names, (size_t)count, sizeof *names, by_name);
  for (int i = 0; i < count; i++) {
    if (i && !strcmp(names[i - 1], names[i]))
      return mix_fail_value("%s: two members are called '%s'; names in an archive must differ", call,
                            names[i]);
    if (strlen(names[i]) > UINT16_MAX)
      return mix_fail_value("%s: the name '%.60s...' has %zu bytes; expected at most %d", call, names[i],
                            strlen(names[i]), UINT16_MAX);
  }
  return true;
}

static bool names_are_good(const char *call, int count, const mix_zip_member *members) {
  const char **names = mix_alloc(((size_t)count + 1) * sizeof *names);
  for (int i = 0; names && i < count; i++) names[i] = members[i].name;
  const bool good = names && check_names(call, count, names);
  mix_free(names);
  return good;
}

static void put_archive(archive *a, int count, const mix_zip_member *members, const char *comment) {
  for (int i = 0; i < count && !a->failed; i++) put_member(a, &members[i], &a->entries[i]);
  const uint64_t begin = a->output.size;
  for (int i = 0; i < count && !a->failed; i++) put_directory_entry(a, &members[i], &a->entries[i]);
  put_end(a, (uint64_t)count, begin, comment);
}

/* Fills what was opened. */
static bool fill_archive(archive *a, const char *call, int count, const mix_zip_member *members,
                         const char *comment) {
  if (!names_are_good(call, count, members)) return false;
  a->entries = mix_calloc((size_t)count + 1, sizeof *a->entries);
  if (!a->entries) return false;
  put_archive(a, count, members, comment);
  mix_free(a->entries);
  return !a->failed;
}

bool mix_zip_write(const char *call, const char *path, const char *part, int count,
                   const mix_zip_member *members, const char *comment) {
  archive a = {0};
  const bool opened = mix_output_open(&a.output, part);
  bool done = opened && fill_archive(&a, call, count, members, comment);
  int reason = errno;
  if (opened && !mix_output_close(&a.output) && done) {
    reason = errno;
    done = false;
  }
  if (opened && !done) unlink(part);
  return done || mix_fail_io("%s: %s cannot be written: %s", call, path, strerror(reason));
}

void *mix_zip_write_memory(const char *call, int count, const mix_zip_member *members, const char *comment,
                           size_t *size) {
  archive a = {0};
  mix_output_open_memory(&a.output);
  if (fill_archive(&a, call, count, members, comment)) return mix_output_take(&a.output, size);
  mix_output_close(&a.output);
  return NULL;
}
