/* Inside a memory handle: for tensor/ and backend/ alone. */
#pragma once

#include "tensor/memory.h"

struct mix_memory_device {
  const char *name;
  size_t alignment; /* of the first byte of a value: a power of two */
  /* Memory for memory->bytes bytes: sets `address`; false with the error recorded. */
  bool (*allocate)(mix_memory *memory);
  void (*deallocate)(mix_memory *memory);
  /* These wait for the runs that use the memory, and report their value errors. */
  void *(*map)(mix_memory *memory, mix_map_mode mode);
  void (*unmap)(mix_memory *memory);
  /* Without a mapping of the whole. */
  bool (*copy_in)(mix_memory *to, size_t offset, const void *from, size_t bytes);
  bool (*copy_out)(mix_memory *from, size_t offset, void *to, size_t bytes);
  /* Are the runs over that write the memory? Does not wait. NULL: it cannot tell. */
  bool (*is_ready)(mix_memory *memory);
};

struct mix_memory {
  mix_object object;
  const mix_memory_device *device;
  char *address; /* as the device's kernels use it: an address of the host only for the host's memory */
  size_t bytes;
  void (*release)(void *data); /* of foreign memory; NULL: the device's own */
  void (*recycle)(mix_memory *memory, void *owner);
  void *owner;        /* retained while a pool has lent it */
  mix_memory *whole;  /* that it is a part of, retained; NULL: none */
  bool reads_storage; /* a variable's storage, as its readers see it */
  void *mirror;       /* mix_memory_mirror; NULL: none */
  mix_memory *spare;  /* mix_memory_reuse: the next one of its place, retained; NULL: none */
  bool reused;        /* made by mix_memory_reuse: copies of it to a device come again */
  /* Of a device that has prepared the bytes for its copies: called before they are freed. NULL: none has. */
  void (*unpin)(mix_memory *memory);
  /* Tickets of the latest runs that write it, and that read or write it; kept by its device. */
  uint64_t written, used;
};
