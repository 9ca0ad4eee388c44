/* What a sequential model begins with. */
#include "model/model.h"

mix_layer *mix_sequential_first(const mix_layer *model) {
  return mix_list_count(model->layers) ? mix_list_items(model->layers)[0] : NULL;
}

mix_layer *mix_sequential_input_layer(const mix_layer *model) {
  mix_layer *first = mix_sequential_first(model);
  return first && first->is_input ? first : NULL;
}

mix_shape mix_sequential_shape(const mix_layer *model) {
  const mix_layer *first = mix_sequential_input_layer(model);
  if (first) return ((const mix_input_layer_data *)first->data)->batch_shape;
  mix_shape shape = ((const mix_sequential_data *)model->data)->shape;
  if (shape.rank > 0) shape.dims[0] = MIX_UNKNOWN;
  return shape;
}
