/* IR snapshots: the stages of a compilation as text. Only a copy of the captured graph is kept. On request
 * the passes are replayed on it up to the stage, so that there is no cost otherwise. */
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include "compile/pass_pipeline.h"
#include "compile/compile.h"
#include <string.h>

static int pass_count(void) {
  int count = 0;
  while (mix_pass_name(count)) count++;
  return count;
}

/* Stage numbers: the number of passes that have run, then the plan. -1: unknown name. */
static int stage_of(const char *name) {
  if (!strcmp(name, "captured") || !strcmp(name, "graph")) return 0;
  if (!strcmp(name, "passes")) return pass_count();
  if (!strcmp(name, "plan")) return pass_count() + 1;
  bool before = !strncmp(name, "before ", 7), after = !strncmp(name, "after ", 6);
  const char *pass = name + (before ? 7 : after ? 6 : 0);
  for (int i = 0; mix_pass_name(i); i++)
    if (!strcmp(mix_pass_name(i), pass)) return before ? i : i + 1;
  return -1;
}

static const char *no_stage(const char *name) {
  char hint[100];
  mix_text names = {.grows = true};
  mix_did_you_mean nearest = {.word = name ? name : ""};
  for (int i = 0; mix_pass_name(i); i++) {
    mix_did_you_mean_try(&nearest, mix_pass_name(i));
    mix_text_put(&names, "%s, ", mix_pass_name(i));
  }
  if (!names.failed)
    mix_fail_value(
        "function_dump: there is no stage '%s'%s; there are captured, %spasses, plan, and before each pass: "
        "'before %s'",
        name ? name : "(NULL)", mix_did_you_mean_hint(&nearest, hint, sizeof hint), names.text,
        mix_pass_name(0));
  mix_free(names.text);
  return NULL;
}

static const char *graph_text(mix_compiled *compiled, int passes) {
  if (passes == 0) return mix_ir_text(compiled->captured);
  if (passes == pass_count()) return mix_ir_text(compiled->ir);
  mix_ir *ir = mix_ir_copy(compiled->captured);
  const char *made = ir && mix_passes_replay(ir, passes) ? mix_ir_text(ir) : NULL;
  char *text = made ? mix_ir_alloc(compiled->ir, strlen(made) + 1) : NULL;
  if (text) strcpy(text, made);
  mix_ir_free(ir);
  return text;
}

const char *mix_compiled_text(mix_compiled *compiled, const char *name, bool repeatable) {
  int stage = name ? stage_of(name) : -1, passes = pass_count();
  if (stage < 0) return no_stage(name);
  if (!compiled->texts &&
      !(compiled->texts = mix_ir_array(compiled->ir, passes + 2, sizeof *compiled->texts)))
    return NULL;
  if (compiled->texts[stage]) return compiled->texts[stage];
  if (stage > 0 && stage < passes && !repeatable)
    return mix_fail_runtime(
        "function_dump: '%s': device, switched-off passes or graph rewrite are no longer those of the latest "
        "call; call the function again first",
        name);
  return compiled->texts[stage] = stage > passes ? mix_plan_text(compiled) : graph_text(compiled, stage);
}
