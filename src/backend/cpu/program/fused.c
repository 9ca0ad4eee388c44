/* The kernels of fused steps: the tile executor runs the whole program. */
#include "backend/cpu/kernel_rows.h"
#include "backend/cpu/program/prepared_program.h"

static void fused_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  (args->program->sum_count ? mix_tile_run_sums : mix_tile_run)(args->prepared, args, team);
}

static const char *fused_unsupported_reason(const mix_kernel_args *args) {
  for (int l = 0; l < args->program->load_count; l++)
    if (args->program->loads[l].input == MIX_FROM_ACCUMULATOR) return "an epilogue, not a program of its own";
  return mix_tile_unsupported_reason(args->program);
}

static bool fused_prepare(mix_kernel_args *args, const mix_vector *vector) {
  args->prepared = mix_tile_prepare_for(args->program, vector);
  return args->prepared != NULL;
}
MIX_VECTOR_SETS(MIX_CPU_PREPARE, fused)

static bool serial(const mix_kernel_args *args) {
  return ((const mix_tile_program *)args->prepared)->cost < MIX_CPU_SMALL;
}

static size_t fused_workspace(const mix_kernel_args *args, int threads) {
  if (args->program->sum_count) return mix_tile_sums_bytes(args->prepared);
  if (args->program->reduction == MIX_REDUCE_NOTHING || args->program->row) return 0;
  return mix_tile_pieces_bytes(args->prepared) + (size_t)threads * MIX_TILE_REDUCTION_BYTES;
}
static int barriers(const mix_kernel_args *args, int threads) {
  return mix_tile_sums_bytes(args->prepared) > 0;
}
static bool fused_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  return mix_tile_share(args->prepared, count, grain);
}

static bool fused_bands(const mix_kernel_args *args, int threads, int64_t rows, mix_band_access *access) {
  return mix_tile_bands(args->prepared, args, threads, rows, access);
}
static void fused_run_band(const mix_kernel_args *args, const mix_band *band) {
  mix_tile_run_band(args->prepared, args, band);
}
static bool fused_band_share(const mix_kernel_args *args, const mix_team *team, int64_t *begin,
                             int64_t *end) {
  return mix_tile_band_share(args->prepared, team, begin, end);
}
static void fused_end_bands(const mix_kernel_args *args, const mix_team *team) {
  mix_tile_end_bands(args->prepared, args, team);
}

#define FUSED(set, ...)                                                                                      \
  MIX_CPU_KERNEL(set, __VA_ARGS__, fused, "fused", .unsupported_reason = fused_unsupported_reason,           \
                 .workspace = fused_workspace, .prepare = prepare_##set, .serial = serial,                   \
                 .barriers = barriers, .share = fused_share, .bands = fused_bands,                           \
                 .run_band = fused_run_band, .band_share = fused_band_share, .end_bands = fused_end_bands)
MIX_VECTOR_SETS(FUSED)
MIX_CPU_TABLE(fused)
