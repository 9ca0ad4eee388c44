/* How many inputs and outputs a model has, their names and shapes. */
#include "model/model.h"

#include "base/alloc.h"
#include <stdio.h>

static const mix_functional *functional_of(const mix_model *model) { return mix_layer_data(model->layer); }

int mix_model_input_count(const mix_model *model) {
  if (model->kind == MIX_SUBCLASSED) return model->input_count;
  return model->kind == MIX_SEQUENTIAL ? 1 : functional_of(model)->input_count;
}

int mix_model_output_count(const mix_model *model) {
  if (model->kind == MIX_SUBCLASSED) return model->output_count;
  return model->kind == MIX_SEQUENTIAL ? 1 : functional_of(model)->output_count;
}

const char *mix_model_output_name(const mix_model *model, int output) {
  if (model->kind == MIX_SEQUENTIAL) {
    int count = mix_list_count(model->layer->layers);
    return count ? mix_layer_name(mix_list_get(model->layer->layers, count - 1)) : "output";
  }
  if (model->kind == MIX_SUBCLASSED) {
    char name[32];
    snprintf(name, sizeof name, "output_%d", output + 1);
    return mix_intern(name);
  }
  return functional_of(model)->output_names[output];
}

static mix_shape first_shape(const mix_model *model) {
  const mix_layer *first = mix_sequential_input_layer(model->layer);
  return first ? ((const mix_input_layer_data *)first->data)->batch_shape : (mix_shape){.rank = -1};
}

const char *mix_model_input_name(const mix_model *model, int input) {
  mix_layer *layer = NULL;
  int index;
  if (model->kind == MIX_SEQUENTIAL) layer = mix_sequential_input_layer(model->layer);
  if (model->kind == MIX_FUNCTIONAL)
    layer = mix_tensor_history(functional_of(model)->inputs[input], &index)->layer;
  return layer ? mix_layer_name(layer) : NULL;
}

mix_shape mix_model_input_shape(const mix_model *model, int input) {
  if (model->kind == MIX_FUNCTIONAL) return mix_tensor_shape(functional_of(model)->inputs[input]);
  return model->kind == MIX_SEQUENTIAL ? first_shape(model) : (mix_shape){.rank = -1};
}

mix_dtype mix_model_input_dtype(const mix_model *model, int input) {
  if (model->kind == MIX_FUNCTIONAL) return mix_tensor_dtype(functional_of(model)->inputs[input]);
  const mix_layer *first = model->kind == MIX_SEQUENTIAL ? mix_sequential_input_layer(model->layer) : NULL;
  return first ? ((const mix_input_layer_data *)first->data)->dtype : mix_floatx();
}

mix_shape mix_model_output_shape(const mix_model *model, int output) {
  if (model->kind == MIX_FUNCTIONAL) return mix_tensor_shape(functional_of(model)->outputs[output]);
  mix_shape input = model->input_shape.rank ? model->input_shape : mix_model_input_shape(model, 0);
  return input.rank > 0 && output == 0 && model->layer->built ? mix_layer_output_shape(model->layer, input)
                                                              : (mix_shape){.rank = -1};
}
