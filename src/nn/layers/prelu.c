/* PReLU: a leaky ReLU with trainable slopes (He et al.: Delving deep into rectifiers; arXiv:1502.01852). */
#include "base/error.h"
#include "nn/layer/decoding.h"
#include "nn/layers/builtin.h"

typedef struct prelu {
  mix_prelu_options options;
  mix_variable *alpha; /* owned by the layer's list */
} prelu;

static bool is_shared(const mix_axes *axes, int axis, int rank) {
  for (int i = 0; i < axes->count; i++) {
    int shared = axes->axis[i];
    if (axis == (shared < 0 ? shared + rank : shared)) return true;
  }
  return false;
}

static mix_status prelu_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  prelu *p = mix_layer_data(layer);
  const mix_prelu_options *o = &p->options;
  mix_shape in = input_shapes[0], shape = {.rank = in.rank - 1};
  if (count != 1 || in.rank < 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: expected one input with a batch", layer->name);
  for (int i = 0; i < o->shared_axes.count; i++) {
    int axis = o->shared_axes.axis[i];
    if (axis == 0 || axis >= in.rank || axis <= -in.rank)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: shared axis %d is the batch or outside the input's shape %s", layer->name,
                             axis, MIX_SHAPE_TEXT(in));
  }
  mix_input_spec spec = {.size = sizeof spec, .rank = in.rank};
  for (int i = 1; i < in.rank; i++) {
    bool shared = is_shared(&o->shared_axes, i, in.rank);
    shape.dims[i - 1] = shared ? 1 : in.dims[i];
    if (shared) continue;
    if (in.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(
          MIX_VALUE_ERROR,
          "%s: the input has shape %s; expected a known dimension %d, or name it in shared_axes", layer->name,
          MIX_SHAPE_TEXT(in), i);
    spec.axes[spec.axis_count] = i;
    spec.axis_sizes[spec.axis_count++] = in.dims[i];
  }
  p->alpha = mix_layer_add_weight(
      layer, "alpha", .shape = shape, .initializer_object = o->alpha_initializer_object,
      .regularizer_object = o->alpha_regularizer, .constraint_object = o->alpha_constraint);
  return mix_layer_set_input_spec(layer, &spec);
}

static mix_list *prelu_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0),
             *alpha = mix_variable_value(((const prelu *)mix_layer_data(layer))->alpha);
  return mix_one_result(mix_add(mix_relu(x), mix_multiply(mix_negative(alpha), mix_relu(mix_negative(x)))));
}

static const mix_field_row fields[] = {
    MIX_INITIALIZER_FIELD(mix_prelu_options, alpha_initializer, "zeros"),
    {MIX_FIELD(mix_prelu_options, alpha_regularizer), &mix_field_regularizer},
    {MIX_FIELD(mix_prelu_options, alpha_constraint), &mix_field_constraint},
    {MIX_FIELD(mix_prelu_options, shared_axes), &mix_field_axis_list, .optional = true},
    {0}};
MIX_LAYER_KIND(prelu, mix_prelu_options, .fields = fields, .decodes = mix_decodes,
               MIX_LAYER_CLASS(.name = "PReLU", .instance_size = sizeof(prelu), .build = prelu_build,
                               .call = prelu_call, .output_shape = mix_layer_same_shape,
                               .supports_masking = true))
