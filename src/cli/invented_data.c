/* Data that a model takes, of random numbers. */
#include "cli/cli.h"

#include "base/error.h"
#include "model/model.h"

#include <string.h>

enum { OPEN_SIDE = 16 }; /* of dimensions that the model leaves open */

/* Random whole numbers from `first` to below `classes`. */
static mix_tensor *random_classes(mix_generator *generator, mix_shape shape, int64_t first, int64_t classes,
                                  mix_dtype dtype) {
  mix_tensor *numbers = mix_random_uniform(generator, shape, MIX_FLOAT32);
  numbers = mix_multiply(numbers, mix_scalar((double)(classes - first), MIX_FLOAT32));
  return mix_add(mix_cast(numbers, dtype), mix_scalar((double)first, dtype));
}

static mix_tensor *invented(mix_generator *generator, mix_shape shape, const cli_invention *invention,
                            mix_dtype dtype) {
  const int64_t tokens = invention->tokens;
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] < 0) shape.dims[i] = invention->side ? invention->side : OPEN_SIDE;
  mix_tensor *x = mix_dtype_is_floating(dtype) ? mix_random_uniform(generator, shape, MIX_FLOAT32)
                  : tokens                     ? random_classes(generator, shape, 1, tokens, dtype)
                                               : random_classes(generator, shape, 0, 2, dtype);
  return x && mix_evaluate(1, &x) == MIX_OK ? x : NULL;
}

static void *one_or_list(mix_list *list) { return mix_list_count(list) == 1 ? mix_list_get(list, 0) : list; }

static bool begins(const mix_loss *loss, const char *text) {
  return loss && loss->kind && !strncmp(loss->kind->class_name, text, strlen(text));
}

/* Classes for a loss that takes them, as numbers or one-hot, else numbers of the output's shape. */
static mix_tensor *labels_for(mix_generator *generator, const mix_loss *loss, mix_shape shape,
                              int64_t classes) {
  const bool sparse = begins(loss, "Sparse"), one_hot = begins(loss, "Categorical");
  if (!sparse && !one_hot) return invented(generator, shape, &(cli_invention){0}, MIX_FLOAT32);
  const int64_t count = shape.dims[--shape.rank];
  if (classes > count)
    return mix_fail_value("--classes %lld: the model has %lld", (long long)classes, (long long)count);
  mix_tensor *labels = random_classes(generator, shape, 0, classes ? classes : count, MIX_INT64);
  if (one_hot) labels = mix_one_hot(labels, count, MIX_FLOAT32);
  return labels && mix_evaluate(1, &labels) == MIX_OK ? labels : NULL;
}

/* The shape of output i for that many rows; predicts where the model does not say it. */
static mix_shape output_shape(mix_model *model, int i, const cli_part *part, int64_t rows,
                              mix_list **outputs) {
  mix_shape shape = mix_model_output_shape(model, i);
  bool known = shape.rank > 0;
  for (int d = 1; d < shape.rank; d++) known &= shape.dims[d] >= 0;
  if (known) return shape.dims[0] = rows, shape;
  if (!*outputs) *outputs = mix_model_predict(model, part->x, .batch_size = rows);
  return *outputs ? mix_tensor_shape(mix_list_get(*outputs, i)) : shape;
}

bool cli_invent_data(mix_model *model, const cli_invention *invention, cli_part *part) {
  mix_generator *generator = mix_generator_new(invention->seed);
  mix_list *inputs = mix_list_new(0, NULL), *labels = mix_list_new(0, NULL);
  for (int i = 0; i < mix_model_input_count(model) && !mix_failed(); i++) {
    mix_shape shape = mix_model_input_shape(model, i);
    if (shape.rank < 1)
      return mix_fail_value("the model was saved without the shape of its input, so no data can be "
                            "made up for it");
    shape.dims[0] = invention->rows;
    mix_list_append(inputs, invented(generator, shape, invention, mix_model_input_dtype(model, i)));
  }
  *part = (cli_part){.x = one_or_list(inputs)};
  if (invention->tokens) part->y = mix_list_get(inputs, mix_list_count(inputs) - 1);
  if (part->y || mix_failed()) return !mix_failed();
  mix_list *outputs = NULL;
  for (int i = 0; i < mix_model_output_count(model) && !mix_failed(); i++) {
    const mix_loss *loss = model->state ? model->state->losses[i] : NULL;
    const mix_shape shape = output_shape(model, i, part, invention->rows, &outputs);
    if (!mix_failed()) mix_list_append(labels, labels_for(generator, loss, shape, invention->classes));
  }
  part->y = one_or_list(labels);
  return !mix_failed();
}

cli_invention cli_invention_of(const cli_options *options, int64_t rows, uint64_t seed) {
  const bool tokens = cli_is_token_model(options->model);
  return (cli_invention){.rows = rows,
                         .side = tokens ? cli_default_length(options) : options->image_size,
                         .classes = options->classes,
                         .tokens = tokens ? cli_class_count(options) : 0,
                         .seed = seed};
}

bool cli_synthesize_data(const cli_options *options, int command, mix_model *model, cli_data *data) {
  enum { BATCHES = 4 };
  const int64_t batch = options->batch_size ? options->batch_size : MIX_DEFAULT_BATCH;
  cli_invention invention =
      cli_invention_of(options, batch < INT64_MAX / BATCHES ? BATCHES * batch : batch, options->seed);
  *data = (cli_data){.source = "synthetic"};
  if (command == CLI_TRAIN && !cli_invent_data(model, &invention, &data->train)) return false;
  invention.rows = batch, invention.seed = options->seed + 1;
  if (!cli_invent_data(model, &invention, &data->test)) return false;
  if (!mix_distribution_rank(mix_distribution_current()))
    fprintf(stderr, "data: synthetic: random numbers of seed %llu\n", (unsigned long long)options->seed);
  return true;
}
