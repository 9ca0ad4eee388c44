/* Is the whole value of a divided variable here? */
#include "base/error.h"
#include "graph/divided_variable.h"

bool mix_variable_is_here(const mix_variable *variable) {
  const mix_variable_share *share = variable->share;
  return !share || (mix_variable_has_whole(variable) && share->written_at == share->clock->version);
}

bool mix_variable_was_assigned(const mix_variable *variable) {
  return variable->share && !variable->share->gathered && mix_variable_is_here(variable);
}

bool mix_variable_check_here(const mix_variable *variable, const char *call) {
  if (mix_variable_is_here(variable)) return true;
  return mix_fail_runtime("%s: '%s' is divided among the ranks; call mix_optimizer_gather_state on all ranks "
                          "before one reads or saves it",
                          call, variable->name);
}
