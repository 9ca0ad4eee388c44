/* Arguments that a graph does nothing with but cast them. */
#pragma once

#include "ir/ir.h"

/* The value of an argument; -1: the graph does without it. */
int mix_ir_argument(const mix_ir *ir, int argument);
/* The dtype to which all uses of an argument cast it; MIX_DTYPE_NONE if one does something else. */
mix_dtype mix_ir_cast_of_argument(const mix_ir *ir, int argument);
