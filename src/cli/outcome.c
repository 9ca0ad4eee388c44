/* How a command ends: what is said of an error, and the time that it took. */
#include "cli/cli.h"
#include <time.h>

static double began;

static double clock_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cli_begin(void) { began = clock_now(); }
double cli_seconds(void) { return clock_now() - began; }

int cli_fail(void) {
  if (mix_error() == MIX_OK) return CLI_FAILED; /* has been said */
  fprintf(stderr, "mixtape: %s: %s\n", mix_status_name(mix_error()), mix_error_message());
  mix_error_clear();
  return CLI_FAILED;
}
