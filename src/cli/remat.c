/* --remat MODE: the model's layers are made in a scope of Keras's RematScope (mixtape/remat.h). */
#include "base/error.h"
#include "cli/options.h"
#include "model/model.h"

#include "base/number.h"

#include <string.h>

/* The mode without what follows its colon; NULL: no mode. */
static const char *mode_of(const char *text, const char **argument) {
  static const char *const modes[] = {"full", "activations", "larger_than", "list_of_layers"};
  const size_t length = strcspn(text, ":");
  *argument = text[length] ? text + length + 1 : NULL;
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
    if (strlen(modes[i]) == length && !strncmp(modes[i], text, length)) return modes[i];
  return NULL;
}

bool cli_parse_remat(const char *text, cli_options *options) {
  const char *argument;
  options->remat_mode = mode_of(text, &argument);
  options->remat_threshold = 0;
  options->remat_layers = NULL;
  if (!options->remat_mode) return false;
  if (!strcmp(options->remat_mode, "list_of_layers"))
    return argument && cli_parse_layers(argument, CLI_REMAT_LAYERS, options);
  if (!argument) return true;
  return !strcmp(options->remat_mode, "larger_than") &&
         mix_integer_read(argument, &options->remat_threshold) && options->remat_threshold > 0;
}

static bool has_layer(mix_layer *layer, const char *name) {
  if (!strcmp(layer->name, name)) return true;
  bool found = false;
  MIX_SCOPE {
    mix_list *inner = mix_layer_layers(layer);
    for (int i = 0; i < mix_list_count(inner) && !found; i++) found = has_layer(mix_list_get(inner, i), name);
  }
  return found;
}

static mix_model *checked(const cli_options *options, mix_model *model) {
  const char *const *names = options->remat_layers;
  for (int i = 0; names && names[i]; i++)
    if (!has_layer(model->layer, names[i]))
      return mix_failed()
                 ? NULL
                 : mix_fail_value("--remat: the model has no layer '%s'; `mixtape summary` lists them",
                                  names[i]);
  return model;
}

/* The model was made in the scope too, but to repeat all of it and its layers again would keep nothing. */
static void exempt_model(mix_model *model) {
  mix_release(model->layer->remat);
  model->layer->remat = NULL;
}

mix_model *cli_make_model(cli_options *options, cli_compilation compilation, int64_t width) {
  mix_remat_scope *scope = NULL;
  if (options->remat_mode &&
      !(scope = mix_remat_scope_begin(options->remat_mode, .output_size_threshold = options->remat_threshold,
                                      .layer_names = options->remat_layers)))
    return NULL;
  mix_model *model = cli_is_model_file(options) ? cli_load_model(options, compilation)
                                                : cli_build_named_model(options, width);
  mix_remat_scope_end(scope);
  if (!model || !scope) return model;
  if (!options->remat_layers) exempt_model(model);
  return checked(options, model);
}
