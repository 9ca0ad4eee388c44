/* Looking into a step: values that are logged, and values that must be numbers. */
#ifndef MIXTAPE_DEBUG_H
#define MIXTAPE_DEBUG_H

#include <mixtape/tensor.h>

MIX_BEGIN_DECLARATIONS

/* tf.print: logs "label: float32 (2, 3) [[1 2 3] [4 5 6]]", a message of level MIX_LOG_INFO (status.h); of
 * long axes the first and the last three elements. Outside a captured function at once, which evaluates the
 * tensor. In one each run logs it, in the order of the calls, whether or not anything else needs the tensor;
 * a step that fails later has logged too. The log's callback is called on a thread of the library then, and
 * must not evaluate tensors. Values and gradients are what they are without. Of symbolic tensors nothing is
 * logged. label: copied; NULL: "tensor". NotImplementedError in the body of a loop (mix_scan, recurrent
 * layers), and when a function with it is compiled for a device that takes graphs (xla, cuda). */
MIX_API mix_status mix_tensor_print(mix_tensor *tensor, const char *label);

/* tf.debugging.check_numerics: the tensor itself. If it has NaN or infinite values, the run is a ValueError
 * "check_numerics in LAYER: MESSAGE: the tensor has NaN values", "infinite values" or "NaN and infinite
 * values", and writes no variable. Its gradient is checked likewise, as in TensorFlow: so of float16, where
 * the loss scale skips steps that overflow, such a step is an error too. Of several processes all have it:
 * all must have the same checks in training, evaluation and steps that apply gradients. Outside a captured
 * function the check is at once. tensor: of a floating dtype (TypeError). message: copied; NULL: none. NULL
 * with the error recorded. */
MIX_API mix_tensor *mix_check_numerics(mix_tensor *tensor, const char *message);

MIX_END_DECLARATIONS
#endif
