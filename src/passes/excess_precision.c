/* Excess precision, where jit_compile allows it: inside a program a 16-bit value that is not stored stays
 * float32, and an epilogue reads the product's own float32 sums. Casts to 16 bits and back vanish with it.
 * Every rounding that is left out is one that the bound of the rounded form counts, so that the bound gets
 * smaller (docs/NUMERICS.md).
 *
 * What decides sees the numbers of the rounded form: behind finite checks (the loss scale must see that
 * float16 overflowed), comparisons and whatever jumps, every element-wise value keeps its own dtype, through
 * as many programs as there are. */
#include "passes/passes.h"
#include "tensor/type.h"

typedef struct excess {
  mix_ir *ir;
  bool *decides; /* by value: something that decides hangs on it */
  bool *reg;     /* scratch, by register of the program at hand */
} excess;

/* Does the result jump where the operand moves a little? */
static bool jumps(const mix_instruction *instruction) {
  switch (instruction->opcode) {
  case MIX_OPCODE_CAST:
  case MIX_OPCODE_IS_FINITE:
  case MIX_OPCODE_IS_INF:
  case MIX_OPCODE_IS_NAN:
  case MIX_OPCODE_EQUAL:
  case MIX_OPCODE_NOT_EQUAL:
  case MIX_OPCODE_LESS:
  case MIX_OPCODE_LESS_EQUAL:
  case MIX_OPCODE_GREATER:
  case MIX_OPCODE_GREATER_EQUAL: return !mix_dtype_is_floating(instruction->dtype);
  case MIX_OPCODE_SIGN:
  case MIX_OPCODE_FLOOR:
  case MIX_OPCODE_CEIL:
  case MIX_OPCODE_ROUND:
  case MIX_OPCODE_FLOOR_DIVIDE:
  case MIX_OPCODE_FLOOR_MOD: return true;
  default: return false;
  }
}

/* Hands elements on, or adds them: what decides on its results decides on its operands. */
static bool hands_on(const mix_op *op) {
  return (op->flags & MIX_OP_VIEW) || op == &mix_op_transpose || op == &mix_op_broadcast_to ||
         op == &mix_op_concat || op == &mix_op_slice || op == &mix_op_pad || op == &mix_op_add_n ||
         op == &mix_op_gather;
}

/* Registers of the program that something that decides hangs on, and with them values that it loads. */
static void mark_registers(excess *x, const mix_ir_node *node) {
  const mix_program *program = node->program;
  int loads = program->load_count, count = loads + program->instruction_count;
  for (int r = 0; r < count; r++) x->reg[r] = false;
  for (int i = 0; i < program->store_count; i++)
    if (x->decides[node->first_output + program->stores[i].output]) x->reg[program->stores[i].reg] = true;
  if (program->reduction == MIX_REDUCE_ALL_FINITE) x->reg[program->reduced] = true;
  for (int i = program->instruction_count - 1; i >= 0; i--) {
    const mix_instruction *instruction = &program->instructions[i];
    if (!x->reg[loads + i] && !jumps(instruction)) continue;
    for (int k = 0; k < mix_opcode_operands(instruction->opcode); k++)
      x->reg[instruction->operands[k]] = true;
  }
  for (int l = 0; l < loads; l++)
    if (x->reg[l] && program->loads[l].input != MIX_FROM_ACCUMULATOR)
      x->decides[node->inputs[program->loads[l].input]] = true;
}

/* What is stored or reduced has its own dtype; the rest of 16 bits becomes float32. */
static bool widen(excess *x, mix_ir_node *node) {
  mix_ir *ir = x->ir;
  mix_program *program = node->program;
  int loads = program->load_count;
  for (int i = 0; i < program->store_count; i++) x->reg[program->stores[i].reg] = true;
  if (program->reduction != MIX_REDUCE_NOTHING) x->reg[program->reduced] = true;
  mix_program *wide = mix_ir_alloc(ir, sizeof *wide);
  if (!wide) return false;
  *wide = *program;
  wide->loads = mix_ir_alloc(ir, sizeof *wide->loads * (size_t)(loads + 1));
  wide->instructions =
      mix_ir_alloc(ir, sizeof *wide->instructions * (size_t)(program->instruction_count + 1));
  if (!wide->loads || !wide->instructions) return false;
  for (int l = 0; l < loads; l++) {
    wide->loads[l] = program->loads[l];
    if (program->loads[l].input == MIX_FROM_ACCUMULATOR && mix_dtype_is_16_bit(program->loads[l].dtype) &&
        !x->reg[l])
      wide->loads[l].dtype = MIX_FLOAT32;
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
  excess x = {.ir = ir,
              .decides = mix_ir_alloc(ir, (size_t)ir->value_count + 1),
              .reg = mix_ir_alloc(ir, (size_t)registers + 1)};
  if (!x.decides || !x.reg) return false;
  for (int n = ir->node_count - 1; n >= 0; n--) { /* readers before what they read */
    mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source) continue;
    if (node->program) {
      mark_registers(&x, node);
      if (!widen(&x, node)) return false;
      continue;
    }
    bool decides = node->op == &mix_op_all_finite;
    for (int o = 0; o < node->output_count && hands_on(node->op); o++)
      decides |= x.decides[node->first_output + o];
    for (int i = 0; i < node->input_count && decides; i++) x.decides[node->inputs[i]] = true;
  }
  return true;
}
