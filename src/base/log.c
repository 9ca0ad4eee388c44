/* The log callback of the process, and deferred messages. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP */
#endif
#include "base/alloc.h"
#include "base/deferred_log.h"
#include "base/text.h"
#include "base/format.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOG_SIZE = 2048 };

/* ---- deferred messages ---- */

typedef struct deferred_message {
  struct deferred_message *next;
  mix_log_level level;
  char text[];
} deferred_message;

static _Thread_local int depth;
static _Thread_local deferred_message *first, *last;

void mix_log_defer(void) { depth++; }

/* Queues the message and returns true if this thread's messages are deferred. */
static bool defer_message(mix_log_level level, const char *message) {
  if (depth == 0) return false;
  const size_t size = strlen(message) + 1;
  deferred_message *deferred = mix_alloc(sizeof *deferred + size);
  if (!deferred) return true; /* the message is lost; mix_alloc has recorded the error */
  deferred->next = NULL;
  deferred->level = level;
  memcpy(deferred->text, message, size);
  if (last)
    last->next = deferred;
  else
    first = deferred;
  last = deferred;
  return true;
}

void mix_log_flush(void) {
  if (--depth > 0) return;
  deferred_message *deferred = first;
  first = last = NULL;
  while (deferred) {
    deferred_message *next = deferred->next;
    mix_log_text(deferred->level, deferred->text);
    mix_free(deferred);
    deferred = next;
  }
}

/* ---- the log ---- */

/* Recursive, because a callback may call the library, which may log again. Held during the callback, so
 * that messages of several threads do not interleave, and the old callback is not running when
 * mix_set_log_callback returns. */
static pthread_mutex_t log_mutex;
static mix_log_callback log_callback;
static void *log_context;
static atomic_bool log_wanted; /* avoids formatting when no callback is set */

static void make_mutex(void) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&log_mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

static void lock_log(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT; /* C libraries differ in what initialises a recursive one */
  pthread_once(&once, make_mutex);
  pthread_mutex_lock(&log_mutex);
}

void mix_set_log_callback(mix_log_callback callback, void *context) {
  lock_log();
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
  mix_format_into(message, sizeof message, format, arguments);
  va_end(arguments);
  mix_log_text(level, message);
}

void mix_log_text(mix_log_level level, const char *message) {
  if (defer_message(level, message)) return;
  lock_log();
  if (log_callback) log_callback(log_context, level, message);
  pthread_mutex_unlock(&log_mutex);
}

/* Warns once about unknown words. */
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
      mix_log_message(
          MIX_LOG_WARNING,
          "MIXTAPE_VERBOSE: '%.*s' is ignored; expected dispatch, compile or amp, with commas between",
          (int)(here < 60 ? here : 60), list);
    list += here;
  }
}

bool mix_verbose(const char *word) {
  const char *list = getenv("MIXTAPE_VERBOSE");
  if (!list) return false;
  check_verbose(list);
  return mix_has_word(list, word);
}

void mix_log_to_stderr(void *context, mix_log_level level, const char *message) {
  fputs(message ? message : "", stderr);
  if (level != MIX_LOG_PROGRESS) fputc('\n', stderr);
}
