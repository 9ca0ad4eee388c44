/* The structs of the Fortran modules have C's sizes, with every member at C's place. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <mixtape/mixtape.h>

typedef struct layout {
  const char *name;
  size_t number;
} layout;

#define LAYOUT_SIZE(type, expected) {"sizeof(" #type ")", sizeof(type)},
#define LAYOUT_MEMBER(type, member, expected) {#type "." #member, offsetof(type, member)},
static const layout layouts[] = {
#include "layouts.h"
};
enum { COUNT = sizeof layouts / sizeof *layouts };

/* What Fortran's compiler says (layouts.f90), in the same order. */
void layout_numbers(size_t numbers[COUNT]);

static void fortran_has_the_layouts_of_c(void **state) {
  (void)state;
  static size_t numbers[COUNT + 1];
  numbers[COUNT] = 77;
  layout_numbers(numbers);
  for (int i = 0; i < COUNT; i++)
    if (numbers[i] != layouts[i].number)
      fail_msg("%s is %zu in C and %zu in Fortran", layouts[i].name, layouts[i].number, numbers[i]);
  assert_int_equal(numbers[COUNT], 77);
}

/* A generator that loses structs would compare few: there were 174 with 2,018 members on 2026-11-29. */
static void many_structs_are_compared(void **state) {
  (void)state;
  assert_true(COUNT > 2000);
}

/* Sizes that tell the library which version of a struct it gets (layouts.f90). */
int sizes_are_initialised(void);

static void fortran_initialises_sizes(void **state) {
  (void)state;
  assert_int_equal(sizes_are_initialised(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(fortran_has_the_layouts_of_c),
      cmocka_unit_test(many_structs_are_compared),
      cmocka_unit_test(fortran_initialises_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
