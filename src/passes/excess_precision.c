/* excess_precision: keeps 16-bit values as float32 inside programs, where jit_compile allows it. Values that
 * are not stored stay float32, and an epilogue reads the float32 sums of its product. Casts to 16 bits and
 * back disappear. Each omitted rounding is one that the error bound of the rounded form counts, so the bound
 * only shrinks (docs/NUMERICS.md).
 *
 * Decisions must see the rounded values (ir/decisions.h): every element-wise value that feeds one keeps its
 * own dtype, across any number of programs. */
#include "passes/passes.h"

#include "ir/decisions.h"

typedef struct analysis {
  mix_ir *ir;
  bool *exact; /* by value: feeds a decision */
  bool *reg;   /* scratch, by register of the current program */
} analysis;

/* Changes 16-bit registers to float32, except those that are marked, stored or reduced. */
static bool upcast_registers(analysis *x, mix_ir_node *node) {
  mix_ir *ir = x->ir;
  mix_program *program = node->program;
  int loads = program->load_count;
  for (int i = 0; i < program->store_count; i++) x->reg[program->stores[i].reg] = true;
  if (program->reduction != MIX_REDUCE_NOTHING) x->reg[program->reduced] = true;
  for (int i = 0; i < program->sum_count; i++) x->reg[program->sums[i].reg] = true;
  mix_program *wide = mix_ir_alloc(ir, sizeof *wide);
  if (!wide) return false;
  *wide = *program;
  wide->loads = mix_ir_array(ir, loads + 1, sizeof *wide->loads);
  wide->instructions = mix_ir_array(ir, program->instruction_count + 1, sizeof *wide->instructions);
  if (!wide->loads || !wide->instructions) return false;
  for (int l = 0; l < loads; l++) {
    wide->loads[l] = program->loads[l];
    if (program->loads[l].input == MIX_FROM_ACCUMULATOR && mix_dtype_is_16_bit(program->loads[l].dtype) &&
        node->op->accumulator && !x->reg[l])
      wide->loads[l].dtype = node->op->accumulator;
  }
  for (int i = 0; i < program->instruction_count; i++) {
    wide->instructions[i] = program->instructions[i];
    if (mix_dtype_is_16_bit(program->instructions[i].dtype) && !x->reg[loads + i])
      wide->instructions[i].dtype = MIX_FLOAT32;
  }
  node->program = wide;
  return true;
}

bool mix_pass_excess_precision(mix_ir *ir) {
  if (!ir->excess_precision) return true;
  int registers = 0;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_program *program = ir->nodes[n].program;
    int count = program ? program->load_count + program->instruction_count : 0;
    if (count > registers) registers = count;
  }
  analysis x = {.ir = ir,
                .exact = mix_ir_alloc(ir, (size_t)ir->value_count + 1),
                .reg = mix_ir_alloc(ir, (size_t)registers + 1)};
  if (!x.exact || !x.reg) return false;
  for (int n = ir->node_count - 1; n >= 0; n--) { /* users before operands */
    mix_ir_node *node = &ir->nodes[n];
    mix_ir_mark_decisive(ir, node, x.exact, x.reg);
    if (!node->dead && node->program && !upcast_registers(&x, node)) return false;
  }
  return true;
}
