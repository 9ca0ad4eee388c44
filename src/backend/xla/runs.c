/* The runs that have begun, and what they met. Each run reads the error word of the run before it, so that
 * from one that met a bad value on none writes a variable. A run keeps its own word until it has been waited
 * for: the first that is set tells which program met the value. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/shape.h"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* Runs that nobody waits for: so many, or, from the third on, whose copied arguments and kept values take so
 * many bytes. */
enum { WAITING = 64, FEW = 2 };
size_t mix_xla_waiting_bytes = 256 << 20;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static mix_xla_run *first, **end = &first;
static int count;
static size_t copied; /* the bytes of arguments that were copied for these runs */
static mix_ticket last_ticket;
/* The first run that is forgotten although its word was not read; 0: none. A later run of the same program
 * still has it. */
static mix_ticket unread;
static pjrt_buffer *word; /* of the latest run that has one, or zeros; NULL: not made yet */
/* What a run met, until a wait has reported it. */
static mix_error_aside failure;
static bool restored; /* variables have former values again: what comes next must know it */

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
  copied += run->bytes;
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
  copied -= run->bytes;
  mix_xla_drop_kept(run);
  if (run->word && run->word != word) destroy_buffer(run->word);
  run->next = *run->spare;
  *run->spare = run;
}

/* ---- ends of copies and runs ---- */

/* Ends a copy: false with the error recorded, which names the argument. `ready`: it is done. */
static bool end_upload(mix_xla_run *run, mix_xla_upload *upload, bool ready) {
  const mix_xla_parameter *parameter = &run->signature->parameters[upload->parameter];
  char what[300], shape[160];
  mix_shape_text(parameter->shape, shape, sizeof shape);
  snprintf(what, sizeof what, "xla: copying argument %d of %s, %s %s, to the device", parameter->index,
           run->name, mix_dtype_name(parameter->dtype), shape);
  const bool good = (ready ? mix_pjrt_take : mix_pjrt_await)(mix_xla_plugin(), upload->done, what);
  mix_release(upload->memory);
  *upload = (mix_xla_upload){.parameter = upload->parameter};
  return good;
}

/* An upload of a run that has begun. No error is pending, before or after. */
static void end_begun(mix_xla_run *run, mix_xla_upload *upload, bool ready) {
  if (end_upload(run, upload, ready)) return;
  keep_failure();
  if (!mix_xla_plugin()->copies_may_fail) return;
  mix_xla_restore_kept(run);
  restored = true;
  if (mix_failed()) keep_failure();
}

/* Waits for copies. Those of the runs before this one are good. */
static void await_uploads(mix_xla_run *run) {
  for (int i = 0; i < run->upload_count; i++)
    if (run->uploads[i].done) end_begun(run, &run->uploads[i], false);
  mix_xla_drop_kept(run);
}

/* No error is pending, before or after. */
static void end_run(mix_xla_run *run, bool ready) {
  await_uploads(run);
  if (!(ready ? mix_pjrt_take : mix_pjrt_await)(mix_xla_plugin(), run->done, "xla: a run")) keep_failure();
  run->done = NULL;
}

/* Ends copies that are done, in their order, so that the host's memory is free for the next arguments. Those
 * of the runs before this one have ended. */
static bool end_uploads(mix_xla_run *run) {
  for (int i = 0; i < run->upload_count; i++) {
    mix_xla_upload *upload = &run->uploads[i];
    if (!mix_pjrt_is_ready(mix_xla_plugin(), upload->done)) return false;
    if (upload->done) end_begun(run, upload, true);
  }
  mix_xla_drop_kept(run);
  return true;
}

static bool is_over(mix_xla_run *run) {
  return end_uploads(run) && mix_pjrt_is_ready(mix_xla_plugin(), run->done);
}

static mix_xla_run *first_that_may_fail(mix_xla_run *run) {
  while (run && !may_fail(run)) run = run->next;
  return run;
}

/* Words tell which check of a program met a bad value, and not of which program: the next run that has one
 * must be of the same. */
static bool may_be_forgotten(mix_xla_run *run) {
  const mix_xla_run *next = may_fail(run) ? first_that_may_fail(run->next) : NULL;
  return !may_fail(run) || (next && next->signature == run->signature);
}

static void forget_first(void) {
  if (may_fail(first) && !unread) unread = first->ticket;
  drop_first();
}

/* Waits for the first `some` runs. No error is pending, before or after. */
static void finish(int some) {
  mix_xla_run *run = first;
  for (int i = 0; i < some; i++, run = run->next) end_run(run, is_over(run));
  if (!failure.status) look(some);
  for (int i = 0; i < some; i++) {
    if (may_fail(first)) unread = 0;
    drop_first();
  }
}

/* The runs to wait for: those up to the ticket, or the one that has the word of forgotten ones among them. */
static int until(mix_ticket ticket) {
  int some = 0;
  for (const mix_xla_run *run = first; run && run->ticket <= ticket; run = run->next) some++;
  if (!unread || ticket < unread) return some;
  const mix_xla_run *keeper = first_that_may_fail(first);
  return keeper && keeper->ticket > ticket ? until(keeper->ticket) : some;
}

static void finish_quietly(int some) {
  if (!some) return;
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  finish(some);
  mix_error_clear();
  mix_error_put_back(&pending);
}

/* The run that keeps the word of the forgotten ones is over too, so that reading what they made does not wait
 * for it. */
static void forget_ended(void) {
  for (mix_xla_run *run = first; run && end_uploads(run);) run = run->next;
  while (first && may_be_forgotten(first) && is_over(first)) {
    mix_xla_run *keeper = may_fail(first) ? first_that_may_fail(first->next) : NULL;
    if (keeper && !is_over(keeper)) return;
    end_run(first, true);
    forget_first();
  }
}

/* Of values that runs still keep. */
static size_t kept_bytes(void) {
  size_t bytes = 0;
  for (const mix_xla_run *run = first; run; run = run->next) bytes += run->kept_bytes;
  return bytes;
}

static bool too_many(void) {
  return count > WAITING || (count > FEW && copied + kept_bytes() > mix_xla_waiting_bytes);
}

void mix_xla_runs_trim(void) {
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  forget_ended();
  while (too_many()) {
    if (!may_be_forgotten(first)) {
      finish(1);
      continue;
    }
    end_run(first, false);
    forget_first();
  }
  mix_error_clear();
  mix_error_put_back(&pending);
}

/* ---- values to keep ---- */

/* Records what runs met. */
static void report(void) {
  finish_quietly(count);
  replace_word(NULL);
  mix_error_put_back(&failure);
  failure.status = MIX_OK;
  restored = false;
}

/* Ends the copies of runs, and those of the one that begins, which are done. Are they all? */
static bool end_all_uploads(mix_xla_run *begins) {
  for (mix_xla_run *run = first; run; run = run->next)
    if (!end_uploads(run)) return false;
  for (int i = 0; i < begins->upload_count; i++) {
    mix_xla_upload *upload = &begins->uploads[i];
    if (!mix_pjrt_is_ready(mix_xla_plugin(), upload->done)) return false;
    if (upload->done && !end_upload(begins, upload, true)) return true;
  }
  return true;
}

static void await_all_uploads(mix_xla_run *begins) {
  for (mix_xla_run *run = first; run; run = run->next) await_uploads(run);
  for (int i = 0; i < begins->upload_count && !mix_failed(); i++)
    if (begins->uploads[i].done) end_upload(begins, &begins->uploads[i], false);
}

/* Waits for copies rather than keep values that take much memory. Once variables have former values again,
 * that is reported before anything is computed from them. */
int mix_xla_runs_must_keep(mix_xla_run *run, size_t bytes) {
  if (!mix_xla_plugin()->copies_may_fail) return 0;
  int must = !end_all_uploads(run);
  if (must && !mix_failed() && kept_bytes() + bytes > mix_xla_waiting_bytes) await_all_uploads(run), must = 0;
  if (restored && !mix_failed()) report();
  return mix_failed() ? -1 : must;
}

/* ---- runs that have not begun, or are over ---- */

mix_xla_run *mix_xla_run_take(const mix_xla_signature *signature, const char *name, mix_xla_run **spare) {
  pthread_mutex_lock(&lock);
  mix_xla_run *run = *spare;
  if (run) *spare = run->next;
  pthread_mutex_unlock(&lock);
  const size_t parameters = (size_t)signature->parameter_count,
               room = (sizeof *run->uploads + sizeof *run->kept) * parameters;
  if (!run && !(run = mix_calloc(1, sizeof *run + room))) return NULL;
  *run = (mix_xla_run){.signature = signature,
                       .name = name,
                       .spare = spare,
                       .kept = (mix_xla_kept *)(void *)(run->uploads + parameters)};
  return run;
}

void mix_xla_run_drop(mix_xla_run *run) {
  mix_error_aside pending;
  mix_error_set_aside(&pending);
  for (int i = 0; i < run->upload_count; i++) end_upload(run, &run->uploads[i], false);
  mix_error_clear();
  mix_error_put_back(&pending);
  mix_free(run);
}

void mix_xla_runs_free(mix_xla_run **spare) {
  for (mix_xla_run *run = *spare, *next; run; run = next) {
    next = run->next;
    mix_free(run);
  }
}

void mix_xla_runs_finish(const mix_xla_signature *signature) {
  mix_ticket ticket = 0;
  if (mix_pjrt_lost()) return;
  pthread_mutex_lock(&lock);
  for (const mix_xla_run *run = first; run; run = run->next)
    if (run->signature == signature) ticket = run->ticket;
  finish_quietly(until(ticket));
  pthread_mutex_unlock(&lock);
}

bool mix_xla_is_over(mix_ticket ticket) {
  mix_error_aside pending;
  bool over = true;
  mix_error_set_aside(&pending);
  pthread_mutex_lock(&lock);
  mix_xla_run *run = first;
  for (int left = until(ticket); left > 0 && over; left--, run = run->next) over = is_over(run);
  pthread_mutex_unlock(&lock);
  mix_error_clear();
  mix_error_put_back(&pending);
  return over;
}

/* While another error is pending, what a run met stays to be reported. */
mix_status mix_xla_wait(mix_ticket ticket) {
  /* mix_synchronize asks every device, and a child by fork has no runs to wait for. */
  if (mix_pjrt_lost() && ticket == UINT64_MAX) return mix_error();
  if (!mix_xla_usable()) return mix_error();
  pthread_mutex_lock(&lock);
  finish_quietly(until(ticket));
  if (failure.status && !mix_failed()) report();
  pthread_mutex_unlock(&lock);
  return mix_error();
}
