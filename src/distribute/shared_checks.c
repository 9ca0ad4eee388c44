/* Checks of numbers in a step that all ranks run: what is wrong on one of them is an error on all. */
#include "distribute/distribute.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/variable.h"
#include "ops/debug_ops.h"
#include <mixtape/ops.h>
#include <stdio.h>

/* 0; or infinite, NaN: what the tensor has. */
static mix_tensor *bad_values_of(mix_tensor *x) {
  mix_tensor *bad = mix_select(mix_is_finite(x), mix_scalar_like(x, 0), mix_abs(x));
  return mix_cast(mix_reduce_sum(bad, MIX_ALL_AXES, false), MIX_FLOAT32);
}

static void check_sum(const mix_node *check, mix_tensor *sum) {
  const mix_check_numerics_attributes *a = check->attributes;
  char text[256];
  snprintf(text, sizeof text, "%.180s%son another rank", a->message ? a->message : "",
           a->message ? ", " : "");
  mix_check_numerics_node(sum, text);
}

bool mix_share_checks(void) {
  mix_capture *capture = mix_capture_current();
  if (!capture || !mix_is_distributed()) return !mix_failed();
  const int begin = capture->checks_shared, all = capture->stateful_count - begin;
  mix_tensor **sums = mix_calloc((size_t)all + 1, sizeof *sums);
  for (int i = 0; sums && i < all; i++)
    if (mix_op_checks_numerics(capture->stateful[begin + i]->op))
      sums[i] = bad_values_of(mix_tensor_of(capture->stateful[begin + i], 0));
  if (sums && !mix_failed() && mix_all_reduce_together(all, sums))
    for (int i = 0; i < all; i++)
      if (sums[i]) check_sum(capture->stateful[begin + i], sums[i]);
  capture->checks_shared = capture->stateful_count;
  mix_free(sums);
  return !mix_failed();
}
