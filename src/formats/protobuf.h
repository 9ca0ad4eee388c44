/* Protobuf messages, as far as event files need them. `failed` marks a message that ran out of memory, with
 * the error recorded; later writes to it are ignored. */
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
/* Zero is omitted too. */
void mix_message_double(mix_message *message, int field, double value);
/* bytes or a string, written even if empty. */
void mix_message_bytes(mix_message *message, int field, const void *data, size_t size);
void mix_message_text(mix_message *message, int field, const char *text);
/* A nested message, which is freed. */
void mix_message_message(mix_message *message, int field, mix_message *inner);

/* Stores a number in little-endian order on any machine. */
void mix_put_le(unsigned char *bytes, uint64_t value, int size);
