/* The pending error of each thread, and the log callback of the process. Nothing here allocates: an error must be reportable when
 * there is no memory left. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP */
#endif
#include "base/error.h"
#include "base/held_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGE_SIZE = 1024, LOG_SIZE = 2048 };

static _Thread_local struct {
  mix_status status;
  char message[MESSAGE_SIZE];
} pending;

/* Cuts never fall inside a UTF-8 character, and show. `length` is what the whole text would have needed. */
static void mark_cut(char *text, size_t size, size_t length) {
  static const char dots[] = "...";
  if (length < size || size < sizeof dots) return;
  size_t end = size - sizeof dots;
  while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
  memcpy(text + end, dots, sizeof dots);
}

static void format_into(char *text, size_t size, const char *format, va_list arguments) {
  int length = vsnprintf(text, size, format, arguments);
  if (length < 0) {
    snprintf(text, size, "(a message that could not be formatted: \"%s\")", format);
    return;
  }
  mark_cut(text, size, (size_t)length);
}

static void record(mix_status status, const char *format, va_list arguments) {
  if (pending.status != MIX_OK) return;
  format_into(pending.message, sizeof pending.message, format, arguments);
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
  return mix_fail(MIX_MEMORY_ERROR, "out of memory: %s; release what is no longer needed, or use a smaller batch or model", what);
}

bool mix_given(const void *object, const char *call, const char *expected) {
  if (!object) mix_fail(MIX_TYPE_ERROR, "%s: got NULL; expected %s", call, expected);
  return object && !mix_failed();
}

void *mix_returned(void *object, const char *call) {
  if (!object) mix_fail(MIX_TYPE_ERROR, "%s: the function given returned NULL; expected a result, or an error recorded", call);
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
  if (message && size > 0) mark_cut(message, size, (size_t)snprintf(message, size, "%s", mix_error_message()));
  mix_error_clear();
  return status;
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

/* Recursive, so that a callback may call the library, which may have something to say in its turn. Held during the callback:
 * messages of several threads do not mix, and after mix_set_log_callback the former callback is no longer in use. */
static pthread_mutex_t log_mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static mix_log_callback log_callback;
static void *log_context;
static atomic_bool log_wanted; /* spares the formatting where nobody listens */

void mix_set_log_callback(mix_log_callback callback, void *context) {
  pthread_mutex_lock(&log_mutex);
  log_callback = callback;
  log_context = context;
  atomic_store(&log_wanted, callback != NULL);
  pthread_mutex_unlock(&log_mutex);
}

void mix_log_message(mix_log_level level, const char *format, ...) {
  if (!atomic_load_explicit(&log_wanted, memory_order_relaxed)) return;
  char message[LOG_SIZE];
  va_list arguments;
  va_start(arguments, format);
  format_into(message, sizeof message, format, arguments);
  va_end(arguments);
  mix_log_text(level, message);
}

void mix_log_text(mix_log_level level, const char *message) {
  if (mix_log_kept(level, message)) return;
  pthread_mutex_lock(&log_mutex);
  if (log_callback) log_callback(log_context, level, message);
  pthread_mutex_unlock(&log_mutex);
}

/* A word that says nothing is warned of, once. */
static void check_verbose(const char *list) {
  static const char *const words[] = {"dispatch", "compile", "amp"};
  static atomic_bool checked;
  if (atomic_exchange(&checked, true)) return;
  while (*(list += strspn(list, ", "))) {
    size_t here = strcspn(list, ", ");
    bool known = false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
      known = known || (strlen(words[i]) == here && !memcmp(words[i], list, here));
    if (!known)
      mix_log_message(MIX_LOG_WARNING, "MIXTAPE_VERBOSE: '%.*s' is ignored; expected dispatch, compile or amp, with commas between",
                      (int)(here < 60 ? here : 60), list);
    list += here;
  }
}

bool mix_verbose(const char *word) {
  const char *list = getenv("MIXTAPE_VERBOSE");
  if (!list) return false;
  check_verbose(list);
  size_t length = strlen(word);
  while (*list) {
    list += strspn(list, ", ");
    size_t here = strcspn(list, ", ");
    if (here == length && memcmp(list, word, length) == 0) return here > 0;
    list += here;
  }
  return false;
}

void mix_log_to_stderr(void *context, mix_log_level level, const char *message) {
  (void)context;
  fputs(message, stderr);
  if (level != MIX_LOG_PROGRESS) fputc('\n', stderr);
}
