/* The automatic mixed precision rewrite as a pass of the compiler. */
#ifndef MIX_AMP_AMP_PASS_H
#define MIX_AMP_AMP_PASS_H

#include "ir/ir.h"

/* Runs first, where the process has the rewrite on (amp/setting.h). */
bool mix_pass_amp(mix_ir *ir);

#endif
