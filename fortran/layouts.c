/* The modules fit these headers: C's compiler has the sizes and offsets that generate.py computed. */
#include <mixtape/mixtape.h>

#define LAYOUT_SIZE(type, expected) _Static_assert(sizeof(type) == (expected), "the size of " #type);
#define LAYOUT_MEMBER(type, member, expected)                                                                \
  _Static_assert(offsetof(type, member) == (expected), "the place of " #member " in " #type);
#include "layouts.h"
