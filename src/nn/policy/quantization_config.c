/* Objects of Keras's quantization configs, as JSON and as text. */
#include "nn/policy/quantization_config.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include <string.h>

#define CALL "quantization_config"

enum { INT8_LOW = -128, INT8_HIGH = 127 };

static const char *const classes[][2] = {{"int8", "Int8QuantizationConfig"},
                                         {"int4", "Int4QuantizationConfig"},
                                         {"float8", "Float8QuantizationConfig"}};
enum { CLASSES = sizeof classes / sizeof *classes };

static const mix_abs_max own_inputs = {.given = true, .low = -127, .high = 127, .epsilon = 1e-7};

bool mix_quantization_config_default(const char *mode, mix_quantization_config *config) {
  const size_t length = strcspn(mode ? mode : "", "/");
  *config = (mix_quantization_config){.block_size = -1};
  for (int i = 0; i < CLASSES; i++)
    if (mode && strlen(classes[i][0]) == length && !strncmp(mode, classes[i][0], length))
      config->mode = classes[i][0];
  if (!config->mode) return false;
  if (!strcmp(config->mode, "int8")) config->inputs = own_inputs;
  const double high = !strcmp(config->mode, "int4") ? 7 : 127;
  config->weights = (mix_abs_max){.low = high == 7 ? -8 : -127, .high = high, .epsilon = 1e-7};
  if (!strcmp(config->mode, "int4")) config->block_size = 128;
  return true;
}

/* ---- checks ---- */

static bool check_quantizer(const mix_abs_max *quantizer, const char *call) {
  if (!(quantizer->low >= INT8_LOW && quantizer->high <= INT8_HIGH && quantizer->low < quantizer->high))
    return mix_fail_value("%s: value_range is (%g, %g); expected two numbers from -128 to 127, the smaller "
                          "one first",
                          call, quantizer->low, quantizer->high);
  if (!(quantizer->epsilon >= 0 && quantizer->epsilon < 1e30))
    return mix_fail_value("%s: epsilon is %g; expected 0 or a positive number", call, quantizer->epsilon);
  return true;
}

bool mix_quantization_config_check(const mix_quantization_config *config, const char *call) {
  const bool int4 = !strcmp(config->mode, "int4"), own = config->weights.given || config->inputs.given;
  if (int4 && config->block_size != -1 && (config->block_size < 1 || config->block_size > INT32_MAX))
    return mix_fail_value("%s: block_size is %lld; expected -1, for one scale a column, or a positive number "
                          "up to 2147483647",
                          call, (long long)config->block_size);
  if (int4 && config->block_size > 0 && own)
    return mix_fail_value("%s: blocks of %lld and quantizers of one's own do not go together; expected "
                          "block_size -1, or weights alone with the range of int4",
                          call, (long long)config->block_size);
  if (int4 && config->weights.given && (config->weights.low != -8 || config->weights.high != 7))
    return mix_fail_value("%s: value_range of the weights is (%g, %g); expected (-8, 7) in int4", call,
                          config->weights.low, config->weights.high);
  return (!config->weights.given || check_quantizer(&config->weights, call)) &&
         (!config->inputs.given || check_quantizer(&config->inputs, call));
}

/* ---- JSON ---- */

static bool read_axes(const json_t *value, mix_axes *axes) {
  const size_t count = json_is_array(value) ? json_array_size(value) : 1;
  if (!value || json_is_null(value)) return true;
  if (count > MIX_MAX_RANK)
    return mix_fail_value(CALL ": \"axis\" has %zu axes; expected at most %d", count, MIX_MAX_RANK);
  axes->count = (int)count;
  for (size_t i = 0; i < count; i++)
    if (!mix_json_int_read(json_is_array(value) ? json_array_get(value, i) : value, "axis", "an axis",
                           -MIX_MAX_RANK, MIX_MAX_RANK - 1, &axes->axis[i]))
      return false;
  return true;
}

static bool read_quantizer(const json_t *object, mix_abs_max *quantizer) {
  if (!object || json_is_null(object)) return true;
  const json_t *config = json_object_get(object, "config"), *range = json_object_get(config, "value_range");
  if (!mix_json_is_class(object, "AbsMaxQuantizer"))
    return mix_fail_unsupported(CALL ": a quantizer is no AbsMaxQuantizer, which alone is supported");
  *quantizer = own_inputs;
  if (range && (json_array_size(range) != 2 || !json_is_number(json_array_get(range, 0)) ||
                !json_is_number(json_array_get(range, 1))))
    return mix_fail_type(CALL ": \"value_range\" is no list of two numbers");
  if (range) {
    quantizer->low = json_number_value(json_array_get(range, 0));
    quantizer->high = json_number_value(json_array_get(range, 1));
  }
  quantizer->epsilon = mix_json_number_or(config, "epsilon", 1e-7);
  const char *dtype = mix_json_string_or(config, "output_dtype", "int8");
  if (dtype && strcmp(dtype, "int8"))
    return mix_fail_value(CALL ": output_dtype is '%.30s'; expected 'int8'", dtype);
  return !mix_failed() && read_axes(json_object_get(config, "axis"), &quantizer->axes);
}

static const char *mode_of_class(const char *class_name) {
  for (int i = 0; i < CLASSES; i++)
    if (!strcmp(classes[i][1], class_name)) return classes[i][0];
  return NULL;
}

bool mix_quantization_config_read(const json_t *object, mix_quantization_config *config) {
  const char *class_name = json_is_object(object) ? mix_json_string_or(object, "class_name", "") : "",
             *mode = class_name ? mode_of_class(class_name) : NULL;
  const json_t *members = json_object_get(object, "config");
  if (mix_failed()) return false;
  if (!mode)
    return mix_fail_unsupported(CALL ": the class \"%.60s\" is not supported; expected "
                                     "Int8QuantizationConfig, Int4QuantizationConfig or "
                                     "Float8QuantizationConfig",
                                class_name);
  mix_quantization_config_default(mode, config);
  const mix_abs_max weights = config->weights;
  config->inputs = (mix_abs_max){0};
  config->block_size = -1; /* also where files of former versions say nothing */
  const json_t *block = json_object_get(members, "block_size");
  if (!strcmp(mode, "float8")) return true;
  if (!read_quantizer(json_object_get(members, "weight_quantizer"), &config->weights) ||
      !read_quantizer(json_object_get(members, "activation_quantizer"), &config->inputs))
    return false;
  if (!config->weights.given) config->weights = weights;
  if (block && !json_is_null(block) && !strcmp(mode, "int4") &&
      !mix_json_integer_read(block, "block_size", "an integer or null", -1, INT32_MAX, &config->block_size))
    return false;
  return mix_quantization_config_check(config, CALL);
}

/* Keras writes ranges as they were given, which are whole as a rule. */
static json_t *number(double value) {
  return value == (double)(int)value ? json_integer((int)value) : json_real(value);
}

static json_t *quantizer_json(const mix_abs_max *quantizer) {
  if (!quantizer->given) return json_null();
  json_t *config = json_object(), *range = json_array(), *axes = json_array();
  mix_json_append(range, number(quantizer->low));
  mix_json_append(range, number(quantizer->high));
  mix_json_set(config, "value_range", range);
  mix_json_set(config, "epsilon", json_real(quantizer->epsilon));
  mix_json_set(config, "output_dtype", json_string("int8"));
  for (int i = 0; i < quantizer->axes.count; i++)
    mix_json_append(axes, json_integer(quantizer->axes.axis[i]));
  if (quantizer->axes.count)
    mix_json_set(config, "axis", axes);
  else
    json_decref(axes);
  return mix_json_object("keras.quantizers", "AbsMaxQuantizer", mix_json_whole(config));
}

json_t *mix_quantization_config_json(const mix_quantization_config *config) {
  const bool int4 = !strcmp(config->mode, "int4");
  json_t *members = json_object();
  const char *class_name = classes[2][1];
  if (strcmp(config->mode, "float8")) {
    class_name = classes[int4][1];
    mix_json_set(members, "weight_quantizer", quantizer_json(&config->weights));
    mix_json_set(members, "activation_quantizer", quantizer_json(&config->inputs));
  }
  if (int4)
    mix_json_set(members, "block_size",
                 config->block_size > 0 ? json_integer(config->block_size) : json_null());
  return mix_json_object("keras.quantizers", class_name, mix_json_whole(members));
}

/* ---- text ---- */

const char *mix_quantization_config_text(const mix_quantization_config *config) {
  json_t *object = mix_quantization_config_json(config);
  char *text = object ? mix_json_text(object) : NULL;
  const char *interned = text ? mix_intern(text) : NULL;
  mix_free(text);
  json_decref(object);
  return interned;
}

bool mix_quantization_config_parse(const char *text, mix_quantization_config *config) {
  json_t *object = mix_json_parse(text, CALL);
  const bool good = object && mix_quantization_config_read(object, config);
  json_decref(object);
  return good;
}
