/* Error messages and run time of a command. */
#include "base/clock.h"
#include "base/format.h"
#include "cli/cli.h"

static double began;

void cli_begin(void) { began = mix_clock(CLOCK_MONOTONIC); }
double cli_seconds(void) { return mix_clock(CLOCK_MONOTONIC) - began; }

int cli_option_code(void) { return mix_error() == MIX_MEMORY_ERROR ? CLI_FAILED : CLI_USAGE; }

/* In one write, so that lines of other ranks do not come between. */
void cli_say(const char *command, const char *format, ...) {
  char text[8192], rank[64] = "";
  const mix_distribution *ranks = mix_distribution_current();
  va_list arguments;
  va_start(arguments, format);
  mix_format_into(text, sizeof text, format, arguments);
  va_end(arguments);
  if (mix_distribution_size(ranks) > 1)
    snprintf(rank, sizeof rank, "rank %d of %d: ", mix_distribution_rank(ranks),
             mix_distribution_size(ranks));
  fprintf(stderr, "mixtape%s%s: %s%s\n", *command ? " " : "", command, rank, text);
}

int cli_fail(void) {
  if (mix_error() == MIX_OK) return CLI_FAILED; /* already reported */
  cli_say("", "%s: %s", mix_status_name(mix_error()), mix_error_message());
  mix_error_clear();
  return CLI_FAILED;
}
