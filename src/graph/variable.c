#include "graph/divided_variable.h"
#include "graph/loop_capture.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/lock.h"
#include "graph/retired_storage.h"
#include "tensor/shape.h"
#include <stdio.h>

static _Thread_local mix_dtype cast_dtype;
static _Thread_local bool cast_updates;
static atomic_uint_fast64_t capture_epoch;

/* Tensors that outlive the variable take over its storage. */
static void variable_finalize(void *object) {
  mix_variable *variable = object;
  mix_node *read = variable->read;
  if (read) {
    mix_graph_lock();
    read->variable = NULL;
    mix_memory_end_storage(read->outputs[0].memory); /* nobody writes it any more */
    mix_graph_unlock();
    mix_release(read);
  }
  for (int i = 0; i < 4; i++) {
    if (variable->copies[i]) variable->copies[i]->original = NULL;
    mix_release(variable->copies[i]);
  }
  mix_release(variable->share);
  mix_release(variable->constraint);
  mix_release(variable->regularizer);
  mix_release(variable->lora);
  mix_release(variable->memory);
}

static const char *name_of(const void *object) { return ((const mix_variable *)object)->name; }
const mix_class mix_variable_class = {.name = "variable", .finalize = variable_finalize, .name_of = name_of};

mix_dtype mix_cast_dtype(void) { return cast_dtype; }
mix_dtype mix_cast_dtype_set(mix_dtype dtype) {
  mix_dtype former = cast_dtype;
  cast_dtype = mix_dtype_is_floating(dtype) ? dtype : MIX_DTYPE_NONE;
  return former;
}
bool mix_cast_updates(void) { return cast_updates && cast_dtype != MIX_DTYPE_NONE; }
bool mix_cast_updates_set(bool cast) {
  bool former = cast_updates;
  cast_updates = cast;
  return former;
}

const char *mix_variable_name(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) ? variable->name : "";
}
mix_shape mix_variable_shape(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) ? variable->shape : (mix_shape){.rank = 0};
}
mix_dtype mix_variable_true_dtype(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) ? variable->dtype : MIX_DTYPE_NONE;
}
mix_dtype mix_variable_dtype(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) && variable->autocast && cast_dtype != MIX_DTYPE_NONE
             ? cast_dtype
             : mix_variable_true_dtype(variable);
}
bool mix_variable_trainable(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) && variable->trainable;
}
bool mix_variable_is_autocast(const mix_variable *variable) {
  return mix_is(variable, &mix_variable_class) && variable->autocast;
}
void mix_variable_set_trainable(mix_variable *variable, bool trainable) {
  if (!mix_is(variable, &mix_variable_class) || variable->trainable == trainable) return;
  variable->trainable = trainable;
  mix_capture_epoch_move();
}
uint64_t mix_capture_epoch(void) { return atomic_load(&capture_epoch); }
void mix_capture_epoch_move(void) { atomic_fetch_add(&capture_epoch, 1); }

const char *mix_variable_text(const mix_variable *variable, char *text, size_t size) {
  char shape[160];
  if (!text || !size) return "";
  if (!mix_is(variable, &mix_variable_class)) return snprintf(text, size, "<no variable>"), text;
  mix_shape_text(variable->shape, shape, sizeof shape);
  if (variable->autocast)
    snprintf(text, size, "<AutoCastVariable '%s' shape=%s dtype=%s dtype_to_cast_to=%s>", variable->name,
             shape, mix_dtype_name(variable->dtype), mix_dtype_name(mix_variable_dtype(variable)));
  else
    snprintf(text, size, "<Variable '%s' shape=%s dtype=%s>", variable->name, shape,
             mix_dtype_name(variable->dtype));
  return text;
}

/* ---- captures ---- */

/* Created on first use; NULL with the error recorded. */
static mix_binding *binding_of(mix_capture *in, mix_variable *variable) {
  for (int i = in->binding_count - 1; i >= 0; i--)
    if (in->bindings[i].variable == variable) return &in->bindings[i];
  if (!mix_reserve(&in->bindings, &in->binding_capacity, in->binding_count + 1, sizeof *in->bindings))
    return NULL;
  mix_node *entry = mix_node_placeholder(variable->dtype, variable->shape, false);
  if (!entry) return NULL;
  mix_binding *binding = &in->bindings[in->binding_count++];
  *binding =
      (mix_binding){.variable = mix_retain(variable), .entry = entry, .current = {mix_retain(entry), 0}};
  return binding;
}

static void forget_read(mix_binding *binding) {
  mix_release(binding->read);
  binding->read = NULL;
}

void mix_capture_clear(mix_capture *in) {
  for (int i = 0; i < in->binding_count; i++) {
    forget_read(&in->bindings[i]);
    mix_release(in->bindings[i].current.node);
    mix_release(in->bindings[i].entry);
    mix_release(in->bindings[i].variable);
  }
  for (int i = 0; i < in->stateful_count; i++) mix_release(in->stateful[i]);
  mix_free(in->bindings);
  mix_free(in->stateful);
  *in = (mix_capture){.outer = in->outer};
}

bool mix_capture_assign(mix_capture *in, mix_variable *variable, mix_tensor *value) {
  mix_binding *binding = binding_of(in, variable);
  if (!binding) return false;
  forget_read(binding);
  mix_retain(value->node);
  mix_release(binding->current.node);
  binding->current = (mix_edge){value->node, value->output};
  binding->assigned = true;
  return true;
}

/* ---- reading ---- */

static mix_tensor *read_in_capture(mix_capture *capture, mix_variable *variable) {
  mix_binding *binding = binding_of(capture, variable);
  if (!binding) return NULL;
  if (!binding->read && !(binding->read = mix_node_read(variable, &binding->current, NULL))) return NULL;
  return mix_tensor_of(binding->read, 0);
}

static mix_tensor *read_storage(mix_variable *variable) {
  mix_graph_lock();
  if (!variable->read) {
    mix_memory *storage = mix_memory_read_storage(variable->memory);
    variable->read = storage ? mix_node_read(variable, NULL, storage) : NULL;
    mix_release(storage);
  }
  mix_tensor *value = mix_tensor_of(variable->read, 0);
  mix_graph_unlock();
  return value;
}

mix_tensor *mix_variable_true_value(mix_variable *variable) {
  if (mix_failed()) return NULL;
  if (!mix_is(variable, &mix_variable_class)) return mix_fail_type("variable_value: expected a variable");
  const bool narrow_will_do = mix_capture_current() && mix_variable_has_narrow(variable);
  if (!narrow_will_do && !mix_variable_check_here(variable, "variable_value")) return NULL;
  mix_tensor *in_loop = mix_loop_value(variable);
  if (in_loop || mix_failed()) return in_loop;
  mix_capture *capture = mix_capture_current();
  return capture ? read_in_capture(capture, variable) : read_storage(variable);
}

static bool detach_readers(mix_variable *variable) {
  mix_node *read = variable->read;
  if (!read) return true; /* another thread has done it */
  mix_memory *shared = read->outputs[0].memory;
  bool read_lives = mix_references(read) > 1;
  if (variable->in_file) {
    mix_memory_end_storage(shared); /* nobody writes it: they keep it */
  } else if (read_lives || mix_references(shared) > 1) {
    mix_storages_wait();
    if (!mix_memory_leave_storage(shared)) return false;
  }
  if (read_lives) {
    mix_retain(variable);
    read->holds_variable = true;
  }
  variable->read = NULL;
  mix_release(read);
  return true;
}

/* ---- storages in files ---- */

static bool leave_file(mix_variable *variable) {
  if (!variable->in_file) return true; /* another thread has done it */
  mix_memory *own = mix_memory_new(&mix_host_memory, mix_memory_bytes(variable->memory));
  if (!own || !mix_memory_copy(own, variable->memory) || !mix_storage_swap(&variable->memory, own))
    return mix_release(own), false;
  variable->in_file = false;
  return true;
}

bool mix_variable_borrow(mix_variable *variable, mix_memory *memory) {
  if (mix_capture_current() || mix_loop_capture_current()) return false;
  mix_graph_lock();
  const bool host = mix_memory_device_of(variable->memory) == &mix_host_memory;
  const bool good = host && detach_readers(variable) && mix_storage_swap(&variable->memory, memory);
  if (good) {
    mix_retain(memory);
    variable->in_file = true;
    variable->version++;
  }
  mix_graph_unlock();
  return good;
}

/* Training steps take no lock: nothing has read the variable since the last write. */
bool mix_variable_before_write(mix_variable *variable) {
  if (!variable->read && !variable->in_file) return true;
  mix_graph_lock();
  bool good = detach_readers(variable) && leave_file(variable);
  mix_graph_unlock();
  return good;
}

/* ---- devices ---- */

void mix_variable_replace(mix_variable *variable, mix_memory *memory) {
  mix_graph_lock();
  mix_memory *former = variable->memory;
  variable->memory = memory;
  mix_graph_unlock();
  mix_release(former);
}

bool mix_variable_move(mix_variable *variable, const mix_memory_device *device) {
  if (mix_memory_device_of(variable->memory) == device) return true;
  mix_graph_lock();
  mix_memory *moved = NULL;
  bool good = mix_memory_device_of(variable->memory) == device; /* another thread has done it */
  if (!good && detach_readers(variable)) moved = mix_memory_new(device, mix_memory_bytes(variable->memory));
  if (moved && mix_memory_copy(moved, variable->memory)) {
    mix_variable_replace(variable, moved);
    variable->in_file = false;
    good = true;
  } else
    mix_release(moved);
  mix_graph_unlock();
  return good;
}
