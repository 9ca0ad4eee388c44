/* Decodes protobuf messages (protobuf.dev, "Encoding"). */
#include "formats/protobuf_reader.h"

#include "base/error.h"
#include "base/fields.h"
#include <jansson.h>
#include <string.h>

enum { VARINT_BITS = 64 };

static bool damaged(const mix_wire *wire, const char *what) {
  return mix_fail_format("%s: %s; the file is cut short, or damaged", wire->name, what);
}

static bool read_varint(mix_wire *wire, uint64_t *value) {
  *value = 0;
  for (int shift = 0; shift < VARINT_BITS; shift += 7) {
    if (wire->at == wire->end) return damaged(wire, "a number ends behind its message");
    const unsigned char byte = *wire->at++;
    if (shift == 63 && byte > 1) break;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80)) return true;
  }
  return damaged(wire, "a number has more than 64 bits");
}

static bool read_fixed(mix_wire *wire, int size, uint64_t *value) {
  if (wire->end - wire->at < size) return damaged(wire, "a number ends behind its message");
  *value = 0;
  for (int i = size; i-- > 0;) *value = *value << 8 | wire->at[i];
  wire->at += size;
  return true;
}

static bool read_bytes(mix_wire *wire, mix_wire_field *field) {
  uint64_t size;
  if (!read_varint(wire, &size)) return false;
  if (size > (uint64_t)(wire->end - wire->at)) return damaged(wire, "a field ends behind its message");
  field->data = wire->at;
  field->size = (size_t)size;
  wire->at += size;
  return true;
}

bool mix_wire_next(mix_wire *wire, mix_wire_field *field) {
  uint64_t tag;
  *field = (mix_wire_field){0};
  if (mix_failed() || wire->at == wire->end || !read_varint(wire, &tag)) return false;
  if (tag >> 3 == 0 || tag >> 3 > UINT32_MAX >> 3) return damaged(wire, "a field has no valid number");
  field->number = (uint32_t)(tag >> 3);
  field->type = (mix_wire_type)(tag & 7);
  switch (field->type) {
  case MIX_WIRE_VARINT: return read_varint(wire, &field->value);
  case MIX_WIRE_FIXED64: return read_fixed(wire, 8, &field->value);
  case MIX_WIRE_FIXED32: return read_fixed(wire, 4, &field->value);
  case MIX_WIRE_BYTES: return read_bytes(wire, field);
  }
  return damaged(wire, "a field has a type that messages do not have");
}

bool mix_wire_open(const mix_wire *wire, const mix_wire_field *field, mix_wire *inner) {
  if (field->type != MIX_WIRE_BYTES) return damaged(wire, "a number stands where a message is expected");
  *inner = mix_wire_of(field->data, field->size, wire->name);
  return true;
}

bool mix_wire_number(const mix_wire *wire, const mix_wire_field *field, int size, mix_wire_numbers *numbers,
                     uint64_t *value) {
  const mix_wire_type alone = size == 4 ? MIX_WIRE_FIXED32 : size == 8 ? MIX_WIRE_FIXED64 : MIX_WIRE_VARINT;
  const bool first = !numbers->begun;
  if (mix_failed()) return false;
  if (field->type != alone && field->type != MIX_WIRE_BYTES)
    return damaged(wire, "a number has another type than its field");
  numbers->begun = true;
  if (field->type == alone) {
    *value = field->value;
    return first;
  }
  if (first) numbers->rest = mix_wire_of(field->data, field->size, wire->name);
  if (numbers->rest.at == numbers->rest.end) return false;
  return size ? read_fixed(&numbers->rest, size, value) : read_varint(&numbers->rest, value);
}

/* A string of jansson is UTF-8. */
static bool is_utf8(const char *text, size_t size) {
  json_t *string = json_stringn(text, size);
  json_decref(string);
  return string;
}

const char *mix_wire_text(const mix_wire *wire, const mix_wire_field *field) {
  if (field->type != MIX_WIRE_BYTES) return damaged(wire, "a number stands where a text is expected"), NULL;
  const char *data = (const char *)field->data;
  if (memchr(data, 0, field->size) || !is_utf8(data, field->size))
    return damaged(wire, "a text is not UTF-8, or has a byte of zero"), NULL;
  char *text = mix_scoped_memory(field->size + 1);
  if (text) memcpy(text, data, field->size);
  return text;
}
