/* Structs of callers, which may be older than the library: options, and what queries fill. */
#include "base/error.h"

#include <string.h>

/* What mix_arguments returns for a call that it refuses; large enough for every options struct. */
static const struct {
  size_t size;
  char zeros[1 << 14];
} refused = {.size = SIZE_MAX};
const void *mix_options_refused(void) { return &refused; }

/* Every options struct starts with `size_t size`, which its macro fills in. Fields are only ever appended. */
bool mix_options_copy(void *current, size_t current_size, const void *options, const char *call) {
  memset(current, 0, current_size);
  if (options == &refused || mix_failed()) return false;
  size_t size = current_size;
  if (options) memcpy(&size, options, sizeof size);
  if (size < sizeof size || size > current_size)
    return mix_fail_value(
        "%s: the options' size is %zu; expected at most %zu, the size that Mixtape " MIXTAPE_VERSION
        " knows; use the macro, or set size to sizeof the struct, with the headers of the library that is "
        "linked",
        call, size, current_size);
  if (options) memcpy(current, options, size);
  memcpy(current, &current_size, sizeof current_size);
  return true;
}

mix_status mix_struct_fill(void *to, size_t size, const void *from, size_t current_size, const char *call) {
  if (!to || size < sizeof(size_t) || size > current_size)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: a struct of %zu bytes; expected at most %zu", call, size,
                           current_size);
  memcpy(to, from, size);
  memcpy(to, &size, sizeof size);
  return MIX_OK;
}
