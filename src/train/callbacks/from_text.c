/* The kinds of callbacks, and callbacks from text, for command lines:
 * "early_stopping:monitor=val_loss,patience=3".
 */
#include "base/alloc.h"
#include "base/error.h"
#include "train/callback.h"
#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- kinds ---- */

extern const mix_callback_kind mix_early_stopping_kind, mix_reduce_lr_on_plateau_kind,
    mix_model_checkpoint_kind, mix_csv_logger_kind, mix_tensorboard_kind, mix_backup_and_restore_kind,
    mix_progbar_logger_kind, mix_terminate_on_nan_kind, mix_numerics_report_kind;
static const mix_callback_kind *const kinds[] = {
    &mix_early_stopping_kind, &mix_reduce_lr_on_plateau_kind, &mix_model_checkpoint_kind,
    &mix_csv_logger_kind,     &mix_tensorboard_kind,          &mix_backup_and_restore_kind,
    &mix_progbar_logger_kind, &mix_terminate_on_nan_kind,     &mix_numerics_report_kind};

/* ---- text ---- */

/* Compares names without case and underscores: "EarlyStopping" is "early_stopping". */
static bool same_name(const char *name, const char *given, size_t length) {
  const char *end = given + length;
  for (;;) {
    while (*name == '_') name++;
    while (given < end && *given == '_') given++;
    if (given == end || !*name) return given == end && !*name;
    if (tolower((unsigned char)*name++) != tolower((unsigned char)*given++)) return false;
  }
}

static mix_callback *make_from_text(const mix_callback_kind *kind, const char *text) {
  mix_fields fields = {.rows = kind->fields, .call = kind->name};
  json_t *config = mix_fields_parse(&fields, text);
  size_t *options = config ? mix_calloc(1, kind->options_size) : NULL;
  if (options) *options = kind->options_size;
  bool read = options && mix_fields_read(&fields, config, options);
  mix_callback *callback = read ? kind->make(options) : NULL;
  mix_free(options);
  json_decref(config);
  return callback;
}

bool mix_callback_text_names(const char *text, const char *name) {
  return text && same_name(name, text, strcspn(text, ":"));
}

mix_callback *mix_callback_from_text(const char *text) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail_type("callback_from_text: no text");
  size_t length = strcspn(text, ":");
  char word[64], list[256], hint[100];
  snprintf(word, sizeof word, "%.*s", (int)length, text);
  mix_text names = {.text = list, .size = sizeof list};
  mix_did_you_mean nearest = {.word = word};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (mix_callback_text_names(text, kinds[i]->name))
      return make_from_text(kinds[i], text + length + (text[length] == ':'));
    mix_did_you_mean_try(&nearest, kinds[i]->name);
    mix_text_put(&names, "%s%s", i ? ", " : "", kinds[i]->name);
  }
  return mix_fail_value("callback_from_text: '%s' is not known%s; expected one of %s", word,
                        mix_did_you_mean_hint(&nearest, hint, sizeof hint), list);
}
