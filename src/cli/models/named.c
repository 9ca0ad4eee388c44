/* The table of models by name. */
#include "cli/cli.h"
#include "cli/models/models.h"

#include "base/error.h"

#include <string.h>

static const struct named {
  const char *name;
  mix_model *(*build)(int64_t image_size, int64_t classes);
  int64_t image_size, classes; /* defaults */
} models[] = {{"resnet50", cli_resnet50, 224, 1000},
              {"resnet56", cli_resnet56, 32, 10},
              {"mobilenet_v2", cli_mobilenet_v2, 224, 1000}};
enum { SMALLEST = 32, LARGEST = 4096 }; /* sides: Keras's least for these models; a bound for arithmetic */

static const struct named *find(const char *name) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    if (!strcmp(models[i].name, name)) return &models[i];
  return NULL;
}

bool cli_is_named_model(const char *name) { return find(name) != NULL; }

bool cli_named_model_fits(const cli_options *options, const char *command) {
  if (!options->image_size || (options->image_size >= SMALLEST && options->image_size <= LARGEST))
    return true;
  fprintf(stderr, "mixtape %s: --image-size %lld: %s takes sides from %d to %d\n", command,
          (long long)options->image_size, options->model, SMALLEST, LARGEST);
  return false;
}

mix_model *cli_build_named_model(const cli_options *options) {
  const struct named *named = find(options->model);
  const bool cifar10 = options->data && !strcmp(options->data, "cifar10");
  const int64_t size = options->image_size ? options->image_size : cifar10 ? 32 : named->image_size;
  const int64_t classes = options->classes ? options->classes : cifar10 ? 10 : named->classes;
  mix_model *model = named->build(size, classes);
  if (model && options->init_weights) mix_model_load_weights(model, options->init_weights);
  return mix_failed() ? NULL : model;
}
