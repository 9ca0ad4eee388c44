/* Reads IDX files. */
#include "formats/idx.h"

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "formats/gzip.h"
#include "graph/unfilled_tensor.h"
#include "tensor/shape.h"

#define UNSIGNED_BYTE 0x08
/* MNIST's largest is 47 MB; the variants in use (EMNIST, Infinite MNIST) stay below 7 GB. */
#define FILE_LIMIT ((size_t)8 << 30)

static void *damaged(const char *name, const char *what) {
  return mix_fail_format("%s: not a usable IDX file: %s", name, what);
}

static mix_tensor *parse(const char *name, mix_gzip *r) {
  unsigned char magic[4], dimension[4];
  if (!mix_gzip_read(r, magic, 4)) return damaged(name, "it is shorter than its header");
  if (magic[0] != 0 || magic[1] != 0) return damaged(name, "it does not begin with two zero bytes");
  if (magic[2] != UNSIGNED_BYTE)
    return mix_fail_unsupported("%s: IDX elements of type 0x%02x; only unsigned bytes (0x08) are read", name,
                                magic[2]);
  mix_shape shape = {.rank = magic[3]};
  if (shape.rank < 1 || shape.rank > MIX_MAX_RANK)
    return damaged(name, "the number of dimensions is not between 1 and 8");
  for (int i = 0; i < shape.rank; i++) {
    if (!mix_gzip_read(r, dimension, 4)) return damaged(name, "it is shorter than its header");
    shape.dims[i] = (int64_t)dimension[0] << 24 | dimension[1] << 16 | dimension[2] << 8 | dimension[3];
  }
  int64_t count = mix_shape_checked_size(shape);
  if (count < 0 || (uint64_t)count > mix_gzip_max(r))
    return damaged(name, "it declares more elements than the file can hold");
  void *data;
  mix_tensor *tensor = mix_tensor_unfilled(MIX_UINT8, shape, &data);
  if (!tensor) return NULL;
  if (!mix_gzip_read(r, data, (size_t)count))
    return damaged(name, "it ends early, or its compressed content or checksum is damaged");
  if (!mix_gzip_at_end(r))
    return damaged(name, r->gzipped ? "more follows than it declares, or its checksum differs"
                                    : "more follows than it declares");
  return tensor;
}

mix_tensor *mix_idx_read_memory(const char *name, const void *data, size_t size) {
  if (mix_failed()) return NULL;
  mix_gzip r;
  if (!mix_gzip_begin(&r, data, size)) return NULL;
  mix_tensor *tensor = parse(name, &r);
  mix_gzip_end(&r);
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
