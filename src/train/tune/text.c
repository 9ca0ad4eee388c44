/* The result of precision tuning as text, to paste, and as JSON. */
#include "train/tune/tune.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "base/json.h"
#include "nn/policy/policy_map.h"
#include <string.h>

static const char *keep(char **owner, mix_text *text) {
  mix_free(*owner);
  *owner = text->failed ? NULL : text->text;
  if (text->failed) mix_free(text->text);
  return *owner;
}

void mix_tune_put_names(mix_text *t, const char *const *names, const char *quote, const char *between) {
  for (int i = 0; names && names[i]; i++)
    mix_text_put(t, "%s%s%s%s", i ? between : "", quote, MIX_PRINTABLE(names[i]), quote);
}

static int trial_count(const mix_tuning *t) {
  int count = 0;
  for (int i = 0; i < t->run_count; i++) count += t->runs[i].set != NULL;
  return count;
}

/* What the layers of a set stay in. */
static const char *width(const mix_tuning *t) { return t->simulate ? "16 bits" : "float32"; }

/* ---- the table ---- */

static void put_run(mix_text *text, const mix_tuning *t, int index) {
  const mix_tune_record *run = &t->runs[index];
  const char *verdict = !run->set ? "" : run->passed ? "passes" : run->stopped ? run->stopped : "fails";
  const char *purpose = run->set || !t->simulate ? mix_tune_purpose_name(run->purpose) : "16 bits";
  mix_text_put(text, "%4d  %-8s %5llu  %12.6g  %-15s ", index + 1, purpose, (unsigned long long)run->seed,
               run->loss, verdict);
  if (!run->set)
    mix_text_put(text, "all");
  else if (!mix_tune_size(run->set, t->layer_count))
    mix_text_put(text, "none");
  mix_tune_put_names(text, mix_tuning_names(t, index), "", " ");
  mix_text_put(text, "\n");
}

static const char *explanation(const mix_tuning *t) {
  if (t->simulate && !strcmp(t->status, "found") && !t->larger && !mix_tuning_count(t))
    return "No layer needs 16 bits; new seeds confirm it.";
  if (t->simulate && !strcmp(t->status, "none"))
    return "Not even with all layers in 16 bits does it train as without the simulation.";
  if (!strcmp(t->status, "found") && t->larger)
    return "Smaller sets passed the search, but not on new seeds; some layers of this one may not be needed.";
  if (!strcmp(t->status, "found"))
    return mix_tuning_count(t) ? "No layer of this set can be left out; new seeds confirm it."
                               : "No layer needs float32; new seeds confirm it.";
  if (!strcmp(t->status, "none")) return "Not even with all layers in float32 does it train like float32.";
  if (!strcmp(t->status, "unconfirmed")) return "Sets passed the search, but not on new seeds.";
  return t->found >= 0 ? "The limit of trials ended the search; a smaller set may do."
                       : "The limit of trials ended the search before a set was found.";
}

const char *mix_tuning_table(mix_tuning *t) {
  if (!mix_tuning_given(t, "tuning_table")) return NULL;
  mix_text text = {.grows = true};
  if (t->simulate)
    mix_text_put(&text, "A simulation of %s under %s; the runs in 16 bits are without it.\n", t->simulate,
                 t->policy);
  mix_text_put(&text, "%s: mean loss %.6g, deviation %.3g; a set passes at %.6g or less\n\n", width(t),
               t->mean, t->deviation, t->limit);
  mix_text_put(&text, " run  purpose   seed          loss  result          layers in %s\n", width(t));
  for (int i = 0; i < t->run_count; i++) put_run(&text, t, i);
  mix_text_put(&text, "\n%d trials under %s. %s\n", trial_count(t), t->policy, explanation(t));
  if (t->found >= 0) {
    mix_text_put(&text, "%d of %d layers in %s: ", mix_tuning_count(t), t->layer_count, width(t));
    mix_tune_put_names(&text, mix_tuning_layers(t), "", " ");
    mix_text_put(&text, mix_tuning_count(t) ? "\n" : "none\n");
  }
  return keep(&t->table, &text);
}

/* ---- to paste ---- */

/* By configs, in which a layer's policy stands beside those of what it wraps: a layer of Keras 3 whose
 * dtype_policy is set leaves cells and wrapped layers in 16 bits, and in tf_keras it cannot be set. */
static const char keras_function[] = "def to_float32(value):\n"
                                     "    for item in value.values() if isinstance(value, dict) else value:\n"
                                     "        if isinstance(item, (dict, list)):\n"
                                     "            to_float32(item)\n"
                                     "    if isinstance(value, dict) and \"dtype\" in value:\n"
                                     "        value[\"dtype\"] = \"float32\"\n\n"
                                     "config, weights = model.get_config(), model.get_weights()\n";
static const char keras_lines[] =
    "    layer = config\n"
    "    for name in path.split(\"/\"):\n"
    "        layer = next(c for c in (x[\"config\"] for x in layer[\"layers\"]) if c[\"name\"] == name)\n"
    "    to_float32(layer)\n\n"
    "model = type(model).from_config(config)\n"
    "model.set_weights(weights)\n";

/* Under a map compile scales no loss. */
static void put_map(const mix_tuning *t, const char *const *names, mix_text *text) {
  const mix_policy *map = mix_policy_map_keeping_float32(t->policy, names);
  if (!map) return;
  mix_text_put(text, "or, in Keras 3, a map of policies, DTypePolicyMap or --policy-map FILE.json%s:\n  {",
               strstr(t->policy, "bfloat16") ? "" : " with --loss-scale dynamic");
  mix_text_put(text, "\"default_policy\": \"%s\", \"policy_map\": {", t->policy);
  for (int i = 0; i < mix_policy_map_count(map); i++) {
    json_t *key = mix_json_name(mix_policy_map_key(map, i));
    char *quoted = key ? mix_json_text(key) : NULL;
    mix_text_put(text, "%s%s: \"float32\"", i ? ", " : "", quoted ? quoted : "");
    mix_free(quoted);
    json_decref(key);
  }
  mix_text_put(text, "}}\n");
}

const char *mix_tuning_policy_map(mix_tuning *t) {
  if (!mix_tuning_given(t, "tuning_policy_map")) return NULL;
  if (t->found < 0)
    return mix_fail_runtime("tuning_policy_map: the search ended with '%s' and has no set", t->status);
  MIX_SCOPE {
    mix_policy *map = mix_policy_map_keeping_float32(t->policy, mix_tuning_layers(t));
    const char *text = map ? mix_policy_serialize(map) : NULL;
    mix_free(t->policy_map);
    t->policy_map = text ? mix_strdup(text) : NULL;
  }
  return mix_failed() ? NULL : t->policy_map;
}

const char *mix_tuning_overrides(mix_tuning *t) {
  if (!mix_tuning_given(t, "tuning_overrides")) return NULL;
  if (t->found < 0)
    return mix_fail_runtime("tuning_overrides: the search ended with '%s' and has no set", t->status);
  const char *const *names = mix_tuning_layers(t);
  if (!names) return NULL;
  mix_text text = {.grows = true};
  if (t->simulate) {
    mix_text_put(&text, "mixtape:\n  --policy %s --simulate %s", t->policy, t->simulate);
    if (names[0]) mix_text_put(&text, " --simulate-except ");
    mix_tune_put_names(&text, names, "", ",");
    mix_text_put(&text, "\n");
    return keep(&t->overrides, &text);
  }
  if (!names[0]) {
    mix_text_put(&text, "No layer needs float32: train under %s as it is.\n", t->policy);
    return keep(&t->overrides, &text);
  }
  mix_text_put(&text, "C: .dtype = \"float32\" in the options of these layers, or for model_from_json and "
                      "model_load:\n  .float32_layers = (const char *const[]){");
  mix_tune_put_names(&text, names, "\"", ", ");
  mix_text_put(&text,
               ", NULL}\nKeras 3 and tf_keras, a model under %s, before compile; it is made anew:\n%s"
               "for path in [",
               t->policy, keras_function);
  mix_tune_put_names(&text, names, "\"", ", ");
  mix_text_put(&text, "]:\n%smixtape:\n  --policy %s --float32-layers ", keras_lines, t->policy);
  mix_tune_put_names(&text, names, "", ",");
  mix_text_put(&text, "\n");
  put_map(t, names, &text);
  return keep(&t->overrides, &text);
}

/* ---- JSON ---- */

static json_t *names_json(const char *const *names) {
  if (!names) return json_null();
  json_t *list = json_array();
  for (int i = 0; names[i]; i++) mix_json_append(list, mix_json_name(names[i]));
  return list;
}

static json_t *run_json(const mix_tuning *t, int index) {
  const mix_tune_record *run = &t->runs[index];
  return json_pack("{s:s, s:I, s:o, s:b, s:s?, s:o}", "purpose", mix_tune_purpose_name(run->purpose), "seed",
                   (json_int_t)run->seed, "loss", mix_json_real(run->loss), "passed", run->passed, "stopped",
                   run->stopped, "float32_layers", names_json(mix_tuning_names(t, index)));
}

const char *mix_tuning_json(mix_tuning *t) {
  if (!mix_tuning_given(t, "tuning_json")) return NULL;
  json_t *runs = json_array();
  for (int i = 0; i < t->run_count; i++) mix_json_append(runs, run_json(t, i));
  return mix_json_keep_text(
      &t->json, json_pack("{s:s, s:s, s:s?, s:o, s:b, s:i, s:{s:o, s:o, s:o}, s:o}", "status", t->status,
                          "policy", t->policy, "simulate", t->simulate, "float32_layers",
                          names_json(mix_tuning_layers(t)), "confirmed", t->found >= 0, "trials",
                          trial_count(t), "float32", "mean", mix_json_real(t->mean), "deviation",
                          mix_json_real(t->deviation), "limit", mix_json_real(t->limit), "runs", runs));
}
