/* Finds stored members in an archive's bytes: the ".ZIP File Format Specification" (APPNOTE) 6.3, 4.3. */
#include "formats/zip_stored.h"

#include <stdint.h>
#include <string.h>
#include <zlib.h>

enum { LOCAL = 30, ENTRY = 46, END = 22, END_64 = 56, LOCATOR_64 = 20, MAX_COMMENT = 65535, EXTRA_64 = 1 };

typedef struct archive {
  const unsigned char *bytes;
  size_t size;
} archive;

/* The bytes [at, at + size); NULL: they are not all there. */
static const unsigned char *block(const archive *a, uint64_t at, uint64_t size) {
  return at <= a->size && size <= a->size - at ? a->bytes + at : NULL;
}

/* The same behind a signature of four letters. */
static const unsigned char *record(const archive *a, uint64_t at, uint64_t size, const char *signature) {
  const unsigned char *found = block(a, at, size);
  return found && !memcmp(found, signature, 4) ? found : NULL;
}

static uint64_t number(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

/* The record at the archive's end, whose comment reaches to the last byte. */
static const unsigned char *find_end(const archive *a) {
  for (size_t comment = 0; comment <= MAX_COMMENT && comment + END <= a->size; comment++) {
    const unsigned char *end = record(a, a->size - END - comment, END, "PK\5\6");
    if (end && number(end + 20, 2) == comment) return end;
  }
  return NULL;
}

/* Where the directory begins and how many entries it has. */
static bool find_directory(const archive *a, uint64_t *at, uint64_t *count) {
  const unsigned char *end = find_end(a);
  if (!end) return false;
  *count = number(end + 10, 2);
  *at = number(end + 16, 4);
  if (*at != UINT32_MAX && *count != UINT16_MAX) return true;
  const uint64_t place = (uint64_t)(end - a->bytes);
  const unsigned char *locator =
      place < LOCATOR_64 ? NULL : record(a, place - LOCATOR_64, LOCATOR_64, "PK\6\7");
  const unsigned char *end64 = locator ? record(a, number(locator + 8, 8), END_64, "PK\6\6") : NULL;
  if (!end64) return locator == NULL;
  *count = number(end64 + 32, 8);
  *at = number(end64 + 48, 8);
  return true;
}

/* A size or an offset of an entry: what does not fit into 32 bits stands in a field of 64, in this order. */
static bool wide_number(const unsigned char *entry, int which, uint64_t *value) {
  static const int places[] = {24, 20, 42};
  const unsigned char *at = entry + ENTRY + number(entry + 28, 2), *end = at + number(entry + 30, 2);
  *value = number(entry + places[which], 4);
  if (*value != UINT32_MAX) return true;
  for (; end - at >= 4; at += 4 + number(at + 2, 2)) {
    const uint64_t size = number(at + 2, 2);
    if ((uint64_t)(end - at) < 4 + size) return false;
    if (number(at, 2) != EXTRA_64) continue;
    uint64_t skipped = 0;
    for (int i = 0; i < which; i++) skipped += number(entry + places[i], 4) == UINT32_MAX ? 8 : 0;
    if (skipped + 8 > size) return false;
    *value = number(at + 4 + skipped, 8);
    return true;
  }
  return false;
}

/* The member's entry in the directory; NULL: there is none, or the directory is damaged. */
static const unsigned char *find_entry(const archive *a, const char *member) {
  uint64_t at, count;
  const size_t length = strlen(member);
  if (!find_directory(a, &at, &count)) return NULL;
  for (uint64_t i = 0; i < count; i++) {
    const unsigned char *entry = record(a, at, ENTRY, "PK\1\2");
    if (!entry) return NULL;
    const uint64_t name = number(entry + 28, 2);
    const uint64_t whole = ENTRY + name + number(entry + 30, 2) + number(entry + 32, 2);
    if (!block(a, at, whole)) return NULL;
    if (name == length && !memcmp(entry + ENTRY, member, length)) return entry;
    at += whole;
  }
  return NULL;
}

static uint32_t checksum(const unsigned char *bytes, uint64_t size) {
  enum { SOME = 1 << 30 };
  uLong sum = crc32(0, NULL, 0);
  for (uint64_t done = 0; done < size; done += SOME)
    sum = crc32(sum, bytes + done, (uInt)(size - done < SOME ? size - done : SOME));
  return (uint32_t)sum;
}

const void *mix_zip_find_stored(const mix_zip *zip, const char *member, const void *bytes,
                                size_t archive_size, size_t *size) {
  const archive a = {bytes, archive_size};
  uint64_t length, packed, at;
  const unsigned char *entry = mix_zip_has(zip, member) ? find_entry(&a, member) : NULL;
  if (!entry || number(entry + 10, 2) != 0 || number(entry + 8, 2) & 1) return NULL; /* deflated, encrypted */
  if (!wide_number(entry, 0, &length) || !wide_number(entry, 1, &packed) || !wide_number(entry, 2, &at))
    return NULL;
  const unsigned char *local = packed == length ? record(&a, at, LOCAL, "PK\3\4") : NULL;
  if (!local) return NULL;
  const uint64_t begin = at + LOCAL + number(local + 26, 2) + number(local + 28, 2);
  const unsigned char *found = block(&a, begin, length);
  if (!found || checksum(found, length) != number(entry + 16, 4)) return NULL;
  *size = (size_t)length;
  return found;
}
