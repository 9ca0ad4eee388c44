/* Traces as files. */
#include "base/alloc.h"
#include "base/error.h"
#include "compile/trace.h"
#include "formats/file.h"
#include <mixtape/trace.h>
#include <string.h>

enum { STEPS = 10 };

mix_status mix_trace_start_with(const mix_trace_options *given) {
  if (mix_failed()) return mix_error();
  mix_trace_options options;
  if (!mix_options_copy(&options, sizeof options, given, "trace_start")) return mix_error();
  if (!options.path) return mix_fail_status(MIX_TYPE_ERROR, "trace_start: path is NULL");
  if (options.steps < 0 || options.skip < 0)
    return mix_fail_status(MIX_VALUE_ERROR, "trace_start: %s is %lld; expected a number from 0 on",
                           options.steps < 0 ? "steps" : "skip",
                           (long long)(options.steps < 0 ? options.steps : options.skip));
  const char *reason = mix_file_unwritable_reason(options.path);
  if (reason)
    return mix_fail_status(MIX_IO_ERROR, "trace_start: cannot write '%s': %s", options.path, reason);
  mix_trace_begin(options.path, options.skip, options.steps ? options.steps : STEPS);
  return mix_error();
}

mix_status mix_trace_stop(void) {
  char *path, *text;
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  if (mix_trace_end(&path, &text)) {
    mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, "trace_stop");
    mix_free(path);
    mix_free(text);
  }
  const mix_status status = mix_error();
  mix_error_put_back(&pending);
  return status;
}
