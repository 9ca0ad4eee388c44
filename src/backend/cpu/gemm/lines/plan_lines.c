/* Plans of products over lines of cells. */
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "base/machine.h"

enum {
  /* Of more columns than FEW_COLUMNS packing panels across lines pays where a line fills tiles of fewer rows.
   */
  FEWEST_ROWS = 4,
  FEW_COLUMNS = 160,
  /* Rows this many bytes apart share a set of the first-level cache. */
  CACHE_ALIAS = 2048,
  OFF_ALIAS = 16, /* elements */
  /* So many sums are stored at once. */
  STORED_SUMS = 4096,
};

static int64_t in_element(const mix_gemm_engine *engine) { return engine->pairs ? 2 : 1; }

/* How lines are packed: own->whole_lines, own->pitch and own->line. */
static void lay_lines(const mix_gemm_engine *engine, const mix_gemm_problem *problem, mix_lines_plan *own) {
  const mix_gemm_patches *p = problem->patches;
  const mix_lines_extent x = mix_lines_extent_of(p, 2);
  const int64_t unit = in_element(engine), padding = x.first < 0 ? -x.first : 0,
                element = (int64_t)engine->element_size;
  own->whole_lines = (p->window_step[2] == 1 || p->window[2] == 1) && p->pixel == p->channels &&
                     p->step[2] * p->channels % unit == 0 && padding * p->channels % unit == 0;
  own->pitch = own->whole_lines ? p->channels : round_up(p->channels, unit) / unit;
  if (own->pitch * element * p->step[2] % (CACHE_ALIAS * (own->whole_lines ? unit : 1)) == 0)
    own->whole_lines = false, own->pitch = round_up(p->channels, unit) / unit + OFF_ALIAS;
  const int64_t pixels = (p->cells[2] - 1) * p->step[2] + x.seen;
  own->line = own->whole_lines ? divide_up(pixels * p->channels, unit) : pixels * own->pitch;
}

int64_t mix_lines_cut_patch(const mix_gemm_engine *engine, const mix_gemm_problem *problem,
                            const mix_lines_plan *own, mix_gemm_segment *to) {
  const mix_gemm_patches *p = problem->patches;
  const mix_gemm_plan order = {.engine = engine};
  const mix_lines_extent rows = mix_lines_extent_of(p, 1), columns = mix_lines_extent_of(p, 2);
  const int64_t unit = in_element(engine),
                length = own->whole_lines ? p->window[2] * p->channels : p->channels,
                parts = own->whole_lines ? 1 : p->window[2];
  int64_t count = 0, k = 0, end = mix_gemm_next_depth(&order, problem->k);
  for (int64_t i = 0; i < p->window[1] * parts; i++) {
    const int64_t row = rows.zero + i / parts * p->window_step[1],
                  column = columns.zero + i % parts * p->window_step[2];
    const int64_t first = row * own->line + (own->whole_lines ? 0 : column * own->pitch);
    for (int64_t at = 0, taken; at < length; at += taken, k += taken, count++) {
      if (k == end) end += mix_gemm_next_depth(&order, problem->k - k);
      taken = smaller(length - at, end - k);
      if (at % unit) return 0;
      if (to)
        to[count] = (mix_gemm_segment){.offset = first + at / unit,
                                       .depth = divide_up(taken, unit),
                                       .odd = taken % unit != 0,
                                       .last = k + taken == end};
    }
  }
  return count;
}

/* Bytes of the lines of the image that `lines` lines of cells see. */
static int64_t slab_bytes(const mix_gemm_engine *engine, const mix_gemm_patches *p, const mix_lines_plan *own,
                          int64_t lines) {
  const int64_t packed = (lines - 1) * p->step[1] + mix_lines_extent_of(p, 1).seen;
  return whole_lines((packed * own->line + 2 * engine->lanes) * (int64_t)engine->element_size);
}

static int64_t panel_bytes(const mix_gemm_engine *engine, int64_t k) {
  return mix_gemm_packed_depth(engine, k) * engine->nr * (int64_t)engine->element_size;
}

const char *mix_lines_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                         const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  if (!p) return "no patches";
  if (!engine->lines_micro[MIX_GEMM_ALONG_K]) return "no such kernels";
  if (problem->transpose_a) return "sums over cells";
  if (problem->transpose_b || problem->a_rounds || problem->b_rounds) return "B stored along k";
  if (p->cells[0] != 1 || p->window[0] != 1 || p->image[0] != 1 || p->origin[0] != 0)
    return "three spatial axes";
  if (!problem->k) return "no terms";
  if (mix_lines_span_too_much(p, mix_cpu_cache(2))) return "long lines";
  if (problem->n > FEW_COLUMNS && p->cells[2] < FEWEST_ROWS * divide_up(p->cells[2], engine->mr))
    return "few cells in a tile";
  mix_lines_plan own;
  lay_lines(engine, problem, &own);
  const int64_t count = mix_lines_cut_patch(engine, problem, &own, NULL);
  if (!count) return "pairs of k in two cells";
  if (count > MIX_LINES_SEGMENTS) return "many segments";
  if (panel_bytes(engine, problem->k) > mix_cpu_cache(2) * 3 / 4) return "deep";
  if (slab_bytes(engine, p, &own, 1) > mix_cpu_cache(2) / 2) return "long lines";
  return NULL;
}

void mix_lines_make_plan(mix_gemm_plan *plan) {
  mix_lines_plan *own = mix_lines_plan_in(plan);
  const mix_gemm_engine *engine = plan->engine;
  const mix_gemm_problem *problem = &plan->problem;
  const mix_gemm_patches *p = problem->patches;
  lay_lines(engine, problem, own);
  own->segment_count = mix_lines_cut_patch(engine, problem, own, NULL);
  mix_gemm_segment segments[MIX_LINES_SEGMENTS];
  mix_lines_cut_patch(engine, problem, own, segments);
  for (int64_t i = 0; i < own->segment_count; i++) own->depth += segments[i].depth;
  own->segment_bytes = (size_t)whole_lines(own->segment_count * (int64_t)sizeof *segments);

  const int64_t lines = divide_up(problem->m / p->cells[2], plan->threads);
  own->cell_lines = 1;
  while (own->cell_lines < smaller(p->cells[1], lines) &&
         slab_bytes(engine, p, own, own->cell_lines + 1) <= mix_cpu_cache(2) / 4)
    own->cell_lines++;
  own->slab_bytes = (size_t)slab_bytes(engine, p, own, own->cell_lines);

  const int64_t panel = own->depth * engine->nr * (int64_t)engine->element_size,
                panels = mix_cpu_cache(2) * 3 / 8 / panel;
  own->nc = smaller(round_up(problem->n, engine->nr), (panels > 0 ? panels : 1) * engine->nr);
  own->nc = even_block(problem->n, own->nc, engine->nr);
  own->c_in_place = !problem->epilogue && !problem->scattered && problem->n % engine->lanes == 0 &&
                    engine->sum_size == mix_dtype_size(plan->result);
  own->c_stride = own->nc;
  own->sums_cells = smaller(p->cells[2], round_up(divide_up(STORED_SUMS, own->nc), engine->mr));
  own->b_kept = problem->fixed_b;
  plan->barriers = plan->threads > 1 && !own->b_kept;
}

/* All of B. */
static size_t packed_bytes(const mix_gemm_plan *plan) {
  const mix_gemm_engine *engine = plan->engine;
  const int64_t elements = mix_lines_plan_of(plan)->depth * round_up(plan->problem.n, engine->nr);
  return (size_t)whole_lines(elements * (int64_t)engine->element_size);
}
size_t mix_lines_kept_bytes(const mix_gemm_plan *plan) {
  return mix_lines_plan_of(plan)->b_kept ? packed_bytes(plan) : 0;
}

mix_gemm_workspace mix_lines_workspace(const mix_gemm_plan *plan) {
  const mix_lines_plan *own = mix_lines_plan_of(plan);
  const mix_gemm_engine *engine = plan->engine;
  const int64_t sums = own->c_in_place ? 0 : (own->sums_cells + engine->mr) * own->c_stride;
  return (mix_gemm_workspace){.shared = own->b_kept ? 0 : packed_bytes(plan),
                              .thread = own->segment_bytes + own->slab_bytes +
                                        (size_t)whole_lines(sums * (int64_t)engine->sum_size)};
}
