/* What the layers of KerasHub's models share. */
#include "base/error.h"
#include "base/alloc.h"
#include "nn/layers/activation_functions.h"
#include "nn/layers/attention/attention.h"
#include "nn/layers/hub/hub.h"
#include "nn/weights/weights.h"
#include <string.h>

/* ---- inner layers ---- */

mix_layer *mix_hub_add(mix_layer *layer, mix_layer *inner, const char *attribute, mix_shape shape) {
  if (!inner || !mix_layer_add_layer(layer, inner)) return NULL;
  inner->attribute = attribute;
  if (!layer->trainable) mix_layer_set_trainable(inner, false);
  return mix_layer_build(inner, shape) ? NULL : inner;
}

static const char *name_of(const char *attribute) { return attribute + (*attribute == '_'); }

mix_initializer *mix_hub_initializer(double stddev) {
  return stddev > 0 ? mix_initializer_new("truncated_normal", .stddev = stddev) : NULL;
}

mix_layer *mix_hub_dense(mix_layer *layer, const char *attribute, int64_t units, double stddev,
                         mix_shape shape) {
  mix_layer *made = mix_hub_layer(dense, layer, name_of(attribute), .units = units,
                                  .kernel_initializer_object = mix_hub_initializer(stddev));
  return mix_hub_add(layer, made, attribute, shape);
}

mix_layer *mix_hub_norm(mix_layer *layer, const char *attribute, double epsilon, mix_shape shape) {
  return mix_hub_add(
      layer,
      mix_hub_layer(layer_normalization, layer, name_of(attribute), .epsilon = MIX_HUB_EPSILON(epsilon)),
      attribute, shape);
}

mix_layer *mix_hub_dropout(mix_layer *layer, const char *attribute, double rate, mix_shape shape) {
  return mix_hub_add(layer, mix_hub_layer(dropout, layer, name_of(attribute), .rate = rate), attribute,
                     shape);
}

/* ---- activations ---- */

#define APPROXIMATE "gelu_approximate"

mix_tensor *mix_hub_activate(const char *name, mix_tensor *x) {
  const bool approximate = name && !strcmp(name, APPROXIMATE);
  if (!x || !name) return x;
  return mix_activate(approximate ? "gelu" : name, x, .approximate = approximate,
                      .semantics = &mix_semantics_keras3);
}

static bool resolve(const mix_field *field) {
  const char **name = field->value;
  if (*name && !strcmp(*name, APPROXIMATE)) return (*name = mix_intern(APPROXIMATE)) != NULL;
  return mix_field_activation.resolve(field);
}

/* A function of KerasHub stands in configs as an object whose config is "keras_hub>NAME". */
static bool read_activation(const mix_field *field, const json_t *value) {
  const char *text = json_string_value(json_is_object(value) ? json_object_get(value, "config") : value);
  const char *name = text ? strrchr(text, '>') : NULL;
  if (json_is_null(value)) return true;
  if (!text) return mix_field_mistyped(field, value);
  *(const char **)field->value = mix_intern(name ? name + 1 : text);
  return !mix_failed();
}

static json_t *write(const mix_field *field) {
  const char *name = *(const char **)field->value;
  return json_string(name ? name : "linear");
}
const mix_value_kind mix_field_hub_activation = {"a string", sizeof(char *),  resolve, NULL,
                                                 write,      read_activation, NULL};

/* ---- tensors ---- */

mix_tensor *mix_hub_sum(mix_tensor *x, mix_tensor *y) {
  mix_tensor *operands[2] = {x, y};
  return x && y && mix_attention_promote(operands, 2) ? mix_add(operands[0], operands[1]) : NULL;
}

mix_tensor *mix_hub_symbolic(mix_dtype dtype, mix_shape shape) {
  mix_node *node = mix_node_placeholder(dtype, shape, true);
  mix_tensor *tensor = node ? mix_tensor_of(node, 0) : NULL;
  mix_release(node);
  return tensor;
}

mix_tensor *mix_hub_attention_mask(mix_tensor *padding_mask) {
  if (!padding_mask) return NULL;
  return mix_cast(mix_expand_dims(padding_mask, 1), MIX_BOOL);
}
