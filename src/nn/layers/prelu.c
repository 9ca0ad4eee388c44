/* PReLU: a leaky ReLU with trainable slopes (He et al.: Delving deep into rectifiers; arXiv:1502.01852). */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "nn/weights/weights.h"

typedef struct prelu {
  mix_initializer *alpha_initializer;
  mix_regularizer *alpha_regularizer;
  mix_constraint *alpha_constraint;
  mix_axes shared_axes;
  mix_variable *alpha; /* owned by the layer's list */
} prelu;

static bool is_shared(const prelu *p, int axis, int rank) {
  for (int i = 0; i < p->shared_axes.count; i++) {
    int shared = p->shared_axes.axis[i];
    if (axis == (shared < 0 ? shared + rank : shared)) return true;
  }
  return false;
}

static mix_status prelu_build(mix_layer *layer, int count, const mix_shape *input_shapes) {
  char text[160];
  prelu *p = mix_layer_data(layer);
  mix_shape in = input_shapes[0], shape = {.rank = in.rank - 1};
  if (count != 1 || in.rank < 1)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: expected one input with a batch", layer->name);
  for (int i = 0; i < p->shared_axes.count; i++) {
    int axis = p->shared_axes.axis[i];
    if (axis == 0 || axis >= in.rank || axis <= -in.rank)
      return mix_fail_status(MIX_VALUE_ERROR,
                             "%s: shared axis %d is the batch or outside the input's shape %s", layer->name,
                             axis, mix_shape_text(in, text, sizeof text));
  }
  mix_input_spec spec = {.size = sizeof spec, .rank = in.rank};
  for (int i = 1; i < in.rank; i++) {
    bool shared = is_shared(p, i, in.rank);
    shape.dims[i - 1] = shared ? 1 : in.dims[i];
    if (shared) continue;
    if (in.dims[i] == MIX_UNKNOWN)
      return mix_fail_status(
          MIX_VALUE_ERROR,
          "%s: the input has shape %s; expected a known dimension %d, or name it in shared_axes", layer->name,
          mix_shape_text(in, text, sizeof text), i);
    spec.axes[spec.axis_count] = i;
    spec.axis_sizes[spec.axis_count++] = in.dims[i];
  }
  p->alpha = mix_layer_add_weight(layer, "alpha", .shape = shape, .initializer_object = p->alpha_initializer,
                                  .regularizer_object = p->alpha_regularizer,
                                  .constraint_object = p->alpha_constraint);
  return mix_layer_set_input_spec(layer, &spec);
}

static mix_list *prelu_call(mix_layer *layer, const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0),
             *alpha = mix_variable_value(((const prelu *)mix_layer_data(layer))->alpha);
  return mix_one_result(mix_add(mix_relu(x), mix_multiply(mix_negative(alpha), mix_relu(mix_negative(x)))));
}

static mix_status prelu_config(mix_layer *layer, mix_config *config) {
  const prelu *p = mix_layer_data(layer);
  bool good =
      mix_json_set(config->object, "alpha_initializer", mix_initializer_to_json(p->alpha_initializer)) &&
      mix_json_set(config->object, "alpha_regularizer", mix_regularizer_to_json(p->alpha_regularizer)) &&
      mix_json_set(config->object, "alpha_constraint", mix_constraint_to_json(p->alpha_constraint));
  json_t *shared = p->shared_axes.count ? json_array() : json_null();
  for (int i = 0; i < p->shared_axes.count; i++)
    json_array_append_new(shared, json_integer(p->shared_axes.axis[i]));
  return mix_json_set(config->object, "shared_axes", shared) && good ? MIX_OK : mix_error();
}

static void prelu_finalize(mix_layer *layer) {
  prelu *p = mix_layer_data(layer);
  mix_release(p->alpha_initializer);
  mix_release(p->alpha_regularizer);
  mix_release(p->alpha_constraint);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "PReLU",
                                      .instance_size = sizeof(prelu),
                                      .build = prelu_build,
                                      .call = prelu_call,
                                      .output_shape = mix_layer_same_shape,
                                      .get_config = prelu_config,
                                      .finalize = prelu_finalize,
                                      .supports_masking = true};

mix_prelu_options mix_prelu_defaults(void) { return (mix_prelu_options){.size = sizeof(mix_prelu_options)}; }

mix_layer *mix_prelu_with(const mix_prelu_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_prelu_options, o, options, "prelu");
  if (!mix_axes_option(o.shared_axes, "prelu", "shared_axes")) return NULL;
  mix_initializer *initializer =
      mix_initializer_or(o.alpha_initializer, o.alpha_initializer_object, "zeros", "prelu");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "prelu");
  if (!layer) return NULL;
  *(prelu *)layer->data = (prelu){.alpha_initializer = mix_retain(initializer),
                                  .alpha_regularizer = mix_retain(o.alpha_regularizer),
                                  .alpha_constraint = mix_retain(o.alpha_constraint),
                                  .shared_axes = o.shared_axes};
  return mix_scoped(layer);
}

mix_layer *mix_prelu_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_prelu(
      MIX_COMMON_CONFIG(c),
      .alpha_initializer_object = mix_initializer_from_json(json_object_get(config, "alpha_initializer")),
      .alpha_regularizer = mix_regularizer_from_json(json_object_get(config, "alpha_regularizer"), semantics),
      .alpha_constraint = mix_constraint_from_json(json_object_get(config, "alpha_constraint")),
      .shared_axes = mix_json_axes(json_object_get(config, "shared_axes")));
}
