/* Compiling a graph: passes, plan, executable of the current backend, and the report on it. */
#include "compile/compile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/pass_pipeline.h"
#include "compile/plan_steps.h"
#include "tensor/shape.h"

/* Bytes of a step's operands and results. A slot that is listed twice as operand counts once (a variable
 * updated in place is read and written). */
static size_t step_bytes(const mix_plan *plan, const mix_step *step) {
  size_t bytes = 0;
  for (int i = 0; i < step->input_count; i++) {
    bool repeated = false;
    for (int j = 0; j < i; j++) repeated = repeated || step->inputs[j] == step->inputs[i];
    if (!repeated) bytes += plan->slots[step->inputs[i]].bytes;
  }
  for (int i = 0; i < step->output_count; i++) bytes += plan->slots[step->outputs[i]].bytes;
  return bytes;
}

static void fill_report(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  const mix_plan *plan = &compiled->plan;
  mix_executable_facts facts = {0};
  compiled->backend->facts(compiled->executable, &facts);
  report->nodes = plan->step_count;
  report->barriers = facts.barriers;
  report->workspace_bytes = facts.workspace_bytes;
  for (int n = 0; n < compiled->ir->node_count; n++) {
    const mix_ir_node *node = &compiled->ir->nodes[n];
    size_t bytes = node->source ? plan->slots[node->first_output].bytes : 0;
    if (node->source == MIX_IR_ARGUMENT) report->argument_bytes += bytes;
    if (node->source == MIX_IR_CONSTANT) report->constant_bytes += bytes;
  }
  for (int i = 0; i < plan->step_count; i++) report->moved_bytes += step_bytes(plan, &plan->steps[i]);
  for (int r = 0; r < plan->result_count; r++)
    report->result_bytes += mix_value_bytes(compiled->results[r].dtype, compiled->results[r].shape);
  report->peak_bytes = report->arena_bytes + report->variable_bytes + report->argument_bytes +
                       report->result_bytes + report->constant_bytes + report->workspace_bytes;
}

bool mix_compiled_run(mix_compiled *compiled, mix_memory *const *arguments, mix_memory *const *results,
                      mix_memory *arena) {
  const mix_ir *ir = compiled->ir;
  size_t arena_bytes = compiled->plan.arena_bytes;
  mix_memory *own = arena || !arena_bytes ? NULL : mix_memory_new(compiled->backend->memory, arena_bytes);
  if (!own && !arena && arena_bytes) return mix_compiled_name_largest(compiled), false;
  for (int i = 0; i < ir->variable_count; i++) compiled->variables[i] = ir->variables[i].variable->memory;
  mix_bindings bindings = {.arguments = arguments,
                           .variables = compiled->variables,
                           .results = results,
                           .arena = arena ? arena : own};
  bool good = compiled->backend->run(compiled->executable, &bindings) == MIX_OK;
  mix_release(own);
  return good;
}

/* The evaluator for constant folding. */
static bool evaluate_constants(mix_ir *part, mix_memory *const *results) {
  mix_compiled *compiled = mix_compile(part, false);
  bool good = compiled && mix_compiled_run(compiled, NULL, results, NULL);
  mix_compiled_free(compiled);
  return good;
}

bool mix_pass_run(mix_ir *ir, const char *name) {
  ir->evaluate = evaluate_constants;
  return mix_passes_run_one(ir, name);
}

mix_compiled *mix_compile(mix_ir *ir, bool stages) {
  mix_compiled *compiled = ir ? mix_calloc(1, sizeof *compiled) : NULL;
  if (!compiled) {
    mix_ir_free(ir);
    return NULL;
  }
  compiled->ir = ir;
  ir->evaluate = evaluate_constants;
  compiled->backend = mix_backend_current();
  compiled->report.captured_nodes = ir->node_count;
  compiled->captured = stages ? mix_ir_copy(ir) : NULL;
  compiled->results = mix_ir_alloc(ir, sizeof *compiled->results * (size_t)(ir->result_count + 1));
  bool good = compiled->results != NULL && (compiled->captured || !stages);
  for (int r = 0; r < ir->result_count && good; r++) compiled->results[r] = ir->values[ir->results[r]].type;
  good = good && mix_passes_run(ir) && mix_make_plan(compiled) &&
         (compiled->variables =
              mix_ir_alloc(ir, sizeof *compiled->variables * (size_t)(ir->variable_count + 1))) &&
         (compiled->executable = compiled->backend->compile(&compiled->plan, mix_threads())) != NULL;
  if (!good) {
    if (!mix_failed()) mix_fail(MIX_INTERNAL_ERROR, "compile: failed without saying why");
    mix_compiled_name_largest(compiled);
    mix_compiled_free(compiled);
    return NULL;
  }
  fill_report(compiled);
  return compiled;
}

void mix_compiled_free(mix_compiled *compiled) {
  if (!compiled) return;
  if (compiled->executable) compiled->backend->destroy(compiled->executable);
  mix_ir_free(compiled->captured); /* before `ir`, from which it borrows */
  mix_ir_free(compiled->ir);
  mix_free(compiled);
}
