/* custom_gradient: results of a function under other names, whose gradient the caller's function makes. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "base/loaded.h"
#include "graph/node_set.h"
#include "graph/variable.h"
#include "ops/table.h"
#include "tensor/shape.h"
#include <mixtape/custom_gradient.h>

/* Operands: the results, then the inputs. */
typedef struct custom_attributes {
  mix_custom_backward backward;
  void *context;
  mix_dtype cast; /* in which autocast variables are read */
} custom_attributes;

static bool is_floating(const mix_value *value) { return mix_dtype_is_real(value->dtype); }

static mix_list *gradients_above(mix_node *node, mix_tensor *const *above) {
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < node->output_count; i++) {
    mix_tensor *gradient = above[i];
    if (!gradient && is_floating(&node->outputs[i])) gradient = mix_zeros_like(mix_tensor_of(node, i));
    mix_list_append(list, gradient);
  }
  return list;
}

static bool fits(const mix_node *node, int input, mix_tensor *gradient) {
  const mix_value *value = mix_input_value(node, node->output_count + input);
  if (!gradient) return true;
  if (!mix_is(gradient, &mix_tensor_class))
    return mix_fail_type(
        "custom_gradient: the gradient of input %d is another object; expected a tensor or NULL", input);
  const mix_dtype dtype = mix_tensor_dtype(gradient);
  const mix_shape shape = mix_tensor_shape(gradient);
  if (!is_floating(value))
    return mix_fail_type("custom_gradient: a gradient of input %d, which is %s; expected NULL", input,
                         mix_dtype_name(value->dtype));
  if (dtype != value->dtype)
    return mix_fail_type("custom_gradient: the gradient of input %d is %s and the input %s; use mix_cast",
                         input, mix_dtype_name(dtype), mix_dtype_name(value->dtype));
  if (mix_shape_equal(shape, value->shape)) return true;
  return mix_fail_value("custom_gradient: the gradient of input %d has shape %s; expected %s", input,
                        MIX_SHAPE_TEXT(shape), MIX_SHAPE_TEXT(value->shape));
}

static mix_list *call_backward(mix_node *node, mix_tensor *const *above) {
  const custom_attributes *a = node->attributes;
  const int results = node->output_count, count = node->input_count - results;
  mix_list *inputs = mix_list_new(0, NULL), *outputs = mix_list_new(0, NULL);
  for (int i = 0; i < count; i++) mix_list_append(inputs, mix_node_input(node, results + i));
  for (int i = 0; i < results; i++) mix_list_append(outputs, mix_tensor_of(node, i));
  mix_list *flowing = gradients_above(node, above);
  if (mix_failed()) return NULL;
  const mix_dtype former = mix_cast_dtype_set(a->cast);
  mix_list *gradients = a->backward(a->context, inputs, outputs, flowing);
  mix_cast_dtype_set(former);
  if (mix_failed()) return NULL;
  if (!mix_is(gradients, &mix_list_class))
    return mix_fail_type("custom_gradient: the backward function returned %s; expected a list of gradients",
                         gradients ? "another object" : "NULL");
  if (mix_list_count(gradients) != count)
    return mix_fail_value("custom_gradient: %d gradients for %d inputs", mix_list_count(gradients), count);
  return gradients;
}

static void gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  mix_list *gradients = call_backward(node, output_gradients);
  for (int i = 0; gradients && i < mix_list_count(gradients); i++) {
    mix_tensor *item = mix_list_get(gradients, i);
    if (!fits(node, i, item)) return;
    input_gradients[node->output_count + i] = item;
  }
}

static const mix_op custom_gradient = {.name = "custom_gradient",
                                       .signature = "->",
                                       .flags = MIX_OP_ALIAS,
                                       .attributes_size = sizeof(custom_attributes),
                                       .gradient = gradient};

/* ---- the call ---- */

static bool holds_tensors(mix_list *list, const char *what) {
  if (!mix_given(list, &mix_list_class, "custom_gradient", what)) return false;
  for (int i = 0; i < mix_list_count(list); i++)
    if (!mix_given(mix_list_get(list, i), &mix_tensor_class, "custom_gradient", what)) return false;
  if (!mix_list_count(list)) return mix_fail_type("custom_gradient: an empty list; expected %s", what);
  return !mix_failed();
}

static mix_edge edge_of(mix_list *list, int index) {
  const mix_tensor *tensor = mix_list_get(list, index);
  return (mix_edge){tensor->node, tensor->output};
}

static bool is_input(mix_list *inputs, mix_edge edge) {
  for (int i = 0; i < mix_list_count(inputs); i++) {
    const mix_edge input = edge_of(inputs, i);
    if (input.node == edge.node && input.output == edge.output) return true;
  }
  return false;
}

static bool is_weight(const mix_node *node) {
  return (node->op->flags & MIX_OP_READ) && node->variable && node->variable->trainable;
}

/* Walks from the results back to the inputs, over what was made since `begin`. */
static bool reads_no_weight(mix_list *results, mix_list *inputs, uint64_t begin) {
  mix_node_set set = {0};
  bool good = true;
  for (int i = 0; i < mix_list_count(results) && good; i++)
    if (!is_input(inputs, edge_of(results, i))) good = mix_node_set_add(&set, edge_of(results, i).node);
  for (int n = 0; n < set.count && good; n++) {
    const mix_node *node = set.nodes[n];
    if (is_weight(node))
      good = mix_fail_value("custom_gradient: the forward function reads the trainable variable '%s', whose "
                            "gradient would be lost; make mix_variable_value of it one of the inputs",
                            mix_variable_name(node->variable));
    for (int i = 0; i < node->input_count && good && node->sequence >= begin; i++)
      if (!is_input(inputs, node->inputs[i])) good = mix_node_set_add(&set, node->inputs[i].node);
  }
  mix_node_set_clear(&set);
  return good;
}

static mix_node *new_node(const custom_attributes *attributes, mix_list *results, mix_list *inputs) {
  const int outputs = mix_list_count(results), count = mix_list_count(inputs);
  mix_edge *edges = mix_alloc(sizeof *edges * (size_t)(outputs + count));
  mix_type *types = mix_alloc(sizeof *types * (size_t)outputs);
  for (int i = 0; edges && types && i < outputs; i++) {
    edges[i] = edge_of(results, i);
    types[i] = mix_tensor_value(mix_list_get(results, i))->type;
  }
  for (int i = 0; edges && i < count; i++) edges[outputs + i] = edge_of(inputs, i);
  mix_node *node = edges && types ? mix_node_new_with_body(&custom_gradient, attributes, NULL,
                                                           outputs + count, edges, outputs, types)
                                  : NULL;
  mix_free(edges);
  mix_free(types);
  return node;
}

mix_list *mix_custom_gradient(mix_custom_forward forward, mix_custom_backward backward, void *context,
                              mix_list *inputs) {
  MIX_OWN_FLOAT_MODES;
  if (mix_failed()) return NULL;
  if (!forward || !backward)
    return mix_fail_type("custom_gradient: got no %s function", forward ? "backward" : "forward");
  if (!holds_tensors(inputs, "a list of tensors as inputs")) return NULL;
  const uint64_t begin = mix_node_next_sequence();
  mix_list *results = forward(context, inputs);
  if (mix_failed() || !holds_tensors(results, "a list of tensors from the forward function") ||
      !reads_no_weight(results, inputs, begin))
    return NULL;
  mix_keep_loaded((const void *)backward);
  const custom_attributes attributes = {backward, context, mix_cast_dtype()};
  mix_node *node = new_node(&attributes, results, inputs);
  mix_list *named = node ? mix_list_new(0, NULL) : NULL;
  for (int i = 0; named && i < node->output_count; i++) {
    mix_tensor *tensor = mix_tensor_of(node, i);
    if (tensor) tensor->mask = mix_retain(((mix_tensor *)mix_list_get(results, i))->mask);
    mix_list_append(named, tensor);
  }
  mix_release(node);
  return mix_failed() ? NULL : named;
}
