/* A function's body that runs on tensors as they are, in the graph around the call. */
#pragma once

#include <mixtape/function.h>

/* Runs the body in its own scope. The results are moved to the caller's scope. */
mix_list *mix_call_inline(mix_function_body body, void *context, const char *name, mix_list *arguments);
/* Evaluates a function's arguments or results, flat lists of tensors; `what` names an item in errors. */
bool mix_evaluated(mix_list *tensors, const char *what, const char *name);
