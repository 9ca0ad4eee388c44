#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

bool cli_setup(const cli_options *options) {
  mix_set_semantics(options->semantics);
  if (options->accumulate) mix_set_accumulate(options->accumulate);
  if (options->device) mix_set_device(options->device);
  if (options->threads) mix_set_threads((int)options->threads);
  if (options->has_seed) mix_set_seed(options->seed);
  mix_set_global_policy(options->policy);
  return mix_error() == MIX_OK;
}

static bool load_npz(const char *path, cli_data *data) {
  mix_npz *npz = mix_npz_open(path);
  if (!npz) return false;
  data->x_train = mix_npz_require(npz, "x_train");
  data->y_train = mix_npz_require(npz, "y_train");
  data->x_test = mix_npz_get(npz, "x_test");
  if (data->x_test) data->y_test = mix_npz_require(npz, "y_test");
  data->source = path;
  return mix_error() == MIX_OK;
}

/* (rows, ...) as (rows, width). */
static mix_tensor *flat(mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x);
  return shape.rank <= 2 ? x : mix_reshape(x, MIX_SHAPE(shape.dims[0], -1));
}

/* Labels of one column become a vector. */
static mix_tensor *labels(mix_tensor *y) {
  mix_shape shape = mix_tensor_shape(y);
  return shape.rank == 2 && shape.dims[1] == 1 ? mix_reshape(y, MIX_SHAPE(-1)) : y;
}

bool cli_load_data(const cli_options *options, cli_data *data) {
  *data = (cli_data){0};
  size_t length = strlen(options->data);
  bool is_file = length > 4 && !strcmp(options->data + length - 4, ".npz");
  if (is_file) {
    if (!load_npz(options->data, data)) return false;
  } else if (!strcmp(options->data, "mnist") || !strcmp(options->data, "digits")) {
    mix_images images = !strcmp(options->data, "mnist") ? mix_mnist_load(.bytes = true) : mix_digits_load(.bytes = true);
    *data = (cli_data){images.x_train, images.y_train, images.x_test, images.y_test, images.source, 0};
  } else {
    fprintf(stderr, "mixtape: --data: '%s' given; expected mnist, digits or a file that ends in .npz\n", options->data);
    exit(CLI_USAGE);
  }
  if (mix_error() != MIX_OK) return false;
  data->x_train = flat(data->x_train);
  data->y_train = labels(data->y_train);
  if (data->x_test) {
    data->x_test = flat(data->x_test);
    data->y_test = labels(data->y_test);
  }
  if (mix_error() != MIX_OK) return false;
  mix_shape shape = mix_tensor_shape(data->x_train);
  data->width = shape.rank == 2 ? shape.dims[1] : 1;
  if (shape.rank == 1) data->x_train = mix_reshape(data->x_train, MIX_SHAPE(-1, 1));
  if (data->x_test && shape.rank == 1) data->x_test = mix_reshape(data->x_test, MIX_SHAPE(-1, 1));
  fprintf(stderr, "data: %s\n", data->source);
  return mix_error() == MIX_OK;
}

static bool computes_in_16_bits(void) {
  mix_dtype dtype = mix_policy_compute_dtype(mix_global_policy());
  return dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16;
}

mix_model *cli_make_model(const cli_options *options, int64_t width) {
  int64_t units = options->units ? options->units : !strcmp(mix_device(), "cuda") ? 4096 : 64;
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(width), .name = "digits");
  mix_tensor *x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_1"), inputs);
  x = mix_call(mix_dense(.units = units, .activation = "relu", .name = "dense_2"), x);
  x = mix_call(mix_dense(.units = 10, .name = "dense_logits"), x);
  /* The softmax of 16-bit logits would overflow and underflow: the last layer is float32 there. */
  mix_layer *softmax = computes_in_16_bits() ? mix_activation("softmax", .dtype = "float32", .name = "predictions")
                                             : mix_activation("softmax", .name = "predictions");
  mix_model *model = mix_model_new(inputs, mix_call(softmax, x));
  if (model && options->init_weights) mix_model_load_weights(model, options->init_weights);
  return mix_error() == MIX_OK ? model : NULL;
}

mix_optimizer *cli_make_optimizer(const cli_options *options, const mix_model *model, bool *wrapped) {
  const cli_loss_scale *scale = &options->loss_scale;
  mix_optimizer *optimizer = mix_optimizer_from_text(options->optimizer, NULL);
  *wrapped = scale->kind != CLI_SCALE_AUTO;
  if (!optimizer || scale->kind == CLI_SCALE_NONE) return optimizer;
  if (scale->kind == CLI_SCALE_AUTO) return mix_optimizer_for_policy(optimizer, mix_model_policy(model));
  bool experimental = !strcmp(options->semantics, "experimental"), keras3 = !strcmp(options->semantics, "keras3");
  if (scale->kind == CLI_SCALE_FIXED) {
    if (experimental) return mix_loss_scale_optimizer(optimizer, .loss_scale = mix_fixed_loss_scale(scale->scale));
    if (!keras3) return mix_loss_scale_optimizer(optimizer, .fixed = true, .initial_scale = scale->scale);
    char text[512]; /* Keras 3 has no fixed wrapper: every optimizer takes a loss_scale_factor */
    snprintf(text, sizeof text, "%s%sloss_scale_factor=%.17g", options->optimizer, strchr(options->optimizer, ':') ? "," : ":", scale->scale);
    return mix_optimizer_from_text(text, NULL);
  }
  if (experimental)
    return mix_loss_scale_optimizer(optimizer, .loss_scale = mix_dynamic_loss_scale(.initial_loss_scale = scale->scale, .increment_period = scale->growth_steps));
  return mix_loss_scale_optimizer(optimizer, .initial_scale = scale->scale, .dynamic_growth_steps = scale->growth_steps);
}

mix_status cli_compile(const cli_options *options, mix_model *model) {
  bool wrapped;
  mix_optimizer *optimizer = cli_make_optimizer(options, model, &wrapped);
  mix_compile_options compile = {.size = sizeof compile, .loss = options->loss, .optimizer = optimizer, .no_auto_scale_loss = wrapped, .image_bytes = true};
  static char names[1024];
  snprintf(names, sizeof names, "%s", options->metrics);
  int count = 0;
  for (char *name = strtok(names, ","); name && count < MIX_MODEL_MOST - 1; name = strtok(NULL, ",")) compile.metrics[count++] = name;
  return mix_model_compile_with(model, &compile);
}
