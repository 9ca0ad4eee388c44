/* The memory of a host program: the library's allocations by functions of yours. */
#ifndef MIXTAPE_ALLOCATOR_H
#define MIXTAPE_ALLOCATOR_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

/* Functions that any thread may call, until the process ends. They must not call the library. */
typedef struct mix_allocator {
  size_t size; /* sizeof(mix_allocator) */
  /* `bytes` (never 0) at a multiple of `alignment`, a power of two of at least 16. NULL: refused, which is a
   * MemoryError of the call that asked. */
  void *(*allocate)(void *context, size_t bytes, size_t alignment);
  /* The memory of an `allocate` of alignment 16, or of a `resize`, in another size: it may move. NULL:
   * refused, and the memory stays as it was. */
  void *(*resize)(void *context, void *memory, size_t bytes);
  /* `memory` is never NULL. */
  void (*release)(void *context, void *memory);
  void *context;
} mix_allocator;

/* Allocates by these functions from now on. It must come before anything that allocates, so best as the first
 * call: later it is a RuntimeError. The struct is copied. What libraries take for themselves (jansson,
 * libzip, zlib, plug-ins), the stacks of threads, and weights that stay in the mapping of their file stay the
 * system's; `.copy_weights` of mix_model_load copies these into memory of the functions. Not while other
 * threads call the library. */
MIX_API mix_status mix_set_allocator(const mix_allocator *allocator);

MIX_END_DECLARATIONS
#endif
