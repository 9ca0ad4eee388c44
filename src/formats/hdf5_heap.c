/* Fractal heaps and B-trees of version 2: dense links and attributes of HDF5 files. */
#include "formats/hdf5_inside.h"

/* ---- the heap ---- */

typedef struct heap {
  mix_hdf5 *file;
  uint64_t start_size, direct_max, root, huge; /* huge: the index of large objects */
  int width, rows;                             /* of the root; 0 rows: it is a direct block */
  int offset_bytes, length_bytes, id_length;
} heap;

/* Bytes that hold numbers up to `most`. */
static int bytes_for(uint64_t most) {
  int bytes = 1;
  while (bytes < 8 && most >> 8 * bytes) bytes++;
  return bytes;
}

static bool read_heap(mix_hdf5 *file, uint64_t address, heap *h) {
  mix_span span;
  if (!mix_hdf5_block(file, address, "FRHP", &span)) return false;
  mix_span_skip(&span, 1);
  *h = (heap){.file = file, .id_length = (int)mix_span_number(&span, 2)};
  if (mix_span_number(&span, 2)) return mix_hdf5_unsupported(file, "a filtered heap");
  mix_span_skip(&span, 1);
  const uint64_t managed_max = mix_span_number(&span, 4);
  mix_span_skip(&span, 8);
  h->huge = mix_span_number(&span, 8);
  mix_span_skip(&span, 10 * 8);
  h->width = (int)mix_span_number(&span, 2);
  h->start_size = mix_span_number(&span, 8);
  h->direct_max = mix_span_number(&span, 8);
  const int bits = (int)mix_span_number(&span, 2);
  mix_span_skip(&span, 2);
  h->root = mix_span_number(&span, 8);
  h->rows = (int)mix_span_number(&span, 2);
  h->offset_bytes = (bits + 7) / 8;
  h->length_bytes = bytes_for(managed_max < h->direct_max ? managed_max : h->direct_max);
  const bool sound = !span.short_ && h->width > 0 && h->start_size > 0 && h->start_size <= h->direct_max &&
                     h->direct_max <= UINT32_MAX && h->rows < 64 && h->offset_bytes <= 8;
  return sound || mix_hdf5_damaged(file, "a heap has impossible sizes");
}

/* Rows 0 and 1 have blocks of the start size, each further row twice those of the row before. */
static uint64_t block_size(const heap *h, int row) {
  return row > 62 ? 0 : h->start_size << (row > 1 ? row - 1 : 0);
}

/* The span of an object at this offset of the heap. */
static bool find_object(const heap *h, uint64_t offset, uint64_t length, mix_span *object) {
  uint64_t block = h->root, base = offset;
  for (int depth = 0, indirect = h->rows > 0; indirect; depth++) {
    mix_span span;
    int row = 0;
    uint64_t before = 0;
    if (depth > 16) return mix_hdf5_damaged(h->file, "a heap is too deep");
    if (!mix_hdf5_block(h->file, block, "FHIB", &span)) return false;
    while (row < 63 && block_size(h, row) && base - before >= block_size(h, row) * (uint64_t)h->width)
      before += block_size(h, row++) * (uint64_t)h->width;
    const uint64_t size = block_size(h, row);
    if (!size) return mix_hdf5_damaged(h->file, "an object lies behind its heap");
    const uint64_t entry = (uint64_t)row * (uint64_t)h->width + (base - before) / size;
    mix_span_skip(&span, 1 + 8 + (uint64_t)h->offset_bytes + 8 * entry);
    block = mix_span_number(&span, 8);
    if (span.short_) return mix_hdf5_damaged(h->file, "a heap's block is cut off");
    base = (base - before) % size;
    indirect = size > h->direct_max;
  }
  if (block == MIX_HDF5_NOWHERE || base > h->file->size)
    return mix_hdf5_damaged(h->file, "an object lies behind its heap");
  return mix_hdf5_span(h->file, block + base, length, object);
}

/* ---- the index ---- */

typedef struct tree {
  mix_hdf5 *file;
  uint64_t node_size, record_size;
  bool (*visit)(void *context, mix_span record);
  void *context;
} tree;

static bool visit_records(const tree *t, mix_span span, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const mix_span record = mix_span_take(&span, t->record_size);
    if (record.short_) return mix_hdf5_damaged(t->file, "an index is cut off");
    if (!t->visit(t->context, record)) return false;
  }
  return true;
}

/* The most records of a node of this depth, and the bytes of its children's counts. */
static uint64_t most_records(const tree *t, int depth, int *count_bytes, int *total_bytes) {
  uint64_t most = (t->node_size - 10) / t->record_size, total = most;
  *count_bytes = bytes_for(most);
  *total_bytes = 0;
  for (int level = 1; level <= depth; level++) {
    const int former_count = bytes_for(most), former_total = level > 1 ? bytes_for(total) : 0;
    const uint64_t pointer = 8 + (uint64_t)former_count + (uint64_t)former_total;
    *count_bytes = former_count;
    *total_bytes = former_total;
    most = t->node_size < 10 + pointer ? 0 : (t->node_size - 10 - pointer) / (t->record_size + pointer);
    if (total > UINT32_MAX) break;
    total = total * (most + 1) + most;
  }
  return most;
}

static bool visit_node(const tree *t, uint64_t address, uint64_t count, int depth) {
  mix_span span;
  int count_bytes, total_bytes;
  const uint64_t most = most_records(t, depth, &count_bytes, &total_bytes);
  if (count > most) return mix_hdf5_damaged(t->file, "an index has too many records");
  if (!mix_hdf5_block(t->file, address, depth ? "BTIN" : "BTLF", &span)) return false;
  mix_span_skip(&span, 2);
  const mix_span records = mix_span_take(&span, count * t->record_size);
  if (records.short_) return mix_hdf5_damaged(t->file, "an index is cut off");
  for (uint64_t i = 0; depth && i <= count; i++) {
    const uint64_t child = mix_span_number(&span, 8), inside = mix_span_number(&span, count_bytes);
    mix_span_skip(&span, (uint64_t)total_bytes);
    if (span.short_) return mix_hdf5_damaged(t->file, "an index is cut off");
    if (!visit_node(t, child, inside, depth - 1)) return false;
  }
  return visit_records(t, records, count);
}

/* Calls `visit` for each record of a tree. */
static bool walk_tree(tree t, uint64_t address) {
  mix_span span;
  if (!mix_hdf5_block(t.file, address, "BTHD", &span)) return false;
  mix_span_skip(&span, 2);
  t.node_size = mix_span_number(&span, 4);
  t.record_size = mix_span_number(&span, 2);
  const int depth = (int)mix_span_number(&span, 2);
  mix_span_skip(&span, 2);
  const uint64_t root = mix_span_number(&span, 8), count = mix_span_number(&span, 2);
  if (span.short_ || t.record_size == 0 || t.node_size < 10 + t.record_size || depth > 8)
    return mix_hdf5_damaged(t.file, "an index has impossible sizes");
  return count == 0 || visit_node(&t, root, count, depth);
}

/* ---- objects ---- */

typedef struct huge_search {
  uint64_t id, address, length;
  bool found;
} huge_search;

static bool is_huge(void *context, mix_span record) {
  huge_search *s = context;
  s->address = mix_span_number(&record, 8);
  s->length = mix_span_number(&record, 8);
  s->found = mix_span_number(&record, 8) == s->id && !record.short_;
  return !s->found;
}

/* An object that is too large for the heap's blocks has a block of its own, which another index has. */
static bool huge_object(const heap *h, mix_span id, mix_span *object) {
  huge_search s = {.id = mix_span_number(&id, h->id_length - 1 < 8 ? h->id_length - 1 : 8)};
  if (h->id_length > 16 || h->huge == MIX_HDF5_NOWHERE)
    return mix_hdf5_unsupported(h->file, "huge objects without an index");
  walk_tree((tree){.file = h->file, .visit = is_huge, .context = &s}, h->huge);
  if (!s.found) return mix_hdf5_damaged(h->file, "an object is not in its heap");
  return mix_hdf5_span(h->file, s.address, s.length, object);
}

static bool heap_object(const heap *h, mix_span id, mix_span *object) {
  const int kind = (int)(mix_span_number(&id, 1) >> 4 & 3);
  if (kind == 1) return huge_object(h, id, object);
  if (kind != 0) return mix_hdf5_unsupported(h->file, "tiny objects in a heap");
  const uint64_t offset = mix_span_number(&id, h->offset_bytes),
                 length = mix_span_number(&id, h->length_bytes);
  if (id.short_) return mix_hdf5_damaged(h->file, "the id of a heap's object is cut off");
  return find_object(h, offset, length, object);
}

typedef struct dense {
  heap heap;
  int skip;
  mix_hdf5_record *visit;
  void *context;
} dense;

static bool visit_object(void *context, mix_span record) {
  const dense *d = context;
  mix_span object;
  mix_span_skip(&record, (uint64_t)d->skip);
  return heap_object(&d->heap, record, &object) && d->visit(d->context, object);
}

bool mix_hdf5_dense(mix_hdf5 *file, uint64_t heap_address, uint64_t index, int skip, mix_hdf5_record *visit,
                    void *context) {
  dense d = {.skip = skip, .visit = visit, .context = context};
  return read_heap(file, heap_address, &d.heap) &&
         walk_tree((tree){.file = file, .visit = visit_object, .context = &d}, index);
}
