/* Reads the messages of an ONNX model. A file is hostile input: what it holds is bounded by its own size, and
 * graphs inside of nodes by their depth. */
#include "onnx/file.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/fields.h"
#include "formats/file.h"
#include "formats/file_mapping.h"
#include "onnx/load.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Loops in branches in loops: exporters go as deep as the program that they record. */
enum { MAX_DEPTH = 16 };

static bool read_graph(mix_onnx_graph *graph, mix_wire wire, int depth);

/* ---- arrays in the scope ---- */

/* How many fields of that number the message has: what is read next needs so much room. */
static int count_fields(mix_wire wire, uint32_t number) {
  mix_wire_field field;
  int count = 0;
  while (mix_wire_next(&wire, &field)) count += field.number == number;
  return count;
}

static void *room(int count, size_t size) { return count ? mix_scoped_memory((size_t)count * size) : NULL; }

static float float_of(uint64_t bits) {
  const uint32_t word = (uint32_t)bits;
  float value;
  memcpy(&value, &word, sizeof value);
  return value;
}

/* Texts of a repeated field. */
static bool read_texts(mix_wire wire, uint32_t number, const char ***texts, int *count) {
  mix_wire_field field;
  *count = 0;
  *texts = room(count_fields(wire, number), sizeof **texts);
  while (mix_wire_next(&wire, &field))
    if (field.number == number && !((*texts)[(*count)++] = mix_wire_text(&wire, &field))) return false;
  return !mix_failed();
}

/* ---- tensors ---- */

static bool add_dims(const mix_wire *wire, const mix_wire_field *field, mix_onnx_tensor *tensor) {
  mix_wire_numbers numbers = {.begun = false};
  uint64_t value;
  while (mix_wire_number(wire, field, 0, &numbers, &value)) {
    if (value > INT64_MAX) return mix_fail_format("%s: a tensor has a negative dimension", wire->name);
    if (tensor->shape.rank == MIX_MAX_RANK)
      tensor->too_many_axes = true;
    else
      tensor->shape.dims[tensor->shape.rank++] = (int64_t)value;
  }
  return !mix_failed();
}

static bool read_tensor(mix_wire wire, mix_onnx_tensor *tensor) {
  mix_wire_field field;
  *tensor = (mix_onnx_tensor){.name = "", .message = wire};
  while (mix_wire_next(&wire, &field)) {
    if (field.number == MIX_ONNX_TENSOR_DIMS && !add_dims(&wire, &field, tensor)) return false;
    if (field.number == MIX_ONNX_TENSOR_TYPE) tensor->type = (int64_t)field.value;
    if (field.number == MIX_ONNX_TENSOR_NAME && !(tensor->name = mix_wire_text(&wire, &field))) return false;
  }
  tensor->dtype = mix_onnx_dtype_of(tensor->type);
  if (mix_failed() || mix_shape_checked_size(tensor->shape) >= 0) return !mix_failed();
  return mix_fail_format("%s: tensor '%.200s' has more elements than any memory holds", wire.name,
                         tensor->name);
}

/* ---- nodes ---- */

static bool read_numbers(mix_wire wire, mix_onnx_attribute *attribute) {
  const bool floats = attribute->type == MIX_ONNX_IS_FLOATS;
  const uint32_t number = floats ? MIX_ONNX_ATTRIBUTE_FLOATS : MIX_ONNX_ATTRIBUTE_INTS;
  const size_t most = (size_t)(wire.end - wire.at); /* a number takes a byte or more */
  mix_wire_field field;
  uint64_t value;
  if (floats ? !(attribute->floats = mix_scoped_memory((most / 4 + 1) * sizeof(float)))
             : !(attribute->ints = mix_scoped_memory((most + 1) * sizeof(int64_t))))
    return false;
  while (mix_wire_next(&wire, &field)) {
    if (field.number != number) continue;
    mix_wire_numbers numbers = {.begun = false};
    while (mix_wire_number(&wire, &field, floats ? 4 : 0, &numbers, &value)) {
      if (floats)
        attribute->floats[attribute->count++] = float_of(value);
      else
        attribute->ints[attribute->count++] = (int64_t)value;
    }
  }
  return !mix_failed();
}

static bool read_inner_graph(mix_wire wire, mix_onnx_attribute *attribute, int depth) {
  if (depth > MAX_DEPTH)
    return mix_fail_unsupported("%s: graphs in nodes of graphs, more than %d deep", wire.name, MAX_DEPTH);
  attribute->graph = mix_scoped_memory(sizeof *attribute->graph);
  return attribute->graph && read_graph(attribute->graph, wire, depth);
}

static bool read_attribute_field(const mix_wire *wire, const mix_wire_field *field,
                                 mix_onnx_attribute *attribute, int depth) {
  mix_wire inner;
  switch (field->number) {
  case MIX_ONNX_ATTRIBUTE_NAME: return (attribute->name = mix_wire_text(wire, field)) != NULL;
  case MIX_ONNX_ATTRIBUTE_TYPE: attribute->type = (int64_t)field->value; return true;
  case MIX_ONNX_ATTRIBUTE_I: attribute->i = (int64_t)field->value; return true;
  case MIX_ONNX_ATTRIBUTE_F: attribute->f = float_of(field->value); return true;
  case MIX_ONNX_ATTRIBUTE_S: return (attribute->s = mix_wire_text(wire, field)) != NULL;
  case MIX_ONNX_ATTRIBUTE_REFERENCE: return (attribute->reference = mix_wire_text(wire, field)) != NULL;
  case MIX_ONNX_ATTRIBUTE_G:
    return mix_wire_open(wire, field, &inner) && read_inner_graph(inner, attribute, depth + 1);
  case MIX_ONNX_ATTRIBUTE_T:
    attribute->tensor = mix_scoped_memory(sizeof *attribute->tensor);
    return attribute->tensor && mix_wire_open(wire, field, &inner) && read_tensor(inner, attribute->tensor);
  default: return true;
  }
}

static bool read_attribute(mix_wire wire, mix_onnx_attribute *attribute, int depth) {
  const mix_wire whole = wire;
  mix_wire_field field;
  *attribute = (mix_onnx_attribute){.name = ""};
  while (mix_wire_next(&wire, &field))
    if (!read_attribute_field(&wire, &field, attribute, depth)) return false;
  if (attribute->type == MIX_ONNX_IS_STRINGS)
    return !mix_failed() &&
           read_texts(whole, MIX_ONNX_ATTRIBUTE_STRINGS, &attribute->strings, &attribute->count);
  const bool listed = attribute->type == MIX_ONNX_IS_INTS || attribute->type == MIX_ONNX_IS_FLOATS;
  return !mix_failed() && (!listed || read_numbers(whole, attribute));
}

static bool read_node(mix_wire wire, mix_onnx_node *node, int depth) {
  const mix_wire whole = wire;
  mix_wire_field field;
  mix_wire inner;
  *node = (mix_onnx_node){.name = "", .op = "", .domain = "", .overload = ""};
  node->attributes = room(count_fields(wire, MIX_ONNX_NODE_ATTRIBUTE), sizeof *node->attributes);
  while (mix_wire_next(&wire, &field)) {
    const char **text = field.number == MIX_ONNX_NODE_NAME       ? &node->name
                        : field.number == MIX_ONNX_NODE_OP_TYPE  ? &node->op
                        : field.number == MIX_ONNX_NODE_DOMAIN   ? &node->domain
                        : field.number == MIX_ONNX_NODE_OVERLOAD ? &node->overload
                                                                 : NULL;
    if (text && !(*text = mix_wire_text(&wire, &field))) return false;
    if (field.number != MIX_ONNX_NODE_ATTRIBUTE) continue;
    if (!mix_wire_open(&wire, &field, &inner) ||
        !read_attribute(inner, &node->attributes[node->attribute_count++], depth))
      return false;
  }
  return !mix_failed() && read_texts(whole, MIX_ONNX_NODE_INPUT, &node->inputs, &node->input_count) &&
         read_texts(whole, MIX_ONNX_NODE_OUTPUT, &node->outputs, &node->output_count);
}

const mix_onnx_attribute *mix_onnx_find(const mix_onnx_node *node, const char *name) {
  for (int i = 0; i < node->attribute_count; i++)
    if (!strcmp(node->attributes[i].name, name)) return &node->attributes[i];
  return NULL;
}
int64_t mix_onnx_integer(const mix_onnx_node *node, const char *name, int64_t absent) {
  const mix_onnx_attribute *attribute = mix_onnx_find(node, name);
  return attribute ? attribute->i : absent;
}
double mix_onnx_number(const mix_onnx_node *node, const char *name, double absent) {
  const mix_onnx_attribute *attribute = mix_onnx_find(node, name);
  return attribute ? (double)attribute->f : absent;
}
const char *mix_onnx_string(const mix_onnx_node *node, const char *name, const char *absent) {
  const mix_onnx_attribute *attribute = mix_onnx_find(node, name);
  return attribute && attribute->s ? attribute->s : absent;
}

/* ---- inputs and outputs ---- */

static bool read_dimension(mix_wire wire, int64_t *size) {
  mix_wire_field field;
  *size = MIX_UNKNOWN;
  while (mix_wire_next(&wire, &field))
    if (field.number == MIX_ONNX_DIM_VALUE) *size = (int64_t)field.value;
  if (*size < 0) *size = MIX_UNKNOWN;
  return !mix_failed();
}

static bool read_shape(mix_wire wire, mix_onnx_value_info *info) {
  mix_wire_field field;
  mix_wire inner;
  int64_t size;
  info->has_shape = true;
  while (mix_wire_next(&wire, &field)) {
    if (field.number != MIX_ONNX_SHAPE_DIM) continue;
    if (!mix_wire_open(&wire, &field, &inner) || !read_dimension(inner, &size)) return false;
    if (info->shape.rank == MIX_MAX_RANK)
      info->too_many_axes = true;
    else
      info->shape.dims[info->shape.rank++] = size;
  }
  return !mix_failed();
}

static bool read_tensor_type(mix_wire wire, mix_onnx_value_info *info) {
  mix_wire_field field;
  mix_wire inner;
  while (mix_wire_next(&wire, &field)) {
    if (field.number == MIX_ONNX_TENSOR_TYPE_ELEMENT) info->type = (int64_t)field.value;
    if (field.number == MIX_ONNX_TENSOR_TYPE_SHAPE &&
        (!mix_wire_open(&wire, &field, &inner) || !read_shape(inner, info)))
      return false;
  }
  return !mix_failed();
}

static bool read_type(mix_wire wire, mix_onnx_value_info *info) {
  mix_wire_field field;
  mix_wire inner;
  while (mix_wire_next(&wire, &field))
    if (field.number == MIX_ONNX_TYPE_TENSOR &&
        (!mix_wire_open(&wire, &field, &inner) || !read_tensor_type(inner, info)))
      return false;
  return !mix_failed();
}

static bool read_value_info(mix_wire wire, mix_onnx_value_info *info) {
  mix_wire_field field;
  mix_wire inner;
  *info = (mix_onnx_value_info){.name = ""};
  while (mix_wire_next(&wire, &field)) {
    if (field.number == MIX_ONNX_VALUE_NAME && !(info->name = mix_wire_text(&wire, &field))) return false;
    if (field.number == MIX_ONNX_VALUE_TYPE &&
        (!mix_wire_open(&wire, &field, &inner) || !read_type(inner, info)))
      return false;
  }
  info->dtype = mix_onnx_dtype_of(info->type);
  return !mix_failed();
}

/* ---- the graph and the model ---- */

static bool read_graph_field(mix_onnx_graph *graph, const mix_wire *wire, const mix_wire_field *field,
                             int depth) {
  mix_wire inner;
  switch (field->number) {
  case MIX_ONNX_GRAPH_NODE:
    return mix_wire_open(wire, field, &inner) && read_node(inner, &graph->nodes[graph->node_count++], depth);
  case MIX_ONNX_GRAPH_INITIALIZER:
    return mix_wire_open(wire, field, &inner) &&
           read_tensor(inner, &graph->initializers[graph->initializer_count++]);
  case MIX_ONNX_GRAPH_INPUT:
    return mix_wire_open(wire, field, &inner) && read_value_info(inner, &graph->inputs[graph->input_count++]);
  case MIX_ONNX_GRAPH_OUTPUT:
    return mix_wire_open(wire, field, &inner) &&
           read_value_info(inner, &graph->outputs[graph->output_count++]);
  case MIX_ONNX_GRAPH_SPARSE_INITIALIZER:
    return mix_fail_unsupported("%s: it has sparse initialisers; expected dense ones", wire->name);
  default: return true;
  }
}

static bool read_graph(mix_onnx_graph *graph, mix_wire wire, int depth) {
  mix_wire_field field;
  if (graph->nodes || graph->outputs) return mix_fail_format("%s: it has two graphs", wire.name);
  graph->nodes = room(count_fields(wire, MIX_ONNX_GRAPH_NODE), sizeof *graph->nodes);
  graph->initializers = room(count_fields(wire, MIX_ONNX_GRAPH_INITIALIZER), sizeof *graph->initializers);
  graph->inputs = room(count_fields(wire, MIX_ONNX_GRAPH_INPUT), sizeof *graph->inputs);
  graph->outputs = room(count_fields(wire, MIX_ONNX_GRAPH_OUTPUT), sizeof *graph->outputs);
  while (!mix_failed() && mix_wire_next(&wire, &field))
    if (!read_graph_field(graph, &wire, &field, depth)) return false;
  return !mix_failed();
}

/* The set of the default operators; that of others is none. */
static bool read_opset(mix_wire wire, int64_t *opset) {
  mix_wire_field field;
  const char *domain = "";
  int64_t version = 0;
  while (mix_wire_next(&wire, &field)) {
    if (field.number == MIX_ONNX_OPSET_DOMAIN && !(domain = mix_wire_text(&wire, &field))) return false;
    if (field.number == MIX_ONNX_OPSET_VERSION) version = (int64_t)field.value;
  }
  if (!*domain || !strcmp(domain, "ai.onnx")) *opset = version;
  return !mix_failed();
}

static bool read_function(mix_wire wire, mix_onnx_function *f) {
  const mix_wire whole = wire;
  mix_wire_field field;
  mix_wire inner;
  *f = (mix_onnx_function){.name = "", .domain = "", .overload = ""};
  f->nodes = room(count_fields(wire, MIX_ONNX_FUNCTION_NODE), sizeof *f->nodes);
  f->defaults = room(count_fields(wire, MIX_ONNX_FUNCTION_DEFAULT), sizeof *f->defaults);
  while (!mix_failed() && mix_wire_next(&wire, &field)) {
    bool good = true;
    switch (field.number) {
    case MIX_ONNX_FUNCTION_NAME: good = (f->name = mix_wire_text(&wire, &field)) != NULL; break;
    case MIX_ONNX_FUNCTION_DOMAIN: good = (f->domain = mix_wire_text(&wire, &field)) != NULL; break;
    case MIX_ONNX_FUNCTION_OVERLOAD: good = (f->overload = mix_wire_text(&wire, &field)) != NULL; break;
    case MIX_ONNX_FUNCTION_OPSET:
      good = mix_wire_open(&wire, &field, &inner) && read_opset(inner, &f->opset);
      break;
    case MIX_ONNX_FUNCTION_NODE:
      good = mix_wire_open(&wire, &field, &inner) && read_node(inner, &f->nodes[f->node_count++], 1);
      break;
    case MIX_ONNX_FUNCTION_DEFAULT:
      good =
          mix_wire_open(&wire, &field, &inner) && read_attribute(inner, &f->defaults[f->default_count++], 1);
      break;
    default: break;
    }
    if (!good) return false;
  }
  return !mix_failed() && read_texts(whole, MIX_ONNX_FUNCTION_INPUT, &f->inputs, &f->input_count) &&
         read_texts(whole, MIX_ONNX_FUNCTION_OUTPUT, &f->outputs, &f->output_count);
}

static bool read_model_field(mix_onnx_file *file, const mix_wire *wire, const mix_wire_field *field) {
  mix_wire inner;
  switch (field->number) {
  case MIX_ONNX_MODEL_PRODUCER: return (file->producer = mix_wire_text(wire, field)) != NULL;
  case MIX_ONNX_MODEL_OPSET: return mix_wire_open(wire, field, &inner) && read_opset(inner, &file->opset);
  case MIX_ONNX_MODEL_GRAPH: return mix_wire_open(wire, field, &inner) && read_graph(&file->graph, inner, 0);
  case MIX_ONNX_MODEL_FUNCTIONS:
    return mix_wire_open(wire, field, &inner) &&
           read_function(inner, &file->functions[file->function_count++]);
  default: return true;
  }
}

static bool read_model(mix_onnx_file *file, mix_wire wire) {
  mix_wire_field field;
  file->producer = "";
  file->functions = room(count_fields(wire, MIX_ONNX_MODEL_FUNCTIONS), sizeof *file->functions);
  while (!mix_failed() && mix_wire_next(&wire, &field))
    if (!read_model_field(file, &wire, &field)) return false;
  if (mix_failed()) return false;
  return file->graph.output_count ||
         mix_fail_format("%s: no model of ONNX, or one without outputs", file->path);
}

/* What messages of protobuf may be at most: then an int counts their fields. */
static bool is_short(const mix_onnx_file *file, size_t size) {
  return size <= INT32_MAX ||
         mix_fail_format(
             "%s: it has %zu bytes; expected at most 2^31 - 1, as protobuf has, and larger weights in "
             "files beside it (external data)",
             file->path, size);
}

bool mix_onnx_open_memory(mix_onnx_file *file, const char *name, const void *data, size_t size) {
  *file = (mix_onnx_file){.path = name};
  return !mix_failed() && is_short(file, size) && read_model(file, mix_wire_of(data, size, name));
}

bool mix_onnx_open(mix_onnx_file *file, const char *path, bool copies) {
  *file = (mix_onnx_file){.path = path, .copies = copies};
  if (mix_failed()) return false;
  file->memory = mix_scoped(mix_file_memory(path, copies, &file->mapped));
  file->beside = mix_scoped_memory(sizeof *file->beside);
  const void *data = file->memory && file->beside ? mix_memory_map(file->memory, MIX_MAP_READ) : NULL;
  if (!data) return false;
  mix_memory_unmap(file->memory); /* of the host: stays valid */
  const size_t size = mix_memory_bytes(file->memory);
  return is_short(file, size) && read_model(file, mix_wire_of(data, size, path));
}

/* A model begins with its version, a varint of one byte, and then the producer or the operator sets. */
bool mix_is_onnx(const char *path) {
  unsigned char first[3] = {0};
  FILE *stream = mix_file_exists(path) ? fopen(path, "rb") : NULL; /* a pipe could wait for ever */
  const bool whole = stream && fread(first, 1, sizeof first, stream) == sizeof first;
  if (stream) fclose(stream);
  if (!whole) return false;
  const int field = first[2] >> 3;
  return first[0] == MIX_ONNX_MODEL_IR_VERSION << 3 && first[1] >= 3 && first[1] < 0x40 &&
         (first[2] & 7) == MIX_WIRE_BYTES && field >= MIX_ONNX_MODEL_PRODUCER &&
         field <= MIX_ONNX_MODEL_OPSET;
}
