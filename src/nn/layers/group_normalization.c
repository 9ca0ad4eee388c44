/* GroupNormalization (Wu, He; arXiv:1803.08494). tf_keras computes in the compute dtype, keras3 in
 * float32. */
#include "base/error.h"
#include "nn/layers/moments.h"

typedef struct group_normalization {
  mix_group_normalization_options options;
  mix_variable *gamma, *beta; /* owned by the layer's list */
} group_normalization;

/* -1 means one for each channel. */
static int64_t groups_of(const group_normalization *n, int64_t channels) {
  return n->options.groups == -1 ? channels : n->options.groups;
}

static mix_status group_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  group_normalization *n = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  mix_axes axis;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!mix_layer_axes(layer, MIX_AXES(n->options.axis), in.rank, &axis)) return mix_error();
  int64_t channels = in.dims[axis.axis[0]];
  if (axis.axis[0] == 0 || channels == MIX_UNKNOWN || in.rank == MIX_MAX_RANK)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "%s: the input has shape %s; expected a known dimension along axis %d, not the batch", layer->name,
        MIX_SHAPE_TEXT(in), n->options.axis);
  int64_t groups = groups_of(n, channels);
  if (groups > channels || channels % groups)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: %lld groups do not divide %lld channels", layer->name,
                           (long long)groups, (long long)channels);
  mix_affine_build(layer, MIX_AFFINE_OF(n), MIX_SHAPE(channels), NULL,
                   !layer->semantics->group_norm_weights_cast);
  return mix_layer_require_size(layer, in.rank, axis.axis[0], channels);
}

static mix_list *group_normalization_call(mix_layer *layer, const mix_call_args *args) {
  const group_normalization *n = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0)), *mean, *variance;
  mix_shape shape = mix_tensor_shape(x), split = {.rank = shape.rank + 1}, along = {.rank = shape.rank + 1};
  mix_axes axis, reduced = {.count = 0};
  if (!mix_layer_axes(layer, MIX_AXES(n->options.axis), shape.rank, &axis)) return NULL;
  int at = axis.axis[0];
  for (int i = 0; i < split.rank; i++) { /* (batch, ..., groups, channels per group, ...) */
    split.dims[i] = shape.dims[i <= at ? i : i - 1];
    along.dims[i] = 1;
    if (i != 0 && i != at) reduced.axis[reduced.count++] = i;
  }
  along.dims[at] = split.dims[at] = groups_of(n, shape.dims[at]);
  along.dims[at + 1] = split.dims[at + 1] = shape.dims[at] / split.dims[at];
  mix_dtype given = mix_tensor_dtype(x),
            inner = layer->semantics->group_norm_widened ? mix_widened(given) : given;
  mix_dtype result = mix_dtype_is_floating(layer->compute) ? layer->compute : given;
  x = mix_layer_reshape(mix_cast(x, inner), split);
  if (!mix_moments(x, reduced, layer->semantics->norm_output_clipped, &mean, &variance)) return NULL;
  mix_tensor *gamma = mix_affine_value(n->gamma, inner, along),
             *beta = mix_affine_value(n->beta, inner, along);
  mix_tensor *y = mix_normalized(x, mean, variance, n->options.epsilon, gamma, beta);
  /* keras3 rounds twice */
  return mix_one_result(y ? mix_cast(mix_cast(mix_layer_reshape(y, shape), given), result) : NULL);
}

static bool group_normalization_check(void *options, const mix_layer_kind *kind) {
  int64_t groups = ((const mix_group_normalization_options *)options)->groups;
  if (groups > 0 || groups == -1) return true;
  return mix_fail_value("%s: groups is %lld; expected a positive number or -1", kind->call,
                        (long long)groups);
}

static bool group_normalization_ready(mix_layer *layer) {
  layer->autocast &= layer->semantics->layer_norm_input_cast;
  return true;
}

#define FIELD(member) MIX_FIELD(mix_group_normalization_options, member)
static const mix_field_row fields[] = {
    {FIELD(groups), &mix_field_integer, .number = 32},
    {FIELD(axis), &mix_field_axis},
    {FIELD(epsilon), &mix_field_number, .number = 1e-3, .range = MIX_NOT_NEGATIVE},
    MIX_AFFINE_FIELDS(mix_group_normalization_options),
    {0}};
MIX_LAYER_KIND(group_normalization, mix_group_normalization_options, .fields = fields,
               .check = group_normalization_check, .ready = group_normalization_ready,
               MIX_LAYER_CLASS(.name = "GroupNormalization", .instance_size = sizeof(group_normalization),
                               .build = group_normalization_build, .call = group_normalization_call,
                               .output_shape = mix_layer_same_shape, .supports_masking = true))
