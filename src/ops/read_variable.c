/* Reads of a variable, with the autocast to the thread's cast dtype. */
#include "graph/variable.h"
#include <mixtape/ops.h>

/* Each read casts by itself, so that gradients of several reads add up in the variable's dtype; the pass cse
 * makes the casts one. */
mix_tensor *mix_variable_value(mix_variable *variable) {
  mix_tensor *value = mix_variable_true_value(variable);
  if (!value) return NULL;
  const mix_dtype dtype = mix_variable_dtype(variable);
  return dtype == variable->dtype ? value : mix_cast(value, dtype);
}
