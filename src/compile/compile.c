/* Compiling a graph: passes, plan, executable of the current backend, and the report on it. */
#include "compile/compile.h"

#include "base/alloc.h"
#include "base/error.h"
#include "compile/pass_pipeline.h"
#include "compile/plan_steps.h"
#include "compile/trace.h"
#include "graph/divided_variable.h"
#include "graph/lock.h"
#include "graph/retired_storage.h"
#include "passes/checkpoint_loops.h"
#include "tensor/shape.h"

static void fill_report(mix_compiled *compiled) {
  mix_plan_report *report = &compiled->report;
  const mix_plan *plan = &compiled->plan;
  *report = (mix_plan_report){.captured_nodes = report->captured_nodes,
                              .arena_bytes = report->arena_bytes,
                              .unshared_bytes = report->unshared_bytes,
                              .recomputed_nodes = report->recomputed_nodes,
                              .recomputed_bytes = report->recomputed_bytes};
  const mix_ir *ir = compiled->ir;
  mix_executable_facts facts = {0};
  if (compiled->context.backend->facts) compiled->context.backend->facts(compiled->executable, &facts);
  report->nodes = plan->step_count;
  report->barriers = facts.barriers;
  report->workspace_bytes = facts.workspace_bytes;
  for (int i = 0; i < ir->variable_count; i++) { /* not of its memory, which another thread may replace */
    const mix_variable *variable = ir->variables[i].variable;
    const size_t bytes = mix_value_bytes(variable->dtype, variable->shape);
    const bool written = ir->variables[i].exit != ir->variables[i].entry;
    report->variable_bytes += bytes;
    report->file_bytes += variable->in_file && !written ? bytes : 0;
  }
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    const mix_ir_value *value = &ir->values[node->first_output];
    size_t bytes = node->source ? mix_value_bytes(value->dtype, value->shape) : 0;
    if (node->source == MIX_IR_ARGUMENT) report->argument_bytes += bytes;
    if (node->source == MIX_IR_CONSTANT) report->constant_bytes += bytes;
  }
  for (int i = 0; i < plan->step_count; i++) report->moved_bytes += mix_step_bytes(plan, &plan->steps[i]);
  report->moved_bytes -= facts.cached_bytes;
  for (int r = 0; r < plan->result_count; r++)
    report->result_bytes += mix_value_bytes(compiled->results[r].dtype, compiled->results[r].shape);
  report->peak_bytes = report->arena_bytes + report->variable_bytes + report->argument_bytes +
                       report->result_bytes + report->constant_bytes + report->workspace_bytes;
}

/* ---- runs ---- */

static bool move_variables(const mix_compiled *compiled) {
  const mix_ir *ir = compiled->ir;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_variable *variable = ir->variables[i].variable;
    if (variable->share && !mix_variable_check_here(variable, "function_call")) return false;
    if (!mix_variable_move(ir->variables[i].variable, mix_compiled_device(compiled))) return false;
    compiled->stamps[i] = mix_variable_stamp(variable); /* before its memory */
    compiled->variables[i] = ir->variables[i].variable->memory;
  }
  return true;
}

static mix_ticket enqueue(const mix_compiled *compiled, const mix_bindings *bindings) {
  const mix_ir *ir = compiled->ir;
  const mix_ticket ticket = compiled->context.backend->enqueue(compiled->executable, bindings);
  const bool replaces = compiled->context.backend->replaces_variables;
  for (int i = 0; ticket && replaces && i < ir->variable_count; i++)
    if (compiled->variables[i] != ir->variables[i].variable->memory)
      mix_variable_replace(ir->variables[i].variable, compiled->variables[i]);
  return ticket;
}

mix_ticket mix_compiled_enqueue(mix_compiled *compiled, mix_memory *const *arguments,
                                mix_memory *const *results, mix_memory *arena) {
  const size_t arena_bytes = compiled->plan.arena_bytes;
  mix_memory *own = arena || !arena_bytes ? NULL : mix_memory_new(mix_compiled_device(compiled), arena_bytes);
  if (!own && !arena && arena_bytes) return mix_compiled_name_largest(compiled), 0;
  mix_trace_run *trace = mix_tracing() ? mix_trace_begin_run(compiled) : NULL;
  const mix_bindings bindings = {.arguments = arguments,
                                 .variables = compiled->variables,
                                 .stamps = compiled->stamps,
                                 .results = results,
                                 .arena = arena ? arena : own,
                                 .trace = trace};
  /* Other threads may run functions of the same variables, whose memory moves and is replaced. An evaluation
   * has no variables and may pin storages, so it must not take the lock. */
  const bool replaces = compiled->context.backend->replaces_variables && compiled->ir->variable_count > 0;
  if (replaces)
    mix_graph_lock();
  else
    mix_runs_begin();
  const mix_ticket ticket = move_variables(compiled) ? enqueue(compiled, &bindings) : 0;
  if (replaces)
    mix_graph_unlock();
  else
    mix_runs_end();
  if (trace) mix_trace_end_run(trace);
  mix_release(own);
  return ticket;
}

bool mix_compiled_run(mix_compiled *compiled, mix_memory *const *arguments, mix_memory *const *results,
                      mix_memory *arena) {
  const mix_backend *backend = compiled->context.backend;
  const mix_ticket ticket = mix_compiled_enqueue(compiled, arguments, results, arena);
  return ticket && (!backend->wait || backend->wait(ticket) == MIX_OK);
}

/* ---- compiling ---- */

/* The evaluator for constant folding: the host of the device. */
static bool evaluate_constants(mix_ir *part, mix_memory *const *results) {
  const mix_context context = mix_context_on(part->context->backend->host, part->context);
  mix_compiled *compiled = mix_compile(part, &context, false);
  bool good = compiled && mix_compiled_run(compiled, NULL, results, NULL);
  mix_compiled_free(compiled);
  return good;
}

bool mix_pass_run(mix_ir *ir, const char *name) {
  ir->evaluate = evaluate_constants;
  return mix_passes_run_one(ir, name);
}

/* After the passes: a view needs no kernel, all else does. */
static bool check_support(const mix_ir *ir) {
  const mix_backend *backend = ir->context->backend;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->source || node->dead) continue;
    const mix_dtype dtype = ir->values[node->input_count ? node->inputs[0] : node->first_output].dtype;
    if (backend->supports(ir->context, node->op, dtype)) continue;
    return mix_fail_unsupported(
        "%s of %s%s%s: the device \"%s\" has no kernel for it; try mix_set_device(\"%s\")", node->op->name,
        mix_dtype_name(dtype), node->scope ? " in " : "", node->scope ? node->scope : "", backend->name,
        backend->host->name);
  }
  return true;
}

static bool compile_graph(mix_compiled *compiled) {
  mix_plan *plan = &compiled->plan;
  plan->argument_count = compiled->ir->argument_count;
  plan->variable_count = compiled->ir->variable_count;
  plan->result_count = compiled->ir->result_count;
  compiled->executable = compiled->context.backend->compile_graph(compiled->ir, &compiled->context);
  return compiled->executable != NULL;
}

/* The variable that a value is, or shows another shape of; -1: none. */
static int variable_of(const mix_ir *ir, int value) {
  const mix_ir_node *node = &ir->nodes[mix_ir_producer(ir, value)];
  while (!node->source && mix_node_is_view(node)) node = &ir->nodes[mix_ir_producer(ir, node->inputs[0])];
  return node->source == MIX_IR_VARIABLE ? node->index : -1;
}

/* By variable: how many steps read it. NULL: out of memory. */
static const int *count_readers(mix_ir *ir) {
  int *readers = mix_ir_ints(ir, ir->variable_count + 1);
  for (int n = 0; readers && n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source || mix_node_is_view(node)) continue;
    for (int i = 0; i < node->input_count; i++) {
      const int variable = variable_of(ir, node->inputs[i]);
      if (variable >= 0) readers[variable]++;
    }
  }
  return readers;
}

/* Does the plan write few matrices beside those that it reads once? Frozen weights that gradients pass, as
 * beside LoRA, are read twice and packed in two ways: panels would take more memory than such a step saves.
 */
static bool mostly_reads_once(const mix_ir *ir, const int *readers) {
  size_t once = 0, written = 0, others = 0;
  for (int i = 0; i < ir->variable_count; i++) {
    const mix_ir_variable *variable = &ir->variables[i];
    if (variable->variable->shape.rank < 2) continue;
    size_t *sum = variable->exit != variable->entry ? &written : readers[i] > 1 ? &others : &once;
    *sum += mix_value_bytes(variable->variable->dtype, variable->variable->shape);
  }
  return !written || once > written + others;
}

/* False with the error recorded. */
static bool decide_packing(mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  const mix_memory_use memory = compiled->context.memory;
  compiled->plan.keeps_packed = !ir->eager && !compiled->without_panels && memory != MIX_MEMORY_LEAST &&
                                mix_pass_wanted(ir, "keep_packed");
  if (!compiled->plan.keeps_packed || memory == MIX_MEMORY_FAST) return true;
  const int *readers = count_readers(ir);
  compiled->plan.keeps_packed = readers && mostly_reads_once(ir, readers);
  return readers != NULL;
}

bool mix_compile_without_panels(mix_compiled *compiled) {
  compiled->context.backend->destroy(compiled->executable);
  compiled->executable = NULL;
  compiled->without_panels = true;
  return mix_compile_plan(compiled);
}

bool mix_compile_plan(mix_compiled *compiled) {
  if (!decide_packing(compiled)) return false;
  compiled->plan.variable_names = compiled->names;
  compiled->executable = compiled->context.backend->compile(&compiled->plan, &compiled->context);
  if (!compiled->executable) return false;
  fill_report(compiled);
  return mix_plan_least_memory(compiled);
}

/* A plan, or the graph itself for a backend that plans by itself. */
static bool compile(mix_compiled *compiled) {
  if (!compiled->context.backend->compile_graph) return mix_make_plan(compiled) && mix_compile_plan(compiled);
  if (!compile_graph(compiled)) return false;
  fill_report(compiled);
  return mix_plan_least_memory(compiled);
}

static bool prepare(mix_compiled *compiled, const mix_context *context, bool stages) {
  mix_ir *ir = compiled->ir;
  compiled->context = context ? *context : mix_context_default();
  ir->context = &compiled->context;
  ir->evaluate = evaluate_constants;
  compiled->report.captured_nodes = ir->node_count;
  compiled->captured = stages ? mix_ir_copy(ir) : NULL;
  compiled->results = mix_ir_array(ir, ir->result_count + 1, sizeof *compiled->results);
  if ((stages && !compiled->captured) || !compiled->results) return false;
  for (int r = 0; r < ir->result_count; r++) compiled->results[r] = ir->values[ir->results[r]].type;
  return true;
}

/* Passes add variables: 16-bit copies of weights. */
static bool run_passes(mix_compiled *compiled) {
  mix_ir *ir = compiled->ir;
  if (!mix_passes_run(ir) || !mix_ir_keep_as_set(ir) || !check_support(ir)) return false;
  compiled->variables = mix_ir_array(ir, ir->variable_count + 1, sizeof *compiled->variables);
  compiled->stamps = mix_ir_array(ir, ir->variable_count + 1, sizeof *compiled->stamps);
  compiled->names = mix_ir_array(ir, ir->variable_count + 1, sizeof *compiled->names);
  if (!compiled->variables || !compiled->stamps || !compiled->names) return false;
  for (int i = 0; i < ir->variable_count; i++) compiled->names[i] = ir->variables[i].variable;
  return true;
}

mix_compiled *mix_compile(mix_ir *ir, const mix_context *context, bool stages) {
  mix_compiled *compiled = ir ? mix_calloc(1, sizeof *compiled) : NULL;
  if (!compiled) {
    mix_ir_free(ir);
    return NULL;
  }
  compiled->ir = ir;
  if (!prepare(compiled, context, stages) || !run_passes(compiled) || !compile(compiled)) {
    if (!mix_failed()) mix_fail_internal("compile: failed without saying why");
    mix_compiled_name_largest(compiled);
    mix_compiled_free(compiled);
    return NULL;
  }
  return compiled;
}

void mix_compiled_free(mix_compiled *compiled) {
  if (!compiled) return;
  if (compiled->executable) compiled->context.backend->destroy(compiled->executable);
  mix_ir_free(compiled->captured); /* before `ir`, from which it borrows */
  mix_ir_free(compiled->ir);
  mix_ir_free(compiled->original);
  mix_free(compiled);
}
