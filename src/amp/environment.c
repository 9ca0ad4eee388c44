/* Options of the rewrite from environment variables. */
#include "amp/active_lists.h"
#include "base/alloc.h"
#include "base/error.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

extern char **environ;

static const struct {
  const char *name;
  mix_amp_dtype target;
} modes[MIX_AMP_MODES] = {
    [MIX_AMP_CUDA_FLOAT16] = {"cuda_float16", MIX_AMP_DTYPE_FLOAT16},
    [MIX_AMP_CPU_FLOAT16] = {"cpu_float16", MIX_AMP_DTYPE_FLOAT16},
    [MIX_AMP_ONEDNN_BFLOAT16] = {"onednn_bfloat16", MIX_AMP_DTYPE_BFLOAT16},
    [MIX_AMP_ONEDNN_FLOAT16] = {"onednn_float16", MIX_AMP_DTYPE_FLOAT16},
};

const char *mix_amp_mode_name(mix_amp_mode mode) { return modes[mode].name; }
mix_amp_dtype mix_amp_mode_target(mix_amp_mode mode) { return modes[mode].target; }

int mix_amp_mode_of(const char *name) {
  for (int i = 0; i < MIX_AMP_MODES; i++)
    if (!strcmp(modes[i].name, name)) return i;
  return -1;
}

static const struct {
  const char *name;
  mix_amp_level level;
} levels[] = {{"TENSOR_CORES_ONLY", MIX_AMP_TENSOR_CORES_ONLY},
              {"UNSAFE_FORCE_ALL", MIX_AMP_UNSAFE_FORCE_ALL},
              {"TREAT_INFER_AS_DENY", MIX_AMP_TREAT_INFER_AS_DENY}};
#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

const char *mix_amp_level_name(mix_amp_level level) {
  for (int i = 0; i < COUNT(levels); i++)
    if (levels[i].level == level) return levels[i].name;
  return NULL;
}

const char *const mix_amp_edit_names[MIX_AMP_EDITS] = {"ALLOWLIST", "INFERLIST", "DENYLIST", "CLEARLIST",
                                                       "WHITELIST", "GRAYLIST",  "BLACKLIST"};
static const struct {
  const char *name;
  size_t field;
  bool negated;
} switches[] = {{"IGNORE_PERFORMANCE", offsetof(mix_amp_options, ignore_performance), false},
                {"SIMULATE_GPU", offsetof(mix_amp_options, simulate_gpu), false},
                {"EMULATE_FP16", offsetof(mix_amp_options, no_emulation), true}};

static bool set_level(mix_amp_options *options, const char *value) {
  options->level = MIX_AMP_LEVEL_NORMAL;
  for (int i = 0; i < COUNT(levels); i++)
    if (!strcasecmp(levels[i].name, value)) {
      options->level = levels[i].level;
      return true;
    }
  if (*value)
    mix_log_message(
        MIX_LOG_WARNING,
        "mixed precision rewrite: LEVEL is \"%s\", which does nothing; the levels are %s, %s and %s", value,
        levels[0].name, levels[1].name, levels[2].name);
  return true;
}

/* Booleans as TensorFlow reads them: 0, false, 1, true in any case. */
static bool set_switch(mix_amp_options *options, int number, const char *value) {
  bool on = !strcmp(value, "1") || !strcasecmp(value, "true");
  if (!on && strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0)
    return mix_fail_value("mixed precision rewrite: %s is \"%s\"; expected 0, 1, false or true",
                          switches[number].name, value);
  *(bool *)((char *)options + switches[number].field) = on != switches[number].negated;
  return true;
}

bool mix_amp_options_set(mix_amp_options *options, const char *name, const char *value) {
  if (mix_failed()) return false;
  if (!strcmp(name, "LEVEL")) return set_level(options, value);
  if (!strcmp(name, "LOG_PATH")) {
    options->log_path = *value ? value : NULL;
    return true;
  }
  for (int i = 0; i < COUNT(switches); i++)
    if (!strcmp(name, switches[i].name)) return set_switch(options, i, value);
  const char *last = strrchr(name, '_');
  for (int i = 0; last && i < MIX_AMP_EDITS; i++) {
    if (strlen(mix_amp_edit_names[i]) != (size_t)(last - name) ||
        strncmp(name, mix_amp_edit_names[i], (size_t)(last - name)) != 0)
      continue;
    if (!strcmp(last, "_ADD"))
      options->edits[i].add = value;
    else if (!strcmp(last, "_REMOVE"))
      options->edits[i].remove = value;
    else
      break;
    return true;
  }
  mix_log_message(
      MIX_LOG_WARNING,
      "mixed precision rewrite: nothing is called %s and it does nothing; there are LEVEL, LOG_PATH, "
      "IGNORE_PERFORMANCE, SIMULATE_GPU, EMULATE_FP16, and ALLOWLIST, INFERLIST, DENYLIST, CLEARLIST, "
      "WHITELIST, GRAYLIST, BLACKLIST, each with _ADD and _REMOVE",
      name);
  return true;
}

bool mix_amp_options_from_environment(mix_amp_options *options) {
  static const size_t prefix = sizeof MIX_AMP_ENVIRONMENT - 1;
  for (char **row = environ; row && *row; row++) {
    const char *value = strchr(*row, '=');
    char name[64];
    if (!value || strncmp(*row, MIX_AMP_ENVIRONMENT, prefix) != 0) continue;
    size_t length = (size_t)(value - *row) - prefix;
    /* longer than any variable's name; the warning shows the beginning */
    if (length >= sizeof name) length = sizeof name - 1;
    memcpy(name, *row + prefix, length);
    name[length] = 0;
    if (!mix_amp_options_set(options, name, value + 1)) return false;
  }
  return true;
}

uint64_t mix_amp_environment_key(void) {
  uint64_t key = 0xcbf29ce484222325u; /* FNV-1a */
  for (char **row = environ; row && *row; row++) {
    if (strncmp(*row, MIX_AMP_ENVIRONMENT, sizeof MIX_AMP_ENVIRONMENT - 1) != 0) continue;
    for (const char *c = *row + sizeof MIX_AMP_ENVIRONMENT - 1; *c; c++)
      key = (key ^ (unsigned char)*c) * 0x100000001b3u;
    key = (key ^ '\n') * 0x100000001b3u;
  }
  return key;
}

/* Parses all of `text` up to `end` as a decimal int. False if it is not one. */
static bool whole_number(const char *text, const char *end, int *number) {
  long long n = 0;
  if (text == end) return false;
  for (; text < end; text++) {
    if (*text < '0' || *text > '9' || (n = n * 10 + *text - '0') > INT_MAX) return false;
  }
  *number = (int)n;
  return true;
}

void mix_amp_parse_architecture(const char *text, int architecture[2]) {
  const char *end = text + strlen(text), *dot = strchr(text, '.');
  architecture[0] = architecture[1] = 0;
  if (whole_number(text, dot ? dot : end, &architecture[0]) &&
      (!dot || whole_number(dot + 1, end, &architecture[1])))
    return;
  architecture[0] = architecture[1] = 0;
}

int mix_amp_parse_version(const char *text) {
  int number;
  return whole_number(text, text + strlen(text), &number) ? number : 0;
}
