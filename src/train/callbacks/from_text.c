/* Makes callbacks from text, for command lines: "early_stopping:monitor=val_loss,patience=3". */
#include "base/alloc.h"
#include "base/error.h"
#include "base/number.h"
#include "train/callback.h"
#include <mixtape/numerics.h>
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TEXT_MAX = 1024 };

/* INTEGER and NUMBER store MIX_INT_ZERO and MIX_ZERO for a zero if the field's zero means a default.
 * NOT: a flag whose field has the opposite meaning. EVERY: epoch, batch or a number of batches. */
typedef enum kind { TEXT, NUMBER, INTEGER, FLAG, NOT, EVERY } kind;
typedef struct key_row {
  const char *name;
  kind kind;
  size_t offset;
  bool default_zero; /* zero itself is the default */
} key_row;

typedef union settings {
  size_t size;
  mix_early_stopping_options early;
  mix_reduce_lr_on_plateau_options plateau;
  mix_model_checkpoint_options checkpoint;
  mix_csv_logger_options csv;
  mix_tensorboard_options tensorboard;
  mix_numerics_report_options numerics;
  mix_backup_and_restore_options backup;
} settings;

#define ROW(type, field, kind, zero)                                                                         \
  { #field, kind, offsetof(type, field), zero }
static const key_row early_keys[] = {
    ROW(mix_early_stopping_options, monitor, TEXT, false),
    ROW(mix_early_stopping_options, min_delta, NUMBER, true),
    ROW(mix_early_stopping_options, patience, INTEGER, true),
    ROW(mix_early_stopping_options, mode, TEXT, false),
    ROW(mix_early_stopping_options, baseline, NUMBER, false),
    ROW(mix_early_stopping_options, restore_best_weights, FLAG, false),
    ROW(mix_early_stopping_options, start_from_epoch, INTEGER, true),
    {0},
};
static const key_row plateau_keys[] = {
    ROW(mix_reduce_lr_on_plateau_options, monitor, TEXT, false),
    ROW(mix_reduce_lr_on_plateau_options, factor, NUMBER, false),
    ROW(mix_reduce_lr_on_plateau_options, patience, INTEGER, false),
    ROW(mix_reduce_lr_on_plateau_options, mode, TEXT, false),
    ROW(mix_reduce_lr_on_plateau_options, min_delta, NUMBER, false),
    ROW(mix_reduce_lr_on_plateau_options, cooldown, INTEGER, true),
    ROW(mix_reduce_lr_on_plateau_options, min_lr, NUMBER, true),
    {0},
};
static const key_row checkpoint_keys[] = {
    ROW(mix_model_checkpoint_options, filepath, TEXT, false),
    ROW(mix_model_checkpoint_options, monitor, TEXT, false),
    ROW(mix_model_checkpoint_options, save_best_only, FLAG, false),
    ROW(mix_model_checkpoint_options, mode, TEXT, false),
    ROW(mix_model_checkpoint_options, save_freq, EVERY, true),
    ROW(mix_model_checkpoint_options, initial_value_threshold, NUMBER, false),
    {0},
};
static const key_row csv_keys[] = {
    ROW(mix_csv_logger_options, filename, TEXT, false),
    ROW(mix_csv_logger_options, separator, TEXT, false),
    ROW(mix_csv_logger_options, append, FLAG, false),
    {0},
};
static const key_row tensorboard_keys[] = {
    ROW(mix_tensorboard_options, log_dir, TEXT, false),
    ROW(mix_tensorboard_options, histogram_freq, INTEGER, true),
    {"write_graph", NOT, offsetof(mix_tensorboard_options, no_write_graph), false},
    ROW(mix_tensorboard_options, write_steps_per_second, FLAG, false),
    ROW(mix_tensorboard_options, update_freq, EVERY, true),
    {0},
};
static const key_row numerics_keys[] = {
    ROW(mix_numerics_report_options, every, INTEGER, true),
    ROW(mix_numerics_report_options, stall, INTEGER, true),
    ROW(mix_numerics_report_options, stop_at_stall, FLAG, false),
    ROW(mix_numerics_report_options, json, TEXT, false),
    ROW(mix_numerics_report_options, table, TEXT, false),
    ROW(mix_numerics_report_options, png, TEXT, false),
    {0},
};
static const key_row backup_keys[] = {
    ROW(mix_backup_and_restore_options, backup_dir, TEXT, false),
    ROW(mix_backup_and_restore_options, save_freq, EVERY, true),
    {"delete_checkpoint", NOT, offsetof(mix_backup_and_restore_options, keep_checkpoint), false},
    {"double_checkpoint", NOT, offsetof(mix_backup_and_restore_options, only_newest), false},
    {0},
};
static const key_row no_keys[] = {{0}};

static mix_callback *make_early(const settings *s) { return mix_early_stopping_with(&s->early); }
static mix_callback *make_plateau(const settings *s) { return mix_reduce_lr_on_plateau_with(&s->plateau); }
static mix_callback *make_checkpoint(const settings *s) { return mix_model_checkpoint_with(&s->checkpoint); }
static mix_callback *make_csv(const settings *s) { return mix_csv_logger_with(&s->csv); }
static mix_callback *make_tensorboard(const settings *s) { return mix_tensorboard_with(&s->tensorboard); }
static mix_callback *make_numerics(const settings *s) {
  const mix_numerics_report_options *o = &s->numerics;
  if (o->json || o->table || o->png) return mix_numerics_report_with(o);
  return mix_fail(
      MIX_TYPE_ERROR,
      "numerics_report: nobody would see the report; give json, table or png, the file that it goes to");
}
static mix_callback *make_backup(const settings *s) { return mix_backup_and_restore_with(&s->backup); }
static mix_callback *make_terminate(const settings *s) {
  (void)s;
  return mix_terminate_on_nan();
}

static const struct callback_row {
  const char *name;
  size_t size;
  const key_row *keys;
  mix_callback *(*make)(const settings *settings);
} callbacks[] = {
    {"early_stopping", sizeof(mix_early_stopping_options), early_keys, make_early},
    {"reduce_lr_on_plateau", sizeof(mix_reduce_lr_on_plateau_options), plateau_keys, make_plateau},
    {"model_checkpoint", sizeof(mix_model_checkpoint_options), checkpoint_keys, make_checkpoint},
    {"csv_logger", sizeof(mix_csv_logger_options), csv_keys, make_csv},
    {"tensorboard", sizeof(mix_tensorboard_options), tensorboard_keys, make_tensorboard},
    {"backup_and_restore", sizeof(mix_backup_and_restore_options), backup_keys, make_backup},
    {"terminate_on_nan", sizeof(size_t), no_keys, make_terminate},
    {"numerics_report", sizeof(mix_numerics_report_options), numerics_keys, make_numerics},
};
enum { CALLBACKS = sizeof callbacks / sizeof *callbacks };

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

static bool parse_value(const char *callback, const key_row *row, const char *value, settings *s) {
  void *field = (char *)s + row->offset;
  char *end;
  errno = 0;
  const char *expected = "a number";
  switch (row->kind) {
  case TEXT: *(const char **)field = value; return true;
  case NUMBER: {
    double number = mix_number_read(value, &end);
    *(double *)field = number == 0 && !row->default_zero ? MIX_ZERO : number;
    if (*value && !*end && isfinite(number)) return true;
    break;
  }
  case INTEGER: {
    long long number = strtoll(value, &end, 10);
    *(int64_t *)field = number == 0 && !row->default_zero ? MIX_INT_ZERO : number;
    expected = "a whole number";
    if (*value && !*end && !errno) return true;
    break;
  }
  case EVERY:
    expected = "epoch, batch or a number of batches";
    *(int64_t *)field = !strcmp(value, "batch") ? 1 : strtoll(value, &end, 10);
    if (!strcmp(value, "batch") || !strcmp(value, "epoch") || (*value && !*end && !errno)) return true;
    break;
  case FLAG:
  case NOT:
    expected = "true or false";
    *(bool *)field = !strcasecmp(value, row->kind == FLAG ? "true" : "false"); /* also Python's "True" */
    if (!strcasecmp(value, "true") || !strcasecmp(value, "false")) return true;
  }
  mix_fail(MIX_VALUE_ERROR, "%s: %s is '%s'; expected %s", callback, row->name, value, expected);
  return false;
}

static bool parse_item(const struct callback_row *callback, char *item, settings *s) {
  char *equals = strchr(item, '=');
  if (!equals) {
    mix_fail(MIX_VALUE_ERROR, "%s: \"%s\" is not of the form key=value", callback->name, item);
    return false;
  }
  *equals = 0;
  char known[256] = "";
  for (const key_row *row = callback->keys; row->name; row++) {
    if (!strcmp(row->name, item)) return parse_value(callback->name, row, equals + 1, s);
    size_t used = strlen(known);
    snprintf(known + used, sizeof known - used, "%s%s", used ? ", " : "", row->name);
  }
  mix_fail(MIX_VALUE_ERROR, "%s: unknown argument '%s'; expected %s", callback->name, item,
           *known ? known : "none");
  return false;
}

mix_callback *mix_callback_from_text(const char *text) {
  if (mix_failed()) return NULL;
  if (!text) return mix_fail(MIX_TYPE_ERROR, "callback_from_text: no text");
  char copy[TEXT_MAX];
  if (strlen(text) >= sizeof copy)
    return mix_fail(MIX_VALUE_ERROR, "callback_from_text: more than %d characters", TEXT_MAX - 1);
  strcpy(copy, text);
  size_t length = strcspn(copy, ":");
  const struct callback_row *row = NULL;
  for (int i = 0; i < CALLBACKS; i++)
    if (same_name(callbacks[i].name, copy, length)) row = &callbacks[i];
  if (!row)
    return mix_fail(
        MIX_VALUE_ERROR,
        "callback_from_text: '%.*s' is not known; expected early_stopping, reduce_lr_on_plateau, "
        "model_checkpoint, csv_logger, tensorboard, backup_and_restore, terminate_on_nan or numerics_report",
        (int)length, copy);
  settings s = {0};
  s.size = row->size;
  char *at = copy[length] ? copy + length + 1 : NULL;
  while (at && *at) {
    char *comma = strchr(at, ',');
    if (comma) *comma = 0;
    if (!parse_item(row, at, &s)) return NULL;
    at = comma ? comma + 1 : NULL;
  }
  return row->make(&s);
}
