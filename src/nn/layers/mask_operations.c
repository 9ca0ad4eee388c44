/* Operations as layers of a functional model, as Keras 3 saves the masks of Embedding, Masking, Concatenate
 * and the merging layers. A second operand is a further argument of the call. */
#include "base/error.h"
#include "base/json.h"
#include "nn/layers/builtin.h"

/* ---- configs ---- */

/* Operations have a name and their own arguments. */
static mix_status plain_config(mix_layer *layer, mix_config *config) {
  (void)layer;
  json_object_del(config->object, "trainable");
  json_object_del(config->object, "dtype");
  return MIX_OK;
}

#define MIX_OPERATION(operation, type, class_name, function, config_function, ...)                           \
  const mix_layer_kind mix_##operation##_kind = {.call = #operation,                                         \
                                                 .options_size = sizeof(type),                               \
                                                 .module = "keras.src.ops.numpy",                            \
                                                 .built_from_start = true,                                   \
                                                 MIX_LAYER_CLASS(.name = class_name, .call = function,       \
                                                                 .get_config = config_function,              \
                                                                 .no_autocast = true),                       \
                                                 __VA_ARGS__};

typedef struct plain_options {
  size_t size;
  MIX_LAYER_OPTIONS
} plain_options;

/* ---- two operands ---- */

static mix_tensor *second_operand(const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0), *other = mix_call_argument(args, 0);
  return other ? mix_cast(other, mix_tensor_dtype(x)) : NULL;
}

static mix_list *not_equal_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_one_result(mix_not_equal(mix_call_input(args, 0), second_operand(args)));
}
static mix_list *logical_or_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_one_result(mix_logical_or(mix_call_input(args, 0), second_operand(args)));
}
static mix_list *logical_and_call(mix_layer *layer, const mix_call_args *args) {
  (void)layer;
  return mix_one_result(mix_logical_and(mix_call_input(args, 0), second_operand(args)));
}
MIX_OPERATION(not_equal, plain_options, "NotEqual", not_equal_call, plain_config)
MIX_OPERATION(logical_or, plain_options, "LogicalOr", logical_or_call, plain_config)
MIX_OPERATION(logical_and, plain_options, "LogicalAnd", logical_and_call, plain_config)

/* ---- along axes ---- */

typedef struct any_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;
  bool keepdims;
} any_options;
static const mix_field_row any_fields[] = {
    {MIX_FIELD(any_options, axis), &mix_field_axis_list, .optional = true},
    {MIX_FIELD(any_options, keepdims), &mix_field_boolean},
    {0}};

static mix_list *any_call(mix_layer *layer, const mix_call_args *args) {
  const any_options *o = mix_layer_data(layer);
  return mix_one_result(mix_reduce_any(mix_call_input(args, 0), o->axis, o->keepdims));
}
static mix_list *all_call(mix_layer *layer, const mix_call_args *args) {
  const any_options *o = mix_layer_data(layer);
  return mix_one_result(mix_reduce_all(mix_call_input(args, 0), o->axis, o->keepdims));
}
/* One axis is a number. */
static mix_status any_config(mix_layer *layer, mix_config *config) {
  const any_options *o = mix_layer_data(layer);
  if (o->axis.count == 1) mix_json_set(config->object, "axis", json_integer(o->axis.axis[0]));
  return plain_config(layer, config);
}
MIX_OPERATION(any, any_options, "Any", any_call, any_config, .fields = any_fields)
MIX_OPERATION(all, any_options, "All", all_call, any_config, .fields = any_fields)

typedef struct expand_dims_options {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_axes axis;
} expand_dims_options;
static const mix_field_row expand_dims_fields[] = {{MIX_FIELD(expand_dims_options, axis), &mix_field_axes},
                                                   {0}};

static mix_list *expand_dims_call(mix_layer *layer, const mix_call_args *args) {
  const expand_dims_options *o = mix_layer_data(layer);
  if (o->axis.count > 1)
    return mix_fail(MIX_UNSUPPORTED, "expand_dims: %d axes; expected one", o->axis.count);
  return mix_one_result(mix_expand_dims(mix_call_input(args, 0), o->axis.count ? o->axis.axis[0] : -1));
}
MIX_OPERATION(expand_dims, expand_dims_options, "ExpandDims", expand_dims_call, plain_config,
              .fields = expand_dims_fields)

/* ---- constants of a tensor's shape ---- */

typedef struct like_options {
  size_t size;
  MIX_LAYER_OPTIONS
  bool has_dtype; /* else that of the tensor */
} like_options;

static bool like_check(void *options, const mix_layer_kind *kind) {
  like_options *o = options;
  (void)kind;
  o->has_dtype = o->policy || o->dtype;
  return true;
}

static mix_list *like(const mix_layer *layer, const mix_call_args *args, mix_tensor *(*make)(mix_tensor *x)) {
  const like_options *o = layer->data;
  mix_tensor *x = mix_call_input(args, 0);
  return mix_one_result(make(o->has_dtype ? mix_cast(x, layer->compute) : x));
}
static mix_list *zeros_like_call(mix_layer *layer, const mix_call_args *args) {
  return like(layer, args, mix_zeros_like);
}
static mix_list *ones_like_call(mix_layer *layer, const mix_call_args *args) {
  return like(layer, args, mix_ones_like);
}
static mix_status like_config(mix_layer *layer, mix_config *config) {
  const like_options *o = layer->data;
  const mix_status status = plain_config(layer, config);
  mix_json_set(config->object, "dtype",
               o->has_dtype ? json_string(mix_dtype_name(layer->compute)) : json_null());
  return status;
}
MIX_OPERATION(zeros_like, like_options, "ZerosLike", zeros_like_call, like_config, .check = like_check)
MIX_OPERATION(ones_like, like_options, "OnesLike", ones_like_call, like_config, .check = like_check)
