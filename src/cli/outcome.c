/* Error messages and run time of a command. */
#include "base/clock.h"
#include "cli/cli.h"

static double began;

void cli_begin(void) { began = mix_clock(CLOCK_MONOTONIC); }
double cli_seconds(void) { return mix_clock(CLOCK_MONOTONIC) - began; }

int cli_option_code(void) { return mix_error() == MIX_MEMORY_ERROR ? CLI_FAILED : CLI_USAGE; }

const char *cli_rank(void) {
  static char text[64];
  const mix_distribution *ranks = mix_distribution_current();
  if (mix_distribution_size(ranks) < 2) return "";
  snprintf(text, sizeof text, "rank %d of %d: ", mix_distribution_rank(ranks), mix_distribution_size(ranks));
  return text;
}

int cli_fail(void) {
  if (mix_error() == MIX_OK) return CLI_FAILED; /* already reported */
  fprintf(stderr, "mixtape: %s%s: %s\n", cli_rank(), mix_status_name(mix_error()), mix_error_message());
  mix_error_clear();
  return CLI_FAILED;
}
