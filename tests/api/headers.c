/* Compile test: each public header is a C11 and a C++17 unit of this program (CMakeLists.txt). */
#include <mixtape/api.h>
#include <mixtape/object.h>
#include <string.h>

/* No scope hides another, which the warnings of many users' builds report. */
static int scopes_nest(void) {
  int rounds = 0;
  for (int i = 0; i < 3; i++) {
    MIX_SCOPE_HERE;
    for (int k = 0; k < 3; k++) {
      MIX_SCOPE_HERE;
      if (k == 1) continue;
      MIX_SCOPE {
        MIX_SCOPE { rounds++; }
      }
    }
  }
  return rounds;
}

int main(void) { return strcmp(mix_version(), MIXTAPE_VERSION) == 0 && scopes_nest() == 6 ? 0 : 1; }
