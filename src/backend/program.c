/* The op that carries an element-wise program of its own. */
#include "backend/program.h"
#include "backend/plan.h"

const mix_op mix_op_fused = {.name = "fused"};
