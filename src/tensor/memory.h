/* Memory of a device: a reference-counted handle with a size. Host code reaches the bytes only between map
 * and unmap. Backends and this folder see inside (tensor/memory_inside.h). */
#pragma once

#include "base/object.h"

typedef struct mix_memory mix_memory; /* an object: mix_retain, mix_release */
/* Where memory lives, and how the host reaches it. */
typedef struct mix_memory_device mix_memory_device;
extern const mix_memory_device mix_host_memory;
extern const mix_class mix_memory_class;

typedef enum mix_map_mode { MIX_MAP_READ, MIX_MAP_WRITE } mix_map_mode;

/* Not zeroed. One reference, the caller's. NULL with the error recorded. */
mix_memory *mix_memory_new(const mix_memory_device *device, size_t bytes);
/* Host memory of the caller; `release` NULL: the handle never frees it. On failure (NULL) it stays the
 * caller's. */
mix_memory *mix_memory_wrap(void *data, size_t bytes, void (*release)(void *data));
/* From now on `release` frees what mix_memory_wrap took. */
void mix_memory_own_wrapped(mix_memory *memory, void (*release)(void *data));
/* Bytes [offset, offset + bytes) of `whole`, which lives as long as its parts. */
mix_memory *mix_memory_part(mix_memory *whole, size_t offset, size_t bytes);
size_t mix_memory_bytes(const mix_memory *memory);
const mix_memory_device *mix_memory_device_of(const mix_memory *memory);
/* Is the byte at `offset` aligned as the device expects the first byte of a value to be? */
bool mix_memory_is_aligned(const mix_memory *memory, size_t offset);
/* What a value of so many bytes takes in memory that holds several: up to where the next one may begin. */
size_t mix_memory_aligned(const mix_memory_device *device, size_t bytes);

/* The bytes, for reading or writing as `mode` says, until mix_memory_unmap. Waits for the runs that write
 * them and, before they are written, for those that read them. NULL with the error recorded. */
void *mix_memory_map(mix_memory *memory, mix_map_mode mode);
void mix_memory_unmap(mix_memory *memory);
/* Copies `bytes` bytes from the host to `offset`, or back. False with the error recorded. */
bool mix_memory_copy_in(mix_memory *to, size_t offset, const void *from, size_t bytes);
bool mix_memory_copy_out(mix_memory *from, size_t offset, void *to, size_t bytes);
/* Can the bytes be read without waiting for a run? False also where the device cannot tell. */
bool mix_memory_is_ready(mix_memory *memory);
bool mix_memory_device_can_tell(const mix_memory_device *device);
/* Fills `to` with the first bytes of `from`, which is as large or larger. False with the error recorded. */
bool mix_memory_copy(mix_memory *to, mix_memory *from);
/* Memory of the host that nobody else holds, with at least `bytes` bytes: `*memory`, one that was in its
 * place before, or a new one, which is then in its place; all are as large as the largest that was asked for.
 * The caller owns these, and the place begins as NULL. NULL with the error recorded. */
mix_memory *mix_memory_reuse(mix_memory **memory, size_t bytes);
/* Releases those of a place, which is then NULL. */
void mix_memory_end_reuse(mix_memory **memory);
/* Does the library own the bytes, and write none of them while anybody holds the handle? Not so where they
 * are the caller's or a variable's. */
bool mix_memory_stays(const mix_memory *memory);
/* Is it memory of the host that the library allocated for one value, with a single reference? */
bool mix_memory_is_alone(const mix_memory *memory);
/* The bytes of memory that is not written any more, for reading as long as the handle lives: a copy where
 * they are not the host's. NULL with the error recorded. */
void *mix_memory_mirror(mix_memory *memory);

/* A variable's storage as its readers see it: the same bytes, until mix_memory_leave_storage gives the handle
 * a copy of its own, which must happen before the storage is written. */
mix_memory *mix_memory_read_storage(mix_memory *storage);
bool mix_memory_is_storage(const mix_memory *memory);
bool mix_memory_leave_storage(mix_memory *memory);
/* The variable is gone: nothing writes the bytes any more. */
void mix_memory_end_storage(mix_memory *memory);

/* Hands out the memory of a pool. When its last reference goes, `recycle` runs on the releasing thread and
 * keeps the pointer; then the reference to `owner`, taken here, is released. */
void mix_memory_lend(mix_memory *memory, void (*recycle)(mix_memory *memory, void *owner), void *owner);
/* Frees memory that lies in a pool. */
void mix_memory_discard(mix_memory *memory);
