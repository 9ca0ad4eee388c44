/* Memory allocation. The whole library allocates through these functions, so that tests can inject failures
 * and a host program can give its own (mixtape/allocator.h). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* On failure these return NULL and record MIX_MEMORY_ERROR. A size of 0 gives a valid pointer. */
void *mix_alloc(size_t size);
void *mix_calloc(size_t count, size_t size); /* overflow of the product counts as out of memory */
void *mix_realloc(void *memory, size_t size);
char *mix_strdup(const char *text);
/* May so much be allocated? Else the error is recorded. It is asked before the calls of a library that
 * crashes where memory ends: what such a library takes is then there. */
bool mix_has_room(size_t size);
void mix_free(void *memory);

enum { MIX_BUFFER_ALIGNMENT = 64 }; /* in bytes; kernels expect a value to start at such an address */
/* Buffers for tensor elements: aligned to MIX_BUFFER_ALIGNMENT, readable for 64 bytes past the end, with
 * huge pages from 4 MiB on. The memory is not zeroed. */
void *mix_alloc_buffer(size_t size);
/* What `size` bytes take in a buffer up to where the next value may begin. */
static inline size_t mix_buffer_aligned(size_t size) { return size + -size % MIX_BUFFER_ALIGNMENT; }
void mix_free_buffer(void *memory, size_t size);
/* Bytes in live buffers now, and the peak since the last mix_buffer_peak_reset. */
size_t mix_buffer_bytes(void);
size_t mix_buffer_peak(void);
void mix_buffer_peak_reset(void);

/* For tests: after `count` more allocations the next one fails, in the whole process. A negative count
 * switches injection off. Returns the number of allocations made so far. */
uint64_t mix_inject_allocation_failure(int64_t count);
/* For tests: larger requests fail from now on, as they would on a machine of that size; 0: no limit. */
void mix_limit_allocations(size_t size);
/* True while an injected failure is pending. Caches are then bypassed, so that every object is an
 * allocation that can fail. */
bool mix_allocation_failure_injected(void);

/* Grows an array of elements of `element` bytes to hold at least `needed`. Returns false with the error
 * recorded. */
bool mix_reserve(void *array_pointer, int *capacity, int needed, size_t element);
/* A copy of the string that lives as long as the process. Equal strings give equal pointers; NULL gives
 * NULL. */
const char *mix_intern(const char *text);
