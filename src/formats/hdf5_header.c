/* Superblock and object headers of HDF5 files. */
#include "formats/hdf5_inside.h"

#include "base/error.h"
#include <string.h>

/* ---- spans ---- */

bool mix_hdf5_damaged(const mix_hdf5 *file, const char *what) {
  return mix_fail_format("%s: damaged HDF5: %s", file->name, what), false;
}

bool mix_hdf5_unsupported(const mix_hdf5 *file, const char *what) {
  return mix_fail_unsupported("%s: HDF5 with %s is not supported; h5py's defaults are", file->name, what),
         false;
}

bool mix_hdf5_span(mix_hdf5 *file, uint64_t address, uint64_t size, mix_span *span) {
  if (--file->visits < 0) return mix_hdf5_damaged(file, "its blocks form a circle");
  if (address > file->size || size > file->size - address)
    return mix_hdf5_damaged(file, "a block lies behind its end");
  *span = (mix_span){file->bytes + address, (size_t)size, false};
  return true;
}

bool mix_hdf5_block(mix_hdf5 *file, uint64_t address, const char *signature, mix_span *span) {
  if (address > file->size) return mix_hdf5_damaged(file, "a block lies behind its end");
  if (!mix_hdf5_span(file, address, file->size - address, span)) return false;
  if (span->left < 4 || memcmp(span->at, signature, 4)) {
    char what[48] = "a block lacks its signature ";
    strncat(what, signature, 4);
    return mix_hdf5_damaged(file, what);
  }
  mix_span_skip(span, 4);
  return true;
}

mix_span mix_span_take(mix_span *span, uint64_t size) {
  mix_span part = {span->at, (size_t)size, false};
  if (size > span->left) {
    span->short_ = true;
    part.left = span->left;
    part.short_ = true;
  }
  span->at += part.left;
  span->left -= part.left;
  return part;
}

uint64_t mix_span_number(mix_span *span, int bytes) {
  uint64_t number = 0;
  const mix_span part = mix_span_take(span, (uint64_t)bytes);
  if (!part.short_) memcpy(&number, part.at, (size_t)bytes); /* both are little-endian */
  return number;
}

/* ---- superblock ---- */

/* Offsets and lengths of 8 bytes, the file's beginning as the base: what h5py writes. */
static bool read_superblock(mix_hdf5 *file, mix_span *span) {
  const int version = (int)mix_span_number(span, 1);
  if (version > 3) return mix_hdf5_unsupported(file, "a superblock of an unknown version");
  if (version < 2) mix_span_skip(span, 4);
  const uint64_t offsets = mix_span_number(span, 1), lengths = mix_span_number(span, 1);
  if (offsets != 8 || lengths != 8) return mix_hdf5_unsupported(file, "addresses of other than 8 bytes");
  mix_span_skip(span, version < 2 ? (version == 1 ? 13 : 9) : 1);
  if (mix_span_number(span, 8) != 0) return mix_hdf5_unsupported(file, "a base address");
  mix_span_skip(span, 8);
  const uint64_t end = mix_span_number(span, 8);
  mix_span_skip(span, version < 2 ? 16 : 0); /* driver block; the name of the root's entry */
  file->root = mix_span_number(span, 8);
  if (span->short_ || end > file->size) return mix_hdf5_damaged(file, "it is cut off");
  return true;
}

bool mix_hdf5_open(mix_hdf5 *file, const char *name, const void *bytes, size_t size) {
  static const char signature[8] = "\x89HDF\r\n\x1a\n";
  *file = (mix_hdf5){.name = name, .bytes = bytes, .size = size};
  if (mix_failed()) return false;
  if (size < sizeof signature || memcmp(bytes, signature, sizeof signature))
    return mix_fail_format("%s: not an HDF5 file", name), false;
  mix_hdf5_begin(file);
  mix_span span = {file->bytes + sizeof signature, size - sizeof signature, false};
  return read_superblock(file, &span);
}

/* ---- object headers ---- */

typedef struct walk {
  mix_hdf5 *file;
  mix_hdf5_message *visit;
  void *context;
  int version;
  bool ordered; /* version 2: messages carry their order of creation */
  int left;     /* messages of version 1 */
  bool stopped;
} walk;

static bool walk_block(walk *w, mix_span block);

static bool walk_continuation(walk *w, mix_span body) {
  const uint64_t address = mix_span_number(&body, 8), size = mix_span_number(&body, 8);
  mix_span block;
  if (body.short_ || size < 8) return mix_hdf5_damaged(w->file, "a header's continuation is too short");
  if (!mix_hdf5_span(w->file, address, size, &block)) return false;
  if (w->version == 1) return walk_block(w, block);
  if (memcmp(block.at, "OCHK", 4))
    return mix_hdf5_damaged(w->file, "a header's continuation is another block");
  block.at += 4;
  block.left -= 8; /* the signature, and a checksum at its end */
  return walk_block(w, block);
}

static bool walk_message(walk *w, int type, int flags, mix_span body) {
  if (type == 0) return true; /* room for others */
  if (flags & 2 && type != MIX_HDF5_CONTINUATION) {
    const bool wanted = type == MIX_HDF5_DATATYPE || type == MIX_HDF5_DATASPACE || type == MIX_HDF5_FILTERS;
    return wanted ? mix_hdf5_unsupported(w->file, "shared messages") : true;
  }
  if (type == MIX_HDF5_CONTINUATION) return walk_continuation(w, body);
  if (!w->visit(w->context, type, body)) w->stopped = true;
  return true;
}

static bool walk_block(walk *w, mix_span block) {
  const size_t head = w->version == 1 ? 8 : w->ordered ? 6 : 4;
  while (!w->stopped && block.left >= head && (w->version != 1 || w->left-- > 0)) {
    const int type = (int)mix_span_number(&block, w->version == 1 ? 2 : 1);
    const uint64_t size = mix_span_number(&block, 2);
    const int flags = (int)mix_span_number(&block, 1);
    mix_span_skip(&block, head - (w->version == 1 ? 5 : 4));
    const mix_span body = mix_span_take(&block, size);
    if (body.short_) return mix_hdf5_damaged(w->file, "a message is longer than its header");
    if (!walk_message(w, type, flags, body)) return false;
  }
  return true;
}

static bool walk_version_1(walk *w, mix_span span) {
  mix_span_skip(&span, 2);
  w->left = (int)mix_span_number(&span, 2);
  mix_span_skip(&span, 4);
  const uint64_t size = mix_span_number(&span, 4);
  mix_span_skip(&span, 4);
  const mix_span block = mix_span_take(&span, size);
  return block.short_ ? mix_hdf5_damaged(w->file, "an object header is cut off") : walk_block(w, block);
}

static bool walk_version_2(walk *w, mix_span span) {
  mix_span_skip(&span, 4);
  if (mix_span_number(&span, 1) != 2)
    return mix_hdf5_unsupported(w->file, "an object header of a new version");
  const int flags = (int)mix_span_number(&span, 1);
  mix_span_skip(&span, (flags & 0x20 ? 16 : 0) + (flags & 0x10 ? 4 : 0));
  const uint64_t size = mix_span_number(&span, 1 << (flags & 3));
  w->ordered = flags & 4;
  const mix_span block = mix_span_take(&span, size);
  return block.short_ ? mix_hdf5_damaged(w->file, "an object header is cut off") : walk_block(w, block);
}

bool mix_hdf5_messages(mix_hdf5 *file, uint64_t header, mix_hdf5_message *visit, void *context) {
  walk w = {.file = file, .visit = visit, .context = context};
  mix_span span;
  if (header > file->size) return mix_hdf5_damaged(file, "an object lies behind its end");
  if (!mix_hdf5_span(file, header, file->size - header, &span)) return false;
  if (span.left >= 4 && !memcmp(span.at, "OHDR", 4)) {
    w.version = 2;
    return walk_version_2(&w, span);
  }
  w.version = 1;
  return span.left && *span.at == 1 ? walk_version_1(&w, span)
                                    : mix_hdf5_damaged(file, "an object header has no known version");
}

typedef struct search {
  int type;
  bool found;
  mix_span body;
} search;

static bool is_wanted(void *context, int type, mix_span body) {
  search *s = context;
  if (type != s->type) return true;
  s->found = true;
  s->body = body;
  return false;
}

bool mix_hdf5_find(mix_hdf5 *file, uint64_t header, int type, mix_span *body) {
  search s = {.type = type};
  if (!mix_hdf5_messages(file, header, is_wanted, &s)) return false;
  *body = s.body;
  return s.found;
}
