/* What --save and convert write, by the end of the name. */
#include "cli/cli.h"
#include "formats/file.h"
#include "model/model.h"

#include <string.h>

static mix_status save_model(mix_model *model, const char *path) { return mix_model_save(model, path); }

typedef struct ending {
  const char *text;
  mix_status (*save)(mix_model *model, const char *path);
} ending;

/* The longer one of two that fit comes first. */
static const ending endings[] = {
    {".keras", save_model}, {".weights.h5", mix_model_save_weights}, {".weights.json", NULL},
    {".h5", save_model},    {".npz", mix_model_save_weights},        {".safetensors", mix_model_save_weights},
    {"/", save_model}};

static const ending *ending_of(const char *path) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t length = strlen(path), end = strlen(endings[i].text);
    if (length > end && !strcmp(path + length - end, endings[i].text)) return &endings[i];
  }
  return NULL;
}

bool cli_is_saved_name(const char *path) { return ending_of(path); }

static bool is_folder(const char *path) { return *path && path[strlen(path) - 1] == '/'; }

const char *cli_unwritable_reason(const char *path) {
  return is_folder(path) ? mix_folder_unwritable_reason(path) : mix_file_unwritable_reason(path);
}

int cli_check_folder(const char *command, const char *path, const mix_model *model) {
  if (!path || !is_folder(path) || model->layer->origin) return CLI_OK;
  cli_say(command, "--save: '%s' is a folder, and '%s' no model of KerasHub; give a name that ends in .keras",
          path, mix_model_name(model));
  return CLI_USAGE;
}

bool cli_shards_agree(const char *command, const char *path, double max_shard_size) {
  const ending *ending = path ? ending_of(path) : NULL;
  const bool index = ending && !ending->save, weights = ending && !strcmp(ending->text, ".weights.h5");
  if (index && !max_shard_size)
    fprintf(stderr, "mixtape %s: %s is an index of shards and needs --max-shard-size GB\n", command, path);
  else if (max_shard_size && !index && !weights)
    fprintf(stderr, "mixtape %s: --max-shard-size belongs to a file that ends in .weights.json%s%s\n",
            command, path ? "; given: " : "", path ? path : "");
  else
    return true;
  return false;
}

mix_status cli_save(mix_model *model, const char *path, double max_shard_size) {
  if (!max_shard_size) return ending_of(path)->save(model, path);
  return mix_model_save_weights_with(
      model, &(const mix_save_weights_options){sizeof(mix_save_weights_options), path, max_shard_size});
}
