/* The variables that an optimizer was built for. */
#include "optim/optimizer.h"

int mix_optimizer_index(const mix_optimizer *optimizer, const mix_variable *variable, int hint) {
  if (hint >= 0 && hint < optimizer->count && optimizer->trainable[hint] == variable) return hint;
  for (int i = 0; i < optimizer->count; i++)
    if (optimizer->trainable[i] == variable) return i;
  return -1;
}

bool mix_optimizer_overwrites(const mix_optimizer *optimizer, const mix_variable *variable) {
  bool found = variable->overwrite_with_gradient;
  for (int i = 0; optimizer->overwritten && i < mix_list_count(optimizer->overwritten) && !found; i++)
    found = mix_list_get(optimizer->overwritten, i) == variable;
  return found;
}
