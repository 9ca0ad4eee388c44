/* File names with Python's replacement fields for numbers: {name}, {name:[0][width][.precision][d|e|f|g]}. */
#include "base/error.h"
#include "formats/file.h"
#include "train/callback.h"
#include "nn/number.h"
#include <ctype.h>
#include <errno.h>

/* NUMBER_MAX: 1e308 has 309 digits before its point. */
enum { FIELD_MAX = 128, NUMBER_MAX = 512, PATH_MAX = 4096 };

static bool unknown_name(const char *pattern, const char *name) {
  mix_fail_value("model_checkpoint: '%s' names {%s}, which is neither epoch nor in the logs", pattern, name);
  return false;
}

/* The number that a name stands for. `*whole`: it is epoch or batch. */
static bool value_of(const char *pattern, const char *name, int64_t epoch, int64_t batch,
                     const mix_logs *logs, double *value, bool *whole) {
  *whole = !strcmp(name, "epoch") || (batch >= 0 && !strcmp(name, "batch"));
  if (!*whole && !mix_logs_has(logs, name)) return unknown_name(pattern, name);
  *value = !*whole ? mix_logs_get(logs, name) : (double)(*name == 'e' ? epoch + 1 : batch + 1);
  return true;
}

/* Python writes NaN without a sign and zero-pads NaN and infinity if requested; C does neither. */
static void put_number(char kind, int precision, double value, char *number) {
  if (!kind)
    mix_python_float(value, number);
  else if (kind == 'd')
    snprintf(number, NUMBER_MAX, "%lld", (long long)value);
  else {
    mix_number_write(number, NUMBER_MAX, (char)tolower(kind), precision < 0 ? 6 : precision,
                     isnan(value) ? fabs(value) : value);
    for (char *c = number; *c && isupper((unsigned char)kind); c++) *c = (char)toupper((unsigned char)*c);
  }
}
static void pad(const char *number, size_t width, bool zero, char *text) {
  size_t length = strlen(number), sign = zero && *number == '-',
         padding = width > length ? width - length : 0;
  memcpy(text, number, sign);
  memset(text + sign, zero ? '0' : ' ', padding);
  strcpy(text + sign + padding, number + sign);
}

/* Formats the value by the part after the colon; `text` holds NUMBER_MAX bytes. */
static bool put_field(const char *pattern, const char *spec, double value, bool whole, char *text) {
  char number[NUMBER_MAX];
  int width = 0, precision = -1;
  const char *at = spec;
  bool zero = *at == '0';
  while (isdigit((unsigned char)*at) && width < 100) width = 10 * width + *at++ - '0';
  if (*at == '.')
    for (at++, precision = 0; isdigit((unsigned char)*at) && precision < 30;)
      precision = 10 * precision + *at++ - '0';
  char kind = *at ? *at++ : whole ? 'd' : precision >= 0 ? 'g' : 0;
  if (*at || width >= 100 || precision >= 30 || (kind && !strchr("deEfFgG", kind)) ||
      (kind == 'd' && (!whole || precision >= 0))) {
    mix_fail_value("model_checkpoint: '%s' has the format ':%s'; expected [0][width][.precision] and one of "
                   "d (epoch, batch), e, f, g",
                   pattern, spec);
    return false;
  }
  put_number(kind, precision, value, number);
  pad(number, (size_t)width, zero, text);
  return true;
}

bool mix_format_path(const char *pattern, int64_t epoch, int64_t batch, const mix_logs *logs, char *path,
                     size_t size) {
  size_t used = 0;
  for (const char *at = pattern; *at;) {
    char field[FIELD_MAX], text[NUMBER_MAX] = {*at, 0};
    if ((*at == '{' || *at == '}') && at[1] == *at)
      at += 2;
    else if (*at == '{') {
      size_t length = strcspn(at + 1, "}"), name = strcspn(at + 1, ":}");
      if (!at[1 + length] || length >= sizeof field) {
        mix_fail_value("model_checkpoint: '%s' has a '{' without its '}'", pattern);
        return false;
      }
      snprintf(field, sizeof field, "%.*s", (int)length, at + 1);
      double value;
      bool whole;
      const char *spec = name < length ? field + name + 1 : "";
      field[name < length ? name : length] = 0;
      if (!value_of(pattern, field, epoch, batch, logs, &value, &whole) ||
          !put_field(pattern, spec, value, whole, text))
        return false;
      at += length + 2;
    } else
      at++;
    size_t length = strlen(text);
    if (used + length >= size) {
      mix_fail_value("model_checkpoint: the path that '%s' makes is too long", pattern);
      return false;
    }
    memcpy(path + used, text, length);
    used += length;
  }
  path[used] = 0;
  return true;
}

bool mix_make_folders(const char *path) {
  char folder[PATH_MAX];
  for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
    if (slash == path || slash - path >= PATH_MAX) continue;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
    if (!mix_folder_make_last(folder)) {
      mix_fail_io("model_checkpoint: the folder '%s' cannot be made: %s", folder, strerror(errno));
      return false;
    }
  }
  return true;
}
