/* May rows be added to the batch of a captured graph, and cut from its results? */
#pragma once

#include "ir/ir.h"

/* Follows the batch, axis 0 of every argument that is no scalar, through a graph before its passes. False
 * with a ValueError that names the op which mixes rows, or the result or the variable that does not fit;
 * `rows`: in the batch. */
bool mix_check_row_independence(const mix_ir *ir, int64_t rows);
