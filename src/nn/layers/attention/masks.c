/* Masks of attention, which are true where a query attends to a key. */
#include "base/error.h"
#include "nn/layers/attention/attention.h"

/* The places of queries, as a column, and of keys. */
static bool places(int64_t queries, int64_t keys, mix_tensor **rows, mix_tensor **columns) {
  if (queries == MIX_UNKNOWN || keys == MIX_UNKNOWN) return false;
  *rows = mix_expand_dims(mix_range(0, (double)queries, 1, MIX_INT32), 1);
  *columns = mix_range(0, (double)keys, 1, MIX_INT32);
  return !mix_failed();
}

mix_tensor *mix_causal_mask(int64_t queries, int64_t keys) {
  mix_tensor *rows, *columns;
  return places(queries, keys, &rows, &columns) ? mix_greater_equal(rows, columns) : NULL;
}

static mix_tensor *window_mask(int64_t queries, int64_t keys, int64_t window) {
  mix_tensor *rows, *columns;
  if (!places(queries, keys, &rows, &columns)) return NULL;
  return mix_less(mix_abs(mix_subtract(rows, columns)), mix_scalar_like(rows, (double)window));
}

mix_tensor *mix_both_masks(mix_tensor *a, mix_tensor *b) { return !a ? b : !b ? a : mix_logical_and(a, b); }

/* The mask of a tensor with a new axis; NULL: it has none. */
static mix_tensor *mask_of(const mix_list *masks, int index, int axis) {
  mix_tensor *mask = masks && index < mix_list_count(masks) ? mix_list_get(masks, index) : NULL;
  return mask ? mix_expand_dims(mix_cast(mask, MIX_BOOL), axis) : NULL;
}

mix_tensor *mix_attention_mask(const mix_call_args *args, int64_t window, bool causal) {
  const mix_shape query = mix_tensor_shape(mix_call_input(args, 0)),
                  value = mix_tensor_shape(mix_call_argument(args, 0));
  mix_tensor *mask = mask_of(args->masks, 0, -1);
  mask = mix_both_masks(mask, mask_of(args->argument_masks, 0, -2));
  mask = mix_both_masks(mask, mask_of(args->argument_masks, 1, -2));
  if (causal) mask = mix_both_masks(mask, mix_causal_mask(query.dims[1], value.dims[1]));
  if (window) mask = mix_both_masks(mask, window_mask(query.dims[1], value.dims[1], window));
  mix_tensor *given = args->attention_mask;
  if (!mask || !given || mix_failed()) return mask ? mask : given;
  return mix_logical_and(mix_cast(given, MIX_BOOL), mask);
}
