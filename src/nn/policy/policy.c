/* Policy names and their meaning (docs/spec/mixed_precision.md, 1.1 to 1.3). */
#include "nn/policy/policy.h"
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "nn/policy/loss_scale.h"
#include "nn/policy/policy_map.h"
#include "nn/policy/quantization.h"
#include "nn/number.h"
#include <stdio.h>

enum { DEFAULT_AMAX_HISTORY_LENGTH = 1024 };

void mix_policy_entries_free(mix_policy_entries *entries) {
  if (!entries) return;
  mix_release(entries->otherwise);
  for (int i = 0; i < entries->count; i++) mix_release(entries->items[i].policy);
  mix_free(entries->items);
  mix_free(entries);
}

static void finalize(void *object) {
  mix_policy *policy = object;
  mix_release(policy->loss_scale);
  mix_policy_entries_free(policy->map);
  mix_free(policy->serialized);
  mix_free(policy->config);
}
static const char *name_of(const void *object) { return ((const mix_policy *)object)->name; }
const mix_class mix_policy_class = {.name = "policy", .finalize = finalize, .name_of = name_of};

/* The meaning of a policy name. */
typedef struct meaning {
  mix_dtype compute, variable;
  char mode[24], source[40]; /* of a quantised policy, otherwise "" */
} meaning;

static bool starts_with(const char *text, const char *prefix) {
  return !strncmp(text, prefix, strlen(prefix));
}
static bool ends_with(const char *text, const char *suffix) {
  size_t n = strlen(text), m = strlen(suffix);
  return n >= m && !strcmp(text + n - m, suffix);
}

/* Names that end in _float32_vars were removed in TensorFlow 2.1. */
static bool refuse_removed(const char *name) {
  static const struct {
    const char *name, *instead;
  } hints[] = {{"infer_float32_vars", "'mixed_float16' or 'mixed_bfloat16'"},
               {"infer_with_float32_vars", "'mixed_float16' or 'mixed_bfloat16'"},
               {"float16_with_float32_vars", "'mixed_float16'"},
               {"bfloat16_with_float32_vars", "'mixed_bfloat16'"}};
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (!strcmp(hints[i].name, name))
      return mix_fail_value(
          "policy: names that end in '_float32_vars' have been removed; got '%s'. Use the policy %s instead",
          name, hints[i].instead);
  return mix_fail_value("policy: names that end in '_float32_vars' have been removed; got '%.100s'", name);
}

static bool refuse_name(const char *name, const mix_semantics *semantics) {
  char hint[100];
  return mix_fail_value(
      "policy: '%.60s%s' cannot be converted to a %s%s; valid names are 'mixed_float16', 'mixed_bfloat16', "
      "and the name of any dtype such as 'float32'",
      name, strlen(name) > 60 ? "..." : "", semantics->policy_class,
      mix_did_you_mean_choice(name, "mixed_float16|mixed_bfloat16|float16|bfloat16|float32|float64", hint,
                              sizeof hint));
}

/* The plain names of Keras 3: dtypes that its tensors can have. */
static bool plain_name_allowed(mix_dtype dtype, const mix_semantics *semantics) {
  if (dtype == MIX_DTYPE_NONE) return false;
  return semantics->policy_unknown_names_plain || (dtype != MIX_COMPLEX64 && dtype != MIX_COMPLEX128);
}

/* The dtype of a plain name. TensorFlow accepts the C names of three. */
static mix_dtype dtype_named(const char *name, const mix_semantics *semantics) {
  if (semantics->policy_unknown_names_plain) {
    if (!strcmp(name, "half")) return MIX_FLOAT16;
    if (!strcmp(name, "float")) return MIX_FLOAT32;
    if (!strcmp(name, "double")) return MIX_FLOAT64;
  }
  return mix_dtype_from_name(name);
}

static bool plain(const char *name, const mix_semantics *semantics, meaning *m) {
  if (!strcmp(name, "mixed_float16") || !strcmp(name, "mixed_bfloat16")) {
    m->compute = name[6] == 'f' ? MIX_FLOAT16 : MIX_BFLOAT16;
    m->variable = MIX_FLOAT32;
    return true;
  }
  if (semantics->policy_infer && !strcmp(name, "_infer")) return true;
  mix_dtype dtype = dtype_named(name, semantics);
  if (!plain_name_allowed(dtype, semantics)) return false;
  m->compute = m->variable = dtype;
  return true;
}

/* "int8_from_mixed_bfloat16": the mode, and the policy that gives the dtypes. */
static bool quantized(const char *name, const char *from, const mix_semantics *semantics, meaning *m) {
  const char *source = from + strlen("_from_");
  if ((size_t)(from - name) >= sizeof m->mode || strlen(source) >= sizeof m->source)
    return refuse_name(name, semantics);
  memcpy(m->mode, name, (size_t)(from - name));
  strcpy(m->source, source);
  if (!mix_quantization_known(m->mode) || !plain(source, semantics, m)) return refuse_name(name, semantics);
  if (!strcmp(m->mode, "int8") && m->compute == MIX_FLOAT16)
    return mix_fail_value(
        "policy: '%s' is refused: %s quantisation doesn't work well with compute dtype float16; use "
        "'%s_from_mixed_bfloat16'",
        name, m->mode, m->mode);
  return true;
}

static bool parse_name(const char *name, const mix_semantics *semantics, meaning *m) {
  *m = (meaning){.compute = MIX_DTYPE_NONE};
  if (semantics->policy_quantized) {
    const char *from = strstr(name, "_from_");
    if (from) return quantized(name, from, semantics, m);
    if (starts_with(name, "float8_"))
      return mix_fail_unsupported(
          "policy: '%.60s': this library has no float8 tensors; expected a wider type such as 'bfloat16'",
          name);
  } else if (ends_with(name, "_float32_vars")) {
    return refuse_removed(name);
  }
  return plain(name, semantics, m) || refuse_name(name, semantics);
}

/* The loss scale of an experimental policy: the one given, or dynamic for mixed_float16. *result is a
 * retained object or NULL. */
static bool choose_loss_scale(const mix_policy_options *o, const char *name, const mix_semantics *semantics,
                              mix_loss_scale **result, bool *given) {
  int count =
      (o->loss_scale != 0) + (o->loss_scale_name != NULL) + (o->loss_scale_object != NULL) + o->no_loss_scale;
  *result = NULL;
  *given = count > 0;
  if (!count && (!semantics->policy_has_loss_scale || strcmp(name, "mixed_float16"))) return true;
  if (!semantics->policy_has_loss_scale)
    return mix_fail_type(
        "policy: a loss scale belongs to policies of the experimental semantics; with %s wrap the optimizer "
        "instead",
        semantics->name);
  if (count > 1)
    return mix_fail_value(
        "policy: give only one of loss_scale, loss_scale_name, loss_scale_object and no_loss_scale");
  if (o->no_loss_scale) return true;
  mix_loss_scale *loss_scale = o->loss_scale_object ? o->loss_scale_object
                               : o->loss_scale_name ? mix_loss_scale_get(o->loss_scale_name)
                               : o->loss_scale != 0
                                   ? mix_fixed_loss_scale(mix_option_number(o->loss_scale, 0))
                                   : mix_dynamic_loss_scale(.semantics = semantics);
  *result = mix_retain(loss_scale);
  return loss_scale != NULL;
}

/* Only float16 needs a loss scale, because its gradients underflow. */
static void warn_useless_loss_scale(const mix_policy *policy) {
  if (!policy->loss_scale || policy->compute == MIX_FLOAT16 || policy->compute == MIX_DTYPE_NONE) return;
  char text[200], number[32];
  const char *value = policy->loss_scale->dynamic ? mix_loss_scale_text(policy->loss_scale, text, sizeof text)
                                                  : mix_python_float(policy->loss_scale->initial, number);
  mix_log_message(
      MIX_LOG_WARNING,
      "policy: a loss scale is only useful for float16, but the policy '%s' was given loss_scale %s",
      policy->name, value);
}

mix_policy *mix_policy_make(const mix_policy_options *options) {
  const mix_policy_options o = *options;
  const mix_semantics *semantics = mix_semantics_or_current(o.semantics);
  const char *name = o.name;
  if (!name) return mix_fail_type("policy: 'name' must be a string such as 'mixed_float16', but got NULL");
  meaning m;
  if (!parse_name(name, semantics, &m)) return NULL;
  if (o.amax_history_length < 0)
    return mix_fail_value("policy: amax_history_length is %lld; expected a positive number",
                          (long long)o.amax_history_length);
  mix_policy *policy = mix_object_new(sizeof *policy, &mix_policy_class);
  if (!policy) return NULL;
  policy->name = mix_intern(name);
  policy->compute = m.compute;
  policy->variable = m.variable;
  policy->semantics = semantics;
  policy->quantization_mode = m.mode[0] ? mix_intern(m.mode) : NULL;
  policy->source_name = m.source[0] ? mix_intern(m.source) : NULL;
  policy->amax_history_length = o.amax_history_length ? o.amax_history_length : DEFAULT_AMAX_HISTORY_LENGTH;
  if (mix_failed() ||
      !choose_loss_scale(&o, name, semantics, &policy->loss_scale, &policy->loss_scale_given)) {
    mix_release(policy);
    return NULL;
  }
  warn_useless_loss_scale(policy);
  if (semantics->device_check && starts_with(name, "mixed_") &&
      (m.compute == MIX_FLOAT16 || semantics->device_check_bfloat16))
    mix_device_check(name);
  return mix_scoped(policy);
}

mix_policy *mix_policy_from_dtype(mix_dtype dtype) {
  if (mix_failed()) return NULL;
  return mix_fail_type(
      "policy: 'name' must be a string, but got the dtype %s; pass its name instead: mix_dtype_name(dtype), "
      "'%s'",
      mix_dtype_name(dtype), mix_dtype_name(dtype));
}

const char *mix_policy_name(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) ? policy->name : NULL;
}
mix_dtype mix_policy_compute_dtype(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) ? policy->compute : MIX_DTYPE_NONE;
}
mix_dtype mix_policy_variable_dtype(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) ? policy->variable : MIX_DTYPE_NONE;
}
mix_loss_scale *mix_policy_loss_scale(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) ? policy->loss_scale : NULL;
}
const char *mix_policy_quantization_mode(const mix_policy *policy) {
  const char *mode = mix_is(policy, &mix_policy_class) ? policy->quantization_mode : NULL;
  char word[24];
  if (!mode || !strchr(mode, '/')) return mode;
  snprintf(word, sizeof word, "%.*s", (int)strcspn(mode, "/"), mode);
  return mix_intern(word);
}
int64_t mix_policy_amax_history_length(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) ? policy->amax_history_length : 0;
}
bool mix_policy_should_cast_variables(const mix_policy *policy) {
  return mix_is(policy, &mix_policy_class) && policy->compute != policy->variable;
}
bool mix_policy_is_mixed(const mix_policy *policy) { return mix_policy_should_cast_variables(policy); }

const char *mix_policy_text(const mix_policy *policy, char *text, size_t size) {
  char loss_scale[240];
  if (!text || !size) return "";
  if (!mix_is(policy, &mix_policy_class))
    snprintf(text, size, "None");
  else if (policy->semantics->policy_has_loss_scale)
    snprintf(text, size, "<%s \"%s\", loss_scale=%s>", policy->semantics->policy_class, policy->name,
             mix_loss_scale_text(policy->loss_scale, loss_scale, sizeof loss_scale));
  else
    snprintf(text, size, "<%s \"%s\">",
             policy->map                 ? "DTypePolicyMap"
             : policy->quantization_mode ? mix_quantization_class(policy->quantization_mode)
                                         : policy->semantics->policy_class,
             policy->name);
  return text;
}

int mix_policy_entries_find(const mix_policy_entries *entries, const char *key) {
  for (int i = 0; i < entries->count; i++)
    if (!strcmp(entries->items[i].key, key)) return i;
  return -1;
}

/* Both have the same default and the same keys with equal policies. */
static bool maps_equal(const mix_policy *a, const mix_policy *b) {
  bool equal = a->map && b->map && mix_policy_equal(a->map->otherwise, b->map->otherwise) &&
               a->map->count == b->map->count;
  for (int i = 0; equal && i < a->map->count; i++) {
    const int at = mix_policy_entries_find(b->map, a->map->items[i].key);
    equal = at >= 0 && mix_policy_equal(a->map->items[i].policy, b->map->items[at].policy);
  }
  return equal;
}

bool mix_policy_equal(const mix_policy *a, const mix_policy *b) {
  if (a == b || !mix_is(a, &mix_policy_class) || !mix_is(b, &mix_policy_class)) return a == b;
  if (a->map || b->map) return maps_equal(a, b);
  return a->semantics->policy_equal_by_name && b->semantics->policy_equal_by_name && a->name == b->name &&
         a->amax_history_length == b->amax_history_length;
}
