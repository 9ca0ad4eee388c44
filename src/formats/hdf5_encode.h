/* The bytes of an HDF5 file's headers and tables, in the oldest forms of "HDF5 File Format Specification
 * 3.0", which every reader knows: superblock 0, object headers 1, symbol tables. */
#pragma once

#include "formats/hdf5_objects.h"

/* A block of the file that grows. `failed`: out of memory, with the error recorded. */
typedef struct mix_hdf5_buffer {
  unsigned char *data;
  size_t size, capacity;
  uint64_t address; /* of its first byte in the file; a multiple of 8 */
  bool failed;
} mix_hdf5_buffer;

enum {
  MIX_HDF5_SUPERBLOCK_SIZE = 96,
  MIX_HDF5_MESSAGE_MAX = 65528, /* the largest multiple of 8 in 16 bits */
  MIX_HDF5_COLLECTION_MIN = 4096
};
/* Half of the most children of a tree's node, and of the most links of a leaf: the library's defaults. */
enum { MIX_HDF5_TREE_K = 16, MIX_HDF5_LEAF_K = 4 };

/* ---- hdf5_encode.c ---- */
void mix_hdf5_put(mix_hdf5_buffer *block, const void *data, size_t size);
void mix_hdf5_put_zeros(mix_hdf5_buffer *block, size_t size);
void mix_hdf5_put_number(mix_hdf5_buffer *block, uint64_t number, int bytes); /* little-endian */
/* Zeros up to a multiple of 8. */
void mix_hdf5_align(mix_hdf5_buffer *block);
/* The address of the next byte. */
static inline uint64_t mix_hdf5_here(const mix_hdf5_buffer *block) { return block->address + block->size; }
/* The first block of a file of `size` bytes. */
void mix_hdf5_put_superblock(mix_hdf5_buffer *block, const mix_hdf5_object *root, uint64_t size);

/* ---- hdf5_encode_objects.c ---- */
/* True if arrays of that dtype can be written. */
bool mix_hdf5_has_type(mix_dtype dtype);
/* The object header, the last of what an object has; its address goes into the object. False with the error
 * recorded. */
bool mix_hdf5_put_header(mix_hdf5_buffer *block, mix_hdf5_object *object, const char *call);

/* ---- hdf5_encode_groups.c ---- */
/* Names, leaves and tree of a group whose members have their headers; the addresses go into the object. False
 * with the error recorded. */
bool mix_hdf5_put_links(mix_hdf5_buffer *block, mix_hdf5_object *group);
