/* --policy-map: the policies of layers from a file. */
#include "cli/cli.h"

#include "base/alloc.h"
#include "base/error.h"

#include <string.h>

mix_policy *cli_read_policy_map(const char *path) {
  size_t size;
  char *text = mix_failed() ? NULL : cli_read_text(path, &size);
  mix_policy *map = text ? mix_policy_map_from_json(text) : NULL;
  mix_free(text);
  if (map || !mix_failed() || mix_error() == MIX_MEMORY_ERROR || mix_error() == MIX_IO_ERROR) return map;
  mix_error_aside error;
  mix_error_set_aside(&error);
  return mix_fail(error.status, "--policy-map %.200s: %.700s", path, error.message);
}

bool cli_take_policy_map(const char *command, cli_options *options) {
  if (!options->policy_map) return true;
  if (options->policy) {
    cli_say(command, "--policy-map %s has a policy for every layer, and --policy or --dtype is %s; give one",
            options->policy_map, options->policy);
    return false;
  }
  if (options->semantics && strcmp(options->semantics, "keras3")) {
    cli_say(command, "--policy-map is of Keras 3, and --semantics is %s; expected keras3",
            options->semantics);
    return false;
  }
  if (cli_is_named_model(options->model)) options->semantics = "keras3";
  return true;
}
