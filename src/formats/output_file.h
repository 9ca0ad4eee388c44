/* A new file that is written from front to back through a buffer, or the same bytes in memory. Functions that
 * fail set errno; where memory ends, the error is recorded too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mix_output_file {
  int file;      /* -1: none */
  uint64_t size; /* of the file so far, with what the buffer holds */
  unsigned char *buffer;
  size_t held, capacity; /* of the buffer */
  bool in_memory;
} mix_output_file;

/* Makes the file, which must not exist. */
bool mix_output_open(mix_output_file *output, const char *path);
/* Opens one whose buffer holds all. */
void mix_output_open_memory(mix_output_file *output);
bool mix_output_put(mix_output_file *output, const void *data, size_t size);
/* Changes bytes that were written before. */
bool mix_output_change(mix_output_file *output, uint64_t at, const void *data, size_t size);
/* Closes it, also after a failure; false if what was held could not be written. */
bool mix_output_close(mix_output_file *output);
/* Of one in memory: the bytes, exactly `*size` of them (mix_free); it is closed. */
void *mix_output_take(mix_output_file *output, size_t *size);
