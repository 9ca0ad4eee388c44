/* The weights of a layer and its inner layers, and their penalties. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/key_map.h"
#include "compile/assign.h"
#include "graph/unfilled_tensor.h"
#include "nn/layer/layer.h"
#include "nn/weights/weights.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Does a weight get autocast? tf_keras: floating weights of mixed policies; keras3: all floating weights. */
static bool casts_itself(const mix_layer *layer, mix_dtype dtype, bool refused) {
  if (refused || !mix_dtype_is_floating(dtype)) return false;
  return layer->semantics->autocast_all_variables || layer->compute != layer->variable;
}

static const char *full_name(const mix_layer *layer, const char *name) {
  const char *path = layer->path ? layer->path : layer->name;
  size_t size = strlen(path) + strlen(name) + 2;
  char *text = mix_alloc(size);
  if (!text) return NULL;
  snprintf(text, size, "%s/%s", path, name);
  const char *interned = mix_intern(text);
  mix_free(text);
  return interned;
}

/* The requested dtype, or the layer's. A layer that infers its dtype keeps an explicit one permanently. */
static mix_dtype weight_dtype(mix_layer *layer, const mix_weight_options *o) {
  if (!o->dtype) return layer->variable != MIX_DTYPE_NONE ? layer->variable : mix_floatx();
  mix_dtype dtype = mix_dtype_from_name(o->dtype);
  if (!mix_dtype_size(dtype)) {
    mix_fail_value("%s: weight '%s' cannot have dtype '%.60s'", layer->name, o->name, o->dtype);
    return MIX_DTYPE_NONE;
  }
  if (layer->variable == MIX_DTYPE_NONE && layer->compute == MIX_DTYPE_NONE)
    layer->compute = layer->variable = dtype;
  return dtype;
}

static _Thread_local bool zero_weights;

bool mix_zero_weights_set(bool zero) {
  const bool former = zero_weights;
  zero_weights = zero;
  return former;
}

mix_variable *mix_layer_add_weight_with(mix_layer *layer, const mix_weight_options *options) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_add_weight", "a layer")) return NULL;
  MIX_OPTIONS(mix_weight_options, o, options, "layer_add_weight");
  if (!o.name) o.name = "variable";
  mix_dtype dtype = weight_dtype(layer, &o);
  if (dtype == MIX_DTYPE_NONE) return NULL;
  if (!mix_dtype_size(dtype))
    return mix_fail_unsupported("%s: weight '%s': no tensor has dtype %s", layer->name, o.name,
                                mix_dtype_name(dtype));
  const char *default_initializer = o.initializer_object           ? NULL
                                    : mix_dtype_is_floating(dtype) ? "glorot_uniform"
                                                                   : "zeros";
  mix_initializer *initializer = mix_initializer_choose(o.initializer ? o.initializer : default_initializer,
                                                        o.initializer_object, layer->name);
  mix_regularizer *regularizer =
      mix_regularizer_choose(o.regularizer, o.regularizer_object, layer->semantics, layer->name);
  mix_constraint *constraint = mix_constraint_choose(o.constraint, o.constraint_object, layer->name);
  if (mix_failed()) return NULL;
  if (!layer->weights) layer->weights = mix_retain(mix_list_new(0, NULL));
  const mix_fans fans = {o.fan_in, o.fan_out};
  const char *name = full_name(layer, o.name);
  if (!name) return NULL;
  mix_variable_options as = {.size = sizeof as,
                             .name = name,
                             .not_trainable = o.not_trainable,
                             .autocast = casts_itself(layer, dtype, o.no_autocast)};
  const bool zero = zero_weights && mix_shape_size(o.shape) > 0;
  if (!zero) as.initial_value = mix_initializer_call_with_fans(initializer, o.shape, dtype, &fans);
  if (mix_failed()) return NULL;
  mix_variable *variable = zero ? mix_variable_zeros(dtype, o.shape, &as) : mix_variable_take(&as);
  if (!variable || mix_list_append(layer->weights, variable)) return NULL;
  variable->regularizer = mix_retain(regularizer);
  variable->constraint = mix_retain(constraint);
  variable->overwrite_with_gradient = o.overwrite_with_gradient;
  return variable;
}

/* ---- lists ---- */

typedef enum wanted { TRAINABLE = 1, FROZEN = 2, BOTH = 3 } wanted;

/* A list in which each item stands once. */
typedef struct collection {
  mix_list *items;
  mix_key_map known;
} collection;

static void collect(collection *all, void *item) {
  if (mix_key_map_get(&all->known, mix_address_key(item)) < 0 &&
      mix_key_map_set(&all->known, mix_address_key(item), 0))
    mix_list_append(all->items, item);
}

/* The list at the end of its making; NULL with the error recorded. */
static mix_list *collected(collection *all) {
  mix_key_map_clear(&all->known);
  return mix_failed() ? NULL : all->items;
}

/* Is a weight of the layer trained? `frozen`: an outer layer is not trainable. */
static bool is_trained(const mix_layer *layer, bool frozen, const mix_variable *variable) {
  return variable->trainable && layer->trainable && !frozen;
}

/* Is it trainable by its own flag, or was when it was made? A kernel that LoRA froze keeps its place. */
static bool is_first(const mix_variable *variable) {
  return variable->trainable || (variable->saved_first && mix_dtype_is_floating(variable->dtype));
}

/* Appends the layer's own weights of the requested kinds, each once: those that are trainable by their own
 * flag, then the others. */
static void append_own(mix_layer *layer, bool frozen, wanted kinds, collection *result) {
  for (int pass = 0; pass < 2; pass++)
    for (int i = 0; layer->weights && i < mix_list_count(layer->weights); i++) {
      mix_variable *variable = mix_list_items(layer->weights)[i];
      wanted kind = is_trained(layer, frozen, variable) ? TRAINABLE : FROZEN;
      if (is_first(variable) == !pass && (kinds & kind)) collect(result, variable);
    }
}

/* Layers inside a layer that is not trainable are frozen. */
static void append_nest(mix_layer *layer, bool frozen, wanted kinds, collection *result) {
  append_own(layer, frozen, kinds, result);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_nest(mix_list_items(layer->layers)[i], frozen || !layer->trainable, kinds, result);
}

/* The order of mix_layer_weights: a layer's own, then those of its inner layers. In tf_keras a layer that is
 * no model lists all trainable weights of its nest first. */
static void append_by_layer(mix_layer *layer, bool frozen, collection *result) {
  if (layer->semantics->weights_trainable_first && !layer->is_model) {
    append_nest(layer, frozen, TRAINABLE, result);
    append_nest(layer, frozen, FROZEN, result);
    return;
  }
  append_own(layer, frozen, BOTH, result);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_by_layer(mix_list_items(layer->layers)[i], frozen || !layer->trainable, result);
}

/* ---- what layers keep beside weights ---- */

typedef mix_list *kept_list(const mix_layer *layer);
static mix_list *generators_of(const mix_layer *layer) { return layer->generators; }
static mix_list *states_of(const mix_layer *layer) { return layer->states; }

static void append_kept(mix_layer *layer, kept_list *kept, collection *result) {
  mix_list *own = kept(layer);
  for (int i = 0; own && i < mix_list_count(own); i++) collect(result, mix_list_items(own)[i]);
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_kept(mix_list_items(layer->layers)[i], kept, result);
}

static mix_list *all_kept(mix_layer *layer, kept_list *kept) {
  if (mix_failed() || !layer) return NULL;
  collection result = {.items = mix_list_new(0, NULL)};
  if (result.items) append_kept(layer, kept, &result);
  return collected(&result);
}

mix_list *mix_layer_generators(mix_layer *layer) { return all_kept(layer, generators_of); }
mix_list *mix_layer_states(mix_layer *layer) { return all_kept(layer, states_of); }

/* ---- weights ---- */

static mix_list *weights_of_kind(mix_layer *layer, wanted kinds, const char *call) {
  if (!mix_given(layer, &mix_layer_object_class, call, "a layer")) return NULL;
  collection result = {.items = mix_list_new(0, NULL)};
  if (result.items) append_nest(layer, false, kinds, &result);
  return collected(&result);
}

mix_list *mix_layer_trainable_weights(mix_layer *layer) {
  return weights_of_kind(layer, TRAINABLE, "layer_trainable_weights");
}
mix_list *mix_layer_non_trainable_weights(mix_layer *layer) {
  return weights_of_kind(layer, FROZEN, "layer_non_trainable_weights");
}

mix_list *mix_layer_weights(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_weights", "a layer")) return NULL;
  collection result = {.items = mix_list_new(0, NULL)};
  if (result.items) append_by_layer(layer, false, &result);
  return collected(&result);
}

mix_list *mix_layer_get_weights(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_get_weights", "a layer")) return NULL;
  mix_list *weights = mix_layer_weights(layer), *values = mix_list_new(0, NULL);
  if (!weights || !values) return NULL;
  for (int i = 0; i < mix_list_count(weights); i++)
    if (mix_list_append(values, mix_variable_true_value(mix_list_items(weights)[i]))) return NULL;
  return values;
}

mix_status mix_layer_set_weights(mix_layer *layer, mix_list *values) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_set_weights", "a layer") ||
      !mix_given(values, &mix_list_class, "layer_set_weights", "a list of values"))
    return mix_error();
  mix_list *weights = mix_layer_weights(layer);
  if (!weights) return mix_error();
  int count = mix_list_count(weights);
  if (mix_list_count(values) != count)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: set_weights got %d values; expected %d", layer->name,
                           mix_list_count(values), count);
  for (int i = 0; i < count; i++) { /* check all before changing the first */
    mix_variable *variable = mix_list_items(weights)[i];
    mix_tensor *value = mix_list_items(values)[i];
    if (!mix_is(value, &mix_tensor_class))
      return mix_fail_status(MIX_TYPE_ERROR, "%s: set_weights: value %d is no tensor", layer->name, i);
    if (!mix_shape_equal(mix_tensor_shape(value), variable->shape))
      return mix_fail_status(
          MIX_VALUE_ERROR, "%s: set_weights: '%s' has shape %s, but the value has shape %s", layer->name,
          variable->name, MIX_SHAPE_TEXT(variable->shape), MIX_SHAPE_TEXT(mix_tensor_shape(value)));
  }
  for (int i = 0; i < count; i++) {
    mix_variable *variable = mix_list_items(weights)[i];
    if (mix_variable_assign(variable, mix_cast(mix_list_items(values)[i], variable->dtype))) break;
  }
  return mix_error();
}

/* ---- penalties ---- */

mix_status mix_layer_add_loss(mix_layer *layer, mix_tensor *loss) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_add_loss", "a layer") ||
      !mix_given(loss, &mix_tensor_class, "layer_add_loss", "a scalar loss"))
    return mix_error();
  const mix_shape shape = mix_tensor_shape(loss);
  if (shape.rank)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "layer_add_loss: the loss of '%s' has shape %s; expected a scalar: use "
                           "mix_reduce_mean or mix_reduce_sum",
                           layer->name, MIX_SHAPE_TEXT(shape));
  return mix_list_append(layer->losses, loss);
}

static bool has(mix_list *list, const void *item) {
  for (int i = 0; i < mix_list_count(list); i++)
    if (mix_list_items(list)[i] == item) return true;
  return false;
}

/* Is it a weight of an inner layer too, which then has its penalty? */
static bool is_inner(const mix_layer *layer, const mix_variable *variable) {
  for (int i = 0; i < mix_list_count(layer->layers); i++) {
    const mix_layer *inner = mix_list_items(layer->layers)[i];
    if (inner->weights && has(inner->weights, variable)) return true;
  }
  return false;
}

/* keras3: weights that are not trained have no penalties. A layer inside several others is `seen` once. */
static void append_losses(mix_layer *layer, bool frozen, mix_list *seen, mix_list *result) {
  if (has(seen, layer) || mix_list_append(seen, layer) != MIX_OK) return;
  const bool spared = layer->semantics->frozen_weights_unregularized;
  for (int i = 0; i < mix_list_count(layer->losses); i++)
    mix_list_append(result, mix_list_items(layer->losses)[i]);
  for (int i = 0; layer->weights && i < mix_list_count(layer->weights); i++) {
    mix_variable *variable = mix_list_items(layer->weights)[i];
    if (!variable->regularizer || is_inner(layer, variable)) continue;
    if ((spared || variable->lora) && !is_trained(layer, frozen, variable)) continue;
    mix_list_append(result, mix_regularizer_call(variable->regularizer, mix_variable_true_value(variable)));
  }
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    append_losses(mix_list_items(layer->layers)[i], frozen || !layer->trainable, seen, result);
}

bool mix_layer_added_loss(const mix_layer *layer, const mix_tensor *loss) {
  if (has(layer->losses, loss)) return true;
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    if (mix_layer_added_loss(mix_list_items(layer->layers)[i], loss)) return true;
  return false;
}

mix_list *mix_layer_losses(mix_layer *layer) {
  if (!mix_given(layer, &mix_layer_object_class, "layer_losses", "a layer")) return NULL;
  mix_list *result = mix_list_new(0, NULL);
  if (!result) return NULL;
  mix_dtype former = mix_cast_dtype_set(MIX_DTYPE_NONE);
  append_losses(layer, false, mix_list_new(0, NULL), result);
  mix_cast_dtype_set(former);
  return mix_failed() ? NULL : result;
}
