/* The part of function capture that other files of the compiler need. */
#pragma once

#include <mixtape/function.h>
#include <stdbool.h>

/* Variables may be created outside captures and in the first capture of a function. */
bool mix_capture_may_create(void);

/* Does it run as a plan? One that runs eagerly does not. */
bool mix_function_has_plans(const mix_function *function);
/* The 16-bit dtype to which the latest plan casts an argument in float32 at once, as layers under a 16-bit
 * policy do, if it does nothing else with it; MIX_DTYPE_NONE: it does. */
mix_dtype mix_function_rounds(const mix_function *function, int argument);
/* mix_function_call with such arguments rounded before: the same results, from the same capture. NULL without
 * an error: there is no capture for them, and the call wants them as they were. */
mix_list *mix_function_call_rounded(mix_function *function, mix_list *arguments);
/* Captures and compiles the function for such arguments, without a run. False with the error recorded. */
bool mix_function_prepare(mix_function *function, mix_list *arguments);
/* The graph of a call with such arguments, before any pass (mix_ir_free). NULL with the error recorded. */
struct mix_ir *mix_function_capture(mix_function *function, mix_list *arguments);
