/* Sums, means, maxima and minima. The shape alone fixes the order of a sum. A row is cut into pieces of 4096
 * elements. A piece is added in float32: its whole groups of 32 in 32 lanes, then the lanes and the tail
 * (simd/rows.inc.h). Pieces are added in double. So the error is that of at most 136 additions in float32,
 * whatever the length. float64 and integers are added one by one within a piece. */
#include "backend/cpu/reduce.h"
#include "backend/cpu/kernel_rows.h"
#include "tensor/shape.h"
#include <math.h>

enum { PIECE = 4096, PART = 512 };

/* `axes` is a bit mask. NULL, or the reason why the reduction cannot be seen as (outer, length, inner). */
static const char *describe(mix_reduction *r, mix_opcode fold, bool mean, const mix_type *type,
                            unsigned axes) {
  *r = (mix_reduction){.fold = fold,
                       .mean = mean,
                       .dtype = type->dtype,
                       .class = mix_tile_class_of(type->dtype),
                       .outer = 1,
                       .length = 1,
                       .inner = 1,
                       .tail = 1};
  bool reduced = false;
  for (int d = 0; d < type->shape.rank; d++) {
    const int64_t n = type->shape.dims[d];
    if (n == 0) return "an empty operand";
    if (n == 1) continue;
    if (axes >> d & 1) {
      if (r->inner > 1) r->tail *= n, r->inner *= n;
      if (r->inner == 1) r->length *= n;
      reduced = true;
    } else if (r->tail > 1) {
      return "reduced axes that are not neighbours";
    } else if (reduced) {
      r->inner *= n;
    } else {
      r->outer *= n;
    }
  }
  if (r->tail > MIX_REDUCE_TAIL) return "reduced axes that are not neighbours, and many in the end";
  if (r->class == MIX_TILE_BOOL) return "bool";
  return NULL;
}

static unsigned axes_of(const mix_kernel_args *args) {
  unsigned axes = 0;
  if (args->op == &mix_op_bias_add_grad) return (1u << (args->input_types[0].shape.rank - 1)) - 1;
  const mix_reduce_attributes *attributes = args->attributes;
  for (int i = 0; i < attributes->axis_count; i++) axes |= 1u << attributes->axes[i];
  return axes;
}

static const char *describe_args(mix_reduction *r, const mix_kernel_args *args) {
  const bool mean = args->op == &mix_op_reduce_mean;
  const mix_opcode fold = args->op == &mix_op_reduce_max   ? MIX_OPCODE_MAXIMUM
                          : args->op == &mix_op_reduce_min ? MIX_OPCODE_MINIMUM
                                                           : MIX_OPCODE_ADD;
  return describe(r, fold, mean, &args->input_types[0], axes_of(args));
}

/* Reduces n >= 1 values of a tile. */
static mix_folded fold_tile(const mix_reduction *r, const mix_vector *vector, const void *tile, int64_t n) {
  if (r->class == MIX_TILE_FLOAT) {
    const float *x = tile;
    return (mix_folded){.real = r->fold == MIX_OPCODE_ADD       ? vector->sum(x, n)
                                : r->fold == MIX_OPCODE_MAXIMUM ? vector->maximum(x, n)
                                                                : vector->minimum(x, n)};
  }
  const mix_folded *x = tile;
  mix_folded all = x[0];
  for (int64_t i = 1; i < n; i++) all = mix_fold(r, all, x[i]);
  return all;
}

/* Reduces up to PIECE elements of memory. */
static mix_folded fold_piece(const mix_reduction *r, const mix_vector *vector, const char *source,
                             int64_t n) {
  if (r->dtype == MIX_FLOAT32 || r->dtype == MIX_FLOAT64 || r->dtype == MIX_INT64)
    return fold_tile(r, vector, source, n);
  _Alignas(64) char tile[PIECE * 4 + MIX_TILE_PADDING];
  const mix_tile_load_function load = mix_tile_load_of(vector, r->dtype);
  if (r->class == MIX_TILE_FLOAT) {
    load(tile, source, n);
    return fold_tile(r, vector, tile, n);
  }
  mix_folded all = {0};
  for (int64_t i = 0; i < n; i += PART) {
    const int64_t m = n - i < PART ? n - i : PART;
    load(tile, source + i * (int64_t)mix_dtype_size(r->dtype), m);
    const mix_folded part = fold_tile(r, vector, tile, m);
    all = i ? mix_fold(r, all, part) : part;
  }
  return all;
}

/* Few long rows: threads share the pieces, whose sums meet in the workspace. */
static bool shares_pieces(const mix_reduction *r) {
  return r->inner == 1 && r->outer < 16 && r->length > PIECE;
}

/* Reduces rows [begin, end). */
static void reduce_whole_rows(const mix_reduction *r, const mix_vector *vector, const char *source,
                              void *result, int64_t begin, int64_t end) {
  const int64_t element = (int64_t)mix_dtype_size(r->dtype), pieces = (r->length + PIECE - 1) / PIECE;
  for (int64_t row = begin; row < end; row++) {
    mix_folded all = {0};
    for (int64_t i = 0; i < pieces; i++) {
      const int64_t n = r->length - i * PIECE < PIECE ? r->length - i * PIECE : PIECE;
      const mix_folded piece = fold_piece(r, vector, source + (row * r->length + i * PIECE) * element, n);
      all = i ? mix_fold(r, all, piece) : piece;
    }
    mix_reduction_store(r, result, row, all);
  }
}

static void reduce_rows(const mix_reduction *r, const mix_vector *vector, const char *source, void *result,
                        mix_folded *partials, const mix_team *team) {
  const int64_t element = (int64_t)mix_dtype_size(r->dtype), pieces = (r->length + PIECE - 1) / PIECE;
  int64_t begin, end;
  if (!shares_pieces(r)) {
    mix_team_share(team, r->outer, r->length < PART ? PART / r->length : 1, &begin, &end);
    reduce_whole_rows(r, vector, source, result, begin, end);
    return;
  }
  mix_team_share(team, r->outer * pieces, 1, &begin, &end);
  for (int64_t i = begin; i < end; i++) {
    const int64_t row = i / pieces, first = i % pieces * PIECE,
                  n = r->length - first < PIECE ? r->length - first : PIECE;
    partials[i] = fold_piece(r, vector, source + (row * r->length + first) * element, n);
  }
  if (team->size > 1) mix_team_barrier(team);
  if (team->rank) return;
  for (int64_t row = 0; row < r->outer; row++) {
    mix_folded all = partials[row * pieces];
    for (int64_t i = 1; i < pieces; i++) all = mix_fold(r, all, partials[row * pieces + i]);
    mix_reduction_store(r, result, row, all);
  }
}

static void reduce_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  mix_reduction r;
  if (describe_args(&r, args)) return;
  if (r.inner > 1)
    mix_reduce_columns(&r, vector, args->inputs[0], args->outputs[0], args->workspace, team);
  else
    reduce_rows(&r, vector, args->inputs[0], args->outputs[0], args->workspace, team);
}

static const char *reduce_unsupported_reason(const mix_kernel_args *args) {
  mix_reduction r;
  return describe_args(&r, args);
}
static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}
static size_t reduce_workspace(const mix_kernel_args *args, int threads) {
  mix_reduction r;
  if (describe_args(&r, args)) return 0;
  if (r.inner > 1) return mix_reduce_columns_workspace(&r);
  return shares_pieces(&r) ? (size_t)(r.outer * ((r.length + PIECE - 1) / PIECE)) * sizeof(mix_folded) : 0;
}
static int barriers(const mix_kernel_args *args, int threads) {
  mix_reduction r;
  if (describe_args(&r, args)) return 0;
  return r.inner > 1 ? mix_reduce_columns_meets(&r) : shares_pieces(&r);
}

/* Whole rows or matrices, whose sums need no workspace. */
static bool reduce_bands(const mix_kernel_args *args, int threads, int64_t rows, mix_band_access *access) {
  mix_reduction r;
  return !describe_args(&r, args) && r.outer % rows == 0 && !reduce_workspace(args, threads);
}
static void reduce_run_band(const mix_kernel_args *args, const mix_band *band, const mix_vector *vector) {
  mix_reduction r;
  if (describe_args(&r, args)) return;
  const int64_t each = r.outer / band->rows, begin = band->begin * each, end = band->end * each,
                element = (int64_t)mix_dtype_size(r.dtype);
  if (r.inner == 1) {
    reduce_whole_rows(&r, vector, args->inputs[0], args->outputs[0], begin, end);
    return;
  }
  r.outer = end - begin;
  mix_reduce_columns(&r, vector, (const char *)args->inputs[0] + begin * r.length * r.inner * element,
                     (char *)args->outputs[0] + begin * r.inner / r.tail * element, NULL, &mix_team_alone);
}

#define REDUCE(op, text)                                                                                     \
  static void op##_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {        \
    reduce_run(args, team, vector);                                                                          \
  }                                                                                                          \
  static void op##_run_band(const mix_kernel_args *args, const mix_band *band, const mix_vector *vector) {   \
    reduce_run_band(args, band, vector);                                                                     \
  }                                                                                                          \
  MIX_CPU_KERNELS_IN_BANDS(op, text, .unsupported_reason = reduce_unsupported_reason, .serial = serial,      \
                           .workspace = reduce_workspace, .barriers = barriers, .bands = reduce_bands)
REDUCE(reduce_sum, "reduce_sum_acc32")
REDUCE(reduce_mean, "reduce_mean_acc32")
REDUCE(reduce_max, "reduce_max")
REDUCE(reduce_min, "reduce_min")
REDUCE(bias_add_grad, "bias_add_grad_acc32")

/* ---- the finite test ---- */

static void all_finite_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  _Alignas(64) float tile[PART + MIX_TILE_PADDING / 4];
  const mix_dtype dtype = args->input_types[0].dtype;
  const char *source = args->inputs[0];
  const int64_t element = (int64_t)mix_dtype_size(dtype);
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(args->input_types[0].shape), PART, &begin, &end);
  bool finite = true;
  if (dtype == MIX_FLOAT32)
    finite = vector->all_finite((const float *)source + begin, end - begin);
  else if (dtype == MIX_FLOAT64)
    for (int64_t i = begin; i < end; i++) finite = finite && isfinite(((const double *)source)[i]);
  else
    for (int64_t i = begin; i < end && finite; i += PART) {
      const int64_t n = end - i < PART ? end - i : PART;
      vector->load[dtype](tile, source + i * element, n);
      finite = vector->all_finite(tile, n);
    }
  if (team->size > 1) {
    volatile char *flags = args->workspace;
    flags[team->rank * 64] = finite;
    mix_team_barrier(team);
    if (team->rank) return;
    for (int i = 1; i < team->size; i++) finite = finite && flags[i * 64];
  }
  *(uint8_t *)args->outputs[0] = finite;
}
static size_t finite_workspace(const mix_kernel_args *args, int threads) { return (size_t)threads * 64; }
static int one_barrier(const mix_kernel_args *args, int threads) { return 1; }
static bool finite_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  *count = mix_shape_size(args->input_types[0].shape);
  *grain = PART;
  return true;
}
MIX_CPU_KERNELS(all_finite, "all_finite", .serial = serial, .workspace = finite_workspace,
                .barriers = one_barrier, .share = finite_share)
