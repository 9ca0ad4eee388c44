/* Which nodes read the values of an ONNX graph: that says which weights layers share. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <string.h>

/* Kinds of nodes that read an initialiser as the weight of a layer, by the input where it stands. */
static int weight_place(const char *op) {
  if (!strcmp(op, "Gather")) return 0;
  const bool layer = !strcmp(op, "MatMul") || !strcmp(op, "Gemm") || !strcmp(op, "Conv") ||
                     !strcmp(op, "ConvTranspose") || !strcmp(op, "BatchNormalization") ||
                     !strcmp(op, "LayerNormalization");
  return layer ? 1 : -1;
}

/* Of which initialiser is a later reader of another kind, or no layer's weight? Those are one weight for all.
 */
void mix_import_note_use(mix_import_value *value, mix_import_node *reader, int place) {
  const mix_onnx_node *node = &reader->node;
  const bool looks = !strcmp(node->op, "Shape") || (!strcmp(node->op, "CastLike") && place == 1);
  if (looks && value->weight) return; /* at its type alone */
  if (value->uses && value->weight && value->reader) {
    const bool alike = !strcmp(value->reader->node.op, node->op) &&
                       (weight_place(node->op) == place || (place > 1 && weight_place(node->op) == 1));
    if (!alike) value->shared = true;
  }
  value->uses++;
  value->reader = reader;
}

/* ---- graphs in nodes ---- */

mix_import_value *mix_import_own_value(const mix_import *in, const mix_import_step *step, const char *name) {
  const json_t *found = step ? json_object_get(step->names, name) : NULL;
  if (step && !found) return NULL;
  return mix_import_value_named(in, found ? json_string_value(found) : name);
}

/* What a body reads counts twice: nodes of more than one step read it. */
static void count_body(mix_import *in, const mix_import_step *step, const mix_import_body *body) {
  for (int n = 0; n < body->nodes.count; n++) {
    mix_import_node *node = body->nodes.items[n];
    for (int i = 0; i < node->node.input_count; i++) {
      mix_import_value *value = mix_import_own_value(in, step, node->node.inputs[i]);
      if (!value) continue;
      value->inner = true;
      for (int times = 0; times < 2; times++) mix_import_note_use(value, node, i);
    }
    mix_import_count_bodies(in, step, node);
  }
  for (int i = 0; i < body->output_count; i++) {
    mix_import_value *value = mix_import_own_value(in, step, body->outputs[i]);
    if (value) value->uses++, value->reader = NULL;
  }
}

void mix_import_count_bodies(mix_import *in, const mix_import_step *step, mix_import_node *node) {
  if (node->body) count_body(in, step, node->body);
  if (node->other) count_body(in, step, node->other);
}

/* ---- the whole ---- */

/* PyTorch's exporter writes weights of equal values once. Those of one number, as biases of 0 begin, were
 * several; others that are equal in all numbers are one, and so is what one node reads in each step. */
static bool find_uniform(mix_import *in) {
  for (int i = 0; i < in->initializer_count; i++) {
    mix_import_value *value = in->values[i];
    if (value->uses < 2 || !value->weight || value->inner) continue;
    mix_tensor *x = mix_onnx_tensor_value(in->file, value->stored);
    if (!x) return false;
    const unsigned char *bytes = mix_tensor_data(x);
    const size_t element = mix_dtype_size(mix_tensor_dtype(x));
    const size_t size = (size_t)mix_shape_size(mix_tensor_shape(x)) * element;
    value->uniform = bytes && !memcmp(bytes, bytes + element, size - element);
    if (value->uniform) value->shared = false;
  }
  return !mix_failed();
}

bool mix_import_count_uses(mix_import *in) {
  for (int n = 0; n < in->nodes.count; n++) {
    mix_import_node *node = in->nodes.items[n];
    for (int i = 0; i < node->node.input_count; i++) {
      const char *name = node->node.inputs[i];
      mix_import_value *value = *name ? mix_import_value_named(in, name) : NULL;
      if (value) mix_import_note_use(value, node, i);
    }
    mix_import_count_bodies(in, NULL, node);
  }
  for (int i = 0; i < in->file->graph.output_count; i++) {
    mix_import_value *value = mix_import_value_named(in, in->file->graph.outputs[i].name);
    if (value) value->uses++, value->reader = NULL;
  }
  return find_uniform(in);
}
