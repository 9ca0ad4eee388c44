/* Functions with a gradient of their own. */
#ifndef MIXTAPE_CUSTOM_GRADIENT_H
#define MIXTAPE_CUSTOM_GRADIENT_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* Computes results, a list of tensors, from inputs, such a list. */
typedef mix_list *(*mix_custom_forward)(void *context, mix_list *inputs);
/* Computes the gradients of the inputs: a list with one for each, of its dtype and shape, or NULL for none,
 * which an input that is not floating always has. `outputs` are the results of the forward function, and
 * `output_gradients` have one for each of them: zeros where nothing flows back, NULL where it is not
 * floating. */
typedef mix_list *(*mix_custom_backward)(void *context, mix_list *inputs, mix_list *outputs,
                                         mix_list *output_gradients);

/* tf.custom_gradient: calls `forward` once, now, and returns its results. A tape differentiates them by
 * `backward`, and by nothing that `forward` did, so what that reads besides its inputs is a constant to
 * gradients; a trainable variable is a ValueError: make its value an input. `backward` is called by each
 * mix_tape_gradient that passes here, with the caller's operations, so an outer tape differentiates what it
 * computed again; that tape may use `inputs`, `outputs` and gradients, but no tensor that `forward` kept.
 * Weights are read in both functions as where this is called (autocast). `context` is borrowed until the last
 * gradient. Nothing is left of this in a captured function's plan but the operations of both functions.
 * inputs: any number from 1 on, of any dtypes. NULL with the error recorded: a TypeError for what is no
 * function, or no list of tensors, and for a gradient of another dtype; a ValueError for one of another
 * shape, and for another number of gradients. */
MIX_API mix_list *mix_custom_gradient(mix_custom_forward forward, mix_custom_backward backward, void *context,
                                      mix_list *inputs);

MIX_END_DECLARATIONS
#endif
