/* Executables of the device "remote": the reference kernel of each step of a plan, constants on the device,
 * and a check that no two values of the arena that are alive at once share bytes. A run gives each variable
 * that it writes new storage. */
#include "support/remote/remote.h"

#include "backend/host/host.h"
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mix_executable {
  const mix_plan *plan;
  mix_kernel_args *args;
  const mix_kernel **kernels;
  mix_type *types;
  mix_memory **constants; /* of each slot; NULL: no constant */
  bool *written;          /* variable -> some step writes it */
  void *workspace;
  size_t workspace_bytes;
};

void mix_remote_destroy(mix_executable *e) {
  mix_remote_finish(e);
  for (int i = 0; e->args && e->kernels && i < e->plan->step_count; i++) {
    if (!e->kernels[i] || !e->args[i].prepared) continue;
    if (e->kernels[i]->release)
      e->kernels[i]->release(e->args[i].prepared);
    else
      mix_free(e->args[i].prepared);
  }
  for (int s = 0; e->constants && s < e->plan->slot_count; s++) mix_release(e->constants[s]);
  mix_free(e->args);
  mix_free(e->kernels);
  mix_free(e->types);
  mix_free(e->constants);
  mix_free(e->written);
  if (e->workspace) mix_free_buffer(e->workspace, e->workspace_bytes);
  mix_free(e);
}

/* ---- the check of the arena ---- */

typedef struct life {
  int first, last; /* steps; first -1: never written */
} life;

static int operand(const mix_step *step, int i) {
  return i < step->input_count ? step->inputs[i] : step->outputs[i - step->input_count];
}

/* The value that a view shares its bytes with: the latest one written at that place. */
static int owner_of(const mix_plan *plan, const life *lives, int slot, int step) {
  int owner = slot;
  if (plan->slots[slot].kind != MIX_SLOT_ARENA || lives[slot].first >= 0) return slot;
  for (int s = 0; s < plan->slot_count; s++)
    if (plan->slots[s].kind == MIX_SLOT_ARENA && plan->slots[s].offset == plan->slots[slot].offset &&
        lives[s].first >= 0 && lives[s].first < step &&
        (owner == slot || lives[s].first > lives[owner].first))
      owner = s;
  return owner;
}

static void find_lives(const mix_plan *plan, life *lives) {
  for (int s = 0; s < plan->slot_count; s++) lives[s] = (life){-1, -1};
  for (int t = 0; t < plan->step_count; t++)
    for (int o = 0; o < plan->steps[t].output_count; o++) {
      const int slot = plan->steps[t].outputs[o];
      if (lives[slot].first < 0) lives[slot] = (life){t, t};
    }
  for (int t = 0; t < plan->step_count; t++) {
    const mix_step *step = &plan->steps[t];
    for (int i = -1; i < step->input_count; i++) {
      const int slot = i < 0 ? step->guard : step->inputs[i];
      if (slot >= 0) lives[owner_of(plan, lives, slot, t)].last = t;
    }
  }
}

/* A result may take the place of an operand that its step is the last to read. */
static bool check_arena(const mix_plan *plan) {
  life *lives = mix_calloc((size_t)plan->slot_count + 1, sizeof *lives);
  if (!lives) return false;
  find_lives(plan, lives);
  for (int a = 0; a < plan->slot_count; a++)
    for (int b = 0; b < plan->slot_count; b++) {
      const mix_slot *x = &plan->slots[a], *y = &plan->slots[b];
      if (a == b || x->kind != MIX_SLOT_ARENA || y->kind != MIX_SLOT_ARENA) continue;
      if (lives[a].first < 0 || lives[b].first < lives[a].first || lives[b].first >= lives[a].last) continue;
      if (x->offset + x->bytes <= y->offset || y->offset + y->bytes <= x->offset) continue;
      if (lives[a].first == lives[b].first && b < a) continue; /* named once */
      mix_fail(
          MIX_INTERNAL_ERROR,
          "remote: slots %d and %d of the plan share bytes of the arena while both are alive, at step %d", a,
          b, lives[b].first);
    }
  mix_free(lives);
  return !mix_failed();
}

/* ---- compiling ---- */

/* Slots of constants that no step reads may have no bytes. */
static bool upload_constant(mix_executable *e, int s) {
  const mix_slot *slot = &e->plan->slots[s];
  if (slot->kind != MIX_SLOT_CONSTANT || e->constants[s]) return true;
  const char *bytes = mix_memory_map(slot->memory, MIX_MAP_READ);
  if (!bytes) return false;
  e->constants[s] = mix_memory_new(&mix_remote_memory, slot->bytes);
  bool good = e->constants[s] && mix_memory_copy_in(e->constants[s], 0, bytes + slot->offset, slot->bytes);
  mix_memory_unmap(slot->memory);
  return good;
}

static bool upload_constants(mix_executable *e) {
  for (int t = 0; t < e->plan->step_count; t++) {
    const mix_step *step = &e->plan->steps[t];
    if (step->guard >= 0 && !upload_constant(e, step->guard)) return false;
    for (int i = 0; i < step->input_count; i++)
      if (!upload_constant(e, step->inputs[i])) return false;
  }
  return true;
}

static bool choose_kernel(mix_executable *e, int i, const mix_context *context, mix_type **type) {
  const mix_step *step = &e->plan->steps[i];
  mix_kernel_args *args = &e->args[i];
  *args = (mix_kernel_args){.op = step->op,
                            .attributes = step->attributes,
                            .program = step->program,
                            .body = step->body,
                            .tables = mix_host_tables(context),
                            .precision = context->precision,
                            .input_count = step->input_count,
                            .output_count = step->output_count,
                            .input_types = *type,
                            .output_types = *type + step->input_count};
  for (int k = 0; k < step->input_count + step->output_count; k++) {
    const mix_slot *slot = &e->plan->slots[operand(step, k)];
    *(*type)++ = slot->type;
    if (k >= step->input_count && slot->kind == MIX_SLOT_VARIABLE) e->written[slot->index] = true;
  }
  e->kernels[i] = mix_host_choose(mix_host_tables(context), args, NULL, 0);
  if (!e->kernels[i]) return mix_fail(MIX_UNSUPPORTED, "remote: no kernel for %s", step->op->name), false;
  if (e->kernels[i]->prepare && !e->kernels[i]->prepare(args, 1)) return false;
  const size_t bytes = e->kernels[i]->workspace ? e->kernels[i]->workspace(args, 1) : 0;
  if (bytes > e->workspace_bytes) e->workspace_bytes = bytes;
  return true;
}

static bool build(mix_executable *e, const mix_context *context) {
  const mix_plan *plan = e->plan;
  size_t operands = 1;
  for (int i = 0; i < plan->step_count; i++)
    operands += (size_t)(plan->steps[i].input_count + plan->steps[i].output_count);
  e->args = mix_calloc((size_t)plan->step_count + 1, sizeof *e->args);
  e->kernels = mix_calloc((size_t)plan->step_count + 1, sizeof *e->kernels);
  e->types = mix_calloc(operands, sizeof *e->types);
  e->constants = mix_calloc((size_t)plan->slot_count + 1, sizeof *e->constants);
  e->written = mix_calloc((size_t)plan->variable_count + 1, sizeof *e->written);
  if (!e->args || !e->kernels || !e->types || !e->constants || !e->written) return false;
  if (!check_arena(plan) || !upload_constants(e)) return false;
  mix_type *type = e->types;
  for (int i = 0; i < plan->step_count; i++)
    if (!choose_kernel(e, i, context, &type)) return false;
  return !e->workspace_bytes || (e->workspace = mix_alloc_buffer(e->workspace_bytes));
}

mix_executable *mix_remote_compile(const mix_plan *plan, const mix_context *context) {
  if (mix_failed()) return NULL;
  mix_executable *e = mix_calloc(1, sizeof *e);
  if (!e) return NULL;
  e->plan = plan;
  if (build(e, context)) return e;
  mix_remote_destroy(e);
  return NULL;
}

/* ---- runs ---- */

/* The memories of a run, all on the device. */
typedef struct run {
  mix_executable *executable;
  const mix_bindings *bindings;
  mix_memory **arguments; /* copies of those of the host, or the same; retained */
  mix_memory **variables; /* new storage of those that are written, or the same; retained */
  mix_memory *arena;      /* retained */
  mix_remote_task *first, **end;
} run;

static mix_remote_task *add_task(run *r) {
  mix_remote_task *task = calloc(1, sizeof *task);
  if (!task) return mix_fail(MIX_MEMORY_ERROR, "remote: out of memory");
  *r->end = task;
  r->end = &task->next;
  return task;
}

/* Memory of the host that stays as it is may be read when the step is due. */
static bool copy_argument(run *r, mix_memory *to, mix_memory *given) {
  if (given->device != &mix_host_memory || !mix_memory_stays(given)) return mix_memory_copy(to, given);
  mix_remote_task *copy = add_task(r);
  if (!copy) return false;
  mix_remote_task_add(copy, given, 0, given->bytes, false);
  mix_remote_task_add(copy, to, 0, given->bytes, true);
  return true;
}

static bool copy_arguments(run *r) {
  for (int i = 0; i < r->executable->plan->argument_count; i++) {
    mix_memory *given = r->bindings->arguments[i];
    if (given->device == &mix_remote_memory) {
      r->arguments[i] = mix_retain(given);
      continue;
    }
    if (!(r->arguments[i] = mix_memory_new(&mix_remote_memory, given->bytes))) return false;
    if (!copy_argument(r, r->arguments[i], given)) return false;
  }
  return true;
}

/* A plan whose values in the arena have no bytes comes without one. */
static bool find_arena(run *r) {
  mix_memory *given = r->bindings->arena;
  r->arena = given ? mix_retain(given) : mix_memory_new(&mix_remote_memory, 0);
  return r->arena != NULL;
}

static bool renew_variables(run *r) {
  for (int i = 0; i < r->executable->plan->variable_count; i++) {
    mix_memory *storage = r->bindings->variables[i];
    if (!r->executable->written[i]) {
      r->variables[i] = mix_retain(storage);
      continue;
    }
    mix_remote_task *copy = add_task(r);
    if (!copy || !(r->variables[i] = mix_memory_new(&mix_remote_memory, storage->bytes))) return false;
    mix_remote_task_add(copy, storage, 0, storage->bytes, true); /* is poisoned */
    mix_remote_task_add(copy, r->variables[i], 0, storage->bytes, true);
  }
  return true;
}

static void add_operand(run *r, mix_remote_task *task, int s, bool write) {
  const mix_slot *slot = &r->executable->plan->slots[s];
  mix_memory *memory = slot->kind == MIX_SLOT_ARGUMENT   ? r->arguments[slot->index]
                       : slot->kind == MIX_SLOT_VARIABLE ? r->variables[slot->index]
                       : slot->kind == MIX_SLOT_RESULT   ? r->bindings->results[slot->index]
                       : slot->kind == MIX_SLOT_CONSTANT ? r->executable->constants[s]
                                                         : r->arena;
  mix_remote_task_add(task, memory, slot->kind == MIX_SLOT_ARENA ? slot->offset : 0, slot->bytes, write);
}

static bool add_steps(run *r) {
  const mix_plan *plan = r->executable->plan;
  for (int i = 0; i < plan->step_count; i++) {
    const mix_step *step = &plan->steps[i];
    mix_remote_task *task = add_task(r);
    if (!task) return false;
    if (step->input_count + step->output_count >= MIX_REMOTE_OPERANDS)
      return mix_fail(MIX_INTERNAL_ERROR, "remote: %d operands", step->input_count), false;
    task->executable = r->executable;
    task->step = i;
    task->writes_variable = step->writes_variable;
    task->may_fail =
        (step->op->flags & MIX_OP_CHECKS_VALUES) || (step->program && mix_program_may_fail(step->program));
    for (int k = 0; k < step->input_count + step->output_count; k++)
      add_operand(r, task, operand(step, k), k >= step->input_count);
    if (step->guard >= 0) add_operand(r, task, step->guard, false);
  }
  return true;
}

/* The caller gets the new storages. */
static void give_variables(const run *r) {
  for (int i = 0; i < r->executable->plan->variable_count; i++) {
    if (!r->executable->written[i]) continue;
    mix_remote_mark_replaced(r->bindings->variables[i]);
    r->bindings->variables[i] = mix_retain(r->variables[i]);
  }
}

mix_ticket mix_remote_run(mix_executable *e, const mix_bindings *bindings) {
  if (mix_failed()) return 0;
  const mix_plan *plan = e->plan;
  run r = {.executable = e, .bindings = bindings};
  r.end = &r.first;
  r.arguments = mix_calloc((size_t)plan->argument_count + 1, sizeof *r.arguments);
  r.variables = mix_calloc((size_t)plan->variable_count + 1, sizeof *r.variables);
  mix_ticket ticket = 0;
  if (r.arguments && r.variables && find_arena(&r) && copy_arguments(&r) && renew_variables(&r) &&
      add_steps(&r)) {
    give_variables(&r);
    ticket = mix_remote_enqueue(r.first);
  } else {
    for (mix_remote_task *task = r.first, *next; task; task = next)
      next = task->next, mix_remote_task_free(task);
  }
  for (int i = 0; r.arguments && i < plan->argument_count; i++) mix_release(r.arguments[i]);
  for (int i = 0; r.variables && i < plan->variable_count; i++) mix_release(r.variables[i]);
  mix_release(r.arena);
  mix_free(r.arguments);
  mix_free(r.variables);
  return ticket;
}

/* ---- steps ---- */

static void run_copy(const mix_remote_task *task) {
  const mix_remote_range *from = &task->ranges[0];
  const bool host = task->held[0]->device == &mix_host_memory;
  const size_t bytes = (size_t)(from->end - from->begin);
  if (bytes)
    memcpy(mix_remote_kernel_address(task->ranges[1].begin),
           host ? from->begin : mix_remote_kernel_address(from->begin), bytes);
  if (!host) mix_remote_poison(task->held[0]);
}

const char *mix_remote_run_task(const mix_remote_task *task, bool failed, char *text, size_t size) {
  static const mix_team alone = {.rank = 0, .size = 1};
  const void *inputs[MIX_REMOTE_OPERANDS];
  void *outputs[MIX_REMOTE_OPERANDS];
  mix_value_error error = {0};
  const mix_executable *e = task->executable;
  if (!e) return run_copy(task), NULL;
  const mix_step *step = &e->plan->steps[task->step];
  const int guard = step->input_count + step->output_count;
  if (step->guard >= 0 && !*(const bool *)mix_remote_kernel_address(task->ranges[guard].begin)) return NULL;
  if (step->writes_variable && failed) return NULL;
  for (int k = 0; k < step->input_count; k++) inputs[k] = mix_remote_kernel_address(task->ranges[k].begin);
  for (int k = 0; k < step->output_count; k++)
    outputs[k] = mix_remote_kernel_address(task->ranges[step->input_count + k].begin);
  mix_kernel_args args = e->args[task->step];
  args.inputs = inputs, args.outputs = outputs, args.error = &error;
  args.workspace = e->workspace;
  e->kernels[task->step]->run(&args, &alone);
  if (!error.met) return NULL;
  mix_value_error_text(&args, step->scope, text, size);
  return text;
}

void mix_remote_facts(const mix_executable *e, mix_executable_facts *facts) {
  *facts = (mix_executable_facts){.threads = 1, .workspace_bytes = e->workspace_bytes};
}

const char *mix_remote_kernel_name(const mix_executable *e, int step) {
  return step >= 0 && step < e->plan->step_count ? e->kernels[step]->name : NULL;
}
