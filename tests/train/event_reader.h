/* Reads event files back: verifies framing and checksums, and decodes the fields of Event and Summary.Value
 * that Mixtape writes. Written from the descriptions of TFRecord and protocol buffers, not from the
 * writer. */
#ifndef MIX_TESTS_TRAIN_EVENT_READER_H
#define MIX_TESTS_TRAIN_EVENT_READER_H

#include "model/support.h"
#include <glob.h>

typedef struct read_event {
  char tag[128], plugin[64], content[32], version[32], writer[32];
  int64_t step;
  double wall_time;
  int dtype, rank;
  int64_t dims[4];
  unsigned char *data; /* tensor_content, or the text of string_val, within the file's bytes */
  size_t size;
} read_event;

typedef struct read_events {
  unsigned char *bytes;
  size_t size;
  int count;
  read_event list[512];
} read_events;

/* CRC-32C, bit by bit, masked. */
static inline uint32_t slow_masked_crc(const unsigned char *data, size_t size) {
  uint32_t crc = 0xffffffffu;
  for (size_t i = 0; i < size; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

static inline uint64_t little(const unsigned char *bytes, int size) {
  uint64_t value = 0;
  for (int i = size - 1; i >= 0; i--) value = value << 8 | bytes[i];
  return value;
}

typedef struct field {
  int number, type;
  uint64_t value;      /* varint or fixed */
  unsigned char *data; /* of a field with a length */
  size_t size;
} field;

static inline uint64_t read_varint(unsigned char **at, const unsigned char *end) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    assert_true(*at < end && shift < 64);
    value |= (uint64_t)(**at & 127) << shift;
    if (*(*at)++ < 128) return value;
  }
}

/* The next field of a message; false at its end. */
static inline bool next_field(unsigned char **at, unsigned char *end, field *f) {
  if (*at == end) return false;
  uint64_t key = read_varint(at, end);
  *f = (field){.number = (int)(key >> 3), .type = (int)(key & 7)};
  if (f->type == 0) {
    f->value = read_varint(at, end);
    return true;
  }
  assert_true(f->type == 1 || f->type == 2);
  f->size = f->type == 1 ? 8 : (size_t)read_varint(at, end);
  assert_true(f->size <= (size_t)(end - *at));
  f->data = *at;
  if (f->type == 1) f->value = little(f->data, 8);
  *at += f->size;
  return true;
}

static inline void read_string(const field *f, char *text, size_t size) {
  assert_true(f->type == 2 && f->size < size);
  memcpy(text, f->data, f->size);
  text[f->size] = 0;
}

static inline void read_tensor(unsigned char *at, unsigned char *end, read_event *event) {
  for (field f, dim, number; next_field(&at, end, &f);) {
    if (f.number == 1) event->dtype = (int)f.value;
    if (f.number == 4 || f.number == 8) event->data = f.data, event->size = f.size;
    for (unsigned char *in = f.data; f.number == 2 && next_field(&in, f.data + f.size, &dim);)
      for (unsigned char *last = dim.data; next_field(&last, dim.data + dim.size, &number);)
        event->dims[event->rank++] = (int64_t)number.value;
  }
}

static inline void read_value(unsigned char *at, unsigned char *end, read_event *event) {
  for (field f, metadata, plugin; next_field(&at, end, &f);) {
    if (f.number == 1) read_string(&f, event->tag, sizeof event->tag);
    if (f.number == 8) read_tensor(f.data, f.data + f.size, event);
    for (unsigned char *in = f.data; f.number == 9 && next_field(&in, f.data + f.size, &metadata);)
      for (unsigned char *last = metadata.data;
           metadata.number == 1 && next_field(&last, metadata.data + metadata.size, &plugin);)
        read_string(&plugin, plugin.number == 1 ? event->plugin : event->content, sizeof event->content);
  }
}

static inline void read_one(unsigned char *at, unsigned char *end, read_event *event) {
  for (field f, inner; next_field(&at, end, &f);) {
    if (f.number == 1) memcpy(&event->wall_time, &f.value, sizeof event->wall_time);
    if (f.number == 2) event->step = (int64_t)f.value;
    if (f.number == 3) read_string(&f, event->version, sizeof event->version);
    for (unsigned char *in = f.data; f.number == 5 && next_field(&in, f.data + f.size, &inner);) {
      assert_int_equal(inner.number, 1);
      read_value(inner.data, inner.data + inner.size, event);
    }
    for (unsigned char *in = f.data; f.number == 10 && next_field(&in, f.data + f.size, &inner);)
      read_string(&inner, event->writer, sizeof event->writer);
  }
}

/* All events of the one event file that `pattern` matches. */
static inline read_events *read_events_of(const char *pattern) {
  glob_t found;
  read_events *events = calloc(1, sizeof *events);
  assert_non_null(events);
  assert_int_equal(glob(pattern, 0, NULL, &found), 0);
  assert_int_equal(found.gl_pathc, 1);
  FILE *file = fopen(found.gl_pathv[0], "rb");
  assert_non_null(file);
  globfree(&found);
  fseek(file, 0, SEEK_END);
  events->size = (size_t)ftell(file);
  rewind(file);
  events->bytes = malloc(events->size + 1);
  assert_non_null(events->bytes);
  assert_int_equal(fread(events->bytes, 1, events->size, file), events->size);
  fclose(file);
  for (size_t at = 0; at < events->size;) {
    unsigned char *record = events->bytes + at;
    assert_true(events->size - at >= 16);
    uint64_t length = little(record, 8);
    assert_true(length <= events->size - at - 16);
    assert_int_equal(little(record + 8, 4), slow_masked_crc(record, 8));
    assert_int_equal(little(record + 12 + length, 4), slow_masked_crc(record + 12, (size_t)length));
    assert_true(events->count < 512);
    read_one(record + 12, record + 12 + length, &events->list[events->count++]);
    at += 16 + (size_t)length;
  }
  return events;
}

static inline void free_events(read_events *events) {
  free(events->bytes);
  free(events);
}

/* Event number `index` (from 0) of a tag; NULL if there are no more. */
static inline const read_event *event_of(const read_events *events, const char *tag, int index) {
  for (int i = 0; i < events->count; i++)
    if (!strcmp(events->list[i].tag, tag) && index-- == 0) return &events->list[i];
  return NULL;
}

static inline float scalar_in(const read_event *event) {
  assert_non_null(event);
  assert_string_equal(event->plugin, "scalars");
  assert_int_equal(event->dtype, 1); /* DT_FLOAT */
  assert_int_equal(event->rank, 0);
  assert_int_equal(event->size, 4);
  uint32_t bits = (uint32_t)little(event->data, 4);
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/* Row and column of a histogram. */
static inline double histogram_at(const read_event *event, int row, int column) {
  assert_string_equal(event->plugin, "histograms");
  assert_int_equal(event->dtype, 2); /* DT_DOUBLE */
  assert_int_equal(event->rank, 2);
  assert_int_equal(event->dims[1], 3);
  assert_int_equal(event->size, 24 * event->dims[0]);
  assert_true(row < event->dims[0]);
  uint64_t bits = little(event->data + 8 * (3 * row + column), 8);
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

#endif
