/* The runs that have begun, and what they met. Each run reads the error word of the run before it, so that
 * from one that met a bad value on none writes a variable. A run keeps its own word until it has been waited
 * for: the first that is set tells which program met the value. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include <pthread.h>
#include <stdlib.h>

enum { WAITING = 64 }; /* runs that nobody waits for */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_xla_run *first, **end = &first;
static int count;
static mix_ticket last_ticket;
static pjrt_buffer *word; /* of the latest run that has one, or zeros; NULL: not made yet */
/* What a run met, until a wait has reported it. */
static mix_error_aside failure;

static const mix_type word_type = {MIX_INT64, {.rank = 1, .dims = {MIX_XLA_ERROR_WORDS}}};

void mix_xla_runs_lock(void) { pthread_mutex_lock(&lock); }
void mix_xla_runs_unlock(void) { pthread_mutex_unlock(&lock); }

static void destroy_buffer(pjrt_buffer *buffer) {
  mix_pjrt_destroy(mix_xla_plugin(), PJRT_BUFFER_DESTROY, buffer);
}

pjrt_buffer *mix_xla_error_word(void) {
  static const int64_t zeros[MIX_XLA_ERROR_WORDS];
  if (!word) word = mix_pjrt_upload(mix_xla_plugin(), zeros, word_type);
  return word;
}

/* Is the word still that of a run that waits? */
static bool is_held(const pjrt_buffer *buffer) {
  for (const mix_xla_run *run = first; run; run = run->next)
    if (run->word == buffer) return true;
  return false;
}

static void replace_word(pjrt_buffer *by) {
  if (word && !is_held(word)) destroy_buffer(word);
  word = by;
}

/* The threads of a plug-in must not be in a run when the process takes its memory down. */
static void finish_all(void) { mix_xla_wait(UINT64_MAX); }

mix_ticket mix_xla_runs_append(mix_xla_run *run) {
  if (!last_ticket) atexit(finish_all);
  if (run->word) replace_word(run->word);
  run->next = NULL;
  run->ticket = ++last_ticket;
  *end = run;
  end = &run->next;
  count++;
  return run->ticket;
}

/* ---- what runs met ---- */

/* The pending error of this thread becomes what a run met; the first one counts. */
static void keep_failure(void) {
  mix_error_aside met;
  mix_error_set_aside(&met);
  if (!failure.status) failure = met;
}

static bool may_fail(const mix_xla_run *run) { return run->word && run->signature->check_count; }

/* Is the error word of the run set? */
static bool read_word(const mix_xla_run *run, int64_t values[MIX_XLA_ERROR_WORDS]) {
  if (mix_pjrt_download(mix_xla_plugin(), run->word, word_type, values))
    return values[MIX_XLA_ERROR_CHECK] != 0;
  keep_failure();
  return false;
}

/* Looks for value errors of the first `some` runs. The word of the last one tells whether there are any. */
static void look(int some) {
  int64_t values[MIX_XLA_ERROR_WORDS];
  char text[900];
  const mix_xla_run *last = NULL, *run = first;
  for (int i = 0; i < some; i++, run = run->next)
    if (may_fail(run)) last = run;
  if (!last || !read_word(last, values)) return;
  for (run = first; run != last && !(may_fail(run) && read_word(run, values));) run = run->next;
  if (run == last && !read_word(last, values)) return;
  mix_xla_error_text(run->signature, values, text, sizeof text);
  mix_fail_value("%s", text);
  keep_failure();
}

static void drop_first(void) {
  mix_xla_run *run = first;
  first = run->next;
  if (!first) end = &first;
  count--;
  if (run->word && run->word != word) destroy_buffer(run->word);
  mix_free(run);
}

/* Waits for the first `some` runs. No error is pending, before or after. */
static void finish(int some) {
  mix_xla_run *run = first;
  for (int i = 0; i < some; i++, run = run->next) {
    if (!mix_pjrt_await(mix_xla_plugin(), run->done, "xla: a run")) keep_failure();
    run->done = NULL;
  }
  if (!failure.status) look(some);
  for (int i = 0; i < some; i++) drop_first();
}

static int until(mix_ticket ticket) {
  int some = 0;
  for (const mix_xla_run *run = first; run && run->ticket <= ticket; run = run->next) some++;
  return some;
}

static void finish_quietly(int some) {
  if (!some) return;
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  finish(some);
  mix_error_clear();
  mix_error_put_back(&pending);
}

void mix_xla_runs_trim(void) { finish_quietly(count > WAITING ? count - WAITING : 0); }

void mix_xla_runs_finish(const mix_xla_signature *signature) {
  mix_ticket ticket = 0;
  if (mix_pjrt_lost()) return;
  pthread_mutex_lock(&lock);
  for (const mix_xla_run *run = first; run; run = run->next)
    if (run->signature == signature) ticket = run->ticket;
  finish_quietly(until(ticket));
  pthread_mutex_unlock(&lock);
}

/* While another error is pending, what a run met stays to be reported. */
mix_status mix_xla_wait(mix_ticket ticket) {
  /* mix_synchronize asks every device, and a child by fork has no runs to wait for. */
  if (mix_pjrt_lost() && ticket == UINT64_MAX) return mix_error();
  if (!mix_xla_usable()) return mix_error();
  pthread_mutex_lock(&lock);
  finish_quietly(until(ticket));
  if (failure.status && !mix_failed()) {
    finish_quietly(count);
    replace_word(NULL);
    mix_error_put_back(&failure);
    failure.status = MIX_OK;
  }
  pthread_mutex_unlock(&lock);
  return mix_error();
}
