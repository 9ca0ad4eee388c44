/* Which indices an op checks, so that those that were checked before need not be waited for. */
#pragma once

#include "graph/op.h"

/* Operand 1 holds indices, and one that is not less than this number is an error of the run, the only one
 * that the op knows. -1: it is none of these ops. `values`: the shape of operand 0. */
int64_t mix_index_bound(const mix_op *op, const void *attributes, mix_shape values);
