/* Writes TensorBoard event files. */
#include "formats/event_file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "events.out.tfevents."

/* Field numbers of event.proto, summary.proto, tensor.proto and tensor_shape.proto; DataType values of
 * types.proto. */
enum {
  EVENT_WALL_TIME = 1,
  EVENT_STEP = 2,
  EVENT_FILE_VERSION = 3,
  EVENT_SUMMARY = 5,
  EVENT_SOURCE_METADATA = 10
};
enum { SOURCE_WRITER = 1, SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { METADATA_PLUGIN_DATA = 1, PLUGIN_NAME = 1, PLUGIN_CONTENT = 2 };
enum {
  TENSOR_DTYPE = 1,
  TENSOR_SHAPE = 2,
  TENSOR_CONTENT = 4,
  TENSOR_STRING = 8,
  SHAPE_DIM = 2,
  DIM_SIZE = 1
};
enum { DT_FLOAT = 1, DT_DOUBLE = 2, DT_STRING = 7 };

struct mix_event_file {
  FILE *file;
  char *path;
};

/* ---- records ---- */

uint32_t mix_masked_crc32c(const void *data, size_t size) {
  static const uint32_t halves[16] = {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3,
                                      0x61c69362, 0x7198540d, 0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9,
                                      0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75};
  const unsigned char *bytes = data;
  uint32_t crc = 0xffffffff;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    crc = crc >> 4 ^ halves[crc & 15];
    crc = crc >> 4 ^ halves[crc & 15];
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8;
}

static bool failed(const mix_event_file *file, const char *what) {
  return mix_fail_io("tensorboard: '%s' cannot be %s: %s", file->path, what, strerror(errno));
}

/* Writes length, its checksum, the event, its checksum. Frees the event. */
static bool write_record(mix_event_file *file, mix_message *event) {
  unsigned char head[12], tail[4];
  mix_put_le(head, event->size, 8);
  mix_put_le(head + 8, mix_masked_crc32c(head, 8), 4);
  mix_put_le(tail, mix_masked_crc32c(event->data, event->size), 4);
  bool whole = !event->failed;
  bool good = whole && fwrite(head, sizeof head, 1, file->file) == 1 &&
              fwrite(event->data, event->size, 1, file->file) == 1 &&
              fwrite(tail, sizeof tail, 1, file->file) == 1;
  mix_message_free(event);
  return good || (whole && failed(file, "written"));
}

/* ---- messages ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void put_metadata(mix_message *value, const char *plugin, const char *content) {
  mix_message metadata = {0}, data = {0};
  mix_message_text(&data, PLUGIN_NAME, plugin);
  if (*content) mix_message_text(&data, PLUGIN_CONTENT, content);
  mix_message_message(&metadata, METADATA_PLUGIN_DATA, &data);
  mix_message_message(value, VALUE_METADATA, &metadata);
}

static void put_shape(mix_message *tensor, int rank, const int64_t *dims) {
  mix_message shape = {0};
  for (int d = 0; d < rank; d++) {
    mix_message dim = {0};
    mix_message_integer(&dim, DIM_SIZE, dims[d]);
    mix_message_message(&shape, SHAPE_DIM, &dim);
  }
  mix_message_message(tensor, TENSOR_SHAPE, &shape);
}

void mix_summary_scalar(mix_message *value, const char *tag, float scalar) {
  mix_message tensor = {0};
  uint32_t bits;
  unsigned char content[4];
  memcpy(&bits, &scalar, sizeof bits);
  mix_put_le(content, bits, 4);
  mix_message_text(value, VALUE_TAG, tag);
  mix_message_integer(&tensor, TENSOR_DTYPE, DT_FLOAT);
  put_shape(&tensor, 0, NULL);
  mix_message_bytes(&tensor, TENSOR_CONTENT, content, sizeof content);
  mix_message_message(value, VALUE_TENSOR, &tensor);
  put_metadata(value, "scalars", "");
}

void mix_summary_histogram(mix_message *value, const char *tag, double (*buckets)[3], int count) {
  mix_message tensor = {0};
  size_t size = (size_t)count * 3 * sizeof(double);
  unsigned char *content = mix_alloc(size);
  if (!content) {
    value->failed = true;
    return;
  }
  for (int i = 0; i < 3 * count; i++) {
    uint64_t bits;
    memcpy(&bits, &buckets[i / 3][i % 3], sizeof bits);
    mix_put_le(content + 8 * i, bits, 8);
  }
  mix_message_text(value, VALUE_TAG, tag);
  mix_message_integer(&tensor, TENSOR_DTYPE, DT_DOUBLE);
  put_shape(&tensor, 2, (const int64_t[]){count, 3});
  mix_message_bytes(&tensor, TENSOR_CONTENT, content, size);
  mix_free(content);
  mix_message_message(value, VALUE_TENSOR, &tensor);
  put_metadata(value, "histograms", "");
}

static void summary_text(mix_message *value, const char *tag, const char *plugin, const char *content,
                         const char *text) {
  mix_message tensor = {0};
  mix_message_text(value, VALUE_TAG, tag);
  mix_message_integer(&tensor, TENSOR_DTYPE, DT_STRING);
  put_shape(&tensor, 0, NULL);
  mix_message_text(&tensor, TENSOR_STRING, text);
  mix_message_message(value, VALUE_TENSOR, &tensor);
  put_metadata(value, plugin, content);
}

void mix_event_of(mix_message *event, double wall_time, int64_t step, mix_message *value) {
  mix_message summary = {0};
  mix_message_double(event, EVENT_WALL_TIME, wall_time);
  mix_message_integer(event, EVENT_STEP, step);
  mix_message_message(&summary, SUMMARY_VALUE, value);
  mix_message_message(event, EVENT_SUMMARY, &summary);
}

static bool write_value(mix_event_file *file, int64_t step, mix_message *value) {
  mix_message event = {0};
  mix_event_of(&event, now(), step, value);
  return write_record(file, &event);
}

bool mix_event_file_scalar(mix_event_file *file, const char *tag, int64_t step, double value) {
  mix_message summary = {0};
  mix_summary_scalar(&summary, tag, (float)value);
  return write_value(file, step, &summary);
}

bool mix_event_file_histogram(mix_event_file *file, const char *tag, int64_t step, double (*buckets)[3],
                              int count) {
  mix_message summary = {0};
  mix_summary_histogram(&summary, tag, buckets, count);
  return write_value(file, step, &summary);
}

bool mix_event_file_text(mix_event_file *file, const char *tag, int64_t step, const char *plugin,
                         const char *content, const char *text) {
  mix_message summary = {0};
  summary_text(&summary, tag, plugin, content, text);
  return write_value(file, step, &summary);
}

/* ---- files ---- */

static bool write_version(mix_event_file *file) {
  mix_message event = {0}, source = {0};
  mix_message_double(&event, EVENT_WALL_TIME, now());
  mix_message_text(&event, EVENT_FILE_VERSION, "brain.Event:2");
  mix_message_text(&source, SOURCE_WRITER, "mixtape");
  mix_message_message(&event, EVENT_SOURCE_METADATA, &source);
  return write_record(file, &event);
}

void mix_event_file_name(char name[MIX_EVENT_FILE_NAME]) {
  static atomic_uint number;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) || !*host) strcpy(host, "localhost");
  snprintf(name, MIX_EVENT_FILE_NAME, PREFIX "%010lld.%s.%ld.%u.v2", (long long)now(), host, (long)getpid(),
           atomic_fetch_add(&number, 1));
}

static mix_event_file *file_of(const char *folder, const char *name) {
  mix_event_file *file = mix_calloc(1, sizeof *file);
  if (file && (file->path = mix_path_join(folder, name))) return file;
  mix_free(file);
  return NULL;
}

mix_event_file *mix_event_file_open(const char *folder, const char *name) {
  mix_event_file *file = mix_folder_make(folder) ? file_of(folder, name) : NULL;
  if (!file) return NULL;
  if (!(file->file = fopen(file->path, "wbxe"))) failed(file, "opened");
  if (file->file && write_version(file) && mix_event_file_flush(file)) return file;
  mix_event_file_close(file);
  return NULL;
}

/* The name comes from a checkpoint, and the file is cut or removed. */
static bool names_event_file(const char *name) {
  return !strncmp(name, PREFIX, sizeof PREFIX - 1) && !strchr(name, '/');
}

mix_event_file *mix_event_file_reopen(const char *folder, const char *name, int64_t length) {
  struct stat status;
  mix_event_file *file = names_event_file(name) ? file_of(folder, name) : NULL;
  const bool exists = file && stat(file->path, &status) == 0 && S_ISREG(status.st_mode);
  if (exists && length <= 0) {
    if (unlink(file->path)) failed(file, "removed");
  } else if (exists && status.st_size >= length) {
    if (truncate(file->path, length))
      failed(file, "cut to its length at the checkpoint");
    else if ((file->file = fopen(file->path, "abe")))
      return file;
    else
      failed(file, "opened");
  }
  mix_event_file_close(file);
  return NULL;
}

int64_t mix_event_file_length(mix_event_file *file) {
  struct stat status;
  if (!mix_event_file_flush(file)) return -1;
  return fstat(fileno(file->file), &status) == 0 ? status.st_size : (failed(file, "examined"), -1);
}

bool mix_event_file_flush(mix_event_file *file) { return !fflush(file->file) || failed(file, "written"); }

bool mix_event_file_close(mix_event_file *file) {
  if (!file) return true;
  bool good = !file->file || !fclose(file->file) || failed(file, "written");
  mix_free(file->path);
  mix_free(file);
  return good;
}
