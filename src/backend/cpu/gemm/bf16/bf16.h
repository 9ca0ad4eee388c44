/* The engine that multiplies bfloat16 in pairs: products as the blocked driver does them (blocked/), with an
 * element of a packed operand that is two numbers of k.
 *
 * VDPBF16PS adds two products to each of 16 float32 sums: first that of the upper halves, then that of the
 * lower ones, each by a fused multiply-add that rounds to nearest even, takes subnormal operands as zero and
 * flushes subnormal sums, whatever MXCSR says. (Measured on a Zen 4, bit for bit.) Packing puts number k into
 * the upper half and number k + 1 into the lower one. So the sums have the order, and the bits, of those of
 * the float32 engine for AVX-512 with operands that are widened: blocks of k are the same, and threads that
 * run plans flush subnormals there too. NaNs may have other payloads. BFMLALT, for the upper halves, and then
 * BFMLALB of arm64 do the same where FPCR.FZ is set, as it is in threads that run plans.
 *
 * Behind an odd depth A has -0 and B +0: their product, -0, leaves every sum as it is. */
#pragma once

#include "backend/cpu/gemm/gemm.h"

extern const mix_gemm_algorithm *const mix_gemm_pair_algorithms[];
