/* Blocks of an HDF5 file that grow, and the superblock. */
#include "formats/hdf5_encode.h"

#include "base/alloc.h"
#include <string.h>

static bool make_room(mix_hdf5_buffer *block, size_t size) {
  if (block->failed || size <= block->capacity - block->size) return !block->failed;
  size_t capacity = block->capacity ? 2 * block->capacity : 4096;
  if (capacity < block->size + size) capacity = block->size + size;
  unsigned char *data = mix_realloc(block->data, capacity);
  if (!data) return block->failed = true, false;
  block->data = data;
  block->capacity = capacity;
  return true;
}

void mix_hdf5_put(mix_hdf5_buffer *block, const void *data, size_t size) {
  if (!size || !make_room(block, size)) return;
  memcpy(block->data + block->size, data, size);
  block->size += size;
}

void mix_hdf5_put_zeros(mix_hdf5_buffer *block, size_t size) {
  if (!size || !make_room(block, size)) return;
  memset(block->data + block->size, 0, size);
  block->size += size;
}

void mix_hdf5_put_number(mix_hdf5_buffer *block, uint64_t number, int bytes) {
  unsigned char data[8];
  for (int i = 0; i < bytes; i++) data[i] = (unsigned char)(number >> 8 * i);
  mix_hdf5_put(block, data, (size_t)bytes);
}

void mix_hdf5_align(mix_hdf5_buffer *block) { mix_hdf5_put_zeros(block, -block->size % 8); }

void mix_hdf5_put_superblock(mix_hdf5_buffer *block, const mix_hdf5_object *root, uint64_t size) {
  static const unsigned char begin[16] = "\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08"; /* versions; 8 bytes each */
  mix_hdf5_put(block, begin, sizeof begin);
  mix_hdf5_put_number(block, MIX_HDF5_LEAF_K, 2);
  mix_hdf5_put_number(block, MIX_HDF5_TREE_K, 2);
  mix_hdf5_put_number(block, 0, 4);
  mix_hdf5_put_number(block, 0, 8); /* base address */
  mix_hdf5_put_number(block, UINT64_MAX, 8);
  mix_hdf5_put_number(block, size, 8);
  mix_hdf5_put_number(block, UINT64_MAX, 8);
  mix_hdf5_put_number(block, 0, 8); /* the root's entry: its name */
  mix_hdf5_put_number(block, root->header, 8);
  mix_hdf5_put_number(block, 1, 8); /* the addresses follow */
  mix_hdf5_put_number(block, root->tree, 8);
  mix_hdf5_put_number(block, root->heap, 8);
}
