/* Creation and assignment of variables. */
#include "base/alloc.h"
#include "base/error.h"
#include "compile/assign.h"
#include "compile/evaluate.h"
#include "compile/function.h"
#include "graph/divided_variable.h"
#include "graph/lock.h"
#include "graph/loop_capture.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <mixtape/ops.h>

static bool may_create(const mix_variable_options *options, mix_dtype dtype) {
  const char *name = options->name ? options->name : "variable";
  if (options->autocast && !mix_dtype_is_floating(dtype))
    mix_fail_value(
        "variable_new: '%s' has dtype %s; only a floating point variable can cast itself (autocast)", name,
        mix_dtype_name(dtype));
  else if (!mix_capture_may_create())
    mix_fail_value(
        "variable_new: '%s' is made in a later capture of a function; make variables in its first call "
        "or before",
        name);
  return !mix_failed();
}

/* Takes the memory. */
static mix_variable *of_memory(mix_memory *memory, mix_dtype dtype, mix_shape shape,
                               const mix_variable_options *options) {
  mix_variable *variable = memory ? mix_object_new(sizeof *variable, &mix_variable_class) : NULL;
  if (!variable) return mix_release(memory), NULL;
  variable->memory = memory;
  variable->name = mix_intern(options->name ? options->name : "variable");
  variable->dtype = dtype;
  variable->shape = shape;
  variable->trainable = !options->not_trainable;
  variable->autocast = options->autocast;
  if (!variable->name) return mix_release(variable), NULL;
  return variable;
}

/* ---- initial values ---- */

/* Evaluates the initial value. False with the error recorded. */
static bool has_initial_value(const mix_variable_options *options) {
  if (!mix_is(options->initial_value, &mix_tensor_class)) {
    mix_fail_type("variable_new: initial_value is not a tensor");
    return false;
  }
  mix_node *node = options->initial_value->node;
  if (!may_create(options, mix_tensor_value(options->initial_value)->dtype)) return false;
  mix_graph_lock();
  bool finished = mix_node_finished(node);
  mix_graph_unlock();
  return finished || mix_evaluate_nodes(1, &node);
}

static mix_variable *of_copy(const mix_variable_options *options) {
  const mix_value *value = mix_tensor_value(options->initial_value);
  mix_memory *memory = mix_memory_new(&mix_host_memory, mix_value_bytes(value->dtype, value->shape));
  mix_variable *variable = of_memory(memory, value->dtype, value->shape, options);
  mix_pinned pinned;
  if (!variable) return NULL;
  if (!mix_tensor_pin(options->initial_value, &pinned)) return mix_release(variable), NULL;
  bool copied = mix_memory_copy_in(memory, 0, pinned.data, mix_memory_bytes(memory));
  mix_tensor_unpin(&pinned);
  if (!copied) return mix_release(variable), NULL;
  return mix_scoped(variable);
}

mix_variable *mix_variable_with(const mix_variable_options *given) {
  MIX_OPTIONS(mix_variable_options, options, given, "variable_new");
  return has_initial_value(&options) ? of_copy(&options) : NULL;
}

/* Does nothing but its scope hold the tensor, and nothing but the tensor its memory? Requires the graph
 * lock. */
static bool may_take(const mix_tensor *tensor) {
  enum { LARGE = 1 << 20 }; /* what is smaller is copied sooner than shared */
  const mix_memory *memory = mix_tensor_value(tensor)->memory;
  return mix_memory_bytes(memory) >= LARGE && mix_references(tensor) == 1 &&
         mix_references(tensor->node) == 1 && tensor->node->output_count == 1 && mix_memory_is_alone(memory);
}

/* The value's memory becomes the storage, and the value one that was read from it. */
static mix_variable *of_taken(const mix_variable_options *options) {
  mix_value *value = &options->initial_value->node->outputs[0];
  mix_memory *shared = mix_memory_read_storage(value->memory);
  mix_variable *variable =
      shared ? of_memory(mix_retain(value->memory), value->dtype, value->shape, options) : NULL;
  mix_node *read = variable ? mix_node_read(variable, NULL, shared) : NULL;
  if (!read) {
    mix_release(shared);
    return mix_release(variable), NULL;
  }
  variable->read = read;
  mix_release(value->memory);
  value->memory = shared;
  return variable;
}

mix_variable *mix_variable_take(const mix_variable_options *options) {
  if (mix_failed() || !has_initial_value(options)) return NULL;
  mix_graph_lock();
  const bool may = may_take(options->initial_value);
  mix_variable *variable = may ? of_taken(options) : NULL;
  mix_graph_unlock();
  return may ? mix_scoped(variable) : of_copy(options);
}

/* ---- zeros ---- */

/* What calloc gave stands before the elements. */
static void free_zeros(void *data) { mix_free(((void **)data)[-1]); }

/* Aligned, and with room behind, as the other memory of tensors. */
static mix_memory *zero_memory(size_t bytes) {
  char *block = mix_calloc(bytes + 3 * MIX_BUFFER_ALIGNMENT, 1);
  if (!block) return NULL;
  void **data = (void **)(((uintptr_t)block + 2 * MIX_BUFFER_ALIGNMENT - 1) / MIX_BUFFER_ALIGNMENT *
                          MIX_BUFFER_ALIGNMENT);
  data[-1] = block;
  mix_memory *memory = mix_memory_wrap(data, bytes, free_zeros);
  if (!memory) mix_free(block);
  return memory;
}

mix_variable *mix_variable_zeros(mix_dtype dtype, mix_shape shape, const mix_variable_options *options) {
  if (mix_failed() || !may_create(options, dtype)) return NULL;
  return mix_scoped(of_memory(zero_memory(mix_value_bytes(dtype, shape)), dtype, shape, options));
}

static bool value_fits(const mix_variable *variable, mix_tensor *value, const char *call) {
  const mix_value *given = mix_tensor_value(value);
  if (given->dtype != variable->dtype)
    return mix_fail_type("%s: '%s' is %s, the value is %s; cast it with mix_cast", call, variable->name,
                         mix_dtype_name(variable->dtype), mix_dtype_name(given->dtype));
  if (!mix_shape_equal(given->shape, variable->shape))
    return mix_fail_value("%s: '%s' has shape %s, the value %s", call, variable->name,
                          MIX_SHAPE_TEXT(variable->shape), MIX_SHAPE_TEXT(given->shape));
  return true;
}

/* Writes the value. With `before` given, only if the variable still has that value; otherwise sets *stale. */
static bool store(mix_variable *variable, mix_tensor *value, const mix_tensor *before, bool *stale) {
  mix_memory *memory = mix_tensor_value(value)->memory;
  if (variable->share && !mix_variable_make_room(variable)) return false;
  if (!mix_memory_bytes(variable->memory) || (variable->read && memory == variable->read->outputs[0].memory))
    return true;
  if (before && (*stale = variable->read != before->node)) return true;
  if (!mix_variable_before_write(variable) || !mix_memory_copy(variable->memory, memory)) return false;
  variable->version++;
  return !variable->share || mix_variable_update_part(variable);
}

static mix_status assign(mix_variable *variable, mix_tensor *value, const mix_tensor *before, bool *stale,
                         const char *call) {
  if (!value || !value_fits(variable, value, call)) return mix_error();
  if (value->node->symbolic)
    return mix_fail_status(MIX_RUNTIME_ERROR,
                           "%s: the value for '%s' is symbolic (it descends from mix_input) and never exists",
                           call, variable->name);
  if (mix_loop_capture_current())
    return mix_loop_assign(mix_loop_capture_current(), variable, value) ? MIX_OK : mix_error();
  mix_capture *capture = mix_capture_current();
  if (capture) return mix_capture_assign(capture, variable, value) ? MIX_OK : mix_error();
  if (mix_evaluate(1, &value) != MIX_OK) return mix_error();
  mix_graph_lock();
  bool good = store(variable, value, before, stale);
  mix_graph_unlock();
  return good ? MIX_OK : mix_error();
}

static bool takes(const mix_variable *variable, const mix_tensor *value, const char *call) {
  if (mix_failed()) return false;
  if (!mix_is(variable, &mix_variable_class))
    mix_fail_type("%s: expected a variable", call);
  else if (!mix_is(value, &mix_tensor_class))
    mix_fail_type("%s: the value for '%s' is not a tensor", call, variable->name);
  return !mix_failed();
}

/* Inside a cast scope an autocast variable accepts values of the cast dtype, which are converted to its true
 * dtype. */
static mix_tensor *accepted(const mix_variable *variable, mix_tensor *value) {
  bool casts = variable->autocast && mix_cast_dtype() != MIX_DTYPE_NONE &&
               mix_dtype_is_floating(mix_tensor_value(value)->dtype);
  return casts ? mix_cast(value, variable->dtype) : value;
}

mix_status mix_variable_assign(mix_variable *variable, mix_tensor *value) {
  if (takes(variable, value, "variable_assign")) value = accepted(variable, value);
  return mix_failed() ? mix_error() : assign(variable, value, NULL, NULL, "variable_assign");
}

typedef mix_tensor *change_by(mix_tensor *, mix_tensor *);

/* The variable reads as the cast dtype, and the operation takes the wider of that and the value's. */
static mix_tensor *changed_as_cast(const mix_variable *variable, mix_tensor *before, mix_tensor *value,
                                   change_by *by) {
  mix_dtype read = mix_variable_dtype(variable), given = mix_tensor_value(value)->dtype;
  mix_dtype common = read == given                                 ? read
                     : read == MIX_FLOAT64 || given == MIX_FLOAT64 ? MIX_FLOAT64
                                                                   : MIX_FLOAT32;
  before = mix_cast(mix_cast(before, read), common);
  return mix_cast(by(before, mix_cast(value, common)), variable->dtype);
}

static mix_tensor *changed(const mix_variable *variable, mix_tensor *before, mix_tensor *value,
                           change_by *by) {
  if (variable->autocast && mix_cast_updates() && mix_dtype_is_floating(mix_tensor_value(value)->dtype))
    return changed_as_cast(variable, before, value, by);
  return by(before, accepted(variable, value));
}

/* Repeats the update if another thread has assigned between read and write. No lock is held while the value
 * is computed. */
static mix_status change(mix_variable *variable, mix_tensor *value, change_by *by, const char *call) {
  if (!takes(variable, value, call)) return mix_error();
  mix_status status;
  bool stale;
  do {
    stale = false;
    mix_tensor *before = mix_variable_true_value(variable);
    status = assign(variable, changed(variable, before, value, by), before, &stale, call);
  } while (stale);
  return status;
}

mix_status mix_variable_assign_add(mix_variable *variable, mix_tensor *value) {
  return change(variable, value, mix_add, "variable_assign_add");
}

mix_status mix_variable_assign_sub(mix_variable *variable, mix_tensor *value) {
  return change(variable, value, mix_subtract, "variable_assign_sub");
}
