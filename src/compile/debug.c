/* mix_tensor_print and mix_check_numerics: nodes of a capture, or at once. */
#include "base/error.h"
#include "base/float_modes.h"
#include "compile/evaluate.h"
#include "graph/capture.h"
#include "graph/loop_capture.h"
#include "graph/variable.h"
#include "ops/debug_ops.h"
#include "tensor/values_text.h"
#include <mixtape/debug.h>

/* Behind the print before it in this capture. */
static void print_in_runs(mix_tensor *tensor, const char *label) {
  const mix_capture *capture = mix_capture_current();
  mix_tensor *before = NULL;
  for (int i = capture->stateful_count - 1; i >= 0 && !before; i--)
    if (mix_op_prints(capture->stateful[i]->op)) before = mix_tensor_of(capture->stateful[i], 0);
  mix_print_node(tensor, label, before);
}

static void print_now(mix_tensor *tensor, const char *label) {
  char text[1600];
  mix_pinned pinned;
  if (mix_evaluate(1, &tensor) != MIX_OK || !mix_tensor_pin(tensor, &pinned)) return;
  mix_values_text(pinned.data, mix_tensor_value(tensor)->type, text, sizeof text);
  mix_tensor_unpin(&pinned);
  mix_log_message(MIX_LOG_INFO, "%s: %s", label, text);
}

mix_status mix_tensor_print(mix_tensor *tensor, const char *label) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_given(tensor, &mix_tensor_class, "tensor_print", "a tensor") || mix_tensor_is_symbolic(tensor))
    return mix_error();
  if (mix_loop_capture_current())
    return mix_fail(MIX_UNSUPPORTED,
                    "tensor_print: '%s' in the body of a loop; return it from the loop, and print all steps",
                    label ? label : "tensor"),
           mix_error();
  if (mix_capture_current())
    print_in_runs(tensor, label ? label : "tensor");
  else
    print_now(tensor, label ? label : "tensor");
  return mix_error();
}

mix_tensor *mix_check_numerics(mix_tensor *tensor, const char *message) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_given(tensor, &mix_tensor_class, "check_numerics", "a tensor")) return NULL;
  mix_tensor *checked = mix_check_numerics_node(tensor, message);
  const bool waits = mix_capture_current() || mix_loop_capture_current() || mix_tensor_is_symbolic(tensor);
  return !checked || waits || mix_evaluate(1, &checked) == MIX_OK ? checked : NULL;
}
