/* Memory. Every allocation of the library goes through here, so that each can be made to fail by injection. */
#ifndef MIX_BASE_ALLOC_H
#define MIX_BASE_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NULL when there is none, with MIX_MEMORY_ERROR recorded. A size of 0 gives a valid pointer. */
void *mix_alloc(size_t size);
void *mix_calloc(size_t count, size_t size); /* overflow of the product is out of memory */
void *mix_realloc(void *memory, size_t size);
char *mix_strdup(const char *text);
void mix_free(void *memory);

enum { MIX_BUFFER_ALIGNMENT = 64 }; /* where kernels expect a value to begin */
/* Buffers of numbers: aligned so, readable for 64 bytes past the end, huge pages from 4 MiB on. Not zeroed. */
void *mix_alloc_buffer(size_t size);
void mix_free_buffer(void *memory, size_t size);
/* Bytes of buffers alive now, and the most there were since the last mix_buffer_peak_reset. */
size_t mix_buffer_bytes(void);
size_t mix_buffer_peak(void);
void mix_buffer_peak_reset(void);

/* Tests: the allocation that comes after `count` more fails (process-wide); negative: none. Returns allocations made so far. */
uint64_t mix_inject_allocation_failure(int64_t count);
/* Is one still to fail? Caches step aside then, so that every object is an allocation that can. */
bool mix_allocation_failure_injected(void);

/* Grows an array of `element` bytes so that it holds `needed`; false with the error recorded. */
bool mix_reserve(void *array_pointer, int *capacity, int needed, size_t element);
/* A name kept for the life of the process; equal texts give equal pointers. NULL gives NULL. */
const char *mix_intern(const char *text);

#endif
