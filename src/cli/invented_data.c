/* Data that a model takes, where only the work of a step matters, not its numbers. */
#include "cli/cli.h"

#include "base/error.h"
#include "model/model.h"
#include "nn/losses/loss.h"

#include <string.h>

enum { OPEN_SIDE = 16 }; /* of dimensions that the model leaves open */

static mix_tensor *invented(mix_generator *generator, mix_shape shape, mix_dtype dtype) {
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] < 0) shape.dims[i] = OPEN_SIDE;
  mix_tensor *x = mix_dtype_is_floating(dtype) ? mix_random_uniform(generator, shape, MIX_FLOAT32)
                                               : mix_fill(shape, 0, dtype);
  return x && mix_evaluate(1, &x) == MIX_OK ? x : NULL;
}

static void *one_or_list(mix_list *list) { return mix_list_count(list) == 1 ? mix_list_get(list, 0) : list; }

/* Classes for a loss that takes them, else numbers of the output's shape. */
static mix_tensor *labels_for(mix_generator *generator, const mix_loss *loss, mix_tensor *output) {
  mix_shape shape = mix_tensor_shape(output);
  const bool classes = loss && loss->kind && !strncmp(loss->kind->class_name, "Sparse", 6);
  if (classes) shape.rank--;
  return invented(generator, shape, classes ? MIX_INT64 : MIX_FLOAT32);
}

bool cli_invent_data(mix_model *model, int64_t batch, cli_part *part) {
  mix_generator *generator = mix_generator_new(1);
  mix_list *inputs = mix_list_new(0, NULL), *labels = mix_list_new(0, NULL);
  for (int i = 0; i < mix_model_input_count(model) && !mix_failed(); i++) {
    mix_shape shape = mix_model_input_shape(model, i);
    if (shape.rank < 1)
      return mix_fail(MIX_VALUE_ERROR,
                      "the model was saved without the shape of its input, so no data can be "
                      "made up for it");
    shape.dims[0] = batch;
    mix_list_append(inputs, invented(generator, shape, mix_model_input_dtype(model, i)));
  }
  *part = (cli_part){.x = one_or_list(inputs)};
  mix_list *outputs = mix_failed() ? NULL : mix_model_predict(model, part->x, .batch_size = batch);
  for (int i = 0; i < mix_list_count(outputs) && !mix_failed(); i++) {
    const mix_loss *loss = model->state ? model->state->losses[i] : NULL;
    mix_list_append(labels, labels_for(generator, loss, mix_list_get(outputs, i)));
  }
  part->y = one_or_list(labels);
  return !mix_failed();
}
