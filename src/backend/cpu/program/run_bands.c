/* Programs in bands of rows: which of their operands a band reads by rows, and its run. */
#include "backend/cpu/program/run_state.h"
#include "base/machine.h"
#include "tensor/shape.h"

/* Cuts the space into `rows`: the strides by which a load steps from row to row, outermost first, with their
 * counts. False if dimensions do not allow it. */
static bool cut(const mix_program *program, const mix_program_load *load, int64_t rows, int64_t *counts,
                int64_t *strides, int *levels, int64_t *span) {
  *levels = 0;
  *span = 1; /* elements of the operand from the first to the last of a row */
  for (int d = 0; d < program->rank; d++) {
    const int64_t n = program->dims[d], outer = rows % n == 0 ? n : n % rows == 0 ? rows : 0;
    if (!outer) return false;
    if (outer > 1) counts[*levels] = outer, strides[(*levels)++] = load->strides[d] * (n / outer);
    *span += (n / outer - 1) * load->strides[d];
    rows /= outer;
  }
  return rows == 1;
}

typedef enum reading { BY_ROWS, WHOLE, NEITHER } reading;

/* How bands read the operand of a load. */
static reading reading_of(const mix_program *program, const mix_program_load *load, int64_t size,
                          int64_t rows) {
  int64_t counts[MIX_MAX_RANK], strides[MIX_MAX_RANK], span;
  int levels;
  if (!cut(program, load, rows, counts, strides, &levels, &span)) return NEITHER;
  if (load->offset || size % rows) return WHOLE;
  int64_t next = size / rows;
  bool in_order = span <= next;
  for (int i = levels - 1; i >= 0; next *= counts[i--]) in_order = in_order && strides[i] == next;
  return in_order ? BY_ROWS : WHOLE;
}

bool mix_tile_bands(const mix_tile_program *p, const mix_kernel_args *args, int threads, int64_t rows,
                    mix_band_access *access) {
  const mix_program *program = p->program;
  if (p->count % rows || p->count < 8) return false;
  if (program->reduction != MIX_REDUCE_NOTHING && (!program->row || p->count / rows % program->row))
    return false;
  if (program->sum_count && !mix_tile_sums_by_bands(p, threads, rows)) return false;
  for (int l = 0; l < program->load_count; l++) {
    const int input = program->loads[l].input;
    if (input == MIX_FROM_ACCUMULATOR) return false;
    switch (reading_of(program, &program->loads[l], mix_shape_size(args->input_types[input].shape), rows)) {
    case NEITHER: return false;
    case WHOLE: access->whole_inputs |= (uint64_t)1 << input; break;
    default: break;
    }
  }
  for (int i = 0; i < program->sum_count; i++)
    if (program->sums[i].column) access->late_outputs |= (uint64_t)1 << program->sums[i].output;
  return true;
}

void mix_tile_run_band(const mix_tile_program *p, const mix_kernel_args *args, const mix_band *band) {
  _Alignas(64) char memory[MIX_TILE_MEMORY];
  mix_tile_state r;
  const int64_t row = p->count / band->rows, begin = band->begin * row, end = band->end * row;
  mix_tile_start(&r, p, args, memory);
  r.reread = band->reread;
  if (p->program->sum_count)
    mix_tile_run_sums_range(&r, begin, end);
  else
    mix_tile_run_range(&r, begin, end);
  if (r.streamed) mix_end_streams();
}
