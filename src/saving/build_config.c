/* The shapes that layers were built for, as their objects have them (build_config). */
#include "saving/model_json.h"

#include "nn/layers/recurrent/recurrent.h"
#include <stdio.h>

static json_t *input_shape_leaf(void *context, int index) {
  const mix_functional *graph = context;
  return mix_shape_json(mix_tensor_shape(graph->inputs[index]), false);
}

static json_t *build_shapes_json(const mix_layer *layer, bool open_batch) {
  const char *const *names = layer->kind ? layer->kind->call_tensors : NULL;
  if (names && layer->semantics->build_shapes_named && layer->build_count > 1) {
    json_t *named = json_object();
    char name[32];
    for (int i = 0; i < layer->build_count; i++) {
      snprintf(name, sizeof name, "%s_shape", names[i]);
      mix_json_set(named, name, mix_shape_json(layer->build_shapes[i], open_batch));
    }
    return named;
  }
  if (!layer->built_for_list) return mix_shape_json(layer->build_shapes[0], open_batch);
  json_t *shapes = json_array();
  for (int i = 0; i < layer->build_count; i++)
    mix_json_append(shapes, mix_shape_json(layer->build_shapes[i], open_batch));
  return shapes;
}

/* The shapes that a layer was built for; NULL: its object has no build_config. */
static json_t *build_shape(mix_layer *layer, bool open_batch) {
  const mix_semantics *rules = layer->semantics;
  if (!rules->objects_have_module || layer->is_input) return NULL;
  if (mix_layer_is_functional(layer)) {
    const mix_functional *graph = mix_layer_data(layer);
    return rules->functional_saves_shape ? mix_form_fill(graph->input_form, input_shape_leaf, (void *)graph)
                                         : json_null();
  }
  if (mix_layer_is_sequential(layer)) {
    mix_shape shape = mix_sequential_shape(layer);
    return shape.rank > 0 ? mix_json_whole(mix_shape_json(shape, false)) : NULL;
  }
  if (layer->kind && layer->kind->built_from_start && rules->built_from_start_unsaved) return NULL;
  return layer->build_count ? mix_json_whole(build_shapes_json(layer, open_batch)) : NULL;
}

/* Keras 3 keeps the shapes of all arguments of a first call that had more than one. */
json_t *mix_build_config_json(mix_layer *layer, bool open_batch) {
  const mix_rnn *rnn = mix_rnn_of(layer);
  json_t *shape = build_shape(layer, open_batch), *states = json_array();
  const bool named = layer->kind && layer->kind->call_tensors && layer->semantics->build_shapes_named &&
                     layer->build_count > 1;
  if (!shape || !rnn || !rnn->called_with_states || !layer->semantics->node_objects) {
    json_decref(states);
    return shape ? mix_json_whole(json_pack("{s:o}", named ? "shapes_dict" : "input_shape", shape)) : NULL;
  }
  for (int i = 0; i < rnn->sizes.count; i++) {
    json_t *state = json_pack("[n]");
    for (int d = 0; d < rnn->sizes.states[i].rank; d++)
      mix_json_append(state, json_integer(rnn->sizes.states[i].dims[d]));
    mix_json_append(states, state);
  }
  if (rnn->sizes.count == 1) { /* stands alone */
    json_t *one = json_incref(json_array_get(states, 0));
    json_decref(states);
    states = one;
  }
  return mix_json_whole(
      json_pack("{s:{s:o,s:o}}", "shapes_dict", "sequences_shape", shape, "initial_state_shape", states));
}

static json_t *operand_shape_leaf(void *context, int index) {
  return mix_shape_json(mix_tensor_shape(mix_list_get(context, index)), false);
}

void mix_put_operand_shapes(const mix_functional *graph, const mix_layer *layer, json_t *object) {
  json_t *config = json_object_get(object, "build_config");
  const int first = config && mix_call_has_form(layer) ? mix_functional_first_call(graph, layer) : -1;
  const mix_layer_call *call = first >= 0 ? graph->calls[first] : NULL;
  if (call)
    mix_json_set(config, "input_shape",
                 mix_tf_operation_shapes_json(call->keywords.form, operand_shape_leaf, call->inputs));
}
