/* Tables in text: records of fields with a delimiter between, as RFC 4180 has them, read piece by piece. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIX_CSV_FIELD_MAX = 1 << 20, MIX_CSV_FIELDS_MAX = 1 << 20 }; /* bytes of a field, fields of a record */

/* A field, ended by a zero, without its quotes, in UTF-8; blanks around an unquoted one are left out. */
typedef struct mix_csv_field {
  char *text;
  int64_t line; /* where it begins; the first line is 1 */
} mix_csv_field;

typedef struct mix_csv_reader {
  const char *name; /* for messages; the caller's */
  char delimiter;
  mix_csv_field *fields; /* of the record that mix_csv_next read, which live until the next call */
  int count;
  int64_t line; /* of the bytes at `at` */

  int file; /* -1: bytes in memory */
  const unsigned char *at, *end;
  unsigned char *piece;
  char *text; /* of the fields; `starts` are offsets in it */
  int *starts;
  int used, capacity, field_room, start_room;
} mix_csv_reader;

/* Opens a regular file. False with the error recorded; close it in any case. */
bool mix_csv_open(mix_csv_reader *reader, const char *path, char delimiter);
/* The same for bytes in memory, which stay the caller's. */
bool mix_csv_open_memory(mix_csv_reader *reader, const char *name, const void *data, size_t size,
                         char delimiter);
/* Reads the next record that is no blank line. False at the end, or with the error recorded, which names the
 * file, the line and the field: a quote that is not closed, text behind one, a zero byte, what is no UTF-8, a
 * field or a record that is too long. */
bool mix_csv_next(mix_csv_reader *reader);
void mix_csv_close(mix_csv_reader *reader);
