/* Bad operand values: how kernels record them, and the message. */
#include "backend/host/kernel.h"
#include "tensor/shape.h"
#include <stdio.h>

static void keep_lowest(const mix_kernel_args *args, mix_bad_value bad) {
  mix_value_error *error = args->error;
  while (atomic_flag_test_and_set_explicit(&error->busy, memory_order_acquire)) continue;
  if (!atomic_load_explicit(&error->met, memory_order_relaxed) || bad.element < error->first.element)
    error->first = bad;
  atomic_store_explicit(&error->met, true, memory_order_relaxed);
  atomic_flag_clear_explicit(&error->busy, memory_order_release);
}

void mix_kernel_fail(const mix_kernel_args *args, const char *reason) {
  keep_lowest(args, (mix_bad_value){.what = reason});
}

void mix_kernel_fail_label(const mix_kernel_args *args, int64_t element, int64_t label, int64_t classes) {
  keep_lowest(args, (mix_bad_value){
                        .what = "label",
                        .range = "the classes",
                        .remedy = "labels are indices into the last dimension of the predictions, from 0 on",
                        .element = element,
                        .value = label,
                        .limit = classes});
}

void mix_kernel_fail_index(const mix_kernel_args *args, int64_t element, int64_t index, const char *axis,
                           int64_t length) {
  keep_lowest(args, (mix_bad_value){
                        .what = "index", .range = axis, .element = element, .value = index, .limit = length});
}

const char *mix_kernel_operands_text(const mix_kernel_args *args, char *text, size_t size) {
  size_t used = 0;
  text[0] = 0;
  for (int i = 0; i < args->input_count && used < size; i++) {
    used += (size_t)snprintf(text + used, size - used, "%s%s %s", i ? ", " : "",
                             mix_dtype_name(args->input_types[i].dtype),
                             MIX_SHAPE_TEXT(args->input_types[i].shape));
  }
  return text;
}

/* The number that a value has become which is none. */
static const char *former_text(int64_t value) {
  return value == MIX_INDEX_NAN ? ", which NaN becomes as an integer,"
         : value == INT64_MIN   ? ", which -inf becomes as an integer,"
         : value == INT64_MAX   ? ", which inf becomes as an integer,"
                                : "";
}

static const char *reason_text(const mix_bad_value *bad, char *text, size_t size) {
  if (!bad->range) return bad->what;
  char value[64];
  if (bad->value == MIX_INDEX_FRACTION)
    snprintf(value, sizeof value, "with a fraction");
  else
    snprintf(value, sizeof value, "%lld%s", (long long)bad->value, former_text(bad->value));
  snprintf(text, size, "%s %s (element %lld) is outside %s, [0, %lld)%s%s", bad->what, value,
           (long long)bad->element, bad->range, (long long)bad->limit, bad->remedy ? ": " : "",
           bad->remedy ? bad->remedy : "");
  return text;
}

void mix_value_error_text(const mix_kernel_args *args, const char *scope, char *text, size_t size) {
  char reason[256], operands[512];
  snprintf(text, size, "%s%s%s: %s; the operands are %s", args->op->name, scope ? " in " : "",
           scope ? scope : "", reason_text(&args->error->first, reason, sizeof reason),
           mix_kernel_operands_text(args, operands, sizeof operands));
}
