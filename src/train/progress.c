/* Keras's progress output (docs/spec/keras.md, 15), passed to the log callback in fragments to be written
 * unchanged. */
#include "train/progress.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include <math.h>
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

static void put_remaining(line *out, double seconds) {
  const long s = (long)seconds;
  if (seconds > 3600)
    put(out, "%ld:%02ld:%02ld", s / 3600, s % 3600 / 60, s % 60);
  else if (seconds > 60)
    put(out, "%ld:%02ld", s / 60, s % 60);
  else
    put(out, "%lds", s);
}
static void put_elapsed(line *out, double seconds) { put(out, "%.0fs", seconds); }

static void put_duration(line *out, double seconds, const char *unit) {
  if (seconds >= 1 || seconds == 0)
    put(out, " %.0fs/%s", seconds, unit);
  else if (seconds >= 1e-3)
    put(out, " %.0fms/%s", seconds * 1e3, unit);
  else
    put(out, " %.0fus/%s", seconds * 1e6, unit);
}
static void put_rate(line *out, const mix_progress *progress, double per_step) {
  put_duration(out, per_step, progress->samples ? "sample" : "step");
}

/* Four decimals, or an exponent for small values. Verbose 2 does not take the absolute value of negative
 * numbers, as in Keras. */
static void put_value(line *out, const mix_progress *progress, const char *name, double value) {
  if (isnan(value)) value = fabs(value); /* prints nan, not -nan */
  bool plain = (progress->verbose == 2 ? value : fabs(value)) > 1e-3;
  put(out, plain ? " - %s: %.4f" : " - %s: %.4e", MIX_PRINTABLE(name), value);
}

/* ---- numbers that callbacks add to the logs of batches ---- */

static mix_progress_value *value_named(const mix_progress *progress, const char *name) {
  for (int i = 0; i < progress->value_count; i++)
    if (!strcmp(progress->values[i].name, name)) return &progress->values[i];
  return NULL;
}

/* A metric with several numbers is "name[0]", "name[1]", ... */
static bool is_result(const char *name, const char *metric) {
  size_t length = strlen(metric);
  return !strncmp(name, metric, length) && (!name[length] || name[length] == '[');
}

static bool is_of_model(const mix_model *model, const char *name) {
  const mix_compiled_state *state = model->state;
  bool found = !strcmp(name, "loss");
  for (int i = 0; i < state->tracker_count; i++) found |= is_result(name, state->trackers[i].name);
  for (int i = 0; i < state->metric_count; i++) found |= is_result(name, state->metrics[i].name);
  return found;
}

static bool is_averaged(const mix_progress *progress, const char *name) {
  if (!progress->rules->progress_averages) return false;
  for (int i = 0; i < MIX_MODEL_MAX && progress->stateful_metrics[i]; i++)
    if (!strcmp(progress->stateful_metrics[i], name)) return false;
  return true;
}

static void keep_value(mix_progress *progress, const char *name, double value) {
  mix_progress_value *kept = value_named(progress, name);
  if (!kept) {
    if (!mix_reserve(&progress->values, &progress->value_capacity, progress->value_count + 1, sizeof *kept))
      return;
    kept = &progress->values[progress->value_count++];
    *kept = (mix_progress_value){.name = name};
  }
  if (!is_averaged(progress, name)) kept->sum = kept->count = 0;
  kept->sum += value;
  kept->count++;
}

static void keep_values(mix_progress *progress, const mix_model *model, const mix_logs *logs) {
  progress->own = 0;
  for (int i = 0; i < mix_logs_count(logs); i++) {
    const char *name = mix_logs_name(logs, i);
    if (is_of_model(model, name))
      progress->own++;
    else
      keep_value(progress, name, mix_logs_value(logs, i));
  }
}

/* The model's numbers, those that callbacks added to batches, and those that they added to the epoch. */
static void put_values(line *out, const mix_progress *progress, const mix_logs *logs) {
  int own = progress->value_count ? progress->own : 0;
  for (int i = 0; i < own && i < mix_logs_count(logs); i++)
    put_value(out, progress, mix_logs_name(logs, i), mix_logs_value(logs, i));
  for (int i = 0; i < progress->value_count; i++)
    put_value(out, progress, progress->values[i].name,
              progress->values[i].sum / (double)progress->values[i].count);
  for (int i = own; i < mix_logs_count(logs); i++)
    if (!value_named(progress, mix_logs_name(logs, i)))
      put_value(out, progress, mix_logs_name(logs, i), mix_logs_value(logs, i));
}

/* ---- passes and steps ---- */

bool mix_progress_take_quiet(int *verbose, bool quiet, const char *call) {
  if (quiet && *verbose > 0) mix_fail_value("%s: quiet is true and verbose is %d; give one", call, *verbose);
  if (quiet) *verbose = MIX_SILENT;
  return !mix_failed();
}

void mix_progress_set(mix_progress *progress, int verbose, const mix_semantics *rules, int64_t target,
                      int64_t epochs) {
  if (verbose == 0) verbose = isatty(STDERR_FILENO) ? 1 : 2;
  progress->verbose = verbose < 0 ? 0 : verbose;
  progress->rules = rules;
  progress->target = progress->samples ? -1 : target;
  progress->epochs = epochs;
}

void mix_progress_begin(mix_progress *progress) {
  progress->seen = progress->width = progress->value_count = 0;
  progress->due = false;
  progress->last_drawn = progress->first_step_done = progress->input = 0;
  progress->started = mix_clock(CLOCK_MONOTONIC);
}

bool mix_progress_due(mix_progress *progress, int64_t current) {
  progress->due = false;
  if (!progress->verbose) return false;
  if (progress->samples) current = 0;
  if (current == 1) progress->first_step_done = mix_clock(CLOCK_MONOTONIC);
  if (progress->verbose != 1 || (progress->target >= 0 && current >= progress->target)) return false;
  return progress->due = mix_clock(CLOCK_MONOTONIC) - progress->last_drawn >= 0.1;
}

static int digits(int64_t number) {
  int count = 1;
  while (number >= 10) number /= 10, count++;
  return count;
}

/* tf_keras: "cur/target [=====>......]"; Keras 3: bold numbers and a bar of twenty heavy dashes. */
static void put_bar(line *out, const mix_progress *progress, int64_t current) {
  if (progress->target < 0) {
    put(out, progress->rules->progress_dashes ? "\033[1m%7lld/Unknown\033[0m" : "%7lld/Unknown",
        (long long)current);
    return;
  }
  int width = digits(progress->target);
  if (progress->rules->progress_dashes) {
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

static void redraw(mix_progress *progress, int64_t current, const mix_logs *logs) {
  double at = mix_clock(CLOCK_MONOTONIC);
  progress->last_drawn = at;
  line out = {.used = 0};
  put_bar(&out, progress, current);
  double step = per_step(progress, at, current);
  if (progress->target < 0) {
    put(&out, progress->rules->progress_dashes ? " \033[1m" : " - ");
    put_elapsed(&out, at - progress->started);
    if (progress->rules->progress_dashes) put(&out, "\033[0m");
    put_rate(&out, progress, step);
  } else if (progress->rules->progress_dashes) {
    put(&out, " \033[1m");
    put_remaining(&out, step * (double)(progress->target - current));
    put(&out, "\033[0m");
    put_rate(&out, progress, step);
  } else {
    put(&out, " - ETA: ");
    put_remaining(&out, step * (double)(progress->target - current));
  }
  put_values(&out, progress, logs);
  draw(progress, &out, false);
}

void mix_progress_step(mix_progress *progress, const mix_model *model, int64_t current,
                       const mix_logs *logs) {
  progress->seen = current;
  if (progress->verbose != 1) return;
  if (logs) keep_values(progress, model, logs);
  if (progress->due) redraw(progress, progress->samples ? 0 : current, logs);
}

/* Ours alone, at the end of Keras's line. */
static void put_input(line *out, const mix_progress *progress) {
  if (progress->input > 0) put(out, " - input %.0f %%", 100 * progress->input);
}

void mix_progress_end(mix_progress *progress, const mix_logs *logs) {
  if (progress->target < 0) progress->target = progress->seen;
  if (!progress->verbose) return;
  double at = mix_clock(CLOCK_MONOTONIC), seconds = at - progress->started,
         step = per_step(progress, at, progress->target);
  line out = {.used = 0};
  if (progress->verbose == 1) {
    put_bar(&out, progress, progress->target);
    put(&out, progress->rules->progress_dashes ? " \033[1m" : " - ");
    put_elapsed(&out, seconds);
    if (progress->rules->progress_dashes) put(&out, "\033[0m");
    put_rate(&out, progress, step);
    put_values(&out, progress, logs);
    put_input(&out, progress);
    draw(progress, &out, true);
    return;
  }
  put(&out, "%lld/%lld - ", (long long)progress->target, (long long)progress->target);
  put_elapsed(&out, seconds);
  if (progress->rules->progress_dashes) {
    put(&out, " -");
    put_rate(&out, progress, step);
    put_values(&out, progress, logs);
  } else {
    put_values(&out, progress, logs);
    put(&out, " -");
    put_duration(&out, seconds, "epoch");
    put(&out, " -");
    put_rate(&out, progress, progress->target > 0 ? seconds / (double)progress->target : 0);
  }
  put_input(&out, progress);
  mix_log_message(MIX_LOG_PROGRESS, "%s\n", out.text);
}
