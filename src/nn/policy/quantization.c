/* The table of Keras 3's quantization modes. A mode without layers has policies that can be made, compared
 * and written, and no layer takes them. */
#include "nn/policy/quantization.h"

#include "base/error.h"
#include "base/number.h"
#include "nn/policy/policy.h"
#include <stdio.h>
#include <string.h>

typedef struct mode {
  const char *name;
  bool (*takes)(const char *numbers); /* "/4/128", "": what follows the name */
  const char *class_name;             /* of policies without numbers; NULL: they need some */
  const char *numbered_class;         /* with numbers */
  const char *const *layers; /* classes of layers that compute in it, ended by NULL; NULL: none yet */
} mode;

static bool no_numbers(const char *numbers) { return !*numbers; }

/* "/128", "/-1" */
static bool is_group(const char *numbers) {
  int64_t size;
  return *numbers == '/' && mix_integer_read(numbers + 1, &size) && size <= INT32_MAX &&
         (size == -1 || size > 0);
}

static bool int4_numbers(const char *numbers) { return !*numbers || is_group(numbers); }

/* "/4/128" */
static bool has_bits(const char *numbers, const char *bits) {
  return *numbers == '/' && numbers[1] && strchr(bits, numbers[1]) && is_group(numbers + 2);
}

static bool gptq_numbers(const char *numbers) { return has_bits(numbers, "2348"); }

static bool awq_numbers(const char *numbers) { return has_bits(numbers, "4"); }

static const char *const float8_layers[] = {"Dense", "EinsumDense", NULL};
static const char *const integer_layers[] = {"Dense", "EinsumDense", "Embedding", "ReversibleEmbedding",
                                             NULL};

static const mode modes[] = {
    {"int8", no_numbers, "QuantizedDTypePolicy", NULL, integer_layers},
    {"int4", int4_numbers, "QuantizedDTypePolicy", "Int4DTypePolicy", integer_layers},
    {"float8", no_numbers, "QuantizedFloat8DTypePolicy", NULL, float8_layers},
    {"ternary", no_numbers, "QuantizedDTypePolicy", NULL, NULL},
    {"gptq", gptq_numbers, NULL, "GPTQDTypePolicy", NULL},
    {"awq", awq_numbers, NULL, "AWQDTypePolicy", NULL},
};
enum { MODES = sizeof modes / sizeof *modes };

/* NULL: there is none of that name, or its numbers are others. */
static const mode *find(const char *text) {
  const size_t length = strcspn(text, "/");
  for (int i = 0; i < MODES; i++)
    if (strlen(modes[i].name) == length && !strncmp(modes[i].name, text, length))
      return modes[i].takes(text + length) ? &modes[i] : NULL;
  return NULL;
}

bool mix_quantization_known(const char *text) { return find(text) != NULL; }

const char *mix_quantization_class(const char *text) {
  const mode *m = find(text);
  return strchr(text, '/') ? m->numbered_class : m->class_name;
}

bool mix_quantization_has_class(const char *class_name) {
  for (int i = 0; i < MODES; i++)
    if ((modes[i].class_name && !strcmp(modes[i].class_name, class_name)) ||
        (modes[i].numbered_class && !strcmp(modes[i].numbered_class, class_name)))
      return true;
  return false;
}

/* ---- what computes in them ---- */

bool mix_quantization_has_layer(const char *mode, const char *class_name) {
  for (const char *const *at = find(mode)->layers; at && *at; at++)
    if (!strcmp(*at, class_name)) return true;
  return false;
}

#define REMEDY "expected a policy that does not quantize, such as 'float32' or 'mixed_bfloat16'"

bool mix_policy_check_layer(const mix_policy *policy, const char *class_name, const char *name,
                            const char *call) {
  if (!policy) return false;
  if (!policy->quantization_mode || mix_quantization_has_layer(policy->quantization_mode, class_name))
    return true;
  return mix_fail_unsupported(
      "%s: the layer '%.60s' was given the policy '%s', and %s layers do not compute in the mode %s "
      "yet; " REMEDY,
      call, name && *name ? name : class_name, policy->name, class_name, policy->quantization_mode);
}

bool mix_policy_check_global(const mix_policy *policy, const char *call) {
  if (!policy) return false;
  if (!policy->quantization_mode || find(policy->quantization_mode)->layers) return true;
  return mix_fail_unsupported(
      "%s: got the policy '%s', and no layer of any class computes in the mode %s yet; " REMEDY, call,
      policy->name, policy->quantization_mode);
}
