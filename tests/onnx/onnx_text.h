/* A file of ONNX as text, read by a few lines of its own: what the writer wrote, not what a reader makes of
 * it. Of a node "Op(operands) -> results name=value", indented in the graph of an attribute. */
#ifndef TESTS_ONNX_TEXT_H
#define TESTS_ONNX_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include <mixtape/mixtape.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct onnx_bytes {
  const unsigned char *at, *end;
} onnx_bytes;

typedef struct onnx_field {
  int number, type;
  uint64_t value;
  onnx_bytes bytes;
} onnx_field;

static char onnx_text[1 << 16];
static size_t onnx_used;

static void onnx_put(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(onnx_text + onnx_used, sizeof onnx_text - onnx_used, format, arguments);
  va_end(arguments);
  assert_true(length >= 0 && (size_t)length < sizeof onnx_text - onnx_used);
  onnx_used += (size_t)length;
}

static uint64_t onnx_varint(onnx_bytes *bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    assert_true(bytes->at < bytes->end && shift < 70);
    value |= (uint64_t)(*bytes->at & 0x7f) << (shift < 64 ? shift : 63);
    if (!(*bytes->at++ & 0x80)) return value;
  }
}

static bool onnx_next(onnx_bytes *bytes, onnx_field *field) {
  if (bytes->at == bytes->end) return false;
  const uint64_t tag = onnx_varint(bytes);
  *field = (onnx_field){.number = (int)(tag >> 3), .type = (int)(tag & 7)};
  size_t size = 0;
  if (field->type == 0) field->value = onnx_varint(bytes);
  if (field->type == 2) size = (size_t)onnx_varint(bytes);
  if (field->type == 5) size = 4;
  if (field->type == 1) size = 8;
  assert_true(size <= (size_t)(bytes->end - bytes->at));
  field->bytes = (onnx_bytes){bytes->at, bytes->at + size};
  bytes->at += size;
  return true;
}

static void onnx_put_string(onnx_bytes bytes) {
  onnx_put("%.*s", (int)(bytes.end - bytes.at), (const char *)bytes.at);
}

static void onnx_put_graph(onnx_bytes graph, int depth);

static void onnx_put_attribute(onnx_bytes attribute, int depth) {
  onnx_field field;
  float number;
  bool first = true;
  while (onnx_next(&attribute, &field)) {
    if (field.number == 1) onnx_put(" "), onnx_put_string(field.bytes), onnx_put("=");
    if (field.number == 2) memcpy(&number, field.bytes.at, 4), onnx_put("%g", number);
    if (field.number == 3) onnx_put("%lld", (long long)field.value);
    if (field.number == 4) onnx_put_string(field.bytes);
    if (field.number == 6) onnx_put("{\n"), onnx_put_graph(field.bytes, depth + 1), onnx_put("}");
    if (field.number == 8) onnx_put("%s%lld", first ? "" : ",", (long long)field.value), first = false;
    if (field.number == 9) onnx_put("%s", first ? "" : ","), first = false, onnx_put_string(field.bytes);
  }
}

static void onnx_put_node(onnx_bytes node, int depth) {
  static const int fields[] = {4, 1, 2, 5}; /* operator, operands, results, attributes */
  onnx_put("%*s", 2 * depth, "");
  for (int i = 0; i < 4; i++) {
    onnx_bytes rest = node;
    onnx_field field;
    bool first = true;
    if (fields[i] == 2) onnx_put(") -> ");
    while (onnx_next(&rest, &field)) {
      if (field.number != fields[i]) continue;
      if (!first && i != 3) onnx_put(", ");
      first = false;
      if (i == 3)
        onnx_put_attribute(field.bytes, depth);
      else
        onnx_put_string(field.bytes);
    }
    if (fields[i] == 4) onnx_put("(");
  }
  onnx_put("\n");
}

/* "float32" and the like are numbers here: 1 float32, 6 int32, 7 int64, 9 bool, 10 float16, 16 bfloat16 */
static void onnx_put_value(onnx_bytes value) {
  onnx_field field;
  while (onnx_next(&value, &field)) {
    if (field.number == 1) onnx_put_string(field.bytes);
    if (field.number != 2) continue;
    onnx_bytes type = field.bytes;
    assert_true(onnx_next(&type, &field));
    onnx_bytes tensor = field.bytes;
    while (onnx_next(&tensor, &field)) {
      if (field.number == 1) onnx_put(" type %lld (", (long long)field.value);
      if (field.number != 2) continue;
      onnx_bytes shape = field.bytes;
      bool first = true;
      while (onnx_next(&shape, &field)) {
        onnx_field size;
        onnx_put("%s", first ? "" : ", ");
        first = false;
        if (!onnx_next(&field.bytes, &size)) continue;
        if (size.number == 1) onnx_put("%lld", (long long)size.value);
        if (size.number == 2) onnx_put_string(size.bytes);
      }
    }
  }
  onnx_put(")\n");
}

static void onnx_put_tensor(onnx_bytes tensor) {
  onnx_field field;
  bool first = true;
  onnx_put("tensor (");
  while (onnx_next(&tensor, &field)) {
    if (field.number == 1) onnx_put("%s%lld", first ? "" : ", ", (long long)field.value), first = false;
    if (field.number == 2) onnx_put(") type %lld ", (long long)field.value);
    if (field.number == 8) onnx_put_string(field.bytes);
    if (field.number == 9) onnx_put(": %lld bytes", (long long)(field.bytes.end - field.bytes.at));
    if (field.number == 13) {
      onnx_field entry;
      onnx_put(" ");
      for (int i = 0; onnx_next(&field.bytes, &entry); i++)
        onnx_put(i ? "=" : ""), onnx_put_string(entry.bytes);
    }
  }
  onnx_put("\n");
}

static void onnx_put_graph(onnx_bytes graph, int depth) {
  static const int fields[] = {11, 1, 12, 5};
  for (int i = 0; i < 4; i++) {
    onnx_bytes rest = graph;
    onnx_field field;
    while (onnx_next(&rest, &field)) {
      if (field.number != fields[i]) continue;
      if (field.number == 1) onnx_put_node(field.bytes, depth);
      if (field.number == 5) onnx_put_tensor(field.bytes);
      if (field.number != 11 && field.number != 12) continue;
      onnx_put("%*s%s", 2 * depth, "", field.number == 11 ? "input " : "output ");
      onnx_put_value(field.bytes);
    }
  }
}

static unsigned char onnx_file[1 << 20];

static size_t onnx_read(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("%s is not there", path);
  const size_t size = fread(onnx_file, 1, sizeof onnx_file, file);
  fclose(file);
  assert_true(size < sizeof onnx_file);
  return size;
}

/* The whole file as text. */
static const char *onnx_text_of(const char *path) {
  onnx_bytes model = {onnx_file, onnx_file + onnx_read(path)};
  onnx_field field;
  onnx_used = 0;
  onnx_text[0] = 0;
  while (onnx_next(&model, &field)) {
    if (field.number == 1) onnx_put("ir %lld\n", (long long)field.value);
    if (field.number == 8) {
      onnx_field opset;
      while (onnx_next(&field.bytes, &opset))
        if (opset.number == 2) onnx_put("opset %lld\n", (long long)opset.value);
    }
    if (field.number == 7) onnx_put_graph(field.bytes, 0);
  }
  return onnx_text;
}

/* The elements of a tensor of the file that was read last. */
static onnx_bytes onnx_elements(const char *path, const char *name) {
  onnx_bytes model = {onnx_file, onnx_file + onnx_read(path)};
  onnx_field field, inner;
  while (onnx_next(&model, &field)) {
    if (field.number != 7) continue;
    while (onnx_next(&field.bytes, &inner)) {
      onnx_field part;
      onnx_bytes tensor = inner.bytes, raw = {NULL, NULL};
      bool named = false;
      if (inner.number != 5) continue;
      while (onnx_next(&tensor, &part)) {
        named |= part.number == 8 && (size_t)(part.bytes.end - part.bytes.at) == strlen(name) &&
                 !memcmp(part.bytes.at, name, strlen(name));
        if (part.number == 9) raw = part.bytes;
      }
      if (named) return raw;
    }
  }
  fail_msg("%s has no tensor '%s'", path, name);
  return (onnx_bytes){NULL, NULL};
}

#endif
