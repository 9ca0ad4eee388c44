/* Ops that no graph has: passes and plans make them. */
#include "backend/plan.h"

const mix_op mix_op_fused = {.name = "fused"};
const mix_op mix_op_bounded_product = {.name = "bounded_product", .attributes_size = sizeof(mix_bounded_product_attributes)};
