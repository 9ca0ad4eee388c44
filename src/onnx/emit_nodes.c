/* Nodes, attributes and constants of ONNX, as messages. */
#include "onnx/emit.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/convert.h"
#include "tensor/shape.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

mix_dtype mix_onnx_written(const mix_onnx_emitter *e, mix_dtype dtype) {
  return e->widens && mix_dtype_is_16_bit(dtype) ? MIX_FLOAT32 : dtype;
}

void *mix_onnx_refuse(mix_onnx_emitter *e, const mix_ir_node *node, const char *format, ...) {
  char reason[400];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(reason, sizeof reason, format, arguments);
  va_end(arguments);
  e->failed = true;
  return mix_fail_unsupported("%s: %s%s%.200s%s: %s", e->call, node->op ? node->op->name : "a value",
                              node->scope ? " of layer '" : "", node->scope ? node->scope : "",
                              node->scope ? "'" : "", reason);
}

/* ---- names ---- */

const char *mix_onnx_new_name(mix_onnx_emitter *e, const char *what) {
  const char *scope = e->node && e->node->scope ? e->node->scope : "graph";
  const size_t size = strlen(scope) + strlen(what) + 16;
  char *name = mix_ir_alloc(e->root, size);
  if (!name) {
    e->failed = true;
    return "";
  }
  snprintf(name, size, "%s/%s_%d", scope, what, e->number++);
  return name;
}

/* ---- attributes ---- */

static void put_attribute(mix_onnx_emitter *e, const char *name, int type, mix_message *value) {
  mix_message attribute = {0};
  mix_message_text(&attribute, MIX_ONNX_ATTRIBUTE_NAME, name);
  mix_message_append(&attribute, value);
  mix_message_integer(&attribute, MIX_ONNX_ATTRIBUTE_TYPE, type);
  mix_message_message(&e->attributes, MIX_ONNX_NODE_ATTRIBUTE, &attribute);
}

void mix_onnx_int(mix_onnx_emitter *e, const char *name, int64_t value) {
  mix_message message = {0};
  mix_message_number(&message, MIX_ONNX_ATTRIBUTE_I, value);
  put_attribute(e, name, MIX_ONNX_IS_INT, &message);
}

void mix_onnx_ints(mix_onnx_emitter *e, const char *name, int count, const int64_t *values) {
  mix_message message = {0};
  for (int i = 0; i < count; i++) mix_message_number(&message, MIX_ONNX_ATTRIBUTE_INTS, values[i]);
  put_attribute(e, name, MIX_ONNX_IS_INTS, &message);
}

void mix_onnx_float(mix_onnx_emitter *e, const char *name, double value) {
  mix_message message = {0};
  mix_message_float(&message, MIX_ONNX_ATTRIBUTE_F, (float)value);
  put_attribute(e, name, MIX_ONNX_IS_FLOAT, &message);
}

void mix_onnx_text(mix_onnx_emitter *e, const char *name, const char *value) {
  mix_message message = {0};
  mix_message_text(&message, MIX_ONNX_ATTRIBUTE_S, value);
  put_attribute(e, name, MIX_ONNX_IS_STRING, &message);
}

void mix_onnx_texts(mix_onnx_emitter *e, const char *name, int count, const char *const *values) {
  mix_message message = {0};
  for (int i = 0; i < count; i++) mix_message_text(&message, MIX_ONNX_ATTRIBUTE_STRINGS, values[i]);
  put_attribute(e, name, MIX_ONNX_IS_STRINGS, &message);
}

void mix_onnx_graph(mix_onnx_emitter *e, const char *name, mix_message *graph) {
  mix_message message = {0};
  mix_message_message(&message, MIX_ONNX_ATTRIBUTE_G, graph);
  put_attribute(e, name, MIX_ONNX_IS_GRAPH, &message);
}

/* ---- nodes ---- */

void mix_onnx_put_node(mix_onnx_emitter *e, mix_message *graph, const char *op, int input_count,
                       const char *const *inputs, int output_count, const char *const *outputs) {
  mix_message node = {0};
  for (int i = 0; i < input_count; i++)
    mix_message_text(&node, MIX_ONNX_NODE_INPUT, inputs[i] ? inputs[i] : "");
  for (int i = 0; i < output_count; i++) mix_message_text(&node, MIX_ONNX_NODE_OUTPUT, outputs[i]);
  if (output_count) mix_message_text(&node, MIX_ONNX_NODE_NAME, outputs[0]);
  mix_message_text(&node, MIX_ONNX_NODE_OP_TYPE, op);
  mix_message_append(&node, &e->attributes);
  mix_message_message(graph, MIX_ONNX_GRAPH_NODE, &node);
  if (graph->failed) e->failed = true;
}

void mix_onnx_nodes(mix_onnx_emitter *e, const char *op, int input_count, const char *const *inputs,
                    int output_count, const char **outputs) {
  for (int i = 0; i < output_count; i++) outputs[i] = mix_onnx_new_name(e, op);
  if (e->failed) {
    mix_message_free(&e->attributes);
    return;
  }
  mix_onnx_put_node(e, e->nodes, op, input_count, inputs, output_count, outputs);
}

const char *mix_onnx_node(mix_onnx_emitter *e, const char *op, int input_count, const char *const *inputs) {
  const char *output;
  mix_onnx_nodes(e, op, input_count, inputs, 1, &output);
  return output;
}

const char *mix_onnx_size_text(mix_onnx_emitter *e, mix_onnx_size size) {
  char *text = mix_ir_alloc(e->root, 64), factor[24] = "", rest[24] = "";
  if (!text) {
    e->failed = true;
    return "";
  }
  if (size.factor != 1) snprintf(factor, sizeof factor, "%" PRId64 "*", size.factor);
  if (size.rest) snprintf(rest, sizeof rest, "%+" PRId64, size.rest);
  snprintf(text, 64, "%sbatch%s", factor, rest);
  return text;
}

void mix_onnx_put_value(mix_onnx_emitter *e, mix_message *graph, int field, const char *name, mix_dtype dtype,
                        int rank, const mix_onnx_size *sizes) {
  mix_message value = {0}, type = {0}, tensor = {0}, shape = {0};
  mix_message_text(&value, MIX_ONNX_VALUE_NAME, name);
  mix_message_integer(&tensor, MIX_ONNX_TENSOR_TYPE_ELEMENT, mix_onnx_type_of(dtype));
  for (int d = 0; d < rank; d++) {
    mix_message dim = {0};
    if (sizes && !sizes[d].factor) mix_message_number(&dim, MIX_ONNX_DIM_VALUE, sizes[d].rest);
    if (sizes && sizes[d].factor) mix_message_text(&dim, MIX_ONNX_DIM_PARAM, mix_onnx_size_text(e, sizes[d]));
    mix_message_message(&shape, MIX_ONNX_SHAPE_DIM, &dim);
  }
  mix_message_message(&tensor, MIX_ONNX_TENSOR_TYPE_SHAPE, &shape);
  mix_message_message(&type, MIX_ONNX_TYPE_TENSOR, &tensor);
  mix_message_message(&value, MIX_ONNX_VALUE_TYPE, &type);
  mix_message_message(graph, field, &value);
}

/* ---- constants ---- */

static bool is_used(const mix_onnx_emitter *e, const char *name) {
  for (int i = 0; i < e->tensor_count; i++)
    if (!strcmp(e->tensors[i].name, name)) return true;
  return false;
}

const char *mix_onnx_add_tensor(mix_onnx_emitter *e, const char *name, mix_onnx_initializer tensor) {
  const size_t size = strlen(name) + 16;
  char *own = mix_ir_alloc(e->root, size);
  if (!own || !mix_reserve(&e->tensors, &e->tensor_capacity, e->tensor_count + 1, sizeof tensor)) {
    e->failed = true;
    return "";
  }
  snprintf(own, size, "%s", name);
  for (int i = 1; is_used(e, own); i++) snprintf(own, size, "%s_%d", name, i);
  tensor.name = own;
  e->tensors[e->tensor_count++] = tensor;
  return own;
}

const char *mix_onnx_constant(mix_onnx_emitter *e, mix_dtype dtype, mix_shape shape, const void *data) {
  const size_t bytes = mix_value_bytes(dtype, shape);
  for (int i = 0; i < e->tensor_count; i++) {
    const mix_onnx_initializer *other = &e->tensors[i];
    if (other->data && other->dtype == dtype && mix_shape_equal(other->shape, shape) &&
        !memcmp(other->data, data, bytes))
      return other->name;
  }
  void *copy = mix_ir_alloc(e->root, bytes + 1);
  char name[24];
  if (!copy) {
    e->failed = true;
    return "";
  }
  if (bytes) memcpy(copy, data, bytes);
  snprintf(name, sizeof name, "constant_%d", e->number++);
  return mix_onnx_add_tensor(
      e, name, (mix_onnx_initializer){.dtype = dtype, .from = dtype, .shape = shape, .data = copy});
}

const char *mix_onnx_scalar(mix_onnx_emitter *e, mix_dtype dtype, double value) {
  uint64_t element = 0;
  dtype = mix_onnx_written(e, dtype);
  mix_store_double(&element, dtype, 0, value);
  return mix_onnx_constant(e, dtype, MIX_SCALAR, &element);
}

const char *mix_onnx_int64s(mix_onnx_emitter *e, int count, const int64_t *values) {
  return mix_onnx_constant(e, MIX_INT64, MIX_SHAPE(count), values);
}
