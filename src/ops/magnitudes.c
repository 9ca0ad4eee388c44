/* Counts of zeros, subnormals, infinities and NaNs, the extremes, and a histogram of exponents, in one
 * pass, for the numerics report. */
#include "ops/magnitudes.h"
#include "ops/rules.h"

static bool infer(mix_node *node) {
  int64_t places = MIX_MAGNITUDE_BINS + mix_magnitude_bins(mix_input_value(node, 0)->dtype);
  return mix_rule_output(node, 0, (mix_shape){.rank = 1, .dims = {places}});
}

/* MIX_OP_KEEP: observing a tensor must not change how the rewrite computes it. */
const mix_op mix_op_magnitudes = {
    .name = "magnitudes", .signature = "T->l", .types = "float", .flags = MIX_OP_KEEP, .infer = infer};

mix_tensor *mix_magnitudes(mix_tensor *x) { return mix_apply1(&mix_op_magnitudes, x); }
