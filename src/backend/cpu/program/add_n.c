/* add_n: the sum of tensors of one shape, as a program of the tile executor that adds in float32 (double,
 * int64) and rounds once. */
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/program/prepared_program.h"
#include "base/alloc.h"

enum { MAX = 32 };

typedef struct sum {
  mix_program program;
  mix_tile_program *tiles;
  mix_program_load loads[MAX];
  mix_instruction instructions[2 * MAX];
  mix_program_store store;
} sum;

static mix_dtype wide(mix_dtype dtype) {
  return mix_tile_class_of(dtype) == MIX_TILE_FLOAT ? MIX_FLOAT32 : dtype;
}

static int append(sum *s, mix_opcode opcode, mix_dtype dtype, int a, int b) {
  s->instructions[s->program.instruction_count] =
      (mix_instruction){.opcode = opcode, .dtype = dtype, .operands = {a, b}};
  return s->program.load_count + s->program.instruction_count++;
}

static bool add_n_prepare(mix_kernel_args *args, const mix_vector *vector) {
  sum *s = mix_calloc(1, sizeof *s);
  if (!s) return false;
  const mix_dtype dtype = args->output_types[0].dtype;
  s->program = (mix_program){.rank = 1,
                             .dims = {mix_shape_size(args->output_types[0].shape)},
                             .load_count = args->input_count,
                             .store_count = 1,
                             .loads = s->loads,
                             .instructions = s->instructions,
                             .stores = &s->store};
  for (int i = 0; i < args->input_count; i++)
    s->loads[i] = (mix_program_load){.input = i, .dtype = dtype, .strides = {1}};
  int total = append(s, MIX_OPCODE_CAST, wide(dtype), 0, 0);
  for (int i = 1; i < args->input_count; i++)
    total = append(s, MIX_OPCODE_ADD, wide(dtype), total, append(s, MIX_OPCODE_CAST, wide(dtype), i, 0));
  s->store = (mix_program_store){.output = 0, .reg = append(s, MIX_OPCODE_CAST, dtype, total, 0)};
  s->tiles = mix_tile_prepare_for(&s->program, vector);
  if (!s->tiles) {
    mix_free(s);
    return false;
  }
  args->prepared = s;
  return true;
}
static void release(void *prepared) {
  mix_free(((sum *)prepared)->tiles);
  mix_free(prepared);
}
MIX_VECTOR_SETS(MIX_CPU_PREPARE, add_n)

static void add_n_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  mix_tile_run(((const sum *)args->prepared)->tiles, args, team);
}
static const char *add_n_unsupported_reason(const mix_kernel_args *args) {
  if (args->output_types[0].dtype == MIX_BOOL) return "bool";
  return args->input_count > MAX ? "more than 32 operands" : NULL;
}
static bool serial(const mix_kernel_args *args) {
  return ((const sum *)args->prepared)->tiles->cost < MIX_CPU_SMALL;
}
static bool add_n_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  return mix_tile_share(((const sum *)args->prepared)->tiles, count, grain);
}

#define ADD_N(set, ...)                                                                                      \
  MIX_CPU_KERNEL(set, __VA_ARGS__, add_n, "add_n_acc32", .unsupported_reason = add_n_unsupported_reason,     \
                 .prepare = prepare_##set, .release = release, .serial = serial, .share = add_n_share)
MIX_VECTOR_SETS(ADD_N)
MIX_CPU_TABLE(add_n)
