/* Deferred log messages. The log callback is the caller's code and may call the library, so no message is
 * sent while the thread holds a lock that other threads wait for. */
#pragma once

#include "base/error.h"

/* Between these calls, which nest, this thread's messages are queued. The outermost flush sends them in
 * order. */
void mix_log_defer(void);
void mix_log_flush(void);
