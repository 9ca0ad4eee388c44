/* Messages of a thread that wait while it holds what other threads wait for: the log callback is the caller's code, and may use the
 * library. */
#ifndef MIX_BASE_DEFERRED_LOG_H
#define MIX_BASE_DEFERRED_LOG_H

#include "base/error.h"

/* From here on this thread's messages are kept, until each hold has been let go; then they are sent, in order. */
void mix_log_defer(void);
void mix_log_flush(void);
/* Keeps the message if the thread's messages wait; true then. */
bool mix_log_deferred(mix_log_level level, const char *message);

#endif
