/* The automatic mixed precision rewrite as a compiler pass. */
#pragma once

#include "ir/ir.h"

/* Runs first, if the rewrite is enabled for the process (amp/setting.h). */
bool mix_pass_amp(mix_ir *ir);
