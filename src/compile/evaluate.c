/* Evaluation of graph nodes, and reading values of tensors. */
#include "compile/evaluate.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "compile/compile.h"
#include "graph/lock.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <math.h>
#include <stdlib.h>

/* The results in memory of their own, NULL with the error recorded. */
static mix_memory **run_results(mix_compiled *compiled) {
  int result_count = compiled->plan.result_count;
  mix_memory **results = mix_calloc((size_t)result_count + 1, sizeof *results);
  bool good = results != NULL;
  for (int r = 0; good && r < result_count; r++) {
    const mix_type *type = &compiled->results[r];
    good = (results[r] = mix_memory_new(mix_compiled_device(compiled),
                                        mix_value_bytes(type->dtype, type->shape))) != NULL;
  }
  if (!good) mix_compiled_name_largest(compiled);
  if (good && mix_compiled_run(compiled, NULL, results, NULL)) return results;
  for (int r = 0; results && r < result_count; r++) mix_release(results[r]);
  mix_free(results);
  return NULL;
}

/* A node that another thread has evaluated in the meantime keeps its value, which is the same. */
static void give_results(int count, mix_node *const *nodes, mix_memory **buffers) {
  int r = 0;
  mix_graph_lock();
  for (int n = 0; n < count; n++)
    for (int i = 0; i < nodes[n]->output_count; i++, r++)
      if (!nodes[n]->outputs[i].memory) nodes[n]->outputs[i].memory = mix_retain(buffers[r]);
  mix_graph_unlock();
  while (r > 0) mix_release(buffers[--r]);
  mix_free(buffers);
}

/* Does a plan of this ir read values in the storage of variables? Requires the graph lock. */
static bool reads_storage(const mix_ir *ir) {
  for (int i = 0; i < ir->held_count; i++)
    if (mix_is(ir->held[i], &mix_memory_class) && mix_memory_is_storage((const mix_memory *)ir->held[i]))
      return true;
  return false;
}

/* Small graphs run on the host, whatever the device. */
static mix_context context_for(const mix_ir *ir) {
  mix_context context = mix_context_default();
  size_t bytes = 0;
  if (!ir || context.backend->host == context.backend) return context;
  for (int v = 0; v < ir->value_count; v++)
    bytes += mix_value_bytes(ir->values[v].dtype, ir->values[v].shape);
  return bytes <= context.backend->host_evaluation_bytes ? mix_context_on(context.backend->host, &context)
                                                         : context;
}

static mix_memory **evaluate_edges(int count, const mix_edge *edges) {
  mix_graph_lock();
  mix_ir *ir = mix_ir_from_graph(count, edges, 0, NULL, NULL);
  bool holds = ir && reads_storage(ir);
  if (holds) mix_storages_pin();
  mix_graph_unlock(); /* the ir retains all it needs */
  if (ir) {
    ir->name = "evaluation";
    ir->eager = true;
  }
  const mix_context context = context_for(ir);
  mix_compiled *compiled = ir ? mix_compile(ir, &context, false) : NULL;
  mix_memory **buffers = compiled ? run_results(compiled) : NULL;
  if (holds) mix_storages_unpin();
  mix_compiled_free(compiled);
  return buffers;
}

bool mix_evaluate_nodes(int count, mix_node *const *nodes) {
  int result_count = 0;
  for (int n = 0; n < count; n++) result_count += nodes[n]->output_count;
  mix_edge *results = mix_alloc(sizeof *results * (size_t)(result_count + 1));
  if (!results) return false;
  for (int n = 0, r = 0; n < count; n++)
    for (int i = 0; i < nodes[n]->output_count; i++) results[r++] = (mix_edge){nodes[n], i};
  mix_capture *former = mix_capture_set(NULL);
  mix_memory **buffers = evaluate_edges(result_count, results);
  mix_capture_set(former);
  mix_free(results);
  if (!buffers) return false;
  give_results(count, nodes, buffers);
  for (int n = 0; n < count; n++) mix_node_detach(nodes[n]);
  return true;
}

static int by_address(const void *a, const void *b) {
  const mix_node *x = *(mix_node *const *)a, *y = *(mix_node *const *)b;
  return x < y ? -1 : x > y;
}

/* Collects the unfinished nodes of the tensors, each once. Requires the graph lock. -1 with the error
 * recorded. */
static int collect_waiting(int count, mix_tensor *const *tensors, mix_node **nodes) {
  int waiting = 0, distinct = 0;
  for (int i = 0; i < count; i++) {
    if (!mix_is(tensors[i], &mix_tensor_class)) {
      mix_fail_type("evaluate: tensor %d is %s", i, tensors[i] ? "another object" : "NULL");
      return -1;
    }
    mix_node *node = tensors[i]->node;
    if (mix_node_finished(node)) continue;
    if (mix_capture_current()) {
      mix_fail_runtime(
          "%s%s%s: its value was asked for while a function is being captured; return it from the function "
          "instead",
          node->op->name, node->scope ? " in layer " : "", node->scope ? node->scope : "");
      return -1;
    }
    nodes[waiting++] = node;
  }
  qsort(nodes, (size_t)waiting, sizeof *nodes, by_address);
  for (int i = 0; i < waiting; i++)
    if (i == 0 || nodes[i] != nodes[i - 1]) nodes[distinct++] = nodes[i];
  return distinct;
}

mix_status mix_evaluate(int count, mix_tensor *const *tensors) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return mix_error();
  if (count > 0 && !tensors)
    return mix_fail_status(MIX_TYPE_ERROR, "evaluate: got NULL for the %d tensors", count);
  mix_node *small[32], **nodes = small;
  if (count > 32 && !(nodes = mix_alloc(sizeof *nodes * (size_t)count))) return mix_error();
  mix_graph_lock();
  int waiting = collect_waiting(count, tensors, nodes);
  mix_graph_unlock();
  if (waiting > 0) mix_evaluate_nodes(waiting, nodes);
  if (nodes != small) mix_free(nodes);
  return mix_error();
}

/* The value of a tensor, evaluated if necessary. Returns with the graph locked; on NULL it is unlocked and
 * the error is recorded. Finished values can be read while an error is pending. */
static const mix_value *value_locked(mix_tensor *tensor) {
  if (mix_is(tensor, &mix_tensor_class)) {
    mix_graph_lock();
    if (mix_node_finished(tensor->node)) return mix_tensor_value(tensor);
    mix_graph_unlock();
  }
  if (mix_evaluate(1, &tensor) != MIX_OK) return NULL;
  mix_graph_lock();
  return mix_tensor_value(tensor);
}

bool mix_tensor_pin(mix_tensor *tensor, mix_pinned *pinned) {
  const mix_value *value = value_locked(tensor);
  if (!value) return false;
  *pinned = (mix_pinned){mix_memory_map(value->memory, MIX_MAP_READ), value->memory,
                         mix_memory_is_storage(value->memory)};
  if (!pinned->data) return mix_graph_unlock(), false;
  mix_retain(pinned->memory);
  if (pinned->storage) mix_storages_pin();
  mix_graph_unlock();
  return true;
}
void mix_tensor_unpin(const mix_pinned *pinned) {
  mix_memory_unmap(pinned->memory);
  if (pinned->storage) mix_storages_unpin();
  mix_release(pinned->memory);
}

const void *mix_tensor_data(mix_tensor *tensor) {
  const mix_value *value = value_locked(tensor);
  if (!value) return NULL;
  const void *data = mix_memory_mirror(value->memory);
  mix_graph_unlock();
  return data;
}

static mix_status read_elements(const mix_value *value, const void *data, mix_dtype dtype, void *out,
                                int64_t count) {
  int64_t size = mix_shape_size(value->shape);
  if (count != size)
    return mix_fail_status(MIX_VALUE_ERROR, "tensor_read: room for %lld elements; the tensor has %lld",
                           (long long)count, (long long)size);
  if (!mix_dtype_size(dtype))
    return mix_fail_status(MIX_TYPE_ERROR, "tensor_read: no element can have dtype %s",
                           mix_dtype_name(dtype));
  if (!out && count > 0)
    return mix_fail_status(MIX_VALUE_ERROR, "tensor_read: out is NULL; expected room for %lld elements",
                           (long long)count);
  mix_convert(data, value->dtype, out, dtype, size);
  return MIX_OK;
}

mix_status mix_tensor_read(mix_tensor *tensor, mix_dtype dtype, void *out, int64_t count) {
  MIX_OWN_FLOAT_MODES;
  mix_pinned pinned;
  if (!mix_tensor_pin(tensor, &pinned)) return mix_error();
  mix_status status = read_elements(mix_tensor_value(tensor), pinned.data, dtype, out, count);
  mix_tensor_unpin(&pinned);
  return status;
}

static double item(const mix_value *value, const void *data) {
  if (mix_shape_size(value->shape) != 1) {
    mix_fail_value("tensor_item: the tensor has shape %s; expected one element",
                   MIX_SHAPE_TEXT(value->shape));
    return NAN;
  }
  if (mix_dtype_is_floating(value->dtype)) return mix_load_double(data, value->dtype, 0);
  return (double)mix_load_integer(data, value->dtype, 0);
}

double mix_tensor_item(mix_tensor *tensor) {
  if (!mix_is(tensor, &mix_tensor_class)) {
    mix_fail_type("tensor_item: %s; expected a tensor of one element",
                  tensor ? "the argument is not a tensor" : "the tensor is NULL");
    return NAN;
  }
  mix_pinned pinned;
  if (!mix_tensor_pin(tensor, &pinned)) return NAN;
  double number = item(mix_tensor_value(tensor), pinned.data);
  mix_tensor_unpin(&pinned);
  return number;
}

bool mix_evaluate_outside(int result_count, const mix_edge *results, const mix_capture *capture) {
  int count;
  mix_node **nodes = mix_nodes_outside(result_count, results, capture, &count);
  bool good = nodes && (!count || mix_evaluate_nodes(count, nodes));
  mix_free(nodes);
  return good;
}
