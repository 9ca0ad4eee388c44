/* The error for a name that is not in a table; it lists the known names. */
#ifndef MIX_NN_UNKNOWN_H
#define MIX_NN_UNKNOWN_H

#include "base/error.h"
#include "base/text.h"

/* `table`: an array of rows whose first member is the name. */
#define mix_unknown_name(what, given, table)                                                                 \
  mix_unknown_of(what, given, table, sizeof(table) / sizeof *(table), sizeof *(table))
static inline void *mix_unknown_of(const char *what, const char *given, const void *rows, size_t count,
                                   size_t size) {
  char list[512];
  mix_text names = {.text = list, .size = sizeof list};
  for (size_t i = 0; i < count; i++)
    mix_text_put(&names, "%s%s", i ? ", " : "", *(const char *const *)((const char *)rows + i * size));
  return mix_fail(MIX_VALUE_ERROR, "%s: '%.60s' is not known; expected one of %s", what,
                  given ? given : "NULL", list);
}

#endif
