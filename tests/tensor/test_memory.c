/* Buffers: owned memory, foreign memory, and pools that recycle them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory.h"
#include "support/memory.h"

#include <string.h>

static int end(void **state) {
  (void)state;
  mix_inject_allocation_failure(-1);
  mix_error_clear();
  return 0;
}

static void a_buffer_owns_its_memory(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  mix_memory *buffer = mix_memory_new(&mix_host_memory, 1000);
  assert_int_equal(mix_memory_bytes(buffer), 1000);
  assert_int_equal((uintptr_t)bytes_of_memory(buffer) % 64, 0);
  assert_int_equal(mix_references(buffer), 1);
  assert_true(mix_is(buffer, &mix_memory_class));
  memset(bytes_of_memory(buffer), 1, 1000);
  assert_int_equal(mix_buffer_bytes(), before + 1000);
  mix_release(buffer);
  assert_int_equal(mix_buffer_bytes(), before);
}

static void failed_allocations_leak_nothing(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  for (int k = 0; k < 2; k++) {
    mix_inject_allocation_failure(k);
    assert_null(mix_memory_new(&mix_host_memory, 1000));
    assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_int_equal(mix_buffer_bytes(), before);
  }
  int value = 3;
  mix_inject_allocation_failure(0);
  assert_null(mix_memory_wrap(&value, sizeof value, NULL));
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
}

static void a_part_keeps_the_whole(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  mix_memory *whole = mix_memory_new(&mix_host_memory, 1000), *part = mix_memory_part(whole, 64, 100);
  assert_ptr_equal(bytes_of_memory(part), (char *)bytes_of_memory(whole) + 64);
  assert_int_equal(mix_memory_bytes(part), 100);
  assert_int_equal(mix_buffer_bytes(), before + 1000);
  mix_inject_allocation_failure(0);
  assert_null(mix_memory_part(whole, 0, 100));
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_release(whole);
  assert_int_equal(mix_buffer_bytes(), before + 1000);
  memset(bytes_of_memory(part), 1, 100);
  mix_release(part);
  assert_int_equal(mix_buffer_bytes(), before);
}

/* As an assignment of a short batch in the memory of a longer one does. */
static void a_copy_takes_what_fits(void **state) {
  (void)state;
  mix_memory *whole = mix_memory_new(&mix_host_memory, 200), *part = mix_memory_part(whole, 0, 100),
             *longer = mix_memory_new(&mix_host_memory, 150);
  memset(bytes_of_memory(whole), 1, 200);
  memset(bytes_of_memory(longer), 2, 150);
  assert_true(mix_memory_copy(part, longer));
  const char *bytes = bytes_of_memory(whole);
  for (int i = 0; i < 200; i++) assert_int_equal(bytes[i], i < 100 ? 2 : 1);
  mix_release(whole);
  mix_release(part);
  mix_release(longer);
}

static void *released;
static void note_release(void *data) { released = data; }

static void foreign_memory_goes_back_to_its_owner(void **state) {
  (void)state;
  int values[3] = {1, 2, 3};
  size_t before = mix_buffer_bytes();
  mix_memory *buffer = mix_memory_wrap(values, sizeof values, note_release);
  assert_ptr_equal(bytes_of_memory(buffer), values);
  assert_int_equal(mix_buffer_bytes(), before);
  mix_retain(buffer);
  mix_release(buffer);
  assert_null(released);
  mix_release(buffer);
  assert_ptr_equal(released, values);
  mix_release(mix_memory_wrap(values, sizeof values, NULL)); /* never freed */
  assert_int_equal(values[2], 3);
}

static void no_bytes_can_be_mapped(void **state) {
  (void)state;
  mix_memory *memory = mix_memory_wrap(NULL, 0, note_release);
  assert_non_null(mix_memory_map(memory, MIX_MAP_READ));
  mix_memory_unmap(memory);
  released = &memory;
  mix_release(memory);
  assert_null(released);
}

static void readers_of_a_storage_get_a_copy(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  mix_memory *storage = mix_memory_new(&mix_host_memory, 8), *read = mix_memory_read_storage(storage);
  assert_true(mix_memory_copy_in(storage, 0, "old data", 8));
  mix_inject_allocation_failure(0);
  assert_false(mix_memory_leave_storage(read));
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_error_clear();
  assert_true(mix_memory_is_storage(read));
  assert_true(mix_memory_leave_storage(read));
  assert_false(mix_memory_is_storage(read));
  assert_true(mix_memory_copy_in(storage, 0, "new data", 8));
  assert_memory_equal(mix_memory_map(read, MIX_MAP_READ), "old data", 8);
  mix_memory_unmap(read);
  mix_release(storage);
  mix_release(read);
  assert_int_equal(mix_buffer_bytes(), before);
}

/* A pool as plans have one for their results. */
typedef struct pool {
  mix_object object;
  mix_memory *free;
} pool;

static int pools_finalized;
static void pool_finalize(void *object) {
  pool *p = object;
  pools_finalized++;
  if (!p->free) return;
  mix_memory_discard(p->free);
}
static const mix_class pool_class = {.name = "pool", .finalize = pool_finalize};

static void back_to_pool(mix_memory *buffer, void *owner) { ((pool *)owner)->free = buffer; }

static mix_memory *hand_out(pool *p) {
  mix_memory *buffer = p->free;
  p->free = NULL;
  if (buffer)
    atomic_store(&((mix_object *)buffer)->references, 1);
  else
    buffer = mix_memory_new(&mix_host_memory, 100);
  mix_memory_lend(buffer, back_to_pool, p);
  return buffer;
}

static void a_pool_takes_buffers_back(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  pool *p = mix_object_new(sizeof *p, &pool_class);
  mix_memory *buffer = hand_out(p);
  assert_int_equal(mix_references(p), 2);
  mix_release(buffer);
  assert_ptr_equal(p->free, buffer);
  assert_int_equal(mix_references(p), 1);
  uint64_t allocations = mix_inject_allocation_failure(-1);
  for (int i = 0; i < 100; i++) {
    mix_memory *again = hand_out(p);
    assert_ptr_equal(again, buffer);
    mix_release(again);
  }
  assert_int_equal(mix_inject_allocation_failure(-1), allocations);
  mix_release(p);
  assert_int_equal(pools_finalized, 1);
  assert_int_equal(mix_buffer_bytes(), before);
}

static void a_buffer_keeps_its_pool_alive(void **state) {
  (void)state;
  size_t before = mix_buffer_bytes();
  pools_finalized = 0;
  pool *p = mix_object_new(sizeof *p, &pool_class);
  mix_memory *buffer = hand_out(p);
  mix_release(p);
  assert_int_equal(pools_finalized, 0);
  mix_release(buffer); /* returns to the pool and drops the pool's last reference */
  assert_int_equal(pools_finalized, 1);
  assert_int_equal(mix_buffer_bytes(), before);
}

/* A place gives again what nobody holds any more, of up to 16 that are held at once. */
static void a_place_is_filled_again(void **state) {
  (void)state;
  enum { HELD = 16 };
  const size_t before = mix_buffer_bytes();
  mix_memory *place = NULL, *held[HELD + 2];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < HELD; i++) held[i] = mix_retain(mix_memory_reuse(&place, 100 - (size_t)round));
    assert_int_equal(mix_buffer_bytes(), before + HELD * 100);
    for (int i = 0; i < HELD; i++)
      for (int k = 0; k < i; k++) assert_ptr_not_equal(held[i], held[k]);
    for (int i = 0; i < HELD; i++) mix_release(held[i]);
  }
  for (int i = 0; i < HELD + 2; i++) held[i] = mix_retain(mix_memory_reuse(&place, 100));
  for (int i = 0; i < HELD + 2; i++) assert_int_equal(mix_references(held[i]), i ? 2 : 1);
  for (int i = 0; i < HELD + 2; i++) mix_release(held[i]);
  assert_int_equal(mix_memory_bytes(mix_memory_reuse(&place, 200)), 200); /* the others are too small */
  assert_int_equal(mix_buffer_bytes(), before + 200);
  mix_memory *last = mix_retain(place);
  mix_memory_end_reuse(&place);
  assert_null(place);
  assert_int_equal(mix_references(last), 1);
  mix_release(last);
  assert_int_equal(mix_buffer_bytes(), before);
}

/* Batches of two sizes in turn, each held while the next one is made. */
static void sizes_in_turn_share_a_place(void **state) {
  (void)state;
  const size_t before = mix_buffer_bytes();
  mix_memory *place = NULL, *held = mix_retain(mix_memory_reuse(&place, 100)), *first[2] = {NULL};
  for (int i = 0; i < 10; i++) {
    mix_memory *next = mix_retain(mix_memory_reuse(&place, i % 2 ? 150 : 200));
    assert_ptr_not_equal(next, held);
    mix_release(held);
    held = next;
    if (i < 2) first[i] = next;
    assert_ptr_equal(next, first[i % 2]);
  }
  assert_int_equal(mix_buffer_bytes(), before + 2 * 200);
  mix_release(held);
  mix_memory_end_reuse(&place);
  assert_int_equal(mix_buffer_bytes(), before);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(a_buffer_owns_its_memory, end),
      cmocka_unit_test_teardown(failed_allocations_leak_nothing, end),
      cmocka_unit_test_teardown(a_part_keeps_the_whole, end),
      cmocka_unit_test_teardown(a_copy_takes_what_fits, end),
      cmocka_unit_test_teardown(foreign_memory_goes_back_to_its_owner, end),
      cmocka_unit_test_teardown(no_bytes_can_be_mapped, end),
      cmocka_unit_test_teardown(readers_of_a_storage_get_a_copy, end),
      cmocka_unit_test_teardown(a_pool_takes_buffers_back, end),
      cmocka_unit_test_teardown(a_buffer_keeps_its_pool_alive, end),
      cmocka_unit_test_teardown(a_place_is_filled_again, end),
      cmocka_unit_test_teardown(sizes_in_turn_share_a_place, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
