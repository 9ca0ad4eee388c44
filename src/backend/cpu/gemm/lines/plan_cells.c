/* Plans of gradients of kernels over lines of cells. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "base/machine.h"

enum { MAX_SEGMENTS = 256 };

/* Lines of cells, and of examples, that a block of k may have a part of. */
static int64_t lines_of_block(const mix_gemm_engine *engine, const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  return smaller(engine->kc / p->cells[2] + 2, problem->k / p->cells[2]);
}

static int64_t line_pixels(const mix_gemm_patches *p) {
  return (p->cells[2] - 1) * p->step[2] + mix_lines_extent_of(p, 2).seen;
}

static int64_t slab_bytes(const mix_gemm_engine *engine, const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  const int64_t lines = lines_of_block(engine, problem), examples = smaller(lines, lines / p->cells[1] + 2),
                packed = lines * p->step[1] + examples * mix_lines_extent_of(p, 1).seen;
  return whole_lines((packed * line_pixels(p) * p->channels + 2 * engine->lanes) *
                     (int64_t)engine->element_size);
}

const char *mix_cells_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                         const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  if (!p) return "no patches";
  if (!engine->lines_micro[MIX_GEMM_ALONG_M]) return "no such kernels";
  if (!problem->transpose_a) return "sums over a window";
  if (problem->transpose_b || problem->a_rounds || problem->b_rounds) return "B stored along k";
  if (p->cells[0] != 1 || p->window[0] != 1 || p->image[0] != 1 || p->origin[0] != 0)
    return "three spatial axes";
  if (!problem->k) return "no terms";
  if (lines_of_block(engine, problem) > MAX_SEGMENTS) return "short lines";
  if (slab_bytes(engine, problem) > mix_cpu_cache(2) / 2) return "wide lines";
  return NULL;
}

void mix_cells_make_plan(mix_gemm_plan *plan) {
  mix_cells_plan *own = mix_cells_plan_in(plan);
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *problem = &plan->problem;
  const mix_gemm_patches *p = problem->patches;
  const bool whole = p->window_step[2] == 1;
  own->pixels = line_pixels(p), own->line = own->pixels * p->channels;
  own->parts = p->window[1] * (whole ? 1 : p->window[2]);
  own->part_rows = (whole ? p->window[2] : 1) * p->channels;
  own->tiles = divide_up(own->part_rows, engine->mr), own->panels = divide_up(problem->n, engine->nr);
  own->units = divide_up(own->parts * own->tiles * own->panels, plan->threads);
  own->segment_count = lines_of_block(engine, problem);
  own->segment_bytes = (size_t)whole_lines(own->segment_count * (int64_t)sizeof(mix_gemm_segment));
  own->scratch_bytes =
      (size_t)whole_lines((own->pixels + p->step[2]) * p->channels * mix_gemm_stored_size(plan->storage));
  own->slab_bytes = (size_t)slab_bytes(engine, problem);
  const int64_t depth = smaller(engine->kc, problem->k),
                packed = mix_gemm_packed_depth(engine, depth) + (engine->pairs ? own->segment_count : 0);
  own->b_bytes = (size_t)whole_lines(packed * own->panels * engine->nr * (int64_t)engine->element_size);
}

mix_gemm_workspace mix_cells_workspace(const mix_gemm_plan *plan) {
  const mix_cells_plan *own = mix_cells_plan_of(plan);
  const int64_t sums = own->units * plan->engine->mr * plan->engine->nr * (int64_t)plan->engine->sum_size;
  return (mix_gemm_workspace){.thread = own->segment_bytes + own->scratch_bytes + own->slab_bytes +
                                        own->b_bytes + (size_t)whole_lines(sums)};
}
