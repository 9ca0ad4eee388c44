/* Transposes (batch, rows, columns) to (batch, columns, rows), in blocks of 32 x 32, so that both sides use
 * whole cache lines. Most permutations have this form once dimensions of 1 are dropped and adjacent
 * dimensions that stay adjacent are merged. The others are copied by lines (lines.c). */
#include "backend/cpu/kernel_rows.h"

enum { BLOCK = 32 };

typedef struct matrices {
  int64_t batch, rows, columns;
} matrices;

/* True if the permutation has this form. */
static bool describe(const mix_kernel_args *args, matrices *m) {
  const mix_transpose_attributes *attributes = args->attributes;
  const mix_shape *shape = &args->input_types[0].shape;
  int order[MIX_MAX_RANK], rank = 0;
  for (int d = 0; d < shape->rank; d++)
    if (shape->dims[attributes->permutation[d]] != 1) order[rank++] = attributes->permutation[d];
  /* `order`: the axes of x in the order of the result, without those of size 1. The leading axes that stay in
   * place are the batch. */
  *m = (matrices){1, 1, 1};
  int kept[MIX_MAX_RANK], at = 0, count = 0;
  for (int d = 0; d < shape->rank; d++)
    if (shape->dims[d] != 1) kept[count++] = d;
  for (; at < rank && order[at] == kept[at]; at++) m->batch *= shape->dims[kept[at]];
  /* The other axes must be kept[split ..] followed by kept[at .. split). */
  int split = at;
  while (split < rank && kept[split] != order[at]) split++;
  for (int i = at; i < rank; i++) {
    const int expected = i - at < rank - split ? kept[split + i - at] : kept[at + i - at - (rank - split)];
    if (order[i] != expected) return false;
  }
  for (int i = at; i < split; i++) m->rows *= shape->dims[kept[i]];
  for (int i = split; i < rank; i++) m->columns *= shape->dims[kept[i]];
  return true;
}

/* Result rows [begin, end) of one matrix, in steps of BLOCK. */
#define TRANSPOSE(type)                                                                                      \
  static void transpose_##type(void *result, const void *source, int64_t rows, int64_t columns,              \
                               int64_t begin, int64_t end) {                                                 \
    type *restrict to = result;                                                                              \
    const type *restrict from = source;                                                                      \
    for (int64_t i = 0; i < rows; i += BLOCK) {                                                              \
      const int64_t last = i + BLOCK < rows ? i + BLOCK : rows;                                              \
      for (int64_t j = begin; j < end; j++)                                                                  \
        for (int64_t k = i; k < last; k++) to[j * rows + k] = from[k * columns + j];                         \
    }                                                                                                        \
  }
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)
TRANSPOSE(uint32_t)
TRANSPOSE(uint64_t)

static void transpose_run(const mix_kernel_args *args, const mix_team *team) {
  matrices m;
  if (!describe(args, &m)) return;
  const int64_t element = (int64_t)mix_dtype_size(args->output_types[0].dtype),
                strips = (m.columns + BLOCK - 1) / BLOCK;
  int64_t begin, end;
  mix_team_share(team, m.batch * strips, 1, &begin, &end);
  for (int64_t i = begin; i < end && m.rows; i++) {
    const int64_t matrix = i / strips * m.rows * m.columns * element, first = i % strips * BLOCK;
    const int64_t last = first + BLOCK < m.columns ? first + BLOCK : m.columns;
    char *to = (char *)args->outputs[0] + matrix;
    const char *from = (const char *)args->inputs[0] + matrix;
    if (element == 1) transpose_uint8_t(to, from, m.rows, m.columns, first, last);
    if (element == 2) transpose_uint16_t(to, from, m.rows, m.columns, first, last);
    if (element == 4) transpose_uint32_t(to, from, m.rows, m.columns, first, last);
    if (element == 8) transpose_uint64_t(to, from, m.rows, m.columns, first, last);
  }
}

static const char *transpose_unsupported_reason(const mix_kernel_args *args) {
  matrices m;
  return describe(args, &m) ? NULL : "a permutation of more than two groups of axes";
}
static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL / 4;
}

static const mix_kernel transpose_kernel = {.name = "transpose_blocks",
                                            .unsupported_reason = transpose_unsupported_reason,
                                            .run = transpose_run,
                                            .serial = serial};

const mix_kernel *const mix_cpu_transpose_kernels[] = {&transpose_kernel, &mix_cpu_transpose_lines, NULL};
