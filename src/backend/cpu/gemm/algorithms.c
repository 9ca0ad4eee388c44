/* The algorithms of the engines on vectors, in the order of choice. Engines that have micro-kernels of
 * another kind name their own. */
#include "backend/cpu/gemm/blocked/blocked.h"
#include "backend/cpu/gemm/lines/cells.h"
#include "backend/cpu/gemm/lines/lines.h"
#include "backend/cpu/gemm/small_m/plan.h"
#include "backend/cpu/gemm/small_n/plan.h"

const mix_gemm_algorithm *const mix_gemm_vector_algorithms[] = {
    &mix_gemm_small_n, &mix_gemm_small_m, &mix_gemm_lines, &mix_gemm_cells, &mix_gemm_blocked, NULL};
