/* Loops over chunks of steps: a loop whose body holds loops over the steps of a chunk (checkpoint_loops.h).
 */
#pragma once

#include "ir/ir.h"

/* By result of node `forward`: does anything but loop `backward`, and what comes after it, read it? In the
 * ir's memory; NULL with the error recorded. The ir is sorted. */
bool *mix_loop_kept_outputs(mix_ir *ir, int forward, int backward);
