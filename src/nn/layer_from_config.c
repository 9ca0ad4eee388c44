/* Built-in layers made again from their configs. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/config.h"
#include "nn/layer.h"
#include "nn/weights.h"
#include <string.h>

/* What every layer's config holds. */
typedef struct common {
  const char *name;
  mix_policy *policy;
  bool not_trainable;
} common;

static common common_of(const json_t *config, const mix_semantics *semantics) {
  const json_t *dtype = json_object_get(config, "dtype");
  return (common){.name = mix_json_string_or(config, "name", NULL),
                  .policy = dtype && !json_is_null(dtype) ? mix_policy_from_json(dtype, semantics) : NULL,
                  .not_trainable = !mix_json_boolean_or(config, "trainable", true)};
}
#define COMMON(c) .name = (c).name, .policy = (c).policy, .not_trainable = (c).not_trainable, .semantics = semantics

/* A list of sizes, null for an unknown one. */
static mix_shape shape_of(const json_t *json) {
  mix_shape shape = {.rank = 0};
  if (!json_is_array(json)) return shape;
  size_t rank = json_array_size(json);
  if (rank > MIX_MAX_RANK) {
    mix_fail(MIX_VALUE_ERROR, "config: a shape has %zu dimensions; expected at most %d", rank, MIX_MAX_RANK);
    return shape;
  }
  shape.rank = (int)rank;
  for (size_t i = 0; i < rank; i++) {
    const json_t *dim = json_array_get(json, i);
    shape.dims[i] = json_is_integer(dim) ? json_integer_value(dim) : MIX_UNKNOWN;
  }
  return shape;
}

static mix_layer *dense_from(const json_t *config, const mix_semantics *semantics) {
  common c = common_of(config, semantics);
  mix_dense_options o = {.size = sizeof o, .units = mix_json_integer_or(config, "units", 0), COMMON(c)};
  o.activation = mix_json_string_or(config, "activation", NULL);
  o.no_bias = !mix_json_boolean_or(config, "use_bias", true);
  o.kernel_initializer_object = mix_initializer_from_json(json_object_get(config, "kernel_initializer"));
  o.bias_initializer_object = mix_initializer_from_json(json_object_get(config, "bias_initializer"));
  o.kernel_regularizer = mix_regularizer_from_json(json_object_get(config, "kernel_regularizer"), semantics);
  o.bias_regularizer = mix_regularizer_from_json(json_object_get(config, "bias_regularizer"), semantics);
  o.kernel_constraint = mix_constraint_from_json(json_object_get(config, "kernel_constraint"));
  o.bias_constraint = mix_constraint_from_json(json_object_get(config, "bias_constraint"));
  return mix_dense_with(&o);
}
static mix_layer *activation_from(const json_t *config, const mix_semantics *semantics) {
  common c = common_of(config, semantics);
  return mix_activation(mix_json_string_or(config, "activation", NULL), COMMON(c));
}
static mix_layer *flatten_from(const json_t *config, const mix_semantics *semantics) {
  common c = common_of(config, semantics);
  return mix_flatten(.data_format = mix_json_string_or(config, "data_format", NULL), COMMON(c));
}
static mix_layer *dropout_from(const json_t *config, const mix_semantics *semantics) {
  common c = common_of(config, semantics);
  return mix_dropout(.rate = mix_json_number_or(config, "rate", 0), .noise_shape = shape_of(json_object_get(config, "noise_shape")),
                     .seed = (uint64_t)mix_json_integer_or(config, "seed", 0), COMMON(c));
}

static const struct {
  const char *class_name;
  mix_layer *(*make)(const json_t *config, const mix_semantics *semantics);
} makers[] = {{"Dense", dense_from}, {"Activation", activation_from}, {"Flatten", flatten_from}, {"Dropout", dropout_from}};

mix_layer *mix_layer_from_config(const char *class_name, const json_t *config, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  for (size_t i = 0; class_name && i < sizeof makers / sizeof *makers; i++)
    if (!strcmp(makers[i].class_name, class_name)) return makers[i].make(config, mix_semantics_or_current(semantics));
  return mix_fail(MIX_VALUE_ERROR, "layer_from_config: there is no layer class '%.60s'", class_name ? class_name : "NULL");
}
