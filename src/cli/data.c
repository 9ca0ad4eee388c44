/* Data for the guide's model: sets of images, arrays of an .npz, tables. */
#include "cli/cli.h"

#include "base/error.h"
#include "base/format.h"
#include "base/object.h"

#include <string.h>

const cli_part *cli_part_to_test(const cli_data *data) { return data->test.x ? &data->test : &data->train; }

int64_t cli_part_rows(const cli_part *part) {
  mix_tensor *first = mix_is(part->x, &mix_list_class) ? mix_list_get(part->x, 0) : part->x;
  return mix_tensor_shape(first).dims[0];
}

bool cli_is_image_set(const char *name) {
  return !strcmp(name, "mnist") || !strcmp(name, "digits") || !strcmp(name, "cifar10");
}

mix_images cli_load_image_set(const char *name) {
  return !strcmp(name, "mnist")    ? mix_mnist_load(.bytes = true)
         : !strcmp(name, "digits") ? mix_digits_load(.bytes = true)
                                   : mix_cifar10_load(.bytes = true);
}

/* "x_train", or "x" where there is none of that name. */
static mix_tensor *training_array(mix_npz *npz, const char *name, const char *plain) {
  mix_tensor *array = mix_npz_get(npz, name);
  if (!array && !mix_failed()) array = mix_npz_get(npz, plain);
  return array || mix_failed() ? array : mix_npz_require(npz, name);
}

/* Training needs training data. */
static bool load_npz(const char *path, int command, cli_data *data) {
  mix_npz *npz = mix_npz_open(path);
  if (!npz) return false;
  if (command != CLI_TRAIN) data->test.x = mix_npz_get(npz, "x_test");
  if (!data->test.x) data->train.x = training_array(npz, "x_train", "x");
  if (command == CLI_TRAIN) data->test.x = mix_npz_get(npz, "x_test");
  if (command != CLI_PREDICT && data->train.x) data->train.y = training_array(npz, "y_train", "y");
  if (command != CLI_PREDICT && data->test.x) data->test.y = mix_npz_require(npz, "y_test");
  data->source = path;
  for (int i = 0; mix_error() == MIX_OK && i < mix_npz_count(npz); i++) {
    const char *name = mix_npz_name(npz, i);
    if (name && !strncmp(name, "sample_weight", strlen("sample_weight")))
      mix_log_message(MIX_LOG_WARNING, "%s: its %s is not used: only models from files take weights", path,
                      name);
  }
  return mix_error() == MIX_OK;
}

/* Reshapes examples to (rows, width). */
static mix_tensor *flatten(mix_tensor *x) {
  mix_shape shape = mix_tensor_shape(x);
  return !x || shape.rank == 0 || shape.rank == 2
             ? x
             : mix_reshape(x, MIX_SHAPE(shape.dims[0], shape.rank == 1 ? 1 : -1));
}

/* Reshapes labels of one column to a vector. */
static mix_tensor *labels(mix_tensor *y) {
  mix_shape shape = mix_tensor_shape(y);
  return y && shape.rank == 2 && shape.dims[1] == 1 ? mix_reshape(y, MIX_SHAPE(-1)) : y;
}

/* Checked first, for test data too, so that a bad test set does not fail after training. */
static bool check_pair(const cli_data *data, mix_tensor *x, mix_tensor *y, const char *part) {
  if (!x || mix_failed()) return !mix_failed();
  const mix_shape rows = mix_tensor_shape(x), labels = mix_tensor_shape(y);
  if (!rows.rank || !mix_shape_size(rows))
    mix_fail_value("%s: x_%s holds no examples; expected (rows, ...)", data->source, part);
  else if (y && (!labels.rank || labels.dims[0] != rows.dims[0]))
    mix_fail_value("%s: x_%s has %lld rows, y_%s %lld; they must agree", data->source, part,
                   (long long)rows.dims[0], part, (long long)(labels.rank ? labels.dims[0] : 0));
  return !mix_failed();
}

static int64_t width_of(const cli_part *part) {
  const mix_shape shape = mix_tensor_shape(part->x);
  return shape.rank == 2 ? shape.dims[1] : 1;
}

bool cli_load_data(const cli_options *options, int command, cli_data *data) {
  *data = (cli_data){0};
  if (cli_is_image_set(options->data)) {
    mix_images images = cli_load_image_set(options->data);
    *data = (cli_data){.train = {images.x_train, images.y_train},
                       .test = {images.x_test, images.y_test},
                       .source = images.source};
  } else if (!(cli_is_table(options->data) ? cli_load_table(options, command, data)
                                           : load_npz(options->data, command, data))) {
    return false;
  }
  if (mix_error() != MIX_OK) return false;
  if (!check_pair(data, data->train.x, data->train.y, "train") ||
      !check_pair(data, data->test.x, data->test.y, "test"))
    return false;
  cli_part *const parts[] = {&data->train, &data->test};
  for (int i = 0; i < 2; i++) {
    parts[i]->x = flatten(parts[i]->x);
    parts[i]->y = labels(parts[i]->y);
  }
  data->width = width_of(data->train.x ? &data->train : &data->test);
  if (data->train.x && data->test.x && width_of(&data->test) != data->width)
    return mix_fail_value("%s: x_test has %lld values an example, x_train %lld; they must agree",
                          data->source, (long long)width_of(&data->test), (long long)data->width);
  if (!mix_distribution_rank(mix_distribution_current()))
    fprintf(stderr, "data: %s\n", MIX_PRINTABLE(data->source));
  return mix_error() == MIX_OK;
}
