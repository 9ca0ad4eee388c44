/* Reads of a variable, with the autocast to the thread's cast dtype. */
#include "base/error.h"
#include "graph/loop_trace.h"
#include "graph/trace.h"
#include "graph/variable.h"
#include <mixtape/ops.h>

mix_tensor *mix_variable_value(mix_variable *variable) {
  mix_tensor *value = mix_variable_true_value(variable);
  if (!value) return NULL;
  mix_dtype dtype = mix_variable_dtype(variable);
  if (dtype == variable->dtype) return value;
  mix_capture *capture = mix_capture_current();
  if (!capture || mix_loop_trace_current()) return mix_cast(value, dtype);
  mix_binding *binding = mix_capture_binding(capture, variable);
  if (!binding) return NULL;
  int slot = 0;
  while (slot < 3 && binding->casts[slot].node && binding->casts[slot].dtype != dtype) slot++;
  /* A tape records only later nodes, so a cast from before it began cannot be reused. */
  mix_node *cached = binding->casts[slot].node;
  if (cached && binding->casts[slot].dtype == dtype &&
      (!mix_tapes_open() || cached->sequence >= mix_tapes_begin_sequence()))
    return mix_tensor_of(cached, 0);
  mix_tensor *cast = mix_cast(value, dtype);
  if (!cast) return NULL;
  mix_retain(cast->node);
  mix_release(cached);
  binding->casts[slot].node = cast->node;
  binding->casts[slot].dtype = dtype;
  return cast;
}
