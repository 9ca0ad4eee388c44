/* --trace. */
#include "cli/cli.h"

int cli_trace_begin(const cli_options *options) {
  if (!options->trace) return CLI_OK;
  return mix_trace_start(options->trace) == MIX_OK ? CLI_OK : cli_fail();
}

int cli_trace_end(const cli_options *options, int code) {
  if (!options->trace || mix_trace_stop() == MIX_OK) return code;
  const int failed = cli_fail();
  return code ? code : failed;
}
