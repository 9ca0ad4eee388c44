/* The engine with SDOT: tiles of 6 x 16. */
#include <arm_neon.h>
#define SIMD_BYTES 16
#define VECTORS 4
#define GROUP 4
#define OFFSET 0
/* One lane, which is multiplied by its number: broadcast, it would take a slot of the multipliers. */
#define FACTOR int8x8_t
#define BROADCAST(x) vcreate_s8(x)
#define MULTIPLY_ADD(sums, a, b) ((lanes)vdotq_lane_s32((int32x4_t)(sums), (int8x16_t)(b), (a), 0))
#define PACKING "backend/cpu/gemm/integer/pack_neon.h"
#define ENGINE mix_integer_neondot
#include "backend/cpu/gemm/integer/engine.h"
