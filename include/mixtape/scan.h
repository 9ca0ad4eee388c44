/* Loops over the first axis of tensors: recurrence. One node of the graph, however many steps it has, whose
 * gradient is a loop too. The layers of mixtape/recurrent.h are made of it. */
#ifndef MIXTAPE_SCAN_H
#define MIXTAPE_SCAN_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Builds one step: from the carry and step i of each of the inputs a list of two lists, the next carry (as
 * many tensors, of the same dtypes and shapes) and the outputs of the step. It runs once, whatever the number
 * of steps, and reads what it likes from outside: variables, tensors. Variables that it assigns, generators
 * that it draws from among them, have in each step the value that the step before left; a body that does so
 * runs twice. NULL with the error recorded fails the call. */
typedef mix_list *(*mix_scan_body)(void *context, mix_list *carry, mix_list *inputs);

typedef struct mix_scan_options {
  size_t size;
  mix_scan_body body; /* required */
  void *context;
  mix_list *carry;  /* the carry before the first step: a list of tensors; NULL: none */
  mix_list *inputs; /* tensors (steps, ...); NULL: none */
  /* Required where there are no inputs; else 0, or the length of their first axis. */
  int64_t steps;
  bool reverse; /* from the last step to the first; the outputs stay in the order of the inputs */
} mix_scan_options;
/* A list of two lists: the carry after the last step, and the outputs of all steps, (steps, ...) each.
 * Gradients flow to the carry, to the inputs and to all that the body reads; they are loops themselves, and
 * have gradients. Values of steps that the gradient needs are kept, (steps, ...) each; under a memory budget
 * (mix_set_memory_budget) it may be every n-th carry, from which the steps run again. The gradient of what
 * the body reads is one product over all steps where that is its form, else a sum in float32 (float64 for
 * float64), rounded once. Memory of plans and compile time do not depend on the number of steps otherwise.
 * NULL with the error recorded: a ValueError for inputs of different lengths, and for a carry that changes
 * dtype or shape. */
MIX_API mix_list *mix_scan_with(const mix_scan_options *options);
#ifndef __cplusplus
/* mix_scan(body, context, carry, inputs, .reverse = true) */
#define mix_scan(step_body, body_context, first_carry, ...)                                                  \
  mix_scan_with(MIX_ARGUMENTS("mix_scan", "inputs", #__VA_ARGS__, mix_scan_options, .body = step_body,       \
                              .context = body_context, .carry = first_carry, .inputs = __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
