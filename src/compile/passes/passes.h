/* The passes, one file each: edit the intermediate form in place; false with the error recorded. MIXTAPE_DISABLE_PASSES switches
 * some off by name ("fuse,epilogue"). */
#ifndef MIX_COMPILE_PASSES_H
#define MIX_COMPILE_PASSES_H

#include "backend/backend.h"
#include "compile/ir.h"

bool mix_pass_amp(mix_ir *ir);      /* the automatic mixed precision rewrite, where the process has it on (compile/amp/) */
bool mix_pass_identity(mix_ir *ir); /* identities and casts to the same dtype become their operands */
bool mix_pass_casts(mix_ir *ir);    /* casts through a dtype that holds every value of the former go */
bool mix_pass_transposes(mix_ir *ir); /* transposes of operands become flags of the product */
bool mix_pass_broadcast(mix_ir *ir); /* element-wise nodes read, and are computed, before what is broadcast */
bool mix_pass_fold(mix_ir *ir);     /* small values that depend on constants alone are computed now */
bool mix_pass_cse(mix_ir *ir);      /* the same op on the same operands is computed once */
bool mix_pass_dead(mix_ir *ir);     /* what nothing needs goes */
bool mix_pass_guard(mix_ir *ir);    /* variable = select(scalar, new, old) becomes: store new if scalar */
bool mix_pass_widen(mix_ir *ir);    /* small products that widen 16-bit operands read them widened */
bool mix_pass_persist(mix_ir *ir);  /* casts of a variable to 16 bits become a copy that the plan keeps */
bool mix_pass_sums(mix_ir *ir);     /* sums of tensors become additions, which fuse */
bool mix_pass_fuse(mix_ir *ir);     /* element-wise nodes become programs */
bool mix_pass_epilogue(mix_ir *ir); /* a program that reads a product joins it */
bool mix_pass_excess(mix_ir *ir);   /* under jit_compile: 16-bit values inside a program stay float32 */

/* All of them, in order. */
bool mix_passes_run(mix_ir *ir);
/* The first `count` of them, as mix_passes_run does, on a copy of what it was given: nothing is logged or told. */
bool mix_passes_again(mix_ir *ir, int count);
/* One of them, whether switched off or not. False with the error recorded, also for a name that is none. */
bool mix_pass_run(mix_ir *ir, const char *name);
/* The name of the pass at this place of the order; NULL behind the last. */
const char *mix_pass_name(int index);
bool mix_pass_disabled(const char *name);
/* Says which are switched off: part of the key of compiled functions. */
uint64_t mix_passes_key(void);

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
