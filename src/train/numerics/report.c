/* The callback that fills a numerics report, and mix_numerics_run. */
#include "base/alloc.h"
#include "base/error.h"
#include "distribute/distribute.h"
#include "formats/file.h"
#include "train/callback.h"
#include "train/numerics/canvas.h"
#include "train/numerics/numerics.h"
#include <errno.h>
#include <mixtape/graph_rewrite.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct watcher {
  mix_numerics *report; /* retained */
  mix_step_observer observer;
  mix_numerics_report_options options; /* resolved */
  bool reported;
} watcher;

static void watcher_release(void *context) {
  watcher *w = context;
  mix_release(w->report);
  mix_free(w);
}

/* Checked before training. */
static bool writable(const char *path) {
  struct stat status;
  char folder[4096];
  if (!path) return true;
  const char *slash = strrchr(path, '/'), *reason = NULL;
  snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
  if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    reason = "it is no regular file";
  else if (access(folder, W_OK | X_OK))
    reason = strerror(errno);
  if (reason) mix_fail_io("numerics_report: cannot write '%s': %s", path, reason);
  return !reason;
}

/* All ranks watch, because gradients may be exchanged while they are computed; rank 0 writes. */
static bool can_write(const mix_numerics_report_options *o) {
  return writable(o->json) && writable(o->table) && writable(o->png) && writable(o->html) &&
         (!o->png || mix_canvas_available("numerics_report"));
}

static mix_status train_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  watcher *w = context;
  mix_numerics *r = w->report;
  if (!mix_rank() && !can_write(&w->options)) return mix_error();
  mix_numerics_clear(r);
  if (w->options.every) r->every = w->options.every;
  if (w->options.stall) r->stall_limit = w->options.stall;
  r->intermediates = !w->options.no_intermediates;
  r->optimizer = model->state->optimizer;
  r->scaled = mix_optimizer_scales_loss(r->optimizer);
  r->dynamic = mix_optimizer_dynamic(r->optimizer);
  r->model = mix_intern(mix_model_name(model));
  r->policy = mix_intern(mix_policy_name(mix_model_policy(model)));
  r->takes_maps = model->semantics->policy_maps;
  if (!r->model || (!r->policy && mix_failed())) return mix_error();
  r->rewrite = mix_graph_rewrite_dtype();
  w->reported = false;
  w->observer = mix_numerics_observer(r);
  return mix_model_observe(model, &w->observer);
}

static bool write_text(const char *path, const char *text) {
  return !path || (text && mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, "numerics_report"));
}

static mix_status write_files(watcher *w) {
  if (mix_rank()) return MIX_OK;
  if (w->options.json) write_text(w->options.json, mix_numerics_json(w->report));
  if (w->options.table) write_text(w->options.table, mix_numerics_table(w->report, false));
  if (w->options.png) mix_numerics_write_png(w->report, w->options.png);
  if (w->options.html) mix_numerics_write_html(w->report, w->options.html);
  return mix_error();
}

static void log_conclusion(watcher *w) {
  const mix_numerics_conclusion *c = mix_numerics_conclude(w->report);
  mix_log_message(MIX_LOG_WARNING, "numerics: %s%s%s%s", c->text, c->advice_count ? " Remedy: " : "",
                  c->advice_count ? c->advice[0].text : "", c->advice_count ? "." : "");
  w->reported = true;
}

static mix_status batch_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  watcher *w = context;
  if (!w->report->stalled || w->reported) return MIX_OK;
  log_conclusion(w);
  if (w->options.stop_at_stall) return mix_model_set_stop_training(model, true);
  return write_files(w);
}

static mix_status train_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  watcher *w = context;
  const char *status = mix_numerics_conclude(w->report)->status;
  if (!w->reported && strcmp(status, "healthy") && strcmp(status, "settled")) log_conclusion(w);
  return write_files(w);
}

#define FIELD(member) MIX_FIELD(mix_numerics_report_options, member)
static const mix_field_row fields[] = {{FIELD(every), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
                                       {FIELD(stall), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
                                       {FIELD(stop_at_stall), &mix_field_boolean},
                                       {FIELD(json), &mix_field_text},
                                       {FIELD(table), &mix_field_text},
                                       {FIELD(png), &mix_field_text},
                                       {FIELD(html), &mix_field_text},
                                       {0}};
static mix_callback *make_from_text(const void *options) {
  const mix_numerics_report_options *o = options;
  if (o->json || o->table || o->png || o->html) return mix_numerics_report_with(o);
  return mix_fail_type(
      "numerics_report: nobody would see the report; give json, table, png or html, a file for it");
}
const mix_callback_kind mix_numerics_report_kind = {"numerics_report", sizeof(mix_numerics_report_options),
                                                    fields, make_from_text};

mix_callback *mix_numerics_report_with(const mix_numerics_report_options *given) {
  mix_numerics_report_options options;
  if (!mix_callback_resolve(&mix_numerics_report_kind, given, &options)) return NULL;
  const char *const files[] = {options.json, options.table, options.png, options.html};
  for (int i = 0; i < 4; i++)
    if (files[i] && !*files[i]) return mix_fail_value("numerics_report: the name of a file is empty");
  if (options.report && !mix_numerics_given(options.report, "numerics_report")) return NULL;
  watcher *w = mix_calloc(1, sizeof *w);
  if (!w) return NULL;
  w->options = options;
  w->report = mix_retain(options.report ? options.report : mix_numerics_new());
  if (!w->report) {
    watcher_release(w);
    return NULL;
  }
  static const size_t steers[] = {offsetof(mix_numerics_report_options, every),
                                  offsetof(mix_numerics_report_options, stall),
                                  offsetof(mix_numerics_report_options, stop_at_stall), 0};
  return mix_callback_steers(MIX_CALLBACK_OWN(.name = "NumericsReport", .context = w,
                                              .release = watcher_release, .on_train_begin = train_begin,
                                              .on_train_batch_end = batch_end, .on_train_end = train_end,
                                              .no_batch_logs = true),
                             (mix_callback_steering){&mix_numerics_report_kind, &w->options, steers});
}

mix_numerics *mix_numerics_run_with(mix_model *model, const mix_numerics_run_options *given) {
  if (!mix_given(model, &mix_model_object_class, "numerics_run", "a model")) return NULL;
  MIX_OPTIONS(mix_numerics_run_options, options, given, "numerics_run");
  if (options.steps < 0)
    return mix_fail_value("numerics_run: steps is %lld; expected a positive number, or 0 for 50",
                          (long long)options.steps);
  mix_numerics *report = mix_numerics_new();
  int64_t steps = options.steps ? options.steps : 50;
  mix_callback *watching =
      mix_numerics_report(.report = report, .stall = options.stall, .stop_at_stall = true,
                          .no_intermediates = options.no_intermediates);
  if (!watching) return NULL;
  mix_history *history =
      mix_model_fit(model, options.x, options.y, .batch_size = options.batch_size, .epochs = steps,
                    .steps = steps, .no_shuffle = options.no_shuffle, .seed = options.seed,
                    .verbose = MIX_SILENT, .callbacks = mix_list_of(watching));
  return history ? report : NULL;
}
