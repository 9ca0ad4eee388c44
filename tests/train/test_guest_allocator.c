/* A host program's allocator: everything is allocated, resized and released by it, from the first call on. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "train/guest_model.h"
#include <mixtape/allocator.h>
#include <math.h>
#include <stdatomic.h>

/* Before each block: its size and offset, and a mark, which memory of another allocator has not. */
typedef struct header {
  uint64_t mark;
  size_t bytes, offset;
} header;
#define MARK UINT64_C(0x6d697874617065)
static atomic_llong live, calls, foreign, misaligned;
static atomic_size_t largest;

static header *header_of(void *memory) {
  header *h = (header *)memory - 1;
  if (h->mark != MARK) atomic_fetch_add(&foreign, 1);
  return h;
}
static void *allocate(void *context, size_t bytes, size_t alignment) {
  atomic_fetch_add(&calls, 1);
  if (alignment < 16 || alignment & (alignment - 1)) atomic_fetch_add(&misaligned, 1);
  char *all = malloc(bytes + alignment + sizeof(header));
  if (!all) return NULL;
  const uintptr_t first = (uintptr_t)all + sizeof(header);
  char *memory = (char *)((first + alignment - 1) / alignment * alignment);
  ((header *)memory)[-1] = (header){MARK, bytes, (size_t)(memory - all)};
  atomic_fetch_add(&live, 1);
  for (size_t most = atomic_load(&largest);
       bytes > most && !atomic_compare_exchange_weak(&largest, &most, bytes);) {}
  memset(memory, 0xa5, bytes); /* nobody may take it for zeros */
  return memory;
}
static void release(void *context, void *memory) {
  header *h = header_of(memory);
  const size_t offset = h->offset;
  h->mark = 0;
  atomic_fetch_sub(&live, 1);
  free((char *)memory - offset);
}
static void *resize(void *context, void *memory, size_t bytes) {
  const size_t old = header_of(memory)->bytes;
  void *moved = allocate(context, bytes, 16);
  if (!moved) return NULL;
  memcpy(moved, memory, old < bytes ? old : bytes);
  release(context, memory);
  return moved;
}

static void bad_ones_are_refused(void **state) {
  (void)state;
  const mix_allocator half = {.size = sizeof half, .allocate = allocate, .release = release};
  assert_int_equal(mix_set_allocator(&half), MIX_VALUE_ERROR);
  assert_non_null(strstr(mix_error_message(), "resize"));
  mix_error_clear();
  assert_int_not_equal(mix_set_allocator(NULL), MIX_OK);
  mix_error_clear();
}

static void all_memory_is_the_hosts(void **state) {
  (void)state;
  const mix_allocator own = {
      .size = sizeof own, .allocate = allocate, .resize = resize, .release = release, .context = NULL};
  assert_int_equal(mix_set_allocator(&own), MIX_OK);
  float kernel[GUEST_WEIGHTS];
  guest_train(kernel);
  assert_true(isfinite(kernel[0]));
  assert_true(atomic_load(&calls) > 1000);
  assert_int_equal(atomic_load(&foreign), 0);
  assert_int_equal(atomic_load(&misaligned), 0);
  assert_true(atomic_load(&largest) >= sizeof kernel);
}

static void a_later_one_is_refused(void **state) {
  (void)state;
  const mix_allocator own = {.size = sizeof own, .allocate = allocate, .resize = resize, .release = release};
  assert_int_equal(mix_set_allocator(&own), MIX_RUNTIME_ERROR);
  assert_non_null(strstr(mix_error_message(), "before anything else"));
  mix_error_clear();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bad_ones_are_refused),
      cmocka_unit_test(all_memory_is_the_hosts),
      cmocka_unit_test(a_later_one_is_refused),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
