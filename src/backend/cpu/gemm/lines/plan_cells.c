/* Plans of gradients of kernels over lines of cells. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "base/machine.h"

enum {
  /* Fewer cells at once do not repay reading and writing the sums, unless so many follow each other in the
   * image: gathering reads these once for each cell of a window. */
  FEWEST_CELLS = 96,
  CELLS_IN_LINE = 16,
  /* Nor do sums that are larger than so many second-level caches. */
  SUMS_CACHES = 6,
  /* Lines of fewer cells cost more than gathering does; where the sums are larger than that cache, of fewer
   * than LONGER_LINE. */
  SHORTEST_LINE = 4,
  LONGER_LINE = 8,
};

static int64_t line_pixels(const mix_gemm_patches *p) {
  return (p->cells[2] - 1) * p->step[2] + mix_lines_extent_of(p, 2).seen;
}

/* For so many lines of cells, which may be of several examples. */
static int64_t slab_bytes(const mix_gemm_engine *engine, const mix_gemm_patches *p, int64_t lines) {
  const int64_t examples = smaller(lines, lines / p->cells[1] + 2), seen = mix_lines_extent_of(p, 1).seen,
                packed = lines * p->step[1] + examples * (seen > p->step[1] ? seen - p->step[1] : 0);
  return whole_lines((packed * line_pixels(p) * p->channels + 2 * engine->lanes) *
                     (int64_t)engine->element_size);
}

/* Those that the second-level cache has space for, at most those of a block of k. */
static int64_t lines_at_once(const mix_gemm_engine *engine, const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  const int64_t block = smaller(engine->kc / p->cells[2] + 2, problem->k / p->cells[2]);
  int64_t lines = 1;
  while (lines < block && slab_bytes(engine, p, lines + 1) <= mix_cpu_cache(2) / 3) lines++;
  return lines;
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
  if (mix_lines_span_too_much(p, mix_cpu_cache(2))) return "long lines";
  if (p->window[1] * p->window[2] < p->step[1] * p->step[2]) return "pixels that no cell sees";
  const int64_t lines = lines_at_once(engine, problem),
                sums = problem->m * problem->n * 2 * (int64_t)engine->sum_size;
  if (p->cells[2] < (sums > mix_cpu_cache(2) ? LONGER_LINE : SHORTEST_LINE)) return "short lines";
  if (slab_bytes(engine, p, lines) > mix_cpu_cache(2) / 2) return "long lines";
  if (lines * p->cells[2] < smaller(FEWEST_CELLS, problem->k) && p->cells[2] < CELLS_IN_LINE * p->step[2])
    return "wide lines";
  if (sums > SUMS_CACHES * mix_cpu_cache(2)) return "large sums";
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
  own->cell_lines = lines_at_once(engine, problem);
  own->segment_bytes = (size_t)whole_lines(own->cell_lines * (int64_t)sizeof(mix_gemm_segment));
  own->scratch_bytes =
      (size_t)whole_lines((own->pixels + p->step[2]) * p->channels * mix_gemm_stored_size(plan->storage));
  own->slab_bytes = (size_t)slab_bytes(engine, p, own->cell_lines);
  const int64_t depth = smaller(engine->kc, own->cell_lines * p->cells[2]),
                packed = mix_gemm_packed_depth(engine, depth) + (engine->pairs ? own->cell_lines : 0);
  own->b_bytes = (size_t)whole_lines(packed * own->panels * engine->nr * (int64_t)engine->element_size);
}

mix_gemm_workspace mix_cells_workspace(const mix_gemm_plan *plan) {
  const mix_cells_plan *own = mix_cells_plan_of(plan);
  const int64_t sums = 2 * own->units * plan->engine->mr * plan->engine->nr * (int64_t)plan->engine->sum_size;
  return (mix_gemm_workspace){.thread = own->segment_bytes + own->scratch_bytes + own->slab_bytes +
                                        own->b_bytes + (size_t)whole_lines(sums)};
}
