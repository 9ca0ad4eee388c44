/* GroupNormalization (Wu, He; arXiv:1803.08494). tf_keras computes in the compute dtype, keras3 in
 * float32. */
#include "base/error.h"
#include "nn/layers/moments.h"
#include "nn/weights/weights.h"

typedef struct group_normalization {
  int64_t groups; /* -1 means one for each channel */
  int axis;
  double epsilon;
  mix_affine affine;
} group_normalization;

static int64_t groups_of(const group_normalization *n, int64_t channels) {
  return n->groups == -1 ? channels : n->groups;
}

static mix_status group_normalization_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  group_normalization *n = mix_layer_data(layer);
  mix_shape in = input_shapes[0];
  mix_axes axis;
  if (count != 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: got %d inputs; expected one", layer->name, count);
  if (!mix_layer_axes(layer, MIX_AXES(n->axis), in.rank, &axis)) return mix_error();
  int64_t channels = in.dims[axis.axis[0]];
  if (axis.axis[0] == 0 || channels == MIX_UNKNOWN || in.rank == MIX_MAX_RANK)
    return mix_fail_status(
        MIX_VALUE_ERROR,
        "%s: the input has shape %s; expected a known dimension along axis %d, not the batch", layer->name,
        mix_shape_text(in, text, sizeof text), n->axis);
  int64_t groups = groups_of(n, channels);
  if (groups > channels || channels % groups)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: %lld groups do not divide %lld channels", layer->name,
                           (long long)groups, (long long)channels);
  mix_affine_build(layer, &n->affine, MIX_SHAPE(channels), NULL, !layer->semantics->group_norm_weights_cast);
  mix_input_spec spec = {.size = sizeof spec,
                         .rank = in.rank,
                         .axis_count = 1,
                         .axes = {axis.axis[0]},
                         .axis_sizes = {channels}};
  return mix_layer_set_input_spec(layer, &spec);
}

static mix_list *group_normalization_call(mix_layer *layer, const mix_call_args *args) {
  const group_normalization *n = mix_layer_data(layer);
  mix_tensor *x = mix_layer_floating(layer, mix_call_input(args, 0)), *mean, *variance;
  mix_shape shape = mix_tensor_shape(x), split = {.rank = shape.rank + 1}, along = {.rank = shape.rank + 1};
  mix_axes axis, reduced = {.count = 0};
  if (!mix_layer_axes(layer, MIX_AXES(n->axis), shape.rank, &axis)) return NULL;
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
  mix_tensor *gamma = mix_affine_value(n->affine.gamma, inner, along),
             *beta = mix_affine_value(n->affine.beta, inner, along);
  mix_tensor *y = mix_normalized(x, mean, variance, n->epsilon, gamma, beta);
  /* keras3 rounds twice */
  return mix_one_result(y ? mix_cast(mix_cast(mix_layer_reshape(y, shape), given), result) : NULL);
}

static mix_status group_normalization_config(mix_layer *layer, mix_config *config) {
  const group_normalization *n = mix_layer_data(layer);
  mix_config_integer(config, "groups", n->groups);
  mix_config_integer(config, "axis", n->axis);
  mix_config_number(config, "epsilon", n->epsilon);
  return mix_affine_config(&n->affine, config->object) ? MIX_OK : mix_error();
}

static void group_normalization_finalize(mix_layer *layer) {
  mix_affine_release(&((group_normalization *)mix_layer_data(layer))->affine);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "GroupNormalization",
                                      .instance_size = sizeof(group_normalization),
                                      .build = group_normalization_build,
                                      .call = group_normalization_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = group_normalization_config,
                                      .finalize = group_normalization_finalize,
                                      .supports_masking = true};

mix_group_normalization_options mix_group_normalization_defaults(void) {
  return (mix_group_normalization_options){.size = sizeof(mix_group_normalization_options)};
}

mix_layer *mix_group_normalization_with(const mix_group_normalization_options *options) {
  if (mix_failed()) return NULL;
  static const char call[] = "group_normalization";
  MIX_OPTIONS(mix_group_normalization_options, o, options, call);
  double epsilon = mix_option_number(o.epsilon, 1e-3);
  if (o.groups < -1 || !(epsilon >= 0))
    return mix_fail(
        MIX_VALUE_ERROR,
        "%s: groups is %lld, epsilon %g; expected a positive number of groups or -1, and no negative epsilon",
        call, (long long)o.groups, epsilon);
  group_normalization n = {.groups = o.groups ? o.groups : 32,
                           .axis = mix_axis_number(o.axis),
                           .epsilon = epsilon,
                           .affine = MIX_AFFINE_OF(o, call)};
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), call);
  if (!layer) return NULL;
  mix_affine_retain(&n.affine);
  *(group_normalization *)layer->data = n;
  layer->autocast &= layer->semantics->layer_norm_input_cast;
  return mix_scoped(layer);
}

mix_layer *mix_group_normalization_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  mix_group_normalization_options o = {.size = sizeof o,
                                       .groups = mix_json_integer_or(config, "groups", 32),
                                       MIX_COMMON_CONFIG(c),
                                       .axis = mix_axis_option(mix_json_integer_or(config, "axis", -1)),
                                       .epsilon = mix_json_option_number(config, "epsilon", 1e-3)};
  MIX_AFFINE_FROM(o, config, semantics);
  return mix_group_normalization_with(&o);
}
