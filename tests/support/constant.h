/* The bytes of a constant of the compiler's form, for tests that look at them. */
#ifndef MIX_TESTS_SUPPORT_CONSTANT_H
#define MIX_TESTS_SUPPORT_CONSTANT_H

#include "ir/ir.h"
#include "support/memory.h"

static inline const void *bytes_of_constant(const mix_ir_node *node) {
  return (const char *)bytes_of_memory(node->memory) + node->offset;
}

#endif
