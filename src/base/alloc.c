#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* madvise */
#endif
#include "base/alloc.h"
#include "base/error.h"

#include <errno.h>
#include <limits.h>
#include <mixtape/allocator.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Allocations that still succeed before one fails; negative: injection is off. The allocation that takes
 * it from 0 to -1 fails. */
static atomic_llong countdown = -1;
static atomic_ullong allocations;

/* The user address space of an x86-64 process. Larger requests cannot succeed, and a sanitizer would abort
 * the program. */
static const uint64_t ADDRESS_SPACE = UINT64_C(1) << 47;

static atomic_size_t limit;

void mix_limit_allocations(size_t size) { atomic_store(&limit, size); }

static bool refuse(size_t size) {
  const size_t most = atomic_load_explicit(&limit, memory_order_relaxed);
  atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
  if (size > ADDRESS_SPACE || (most && size > most)) return true;
  if (atomic_load_explicit(&countdown, memory_order_relaxed) < 0) return false;
  return atomic_fetch_sub_explicit(&countdown, 1, memory_order_relaxed) == 0;
}

uint64_t mix_inject_allocation_failure(int64_t count) {
  atomic_store(&countdown, count < 0 ? -1 : count);
  return atomic_load(&allocations);
}

bool mix_allocation_failure_injected(void) {
  return atomic_load_explicit(&countdown, memory_order_relaxed) >= 0;
}

static void *out_of_memory(size_t size) {
  errno = 0; /* told: it is no later failure's reason */
  return mix_fail(
      MIX_MEMORY_ERROR,
      "out of memory: %zu bytes were refused; release what is no longer needed, or use a smaller batch or "
      "model",
      size);
}

enum { BUFFER_PADDING = 64, HUGE_PAGE = 2 << 20, HUGE_FROM = 4 << 20, ALIGNMENT = 16 };

/* ---- of the system, or of the host program ---- */

static mix_allocator host; /* without functions: the system's */

mix_status mix_set_allocator(const mix_allocator *allocator) {
  mix_allocator given;
  if (!mix_options_copy(&given, sizeof given, allocator, "set_allocator")) return mix_error();
  if (!given.allocate || !given.resize || !given.release)
    return mix_fail_status(MIX_VALUE_ERROR, "set_allocator: allocate, resize and release are all needed");
  if (atomic_load(&allocations))
    return mix_fail_status(MIX_RUNTIME_ERROR,
                           "set_allocator: the library has already allocated; call it before anything else");
  host = given;
  return MIX_OK;
}

static void *allocate(size_t bytes, size_t alignment) {
  if (host.allocate) return host.allocate(host.context, bytes, alignment);
  if (alignment == ALIGNMENT) return malloc(bytes);
  void *memory;
  return posix_memalign(&memory, alignment, bytes) ? NULL : memory;
}

/* The system's zeros cost nothing where the pages are new. */
static void *allocate_zeros(size_t bytes) {
  if (!host.allocate) return calloc(bytes, 1);
  void *memory = host.allocate(host.context, bytes, ALIGNMENT);
  return memory ? memset(memory, 0, bytes) : NULL;
}

static void *resize(void *memory, size_t bytes) {
  if (!host.allocate) return realloc(memory, bytes);
  return memory ? host.resize(host.context, memory, bytes) : host.allocate(host.context, bytes, ALIGNMENT);
}

static void release(void *memory) {
  if (!host.allocate)
    free(memory);
  else if (memory)
    host.release(host.context, memory);
}

/* ---- allocation ---- */

/* A hint only: without huge pages the memory works as well. */
static void *hint(void *memory, size_t size) {
  const uintptr_t begin = ((uintptr_t)memory + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
  if (memory && size >= HUGE_FROM && !host.allocate)
    madvise((void *)begin, ((uintptr_t)memory + size - begin) / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
  return memory;
}

void *mix_alloc(size_t size) {
  void *memory = refuse(size) ? NULL : hint(allocate(size ? size : 1, ALIGNMENT), size);
  return memory ? memory : out_of_memory(size);
}

void *mix_calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) bytes = SIZE_MAX;
  void *memory = refuse(bytes) ? NULL : hint(allocate_zeros(bytes ? bytes : 1), bytes);
  return memory ? memory : out_of_memory(bytes);
}

void *mix_realloc(void *memory, size_t size) {
  void *moved = refuse(size) ? NULL : resize(memory, size ? size : 1);
  return moved ? moved : out_of_memory(size);
}

char *mix_strdup(const char *text) {
  if (!text) return NULL;
  size_t size = strlen(text) + 1;
  char *copy = mix_alloc(size);
  return copy ? memcpy(copy, text, size) : NULL;
}

bool mix_has_room(size_t size) {
  void *memory = mix_alloc(size);
  mix_free(memory);
  return memory;
}

void mix_free(void *memory) { release(memory); }

static atomic_size_t buffer_bytes, buffer_peak;

void *mix_alloc_buffer(size_t size) {
  if (refuse(size > SIZE_MAX - BUFFER_PADDING ? SIZE_MAX : size + BUFFER_PADDING)) return out_of_memory(size);
  bool huge = size >= HUGE_FROM;
  void *memory = allocate(size + BUFFER_PADDING, huge ? HUGE_PAGE : MIX_BUFFER_ALIGNMENT);
  if (!memory) return out_of_memory(size);
  hint(memory, size);
  /* Kernels may read past the end. Zeros make such reads deterministic. */
  memset((char *)memory + size, 0, BUFFER_PADDING);
  size_t now = atomic_fetch_add(&buffer_bytes, size) + size, peak = atomic_load(&buffer_peak);
  while (now > peak && !atomic_compare_exchange_weak(&buffer_peak, &peak, now)) {}
  return memory;
}

void mix_free_buffer(void *memory, size_t size) {
  if (!memory) return;
  atomic_fetch_sub(&buffer_bytes, size);
  release(memory);
}

size_t mix_buffer_bytes(void) { return atomic_load(&buffer_bytes); }
size_t mix_buffer_peak(void) { return atomic_load(&buffer_peak); }
void mix_buffer_peak_reset(void) { atomic_store(&buffer_peak, atomic_load(&buffer_bytes)); }

/* `array_pointer` is the address of a pointer of any type. memcpy avoids an aliasing violation. */
bool mix_reserve(void *array_pointer, int *capacity, int needed, size_t element) {
  if (needed <= *capacity) return true;
  int grown = *capacity > INT_MAX / 2 ? INT_MAX : *capacity * 2;
  if (grown < 8) grown = 8;
  if (grown < needed) grown = needed;
  size_t bytes;
  if (__builtin_mul_overflow((size_t)grown, element, &bytes)) bytes = SIZE_MAX;
  void *array;
  memcpy(&array, array_pointer, sizeof array);
  array = mix_realloc(array, bytes);
  if (!array) return false;
  memcpy(array_pointer, &array, sizeof array);
  *capacity = grown;
  return true;
}
