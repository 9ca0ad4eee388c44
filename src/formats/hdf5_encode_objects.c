/* Object headers of HDF5 files: types, spaces, layouts, attributes. */
#include "base/error.h"
#include "formats/hdf5_encode.h"
#include "formats/hdf5_inside.h"
#include "tensor/type.h"
#include <string.h>

/* ---- messages ---- */

enum { CONSTANT = 1 }; /* the flag of a message that never changes */

/* Where the message begins. */
static size_t begin_message(mix_hdf5_buffer *block, int type, int flags) {
  const size_t at = block->size;
  mix_hdf5_put_number(block, (uint64_t)type, 2);
  mix_hdf5_put_number(block, 0, 2);
  mix_hdf5_put_number(block, (uint64_t)flags, 4);
  return at;
}

static void write_number(mix_hdf5_buffer *block, size_t at, uint64_t number, int bytes) {
  for (int i = 0; i < bytes && !block->failed; i++)
    block->data[at + (size_t)i] = (unsigned char)(number >> 8 * i);
}

/* The size of its body, a multiple of 8. */
static size_t end_message(mix_hdf5_buffer *block, size_t at) {
  mix_hdf5_align(block);
  const size_t size = block->size - at - 8;
  write_number(block, at + 2, size, 2);
  return size;
}

/* ---- types ---- */

/* Class and version 1 in the first byte, then 24 bits of flags. */
static void put_type(mix_hdf5_buffer *block, int class, int flags, size_t size) {
  mix_hdf5_put_number(block, (uint64_t)(class | 0x10), 1);
  mix_hdf5_put_number(block, (uint64_t)flags, 3);
  mix_hdf5_put_number(block, size, 4);
}

enum { INTEGER = 0, FLOATING = 1, STRING = 3, OPAQUE = 5, ENUMERATION = 8, VARIABLE = 9 };

static void put_integer_type(mix_hdf5_buffer *block, size_t size, bool is_signed) {
  put_type(block, INTEGER, is_signed ? 8 : 0, size);
  mix_hdf5_put_number(block, 8 * size << 16, 4); /* first bit, and how many */
}

/* IEEE 754: the sign is the last bit, the mantissa's first bit is implied. */
static void put_float_type(mix_hdf5_buffer *block, int size, int exponent, int mantissa) {
  const int bits = 8 * size;
  put_type(block, FLOATING, 0x20 | (bits - 1) << 8, (size_t)size);
  mix_hdf5_put_number(block, (uint64_t)bits << 16, 4);
  mix_hdf5_put_number(block, (uint64_t)mantissa, 1);
  mix_hdf5_put_number(block, (uint64_t)exponent, 1);
  mix_hdf5_put_number(block, 0, 1);
  mix_hdf5_put_number(block, (uint64_t)mantissa, 1);
  mix_hdf5_put_number(block, (UINT64_C(1) << (exponent - 1)) - 1, 4);
}

/* As h5py stores numpy's bool. */
static void put_bool_type(mix_hdf5_buffer *block) {
  put_type(block, ENUMERATION, 2, 1);
  put_integer_type(block, 1, true);
  mix_hdf5_put(block, "FALSE\0\0\0TRUE\0\0\0\0\0\1", 18);
}

bool mix_hdf5_has_type(mix_dtype dtype) { return mix_dtype_size(dtype) > 0 && !mix_dtype_is_float8(dtype); }

/* bfloat16 is opaque, with an empty tag. */
static void put_element_type(mix_hdf5_buffer *block, mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: put_float_type(block, 2, 5, 10); break;
  case MIX_FLOAT32: put_float_type(block, 4, 8, 23); break;
  case MIX_FLOAT64: put_float_type(block, 8, 11, 52); break;
  case MIX_BFLOAT16: put_type(block, OPAQUE, 0, 2); break;
  case MIX_BOOL: put_bool_type(block); break;
  default: put_integer_type(block, mix_dtype_size(dtype), dtype != MIX_UINT8);
  }
}

/* ---- data sets ---- */

/* Version 1. */
static void put_space(mix_hdf5_buffer *block, int rank, const int64_t *dims) {
  mix_hdf5_put_number(block, 1, 1);
  mix_hdf5_put_number(block, (uint64_t)rank, 7); /* no largest dimensions */
  for (int i = 0; i < rank; i++) mix_hdf5_put_number(block, (uint64_t)dims[i], 8);
}

static int put_data_set(mix_hdf5_buffer *block, const mix_hdf5_object *set) {
  size_t at = begin_message(block, MIX_HDF5_DATASPACE, 0);
  put_space(block, set->shape.rank, set->shape.dims);
  end_message(block, at);
  at = begin_message(block, MIX_HDF5_DATATYPE, CONSTANT);
  put_element_type(block, set->dtype);
  end_message(block, at);
  at = begin_message(block, MIX_HDF5_FILL_VALUE, CONSTANT);
  mix_hdf5_put_number(block, 0x01020202, 8); /* version 2, allocated late, written if set, the default */
  end_message(block, at);
  at = begin_message(block, MIX_HDF5_LAYOUT, 0);
  mix_hdf5_put_number(block, 0x0103, 2); /* version 3, contiguous */
  mix_hdf5_put_number(block, set->data_size ? set->data : MIX_HDF5_NOWHERE, 8);
  mix_hdf5_put_number(block, set->data_size, 8);
  end_message(block, at);
  return 4;
}

/* ---- groups ---- */

static int put_group(mix_hdf5_buffer *block, const mix_hdf5_object *group) {
  const size_t at = begin_message(block, MIX_HDF5_SYMBOL_TABLE, 0);
  mix_hdf5_put_number(block, group->tree, 8);
  mix_hdf5_put_number(block, group->heap, 8);
  end_message(block, at);
  return 1;
}

/* ---- attributes ---- */

static void put_text_type(mix_hdf5_buffer *block, const mix_hdf5_text *text) {
  if (!text->bytes) {
    put_float_type(block, 8, 11, 52);
  } else if (text->variable) {
    put_type(block, VARIABLE, 0x101, 16); /* a string, UTF-8, of what the library has for characters */
    put_integer_type(block, 1, false);
  } else {
    put_type(block, STRING, 1, text->width); /* padded by zeros, ASCII as numpy's bytes */
  }
}

static void put_text_values(mix_hdf5_buffer *block, const mix_hdf5_text *text) {
  if (!text->variable) {
    mix_hdf5_put(block, text->bytes, (size_t)text->count * text->width);
    return;
  }
  mix_hdf5_put_number(block, text->width, 4);
  mix_hdf5_put_number(block, text->collection, 8);
  mix_hdf5_put_number(block, (uint64_t)text->index, 4);
}

/* Version 1: name, type and space each padded, their sizes without the padding. */
static bool put_text(mix_hdf5_buffer *block, const mix_hdf5_text *text, const char *call) {
  const size_t at = begin_message(block, MIX_HDF5_ATTRIBUTE, 0), name = strlen(text->name) + 1;
  const size_t type = text->bytes && !text->variable ? 8 : 20;
  mix_hdf5_put_number(block, 1, 2);
  mix_hdf5_put_number(block, name, 2);
  mix_hdf5_put_number(block, type, 2);
  mix_hdf5_put_number(block, text->variable ? 8 : 16, 2);
  mix_hdf5_put(block, text->name, name);
  mix_hdf5_align(block);
  put_text_type(block, text);
  mix_hdf5_align(block);
  put_space(block, !text->variable, (const int64_t[]){text->count});
  put_text_values(block, text);
  const size_t size = end_message(block, at);
  return size <= MIX_HDF5_MESSAGE_MAX ||
         mix_fail_value("%s: the attribute '%.100s' takes %zu bytes; HDF5 files take at most %d", call,
                        text->name, size, MIX_HDF5_MESSAGE_MAX);
}

/* ---- the header ---- */

bool mix_hdf5_put_header(mix_hdf5_buffer *block, mix_hdf5_object *object, const char *call) {
  const size_t at = block->size;
  object->header = mix_hdf5_here(block);
  mix_hdf5_put_number(block, 1, 4);
  mix_hdf5_put_number(block, 1, 4); /* links to it */
  mix_hdf5_put_number(block, 0, 8);
  int messages = object->is_group ? put_group(block, object) : put_data_set(block, object);
  for (int i = 0; i < object->text_count; i++, messages++)
    if (!put_text(block, &object->texts[i], call)) return false;
  if (messages > UINT16_MAX)
    return mix_fail_value("%s: '%.200s' has %d attributes; HDF5 files take at most %d", call, object->name,
                          object->text_count, UINT16_MAX);
  write_number(block, at + 2, (uint64_t)messages, 2);
  write_number(block, at + 8, block->size - at - 16, 4);
  return !block->failed;
}
