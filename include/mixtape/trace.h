/* Traces: which kernel ran when, on which thread and for which layer, as a file in the trace event format of
 * Chrome, which https://ui.perfetto.dev and chrome://tracing show. */
#ifndef MIXTAPE_TRACE_H
#define MIXTAPE_TRACE_H

#include <mixtape/status.h>

MIX_BEGIN_DECLARATIONS

typedef struct mix_trace_options {
  size_t size;
  const char *path; /* required: the file, which mix_trace_stop writes */
  /* Runs of captured functions to trace, such as steps of fit, in the whole process. What is evaluated
   * outside functions between them is in the trace too. 0: 10. */
  int64_t steps;
  int64_t skip; /* runs of functions before these, which are not traced */
} mix_trace_options;
/* Starts a trace. Every run of a function or evaluation is an event of the thread that called it, named after
 * the function. On a device with a queue it lasts until the run is enqueued, not until the device has run it.
 * On host devices each kernel is an event of each thread that ran a share of it, named
 * "layer/op", with layer, op, kernel, operands and results, bytes moved by all shares together, and the
 * share. Steps that run together, some rows at a time, share their time equally; their bytes are those of
 * each step by itself.
 * A step that its guard left out (a skipped update) is there with "skipped": true. A loop is one kernel.
 * RuntimeError if a trace has been started; IOError if the file cannot be written. Without a trace a run
 * costs one test more. */
MIX_API mix_status mix_trace_start_with(const mix_trace_options *options);
/* Ends the trace, waits until calls whose runs are in it have made or enqueued them, but not for what a
 * device's queue holds, and writes the file, which is replaced whole or not at all.
 * RuntimeError if none was started; IOError if the file cannot be written. Also writes with an error pending,
 * which stays. */
MIX_API mix_status mix_trace_stop(void);
#ifndef __cplusplus
/* mix_trace_start("trace.json", .skip = 2, .steps = 3) */
#define mix_trace_start(...)                                                                                 \
  mix_trace_start_with(                                                                                      \
      MIX_ARGUMENTS("mix_trace_start", "path, steps", #__VA_ARGS__, mix_trace_options, .path = __VA_ARGS__))
#endif

MIX_END_DECLARATIONS
#endif
