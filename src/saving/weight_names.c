/* Names of weights in files that hold them by name. */
#include "saving/write_weights.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include <stdio.h>
#include <string.h>

static bool is_taken(const char **names, int count, const char *name) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], name)) return true;
  return false;
}

bool mix_number_names(const char **names, int count) {
  for (int i = 0; i < count; i++) {
    const char *own = names[i];
    for (int number = 1; is_taken(names, i, names[i]); number++) {
      const size_t size = strlen(own) + 16;
      char *numbered = mix_scoped_memory(size);
      if (!numbered) return false;
      snprintf(numbered, size, "%s_%d", own, number);
      names[i] = numbered;
    }
  }
  return true;
}

const char **mix_weight_names(mix_list *weights) {
  const int count = mix_list_count(weights);
  const char **names = mix_scoped_memory(((size_t)count + 1) * sizeof *names);
  for (int i = 0; names && i < count; i++) names[i] = mix_variable_name(mix_list_items(weights)[i]);
  return names && mix_number_names(names, count) && !mix_failed() ? names : NULL;
}
