/* Ops that only plans contain. */
#include "backend/plan.h"

const mix_op mix_op_matmul_finite_bound = {.name = "matmul_finite_bound",
                                           .attributes_size = sizeof(mix_finite_bound_attributes)};
