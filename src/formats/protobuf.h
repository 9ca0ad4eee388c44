/* Messages in the wire format of protocol buffers, as far as event files need it. A message that could not be written, for want of memory,
 * says so in `failed`, with the error recorded; what is put into it afterwards is passed over. */
#ifndef MIX_FORMATS_PROTOBUF_H
#define MIX_FORMATS_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mix_message {
  unsigned char *data;
  size_t size, room;
  bool failed;
} mix_message;

void mix_message_free(mix_message *message);
/* A field of the types int64, uint32, enum; bool. Zero is the default and is left out, as proto3 does. */
void mix_message_integer(mix_message *message, int field, int64_t value);
/* Zero is left out too. */
void mix_message_double(mix_message *message, int field, double value);
/* bytes, or a string, which goes even where it is empty. */
void mix_message_bytes(mix_message *message, int field, const void *data, size_t size);
void mix_message_text(mix_message *message, int field, const char *text);
/* A message within, which is freed. */
void mix_message_message(mix_message *message, int field, mix_message *inner);

/* Numbers as bytes, the lowest first, on any machine. */
void mix_put_le(unsigned char *bytes, uint64_t value, int size);

#endif
