/* IDX files built byte by byte. */
#ifndef MIX_TESTS_FORMATS_IDX_BYTES_H
#define MIX_TESTS_FORMATS_IDX_BYTES_H

#include "data/support.h"

/* An IDX array of unsigned bytes: element i is (seed + i) % modulus. */
static inline void put_idx(bytes *b, int rank, const uint32_t *dims, int seed, int modulus) {
  size_t count = 1;
  put_big(b, 0x0800 | (uint64_t)rank, 4);
  for (int i = 0; i < rank; i++) {
    put_big(b, dims[i], 4);
    count *= dims[i];
  }
  for (size_t i = 0; i < count; i++)
    put(b, &(unsigned char){(unsigned char)(((size_t)seed + i) % (size_t)modulus)}, 1);
}

/* The same bytes compressed by gzip. */
static inline void put_gzip(bytes *b, const bytes *plain) {
  z_stream stream = {.next_in = (Bytef *)(uintptr_t)plain->data,
                     .avail_in = (uInt)plain->size,
                     .next_out = b->data + b->size,
                     .avail_out = (uInt)(sizeof b->data - b->size)};
  assert_int_equal(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
  b->size += stream.total_out;
  deflateEnd(&stream);
}

#endif
