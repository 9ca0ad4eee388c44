/* Template: the engine on tiles of float32 and bfloat16 (amx.h). Its file defines ENGINE, and before this the
 * tile registers, where it emulates them. */
#include "backend/cpu/gemm/amx/lines.h"
#include "backend/cpu/gemm/amx/micro_kernel_amx.h"

static void enter(void) { configure_tiles(); }
static void leave(void) { _tile_release(); }

static const mix_amx_tiles tiles = {
    .enter = enter,
    .leave = leave,
    .whole = {{whole_1x1, whole_1x2}, {whole_2x1, whole_2x2}},
    .in_place = {{in_place_1x1, in_place_1x2}, {in_place_2x1, in_place_2x2}},
    .split = {{split_1x1, split_1x2}, {split_2x1, split_2x2}},
    .lines = {{lines_1x1, lines_1x2}, {lines_2x1, lines_2x2}},
    .split_lines = {{split_lines_1x1, split_lines_1x2}, {split_lines_2x1, split_lines_2x2}},
};

static void amx_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                    void *shared, void *own) {
  mix_amx_run(&tiles, plan, operands, team, shared, own);
}

static void lines_run(const mix_gemm_plan *plan, const mix_gemm_operands *operands, const mix_team *team,
                      void *shared, void *own) {
  mix_amx_run_lines(&tiles, plan, operands, team, shared, own);
}

static const mix_gemm_algorithm amx_lines = {.name = "tile_lines",
                                             .unsupported_reason = mix_amx_lines_unsupported_reason,
                                             .plan = mix_amx_make_lines_plan,
                                             .workspace = mix_amx_lines_workspace,
                                             .kept_bytes = mix_amx_lines_kept_bytes,
                                             .keep = mix_amx_keep_lines,
                                             .run = lines_run};
static const mix_gemm_algorithm amx = {.name = "amx",
                                       .unsupported_reason = mix_amx_unsupported_reason,
                                       .plan = mix_amx_make_plan,
                                       .workspace = mix_amx_workspace,
                                       .run = amx_run};
static const mix_gemm_algorithm *const algorithms[] = {&amx_lines, &amx, NULL};
static const mix_gemm_storage storages[] = {{MIX_FLOAT32}, {MIX_FLOAT16}, {MIX_BFLOAT16}, {MIX_DTYPE_NONE}};

const mix_gemm_engine ENGINE = {
    .mr = AMX_PANEL,
    .nr = AMX_PANEL,
    .lanes = AMX_LANES,
    .element_size = sizeof(uint16_t),
    .sum_size = sizeof(float),
    .storages = storages,
    .algorithms = algorithms,
};
