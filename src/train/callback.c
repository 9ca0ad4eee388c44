/* Callbacks as objects, and calling their hooks. */
#include "train/callback.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "saving/run_identity.h"
#include <string.h>

static void callback_finalize(void *object) {
  mix_callback *callback = object;
  if (callback->options.release) callback->options.release(callback->options.context);
}
static const mix_class callback_class = {.name = "callback", .finalize = callback_finalize};

static const struct hook_row {
  size_t offset;
  const char *name;
  bool batch_end;
} hooks[MIX_HOOKS] = {
#define HOOK(index, field, end) [index] = {offsetof(mix_callback_options, field), #field, end}
    HOOK(MIX_ON_TRAIN_BEGIN, on_train_begin, false),
    HOOK(MIX_ON_TRAIN_END, on_train_end, false),
    HOOK(MIX_ON_EPOCH_BEGIN, on_epoch_begin, false),
    HOOK(MIX_ON_EPOCH_END, on_epoch_end, false),
    HOOK(MIX_ON_TRAIN_BATCH_BEGIN, on_train_batch_begin, false),
    HOOK(MIX_ON_TRAIN_BATCH_END, on_train_batch_end, true),
    HOOK(MIX_ON_TEST_BEGIN, on_test_begin, false),
    HOOK(MIX_ON_TEST_END, on_test_end, false),
    HOOK(MIX_ON_TEST_BATCH_BEGIN, on_test_batch_begin, false),
    HOOK(MIX_ON_TEST_BATCH_END, on_test_batch_end, true),
    HOOK(MIX_ON_PREDICT_BEGIN, on_predict_begin, false),
    HOOK(MIX_ON_PREDICT_END, on_predict_end, false),
    HOOK(MIX_ON_PREDICT_BATCH_BEGIN, on_predict_batch_begin, false),
    HOOK(MIX_ON_PREDICT_BATCH_END, on_predict_batch_end, true),
#undef HOOK
};

static mix_callback_hook hook_of(const mix_callback *callback, mix_hook hook) {
  return *(const mix_callback_hook *)((const char *)&callback->options + hooks[hook].offset);
}

bool mix_callback_resolve(const mix_callback_kind *kind, const void *given, void *options) {
  if (!mix_options_copy(options, kind->options_size, given, kind->name)) return false;
  return mix_fields_resolve(&(mix_fields){.rows = kind->fields, .call = kind->name}, options);
}

mix_callback *mix_callback_with(const mix_callback_options *given) {
  MIX_OPTIONS(mix_callback_options, options, given, "callback_new");
  options.name = mix_intern(options.name ? options.name : "callback");
  mix_callback *callback = options.name ? mix_object_new(sizeof *callback, &callback_class) : NULL;
  if (!callback) return NULL;
  callback->options = options;
  callback->options.release = NULL; /* the context is the caller's until nothing can fail */
  if (!mix_scoped(callback)) return NULL;
  callback->options.release = options.release;
  return callback;
}

mix_callback *mix_callback_own(const mix_callback_options *options) {
  mix_callback *callback = mix_callback_with(options);
  if (!callback) options->release(options->context);
  return callback;
}

mix_callback *mix_callback_steers(mix_callback *callback, mix_callback_steering steering) {
  if (callback) callback->steering = steering;
  return callback;
}

const char *mix_callback_name(const mix_callback *callback) {
  return mix_is(callback, &callback_class) ? callback->options.name : "";
}

/* A ProgbarLogger reads the logs of few batches: mix_callbacks_end_batch. */
static void note_hooks(mix_callbacks *callbacks, const mix_callback *callback) {
  for (mix_hook h = 0; h < MIX_HOOKS; h++) {
    if (!hook_of(callback, h)) continue;
    callbacks->present |= 1u << h;
    if (hooks[h].batch_end && !callback->options.no_batch_logs && !callback->progress)
      callbacks->logs |= 1u << h;
  }
}

bool mix_callbacks_open(mix_callbacks *callbacks, mix_model *model, mix_list *items, const char *call) {
  *callbacks = (mix_callbacks){.model = model, .items = items, .call = call};
  if (!items || mix_failed()) return !mix_failed();
  if (!mix_is(items, &mix_list_class))
    return mix_fail_type("%s: callbacks is no list; expected mix_list_of(...) of callbacks", call);
  for (int i = 0; i < mix_list_count(items); i++) {
    const mix_callback *callback = mix_list_get(items, i);
    if (!mix_is(callback, &callback_class))
      return mix_fail_type("%s: item %d of callbacks is no callback", call, i);
    note_hooks(callbacks, callback);
  }
  return true;
}

void mix_callbacks_add_last(mix_callbacks *callbacks, mix_callback *callback) {
  callbacks->last = callback;
  callbacks->shows = callback->progress != NULL;
  note_hooks(callbacks, callback);
}

int mix_callbacks_count(const mix_callbacks *callbacks) {
  return mix_list_count(callbacks->items) + (callbacks->last != NULL);
}
mix_callback *mix_callbacks_get(const mix_callbacks *callbacks, int index) {
  return index < mix_list_count(callbacks->items) ? mix_list_get(callbacks->items, index) : callbacks->last;
}

/* Adds the callback's name to the pending error, which may come from anything the hook called. Returns
 * false. */
static bool name_callback(const mix_callback *callback, const char *hook) {
  char message[1024];
  if (strstr(mix_error_message(), mix_callback_name(callback))) return false;
  mix_status status = mix_error_take(message, sizeof message);
  return mix_fail(status, "%s (in callback '%s', %s)", message, mix_callback_name(callback), hook);
}

bool mix_callbacks_run(const mix_callbacks *callbacks, mix_hook hook, int64_t index, mix_logs *logs) {
  if (mix_failed()) return false;
  if (!(callbacks->present >> hook & 1)) return true;
  for (int i = 0; i < mix_callbacks_count(callbacks); i++) {
    mix_callback *callback = mix_callbacks_get(callbacks, i);
    mix_callback_hook call = hook_of(callback, hook);
    if (!call) continue;
    mix_status status = MIX_OK;
    bool silent = hooks[hook].batch_end && callback->options.no_batch_logs;
    MIX_SCOPE { status = call(callback->options.context, callbacks->model, index, silent ? NULL : logs); }
    if (status != MIX_OK && !mix_failed())
      mix_fail(status, "%s: callback '%s' returned %s from %s", callbacks->call, mix_callback_name(callback),
               mix_status_name(status), hooks[hook].name);
    if (mix_failed()) return name_callback(callback, hooks[hook].name);
  }
  return true;
}

static json_t *steering_json(const mix_callback_steering *steering) {
  const mix_fields fields = {
      .rows = steering->kind->fields, .call = steering->kind->name, .in_use = steering->in_use};
  json_t *config = mix_fields_write(&fields, steering->options, NULL);
  return config ? json_pack("{s:s,s:o}", "class", fields.call, "config", config) : NULL;
}

bool mix_callbacks_identify(const mix_callbacks *callbacks, json_t *identity) {
  json_t *list = json_array();
  for (int i = 0; callbacks->items && i < mix_list_count(callbacks->items); i++) {
    const mix_callback *callback = mix_list_get(callbacks->items, i);
    if (callback->steering.kind && !mix_json_append(list, steering_json(&callback->steering))) break;
  }
  return mix_run_identity_set(identity, "callbacks", list);
}
