/* Compiles a plan into kernels with their addresses, and runs it. A run takes no lock. It allocates only
 * once, if there are fewer threads than the plan was compiled for (inside a parallel region of the caller, or
 * in a forked child). */
#include "backend/host/bands.h"
#include "base/alloc.h"
#include "base/error.h"
#include "base/machine.h"
#include "tensor/memory_inside.h"
#include <limits.h>
#include <string.h>

enum { DONE = 1 /* every ticket */ };

/* ---- compile ---- */

/* The binding that a slot's address comes from, or -1 where it is fixed: arguments, variables, results, the
 * arena. */
static int binding_of(const mix_plan *plan, const mix_slot *slot) {
  switch (slot->kind) {
  case MIX_SLOT_ARGUMENT: return slot->index;
  case MIX_SLOT_VARIABLE: return plan->argument_count + slot->index;
  case MIX_SLOT_RESULT: return plan->argument_count + plan->variable_count + slot->index;
  case MIX_SLOT_ARENA: return plan->argument_count + plan->variable_count + plan->result_count;
  default: return -1;
  }
}

/* Bytes of another device are read from a copy, which stays with the memory. NULL with the error recorded. */
static void *host_address(mix_memory *memory) {
  return memory->device == &mix_host_memory ? memory->address : mix_memory_mirror(memory);
}

/* Calls `visit` for each pointer object of the executable, with the slot whose address it holds. */
typedef void slot_visitor(mix_executable *executable, const mix_slot *slot, void *where, int *cursor);

static void visit_slots(mix_executable *executable, slot_visitor *visit, int *cursor) {
  const mix_plan *plan = executable->plan;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    mix_host_step *host = &executable->steps[i];
    for (int k = 0; k < step->input_count; k++)
      visit(executable, &plan->slots[step->inputs[k]], &host->args.inputs[k], cursor);
    for (int k = 0; k < step->output_count; k++)
      visit(executable, &plan->slots[step->outputs[k]], &host->args.outputs[k], cursor);
    if (step->guard >= 0) visit(executable, &plan->slots[step->guard], &host->guard, cursor);
  }
}

/* Operands of the step that are the same in all steps of the loop. */
static unsigned fixed_operands(const mix_plan *plan, const mix_step *step) {
  unsigned fixed = 0;
  for (int i = 0; i < step->input_count && i < 32; i++) {
    const mix_slot *slot = &plan->slots[step->inputs[i]];
    if (slot->kind == MIX_SLOT_ARGUMENT && slot->index >= plan->argument_count - plan->fixed_arguments)
      fixed |= 1u << i;
  }
  return fixed;
}

/* Operands of the step that are variables, which no step writes. */
static unsigned lasting_operands(const mix_plan *plan, const mix_step *step, const bool *written) {
  unsigned lasting = 0;
  for (int i = 0; i < step->input_count && i < 32; i++) {
    const mix_slot *slot = &plan->slots[step->inputs[i]];
    if (slot->kind == MIX_SLOT_VARIABLE && !written[slot->index]) lasting |= 1u << i;
  }
  return lasting;
}

static bool *written_variables(const mix_plan *plan) {
  bool *written = mix_calloc((size_t)plan->variable_count + 1, sizeof *written);
  for (int i = 0; written && i < plan->step_count; i++)
    for (int k = 0; k < plan->steps[i].output_count; k++) {
      const mix_slot *slot = &plan->slots[plan->steps[i].outputs[k]];
      if (slot->kind == MIX_SLOT_VARIABLE) written[slot->index] = true;
    }
  return written;
}

static void set_address(void *where, const void *address) { memcpy(where, &address, sizeof address); }

static void count_patch(mix_executable *executable, const mix_slot *slot, void *where, int *count) {
  int binding = binding_of(executable->plan, slot);
  const char *constant = binding < 0 ? host_address(slot->memory) : NULL;
  if (binding >= 0)
    count[binding]++;
  else if (constant)
    set_address(where, constant + slot->offset);
}

static void fill_patch(mix_executable *executable, const mix_slot *slot, void *where, int *next) {
  int binding = binding_of(executable->plan, slot);
  if (binding < 0) return;
  executable->patches[next[binding]++] = (mix_patch){where, slot->kind == MIX_SLOT_ARENA ? slot->offset : 0};
}

static bool make_patches(mix_executable *executable) {
  const mix_plan *plan = executable->plan;
  int bindings = executable->binding_count =
      plan->argument_count + plan->variable_count + plan->result_count + 1;
  executable->first = mix_calloc((size_t)bindings + 1, sizeof(int));
  executable->bound = mix_calloc((size_t)bindings, sizeof(void *));
  int *next = mix_calloc((size_t)bindings, sizeof(int));
  if (!executable->first || !executable->bound || !next) return mix_free(next), false;
  visit_slots(executable, count_patch, next);
  if (mix_failed()) return mix_free(next), false; /* the copy of a constant */
  for (int b = 0; b < bindings; b++) {
    executable->first[b + 1] = executable->first[b] + next[b];
    next[b] = executable->first[b];
  }
  executable->patches = mix_calloc((size_t)executable->first[bindings] + 1, sizeof(mix_patch));
  if (executable->patches) visit_slots(executable, fill_patch, next);
  mix_free(next);
  return executable->patches != NULL;
}

/* Fills in the types and address arrays of every step. */
static bool make_steps(mix_executable *executable) {
  const mix_plan *plan = executable->plan;
  size_t inputs = 0, outputs = 0;
  for (int i = 0; i < plan->step_count; i++) {
    inputs += (size_t)plan->steps[i].input_count;
    outputs += (size_t)plan->steps[i].output_count;
  }
  executable->steps = mix_calloc((size_t)plan->step_count + 1, sizeof *executable->steps);
  executable->inputs = mix_calloc(inputs + 1, sizeof(void *));
  executable->outputs = mix_calloc(outputs + 1, sizeof(void *));
  executable->values = mix_calloc(inputs + outputs + 1, sizeof(mix_type));
  bool *written = written_variables(plan);
  if (!executable->steps || !executable->inputs || !executable->outputs || !executable->values || !written)
    return mix_free(written), false;
  const void **input = executable->inputs;
  void **output = executable->outputs;
  mix_type *value = executable->values;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    mix_host_step *host = &executable->steps[i];
    host->writes_variable = step->writes_variable;
    host->args =
        (mix_kernel_args){.op = step->op,
                          .attributes = step->attributes,
                          .program = step->program,
                          .body = step->body,
                          .tables = executable->tables,
                          .flush_subnormals = executable->flush_subnormals,
                          .precision = executable->precision,
                          .communicator = plan->communicator,
                          .input_count = step->input_count,
                          .output_count = step->output_count,
                          .input_types = value,
                          .output_types = value + step->input_count,
                          .inputs = input,
                          .outputs = output,
                          .fixed = fixed_operands(plan, step),
                          .lasting = executable->keeps_packed ? lasting_operands(plan, step, written) : 0,
                          .error = &host->error};
    for (int k = 0; k < step->input_count + step->output_count; k++) {
      const mix_slot *slot =
          &plan->slots[k < step->input_count ? step->inputs[k] : step->outputs[k - step->input_count]];
      *value++ = (mix_type){slot->dtype, slot->shape};
    }
    input += step->input_count;
    output += step->output_count;
  }
  mix_free(written);
  return true;
}

static void release_prepared(mix_host_step *host) {
  if (!host->prepared || !host->args.prepared) return;
  if (host->kernel->release)
    host->kernel->release(host->args.prepared);
  else
    mix_free(host->args.prepared);
  host->args.prepared = NULL;
}

static bool choose_kernel(mix_executable *executable, int number, bool verbose) {
  mix_host_step *host = &executable->steps[number];
  const char *scope = executable->plan->steps[number].scope;
  char report[1024], operands[512];
  host->kernel = mix_host_choose(executable->tables, &host->args, verbose ? report : NULL, sizeof report);
  if (verbose)
    mix_log_message(MIX_LOG_INFO, "dispatch: step %d %s(%s)%s%s: %s", number, host->args.op->name,
                    mix_kernel_operands_text(&host->args, operands, sizeof operands), scope ? " in " : "",
                    scope ? scope : "", report);
  if (!host->kernel) {
    mix_host_choose(executable->tables, &host->args, report, sizeof report);
    return mix_fail_unsupported("%s(%s)%s%s: no kernel serves it%s%s", host->args.op->name,
                                mix_kernel_operands_text(&host->args, operands, sizeof operands),
                                scope ? " in " : "", scope ? scope : "", report[0] ? ": " : "", report);
  }
  const mix_kernel *kernel = host->kernel;
  if (kernel->prepare && !kernel->prepare(&host->args, executable->threads)) return false;
  host->prepared = true;
  const bool same = host->args.fixed || host->args.lasting;
  const size_t kept = kernel->kept && same ? kernel->kept(&host->args) : 0;
  if (kept && !mix_host_keep(executable, number, mix_buffer_aligned(kept))) {
    release_prepared(host);
    host->args.fixed = host->args.lasting = 0;
    return choose_kernel(executable, number, false);
  }
  host->serial = kernel->serial && kernel->serial(&host->args);
  if (!host->serial) executable->parallel = true;
  size_t bytes = kernel->workspace ? kernel->workspace(&host->args, executable->threads) : 0;
  if (bytes > executable->workspace_bytes) executable->workspace_bytes = bytes;
  return true;
}

static bool build(mix_executable *executable) {
  const mix_plan *plan = executable->plan;
  bool verbose = mix_verbose("dispatch");
  if (!make_steps(executable) || !make_patches(executable)) return false;
  for (int i = 0; i < plan->step_count; i++)
    if (!choose_kernel(executable, i, verbose)) return false;
  if (executable->workspace_bytes) {
    executable->workspace = mix_alloc_buffer(executable->workspace_bytes);
    if (!executable->workspace) return false;
    for (int i = 0; i < plan->step_count; i++) executable->steps[i].args.workspace = executable->workspace;
  }
  return mix_host_form_bands(executable) && mix_host_schedule(executable);
}

/* Where threads outnumber cores, the awaited one may need the waiting one's core. */
static int patience(int threads) { return threads > mix_cpu_cores() ? 0 : MIX_PATIENCE; }

static atomic_bool all;
void mix_host_take_all_threads(bool choice) { atomic_store(&all, choice); }

static int thread_count(const mix_plan *plan, int threads) {
  if (threads < 2 || atomic_load(&all)) return threads < 2 ? 1 : threads;
  return mix_host_thread_count(plan, threads, mix_cpu_features());
}

static mix_executable *compile(const mix_plan *plan, int threads, mix_matmul_precision precision,
                               const mix_kernel_row *const *tables, bool flush_subnormals,
                               bool keeps_packed) {
  if (mix_failed()) return NULL;
  /* A buffer, because the barrier needs the alignment of cache lines. */
  mix_executable *executable = mix_alloc_buffer(sizeof *executable);
  if (!executable) return NULL;
  memset(executable, 0, sizeof *executable);
  executable->plan = plan;
  executable->tables = tables;
  executable->precision = precision;
  executable->keeps_packed = keeps_packed;
  executable->threads = thread_count(plan, threads);
  executable->flush_subnormals = flush_subnormals;
  atomic_store_explicit(&executable->failed_step, INT_MAX, memory_order_relaxed);
  if (executable->threads && build(executable)) {
    if (executable->parallel)
      executable->barrier.patience = patience(executable->threads); /* a system call, about 1 us */
    return executable;
  }
  mix_host_destroy(executable);
  return NULL;
}

mix_executable *mix_host_compile(const mix_plan *plan, int threads, mix_matmul_precision precision,
                                 const mix_kernel_row *const *tables, bool flush_subnormals) {
  return compile(plan, threads, precision, tables, flush_subnormals, plan->keeps_packed);
}

void mix_host_destroy(mix_executable *executable) {
  if (!executable) return;
  mix_host_destroy(executable->alone);
  mix_host_destroy(executable->packing);
  for (int i = 0; executable->steps && i < executable->plan->step_count; i++)
    release_prepared(&executable->steps[i]);
  if (executable->workspace) mix_free_buffer(executable->workspace, executable->workspace_bytes);
  mix_host_free_kept(executable);
  mix_free(executable->steps);
  mix_free(executable->inputs);
  mix_free(executable->outputs);
  mix_free(executable->values);
  mix_free(executable->stages);
  mix_free(executable->begins);
  mix_host_free_bands(executable);
  mix_free(executable->first);
  mix_free(executable->bound);
  mix_free(executable->patches);
  mix_free_buffer(executable, sizeof *executable);
}

/* ---- run ---- */

void mix_host_bind(mix_executable *executable, int binding, void *address) {
  if (executable->bound[binding] == address) return;
  executable->bound[binding] = address;
  const mix_patch *end = executable->patches + executable->first[binding + 1];
  for (const mix_patch *patch = executable->patches + executable->first[binding]; patch < end; patch++)
    set_address(patch->where, (char *)address + patch->offset);
}

static bool bind_memory(mix_executable *executable, int binding, mix_memory *memory) {
  void *address = host_address(memory);
  if (!address && mix_memory_bytes(memory)) return false;
  mix_host_bind(executable, binding, address);
  return true;
}

static bool bind_all(mix_executable *executable, const mix_bindings *bindings) {
  const mix_plan *plan = executable->plan;
  int b = 0;
  for (int i = 0; i < plan->argument_count; i++)
    if (!bind_memory(executable, b++, bindings->arguments[i])) return false;
  for (int i = 0; i < plan->variable_count; i++)
    mix_host_bind(executable, b++, bindings->variables[i]->address);
  for (int i = 0; i < plan->result_count; i++) mix_host_bind(executable, b++, bindings->results[i]->address);
  mix_host_bind(executable, b, bindings->arena ? bindings->arena->address : NULL);
  return true;
}

static void record_failure(mix_executable *executable, int step) {
  int first = atomic_load(&executable->failed_step);
  while (step < first && !atomic_compare_exchange_weak(&executable->failed_step, &first, step)) continue;
}

/* False: it was left out. */
static bool run_step(mix_executable *executable, int i, const mix_team *team) {
  mix_host_step *step = &executable->steps[i];
  if (step->serial && team->rank) return false;
  if (step->guard && !*step->guard) return false;
  /* Threads that are further on may already have failed in later steps. Those failures do not count, so
   * that all threads decide alike. */
  if (step->writes_variable && atomic_load_explicit(&executable->failed_step, memory_order_acquire) < i)
    return false;
  step->kernel->run(&step->args, step->serial ? &mix_team_alone : team);
  if (atomic_load_explicit(&step->error.met, memory_order_relaxed)) record_failure(executable, i);
  return true;
}

/* Runs the step at this place of the order, or the steps in bands that begin there. Returns the next place.
 */
static int run_at(mix_executable *executable, int place, const mix_team *team) {
  const mix_host_bands *bands = executable->steps[executable->order[place]].bands;
  if (!bands) {
    run_step(executable, executable->order[place], team);
    return place + 1;
  }
  mix_host_run_bands(executable, bands, team);
  return bands->end;
}

void mix_host_run_steps(mix_executable *executable, const mix_team *team) {
  for (int i = 0; i < executable->plan->step_count;) {
    if (executable->steps[executable->order[i]].barrier_before) mix_team_barrier(team);
    i = run_at(executable, i, team);
  }
}

static mix_trace_event *event_of(mix_executable *executable, int step, const mix_team *team) {
  return &executable->trace->events[step * executable->trace->shares + team->rank];
}

/* Steps in bands take turns: each has an equal part of their time. */
static void run_bands_traced(mix_executable *executable, const mix_host_bands *bands, const mix_team *team) {
  const int64_t begin = mix_trace_now();
  mix_host_run_bands(executable, bands, team);
  const int64_t each = (mix_trace_now() - begin) / (bands->end - bands->begin);
  for (int i = bands->begin; i < bands->end; i++) {
    mix_trace_event *event = event_of(executable, executable->order[i], team);
    event->begin = begin + (i - bands->begin) * each;
    event->end = event->begin + each;
    event->thread = mix_trace_thread();
  }
}

static void run_stage_traced(mix_executable *executable, int begin, int end, const mix_team *team) {
  for (int place = begin; place < end; place++) {
    const int i = executable->order[place];
    const mix_host_bands *bands = executable->steps[i].bands;
    if (bands) {
      run_bands_traced(executable, bands, team);
      place = bands->end - 1;
      continue;
    }
    if (executable->steps[i].serial && team->rank) continue;
    mix_trace_event *event = event_of(executable, i, team);
    event->begin = mix_trace_now();
    event->skipped = !run_step(executable, i, team);
    event->end = mix_trace_now();
    event->thread = mix_trace_thread();
  }
}

/* Runs steps as one thread of the team. */
static void run_stage(mix_executable *executable, int begin, int end, const mix_team *team) {
  const mix_float_control host_modes = mix_host_modes_begin(executable);
  if (executable->trace)
    run_stage_traced(executable, begin, end, team);
  else
    for (int i = begin; i < end;) i = run_at(executable, i, team);
  mix_float_modes_end(&host_modes);
}

static mix_ticket report_failure(mix_executable *executable) {
  int failed = atomic_load(&executable->failed_step);
  if (failed == INT_MAX) return DONE;
  const mix_step *step = &executable->plan->steps[failed];
  char message[768];
  mix_value_error_text(&executable->steps[failed].args, step->scope, message, sizeof message);
  atomic_store(&executable->failed_step, INT_MAX);
  for (int i = 0; i < executable->plan->step_count; i++)
    atomic_store_explicit(&executable->steps[i].error.met, false, memory_order_relaxed);
  mix_fail_value("%s", message);
  return 0;
}

static void run_share(void *context, int stage, int share) {
  mix_executable *executable = context;
  run_stage(executable, executable->begins[stage], executable->begins[stage + 1],
            &(const mix_team){share, executable->threads, &executable->barrier});
}

/* Runs the plan on one thread. The results have the bits of a plan compiled for one thread. */
static mix_ticket run_alone(mix_executable *executable, const mix_bindings *bindings) {
  if (!executable->alone)
    executable->alone = mix_host_compile(executable->plan, 1, executable->precision, executable->tables,
                                         executable->flush_subnormals);
  return executable->alone ? mix_host_enqueue(executable->alone, bindings) : 0;
}

/* Runs the plan without what is kept, which other runs use. */
static mix_ticket run_packing(mix_executable *executable, const mix_bindings *bindings) {
  if (!executable->packing)
    executable->packing = compile(executable->plan, executable->threads, executable->precision,
                                  executable->tables, executable->flush_subnormals, false);
  return executable->packing ? mix_host_enqueue(executable->packing, bindings) : 0;
}

static _Thread_local int awake = 1;
int mix_threads_awake(void) { return awake; }

static mix_ticket run_bound(mix_executable *executable, const mix_bindings *bindings) {
  executable->trace = bindings->trace;
  const bool alone = executable->threads == 1 || !executable->parallel;
  if (!alone || executable->threads == 1)
    awake = executable->threads; /* a plan without parallel steps leaves the threads as they are */
  if (alone) {
    run_stage(executable, 0, executable->plan->step_count,
              &(const mix_team){.rank = 0, .size = 1, .barrier = &executable->barrier});
    return report_failure(executable);
  }
  const mix_crew_work work = {executable->stages, executable->stage_count, run_share, executable};
  switch (mix_crew_run(&work, executable->threads)) {
  case MIX_CREW_DONE: return report_failure(executable);
  case MIX_CREW_TOO_FEW: return run_alone(executable, bindings);
  default: return 0;
  }
}

mix_ticket mix_host_enqueue(mix_executable *executable, const mix_bindings *bindings) {
  if (mix_failed() || !bind_all(executable, bindings)) return 0;
  if (!executable->kept_bytes) return run_bound(executable, bindings);
  if (!mix_host_hold_kept(executable, bindings->stamps))
    return mix_failed() ? 0 : run_packing(executable, bindings);
  const mix_ticket ticket = run_bound(executable, bindings);
  mix_host_let_kept_go(executable);
  return ticket;
}

/* ---- queries for dumps ---- */

void mix_host_facts(const mix_executable *executable, mix_executable_facts *facts) {
  *facts = (mix_executable_facts){.barriers = executable->barriers,
                                  .threads = executable->threads,
                                  .workspace_bytes = executable->workspace_bytes + executable->kept_bytes +
                                                     executable->own_bytes * (size_t)executable->threads};
  for (int i = 0; i < executable->band_count; i++) facts->cached_bytes += executable->bands[i].cached_bytes;
}

const char *mix_host_kernel_name(const mix_executable *executable, int step) {
  return step >= 0 && step < executable->plan->step_count ? executable->steps[step].kernel->name : NULL;
}
