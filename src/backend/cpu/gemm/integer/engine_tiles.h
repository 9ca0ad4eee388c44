/* Template: the engine on tiles. TDPBSSD adds to a (16, 16) tile of int32 the product of a (16, 64) tile of
 * int8 and one of (64, 16), which is stored as (16 groups of four k, 16 columns): a panel of B as all engines
 * pack it. Up to 2 x 2 tiles of C are in registers 0 to 3, A in 4 and 5, B in 6 and 7. Its file defines
 * ENGINE, and tiles that it emulates before this. */
#include "backend/cpu/gemm/amx/tiles_amx.h"
#include "backend/cpu/gemm/integer/integer.h"

#define GROUP 4
#define OFFSET 0
#define PACKING "backend/cpu/gemm/integer/pack_avx2.h"
enum { NR = 32, TILE_ROWS = 16, MR = 2 * TILE_ROWS, STEP = 16 };
#include "backend/cpu/gemm/integer/packing.h"

SIMD_INLINE void load_sums(const bool two, const int32_t *c, int64_t stride, bool add) {
  if (!add) {
    _tile_zero(0);
    _tile_zero(1);
    if (two) _tile_zero(2);
    if (two) _tile_zero(3);
    return;
  }
  _tile_loadd(0, c, 4 * stride);
  _tile_loadd(1, c + 16, 4 * stride);
  if (two) _tile_loadd(2, c + TILE_ROWS * stride, 4 * stride);
  if (two) _tile_loadd(3, c + TILE_ROWS * stride + 16, 4 * stride);
}

SIMD_INLINE void store_sums(const bool two, int32_t *c, int64_t stride) {
  _tile_stored(0, c, 4 * stride);
  _tile_stored(1, c + 16, 4 * stride);
  if (two) _tile_stored(2, c + TILE_ROWS * stride, 4 * stride);
  if (two) _tile_stored(3, c + TILE_ROWS * stride + 16, 4 * stride);
}

/* `two` rows of tiles, a constant after inlining. Loads before multiplications: amx/micro_kernel_amx.h. */
SIMD_INLINE void multiply_tiles(const bool two, int64_t groups, const char *a, int64_t a_stride,
                                const int32_t *b, int32_t *c, int64_t c_stride, bool add) {
  TILE_BARRIER();
  load_sums(two, c, c_stride, add);
  for (int64_t g = 0; g < groups; g += STEP, a += 4 * STEP, b += STEP * NR) {
    _tile_loadd(4, a, a_stride);
    _tile_loadd(6, b, 4 * NR);
    if (two) _tile_loadd(5, a + TILE_ROWS * a_stride, a_stride);
    _tile_loadd(7, b + 16, 4 * NR);
    _tile_dpbssd(0, 4, 6);
    _tile_dpbssd(1, 4, 7);
    if (two) _tile_dpbssd(2, 5, 6);
    if (two) _tile_dpbssd(3, 5, 7);
  }
  store_sums(two, c, c_stride);
  TILE_BARRIER();
}

static void micro_16(int64_t groups, const void *a, int64_t a_stride, const int32_t *b, const int32_t *start,
                     int32_t *c, int64_t c_stride, bool add) {
  multiply_tiles(false, groups, a, a_stride, b, c, c_stride, add);
}
static void micro_32(int64_t groups, const void *a, int64_t a_stride, const int32_t *b, const int32_t *start,
                     int32_t *c, int64_t c_stride, bool add) {
  multiply_tiles(true, groups, a, a_stride, b, c, c_stride, add);
}
static mix_integer_micro *const micro_kernels[] = {micro_16, micro_32};

static void enter(void) { configure_tiles(); }
static void leave(void) { _tile_release(); }

const mix_integer_engine ENGINE = {.mr = MR,
                                   .nr = NR,
                                   .group = GROUP,
                                   .step = STEP,
                                   .rows = TILE_ROWS,
                                   .micro = micro_kernels,
                                   .pack_b = {pack_b_plain, pack_b_transposed},
                                   .pack_a = pack_a,
                                   .enter = enter,
                                   .leave = leave};
