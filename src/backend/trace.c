/* Numbers of threads in traces. */
#include "backend/trace.h"

#include <stdatomic.h>

int mix_trace_thread(void) {
  static atomic_int count;
  static _Thread_local int number;
  if (!number) number = atomic_fetch_add(&count, 1) + 1;
  return number;
}
