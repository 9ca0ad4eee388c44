/* --float32-layers, layers that compute in float32 although the policy is another; other lists of layers. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

/* "a,b" as a list that NULL ends, in one allocation with the text. NULL with the error recorded. */
static const char **split(const char *text) {
  size_t count = 2;
  for (const char *c = text; *c; c++) count += *c == ',';
  const char **names = mix_calloc(1, count * sizeof *names + strlen(text) + 1);
  if (!names) return NULL;
  char *next = strcpy((char *)(names + count), text);
  for (int i = 0; next; i++) {
    names[i] = next;
    if ((next = strchr(next, ','))) *next++ = 0;
  }
  return names;
}

/* `kept`: of this process's command line; freed when another one is parsed. */
static bool parse(const char *text, const char ***kept, const char *const **names) {
  for (const char *c = text; *c; c++)
    if (*c == ',' && (c == text || c[1] == ',' || !c[1])) return false;
  mix_free(*kept);
  *names = *kept = *text ? split(text) : NULL;
  return *names != NULL;
}

bool cli_parse_layers(const char *text, cli_layer_list list, cli_options *options) {
  static const char **kept[CLI_REMAT_LAYERS + 1];
  const char *const **const members[] = {&options->float32_layers, &options->simulate_except,
                                         &options->remat_layers};
  return parse(text, &kept[list], members[list]);
}

/* The model is made anew from its structure, with the weights that it has. */
mix_model *cli_keep_float32(const cli_options *options, mix_model *model) {
  if (!model || !options->float32_layers || !options->float32_layers[0]) return model;
  mix_model *made = mix_model_from_json(mix_model_to_json(model), .no_compile = true,
                                        .float32_layers = options->float32_layers);
  mix_list *weights = made ? mix_model_get_weights(model) : NULL;
  return weights && mix_model_set_weights(made, weights) == MIX_OK ? made : NULL;
}
