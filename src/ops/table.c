/* The table of all operations. */
#include "ops/table.h"

#include "ops/collective.h"
#include "ops/debug_ops.h"
#include "ops/decompositions.h"
#include "graph/node.h"
#include <string.h>

#define OP(name, ...) &mix_op_##name,
const mix_op *const mix_all_ops[] = {OP(constant) OP(placeholder) OP(read) MIX_ELEMENTWISE_OPS(OP)
                                         MIX_RENAMED_OPS(OP) MIX_KERNEL_OPS(OP) MIX_DECOMPOSITION_OPS(OP)
                                             MIX_LOOP_OPS(OP) MIX_COLLECTIVE_OPS(OP) MIX_DEBUG_OPS(OP) NULL};

const mix_op *mix_op_by_name(const char *name) {
  for (int i = 0; name && mix_all_ops[i]; i++)
    if (strcmp(mix_all_ops[i]->name, name) == 0) return mix_all_ops[i];
  return NULL;
}

static const struct {
  const char *name;
  int operands;
} opcodes[MIX_OPCODE_COUNT] = {
#define OPCODE(called, code, count, ...) [MIX_OPCODE_##code] = {#called, count},
    {"none", 0}, MIX_ELEMENTWISE_OPS(OPCODE)};

int mix_opcode_operands(mix_opcode opcode) {
  return opcode > MIX_OPCODE_NONE && opcode < MIX_OPCODE_COUNT ? opcodes[opcode].operands : 0;
}

const char *mix_opcode_name(mix_opcode opcode) {
  return opcode > MIX_OPCODE_NONE && opcode < MIX_OPCODE_COUNT ? opcodes[opcode].name : opcodes[0].name;
}
