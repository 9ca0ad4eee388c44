/* Reading the values of options. */
#include "cli/options.h"
#include "saving/keras_file.h"

#include "base/number.h"
#include "formats/file_set.h"
#include "nn/policy/quantization.h"
#include "train/callback.h"

#include <math.h>
#include <string.h>

static bool bad_value(const char *command, const cli_option_row *row, const char *value,
                      const char *expected) {
  const bool names = row->kind == CHOICE || row->kind == MODEL || row->kind == DATA || row->kind == DEVICE ||
                     row->kind == MEMORY;
  char hint[100];
  fprintf(stderr, "mixtape %s: --%s: '%s' given%s; expected %s\n", command, row->name, value,
          names ? mix_did_you_mean_choice(value, row->argument, hint, sizeof hint) : "", expected);
  return false;
}

static bool parse_number(const char *text, double *number) {
  char *end;
  *number = mix_number_read(text, &end);
  return *text && !*end && isfinite(*number);
}

/* "0=3,7=0.25" */
static bool parse_class_weights(const char *text, cli_options *options) {
  options->class_weight = text;
  options->class_weight_count = 0;
  for (;;) {
    int i = options->class_weight_count;
    size_t length = strcspn(text, ",");
    char item[64], *equals;
    if (i == MIX_CLASS_MAX || length >= sizeof item) return false;
    snprintf(item, sizeof item, "%.*s", (int)length, text);
    if (!(equals = strchr(item, '='))) return false;
    *equals = 0;
    if (!mix_integer_read(item, &options->class_labels[i]) ||
        !parse_number(equals + 1, &options->class_weights[i]))
      return false;
    if (options->class_labels[i] < 0 || options->class_weights[i] < 0) return false;
    for (int before = 0; before < i; before++)
      if (options->class_labels[before] == options->class_labels[i]) return false;
    options->class_weight_count++;
    if (!text[length]) return true;
    text += length + 1;
  }
}

/* Validates the text at once, so that an error is reported as one of the option. */
static bool parse_callback(const char *command, const cli_option_row *row, const char *text,
                           cli_options *options) {
  if (options->callback_count == CLI_CALLBACK_MAX)
    return bad_value(command, row, text, "at most 16 callbacks");
  if (row->commands == CLI_TUNE && mix_callback_text_names(text, "numerics_report"))
    return bad_value(
        command, row, text,
        "another callback, for each run has the search's own report; `mixtape numerics` writes one");
  bool good = false;
  MIX_SCOPE { good = mix_callback_from_text(text) != NULL; }
  if (!good || mix_error() != MIX_OK) {
    fprintf(stderr, "mixtape %s: --%s: %s: %s\n", command, row->name, mix_status_name(mix_error()),
            mix_error_message());
    return false;
  }
  options->callbacks[options->callback_count++] = text;
  return true;
}

static bool ends_in(const char *value, const char *ending) {
  size_t length = strlen(value), end = strlen(ending);
  return length > end && !strcmp(value + length - end, ending);
}

static bool is_keras(const char *value) { return ends_in(value, ".keras") || ends_in(value, ".h5"); }

/* Is it the name of a file that the option takes? */
static bool is_file(const cli_option_row *row, const char *value) {
  if (row->field == FIELD(init_weights) || row->field == FIELD(load_lora) || row->field == FIELD(weight_map))
    return *value;
  if (row->field == FIELD(save_lora)) return ends_in(value, ".npz");
  if (row->field == FIELD(save))
    return row->commands == CLI_TUNE ? is_keras(value) && !ends_in(value, ".weights.h5")
                                     : cli_is_saved_name(value);
  if (row->field == FIELD(png)) return ends_in(value, ".png");
  if (row->field == FIELD(html)) return ends_in(value, ".html");
  return row->commands == CLI_PREDICT ? ends_in(value, ".npz") || ends_in(value, ".npy")
                                      : cli_picture_path(value);
}

/* "FILE.npz|FILE.npy": "a name that ends in .npz or .npy" */
static bool parse_file(const char *command, const cli_option_row *row, const char *value) {
  if (is_file(row, value)) return true;
  char expected[128] = "a name that ends in ";
  size_t used = strlen(expected);
  for (const char *end = strchr(row->argument, '.'); end; end = strchr(end + strcspn(end, "|"), '.'))
    used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%.*s",
                             expected[used - 1] == ' ' ? "" : " or ", (int)strcspn(end, "|"), end);
  return bad_value(command, row, value, strchr(row->argument, '.') ? expected : row->argument);
}

static const struct {
  int64_t low, high;
  const char *expected; /* NULL: as shown by --help */
} ranges[] = {[COUNT] = {1, INT64_MAX, "a positive whole number"},
              [LEVEL] = {0, 2, NULL},
              [SEED] = {0, INT64_MAX, "a whole number from 0 on"},
              [FIRST_SEED] = {1, INT64_MAX, "a whole number from 1 on"},
              [THREADS] = {1, 1024, "a whole number from 1 to 1024"},
              [FREQUENCY] = {1, INT64_MAX, "epoch or a positive whole number of steps"}};

static bool set_integer(const char *command, const cli_option_row *row, const char *value, int64_t *field) {
  if (row->kind == FREQUENCY && !strcmp(value, "epoch")) return *field = 0, true;
  if (mix_integer_read(value, field) && *field >= ranges[row->kind].low && *field <= ranges[row->kind].high)
    return true;
  const char *expected = ranges[row->kind].expected;
  return bad_value(command, row, value, expected ? expected : row->argument);
}

/* False after saying that the policy is one of Keras that quantizes, for which there is another command. */
static bool names_no_mode(const char *command, const cli_option_row *row, const char *value) {
  if (row->field != FIELD(policy)) return true;
  bool refused = false;
  MIX_SCOPE {
    const mix_policy *policy = mix_policy_new(value, .semantics = mix_semantics_named("keras3"));
    const char *mode = policy ? mix_policy_quantization_mode(policy) : NULL;
    refused = mode != NULL;
    if (mode && mix_policy_check_global(policy, "--policy"))
      fprintf(stderr,
              "mixtape %s: --policy: '%s' quantizes layers, which `mixtape quantize IN OUT --mode %.*s` does "
              "with a model of a file; expected %s\n",
              command, value, (int)strcspn(mode, "/"), mode, row->argument);
    else if (mode)
      fprintf(stderr, "mixtape %s: %s\n", command, mix_error_message());
  }
  mix_error_clear();
  return !refused;
}

bool cli_set_option(const char *command, const cli_option_row *row, const char *value, cli_options *options) {
  void *field = (char *)options + row->field;
  switch (row->kind) {
  case TEXT: *(const char **)field = value; return *value || bad_value(command, row, value, row->argument);
  case PATH: *(const char **)field = value; return parse_file(command, row, value);
  case MODEL:
    *(const char **)field = value;
    return cli_is_named_model(value) || is_keras(value) || ends_in(value, ".onnx") ||
           mix_is_preset_folder(value) || mix_file_set_interrupted(value, MIX_PRESET_MARK) ||
           bad_value(command, row, value, row->argument);
  case CHOICE:
    *(const char **)field = value;
    return mix_is_choice(row->argument, value) ||
           (names_no_mode(command, row, value) && bad_value(command, row, value, row->argument));
  case MEMORY:
    *(const char **)field = value;
    return mix_is_choice("auto|fast|least", value) || mix_bytes_read(value, &(size_t){0}) ||
           bad_value(command, row, value, "auto, fast, least, or an amount above 0 such as 512MiB or 1.5GiB");
  case DEVICE:
    *(const char **)field = value;
    return mix_backend_named(value) || bad_value(command, row, value, row->argument);
  case SEED:
  case FIRST_SEED: options->has_seed = true; /* fall through */
  case COUNT:
  case LEVEL:
  case THREADS:
  case FREQUENCY: return set_integer(command, row, value, field);
  case FRACTION:
    return (parse_number(value, (double *)field) && *(double *)field >= 0 && *(double *)field < 1) ||
           bad_value(command, row, value, "a number in [0, 1)");
  case NUMBER:
    if (!parse_number(value, (double *)field)) return bad_value(command, row, value, "a number");
    if (*(double *)field == 0) *(double *)field = MIX_ZERO;
    return true;
  case GIGABYTES:
    return (parse_number(value, (double *)field) && *(double *)field > 0) ||
           bad_value(command, row, value, "a positive number of GB");
  case FLAG: *(bool *)field = true; return true;
  case RESUME:
    options->resume = true;
    options->force = !strcmp(value, "force");
    return !*value || options->force || bad_value(command, row, value, "--resume or --resume=force");
  case DATA:
    *(const char **)field = value;
    return cli_is_image_set(value) || !strcmp(value, "synthetic") || ends_in(value, ".npz") ||
           cli_is_table(value) || bad_value(command, row, value, row->argument);
  case CLASS_WEIGHTS:
    return parse_class_weights(value, options) ||
           bad_value(command, row, value, "LABEL=WEIGHT,LABEL=WEIGHT,..., each label once (at most 64)");
  case LAYERS:
    return cli_parse_layers(value,
                            row->field == FIELD(simulate_except) ? CLI_SIMULATE_EXCEPT : CLI_FLOAT32_LAYERS,
                            options) ||
           bad_value(command, row, value, "names of layers with commas between");
  case REMAT:
    *(const char **)field = value;
    return cli_parse_remat(value, options) ||
           bad_value(command, row, value,
                     "full, activations, larger_than, larger_than:ELEMENTS or list_of_layers:A,B,...");
  case CALLBACK: return parse_callback(command, row, value, options);
  case SCALE: *(const char **)field = strcmp(value, "auto") ? value : NULL; return true;
  }
  return false;
}
