/* The pending error of each thread. Nothing here allocates, because an error must be reportable when
 * memory is exhausted. */
#include "base/error.h"
#include "base/format.h"

#include <errno.h>
#include <stdio.h>

static _Thread_local struct {
  mix_status status;
  char message[MIX_ERROR_BYTES];
} pending;

static void record(mix_status status, const char *format, va_list arguments) {
  if (pending.status != MIX_OK) return;
  mix_format_into(pending.message, sizeof pending.message, format, arguments);
  pending.status = status == MIX_OK ? MIX_INTERNAL_ERROR : status;
}

void *mix_fail(mix_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(status, format, arguments);
  va_end(arguments);
  return NULL;
}

mix_status mix_fail_status(mix_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  record(status, format, arguments);
  va_end(arguments);
  return pending.status;
}

void *mix_fail_memory(const char *what) {
  errno = 0; /* told: it is no later failure's reason */
  return mix_fail(MIX_MEMORY_ERROR,
                  "out of memory: %s; release what is no longer needed, or use a smaller batch or model",
                  what);
}

void *mix_returned(void *object, const char *call) {
  if (!object)
    mix_fail_type("%s: the function given returned NULL; expected a result, or an error recorded", call);
  return mix_failed() ? NULL : object;
}

mix_status mix_error(void) { return pending.status; }

const char *mix_error_message(void) { return pending.status == MIX_OK ? "" : pending.message; }

void mix_error_clear(void) {
  pending.status = MIX_OK;
  pending.message[0] = '\0';
}

mix_status mix_error_take(char *message, size_t size) {
  mix_status status = pending.status;
  if (message && size > 0)
    mix_mark_cut(message, size, (size_t)snprintf(message, size, "%s", mix_error_message()));
  mix_error_clear();
  return status;
}

mix_status mix_error_record(mix_status status, const char *message) {
  return mix_fail_status(status, "%s", message ? message : mix_status_name(status));
}

void mix_error_set_aside(mix_error_aside *error) {
  error->status = mix_error_take(error->message, sizeof error->message);
}

void mix_error_put_back(const mix_error_aside *error) {
  if (error->status == MIX_OK) return;
  mix_error_clear(); /* the first error of a thread is the one that counts */
  mix_fail(error->status, "%s", error->message);
}

const char *mix_status_name(mix_status status) {
  static const char *const names[] = {
#define NAME(code, name, meaning) [code] = name,
      MIX_STATUS_LIST(NAME)
#undef NAME
  };
  size_t index = (size_t)status;
  return index < sizeof names / sizeof *names ? names[index] : "unknown status";
}
