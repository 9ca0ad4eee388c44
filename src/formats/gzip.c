#include "formats/gzip.h"
#include "base/error.h"
#include <limits.h>
#include <string.h>

bool mix_gzip_begin(mix_gzip *r, const void *data, size_t size) {
  *r = (mix_gzip){.at = data, .left = size};
  r->gzipped = size >= 2 && r->at[0] == 0x1f && r->at[1] == 0x8b;
  if (!r->gzipped || inflateInit2(&r->stream, 15 + 16) == Z_OK) return true;
  return mix_fail_memory("inflate");
}

void mix_gzip_end(mix_gzip *r) {
  if (r->gzipped) inflateEnd(&r->stream);
}

uint64_t mix_gzip_max(const mix_gzip *r) {
  /* Deflate cannot compress below 1/1032 of the original; 1024 bytes may be buffered inside the stream. */
  return r->gzipped ? (r->left + UINT64_C(1024)) * 1032 : r->left;
}

bool mix_gzip_read(mix_gzip *r, void *into, size_t size) {
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

bool mix_gzip_at_end(mix_gzip *r) {
  unsigned char beyond;
  if (!r->gzipped) return r->left == 0;
  return !mix_gzip_read(r, &beyond, 1) && r->ended && r->left == 0;
}
