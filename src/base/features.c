#include "base/features.h"
#include "base/error.h"
#include <ctype.h>
#include <mixtape/api.h>
#include <stdio.h>

const char *mix_parts(void) { return MIXTAPE_PARTS_IN; }
const char *mix_parts_left_out(void) { return MIXTAPE_PARTS_OUT; }

void mix_absent_reason(const char *part, char *text, size_t size) {
  char option[32];
  size_t length = 0;
  for (; part[length] && length + 1 < sizeof option; length++)
    option[length] = (char)toupper((unsigned char)part[length]);
  option[length] = '\0';
  snprintf(text, size, "this build leaves the part \"%s\" out; configure it with -DMIXTAPE_%s=ON", part,
           option);
}

void *mix_fail_absent(const char *call, const char *part) {
  char reason[160];
  mix_absent_reason(part, reason, sizeof reason);
  return mix_fail_unsupported("%s: %s", call, reason);
}
