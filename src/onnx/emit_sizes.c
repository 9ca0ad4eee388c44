/* Sizes that depend on the batch. */
#include "onnx/emit.h"
/* From the size in the graph of each batch. */
static mix_onnx_size fit(mix_onnx_emitter *e, const mix_ir_node *node, const int64_t *sizes) {
  const int64_t step = e->batches[1] - e->batches[0];
  const int64_t factor = step ? (sizes[1] - sizes[0]) / step : 0, rest = sizes[0] - factor * e->batches[0];
  for (int i = 0; i < MIX_ONNX_BATCHES; i++)
    if (factor * e->batches[i] + rest != sizes[i]) {
      mix_onnx_refuse(e, node, "a size of it is no multiple of the batch");
      break;
    }
  return (mix_onnx_size){factor, rest};
}

mix_onnx_size mix_onnx_attribute(mix_onnx_emitter *e, const mix_ir_node *node, const void *place) {
  const size_t offset = (size_t)((const char *)place - (const char *)node->attributes);
  const int number = (int)(node - e->ir->nodes);
  int64_t sizes[MIX_ONNX_BATCHES] = {*(const int64_t *)place};
  for (int i = 1; i < MIX_ONNX_BATCHES; i++) {
    const char *other = e->others[i - 1]->nodes[number].attributes;
    sizes[i] = *(const int64_t *)(other + offset);
  }
  return fit(e, node, sizes);
}

mix_onnx_size mix_onnx_axis(mix_onnx_emitter *e, int value, int axis) {
  int64_t sizes[MIX_ONNX_BATCHES] = {e->ir->values[value].shape.dims[axis]};
  for (int i = 1; i < MIX_ONNX_BATCHES; i++) sizes[i] = e->others[i - 1]->values[value].shape.dims[axis];
  return fit(e, &e->ir->nodes[e->ir->values[value].node], sizes);
}

/* Nodes of the root, before all others, so that loops see them too. */
static const char *prologue_node(mix_onnx_emitter *e, const char *op, int count, const char *const *inputs) {
  mix_message *nodes = e->nodes;
  const mix_ir_node *node = e->node;
  e->nodes = &e->prologue;
  e->node = NULL;
  const char *output = mix_onnx_node(e, op, count, inputs);
  e->nodes = nodes;
  e->node = node;
  return output;
}

/* The size as int64 (1). */
static const char *size_of(mix_onnx_emitter *e, mix_onnx_size size) {
  if (!size.factor) return mix_onnx_int64s(e, 1, &size.rest);
  if (!e->batch) {
    mix_onnx_int(e, "start", 0);
    mix_onnx_int(e, "end", 1);
    e->batch = prologue_node(e, "Shape", 1, &e->first);
  }
  const char *value = e->batch;
  if (size.factor != 1)
    value = prologue_node(e, "Mul", 2, (const char *[]){value, mix_onnx_int64s(e, 1, &size.factor)});
  if (size.rest)
    value = prologue_node(e, "Add", 2, (const char *[]){value, mix_onnx_int64s(e, 1, &size.rest)});
  return value;
}

static const char *joined(mix_onnx_emitter *e, int count, const mix_onnx_size *sizes) {
  const char *parts[MIX_MAX_RANK + 2];
  for (int i = 0; i < count; i++) parts[i] = size_of(e, sizes[i]);
  if (count == 1) return parts[0];
  mix_onnx_int(e, "axis", 0);
  return prologue_node(e, "Concat", count, parts);
}

/* Attributes that wait for their node stay. */
const char *mix_onnx_sizes(mix_onnx_emitter *e, int count, const mix_onnx_size *sizes) {
  int64_t known[MIX_MAX_RANK + 2];
  bool open = false;
  for (int i = 0; i < count; i++) {
    known[i] = sizes[i].rest;
    open |= sizes[i].factor != 0;
  }
  if (!open) return mix_onnx_int64s(e, count, known);
  const mix_message waiting = e->attributes;
  e->attributes = (mix_message){0};
  const char *name = joined(e, count, sizes);
  e->attributes = waiting;
  return name;
}

const char *mix_onnx_size_scalar(mix_onnx_emitter *e, mix_onnx_size size) {
  const int64_t axis = 0;
  if (!size.factor) return mix_onnx_scalar(e, MIX_INT64, (double)size.rest);
  return prologue_node(e, "Squeeze", 2, (const char *[]){size_of(e, size), mix_onnx_int64s(e, 1, &axis)});
}
