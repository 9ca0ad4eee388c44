/* Reads protobuf messages in memory, field by field. A file is hostile input: every length and varint is
 * checked against the end of its message. Nothing is copied; nested messages are views too, which the caller
 * opens one by one, so that depth is the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message, or what is left of it. */
typedef struct mix_wire {
  const unsigned char *at, *end;
  const char *name; /* for messages: of the file */
} mix_wire;

typedef enum mix_wire_type {
  MIX_WIRE_VARINT = 0,
  MIX_WIRE_FIXED64 = 1,
  MIX_WIRE_BYTES = 2,
  MIX_WIRE_FIXED32 = 5
} mix_wire_type;

typedef struct mix_wire_field {
  uint32_t number;
  mix_wire_type type;
  uint64_t value;            /* of a varint or a fixed number */
  const unsigned char *data; /* of bytes */
  size_t size;
} mix_wire_field;

static inline mix_wire mix_wire_of(const void *data, size_t size, const char *name) {
  return (mix_wire){data, (const unsigned char *)data + size, name};
}
/* The next field. False at the end, and with a FormatError recorded where the bytes are no message. */
bool mix_wire_next(mix_wire *wire, mix_wire_field *field);
/* The nested message of a field of bytes. False with a FormatError recorded: it has another type. */
bool mix_wire_open(const mix_wire *wire, const mix_wire_field *field, mix_wire *inner);
/* The numbers of a repeated field on their way; begins as zeros for each field. */
typedef struct mix_wire_numbers {
  mix_wire rest; /* of those that are packed */
  bool begun;
} mix_wire_numbers;
/* The next one, alone or packed. False at the end, or with a FormatError recorded. `size`: bytes of a fixed
 * number, 4 or 8; 0: varints. */
bool mix_wire_number(const mix_wire *wire, const mix_wire_field *field, int size, mix_wire_numbers *numbers,
                     uint64_t *value);
/* A copy of bytes as text in the innermost scope. NULL with a FormatError recorded: other than UTF-8, or with
 * a byte of zero. */
const char *mix_wire_text(const mix_wire *wire, const mix_wire_field *field);
