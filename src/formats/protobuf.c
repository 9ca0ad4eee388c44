/* Encodes protobuf messages. */
#include "formats/protobuf.h"

#include "base/alloc.h"
#include <string.h>

enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, FIXED32 = 5, VARINT_MAX = 10 };

void mix_message_free(mix_message *message) {
  mix_free(message->data);
  *message = (mix_message){0};
}

static void put(mix_message *message, const void *data, size_t size) {
  if (message->failed || !size) return;
  if (message->size + size > message->capacity) {
    size_t capacity = 2 * (message->size + size);
    unsigned char *grown = mix_realloc(message->data, capacity);
    if (!grown) {
      message->failed = true;
      return;
    }
    message->data = grown;
    message->capacity = capacity;
  }
  memcpy(message->data + message->size, data, size);
  message->size += size;
}

static void put_varint(mix_message *message, uint64_t value) {
  unsigned char bytes[VARINT_MAX];
  size_t size = 0;
  do {
    bytes[size] = value & 0x7f;
    value >>= 7;
    if (value) bytes[size] |= 0x80;
    size++;
  } while (value);
  put(message, bytes, size);
}

static void put_tag(mix_message *message, int field, int type) {
  put_varint(message, (uint64_t)(field << 3 | type));
}

void mix_put_le(unsigned char *bytes, uint64_t value, int size) {
  for (int i = 0; i < size; i++) bytes[i] = (unsigned char)(value >> 8 * i);
}

void mix_message_integer(mix_message *message, int field, int64_t value) {
  if (value) mix_message_number(message, field, value);
}

void mix_message_number(mix_message *message, int field, int64_t value) {
  put_tag(message, field, VARINT);
  put_varint(message, (uint64_t)value);
}

void mix_message_float(mix_message *message, int field, float value) {
  uint32_t bits;
  unsigned char bytes[4];
  memcpy(&bits, &value, sizeof bits);
  mix_put_le(bytes, bits, 4);
  put_tag(message, field, FIXED32);
  put(message, bytes, sizeof bytes);
}

void mix_message_double(mix_message *message, int field, double value) {
  uint64_t bits;
  unsigned char bytes[8];
  memcpy(&bits, &value, sizeof bits);
  if (!bits) return;
  mix_put_le(bytes, bits, 8);
  put_tag(message, field, FIXED64);
  put(message, bytes, sizeof bytes);
}

void mix_message_head(mix_message *message, int field, uint64_t size) {
  put_tag(message, field, LENGTH);
  put_varint(message, size);
}

void mix_message_bytes(mix_message *message, int field, const void *data, size_t size) {
  mix_message_head(message, field, size);
  put(message, data, size);
}

void mix_message_append(mix_message *message, mix_message *more) {
  if (more->failed) message->failed = true;
  put(message, more->data, more->size);
  mix_message_free(more);
}

void mix_message_text(mix_message *message, int field, const char *text) {
  mix_message_bytes(message, field, text, strlen(text));
}

void mix_message_message(mix_message *message, int field, mix_message *inner) {
  if (inner->failed) message->failed = true;
  mix_message_bytes(message, field, inner->data, inner->size);
  mix_message_free(inner);
}
