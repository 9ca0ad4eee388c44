/* A new file that is written from front to back through a buffer. Functions that fail set errno. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct mix_output_file {
  int file;
  uint64_t size; /* of the file so far, with what the buffer holds */
  unsigned char *buffer;
  size_t held;
} mix_output_file;

/* Makes the file, which must not exist. */
bool mix_output_open(mix_output_file *output, const char *path);
bool mix_output_put(mix_output_file *output, const void *data, size_t size);
/* Changes bytes that were written before. */
bool mix_output_change(mix_output_file *output, uint64_t at, const void *data, size_t size);
/* Closes it, also after a failure; false if what was held could not be written. */
bool mix_output_close(mix_output_file *output);
