/* Programs of the device "xla", and what a run binds to their parameters. */
#include "backend/xla/xla.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/memory_inside.h"
#include "tensor/shape.h"
#include <string.h>

struct mix_xla_program {
  const char *name; /* of the function, for messages */
  mix_xla_signature signature;
  pjrt_loaded *loaded;
  pjrt_buffer **constants; /* by parameter; NULL: it is none */
  /* Of the run that begins. */
  pjrt_buffer **parameters, **results;
  bool *own;           /* by parameter: freed after the run has begun */
  bool *donated;       /* by parameter: the run takes the buffer */
  mix_memory **gained; /* by parameter: the new memory of a variable; NULL: it keeps its own */
  int64_t *keep;       /* numbers of parameters that are not donated */
  mix_xla_run *spare;  /* runs that are over, to be used again */
};

void mix_xla_program_free(mix_xla_program *e) {
  const mix_pjrt *plugin = mix_xla_plugin();
  mix_xla_runs_finish(&e->signature);
  for (int p = 0; e->constants && p < e->signature.parameter_count; p++)
    mix_pjrt_destroy(plugin, PJRT_BUFFER_DESTROY, e->constants[p]);
  mix_pjrt_destroy(plugin, PJRT_LOADED_DESTROY, e->loaded);
  mix_free(e->constants);
  mix_free(e->parameters);
  mix_free(e->results);
  mix_free(e->own);
  mix_free(e->donated);
  mix_free(e->gained);
  mix_free(e->keep);
  mix_xla_runs_free(&e->spare);
  mix_free(e);
}

/* ---- compiling ---- */

static bool upload_constants(mix_xla_program *e) {
  for (int p = 0; p < e->signature.parameter_count; p++) {
    const mix_xla_parameter *parameter = &e->signature.parameters[p];
    if (parameter->kind != MIX_XLA_CONSTANT || mix_xla_plugin()->topology) continue;
    const void *bytes = mix_ir_map_constant(parameter->constant);
    if (!bytes) return false;
    e->constants[p] = mix_pjrt_upload(mix_xla_plugin(), bytes, parameter->type);
    mix_ir_unmap_constant(parameter->constant);
    if (!e->constants[p]) return false;
  }
  return true;
}

static bool compile_text(mix_xla_program *e, const char *text) {
  const mix_pjrt *plugin = mix_xla_plugin();
  if (plugin->topology) return mix_xla_compile_for_target(text, e->name);
  e->loaded = mix_xla_compile_text(text, e->name);
  const int results = e->loaded ? mix_pjrt_result_count(plugin, e->loaded) : -1;
  if (results >= 0 && results != e->signature.result_count)
    mix_fail_internal("xla: the program of %s has %d results; expected %d", e->name, results,
                      e->signature.result_count);
  return results == e->signature.result_count;
}

static bool make_room(mix_xla_program *e) {
  const size_t parameters = (size_t)e->signature.parameter_count + 1,
               results = (size_t)e->signature.result_count + 1;
  e->constants = mix_calloc(parameters, sizeof *e->constants);
  e->parameters = mix_calloc(parameters, sizeof *e->parameters);
  e->results = mix_calloc(results, sizeof *e->results);
  e->own = mix_calloc(parameters, sizeof *e->own);
  e->donated = mix_calloc(parameters, sizeof *e->donated);
  e->gained = mix_calloc(parameters, sizeof *e->gained);
  e->keep = mix_calloc(parameters, sizeof *e->keep);
  return e->constants && e->parameters && e->results && e->own && e->donated && e->gained && e->keep;
}

mix_xla_program *mix_xla_program_new(mix_ir *ir) {
  mix_xla_program *e = mix_calloc(1, sizeof *e);
  if (!e) return NULL;
  e->name = ir->name ? ir->name : "a graph";
  char *text = mix_xla_emit(ir, &e->signature);
  const bool good = text && make_room(e) && compile_text(e, text) && upload_constants(e);
  mix_free(text);
  if (good) return e;
  mix_xla_program_free(e);
  return NULL;
}

/* ---- runs ---- */

/* Before the lock: reading memory may wait for runs. */
static bool bind_arguments(mix_xla_program *e, const mix_bindings *bindings, mix_xla_run *run) {
  for (int p = 0; p < e->signature.parameter_count; p++) {
    const mix_xla_parameter *parameter = &e->signature.parameters[p];
    e->parameters[p] = e->constants[p];
    if (parameter->kind != MIX_XLA_ARGUMENT) continue;
    mix_memory *memory = bindings->arguments[parameter->index];
    mix_xla_upload upload = {.parameter = p};
    if (!(e->parameters[p] = mix_xla_buffer(memory, parameter->type, &e->own[p], &upload))) return false;
    run->bytes += upload.bytes;
    if (upload.done) run->uploads[run->upload_count++] = upload;
  }
  return true;
}

static bool is_replaced(const mix_xla_parameter *parameter) {
  return parameter->kind == MIX_XLA_VARIABLE && parameter->result >= 0;
}

/* Those of the graph come first. */
static int graph_result_count(const mix_xla_signature *signature) {
  int count = signature->result_count - (signature->error_result >= 0);
  for (int p = 0; p < signature->parameter_count; p++) count -= is_replaced(&signature->parameters[p]);
  return count;
}

/* A variable that the run writes keeps its memory if the run may take its buffer, and gets a new one if
 * somebody else holds the old value. */
static bool bind_written(mix_xla_program *e, int p, mix_memory *memory, bool keep) {
  const bool own = mix_xla_may_donate(memory);
  e->donated[p] = own && !keep;
  if (own) return true;
  e->gained[p] = mix_memory_new(&mix_xla_memory, mix_memory_bytes(memory));
  return e->gained[p] != NULL;
}

/* Returns the number of parameters to keep; -1 with the error recorded. */
static int bind_variables(mix_xla_program *e, const mix_bindings *bindings, bool keep) {
  int kept = 0;
  for (int p = 0; p < e->signature.parameter_count; p++) {
    const mix_xla_parameter *parameter = &e->signature.parameters[p];
    mix_memory *memory = parameter->kind == MIX_XLA_VARIABLE ? bindings->variables[parameter->index] : NULL;
    if (memory) e->parameters[p] = mix_xla_buffer(memory, parameter->type, &e->own[p], NULL);
    if (parameter->kind == MIX_XLA_ERROR) e->parameters[p] = mix_xla_error_word();
    if (!e->parameters[p]) return -1;
    e->donated[p] = false;
    if (is_replaced(parameter) && !bind_written(e, p, memory, keep)) return -1;
    if (!e->donated[p]) e->keep[kept++] = p;
  }
  return kept;
}

static void mark(mix_memory *memory, mix_ticket ticket, bool writes) {
  memory = mix_xla_whole(memory);
  if (memory->device != &mix_xla_memory) return;
  memory->used = ticket;
  if (writes) memory->written = ticket;
}

static size_t written_bytes(const mix_xla_signature *signature, const mix_bindings *bindings) {
  size_t bytes = 0;
  for (int p = 0; p < signature->parameter_count; p++) {
    const mix_xla_parameter *parameter = &signature->parameters[p];
    if (is_replaced(parameter)) bytes += bindings->variables[parameter->index]->bytes;
  }
  return bytes;
}

/* Of variables that the run writes and does not take. */
static void keep_values(mix_xla_program *e, const mix_bindings *bindings, mix_xla_run *run) {
  for (int p = 0; p < e->signature.parameter_count; p++) {
    const mix_xla_parameter *parameter = &e->signature.parameters[p];
    if (!is_replaced(parameter)) continue;
    mix_memory *memory = bindings->variables[parameter->index];
    if (e->gained[p])
      mix_xla_keep_former(run, e->gained[p], memory);
    else
      mix_xla_keep_buffer(run, memory);
  }
}

/* Hands out what the run makes. */
static void give(mix_xla_program *e, const mix_bindings *bindings, int graph_results, mix_ticket ticket) {
  for (int r = 0; r < graph_results; r++) {
    mix_xla_give_buffer(bindings->results[r], e->results[r], e->signature.results[r]);
    mark(bindings->results[r], ticket, true);
  }
  for (int p = 0; p < e->signature.parameter_count; p++) {
    const mix_xla_parameter *parameter = &e->signature.parameters[p];
    if (parameter->kind == MIX_XLA_ARGUMENT) mark(bindings->arguments[parameter->index], ticket, false);
    if (parameter->kind != MIX_XLA_VARIABLE) continue;
    mix_memory **variable = &bindings->variables[parameter->index];
    if (!is_replaced(parameter)) {
      mark(*variable, ticket, false);
      continue;
    }
    if (e->gained[p]) *variable = e->gained[p];
    e->gained[p] = NULL;
    mix_xla_give_buffer(*variable, e->results[parameter->result], parameter->type);
    mark(*variable, ticket, true);
  }
}

/* With the lock of the runs. */
static mix_ticket begin(mix_xla_program *e, const mix_bindings *bindings, mix_xla_run *run) {
  const mix_xla_signature *signature = &e->signature;
  const int keep = mix_xla_runs_must_keep(run, written_bytes(signature, bindings)),
            kept = keep < 0 ? -1 : bind_variables(e, bindings, keep);
  const mix_pjrt_run call = {.loaded = e->loaded,
                             .arguments = e->parameters,
                             .argument_count = signature->parameter_count,
                             .keep = e->keep,
                             .keep_count = kept,
                             .results = e->results};
  if (kept < 0 || !mix_pjrt_execute(mix_xla_plugin(), &call, e->name, &run->done)) return 0;
  if (keep) keep_values(e, bindings, run);
  run->word = signature->error_result < 0 ? NULL : e->results[signature->error_result];
  const mix_ticket ticket = mix_xla_runs_append(run);
  give(e, bindings, graph_result_count(signature), ticket);
  mix_xla_runs_trim();
  return ticket;
}

/* Buffers and memories that were held for the run alone. */
static void release_parameters(mix_xla_program *e) {
  for (int p = 0; p < e->signature.parameter_count; p++) {
    if (e->own[p]) mix_pjrt_destroy(mix_xla_plugin(), PJRT_BUFFER_DESTROY, e->parameters[p]);
    e->own[p] = false;
    mix_release(e->gained[p]);
    e->gained[p] = NULL;
  }
}

/* The GPU is not here: results are zeros, variables stay, so that the caller goes on to what is compiled
 * next. */
static mix_ticket pretend(const mix_xla_program *e, const mix_bindings *bindings) {
  for (int r = 0; r < graph_result_count(&e->signature); r++) {
    void *bytes = mix_memory_map(bindings->results[r], MIX_MAP_WRITE);
    if (!bytes) return 0;
    memset(bytes, 0, bindings->results[r]->bytes);
    mix_memory_unmap(bindings->results[r]);
  }
  return 1;
}

mix_ticket mix_xla_program_enqueue(mix_xla_program *e, const mix_bindings *bindings) {
  if (mix_xla_plugin()->topology) return pretend(e, bindings);
  mix_ticket ticket = 0;
  mix_xla_run *run = mix_xla_run_take(&e->signature, e->name, &e->spare);
  if (run && bind_arguments(e, bindings, run)) {
    mix_xla_runs_lock();
    ticket = begin(e, bindings, run);
    mix_xla_runs_unlock();
  }
  release_parameters(e);
  if (!ticket && run) mix_xla_run_drop(run);
  return ticket;
}
