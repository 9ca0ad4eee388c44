/* The error of a plan over its budget: what takes the bytes. */
#include "compile/memory_budget.h"

#include "base/error.h"
#include "tensor/shape.h"

enum { MESSAGE = 1024, LAYERS = 4 };

typedef struct layer {
  const char *name;
  size_t bytes;
} layer;

typedef struct shares {
  size_t weights, copies, state, gradients, others, values;
  layer layers[LAYERS]; /* with most values alive at the peak, the most first */
} shares;

static void add_variables(const mix_compiled *compiled, shares *s) {
  const mix_ir *ir = compiled->ir;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_variable *variable = ir->variables[i].variable;
    const size_t bytes = mix_value_bytes(variable->dtype, variable->shape);
    *(variable->original ? &s->copies : variable->trainable ? &s->weights : &s->state) += bytes;
  }
}

/* The layer of each slot in the arena: that of the step that computes it. */
static const char **find_scopes(const mix_compiled *compiled) {
  const mix_plan *plan = &compiled->plan;
  const char **scopes = mix_ir_array(compiled->ir, plan->slot_count + 1, sizeof *scopes);
  for (int t = 0; t < plan->step_count && scopes; t++)
    for (int o = 0; o < plan->steps[t].output_count; o++) {
      const int slot = plan->steps[t].outputs[o];
      if (!scopes[slot]) scopes[slot] = plan->steps[t].scope ? plan->steps[t].scope : "no layer";
    }
  return scopes;
}

static void keep_largest(shares *s, layer found) {
  for (int i = 0; i < LAYERS; i++)
    if (found.bytes > s->layers[i].bytes) {
      const layer next = s->layers[i];
      s->layers[i] = found;
      found = next;
    }
}

/* Adds up the values that are alive at a step, by layer. */
static bool add_values(const mix_compiled *compiled, int step, shares *s) {
  const int count = compiled->lifetime_count;
  const char **scopes = find_scopes(compiled);
  layer *layers = mix_ir_array(compiled->ir, count + 1, sizeof *layers);
  int known = 0;
  if (!scopes || !layers) return false;
  for (int i = 0; i < count; i++) {
    const mix_lifetime *life = &compiled->lifetimes[i];
    if (life->first > step || life->last < step) continue;
    if (mix_plan_of_weight(compiled->ir, compiled->plan.slots[life->slot].shape)) {
      s->gradients += life->bytes;
      continue;
    }
    const char *scope = scopes[life->slot] ? scopes[life->slot] : "no layer";
    int l = 0;
    while (l < known && layers[l].name != scope) l++;
    if (l == known) layers[known++].name = scope;
    layers[l].bytes += life->bytes;
    s->values += life->bytes;
  }
  for (int l = 0; l < known; l++) keep_largest(s, layers[l]);
  return true;
}

static void put(mix_text *text, const char *what, size_t bytes) {
  if (bytes) mix_text_put(text, ", %s %.1f MiB", what, (double)bytes / (1 << 20));
}

void mix_fail_over_budget(const mix_compiled *least, size_t budget) {
  const mix_plan_report *report = &least->report;
  char message[MESSAGE];
  mix_text text = {.text = message, .size = sizeof message};
  shares s = {.weights = 0};
  size_t peak;
  add_variables(least, &s);
  if (!add_values(least, mix_plan_peak_step(least, &peak), &s)) return;
  mix_text_put(&text, "weights %.1f MiB", (double)s.weights / (1 << 20));
  put(&text, "slots and other state", s.state);
  put(&text, "16-bit copies of weights", s.copies);
  put(&text, "gradients and casts of weights", s.gradients);
  put(&text, "values of layers", s.values);
  for (int i = 0; i < LAYERS && s.layers[i].bytes; i++)
    mix_text_put(&text, "%s%s %.1f", i ? ", " : " (", s.layers[i].name,
                 (double)s.layers[i].bytes / (1 << 20));
  if (s.layers[0].bytes) mix_text_put(&text, "%s)", s.layers[LAYERS - 1].bytes ? ", ..." : "");
  put(&text, "gaps", report->arena_bytes > peak ? report->arena_bytes - peak : 0);
  put(&text, "arguments", report->argument_bytes);
  put(&text, "results", report->result_bytes);
  put(&text, "constants", report->constant_bytes);
  put(&text, "workspace", report->workspace_bytes);
  mix_fail(
      MIX_MEMORY_ERROR,
      "%s: the smallest memory budget that was found is %zu bytes (%.1f MiB), and %zu bytes (%.1f MiB) are "
      "set: %s; raise the budget (mix_set_memory_budget, --memory), or make the batch smaller",
      least->ir->name ? least->ir->name : "function", report->peak_bytes,
      (double)report->peak_bytes / (1 << 20), budget, (double)budget / (1 << 20), message);
}
