/* Options structs of callers, which may be older than the library. */
#include "base/error.h"

#include <string.h>

/* Every options struct starts with `size_t size`, which its macro fills in. Fields are only ever appended. */
bool mix_options_copy(void *current, size_t current_size, const void *options, const char *call) {
  memset(current, 0, current_size);
  size_t size = current_size;
  if (options) memcpy(&size, options, sizeof size);
  if (size < sizeof size || size > current_size) {
    mix_fail(
        MIX_VALUE_ERROR,
        "%s: the options' size is %zu; expected at most %zu, the size that Mixtape " MIXTAPE_VERSION
        " knows; use the macro, or set size to sizeof the struct, with the headers of the library that is "
        "linked",
        call, size, current_size);
    return false;
  }
  if (options) memcpy(current, options, size);
  memcpy(current, &current_size, sizeof current_size);
  return true;
}
