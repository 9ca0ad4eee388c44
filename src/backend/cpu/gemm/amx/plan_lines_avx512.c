/* Plans of products over lines of cells on tiles. */
#include "backend/cpu/gemm/amx/lines.h"
#include "backend/cpu/gemm/block_arithmetic.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "base/machine.h"

enum {
  MAX_SEGMENTS = 1024, /* of a patch */
  /* Gathering and packing a patch costs as much as so many elements of C (plan_avx512.c). */
  GATHERING = 256,
  /* Rows this many bytes apart share a set of the first-level cache. */
  CACHE_ALIAS = 4096,
  OFF_ALIAS = 32, /* numbers */
  NUMBER = sizeof(uint16_t),
};

/* How lines are packed: own->pitch, own->cell and own->line. */
static void lay_lines(const mix_gemm_patches *p, mix_amx_lines_plan *own) {
  const int64_t seen = mix_lines_extent_of(p, 2).seen, step = mix_amx_packed_step(p, 2, seen);
  own->pitch = p->channels;
  if (step * own->pitch * NUMBER % CACHE_ALIAS == 0) own->pitch += OFF_ALIAS;
  own->cell = step * own->pitch;
  own->line = (p->cells[2] - 1) * own->cell + seen * own->pitch;
}

/* Numbers of a patch that follow each other in a packed line, and how many such segments there are. */
typedef struct segments {
  int64_t length, in_line, count;
} segments;
static segments segments_of(const mix_gemm_patches *p, const mix_amx_lines_plan *own) {
  const bool whole = (p->window_step[2] == 1 && own->pitch == p->channels) || p->window[2] == 1;
  segments x = {.length = whole ? p->window[2] * p->channels : p->channels,
                .in_line = whole ? 1 : p->window[2]};
  x.count = p->window[1] * x.in_line;
  return x;
}

static uint32_t numbers_at(int64_t place, int64_t count) {
  return (uint32_t)(((UINT64_C(1) << count) - 1) << place);
}

/* Counts alone where there are no steps. */
static void cut_patch(const mix_gemm_problem *problem, const mix_amx_lines_plan *own, mix_amx_step *steps,
                      mix_amx_piece *pieces, int64_t *gathered, int64_t *piece_count) {
  const mix_gemm_patches *p = problem->patches;
  const mix_lines_extent rows = mix_lines_extent_of(p, 1), columns = mix_lines_extent_of(p, 2);
  const segments x = segments_of(p, own);
  int64_t segment = 0, left = 0, at = 0;
  *gathered = *piece_count = 0;
  for (int64_t k = 0; k < problem->k; k += AMX_STEP) {
    const int64_t wanted = smaller(AMX_STEP, problem->k - k), before = *piece_count, step = k / AMX_STEP;
    for (int64_t place = 0, taken; place < wanted; place += taken, at += taken, left -= taken) {
      if (!left) {
        at = (rows.zero + segment / x.in_line * p->window_step[1]) * own->line +
             (columns.zero + segment % x.in_line * p->window_step[2]) * own->pitch;
        left = x.length, segment++;
      }
      taken = smaller(left, wanted - place);
      if (pieces)
        pieces[*piece_count] = (mix_amx_piece){.at = (at - place) * NUMBER,
                                               .numbers = numbers_at(place, taken),
                                               .last = place + taken == wanted};
      ++*piece_count;
    }
    const bool direct = wanted == AMX_STEP && *piece_count == before + 1;
    if (steps)
      steps[step] = (mix_amx_step){direct ? (at - AMX_STEP) * NUMBER : *gathered * AMX_PAIR, !direct};
    if (direct)
      *piece_count = before;
    else
      ++*gathered;
  }
}

void mix_amx_cut_patch(const mix_gemm_problem *problem, const mix_amx_lines_plan *own, mix_amx_step *steps,
                       mix_amx_piece *pieces) {
  int64_t gathered, count;
  cut_patch(problem, own, steps, pieces, &gathered, &count);
}

/* Of the lines that `lines` lines of cells see. Tiles read rows behind the last cell, whose sums are for
 * nothing. */
static int64_t slab_bytes(const mix_gemm_patches *p, const mix_amx_lines_plan *own, int64_t lines) {
  const int64_t seen = mix_lines_extent_of(p, 1).seen,
                packed = (lines - 1) * mix_amx_packed_step(p, 1, seen) + seen;
  return whole_lines((packed * own->line + (AMX_LANES - 1) * own->cell) * NUMBER);
}

static int64_t panel_bytes(mix_dtype dtype, const mix_gemm_problem *p) {
  return divide_up(p->k, AMX_STEP) * mix_amx_parts(dtype) * AMX_PAIR;
}

const char *mix_amx_lines_unsupported_reason(const mix_gemm_engine *engine, mix_dtype dtype,
                                             const mix_gemm_problem *problem) {
  const mix_gemm_patches *p = problem->patches;
  const char *reason = mix_amx_unsupported_reason(engine, dtype, problem);
  if (reason) return reason;
  if (!p) return "no patches";
  const int parts = mix_amx_parts(dtype);
  if (parts > 1 && p->channels % AMX_STEP) return "steps of two parts in several places";
  if (problem->transpose_a) return "sums over cells";
  if (mix_amx_splits_k(problem)) return "sums over halves of k";
  if (p->cells[0] != 1 || p->window[0] != 1 || p->image[0] != 1 || p->origin[0] != 0)
    return "three spatial axes";
  if (mix_lines_span_too_much(p, mix_cpu_cache(2))) return "long lines";
  /* Rows of tiles without a cell. */
  const int64_t empty = round_up(p->cells[2], AMX_LANES) - p->cells[2];
  if ((double)empty * (double)problem->n > (double)p->cells[2] * GATHERING) return "few cells in a tile";
  mix_amx_lines_plan own;
  lay_lines(p, &own);
  if (segments_of(p, &own).count > MAX_SEGMENTS) return "many segments";
  if (panel_bytes(dtype, problem) > mix_cpu_cache(2) * 3 / 4) return "deep";
  if (parts * slab_bytes(p, &own, 1) > mix_cpu_cache(2) / 2) return "long lines";
  return NULL;
}

void mix_amx_make_lines_plan(mix_gemm_plan *plan) {
  mix_amx_lines_plan *own = mix_amx_lines_plan_in(plan);
  const mix_gemm_problem *problem = &plan->problem;
  const mix_gemm_patches *p = problem->patches;
  const mix_dtype dtype = plan->storage->dtype;
  const int parts = mix_amx_parts(dtype);
  lay_lines(p, own);
  cut_patch(problem, own, NULL, NULL, &own->gathered, &own->pieces);
  own->table_bytes = (size_t)whole_lines(mix_amx_steps(plan) * (int64_t)sizeof(mix_amx_step) +
                                         (own->pieces + 1) * (int64_t)sizeof(mix_amx_piece));
  const int64_t lines = divide_up(problem->m / p->cells[2], plan->threads);
  own->cell_lines = 1;
  while (own->cell_lines < smaller(p->cells[1], lines) &&
         parts * slab_bytes(p, own, own->cell_lines + 1) <= mix_cpu_cache(2) / 4)
    own->cell_lines++;
  own->part = slab_bytes(p, own, own->cell_lines);
  own->slab_bytes = (size_t)(parts * own->part);
  const int64_t panels = mix_cpu_cache(2) * 3 / 8 / panel_bytes(dtype, problem);
  own->nc = even_block(problem->n, (panels > 0 ? panels : 1) * AMX_PANEL, AMX_PANEL);
  own->c_stride = own->nc + 16; /* off a power of two */
  own->b_kept = problem->fixed_b;
  plan->barriers = plan->threads > 1 && !own->b_kept;
  plan->stream = mix_gemm_streams_result(plan);
}

/* All of B, and the flags of its steps. */
static size_t packed_bytes(const mix_gemm_plan *plan) {
  const int64_t panels = divide_up(plan->problem.n, AMX_PANEL);
  return (size_t)(panels * panel_bytes(plan->storage->dtype, &plan->problem) +
                  whole_lines(panels * mix_amx_steps(plan)));
}
size_t mix_amx_lines_kept_bytes(const mix_gemm_plan *plan) {
  return mix_amx_lines_plan_of(plan)->b_kept ? packed_bytes(plan) : 0;
}

mix_gemm_workspace mix_amx_lines_workspace(const mix_gemm_plan *plan) {
  const mix_amx_lines_plan *own = mix_amx_lines_plan_of(plan);
  return (mix_gemm_workspace){.shared = own->b_kept ? 0 : packed_bytes(plan),
                              .thread = own->table_bytes + own->slab_bytes +
                                        (size_t)own->gathered * AMX_PAIR +
                                        (size_t)(AMX_PANEL * own->c_stride) * sizeof(float)};
}
