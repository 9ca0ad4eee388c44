/* The epilogue of a convolution before a batch normalization: (x - mean) * scale + offset of each channel in
 * float32, in 16 bits rounded before and after, perhaps plus another value, perhaps with ReLU or ReLU6. In
 * one pass, because passes over tiles cost more than its arithmetic. */
#include "backend/cpu/program/prepared_program.h"
#include <math.h>

/* Instructions that are read in their order, each of the value of the one before. */
typedef struct reader {
  const mix_program *program;
  int next, value; /* the next instruction; the register it should use */
} reader;

static const mix_instruction *next_of(const reader *r, mix_opcode opcode, mix_dtype dtype) {
  if (r->next == r->program->instruction_count) return NULL;
  const mix_instruction *instruction = &r->program->instructions[r->next];
  return instruction->opcode == opcode && instruction->dtype == dtype ? instruction : NULL;
}

static bool advance(reader *r) {
  r->value = r->program->load_count + r->next++;
  return true;
}

static bool take_unary(reader *r, mix_opcode opcode, mix_dtype dtype) {
  const mix_instruction *instruction = next_of(r, opcode, dtype);
  return instruction && instruction->operands[0] == r->value && advance(r);
}

/* With a load of so many elements from row to row; *load is that load. */
static bool take_binary(reader *r, mix_opcode opcode, mix_dtype dtype, int64_t pitch, int *load) {
  const mix_instruction *instruction = next_of(r, opcode, dtype);
  if (!instruction) return false;
  const int a = instruction->operands[0], b = instruction->operands[1];
  const bool commutes = opcode != MIX_OPCODE_SUBTRACT;
  const int other = a == r->value ? b : commutes && b == r->value ? a : -1;
  if (other < 0 || other == r->value || other >= r->program->load_count) return false;
  const mix_program_load *loaded = &r->program->loads[other];
  if (loaded->input == MIX_FROM_ACCUMULATOR || loaded->dtype != dtype || loaded->strides[0] != pitch ||
      loaded->strides[1] != 1)
    return false;
  *load = other;
  return advance(r);
}

static int find_sums(const mix_program *x) {
  for (int l = 0; l < x->load_count; l++)
    if (x->loads[l].input == MIX_FROM_ACCUMULATOR) return l;
  return -1;
}

void mix_tile_find_normalization(mix_tile_program *p) {
  const mix_program *x = p->program;
  mix_tile_normalization *n = &p->normalization;
  reader r = {x, 0, find_sums(x)};
  int mean;
  *n = (mix_tile_normalization){.mean = -1, .added = -1, .least = -INFINITY, .most = INFINITY};
  if (r.value < 0 || x->rank != 2 || x->store_count != 1 || x->sum_count ||
      x->reduction != MIX_REDUCE_NOTHING)
    return;
  const mix_dtype dtype = n->dtype = x->loads[r.value].dtype;
  const bool rounds = dtype != MIX_FLOAT32;
  if (!p->vector->normalized_rows[dtype] || (rounds && !take_unary(&r, MIX_OPCODE_CAST, MIX_FLOAT32)) ||
      !take_binary(&r, MIX_OPCODE_SUBTRACT, MIX_FLOAT32, 0, &mean) ||
      !take_binary(&r, MIX_OPCODE_MULTIPLY, MIX_FLOAT32, 0, &n->scale) ||
      !take_binary(&r, MIX_OPCODE_ADD, MIX_FLOAT32, 0, &n->offset) ||
      (rounds && !take_unary(&r, MIX_OPCODE_CAST, dtype)))
    return;
  take_binary(&r, MIX_OPCODE_ADD, dtype, x->dims[1], &n->added);
  if (take_unary(&r, MIX_OPCODE_RELU, dtype))
    n->least = 0;
  else if (take_unary(&r, MIX_OPCODE_RELU6, dtype))
    n->least = 0, n->most = 6;
  if (r.next == x->instruction_count && x->stores[0].reg == r.value) n->mean = mean;
}

/* Element `at` of the operand of a load. */
static const void *operand(const mix_tile_program *p, const mix_kernel_args *args, int load, int64_t at) {
  const mix_program_load *from = &p->program->loads[load];
  return (const char *)args->inputs[from->input] + (from->offset + at) * (int64_t)mix_dtype_size(from->dtype);
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
      .least = n->least,
      .most = n->most,
  };
  char *result = args->outputs[p->stores[0].output];
  p->vector->normalized_rows[n->dtype](result + (row * pitch + column) * (int64_t)mix_dtype_size(n->dtype),
                                       pitch, sums, stride, rows, columns, &by);
}
