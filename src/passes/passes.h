/* The passes, one file each: edit the intermediate form in place; false with the error recorded. MIXTAPE_DISABLE_PASSES switches
 * some off by name ("fuse,fuse_epilogues"). */
#ifndef MIX_PASSES_PASSES_H
#define MIX_PASSES_PASSES_H

#include "backend/backend.h"
#include "ir/ir.h"

bool mix_pass_remove_identities(mix_ir *ir); /* identities and casts to the same dtype become their operands */
bool mix_pass_simplify_casts(mix_ir *ir);    /* casts through a dtype that holds every value of the former go */
bool mix_pass_fold_transposes(mix_ir *ir); /* transposes of operands become flags of the product */
bool mix_pass_sink_broadcasts(mix_ir *ir); /* element-wise nodes read, and are computed, before what is broadcast */
bool mix_pass_constant_fold(mix_ir *ir);     /* small values that depend on constants alone are computed now */
bool mix_pass_cse(mix_ir *ir);      /* the same op on the same operands is computed once */
bool mix_pass_dce(mix_ir *ir);     /* what nothing needs goes */
bool mix_pass_select_to_predicate(mix_ir *ir);    /* variable = select(scalar, new, old) becomes: store new if scalar */
bool mix_pass_upcast_matmul(mix_ir *ir);    /* small products that widen 16-bit operands read them widened */
bool mix_pass_cache_weight_casts(mix_ir *ir);  /* casts of a variable to 16 bits become a copy that the plan keeps */
bool mix_pass_expand_add_n(mix_ir *ir);     /* sums of tensors become additions, which fuse */
bool mix_pass_fuse(mix_ir *ir);     /* element-wise nodes become programs */
bool mix_pass_fuse_epilogues(mix_ir *ir); /* a program that reads a product joins it */
bool mix_pass_excess_precision(mix_ir *ir);   /* under jit_compile: 16-bit values inside a program stay float32 */

/* Is the pass of this name switched off by MIXTAPE_DISABLE_PASSES? The list itself (NULL: none), and is a name in one? */
bool mix_pass_disabled(const char *name);
const char *mix_passes_disabled(void);
bool mix_pass_listed(const char *list, const char *name);

/* Does every value of `from`, infinities, NaN, subnormal numbers and both zeros included, have its like in `to`? */
bool mix_dtype_embeds(mix_dtype from, mix_dtype to);
/* Strides with which a value of `shape` is read over the iteration space `space` (0 along broadcast dimensions). */
void mix_program_strides(mix_shape shape, mix_shape space, int64_t strides[MIX_MAX_RANK]);
/* By value: does a program or a store stand under this condition? In the ir's memory; NULL with the error recorded. */
bool *mix_ir_conditions(mix_ir *ir);
/* The matmul as the backend is asked about it. */
mix_product mix_ir_product(const mix_ir *ir, const mix_ir_node *node);
/* The program as the epilogue of the product that is its load `load`: over the matrix, its other loads numbered behind the product's two
 * operands, in their order. In the ir's memory; NULL with *fits false where its space is no such matrix, else out of memory. */
mix_program *mix_epilogue_program(mix_ir *ir, const mix_program *program, int load, mix_shape matrix, bool *fits);
/* Can the element-wise node meet a value that it fails on (an integer divided by zero)? */
bool mix_ir_may_fail(const mix_ir *ir, const mix_ir_node *node);

#endif
