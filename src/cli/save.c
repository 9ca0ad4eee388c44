/* What --save and convert write, by the end of the name. */
#include "cli/cli.h"

#include <string.h>

static mix_status save_model(mix_model *model, const char *path) { return mix_model_save(model, path); }

typedef struct ending {
  const char *text;
  mix_status (*save)(mix_model *model, const char *path);
} ending;

/* The longer one of two that fit comes first. */
static const ending endings[] = {{".keras", save_model},
                                 {".weights.h5", mix_model_save_weights},
                                 {".h5", save_model},
                                 {".npz", mix_model_save_weights}};

static const ending *ending_of(const char *path) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t length = strlen(path), end = strlen(endings[i].text);
    if (length > end && !strcmp(path + length - end, endings[i].text)) return &endings[i];
  }
  return NULL;
}

bool cli_is_saved_name(const char *path) { return ending_of(path); }

mix_status cli_save(mix_model *model, const char *path) { return ending_of(path)->save(model, path); }
