/* ProgbarLogger, and its place among the callbacks of a run. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "train/callback.h"
#include <string.h>

static void logger_release(void *context) {
  mix_free(((mix_progress *)context)->values);
  mix_free(context);
}

static mix_status train_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  ((mix_progress *)context)->in_fit = true;
  return MIX_OK;
}

static mix_status epoch_begin(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  mix_progress *progress = context;
  mix_progress_begin(progress);
  if (progress->verbose && progress->epochs > 1)
    mix_log_message(MIX_LOG_PROGRESS, "Epoch %lld/%lld\n", (long long)epoch + 1, (long long)progress->epochs);
  return MIX_OK;
}

static mix_status train_batch_end(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  mix_progress_step(context, model, batch + 1, logs);
  return mix_error();
}

static mix_status end_pass(void *context, mix_model *model, int64_t epoch, mix_logs *logs) {
  mix_progress_end(context, logs);
  return MIX_OK;
}

/* Validation inside fit is silent. */
static mix_status test_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  if (!((mix_progress *)context)->in_fit) mix_progress_begin(context);
  return MIX_OK;
}

static mix_status test_batch_end(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  if (!((mix_progress *)context)->in_fit) mix_progress_step(context, model, batch + 1, logs);
  return mix_error();
}

static mix_status test_end(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  if (!((mix_progress *)context)->in_fit) mix_progress_end(context, logs);
  return MIX_OK;
}

static mix_status predict_begin(void *context, mix_model *model, int64_t index, mix_logs *logs) {
  mix_progress_begin(context);
  return MIX_OK;
}

static mix_status predict_batch_end(void *context, mix_model *model, int64_t batch, mix_logs *logs) {
  mix_progress_due(context, batch + 1);
  mix_progress_step(context, model, batch + 1, NULL);
  return MIX_OK;
}

/* Takes the memory of `progress`. */
static mix_callback *logger_new(mix_progress *progress) {
  if (!progress) return NULL;
  mix_callback *callback =
      MIX_CALLBACK_OWN(.name = "ProgbarLogger", .context = progress, .release = logger_release,
                       .on_train_begin = train_begin, .on_epoch_begin = epoch_begin,
                       .on_train_batch_end = train_batch_end, .on_epoch_end = end_pass,
                       .on_test_begin = test_begin, .on_test_batch_end = test_batch_end,
                       .on_test_end = test_end, .on_predict_begin = predict_begin,
                       .on_predict_batch_end = predict_batch_end, .on_predict_end = end_pass);
  if (callback) callback->progress = progress;
  return callback;
}

/* ---- options ---- */

static bool keep_names(const mix_field *field) {
  const char **names = field->value;
  for (int i = 0; i < MIX_MODEL_MAX && names[i]; i++)
    if (!(names[i] = mix_intern(names[i]))) return false;
  return true;
}

/* A single name is a list of one. */
static bool read_names(const mix_field *field, const json_t *value) {
  const char **names = field->value;
  size_t count = json_is_array(value) ? json_array_size(value) : !json_is_null(value);
  if (count > MIX_MODEL_MAX)
    mix_fail_value("config: \"%s\" has %zu names; expected at most %d", field->name, count, MIX_MODEL_MAX);
  for (size_t i = 0; i < count && !mix_failed(); i++) {
    const json_t *item = json_is_array(value) ? json_array_get(value, i) : value;
    if (json_is_string(item))
      names[i] = mix_intern(json_string_value(item));
    else
      mix_field_mistyped(field, item);
  }
  return !mix_failed();
}

static json_t *parse_names(const char *text) {
  json_t *list = json_array();
  for (size_t length; *text; text += length + (text[length] == ':')) {
    length = strcspn(text, ":");
    mix_json_append(list, json_stringn(text, length));
  }
  return list;
}

static const mix_value_kind names = {.expected = "a list of names",
                                     .size = sizeof(const char *),
                                     .resolve = keep_names,
                                     .read = read_names,
                                     .parse = parse_names,
                                     .text_expected = "names with colons between, such as a:b"};

static const mix_field_row fields[] = {{MIX_FIELD(mix_progbar_logger_options, count_mode), &mix_field_text,
                                        .text = "samples", .choices = "samples|steps"},
                                       {MIX_FIELD(mix_progbar_logger_options, stateful_metrics), &names},
                                       {0}};
MIX_CALLBACK_KIND(progbar_logger, fields)

mix_callback *mix_progbar_logger_with(const mix_progbar_logger_options *given) {
  mix_progbar_logger_options options;
  if (!mix_options_copy(&options, sizeof options, given, "progbar_logger")) return NULL;
  const bool has_arguments = options.count_mode || options.stateful_metrics[0];
  if (!mix_callback_resolve(&mix_progbar_logger_kind, given, &options)) return NULL;
  mix_progress *progress = mix_calloc(1, sizeof *progress);
  if (!progress) return NULL;
  progress->samples = !strcmp(options.count_mode, "samples");
  progress->has_arguments = has_arguments;
  memcpy(progress->stateful_metrics, options.stateful_metrics, sizeof options.stateful_metrics);
  return logger_new(progress);
}

/* ---- runs ---- */

static bool set_up(mix_callback *callback, const mix_semantics *rules, int verbose, int64_t target,
                   int64_t epochs) {
  mix_progress *progress = callback->progress;
  if (!rules->progbar_arguments && progress->has_arguments)
    return mix_fail_type(
        "progbar_logger: count_mode or stateful_metrics is given; ProgbarLogger of this generation "
        "takes no arguments");
  if (!rules->progbar_arguments) progress->samples = false;
  mix_progress_set(progress, verbose, rules, target, epochs);
  return true;
}

bool mix_callbacks_show(mix_callbacks *callbacks, bool tests, int verbose, int64_t target, int64_t epochs) {
  const mix_semantics *rules = callbacks->model->semantics;
  callbacks->tests = tests;
  for (int i = 0; i < mix_list_count(callbacks->items); i++) {
    mix_callback *callback = mix_list_get(callbacks->items, i);
    if (!callback->progress) continue;
    callbacks->shows = true;
    if (!(tests && callback->progress->in_fit) && !set_up(callback, rules, verbose, target, epochs))
      return false;
  }
  if (callbacks->shows || verbose < 0 || mix_failed()) return !mix_failed();
  mix_callback *last = logger_new(mix_calloc(1, sizeof(mix_progress)));
  if (!last || !set_up(last, rules, verbose, target, epochs)) return false;
  mix_callbacks_add_last(callbacks, last);
  return true;
}

void mix_callbacks_set_target(const mix_callbacks *callbacks, int64_t target) {
  for (int i = 0; callbacks->shows && i < mix_callbacks_count(callbacks); i++) {
    mix_progress *progress = mix_callbacks_get(callbacks, i)->progress;
    if (progress && !progress->samples && !(callbacks->tests && progress->in_fit)) progress->target = target;
  }
}

void mix_callbacks_set_input_share(const mix_callbacks *callbacks, double share) {
  for (int i = 0; callbacks->shows && i < mix_callbacks_count(callbacks); i++) {
    mix_progress *progress = mix_callbacks_get(callbacks, i)->progress;
    if (progress) progress->input = share;
  }
}

bool mix_callbacks_end_batch(const mix_callbacks *callbacks, mix_hook hook, int64_t index) {
  const bool read = callbacks->logs >> hook & 1;
  bool due = false;
  for (int i = 0; callbacks->shows && i < mix_callbacks_count(callbacks); i++) {
    mix_progress *progress = mix_callbacks_get(callbacks, i)->progress;
    if (progress && !(callbacks->tests && progress->in_fit)) due |= mix_progress_due(progress, index + 1);
  }
  mix_model *model = callbacks->model;
  mix_logs *logs = read ? mix_model_current_logs(model) : due ? mix_model_finished_logs(model) : NULL;
  return mix_callbacks_run(callbacks, hook, index, logs);
}
