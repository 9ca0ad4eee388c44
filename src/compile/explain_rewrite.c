/* The rewrite of one graph, explained. */
#include "compile/explain_rewrite.h"

#include "amp/rewrite.h"
#include "base/alloc.h"
#include "base/error.h"
#include "compile/pass_pipeline.h"

typedef struct counted {
  const mix_amp_explaining *explaining;
  int results;
} counted;

static void count(void *context, const mix_amp_result *result) {
  counted *c = context;
  c->results++;
  c->explaining->observer(c->explaining->context, result);
}

bool mix_explain_rewrite(mix_ir *ir, mix_dtype target, const mix_amp_explaining *explaining,
                         const char *call) {
  counted c = {explaining, 0};
  const mix_amp_explaining own = {target, count, &c}, *former = mix_amp_explain_set(&own);
  const bool good = mix_passes_run(ir);
  mix_amp_explain_set(former);
  if (good && !c.results)
    mix_fail_value(
        "%s: the rewrite does not look at this graph: it is one of an evaluation outside functions, or "
        "passes have fused it, or the pass amp is switched off; expected the stage \"captured\"",
        call);
  return good && !mix_failed();
}

static void put_table(void *context, const mix_amp_result *result) {
  mix_text *text = context;
  char *table = mix_amp_report(result);
  if (table) mix_text_put(text, "%s%s", text->used ? "\n" : "", table);
  mix_free(table);
}

char *mix_rewrite_tables(mix_ir *ir, mix_dtype target, const char *call) {
  mix_text text = {.grows = true};
  const mix_amp_explaining explaining = {target, put_table, &text};
  if (mix_explain_rewrite(ir, target, &explaining, call) && !text.failed) return text.text;
  mix_free(text.text);
  return NULL;
}
