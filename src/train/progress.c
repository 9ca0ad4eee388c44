/* Keras's progress output (docs/spec/keras.md, 15), passed to the log callback in fragments to be written
 * unchanged. */
#include "model/model.h"

#include "base/clock.h"
#include "base/error.h"
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 30, LINE_SIZE = 1024 };

typedef struct line {
  char text[LINE_SIZE];
  size_t used;
} line;

static void MIX_PRINTF(2, 3) put(line *out, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  int n = vsnprintf(out->text + out->used, LINE_SIZE - out->used, format, arguments);
  va_end(arguments);
  if (n > 0) out->used = out->used + (size_t)n < LINE_SIZE ? out->used + (size_t)n : LINE_SIZE - 1;
}

static void put_time(line *out, double seconds) {
  long s = (long)(seconds + 0.5);
  if (s >= 3600)
    put(out, "%ld:%02ld:%02ld", s / 3600, s % 3600 / 60, s % 60);
  else if (s >= 60)
    put(out, "%ld:%02ld", s / 60, s % 60);
  else
    put(out, "%lds", s);
}

static void put_rate(line *out, double per_step) {
  if (per_step >= 1 || per_step == 0)
    put(out, " %.0fs/step", per_step);
  else if (per_step >= 1e-3)
    put(out, " %.0fms/step", per_step * 1e3);
  else
    put(out, " %.0fus/step", per_step * 1e6);
}

/* Four decimals, or an exponent for small values. Verbose 2 does not take the absolute value of negative
 * numbers, as in Keras. */
static void put_values(line *out, const mix_progress *progress, const mix_logs *logs) {
  for (int i = 0; i < mix_logs_count(logs); i++) {
    double value = mix_logs_value(logs, i);
    if (isnan(value)) value = fabs(value); /* prints nan, not -nan */
    bool plain = (progress->verbose == 2 ? value : fabs(value)) > 1e-3;
    put(out, plain ? " - %s: %.4f" : " - %s: %.4e", mix_logs_name(logs, i), value);
  }
}

void mix_progress_begin(mix_progress *progress, int verbose, const mix_semantics *semantics, int64_t target,
                        int64_t epoch, int64_t epochs) {
  *progress = (mix_progress){.verbose = verbose,
                             .target = target,
                             .epoch = epoch,
                             .epochs = epochs,
                             .started = mix_clock(CLOCK_MONOTONIC)};
  if (verbose == 0)
    progress->verbose = isatty(STDERR_FILENO) ? 1 : 2;
  else if (verbose < 0)
    progress->verbose = 0;
  progress->dashes = semantics->progress_dashes;
  if (progress->verbose && epochs > 1)
    mix_log_message(MIX_LOG_PROGRESS, "Epoch %lld/%lld\n", (long long)epoch + 1, (long long)epochs);
}

bool mix_progress_due(mix_progress *progress, int64_t current) {
  if (!progress->verbose) return false;
  if (current == 1) progress->first_step_done = mix_clock(CLOCK_MONOTONIC);
  if (progress->verbose != 1 || (progress->target >= 0 && current >= progress->target)) return false;
  return mix_clock(CLOCK_MONOTONIC) - progress->last_drawn >= 0.1;
}

static int digits(int64_t number) {
  int count = 1;
  while (number >= 10) number /= 10, count++;
  return count;
}

/* tf_keras: "cur/target [=====>......]"; Keras 3: bold numbers and a bar of twenty heavy dashes. */
static void put_bar(line *out, const mix_progress *progress, int64_t current) {
  if (progress->target < 0) {
    put(out, progress->dashes ? "\033[1m%7lld/Unknown\033[0m" : "%7lld/Unknown", (long long)current);
    return;
  }
  int width = digits(progress->target);
  if (progress->dashes) {
    int done = progress->target ? (int)(20 * current / progress->target) : 20;
    put(out, "\033[1m%*lld/%lld\033[0m \033[32m", width, (long long)current, (long long)progress->target);
    for (int i = 0; i < done; i++) put(out, "\u2501");
    put(out, "\033[0m\033[37m");
    for (int i = done; i < 20; i++) put(out, "\u2501");
    put(out, "\033[0m");
    return;
  }
  int done = progress->target ? (int)(BAR_WIDTH * current / progress->target) : BAR_WIDTH;
  put(out, "%*lld/%lld [", width, (long long)current, (long long)progress->target);
  for (int i = 0; i < done - (current < progress->target); i++) put(out, "=");
  if (done > 0 && current < progress->target) put(out, ">");
  for (int i = done; i < BAR_WIDTH; i++) put(out, ".");
  put(out, "]");
}

static double per_step(const mix_progress *progress, double at, int64_t current) {
  /* The first step compiles, so it is excluded from the average once there are others. */
  if (current > 1 && progress->first_step_done > 0)
    return (at - progress->first_step_done) / (double)(current - 1);
  return current ? (at - progress->started) / (double)current : 0;
}

static void draw(mix_progress *progress, line *out, bool last) {
  int width = (int)out->used;
  if (width < progress->width) put(out, "%*s", progress->width - width, "");
  progress->width = width;
  mix_log_message(MIX_LOG_PROGRESS, "\r%s%s", out->text, last ? "\n" : "");
}

void mix_progress_update(mix_progress *progress, int64_t current, const mix_logs *logs) {
  if (progress->verbose != 1) return;
  double at = mix_clock(CLOCK_MONOTONIC);
  progress->last_drawn = at;
  line out = {.used = 0};
  put_bar(&out, progress, current);
  double step = per_step(progress, at, current);
  if (progress->target < 0) {
    put(&out, progress->dashes ? " \033[1m" : " - ");
    put_time(&out, at - progress->started);
    if (progress->dashes) put(&out, "\033[0m");
    put_rate(&out, step);
  } else if (progress->dashes) {
    put(&out, " \033[1m");
    put_time(&out, step * (double)(progress->target - current));
    put(&out, "\033[0m");
    put_rate(&out, step);
  } else {
    put(&out, " - ETA: ");
    put_time(&out, step * (double)(progress->target - current));
  }
  put_values(&out, progress, logs);
  draw(progress, &out, false);
}

void mix_progress_end(mix_progress *progress, const mix_logs *logs) {
  if (!progress->verbose) return;
  double at = mix_clock(CLOCK_MONOTONIC), seconds = at - progress->started,
         step = per_step(progress, at, progress->target);
  line out = {.used = 0};
  if (progress->verbose == 1) {
    put_bar(&out, progress, progress->target);
    put(&out, progress->dashes ? " \033[1m" : " - ");
    put_time(&out, seconds);
    if (progress->dashes) put(&out, "\033[0m");
    put_rate(&out, step);
    put_values(&out, progress, logs);
    draw(progress, &out, true);
    return;
  }
  put(&out, "%lld/%lld - ", (long long)progress->target, (long long)progress->target);
  put_time(&out, seconds);
  if (progress->dashes) {
    put(&out, " -");
    put_rate(&out, step);
    put_values(&out, progress, logs);
  } else {
    put_values(&out, progress, logs);
    put(&out, " - ");
    put_time(&out, seconds);
    put(&out, "/epoch -");
    put_rate(&out, step);
  }
  mix_log_message(MIX_LOG_PROGRESS, "%s\n", out.text);
}
