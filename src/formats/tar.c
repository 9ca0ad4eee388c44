/* POSIX ustar: blocks of 512 bytes, a header before each file. */
#include "formats/tar.h"
#include "base/alloc.h"
#include "base/error.h"
#include "formats/gzip.h"
#include <string.h>

enum { BLOCK = 512, NAME = 100, SIZE_AT = 124, CHECKSUM_AT = 148, TYPE_AT = 156, FIELD = 12 };

static bool damaged(const char *name, const char *what) {
  return mix_fail_format("%s: not a usable tar archive: %s", name, what);
}

/* Octal digits, which a blank or a zero byte ends. False: something else. */
static bool octal(const unsigned char *digits, int count, uint64_t *value) {
  int i = 0;
  *value = 0;
  while (i < count && digits[i] == ' ') i++;
  for (; i < count && digits[i] >= '0' && digits[i] <= '7'; i++) *value = *value * 8 + (digits[i] - '0');
  return i == count || digits[i] == ' ' || digits[i] == 0;
}

/* The sum of the header's bytes, with blanks for the checksum itself. */
static bool checksum_holds(const unsigned char *header) {
  uint64_t wanted, sum = 0;
  for (int i = 0; i < BLOCK; i++) sum += i >= CHECKSUM_AT && i < CHECKSUM_AT + 8 ? ' ' : header[i];
  return octal(header + CHECKSUM_AT, 8, &wanted) && wanted == sum;
}

static bool is_zero(const unsigned char *header) {
  for (int i = 0; i < BLOCK; i++)
    if (header[i]) return false;
  return true;
}

static bool read_member(const char *name, mix_gzip *r, const unsigned char *header, mix_tar_member *member,
                        void *context) {
  char path[NAME + 1] = "";
  unsigned char rest[BLOCK];
  uint64_t size;
  memcpy(path, header, NAME);
  if (!octal(header + SIZE_AT, FIELD, &size)) return damaged(name, "the size of a file is no number");
  if (size > mix_gzip_max(r)) return damaged(name, "a file is larger than the archive");
  unsigned char *content = mix_alloc((size_t)size + 1);
  if (!content) return false;
  const size_t padding = (BLOCK - (size_t)size % BLOCK) % BLOCK;
  if (!mix_gzip_read(r, content, (size_t)size) || !mix_gzip_read(r, rest, padding))
    return mix_free(content), damaged(name, "it ends early, or its compressed content is damaged");
  const bool plain = header[TYPE_AT] == '0' || header[TYPE_AT] == 0;
  if (plain) return member(context, path, content, (size_t)size);
  mix_free(content);
  return true;
}

bool mix_tar_read(const char *name, const void *data, size_t size, mix_tar_member *member, void *context) {
  unsigned char header[BLOCK];
  mix_gzip r;
  bool good = !mix_failed() && mix_gzip_begin(&r, data, size);
  if (!good) return false;
  while (good) {
    if (!mix_gzip_read(&r, header, BLOCK))
      good = damaged(name, "it ends early, or its compressed content is damaged");
    else if (is_zero(header))
      break;
    else if (!checksum_holds(header))
      good = damaged(name, "the checksum of a header differs");
    else
      good = read_member(name, &r, header, member, context);
  }
  mix_gzip_end(&r);
  return good;
}
