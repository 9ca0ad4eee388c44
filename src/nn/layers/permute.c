/* Permute: reorders all axes except the batch. */
#include "base/error.h"
#include "nn/layers/builtin.h"

static mix_shape permute_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  const mix_permute_options *p = mix_layer_data(layer);
  mix_shape out = input_shapes[0];
  for (int i = 1; i < out.rank && i <= p->dims.count; i++)
    if (p->dims.axis[i - 1] < out.rank) out.dims[i] = input_shapes[0].dims[p->dims.axis[i - 1]];
  return out;
}

static mix_list *permute_call(mix_layer *layer, const mix_call_args *args) {
  const mix_permute_options *p = mix_layer_data(layer);
  mix_axes order = {.count = p->dims.count + 1};
  for (int i = 0; i < p->dims.count; i++) order.axis[i + 1] = p->dims.axis[i];
  return mix_one_result(mix_transpose(mix_call_input(args, 0), order));
}

static bool permute_check(void *options, const mix_layer_kind *kind) {
  const mix_axes *dims = &((const mix_permute_options *)options)->dims;
  bool seen[MIX_MAX_RANK] = {false}, good = dims->count > 0 && dims->count < MIX_MAX_RANK;
  for (int i = 0; good && i < dims->count; i++) {
    int axis = dims->axis[i];
    good = axis >= 1 && axis <= dims->count && !seen[axis];
    if (good) seen[axis] = true;
  }
  if (good) return true;
  return mix_fail_value("%s: dims must be the numbers from 1 to the number of axes, in any order",
                        kind->call);
}

static bool permute_ready(mix_layer *layer) {
  const mix_permute_options *o = layer->data;
  mix_input_spec spec = {.size = sizeof spec, .rank = o->dims.count + 1};
  return mix_layer_set_input_spec(layer, &spec) == MIX_OK;
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_permute_options, dims), &mix_field_axis_list}, {0}};
MIX_LAYER_KIND(permute, mix_permute_options, .fields = fields, .check = permute_check, .ready = permute_ready,
               MIX_LAYER_CLASS(.name = "Permute", .call = permute_call, .compute_mask = mix_no_mask,
                               .output_shape = permute_output_shape))
