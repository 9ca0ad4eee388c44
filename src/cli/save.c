/* What --save writes, by the end of the name. */
#include "cli/cli.h"

#include <string.h>

typedef struct ending {
  const char *text;
  mix_status (*save)(mix_model *model, const char *path);
} ending;

static const ending endings[] = {{".npz", mix_model_save_weights}};

static const ending *ending_of(const char *path) {
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t length = strlen(path), end = strlen(endings[i].text);
    if (length > end && !strcmp(path + length - end, endings[i].text)) return &endings[i];
  }
  return NULL;
}

bool cli_is_saved_name(const char *path) { return ending_of(path); }

mix_status cli_save(mix_model *model, const char *path) { return ending_of(path)->save(model, path); }
