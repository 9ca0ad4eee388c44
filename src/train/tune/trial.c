/* One run of the caller's training: what it is told, what ends it early, and whom it suspects. */
#include "train/numerics/numerics.h"
#include "train/tune/tune.h"

#include "base/alloc.h"
#include "base/error.h"
#include <math.h>
#include <string.h>

typedef struct running {
  mix_tuning *tuning;
  mix_tune_record *record;
  mix_numerics *report; /* NULL: in float32 */
  bool watches;         /* a loss that is not finite ends the run */
  bool not_finite;
} running;

static int layer_index(const mix_tuning *tuning, const char *layer) {
  for (int i = 0; layer && i < tuning->layer_count; i++)
    if (!strcmp(tuning->layers[i], layer)) return i;
  return -1;
}

/* Index of the layer that a report's name means: itself, or the layer around it, as "block" for
 * "block/dense". */
static int layer_around(const mix_tuning *tuning, const char *name) {
  int best = -1;
  size_t longest = 0;
  for (int i = 0; name && i < tuning->layer_count; i++) {
    const size_t length = strlen(tuning->layers[i]);
    if (length < longest || strncmp(tuning->layers[i], name, length)) continue;
    if (name[length] && name[length] != '/') continue;
    best = i, longest = length;
  }
  return best;
}

static const running *running_of(const mix_tune_trial *trial, const char *call) {
  if (mix_failed()) return NULL;
  if (!trial || !trial->search) mix_fail_type("%s: expected the trial of a search", call);
  return mix_failed() ? NULL : trial->search;
}

/* -1 with the error recorded. */
static int known_layer(const running *r, const char *layer, const char *call) {
  const int index = layer_index(r->tuning, layer);
  if (index < 0)
    mix_fail_value("%s: '%s' is none of the %d layers of the search; name it in .layers", call,
                   layer ? layer : "NULL", r->tuning->layer_count);
  return index;
}

const char *mix_tune_dtype(const mix_tune_trial *trial, const char *layer) {
  const running *r = running_of(trial, "tune_dtype");
  const int index = r ? known_layer(r, layer, "tune_dtype") : -1;
  return index >= 0 && r->record->set && r->record->set[index] ? "float32" : NULL;
}

mix_status mix_tune_suspect(const mix_tune_trial *trial, const char *layer) {
  const running *r = running_of(trial, "tune_suspect");
  const int index = r ? known_layer(r, layer, "tune_suspect") : -1;
  if (index >= 0) r->record->suspects[index] = true;
  return mix_error();
}

/* ---- callbacks ---- */

/* A dynamic loss scale skips such steps, and the report says when it gives up. */
static mix_status begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  running *r = context;
  r->watches = !mix_optimizer_dynamic(mix_model_optimizer(model));
  return MIX_OK;
}

/* The report, the callback before this one, has each step's loss; logs would compute all metrics anew. */
static mix_status stop_at_nan(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  running *r = context;
  if (!r->watches || isfinite(r->report ? r->report->loss : mix_logs_get(logs, "loss"))) return MIX_OK;
  r->not_finite = true;
  return mix_model_set_stop_training(model, true);
}

/* Float32 has no layer to suspect: a report would compile its watched step for nothing. */
static mix_list *make_callbacks(running *r, int64_t every) {
  mix_callback *stopping = mix_callback_new(.name = "precision tuning", .context = r, .on_train_begin = begin,
                                            .on_train_batch_end = stop_at_nan, .no_batch_logs = r->report);
  if (!r->report) return mix_list_of(stopping);
  return mix_list_of(mix_numerics_report(.report = r->report, .every = every, .stop_at_stall = true),
                     stopping);
}

/* ---- after the run ---- */

static void suspect(running *r, const char *name) {
  const int index = layer_around(r->tuning, name);
  if (index >= 0) r->record->suspects[index] = true;
}

static void read_report(running *r) {
  for (int i = 0; i < mix_numerics_advice_count(r->report); i++) {
    mix_numerics_advice advice;
    if (!mix_numerics_get_advice(r->report, i, &advice, sizeof advice) &&
        !strcmp(advice.kind, "float32_override"))
      suspect(r, advice.layer);
  }
  suspect(r, mix_numerics_layer(r->report));
  const int64_t steps = mix_numerics_steps(r->report);
  if (!strcmp(mix_numerics_status(r->report), "stalled"))
    r->record->stopped = "stalled";
  else if (steps && mix_numerics_skipped(r->report) == steps)
    r->record->stopped = "no step applied";
}

static void log_run(const mix_tuning *t, const mix_tune_record *run) {
  mix_text text = {.grows = true};
  mix_tune_put_names(&text, mix_tuning_names(t, t->run_count - 1), "", " ");
  mix_log_message(MIX_LOG_INFO, "tune_precision: run %d (%s, seed %llu%s%s): loss %.6g%s%s%s", t->run_count,
                  mix_tune_purpose_name(run->purpose), (unsigned long long)run->seed,
                  run->set ? ", float32: " : "",
                  !run->set   ? ""
                  : text.used ? text.text
                              : "none",
                  run->loss,
                  run->purpose == MIX_TUNE_FLOAT32 ? ""
                  : run->passed                    ? ", passes"
                                                   : ", fails",
                  run->stopped ? ": " : "", run->stopped ? run->stopped : "");
  mix_free(text.text);
}

static void train(const mix_tune_trials *trials, running *r) {
  const mix_tune_options *options = trials->options;
  const bool float32 = r->record->purpose == MIX_TUNE_FLOAT32;
  static const char *const none[] = {NULL};
  mix_tune_trial trial = {.size = sizeof trial,
                          .policy = float32 ? "float32" : r->tuning->policy,
                          .seed = r->record->seed,
                          .float32_layers =
                              float32 ? none : mix_tuning_names(r->tuning, r->tuning->run_count - 1),
                          .search = r};
  if (!float32) r->report = mix_numerics_new();
  trial.callbacks = make_callbacks(r, options->every);
  if (mix_failed()) return;
  const double loss = options->function(options->context, &trial);
  r->record->loss = isnan(loss) ? NAN : loss;
  if (!mix_failed() && r->report) read_report(r);
  if (!r->record->stopped && r->not_finite) r->record->stopped = "loss not finite";
}

mix_tune_record *mix_tune_run(const mix_tune_trials *trials, const bool *set, uint64_t seed,
                              mix_tune_purpose purpose) {
  mix_tuning *tuning = trials->tuning;
  running r = {.tuning = tuning, .record = mix_tuning_append(tuning, set)};
  if (!r.record) return NULL;
  r.record->seed = seed;
  r.record->purpose = purpose;
  MIX_SCOPE { train(trials, &r); }
  if (mix_failed()) return NULL;
  r.record->passed = purpose == MIX_TUNE_FLOAT32 || (!r.record->stopped && r.record->loss <= tuning->limit);
  log_run(tuning, r.record);
  return r.record;
}
