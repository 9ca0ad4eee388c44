/* cuDNN's layout of recurrent weights, as hdf5_format.py of tf_keras converts it: the matrices of the gates
 * are transposed, and there are two biases. LSTM's are added; GRU with reset_after has both. */
#include "saving/cudnn_weights.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <string.h>

enum { KERNEL, RECURRENT, BIAS };

/* The LSTM or GRU at or below the layer that has these variables; NULL: there is none. */
static mix_layer *find_recurrent(mix_layer *layer, mix_variable *const *variables) {
  const char *class = mix_layer_keras_name(layer);
  if (!strcmp(class, "LSTM") || !strcmp(class, "GRU")) {
    mix_list *own = mix_layer_weights(layer);
    return own && mix_list_count(own) == MIX_CUDNN_VARIABLES &&
                   !memcmp(mix_list_items(own), variables, sizeof *variables * MIX_CUDNN_VARIABLES)
               ? layer
               : NULL;
  }
  for (int i = 0; layer->layers && i < mix_list_count(layer->layers); i++) {
    mix_layer *found = find_recurrent(mix_list_items(layer->layers)[i], variables);
    if (found) return found;
  }
  return NULL;
}

bool mix_are_cudnn_weights(mix_weights_reader *reader, mix_layer *layer, const char *const *paths,
                           mix_variable *const *variables) {
  mix_dtype dtype;
  mix_shape bias;
  const mix_layer *recurrent = find_recurrent(layer, variables);
  if (!recurrent || !mix_hdf5_describe(&reader->file->hdf5, paths[BIAS], &dtype, &bias)) return false;
  const mix_shape own = variables[BIAS]->shape;
  if (mix_shape_equal(own, bias)) return false;
  const bool is_lstm = !strcmp(mix_layer_keras_name(recurrent), "LSTM");
  if (bias.rank == 1 && bias.dims[0] == (is_lstm ? 2 * own.dims[0] : mix_shape_size(own)) &&
      (is_lstm || own.rank == 2))
    return true;
  if (!is_lstm)
    mix_fail_value("%s: %s: the bias of '%s' has shape %s, but '%s' in the file has %s; expected the same "
                   "reset_after (in C .reset_before) as in the model that was saved",
                   reader->call, reader->file->name, recurrent->name, MIX_SHAPE_TEXT(own), paths[BIAS],
                   MIX_SHAPE_TEXT(bias));
  return false;
}

/* (inputs, gates units): each gate's matrix lies there as (units, inputs). */
static mix_tensor *kernel_of(mix_tensor *x, int64_t inputs, int64_t gates, int64_t units) {
  x = mix_transpose(mix_reshape(x, MIX_SHAPE(inputs, gates, units)), MIX_AXES(1, 0, 2));
  x = mix_transpose(mix_reshape(x, MIX_SHAPE(gates, units, inputs)), MIX_AXES(2, 0, 1));
  return mix_reshape(x, MIX_SHAPE(inputs, gates * units));
}

static mix_tensor *converted(int which, mix_tensor *x, int64_t gates, int64_t units, mix_shape shape) {
  if (which == KERNEL) return kernel_of(x, shape.dims[0], gates, units);
  if (which == RECURRENT)
    return mix_reshape(mix_transpose(mix_reshape(x, MIX_SHAPE(units, gates, units)), MIX_AXES(2, 1, 0)),
                       shape);
  x = mix_reshape(x, MIX_SHAPE(2, gates * units));
  return shape.rank == 2 ? x : mix_reduce_sum(x, MIX_AXES(0), false);
}

bool mix_read_cudnn_weights(mix_weights_reader *reader, const char *const *paths,
                            mix_variable *const *variables) {
  mix_hdf5 *hdf5 = &reader->file->hdf5;
  const int64_t units = variables[RECURRENT]->shape.dims[0],
                gates = variables[RECURRENT]->shape.dims[1] / (units ? units : 1);
  mix_weights_reader check = *reader;
  check.assign = false;
  for (int i = 0; i < BIAS; i++)
    if (!mix_read_variable(&check, paths[i], variables[i])) return false;
  for (int i = 0; reader->assign && i < MIX_CUDNN_VARIABLES && !mix_failed(); i++)
    MIX_SCOPE {
      mix_tensor *value = mix_hdf5_tensor(hdf5, paths[i]);
      if (value) value = converted(i, value, gates, units, variables[i]->shape);
      if (value) mix_variable_assign(variables[i], mix_cast(value, variables[i]->dtype));
    }
  return !mix_failed();
}
