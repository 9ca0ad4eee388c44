/* The order of the passes, and running them. */
#include "compile/pass_pipeline.h"

#include "amp/amp_pass.h"
#include "amp/cast_watch.h"
#include "base/alloc.h"
#include "base/did_you_mean.h"
#include "base/error.h"
#include <stdio.h>
#include <string.h>

typedef struct pass_row {
  const char *name;
  bool (*run)(mix_ir *ir);
} pass_row;

/* "fuse" always runs, since it also makes programs of single nodes, of which plans consist. When disabled, it
 * merges nothing. */
static const pass_row passes[] = {
    {"amp", mix_pass_amp},
    {"hoist_invariants", mix_pass_hoist_invariants},
    {"expand_einsum", mix_pass_expand_einsum},
    {"remove_identities", mix_pass_remove_identities},
    {"simplify_casts", mix_pass_simplify_casts},
    {"fold_transposes", mix_pass_fold_transposes},
    {"join_pads", mix_pass_join_pads},
    {"sink_broadcasts", mix_pass_sink_broadcasts},
    {"constant_fold", mix_pass_constant_fold},
    {"cse", mix_pass_cse},
    {"dce", mix_pass_dce},
    {"simulate_formats", mix_pass_simulate_formats},
    {"select_to_predicate", mix_pass_select_to_predicate},
    {"round_weights", mix_pass_round_weights},
    {"upcast_matmul", mix_pass_upcast_matmul},
    {"cache_weight_casts", mix_pass_cache_weight_casts},
    {"expand_add_n", mix_pass_expand_add_n},
    {"row_moments", mix_pass_row_moments},
    {"fuse", mix_pass_fuse},
    {"fuse_epilogues", mix_pass_fuse_epilogues},
    {"narrow_operands", mix_pass_narrow_operands},
    {"excess_precision", mix_pass_excess_precision},
    {"overlap_collectives", mix_pass_overlap_collectives},
    {"repeat_updates", mix_pass_repeat_updates},
};
/* Optimizations of the planner, which can be disabled too (compile/compile.c). */
static const char *const planning[] = {"speculative_update", "inplace", "memory_plan", "keep_packed"};
enum { PASSES = sizeof passes / sizeof *passes, PLANNING = sizeof planning / sizeof *planning };

uint64_t mix_passes_key(void) {
  uint64_t key = 0;
  for (const char *list = mix_passes_disabled(); list && *list; list++)
    key = (key ^ (unsigned char)*list) * 0x100000001b3u + 1;
  return key;
}

static const char *name_of(size_t i) { return i < PASSES ? passes[i].name : planning[i - PASSES]; }

static bool is_name(const char *word, size_t length) {
  for (size_t i = 0; i < PASSES + PLANNING; i++)
    if (strlen(name_of(i)) == length && !strncmp(name_of(i), word, length)) return true;
  return length == 0;
}

/* The hint for a misspelled name out of the first `count`, which go to `names`. */
static const char *hint_for(const char *word, size_t count, mix_text *names, char *hint, size_t size) {
  mix_did_you_mean nearest = {.word = word};
  for (size_t i = 0; i < count; i++) {
    mix_did_you_mean_try(&nearest, name_of(i));
    mix_text_put(names, "%s%s", i ? ", " : "", name_of(i));
  }
  return mix_did_you_mean_hint(&nearest, hint, size);
}

/* An unknown name disables nothing, which would go unnoticed. Warns once for each list. */
static void check_names(void) {
  static _Atomic uint64_t checked;
  uint64_t key = mix_passes_key();
  if (!key || atomic_exchange(&checked, key) == key) return;
  for (const char *list = mix_passes_disabled(); list && *list;) {
    size_t word = strcspn(list, ",");
    if (!is_name(list, word)) {
      char name[64], hint[100], all[512];
      snprintf(name, sizeof name, "%.*s", (int)(word < sizeof name ? word : sizeof name - 1), list);
      mix_text names = {.text = all, .size = sizeof all};
      mix_log_message(
          MIX_LOG_WARNING,
          "MIXTAPE_DISABLE_PASSES: there is no pass '%s'%s; expected names out of %s, with commas between",
          name, hint_for(name, PASSES + PLANNING, &names, hint, sizeof hint), all);
    }
    list += word + (list[word] == ',');
  }
}

const char *mix_pass_name(int index) { return index >= 0 && index < (int)PASSES ? passes[index].name : NULL; }

/* The bodies of loops, whose passes are those of the graph. */
static void prepare_bodies(mix_ir *ir) {
  for (int b = 0; b < ir->body_count; b++) {
    mix_ir *body = ir->bodies[b];
    body->context = ir->context;
    body->evaluate = ir->evaluate;
    body->eager = ir->eager;
    body->excess_precision = ir->excess_precision;
    body->replay = true; /* reports are those of the graph around it */
    prepare_bodies(body);
  }
}

/* A graph that is not being compiled gets the default context. */
static bool prepare(mix_ir *ir) {
  if (!ir->context) {
    mix_context *context = mix_ir_alloc(ir, sizeof *context);
    if (!context) return false;
    *context = mix_context_default();
    ir->context = context;
  }
  prepare_bodies(ir);
  return true;
}

static bool run_in_bodies(mix_ir *ir, const pass_row *pass) {
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir *body = ir->nodes[n].dead ? NULL : ir->nodes[n].body;
    if (body && !(run_in_bodies(body, pass) && pass->run(body))) return false;
  }
  return true;
}

static bool run_pass(mix_ir *ir, const pass_row *pass) { return pass->run(ir) && run_in_bodies(ir, pass); }

bool mix_passes_run_one(mix_ir *ir, const char *name) {
  if (!prepare(ir)) return false;
  for (int i = 0; i < (int)PASSES; i++)
    if (!strcmp(passes[i].name, name)) {
      if (!run_pass(ir, &passes[i])) return false;
      mix_cast_watch_end(ir);
      return true;
    }
  char hint[100];
  mix_text names = {.grows = true};
  const char *meant = hint_for(name, PASSES, &names, hint, sizeof hint);
  if (!names.failed) mix_fail_value("there is no pass '%s'%s; the passes are %s", name, meant, names.text);
  mix_free(names.text);
  return false;
}

/* "# compile train_step: after constant_fold" and the graph, which `mixtape graph` reads from the log. */
static void log_graph(mix_ir *ir, const char *when, const char *pass) {
  const char *graph = mix_ir_text(ir);
  mix_text text = {.grows = true};
  mix_text_put(&text, "# compile %s: %s%s\n%s", ir->name ? ir->name : "graph", when, pass,
               graph ? graph : "");
  if (graph && !text.failed) mix_log_text(MIX_LOG_DEBUG, text.text);
  mix_free(text.text);
}

static bool run(mix_ir *ir, size_t count, bool verbose) {
  if (!prepare(ir)) return false;
  for (size_t i = 0; i < count; i++) {
    /* later passes move casts into programs */
    if (passes[i].run == mix_pass_expand_add_n) mix_cast_watch_end(ir);
    const bool makes_programs = !strcmp(passes[i].name, "fuse") && !ir->context->backend->compile_graph;
    if (!makes_programs && !mix_pass_wanted(ir, passes[i].name)) continue;
    if (!run_pass(ir, &passes[i])) return false;
    mix_cast_watch_pass(ir, passes[i].name);
    if (verbose) log_graph(ir, "after ", passes[i].name);
  }
  return true;
}

bool mix_passes_run(mix_ir *ir) {
  bool verbose = mix_verbose("compile");
  check_names();
  if (verbose) log_graph(ir, "as captured", "");
  return run(ir, PASSES, verbose);
}

bool mix_passes_replay(mix_ir *ir, int count) {
  ir->replay = true;
  return run(ir, (size_t)count < PASSES ? (size_t)count : PASSES, false);
}
