/* The tables of the three generations. */
#include "nn/policy/semantics.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include <stdatomic.h>
#include <string.h>

/* The generations that a row names. */
enum { L = 1, X = 2, LX = L | X, K3 = 4, LK3 = L | K3, XK3 = X | K3 };

const mix_semantics mix_semantics_tf_keras = {
    .name = "tf_keras",
#define RULE(generations, rule) .rule = ((generations)&L) != 0,
#define VALUE(type, rule, tf_keras, experimental, keras3) .rule = tf_keras,
#include "nn/policy/rules.h"
};

const mix_semantics mix_semantics_experimental = {
    .name = "experimental",
#define RULE(generations, rule) .rule = ((generations)&X) != 0,
#define VALUE(type, rule, tf_keras, experimental, keras3) .rule = experimental,
#include "nn/policy/rules.h"
};

const mix_semantics mix_semantics_keras3 = {
    .name = "keras3",
#define RULE(generations, rule) .rule = ((generations)&K3) != 0,
#define VALUE(type, rule, tf_keras, experimental, keras3) .rule = keras3,
#include "nn/policy/rules.h"
};

static const mix_semantics *const tables[] = {&mix_semantics_tf_keras, &mix_semantics_keras3,
                                              &mix_semantics_experimental};

static _Atomic(const mix_semantics *) current = &mix_semantics_tf_keras;

const mix_semantics *mix_semantics_named(const char *name) {
  if (mix_failed()) return NULL;
  mix_did_you_mean nearest = {.word = name};
  for (size_t i = 0; name && i < sizeof tables / sizeof *tables; i++) {
    if (!strcmp(tables[i]->name, name)) return tables[i];
    mix_did_you_mean_try(&nearest, tables[i]->name);
  }
  char hint[100];
  return mix_fail_value(
      "semantics: \"%s\" is not known%s; expected \"tf_keras\", \"keras3\" or \"experimental\"",
      name ? name : "NULL", mix_did_you_mean_hint(&nearest, hint, sizeof hint));
}

mix_status mix_set_semantics(const char *name) {
  if (mix_failed()) return mix_error();
  const mix_semantics *semantics = mix_semantics_named(name);
  if (!semantics) return mix_error();
  atomic_store(&current, semantics);
  return MIX_OK;
}

const mix_semantics *mix_semantics_current(void) { return atomic_load(&current); }

static bool is_table(const mix_semantics *semantics) {
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (tables[i] == semantics) return true;
  return mix_fail_type("semantics: got a pointer to something else; expected the result of "
                       "mix_semantics_named or mix_semantics_current, or NULL");
}

const mix_semantics *mix_semantics_or_current(const mix_semantics *given) {
  return given && is_table(given) ? given : mix_semantics_current();
}

const char *mix_semantics_name(const mix_semantics *semantics) {
  return semantics && is_table(semantics) ? semantics->name : "";
}
