/* check_numerics copies its operand, and fails if that is not finite. print logs it; the number that it
 * returns orders the prints. */
#include "backend/host/debug_ops.h"

#include "base/error.h"
#include "ops/debug_ops.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include "tensor/values_text.h"
#include <math.h>
#include <string.h>

static bool serial(const mix_kernel_args *args) { return true; }

static void check_numerics_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_type type = args->input_types[0];
  const int64_t count = mix_shape_size(type.shape);
  int has = 0;
  for (int64_t i = 0; i < count; i++) {
    const double x = mix_load_double(args->inputs[0], type.dtype, i);
    if (isnan(x))
      has |= MIX_HAS_NAN;
    else if (isinf(x))
      has |= MIX_HAS_INFINITY;
  }
  if (count) memcpy(args->outputs[0], args->inputs[0], mix_value_bytes(type.dtype, type.shape));
  if (has) mix_kernel_fail(args, mix_check_numerics_reason(args->attributes, has));
}

static void print_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_print_attributes *a = args->attributes;
  char text[1600];
  mix_values_text(args->inputs[0], args->input_types[0], text, sizeof text);
  mix_log_message(MIX_LOG_INFO, "%s: %s", a->label ? a->label : "tensor", text);
  memcpy(args->outputs[0], args->inputs[1], sizeof(int64_t));
}

const mix_kernel mix_host_check_numerics = {
    .name = "check_numerics", .run = check_numerics_run, .serial = serial};
const mix_kernel mix_host_print = {.name = "print", .run = print_run, .serial = serial};
