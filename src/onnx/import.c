/* From a graph of ONNX to a model: names, inputs, nodes in their order, outputs. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include "base/json.h"
#include "tensor/shape.h"
#include <stdio.h>
#include <string.h>

/* Elements that nodes may make of constants, beside those of the file's own size. */
enum { LEAST_BUDGET = 1 << 22 };
/* The range that exporters write; between 9 and 17 operators differ in how they are given axes and bounds. */
enum { OLDEST_OPSET = 9 };

/* ---- names ---- */

static bool add_initializers(mix_import *in) {
  for (int i = 0; i < in->initializer_count; i++) {
    const mix_onnx_tensor *stored = in->initializers[i];
    mix_import_value *value = mix_import_add_name(in, stored->name);
    if (!value) return false;
    value->stored = stored;
    value->bound = true;
    if (mix_dtype_is_floating(stored->dtype) && mix_shape_size(stored->shape) > 1)
      value->weight = stored->name;
  }
  return true;
}

static bool add_outputs(mix_import *in) {
  for (int n = 0; n < in->nodes.count; n++) {
    const mix_onnx_node *node = &in->nodes.items[n]->node;
    for (int i = 0; i < node->output_count; i++)
      if (*node->outputs[i] && !mix_import_add_name(in, node->outputs[i])) return false;
  }
  return !mix_failed();
}

/* ---- inputs ---- */

static mix_tensor *input_of(mix_import *in, const mix_onnx_value_info *info) {
  mix_input_options options = {
      .size = sizeof options, .dtype = mix_dtype_name(info->dtype), .semantics = in->semantics};
  if (info->dtype == MIX_DTYPE_NONE || info->too_many_axes || !info->has_shape || !info->shape.rank)
    return mix_fail_unsupported(
        "%s: input '%.100s' has element type %lld and %d axes; expected a type that tensors "
        "have, and 1 to %d axes",
        in->file->path, info->name, (long long)info->type, info->shape.rank, MIX_MAX_RANK);
  options.batch_size = info->shape.dims[0] == MIX_UNKNOWN ? 0 : info->shape.dims[0];
  options.shape.rank = info->shape.rank - 1;
  memcpy(options.shape.dims, info->shape.dims + 1, (size_t)options.shape.rank * sizeof *info->shape.dims);
  const mix_onnx_node named = {.name = info->name, .op = "input"};
  in->node = &named;
  options.name = mix_import_layer_name(in, info->name);
  in->node = NULL;
  return options.name ? mix_input_with(&options) : NULL;
}

static bool add_inputs(mix_import *in) {
  for (int i = 0; i < in->file->graph.input_count; i++) {
    const mix_onnx_value_info *info = &in->file->graph.inputs[i];
    if (json_object_get(in->names, info->name)) continue; /* an initialiser that a caller may replace */
    mix_import_value *value = mix_import_add_name(in, info->name);
    if (!value || !(value->tensor = input_of(in, info))) return false;
    value->bound = true;
    mix_list_append(in->inputs, value->tensor);
  }
  return !mix_failed();
}

/* ---- nodes ---- */

static bool check_inputs(mix_import *in) {
  for (int i = 0; i < in->node->input_count; i++) {
    const mix_import_value *value = mix_import_input(in, i);
    if (*in->node->inputs[i] && (!value || !value->bound))
      return mix_import_fail(in, MIX_FORMAT_ERROR, "its input '%.60s' is made by no node before it",
                             in->node->inputs[i]);
  }
  return true;
}

/* Says which node an error is of that another part of the library recorded. */
static bool of_node(mix_import *in) {
  const size_t length = strlen(in->file->path);
  mix_error_aside error;
  if (!mix_failed() || !strncmp(mix_error_message(), in->file->path, length < 200 ? length : 200))
    return false;
  mix_error_set_aside(&error);
  mix_import_fail(in, error.status, "%s", error.message);
  return false;
}

static bool convert_plain(mix_import *in, const mix_import_operator *operator) {
  mix_tensor *operands[2];
  const int count = in->node->input_count;
  if (count < 1 || count > 2) return mix_import_fail(in, MIX_FORMAT_ERROR, "it has %d inputs", count);
  for (int i = 0; i < count; i++)
    if (!(operands[i] = mix_import_operand(in, i))) return false;
  return mix_import_bind(in, 0, mix_import_run_one(in, operator->operation, count, operands, NULL));
}

static bool convert_node(mix_import *in) {
  const mix_import_operator *operator= mix_import_operator_named(in->node->op);
  const bool own = !*in->node->domain || !strcmp(in->node->domain, "ai.onnx");
  if (!own || !operator)
    return mix_import_fail(
        in, MIX_UNSUPPORTED,
        "the operator %.60s%s%.60s is not supported; docs/manual/onnx.md lists those that are",
        in->node->domain, own ? "" : ".", in->node->op);
  if (!check_inputs(in)) return false;
  if (mix_import_convert_sizes(in) || mix_failed()) return !mix_failed();
  return operator->convert ? operator->convert(in) : convert_plain(in, operator);
}

static bool convert_nodes(mix_import *in, const mix_import_nodes *nodes) {
  for (int n = 0; n < nodes->count; n++) {
    in->node = &nodes->items[n]->node;
    if (nodes->items[n]->done) continue;
    if (!convert_node(in)) return of_node(in);
  }
  return true;
}

/* ---- the model ---- */

static mix_list *outputs_of(mix_import *in) {
  mix_list *outputs = mix_list_new(0, NULL);
  for (int i = 0; i < in->file->graph.output_count; i++) {
    const char *const name = in->file->graph.outputs[i].name;
    mix_import_value *value = mix_import_value_named(in, name);
    if (!value || !value->bound)
      return mix_fail_format("%s: output '%.100s' is made by no node", in->file->path, name);
    const mix_onnx_node node = {.name = name, .op = "output"};
    in->node = &node;
    mix_tensor *x = mix_import_is_constant(value) ? NULL : mix_import_tensor_of(in, value);
    for (int k = 0; k < mix_list_count(in->inputs) && x; k++)
      if (x == mix_list_get(in->inputs, k)) x = mix_import_apply(in, "Copy", x, NULL);
    if (!x)
      return mix_fail_unsupported("%s: output '%.100s' does not depend on the inputs", in->file->path, name);
    mix_list_append(outputs, x);
  }
  return mix_failed() ? NULL : outputs;
}

static mix_model *import(mix_import *in) {
  if (!mix_import_inline(in) || !add_initializers(in) || !add_inputs(in) || !add_outputs(in) ||
      !mix_import_count_uses(in) || !convert_nodes(in, &in->nodes))
    return NULL;
  mix_list *outputs = outputs_of(in);
  if (!outputs) return NULL;
  return mix_model_with(&(mix_model_options){.size = sizeof(mix_model_options),
                                             .inputs = in->inputs,
                                             .outputs = outputs,
                                             .semantics = in->semantics});
}

mix_model *mix_import_file(const mix_onnx_file *file, const mix_semantics *semantics) {
  if (mix_failed()) return NULL;
  if (file->opset < OLDEST_OPSET || file->opset > MIX_ONNX_NEWEST_OPSET)
    return mix_fail_unsupported("%s: it uses operator set %lld of ONNX; expected %d to %d", file->path,
                                (long long)file->opset, (int)OLDEST_OPSET, (int)MIX_ONNX_NEWEST_OPSET);
  int64_t stored = 0, size;
  for (int i = 0; i < file->graph.initializer_count; i++) {
    size = mix_shape_size(file->graph.initializers[i].shape);
    stored = stored > INT64_MAX / 8 || size > INT64_MAX / 8 ? INT64_MAX / 8 : stored + size;
  }
  mix_import in = {.file = file,
                   .semantics = semantics ? semantics : &mix_semantics_keras3,
                   .convert_nodes = convert_nodes,
                   .names = json_object(),
                   .taken = json_object(),
                   .layers = json_object(),
                   .maps = json_array(),
                   .layer_list = mix_list_new(0, NULL),
                   .inputs = mix_list_new(0, NULL),
                   .budget = LEAST_BUDGET + 8 * (stored < INT64_MAX / 16 ? stored : INT64_MAX / 16)};
  mix_model *model = mix_failed() ? NULL : import(&in);
  json_decref(in.names);
  json_decref(in.taken);
  json_decref(in.layers);
  json_decref(in.maps);
  return model;
}

mix_model *mix_onnx_load(const char *path, const mix_semantics *semantics, bool copies) {
  mix_onnx_file file;
  return mix_onnx_open(&file, path, copies) ? mix_import_file(&file, semantics) : NULL;
}
