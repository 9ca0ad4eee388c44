/* Reads plain bytes or a gzip stream from memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zlib.h>

typedef struct mix_gzip {
  const unsigned char *at;
  size_t left;
  bool gzipped, ended;
  z_stream stream;
} mix_gzip;

/* Begins; by the first bytes it is a gzip stream or plain. False with the error recorded: out of memory. */
bool mix_gzip_begin(mix_gzip *reader, const void *data, size_t size);
void mix_gzip_end(mix_gzip *reader);
/* Reads exactly `size` bytes; false if there are fewer, or the stream is damaged. */
bool mix_gzip_read(mix_gzip *reader, void *into, size_t size);
/* True if no data follows. For gzip this also checks the trailer (length and CRC-32). */
bool mix_gzip_at_end(mix_gzip *reader);
/* How many bytes can follow at most. */
uint64_t mix_gzip_max(const mix_gzip *reader);
