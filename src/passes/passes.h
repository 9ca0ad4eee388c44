/* The passes, one file each. They edit the IR in place and return false with the error recorded.
 * MIXTAPE_DISABLE_PASSES disables some by name ("fuse,fuse_epilogues"). */
#pragma once

#include "backend/backend.h"

/* Computes what is the same in all steps of a loop before it. */
bool mix_pass_hoist_invariants(mix_ir *ir);
/* The same of one loop, with casts to wider numbers that its products read. */
bool mix_pass_hoist_upcasts(mix_ir *ir, int loop);
/* Turns einsum into products of matrices, transposes and reshapes. */
bool mix_pass_expand_einsum(mix_ir *ir);
/* Replaces identities and casts to the same dtype by their operands. */
bool mix_pass_remove_identities(mix_ir *ir);
/* Removes casts through a dtype that holds every value of the source dtype. */
bool mix_pass_simplify_casts(mix_ir *ir);
/* Turns transposes of operands into flags of the product. */
bool mix_pass_fold_transposes(mix_ir *ir);
/* Turns sums of paddings that fill each other into concatenations. */
bool mix_pass_join_pads(mix_ir *ir);
/* Computes element-wise nodes before the broadcast of their operands. */
bool mix_pass_sink_broadcasts(mix_ir *ir);
/* Evaluates small values that depend only on constants. */
bool mix_pass_constant_fold(mix_ir *ir);
/* Computes the same op on the same operands once. */
bool mix_pass_cse(mix_ir *ir);
/* Removes nodes without uses. */
bool mix_pass_dce(mix_ir *ir);
/* Rounds the operands of 16-bit products to a narrow format and back, where mix_simulate_products asks. */
bool mix_pass_simulate_formats(mix_ir *ir);
/* Turns variable = select(scalar, new, old) into a store of `new` under a guard. */
bool mix_pass_select_to_predicate(mix_ir *ir);
/* Makes small products that upcast 16-bit operands read float32 ones. */
bool mix_pass_upcast_matmul(mix_ir *ir);
/* Where memory is to be least: makes products of few examples read float32 weights, which they round. */
bool mix_pass_round_weights(mix_ir *ir);
/* Replaces casts of a variable to 16 bits by a copy that the plan maintains. */
bool mix_pass_cache_weight_casts(mix_ir *ir);
/* Turns add_n into additions, which can fuse. */
bool mix_pass_expand_add_n(mix_ir *ir);
/* Turns mean and variance of rows into one operation. */
bool mix_pass_row_moments(mix_ir *ir);
/* Turns element-wise nodes into programs. */
bool mix_pass_fuse(mix_ir *ir);
/* Fuses a program that reads a product into the product's kernel. */
bool mix_pass_fuse_epilogues(mix_ir *ir);
/* Makes float32 products of widened 16-bit values read these. */
bool mix_pass_narrow_operands(mix_ir *ir);
/* Under jit_compile: keeps 16-bit values inside a program as float32. */
bool mix_pass_excess_precision(mix_ir *ir);
/* Begins exchanges early and waits for them late. */
bool mix_pass_overlap_collectives(mix_ir *ir);
/* Computes new values of variables again behind the exchanges that need them, to write them in place. */
bool mix_pass_repeat_updates(mix_ir *ir);

/* Does the backend want the pass of this name, and is it not disabled by MIXTAPE_DISABLE_PASSES? */
bool mix_pass_wanted(const mix_ir *ir, const char *name);
/* The names of MIXTAPE_DISABLE_PASSES; NULL: none. */
const char *mix_passes_disabled(void);

/* Can `to` represent every value of `from`, including infinities, NaN, subnormal numbers and both zeros? */
bool mix_dtype_embeds(mix_dtype from, mix_dtype to);
/* Strides with which a value of `shape` is read over the iteration space `space` (0 along broadcast
 * dimensions). */
void mix_program_strides(mix_shape shape, mix_shape space, int64_t strides[MIX_MAX_RANK]);
/* By value: is it the guard of a program or a store? Memory of the ir; NULL with the error recorded. */
bool *mix_ir_conditions(mix_ir *ir);
/* Describes a contraction for the backend's queries. */
mix_product mix_ir_product(const mix_ir *ir, const mix_ir_node *node);
/* Makes product n its op that rounds the result, on operands in the dtype of the sums. Operand `rounded` (-1:
 * none) becomes `weight`, which the product rounds as it reads it; others are upcast. `wide`: value -> its
 * upcast form, for all products; -1: none yet; NULL: others stay as they are. False: out of memory. */
bool mix_ir_downcast(mix_ir *ir, int n, int rounded, int weight, int *wide);
/* The program as the epilogue of the product that its load `load` reads, over rows and columns. Its other
 * loads are numbered after the product's two operands, in order. Memory of the ir. NULL: *fits is false where
 * the space is not that matrix, else out of memory. */
mix_program *mix_epilogue_program(mix_ir *ir, const mix_program *program, int load, mix_shape matrix,
                                  bool *fits);
/* Can the element-wise node meet a value on which it fails (an integer divided by zero)? */
bool mix_ir_may_fail(const mix_ir *ir, const mix_ir_node *node);
