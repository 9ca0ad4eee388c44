/* How layers are built: once, for the shapes of their first inputs. */
#include "nn/layer/layer_build.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "nn/layer/building.h"
#include "nn/policy/quantization.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

static _Thread_local const char *map_scope;

const char *mix_map_scope_set(const char *path) {
  const char *former = map_scope;
  map_scope = path;
  return former;
}

/* Interned; NULL: out of memory, recorded. */
static const char *path_below(const char *outer, const mix_layer *layer) {
  if (!outer || !outer[0]) return layer->name;
  size_t size = strlen(outer) + strlen(layer->name) + 2;
  char *text = mix_alloc(size);
  if (!text) return NULL;
  snprintf(text, size, "%s/%s", outer, layer->name);
  const char *path = mix_intern(text);
  mix_free(text);
  return path;
}

const char *mix_layer_path_in_scope(const mix_layer *layer) { return path_below(mix_graph_scope(), layer); }

/* ---- dtypes ---- */

bool mix_layer_match_policy(mix_layer *layer, const char *path) {
  mix_policy *policy =
      path ? mix_policy_map_lookup(layer->policy, path) : mix_policy_map_default(layer->policy);
  if (!mix_policy_check_layer(policy, layer->class.name, layer->name, "call")) return false;
  mix_release(layer->matched);
  layer->matched = mix_retain(policy);
  layer->map_path = path;
  layer->compute = policy->compute;
  layer->variable = policy->variable;
  return true;
}

/* Keras gives no path to layers that are built when they are made. */
static bool match_policy(mix_layer *layer) {
  if (layer->is_model || layer->is_input) return true;
  if (layer->kind && layer->kind->built_from_start) return mix_layer_match_policy(layer, NULL);
  const char *path = path_below(map_scope ? map_scope : mix_graph_scope(), layer);
  return path && mix_layer_match_policy(layer, path);
}

bool mix_layer_choose_dtype(mix_layer *layer, mix_dtype input) {
  if (layer->policy->map && !layer->matched) return match_policy(layer);
  if (layer->compute == MIX_DTYPE_NONE && layer->variable == MIX_DTYPE_NONE)
    layer->compute = layer->variable = input;
  return true;
}

/* For configs. */
static bool keep_build_shapes(mix_layer *layer, int count, const mix_shape *shapes) {
  mix_free(layer->build_shapes);
  layer->build_shapes = mix_alloc((size_t)count * sizeof *shapes);
  layer->build_count = layer->build_shapes ? count : 0;
  if (layer->build_shapes) memcpy(layer->build_shapes, shapes, (size_t)count * sizeof *shapes);
  return layer->build_shapes;
}

static bool build(mix_layer *layer, int count, const mix_shape *shapes) {
  if (layer->built) return true;
  if (!keep_build_shapes(layer, count, shapes)) return false;
  layer->path = mix_layer_path_in_scope(layer);
  if (!layer->path) return false;
  if (layer->class.build) {
    /* Initial values do not depend on the caller. */
    mix_dtype former = mix_cast_dtype_set(MIX_DTYPE_NONE);
    const char *scope = mix_graph_scope_set(layer->path);
    const char *former_map = mix_map_scope_set(mix_map_path(layer, layer->path));
    const mix_layer *outer = mix_layer_building_set(layer);
    mix_status status = layer->class.build(layer, count, shapes);
    mix_layer_building_set(outer);
    mix_map_scope_set(former_map);
    mix_graph_scope_set(scope);
    mix_cast_dtype_set(former);
    if (status || mix_failed()) {
      mix_release(layer->weights); /* a later attempt starts over */
      layer->weights = NULL;
      return mix_fail(status ? status : MIX_INTERNAL_ERROR, "%s: build failed", layer->name);
    }
  }
  layer->built = true;
  return true;
}

/* The shapes of further tensors are those of layers that name them, up to the first that is not given. */
bool mix_layer_build_for(mix_layer *layer, mix_list *inputs, mix_list *arguments, bool are_list) {
  if (layer->built) return true;
  layer->built_for_list = are_list;
  int count = mix_list_count(inputs),
      further = layer->kind && layer->kind->call_tensors && arguments ? mix_list_count(arguments) : 0;
  mix_shape *shapes = mix_calloc((size_t)(count + further), sizeof *shapes);
  if (!shapes) return false;
  for (int i = 0; i < count; i++) shapes[i] = mix_tensor_shape(mix_list_items(inputs)[i]);
  for (int i = 0; i < further && mix_list_items(arguments)[i]; i++)
    shapes[count++] = mix_tensor_shape(mix_list_items(arguments)[i]);
  bool good = build(layer, count, shapes);
  mix_free(shapes);
  return good;
}

mix_status mix_layer_build(mix_layer *layer, mix_shape input_shape) {
  MIX_OWN_FLOAT_MODES;
  if (!mix_given(layer, &mix_layer_object_class, "layer_build", "a layer") ||
      !mix_shape_option(input_shape, "layer_build", "input_shape"))
    return mix_error();
  if (mix_layer_choose_dtype(layer, mix_floatx())) build(layer, 1, &input_shape);
  return mix_error();
}
