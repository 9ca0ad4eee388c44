/* A rank that waits for long tells the others which call it waits in, and those that wait there too answer:
 * those from which nobody hears are the ones that have not come. Only waiting ranks hear notes: a step whose
 * ranks come in time pays nothing. */
#include "distribute/waiting.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONG = 30, ANSWERS = 2 }; /* seconds: until a rank tells that it waits, and until the others have */
enum { LIMIT = 60, MAX_LIMIT = 7 * 24 * 3600 };

static double now(void) { return mix_clock(CLOCK_MONOTONIC); }

bool mix_waiting_prepare(mix_waiting *w, int rank, int ranks) {
  w->rank = rank, w->ranks = ranks;
  w->news = mix_calloc((size_t)ranks, sizeof *w->news);
  return w->news != NULL;
}

void mix_waiting_release(mix_waiting *w) { mix_free(w->news); }

void mix_waiting_begin(mix_waiting *w, double limit) {
  w->step++;
  w->begin = now(), w->limit = limit;
  w->looked = w->told = w->logged = false;
}

double mix_waiting_limit(void) {
  const char *text = getenv("MIXTAPE_MPI_TIMEOUT");
  char *end = NULL;
  if (!text || !*text) return LIMIT;
  const double seconds = strtod(text, &end);
  if (!*end && seconds >= 1 && seconds <= MAX_LIMIT) return seconds;
  mix_fail_value(
      "MIXTAPE_MPI_TIMEOUT is \"%s\"; expected seconds from 1 to %d: how long ranks wait until all "
      "have started",
      text, MAX_LIMIT);
  return -1;
}

/* ---- who has not come ---- */

/* Has the rank told that it waits here, or further on? */
static bool has_come(const mix_waiting *w, int rank) {
  const mix_rank_news *news = &w->news[rank];
  if (rank == w->rank) return true;
  return w->closing ? news->closes_in > 0 : news->waits_in >= w->step;
}

static void name_rank(const mix_waiting *w, mix_text *text, int rank) {
  mix_text_put(text, "%srank %d", text->used ? ", " : "", rank);
  if (w->identities)
    mix_text_put(text, " (process %d on %s)", w->identities[rank].process, w->identities[rank].host);
}

static const char *those_missing(const mix_waiting *w, char *names, size_t size) {
  mix_text text = {.text = names, .size = size};
  for (int r = 0; r < w->ranks; r++)
    if (!has_come(w, r)) name_rank(w, &text, r);
  return text.used ? names : NULL;
}

/* Of the ranks that wait the first one says it. */
static void log_missing(mix_waiting *w) {
  char names[512];
  w->logged = true;
  for (int r = 0; r < w->rank; r++)
    if (has_come(w, r)) return;
  const char *missing = those_missing(w, names, sizeof names);
  if (!missing) return;
  mix_log_message(
      MIX_LOG_ERROR,
      w->closing ? "distribution: rank %d of %d has waited %d s for the end of the distribution on %s"
                 : "distribution: rank %d of %d has waited %d s for %s, which has not made the same call",
      w->rank, w->ranks, LONG + ANSWERS, missing);
}

/* ---- notes ---- */

static int tell(const mix_waiting *w, mix_note_kind kind, const char *text) {
  mix_transport_note note = {.kind = kind, .step = w->step};
  snprintf(note.text, sizeof note.text, "%s", text);
  return w->transport->tell(w->link, &note);
}

void mix_waiting_tell_failure(mix_waiting *w, const char *why) {
  if (w->identities && !w->told_failure) tell(w, MIX_NOTE_FAILED, w->reason ? w->reason : why);
  w->told_failure = true;
}

static void give_up(mix_waiting *w, const char *text) {
  if (w->reason) return;
  w->reason = mix_intern(text);
  if (!w->reason) w->reason = "out of memory", mix_error_clear();
}

void mix_waiting_heard(void *context, int rank, const mix_transport_note *note) {
  mix_waiting *w = context;
  mix_rank_news *news = &w->news[rank];
  char text[400];
  switch (note->kind) {
  case MIX_NOTE_WAITING: news->waits_in = note->step; break;
  case MIX_NOTE_CLOSING: news->closes_in = note->step; break;
  case MIX_NOTE_FAILED:
    w->told_failure = true; /* by that rank, and to all */
    snprintf(text, sizeof text, "rank %d of %d failed: %.*s", rank, w->ranks, (int)sizeof note->text,
             note->text);
    give_up(w, text);
    break;
  default: break;
  }
}

/* A rank whose end is its call number n has made n - 1 calls with the others. */
static void check_for_closed(mix_waiting *w) {
  char text[256];
  for (int r = 0; r < w->ranks; r++) {
    if (!w->news[r].closes_in || w->news[r].closes_in > w->step) continue;
    snprintf(
        text, sizeof text,
        "rank %d of %d has ended its distribution, and rank %d makes one more collective call; all ranks "
        "must make the same ones: as many training steps, and so on",
        r, w->ranks, w->rank);
    give_up(w, text);
  }
}

static void check_limit(mix_waiting *w, double waited) {
  char names[512], text[700];
  if (!w->looked && waited > w->limit / 2) {
    w->looked = true;
    mix_meeting_look(w->meeting);
  }
  if (waited < w->limit) return;
  snprintf(text, sizeof text, "not all ranks have met within %g s (MIXTAPE_MPI_TIMEOUT): %s", w->limit,
           mix_meeting_missing(w->meeting, names, sizeof names));
  give_up(w, text);
}

/* Another rank waits here: it asks who has come. */
static bool is_asked(const mix_waiting *w) {
  for (int r = 0; r < w->ranks; r++)
    if (r != w->rank && w->news[r].waits_in >= w->step) return true;
  return false;
}

bool mix_waiting_gives_up(void *context) {
  mix_waiting *w = context;
  const double waited = now() - w->begin;
  if (!w->closing && w->step) check_for_closed(w);
  if (w->limit > 0) check_limit(w, waited);
  if (w->reason || atomic_load(&w->stop)) return true;
  if (!w->identities || (waited < LONG && !is_asked(w))) return false;
  if (!w->told && !w->closing) tell(w, MIX_NOTE_WAITING, "");
  w->told = true;
  if (!w->logged && waited >= LONG + ANSWERS) log_missing(w);
  return false;
}

/* ---- the end ---- */

static bool all_close(const mix_waiting *w) {
  for (int r = 0; r < w->ranks; r++)
    if (r != w->rank && !w->news[r].closes_in) return false;
  return true;
}

int mix_waiting_close(mix_waiting *w) {
  enum { LONGEST = 1000000 };
  struct timespec pause = {0};
  w->closing = true;
  mix_waiting_begin(w, 0);
  int code = tell(w, MIX_NOTE_CLOSING, "");
  while (!code && !(code = w->transport->listen(w->link)) && !all_close(w)) {
    if (mix_waiting_gives_up(w)) return MIX_TRANSPORT_STOPPED;
    pause.tv_nsec = pause.tv_nsec < LONGEST ? pause.tv_nsec + 5000 : LONGEST;
    nanosleep(&pause, NULL);
  }
  return code;
}
