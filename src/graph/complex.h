/* A flag of ops, beside those of graph/op.h. */
#pragma once

/* Result 0 is the complex number of operands 0 and 1, its parts. No other op has it as an operand. */
enum { MIX_OP_COMPLEX = 1 << 24 };
