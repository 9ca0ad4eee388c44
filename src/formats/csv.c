/* Reads records of delimited text. */
#include "formats/csv.h"

#include "base/alloc.h"
#include "base/error.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PIECE = 1 << 16, END = -1, RECORD_MAX = 1 << 28 };

/* ---- bytes ---- */

static bool refill(mix_csv_reader *r) {
  if (r->file < 0) return false;
  ssize_t got;
  do got = read(r->file, r->piece, PIECE);
  while (got < 0 && errno == EINTR);
  if (got < 0) return mix_fail_io("%s: cannot be read: %s", r->name, strerror(errno));
  r->at = r->piece;
  r->end = r->piece + got;
  return got > 0;
}

/* The next byte, which stays; END: none, or with the error recorded. */
static int peek(mix_csv_reader *r) { return r->at < r->end || refill(r) ? *r->at : END; }

static bool begin(mix_csv_reader *r) {
  static const unsigned char mark[] = {0xef, 0xbb, 0xbf};
  const int first = peek(r);
  if (first == 0xff || first == 0xfe)
    return mix_fail_format("%s: it begins as UTF-16; save it as UTF-8", r->name);
  if (r->end - r->at >= 3 && !memcmp(r->at, mark, sizeof mark)) r->at += sizeof mark;
  return !mix_failed();
}

static bool open_file(mix_csv_reader *r, const char *path) {
  struct stat status;
  r->file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe does not wait for its writer */
  if (r->file < 0) return mix_fail_io("%s: cannot be opened: %s", path, strerror(errno));
  if (fstat(r->file, &status)) return mix_fail_io("%s: cannot be read: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return mix_fail_io("%s: not a regular file", path);
  r->piece = mix_alloc(PIECE);
  return r->piece && begin(r);
}

bool mix_csv_open(mix_csv_reader *reader, const char *path, char delimiter) {
  *reader = (mix_csv_reader){.name = path, .delimiter = delimiter, .line = 1, .file = -1};
  return !mix_failed() && open_file(reader, path);
}

bool mix_csv_open_memory(mix_csv_reader *reader, const char *name, const void *data, size_t size,
                         char delimiter) {
  static const unsigned char nothing[1];
  const unsigned char *bytes = size ? data : nothing;
  *reader = (mix_csv_reader){
      .name = name, .delimiter = delimiter, .line = 1, .file = -1, .at = bytes, .end = bytes + size};
  return !mix_failed() && begin(reader);
}

void mix_csv_close(mix_csv_reader *reader) {
  if (reader->file >= 0) close(reader->file);
  mix_free(reader->piece);
  mix_free(reader->text);
  mix_free(reader->starts);
  mix_free(reader->fields);
  *reader = (mix_csv_reader){.file = -1};
}

/* ---- one field ---- */

/* What is wrong with the field that is being read, and begins in `line`. */
static bool bad_field(const mix_csv_reader *r, int64_t line, const char *what) {
  return mix_fail_format("%s, line %lld, field %d: %s", r->name, (long long)line, r->count + 1, what);
}

static bool put(mix_csv_reader *r, int64_t line, int byte) {
  if (byte == 0) return bad_field(r, line, "it has a zero byte; is the file in UTF-16, or no text?");
  if (r->used - r->starts[r->count] >= MIX_CSV_FIELD_MAX)
    return bad_field(r, line, "it is longer than 1 MiB; is a quote missing?");
  if (r->used >= RECORD_MAX) return bad_field(r, line, "the record is longer than 256 MiB");
  if (r->used + 1 >= r->capacity && !mix_reserve(&r->text, &r->capacity, r->used + 2, 1)) return false;
  r->text[r->used++] = (char)byte;
  return true;
}

/* No overlong form, no surrogate, nothing above U+10FFFF: JSON, which keeps words, has none of them. */
static bool is_utf8(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c;) {
    const int more = *c < 0x80 ? 0 : *c < 0xc2 ? -1 : *c < 0xe0 ? 1 : *c < 0xf0 ? 2 : *c < 0xf5 ? 3 : -1;
    if (more < 0) return false;
    for (int i = 1; i <= more; i++)
      if ((c[i] & 0xc0) != 0x80) return false;
    if ((*c == 0xe0 && c[1] < 0xa0) || (*c == 0xed && c[1] > 0x9f) || (*c == 0xf0 && c[1] < 0x90) ||
        (*c == 0xf4 && c[1] > 0x8f))
      return false;
    c += 1 + more;
  }
  return true;
}

static bool is_blank(const mix_csv_reader *r, int byte) {
  return (byte == ' ' || byte == '\t') && byte != r->delimiter;
}
static bool is_line_end(int byte) { return byte == '\n' || byte == '\r' || byte == END; }

static bool skip_blanks(mix_csv_reader *r) {
  while (is_blank(r, peek(r))) r->at++;
  return !mix_failed();
}

/* After the first quote. */
static bool read_quoted(mix_csv_reader *r, int64_t line) {
  for (bool after_return = false;;) {
    const int byte = peek(r);
    if (byte == END) return mix_failed() ? false : bad_field(r, line, "its quote is not closed");
    r->at++;
    if (byte == '"' && peek(r) != '"') break;
    if (byte == '"') r->at++;
    r->line += byte == '\r' || (byte == '\n' && !after_return);
    after_return = byte == '\r';
    if (!put(r, line, byte)) return false;
  }
  if (!skip_blanks(r)) return false;
  const int next = peek(r);
  return next == r->delimiter || is_line_end(next) ||
         bad_field(r, line, "text follows its closing quote; a quote within quotes is written twice");
}

static bool read_plain(mix_csv_reader *r, int64_t line) {
  for (int byte; !is_line_end(byte = peek(r)) && byte != r->delimiter; r->at++)
    if (!put(r, line, byte)) return false;
  while (r->used > r->starts[r->count] && is_blank(r, r->text[r->used - 1])) r->used--;
  return !mix_failed();
}

static bool read_field(mix_csv_reader *r) {
  if (r->count >= MIX_CSV_FIELDS_MAX) return bad_field(r, r->line, "there are more than 1,048,576 fields");
  if (!mix_reserve(&r->starts, &r->start_room, r->count + 1, sizeof *r->starts) ||
      !mix_reserve(&r->fields, &r->field_room, r->count + 1, sizeof *r->fields) || !skip_blanks(r))
    return false;
  const int64_t line = r->line;
  r->fields[r->count].line = line;
  r->starts[r->count] = r->used;
  const bool quoted = peek(r) == '"';
  r->at += quoted;
  if (!(quoted ? read_quoted : read_plain)(r, line) || !mix_reserve(&r->text, &r->capacity, r->used + 1, 1))
    return false;
  r->text[r->used++] = 0;
  if (!is_utf8(r->text + r->starts[r->count])) return bad_field(r, line, "it is no UTF-8; save it as UTF-8");
  r->count++;
  return true;
}

/* ---- records ---- */

/* Skips ends of lines; a carriage return and the line feed behind it are one. */
static bool skip_line_ends(mix_csv_reader *r) {
  bool after_return = false;
  for (int byte; (byte = peek(r)) == '\n' || byte == '\r' || is_blank(r, byte); r->at++) {
    r->line += byte == '\r' || (byte == '\n' && !after_return);
    after_return = byte == '\r';
  }
  return !mix_failed();
}

bool mix_csv_next(mix_csv_reader *reader) {
  reader->count = reader->used = 0;
  if (mix_failed() || !skip_line_ends(reader) || peek(reader) == END) return false;
  for (;;) {
    if (!read_field(reader)) return false;
    if (peek(reader) != reader->delimiter) break;
    reader->at++;
  }
  for (int i = 0; i < reader->count; i++) reader->fields[i].text = reader->text + reader->starts[i];
  return !mix_failed();
}
