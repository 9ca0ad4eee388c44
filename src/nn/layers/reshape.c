/* The Reshape layer: reshapes all axes except the batch. */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

/* Computes the dimension -1 of the target if the input's dimensions are known. False if the input does not
 * have the target's number of elements. */
static bool resolve(const mix_reshape_layer_options *r, mix_shape in, mix_shape *out) {
  int64_t elements = 1, rest = 1;
  bool in_range = true;
  int open = -1;
  *out = (mix_shape){.rank = r->target_shape.rank + 1, .dims = {in.dims[0]}};
  for (int i = 1; i < in.rank; i++) {
    if (elements >= 0 && in.dims[i] >= 0)
      in_range &= !__builtin_mul_overflow(elements, in.dims[i], &elements);
    else
      elements = MIX_UNKNOWN;
  }
  for (int i = 0; i < r->target_shape.rank; i++) {
    out->dims[i + 1] = r->target_shape.dims[i];
    if (r->target_shape.dims[i] == MIX_UNKNOWN)
      open = i + 1;
    else
      in_range &= !__builtin_mul_overflow(rest, r->target_shape.dims[i], &rest);
  }
  if (!in_range) return false;
  if (elements < 0) return true;
  if (open < 0) return elements == rest;
  if (rest == 0 || elements % rest) return false;
  out->dims[open] = elements / rest;
  return true;
}

static mix_shape reshape_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  mix_shape out;
  resolve(mix_layer_data(layer), input_shapes[0], &out);
  return out;
}

static mix_list *reshape_call(mix_layer *layer, const mix_call_args *args) {
  const mix_reshape_layer_options *r = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x), out;
  if (in.rank < 1) return mix_fail_value("%s: the input is a scalar; expected a batch", layer->name);
  if (!resolve(r, in, &out))
    return mix_fail_value("%s: an input of shape %s does not fill target_shape %s", layer->name,
                          MIX_SHAPE_TEXT(in), MIX_SHAPE_TEXT(r->target_shape));
  return mix_one_result(mix_layer_reshape(x, out));
}

static bool reshape_check(void *options, const mix_layer_kind *kind) {
  const mix_shape *target = &((const mix_reshape_layer_options *)options)->target_shape;
  int open = 0;
  bool good = target->rank >= 0 && target->rank < MIX_MAX_RANK;
  for (int i = 0; good && i < target->rank; i++) {
    open += target->dims[i] == MIX_UNKNOWN;
    good = target->dims[i] >= MIX_UNKNOWN;
  }
  if (good && open <= 1) return true;
  return mix_fail_value("%s: target_shape needs at most %d dimensions that are not negative, "
                        "one of which may be -1",
                        kind->call, MIX_MAX_RANK - 1);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_reshape_layer_options, target_shape), &mix_field_sizes},
                                       {0}};
MIX_LAYER_KIND(reshape_layer, mix_reshape_layer_options, .fields = fields, .built_from_start = true,
               .check = reshape_check, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "Reshape", .call = reshape_call, .compute_mask = mix_no_mask,
                               .output_shape = reshape_output_shape))
