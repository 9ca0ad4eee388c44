/* Reads IDX files. */
#include "formats/idx.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"
#include <limits.h>
#include <string.h>
#include <zlib.h>

#define UNSIGNED_BYTE 0x08
/* Deflate cannot compress below 1/1032 of the original. */
#define DEFLATE_MAX 1032
/* MNIST's largest is 47 MB; the variants in use (EMNIST, Infinite MNIST) stay below 7 GB. */
#define FILE_LIMIT ((size_t)8 << 30)

static void *damaged(const char *name, const char *what) {
  return mix_fail(MIX_FORMAT_ERROR, "%s: not a usable IDX file: %s", name, what);
}

/* Reads plain bytes or a gzip stream. */
typedef struct reader {
  const unsigned char *at;
  size_t left;
  bool gzipped, ended;
  z_stream stream;
} reader;

/* Reads exactly `size` bytes. */
static bool read_bytes(reader *r, void *into, size_t size) {
  if (!r->gzipped) {
    if (size > r->left) return false;
    memcpy(into, r->at, size);
    r->at += size;
    r->left -= size;
    return true;
  }
  unsigned char *to = into;
  while (size > 0 && !r->ended) {
    uInt in = r->left > UINT_MAX ? UINT_MAX : (uInt)r->left, out = size > UINT_MAX ? UINT_MAX : (uInt)size;
    r->stream.next_in = (Bytef *)(uintptr_t)r->at;
    r->stream.avail_in = in;
    r->stream.next_out = to;
    r->stream.avail_out = out;
    int code = inflate(&r->stream, Z_NO_FLUSH);
    size_t used = in - r->stream.avail_in, made = out - r->stream.avail_out;
    r->at += used;
    r->left -= used;
    to += made;
    size -= made;
    if (code == Z_STREAM_END)
      r->ended = true;
    else if (code != Z_OK || (used == 0 && made == 0))
      return false;
  }
  return size == 0;
}

/* True if no data follows. For gzip this also checks the trailer (length and CRC-32). */
static bool at_end(reader *r) {
  unsigned char beyond;
  if (!r->gzipped) return r->left == 0;
  return !read_bytes(r, &beyond, 1) && r->ended && r->left == 0;
}

static mix_tensor *parse(const char *name, reader *r) {
  unsigned char magic[4], dimension[4];
  if (!read_bytes(r, magic, 4)) return damaged(name, "it is shorter than its header");
  if (magic[0] != 0 || magic[1] != 0) return damaged(name, "it does not begin with two zero bytes");
  if (magic[2] != UNSIGNED_BYTE)
    return mix_fail(MIX_UNSUPPORTED, "%s: IDX elements of type 0x%02x; only unsigned bytes (0x08) are read",
                    name, magic[2]);
  mix_shape shape = {.rank = magic[3]};
  if (shape.rank < 1 || shape.rank > MIX_MAX_RANK)
    return damaged(name, "the number of dimensions is not between 1 and 8");
  for (int i = 0; i < shape.rank; i++) {
    if (!read_bytes(r, dimension, 4)) return damaged(name, "it is shorter than its header");
    shape.dims[i] = (int64_t)dimension[0] << 24 | dimension[1] << 16 | dimension[2] << 8 | dimension[3];
  }
  int64_t count = mix_shape_checked_size(shape);
  uint64_t max = r->left;
  if (r->gzipped) max = (max + 1024) * DEFLATE_MAX; /* 1024: bytes buffered inside the stream */
  if (count < 0 || (uint64_t)count > max)
    return damaged(name, "it declares more elements than the file can hold");
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(MIX_UINT8, shape, &data);
  if (!tensor) return NULL;
  if (!read_bytes(r, data, (size_t)count))
    return damaged(name, "it ends early, or its compressed content or checksum is damaged");
  if (!at_end(r))
    return damaged(name, r->gzipped ? "more follows than it declares, or its checksum differs"
                                    : "more follows than it declares");
  return tensor;
}

mix_tensor *mix_idx_read_memory(const char *name, const void *data, size_t size) {
  if (mix_failed()) return NULL;
  reader r = {.at = data, .left = size};
  r.gzipped = size >= 2 && r.at[0] == 0x1f && r.at[1] == 0x8b;
  if (r.gzipped && inflateInit2(&r.stream, 15 + 16) != Z_OK) return mix_fail_memory("inflate");
  mix_tensor *tensor = parse(name, &r);
  if (r.gzipped) inflateEnd(&r.stream);
  return tensor;
}

mix_tensor *mix_idx_load(const char *path) {
  if (mix_failed()) return NULL;
  size_t size;
  void *data = mix_file_read(path, FILE_LIMIT, &size);
  if (!data) return NULL;
  mix_tensor *tensor = mix_idx_read_memory(path, data, size);
  mix_free(data);
  return tensor;
}
