/* What a plan computes again: recomputed_nodes and recomputed_bytes of the report. */
#include "compile/memory_budget.h"
#include "tensor/shape.h"

/* The repeated loop of a body; NULL: it has none. */
static const mix_ir_node *repeated_in(const mix_ir *body) {
  for (int n = 0; body && n < body->node_count; n++)
    if (!body->nodes[n].dead && body->nodes[n].repeated) return &body->nodes[n];
  return NULL;
}

static void count_loops(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  for (int n = 0; n < compiled->ir->node_count; n++) {
    const mix_ir_node *node = &compiled->ir->nodes[n], *again = node->dead ? NULL : repeated_in(node->body);
    if (!again) continue;
    const int64_t chunks = ((const mix_scan_attributes *)node->attributes)->steps;
    report->recomputed_nodes++;
    for (int o = 0; o < again->output_count; o++) {
      const mix_ir_value *value = &node->body->values[again->first_output + o];
      report->recomputed_bytes += (size_t)chunks * mix_value_bytes(value->dtype, value->shape);
    }
  }
}

void mix_count_repeats(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  report->recomputed_nodes = 0;
  report->recomputed_bytes = 0;
  for (int t = 0; t < compiled->plan.step_count; t++) {
    const mix_step *step = &compiled->plan.steps[t];
    const int n = mix_step_node(compiled, step);
    if (n < 0 || !compiled->ir->nodes[n].repeated) continue;
    report->recomputed_nodes++;
    for (int o = 0; o < step->output_count; o++)
      report->recomputed_bytes += compiled->plan.slots[step->outputs[o]].bytes;
  }
  count_loops(compiled);
}
