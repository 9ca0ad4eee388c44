/* Protobuf messages, as far as event files and ONNX need them. `failed` marks a message that ran out of
 * memory, with the error recorded; later writes to it are ignored. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mix_message {
  unsigned char *data;
  size_t size, capacity;
  bool failed;
} mix_message;

void mix_message_free(mix_message *message);
/* A field of type int64, uint32, enum or bool. Zero is the default and is omitted, as in proto3. */
void mix_message_integer(mix_message *message, int field, int64_t value);
/* The same, zero too: an element of a repeated field, or one whose presence counts. */
void mix_message_number(mix_message *message, int field, int64_t value);
void mix_message_float(mix_message *message, int field, float value);
/* Zero is omitted. */
void mix_message_double(mix_message *message, int field, double value);
/* bytes or a string, written even if empty. */
void mix_message_bytes(mix_message *message, int field, const void *data, size_t size);
void mix_message_text(mix_message *message, int field, const char *text);
/* The head of a field of bytes, which the caller writes behind it. */
void mix_message_head(mix_message *message, int field, uint64_t size);
/* Appends the fields of another message of the same kind, which is freed. */
void mix_message_append(mix_message *message, mix_message *more);
/* A nested message, which is freed. */
void mix_message_message(mix_message *message, int field, mix_message *inner);

/* Stores a number in little-endian order on any machine. */
void mix_put_le(unsigned char *bytes, uint64_t value, int size);
