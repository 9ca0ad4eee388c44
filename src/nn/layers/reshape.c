/* The Reshape layer: reshapes all axes except the batch. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct reshape {
  mix_shape target; /* without the batch; at most one MIX_UNKNOWN */
} reshape;

/* Computes the dimension -1 of the target if the input's dimensions are known. False if the input does not
 * have the target's number of elements. */
static bool resolve(const reshape *r, mix_shape in, mix_shape *out) {
  int64_t elements = 1, rest = 1;
  bool in_range = true;
  int open = -1;
  *out = (mix_shape){.rank = r->target.rank + 1, .dims = {in.dims[0]}};
  for (int i = 1; i < in.rank; i++) {
    if (elements >= 0 && in.dims[i] >= 0)
      in_range &= !__builtin_mul_overflow(elements, in.dims[i], &elements);
    else
      elements = MIX_UNKNOWN;
  }
  for (int i = 0; i < r->target.rank; i++) {
    out->dims[i + 1] = r->target.dims[i];
    if (r->target.dims[i] == MIX_UNKNOWN)
      open = i + 1;
    else
      in_range &= !__builtin_mul_overflow(rest, r->target.dims[i], &rest);
  }
  if (!in_range) return false;
  if (elements < 0) return true;
  if (open < 0) return elements == rest;
  if (rest == 0 || elements % rest) return false;
  out->dims[open] = elements / rest;
  return true;
}

static mix_shape reshape_output_shape(mix_layer *layer, int count, const mix_shape *input_shapes) {
  (void)count;
  mix_shape out;
  resolve(mix_layer_data(layer), input_shapes[0], &out);
  return out;
}

static mix_list *reshape_call(mix_layer *layer, const mix_call_args *args) {
  char from[160], to[160];
  const reshape *r = mix_layer_data(layer);
  mix_tensor *x = mix_call_input(args, 0);
  mix_shape in = mix_tensor_shape(x), out;
  if (in.rank < 1)
    return mix_fail(MIX_VALUE_ERROR, "%s: the input is a scalar; expected a batch", layer->name);
  if (!resolve(r, in, &out))
    return mix_fail(MIX_VALUE_ERROR, "%s: an input of shape %s does not fill target_shape %s", layer->name,
                    mix_shape_text(in, from, sizeof from), mix_shape_text(r->target, to, sizeof to));
  return mix_one_result(mix_layer_reshape(x, out));
}

static mix_status reshape_config(mix_layer *layer, mix_config *config) {
  mix_shape target = ((const reshape *)mix_layer_data(layer))->target;
  json_t *list = json_array();
  for (int i = 0; i < target.rank; i++) json_array_append_new(list, json_integer(target.dims[i]));
  mix_json_set(config->object, "target_shape", list);
  return mix_error();
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Reshape",
                                      .instance_size = sizeof(reshape),
                                      .call = reshape_call,
                                      .compute_mask = mix_no_mask,
                                      .output_shape = reshape_output_shape,
                                      .get_config = reshape_config};

mix_reshape_layer_options mix_reshape_layer_defaults(void) {
  return (mix_reshape_layer_options){.size = sizeof(mix_reshape_layer_options)};
}

mix_layer *mix_reshape_layer_with(const mix_reshape_layer_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_reshape_layer_options, o, options, "reshape_layer");
  int open = 0;
  bool good = o.target_shape.rank >= 0 && o.target_shape.rank < MIX_MAX_RANK;
  for (int i = 0; good && i < o.target_shape.rank; i++) {
    open += o.target_shape.dims[i] == MIX_UNKNOWN;
    good = o.target_shape.dims[i] >= MIX_UNKNOWN;
  }
  if (!good || open > 1)
    return mix_fail(MIX_VALUE_ERROR,
                    "reshape_layer: target_shape needs at most %d dimensions that are not negative, "
                    "one of which may be -1",
                    MIX_MAX_RANK - 1);
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "reshape_layer");
  if (layer) ((reshape *)layer->data)->target = o.target_shape;
  return mix_scoped(layer);
}

mix_layer *mix_reshape_layer_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_reshape_layer(.target_shape = mix_json_shape(json_object_get(config, "target_shape")),
                           MIX_COMMON_CONFIG(c));
}
