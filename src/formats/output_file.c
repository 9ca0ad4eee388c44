/* Writes files through a buffer, or bytes in memory. */
#include "formats/output_file.h"

#include "base/alloc.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 16 };

/* A disk that fills up takes a part first and says why when asked to take the rest. */
static bool write_fully(int file, const unsigned char *data, size_t size) {
  while (size > 0) {
    const ssize_t put = write(file, data, size);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = ENOSPC;
    if (put <= 0) return false;
    data += put;
    size -= (size_t)put;
  }
  return true;
}

static bool flush(mix_output_file *output) {
  const size_t held = output->held;
  output->held = 0;
  return write_fully(output->file, output->buffer, held);
}

bool mix_output_open(mix_output_file *output, const char *path) {
  *output = (mix_output_file){.file = -1};
  if (!(output->buffer = mix_alloc(BUFFER))) return errno = ENOMEM, false;
  output->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (output->file >= 0) return true;
  mix_free(output->buffer);
  output->buffer = NULL;
  return false;
}

void mix_output_open_memory(mix_output_file *output) {
  *output = (mix_output_file){.file = -1, .in_memory = true};
}

static bool grow(mix_output_file *output, size_t size) {
  if (size <= output->capacity - output->held) return true;
  const size_t capacity = 2 * output->capacity + size;
  unsigned char *grown = capacity < size ? NULL : mix_realloc(output->buffer, capacity);
  if (!grown) return errno = ENOMEM, false;
  output->buffer = grown;
  output->capacity = capacity;
  return true;
}

static bool append(mix_output_file *output, const void *data, size_t size) {
  if (!grow(output, size)) return false;
  if (size) memcpy(output->buffer + output->held, data, size);
  output->held += size;
  return true;
}

bool mix_output_put(mix_output_file *output, const void *data, size_t size) {
  output->size += size;
  if (output->in_memory) return append(output, data, size);
  if (size > BUFFER - output->held && !flush(output)) return false;
  if (size >= BUFFER) return write_fully(output->file, data, size);
  if (size) memcpy(output->buffer + output->held, data, size);
  output->held += size;
  return true;
}

bool mix_output_change(mix_output_file *output, uint64_t at, const void *data, size_t size) {
  if (output->in_memory) return memcpy(output->buffer + at, data, size), true;
  if (!flush(output) || lseek(output->file, (off_t)at, SEEK_SET) < 0 ||
      !write_fully(output->file, data, size))
    return false;
  return lseek(output->file, (off_t)output->size, SEEK_SET) >= 0;
}

void *mix_output_take(mix_output_file *output, size_t *size) {
  unsigned char *bytes = output->buffer, *shrunk = output->held ? mix_realloc(bytes, output->held) : NULL;
  *size = output->held;
  *output = (mix_output_file){.file = -1};
  return shrunk ? shrunk : bytes;
}

bool mix_output_close(mix_output_file *output) {
  if (output->file < 0) {
    mix_free(output->buffer);
    *output = (mix_output_file){.file = -1};
    return false;
  }
  bool good = flush(output);
  const int reason = errno;
  if (close(output->file) != 0)
    good = false;
  else if (!good)
    errno = reason;
  mix_free(output->buffer);
  *output = (mix_output_file){.file = -1};
  return good;
}
