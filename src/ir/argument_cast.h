/* Arguments that a graph does nothing with but cast them. */
#pragma once

#include "ir/ir.h"

/* The value of an argument; -1: the graph does without it. */
int mix_ir_argument(const mix_ir *ir, int argument);
/* The 16-bit dtype to which all uses of an argument in float32 cast it; MIX_DTYPE_NONE for any other. */
mix_dtype mix_ir_rounding_of_argument(const mix_ir *ir, int argument);
