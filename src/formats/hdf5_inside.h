/* What the files of the HDF5 reader share: spans of the file, messages of object headers, types. */
#pragma once

#include "formats/hdf5.h"

/* The address of what is not there. */
#define MIX_HDF5_NOWHERE UINT64_MAX

/* Bytes of the file that are read from front to back. Reading past the end gives zeros and sets `short_`. */
typedef struct mix_span {
  const unsigned char *at;
  size_t left;
  bool short_;
} mix_span;

/* FormatError "NAME: damaged HDF5: WHAT"; false. */
bool mix_hdf5_damaged(const mix_hdf5 *file, const char *what);
/* NotImplementedError "NAME: HDF5 with WHAT is not supported"; false. */
bool mix_hdf5_unsupported(const mix_hdf5 *file, const char *what);

/* Begins a call. A block has at least 8 bytes, so a walk without a circle visits fewer than size / 8. */
static inline void mix_hdf5_begin(mix_hdf5 *file) { file->visits = (int64_t)(file->size / 8) + 64; }
/* `size` bytes at an address; counts as a visit. False with the error recorded. */
bool mix_hdf5_span(mix_hdf5 *file, uint64_t address, uint64_t size, mix_span *span);
/* The same to the end of the file, after a signature of four letters. */
bool mix_hdf5_block(mix_hdf5 *file, uint64_t address, const char *signature, mix_span *span);
uint64_t mix_span_number(mix_span *span, int bytes);
/* The next `size` bytes as a span of their own. */
mix_span mix_span_take(mix_span *span, uint64_t size);
static inline void mix_span_skip(mix_span *span, uint64_t size) { (void)mix_span_take(span, size); }

/* ---- object headers ---- */
enum {
  MIX_HDF5_DATASPACE = 0x1,
  MIX_HDF5_LINK_INFO = 0x2,
  MIX_HDF5_DATATYPE = 0x3,
  MIX_HDF5_FILL_VALUE = 0x5,
  MIX_HDF5_LINK = 0x6,
  MIX_HDF5_EXTERNAL_FILES = 0x7,
  MIX_HDF5_LAYOUT = 0x8,
  MIX_HDF5_FILTERS = 0xB,
  MIX_HDF5_ATTRIBUTE = 0xC,
  MIX_HDF5_CONTINUATION = 0x10,
  MIX_HDF5_SYMBOL_TABLE = 0x11,
  MIX_HDF5_ATTRIBUTE_INFO = 0x15
};
/* Calls `visit` for each message of an object header, until it returns false. */
typedef bool mix_hdf5_message(void *context, int type, mix_span body);
bool mix_hdf5_messages(mix_hdf5 *file, uint64_t header, mix_hdf5_message *visit, void *context);
/* The first message of that type. False without an error if there is none. */
bool mix_hdf5_find(mix_hdf5 *file, uint64_t header, int type, mix_span *body);

/* ---- hdf5_heap.c: many small objects in a fractal heap, indexed by a B-tree of version 2 ---- */
typedef bool mix_hdf5_record(void *context, mix_span object);
/* Calls `visit` for each object of the index. `skip`: bytes of a record before the heap's id. */
bool mix_hdf5_dense(mix_hdf5 *file, uint64_t heap, uint64_t index, int skip, mix_hdf5_record *visit,
                    void *context);

/* ---- hdf5_groups.c ---- */
/* The object header at a path. False: with the error recorded, or without one if a link is missing. */
bool mix_hdf5_resolve(mix_hdf5 *file, const char *path, uint64_t *header);

/* ---- hdf5_types.c ---- */
typedef struct mix_hdf5_type {
  enum { MIX_HDF5_NUMBER, MIX_HDF5_TEXT, MIX_HDF5_VARIABLE_TEXT, MIX_HDF5_OPAQUE } kind;
  mix_dtype dtype;
  bool big_endian;
  size_t size; /* of an element in the file */
} mix_hdf5_type;
bool mix_hdf5_read_type(const mix_hdf5 *file, mix_span *span, mix_hdf5_type *type);
/* Rank and dimensions, and how many elements. */
bool mix_hdf5_read_space(const mix_hdf5 *file, mix_span span, mix_shape *shape, size_t *count);
/* Big-endian elements become little-endian ones. */
void mix_hdf5_swap(unsigned char *bytes, size_t count, size_t size);
/* Elements as the file holds them (value->count of them) into the value. */
bool mix_hdf5_fill(mix_hdf5 *file, const mix_hdf5_type *type, const unsigned char *elements,
                   mix_hdf5_value *value);
