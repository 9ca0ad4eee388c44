/* What ranks were given, compared within a step: digests cross the network in the message of the row counts.
 * A sum tells whether all are equal: n values v have n * sum(v * v) = sum(v) * sum(v) only if they are. */
#include "train/captured_steps.h"

#include "base/error.h"
#include "distribute/distribute.h"

/* A digest in parts so small that float32 holds the sums of the squares of so many ranks. */
enum { PARTS = 4, PART_BITS = 6, RANKS = 1 << (24 - 2 * PART_BITS) };
enum { ROWS = 2 * PARTS, NUMBERS }; /* of what is told: parts, their squares, rows */

bool mix_model_tell_ranks(mix_model *model, uint32_t digest, mix_list *batch) {
  mix_compiled_state *state = model->state;
  if (!mix_is_distributed() || mix_failed()) return !mix_failed();
  float told[NUMBERS];
  told[ROWS] = (float)mix_tensor_shape(mix_list_get(batch, 0)).dims[0];
  for (int i = 0; i < PARTS; i++) {
    told[i] = (float)(digest >> (i * PART_BITS) & ((1u << PART_BITS) - 1));
    told[PARTS + i] = told[i] * told[i];
  }
  MIX_SCOPE {
    mix_tensor *values = mix_tensor_from(told, MIX_FLOAT32, MIX_SHAPE(NUMBERS));
    if (!state->agreement && values) {
      const mix_variable_options options = {
          .size = sizeof options, .initial_value = values, .name = "agreement", .not_trainable = true};
      state->agreement = mix_retain(mix_variable_with(&options));
    } else if (values) {
      mix_variable_assign(state->agreement, values);
    }
  }
  return !mix_failed();
}

mix_tensor *mix_model_rows_of_ranks(mix_compiled_state *state, mix_tensor *rows) {
  mix_tensor *sums[] = {rows, state->agreement ? mix_variable_true_value(state->agreement) : NULL};
  if (!mix_is_distributed()) return rows;
  if (!mix_all_reduce_together(2, sums)) return NULL;
  if (sums[1]) mix_variable_assign(state->agreement, sums[1]);
  return sums[0];
}

bool mix_model_ranks_agree(mix_model *model, const char *call) {
  const double ranks = mix_rank_count();
  float told[NUMBERS];
  bool alike = true, empty = false;
  if (mix_failed() || !mix_is_distributed() || ranks > RANKS) return !mix_failed();
  MIX_SCOPE {
    if (mix_tensor_read(mix_variable_true_value(model->state->agreement), MIX_FLOAT32, told, NUMBERS) ==
        MIX_OK) {
      for (int i = 0; i < PARTS; i++)
        alike &= ranks * (double)told[PARTS + i] == (double)told[i] * (double)told[i];
      empty = told[ROWS] == 0;
    }
  }
  if (!alike)
    mix_fail_value(
        "%s: the ranks were given different data, different .rows or other options; give all ranks the same, "
        "or give all of them .rows = MIX_LOCAL if each has rows of its own",
        call);
  else if (empty)
    mix_fail_value("%s: no rank has rows in this batch; give one of them at least one row", call);
  return !mix_failed();
}
