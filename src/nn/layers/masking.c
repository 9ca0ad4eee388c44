/* Masking: zeroes and masks the steps in which every element equals mask_value. */
#include "nn/layers/builtin.h"

static mix_tensor *any_differs(mix_layer *layer, const mix_call_args *args, bool keep_dims) {
  mix_tensor *x = mix_call_input(args, 0);
  const mix_masking_options *o = mix_layer_data(layer);
  mix_tensor *differs = mix_not_equal(x, mix_scalar_like(x, o->mask_value));
  return mix_reduce_any(differs, MIX_AXES(-1), keep_dims);
}

static mix_list *masking_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  return mix_one_result(mix_multiply(x, mix_cast(any_differs(layer, args, true), mix_tensor_dtype(x))));
}

static mix_tensor *masking_mask(mix_layer *layer, const mix_call_args *args) {
  return any_differs(layer, args, false);
}

static const mix_field_row fields[] = {{MIX_FIELD(mix_masking_options, mask_value), &mix_field_number}, {0}};
MIX_LAYER_KIND(masking, mix_masking_options, .fields = fields, .built_from_start = true,
               MIX_LAYER_CLASS(.name = "Masking", .call = masking_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true, .compute_mask = masking_mask))
