/* The epilogue of a convolution before a batch normalization, of float32: (x - mean) * scale + offset of each
 * channel, perhaps plus another value, perhaps with ReLU or ReLU6. In one pass, because passes over tiles
 * cost more than its arithmetic. */
#include "backend/cpu/program/prepared_program.h"
#include <math.h>

/* The load that the instruction combines with `value`, its first operand unless it commutes; -1: none. */
static int other_load(const mix_program *x, const mix_instruction *instruction, int value, bool commutes) {
  const int a = instruction->operands[0], b = instruction->operands[1];
  const int other = a == value ? b : commutes && b == value ? a : -1;
  return other >= 0 && other != value && other < x->load_count ? other : -1;
}

/* Goes on to the next instruction if it is `opcode` of the value and a load of so many elements from row to
 * row; *load is that load. */
static bool take(const mix_program *x, int *next, mix_opcode opcode, int64_t pitch, int *load) {
  const int value = *next ? x->load_count + *next - 1 : -1;
  if (*next >= x->instruction_count) return false;
  const mix_instruction *instruction = &x->instructions[*next];
  if (instruction->opcode != opcode || instruction->dtype != MIX_FLOAT32) return false;
  int from = value;
  for (int l = 0; l < x->load_count && !*next; l++)
    if (x->loads[l].input == MIX_FROM_ACCUMULATOR) from = l;
  const int other = other_load(x, instruction, from, opcode != MIX_OPCODE_SUBTRACT);
  if (other < 0) return false;
  const mix_program_load *loaded = &x->loads[other];
  if (loaded->input == MIX_FROM_ACCUMULATOR || loaded->dtype != MIX_FLOAT32 || loaded->strides[0] != pitch ||
      loaded->strides[1] != 1)
    return false;
  *load = other, ++*next;
  return true;
}

void mix_tile_find_normalization(mix_tile_program *p) {
  const mix_program *x = p->program;
  mix_tile_normalization *n = &p->normalization;
  *n = (mix_tile_normalization){.mean = -1, .added = -1, .activation = MIX_OPCODE_IDENTITY};
  if (x->rank != 2 || x->store_count != 1 || x->sum_count || x->reduction != MIX_REDUCE_NOTHING) return;
  for (int l = 0; l < x->load_count; l++)
    if (x->loads[l].dtype != MIX_FLOAT32) return;
  int next = 0, mean;
  if (!take(x, &next, MIX_OPCODE_SUBTRACT, 0, &mean) || !take(x, &next, MIX_OPCODE_MULTIPLY, 0, &n->scale) ||
      !take(x, &next, MIX_OPCODE_ADD, 0, &n->offset))
    return;
  if (!take(x, &next, MIX_OPCODE_ADD, x->dims[1], &n->added)) n->added = -1;
  if (next < x->instruction_count) {
    const mix_instruction *last = &x->instructions[next];
    if ((last->opcode != MIX_OPCODE_RELU && last->opcode != MIX_OPCODE_RELU6) || last->dtype != MIX_FLOAT32 ||
        last->operands[0] != x->load_count + next - 1)
      return;
    n->activation = last->opcode, next++;
  }
  const bool whole = next == x->instruction_count && x->stores[0].reg == x->load_count + next - 1;
  if (whole) n->mean = mean;
}

static const float *operand(const mix_tile_program *p, const mix_kernel_args *args, int load, int64_t at) {
  const mix_program_load *from = &p->program->loads[load];
  return (const float *)args->inputs[from->input] + from->offset + at;
}

void mix_tile_store_normalized(const mix_tile_program *p, const mix_kernel_args *args, const float *sums,
                               int64_t stride, int64_t row, int64_t rows, int64_t column, int64_t columns) {
  const mix_tile_normalization *n = &p->normalization;
  const int64_t pitch = p->program->dims[1];
  const mix_normalization by = {
      .mean = operand(p, args, n->mean, column),
      .scale = operand(p, args, n->scale, column),
      .offset = operand(p, args, n->offset, column),
      .added = n->added < 0 ? NULL : operand(p, args, n->added, row * pitch + column),
      .added_stride = pitch,
      .least = n->activation == MIX_OPCODE_IDENTITY ? -INFINITY : 0,
      .most = n->activation == MIX_OPCODE_RELU6 ? 6 : INFINITY,
  };
  p->vector->normalized_rows((float *)args->outputs[p->stores[0].output] + row * pitch + column, pitch, sums,
                             stride, rows, columns, &by);
}
