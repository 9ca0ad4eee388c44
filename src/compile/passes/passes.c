#include "compile/passes/passes.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include "compile/passes/cast_watch.h"
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pass_row {
  const char *name;
  bool (*run)(mix_ir *ir);
} pass_row;

/* "fuse" always runs, for it also makes programs of single nodes; switched off, it merges nothing. */
static const pass_row passes[] = {
    {"amp", mix_pass_amp},
    {"identity", mix_pass_identity},
    {"casts", mix_pass_casts},
    {"transposes", mix_pass_transposes},
    {"broadcast", mix_pass_broadcast},
    {"fold", mix_pass_fold},
    {"cse", mix_pass_cse},
    {"dead", mix_pass_dead},
    {"guard", mix_pass_guard},
    {"widen", mix_pass_widen},
    {"persist", mix_pass_persist},
    {"sums", mix_pass_sums},
    {"fuse", mix_pass_fuse},
    {"epilogue", mix_pass_epilogue},
    {"excess", mix_pass_excess},
};
/* What the plan does beside them (compile/plan.c). */
static const char *const planning[] = {"foresee", "in_place", "memory"};
enum { PASSES = sizeof passes / sizeof *passes, PLANNING = sizeof planning / sizeof *planning };

static const char *disabled(void) { return getenv("MIXTAPE_DISABLE_PASSES"); }

static bool is_listed(const char *list, const char *name) {
  size_t length = strlen(name);
  while (list && *list) {
    size_t word = strcspn(list, ",");
    if (word == length && !strncmp(list, name, length)) return true;
    list += word + (list[word] == ',');
  }
  return false;
}

bool mix_pass_disabled(const char *name) { return is_listed(disabled(), name); }

uint64_t mix_passes_key(void) {
  uint64_t key = 0;
  for (const char *list = disabled(); list && *list; list++) key = (key ^ (unsigned char)*list) * 0x100000001b3u + 1;
  return key;
}

static const char *name_of(size_t i) { return i < PASSES ? passes[i].name : planning[i - PASSES]; }

static bool is_name(const char *word, size_t length) {
  for (size_t i = 0; i < PASSES + PLANNING; i++)
    if (strlen(name_of(i)) == length && !strncmp(name_of(i), word, length)) return true;
  return length == 0;
}

/* A name that is none switches nothing off, which nobody would notice: said once for each list. */
static void check_names(void) {
  static _Atomic uint64_t checked;
  uint64_t key = mix_passes_key();
  if (!key || atomic_exchange(&checked, key) == key) return;
  for (const char *list = disabled(); list && *list;) {
    size_t word = strcspn(list, ",");
    if (!is_name(list, word)) {
      char names[256] = "";
      for (size_t i = 0, used = 0; i < PASSES + PLANNING; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name_of(i));
      mix_log_message(MIX_LOG_WARNING,
                      "MIXTAPE_DISABLE_PASSES: there is no pass '%.*s'; expected names out of %s, with commas between", (int)word,
                      list, names);
    }
    list += word + (list[word] == ',');
  }
}

const char *mix_pass_name(int index) { return index >= 0 && index < (int)PASSES ? passes[index].name : NULL; }

bool mix_pass_run(mix_ir *ir, const char *name) {
  for (int i = 0; i < (int)PASSES; i++)
    if (!strcmp(passes[i].name, name)) {
      if (!passes[i].run(ir)) return false;
      mix_cast_watch_end(ir);
      return true;
    }
  mix_text names = {.grows = true};
  for (int i = 0; i < (int)PASSES; i++) mix_text_put(&names, "%s%s", i ? ", " : "", passes[i].name);
  if (!names.failed) mix_fail(MIX_VALUE_ERROR, "there is no pass '%s'; the passes are %s", name, names.text);
  mix_free(names.text);
  return false;
}

/* "# compile train_step: after fold" and the graph, which `mixtape graph` reads from the log. */
static void log_graph(mix_ir *ir, const char *when, const char *pass) {
  const char *graph = mix_ir_text(ir);
  mix_text text = {.grows = true};
  mix_text_put(&text, "# compile %s: %s%s\n%s", ir->name ? ir->name : "graph", when, pass, graph ? graph : "");
  if (graph && !text.failed) mix_log_text(MIX_LOG_DEBUG, text.text);
  mix_free(text.text);
}

static bool run(mix_ir *ir, size_t count, bool verbose) {
  const char *off = disabled();
  for (size_t i = 0; i < count; i++) {
    if (passes[i].run == mix_pass_sums) mix_cast_watch_end(ir); /* from here on casts go into programs */
    if (strcmp(passes[i].name, "fuse") && is_listed(off, passes[i].name)) continue;
    if (!passes[i].run(ir)) return false;
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

bool mix_passes_again(mix_ir *ir, int count) {
  ir->again = true;
  return run(ir, (size_t)count < PASSES ? (size_t)count : PASSES, false);
}

void mix_program_strides(mix_shape shape, mix_shape space, int64_t strides[MIX_MAX_RANK]) {
  int64_t stride = 1;
  for (int d = 0; d < MIX_MAX_RANK; d++) strides[d] = 0;
  for (int d = shape.rank - 1, s = space.rank - 1; d >= 0; d--, s--) {
    strides[s] = shape.dims[d] == 1 ? 0 : stride;
    stride *= shape.dims[d];
  }
}

bool *mix_ir_conditions(mix_ir *ir) {
  bool *condition = mix_ir_alloc(ir, sizeof(bool) * (size_t)(ir->value_count + 1));
  for (int n = 0; condition && n < ir->node_count; n++)
    if (ir->nodes[n].guard >= 0) condition[ir->nodes[n].guard] = true;
  for (int i = 0; condition && i < ir->variable_count; i++)
    if (ir->variables[i].guard >= 0) condition[ir->variables[i].guard] = true;
  return condition;
}

mix_product mix_ir_product(const mix_ir *ir, const mix_ir_node *node) {
  const mix_matmul_attributes *attributes = node->attributes;
  const mix_ir_value *a = &ir->values[node->inputs[0]], *b = &ir->values[node->inputs[1]];
  return (mix_product){.op = node->op,
                       .transpose_a = attributes->transpose_a,
                       .transpose_b = attributes->transpose_b,
                       .dtype = a->dtype,
                       .a = a->shape,
                       .b = b->shape,
                       .result = ir->values[node->first_output].shape};
}

bool mix_ir_may_fail(const mix_ir *ir, const mix_ir_node *node) {
  int opcode = node->op->opcode;
  bool partial = opcode == MIX_OPCODE_FLOOR_DIVIDE || opcode == MIX_OPCODE_FLOOR_MOD || opcode == MIX_OPCODE_POWER;
  return partial && mix_dtype_is_integer(ir->values[node->first_output].dtype);
}
