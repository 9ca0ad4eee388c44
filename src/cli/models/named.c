/* The table of models by name. */
#include "cli/cli.h"
#include "cli/models/models.h"

#include "base/error.h"

#include <string.h>

static const struct named {
  const char *name;
  mix_model *(*build)(int64_t image_size, int64_t classes); /* NULL: not of square images */
  int64_t image_size, classes;                              /* defaults */
  bool tokens;
} models[] = {{"guide", NULL, 28, 10},
              {"resnet50", cli_resnet50, 224, 1000},
              {"resnet56", cli_resnet56, 32, 10},
              {"mobilenet_v2", cli_mobilenet_v2, 224, 1000},
              {"transformer", NULL, 0, 33708, true}};
enum { SMALLEST = 32, LARGEST = 4096 }; /* sides: Keras's least for these models; a bound for arithmetic */
enum { LAYERS = 6, UNITS = 512, HEADS = 8, LENGTH = 32, MAX_LAYERS = 256, MAX_UNITS = 1 << 16 };

static const struct named *find(const char *name) {
  for (size_t i = 0; i < sizeof models / sizeof *models; i++)
    if (!strcmp(models[i].name, name)) return &models[i];
  return NULL;
}

bool cli_is_named_model(const char *name) { return find(name) != NULL; }

bool cli_is_token_model(const char *name) {
  const struct named *named = find(name);
  return named && named->tokens;
}

bool cli_is_guide(const cli_options *options) { return !strcmp(options->model, "guide"); }

int64_t cli_default_length(const cli_options *options) { return options->length ? options->length : LENGTH; }

int64_t cli_class_count(const cli_options *options) {
  const struct named *named = find(options->model);
  return options->classes ? options->classes : named ? named->classes : 0;
}

static cli_transformer_sizes transformer_sizes(const cli_options *o) {
  cli_transformer_sizes s = {.vocabulary = cli_class_count(o),
                             .layers = o->layers ? o->layers : LAYERS,
                             .units = o->units ? o->units : UNITS,
                             .heads = o->heads ? o->heads : HEADS};
  s.filter_size = o->filter_size ? o->filter_size : 4 * (s.units < MAX_UNITS ? s.units : MAX_UNITS);
  return s;
}

static bool transformer_fits(const cli_options *options, const char *command) {
  const cli_transformer_sizes s = transformer_sizes(options);
  if (options->image_size)
    fprintf(stderr, "mixtape %s: --image-size belongs to models of images, and the model is %s\n", command,
            options->model);
  else if (s.vocabulary < 2)
    fprintf(stderr, "mixtape %s: --classes %lld: %s takes at least 2 tokens, of which 0 fills up\n", command,
            (long long)s.vocabulary, options->model);
  else if (s.layers > MAX_LAYERS)
    fprintf(stderr, "mixtape %s: --layers %lld: expected at most %d\n", command, (long long)s.layers,
            MAX_LAYERS);
  else if (s.units > MAX_UNITS || s.filter_size > MAX_UNITS || cli_default_length(options) > MAX_UNITS)
    fprintf(stderr, "mixtape %s: --units, --filter-size and --length are at most %d\n", command, MAX_UNITS);
  else if (s.units % 2 || s.heads > s.units || s.units % s.heads)
    fprintf(stderr,
            "mixtape %s: --units %lld: expected an even multiple of the heads, of which there are %lld\n",
            command, (long long)s.units, (long long)s.heads);
  else
    return true;
  return false;
}

bool cli_named_model_fits(const cli_options *options, const char *command) {
  if (cli_is_token_model(options->model)) return transformer_fits(options, command);
  if (!options->image_size || (options->image_size >= SMALLEST && options->image_size <= LARGEST))
    return true;
  fprintf(stderr, "mixtape %s: --image-size %lld: %s takes sides from %d to %d\n", command,
          (long long)options->image_size, options->model, SMALLEST, LARGEST);
  return false;
}

static mix_model *build_for_images(const cli_options *options, const struct named *named) {
  const bool cifar10 = options->data && !strcmp(options->data, "cifar10");
  const int64_t size = options->image_size ? options->image_size : cifar10 ? 32 : named->image_size;
  return named->build(size, options->classes ? options->classes : cifar10 ? 10 : named->classes);
}

static mix_model *build_guide(const cli_options *options, const struct named *named, int64_t width) {
  const int64_t units = options->units                  ? options->units
                        : !strcmp(mix_device(), "cuda") ? 4096
                                                        : 64,
                side = options->image_size ? options->image_size : named->image_size;
  return cli_guide(width ? width : side * side, units, cli_class_count(options));
}

mix_model *cli_build_named_model(const cli_options *options, int64_t width) {
  const struct named *named = find(options->model);
  const cli_transformer_sizes sizes = transformer_sizes(options);
  mix_model *model = named->build    ? build_for_images(options, named)
                     : named->tokens ? cli_transformer(&sizes)
                                     : build_guide(options, named, width);
  return mix_failed() ? NULL : cli_begin_weights(options, cli_keep_float32(options, model));
}
