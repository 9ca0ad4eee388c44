/* Calls of TensorFlow's functions in the inbound_nodes of tf_keras, both ways: the first argument is
 * [layer, call, result, keywords] or ["_CONSTANT_VALUE", -1, value, keywords], or a list of such; keywords
 * have tensors as [layer, call, result]. */
#include "saving/model_json.h"

#include "base/error.h"
#include "nn/layers/operands.h"
#include <string.h>

#define CONSTANT "_CONSTANT_VALUE"

/* ---- reading ---- */

typedef struct reading {
  mix_tf_operation_node *node;
  const char *layer;
  const json_t *keywords; /* of the first leaf */
  mix_list *tensors;
} reading;

static bool is_leaf(const json_t *value) {
  return json_array_size(value) >= 3 && json_is_string(json_array_get(value, 0)) &&
         json_is_integer(json_array_get(value, 1));
}

/* A layer may have that name; its calls count from 0. */
static bool is_constant(const json_t *leaf) {
  return !strcmp(json_string_value(json_array_get(leaf, 0)), CONSTANT) &&
         json_integer_value(json_array_get(leaf, 1)) == -1;
}

static bool is_reference(const json_t *value) {
  const size_t size = json_array_size(value);
  return (size == 3 || size == 4) && is_leaf(value) && json_is_integer(json_array_get(value, 2));
}

/* The tensor's number, with which it joins those of the call. */
static json_t *tensor_form(reading *r, const json_t *reference) {
  mix_tensor *tensor = r->node->find(r->node->context, reference);
  if (!tensor) {
    r->node->waits = true;
    return json_null();
  }
  mix_list_append(r->tensors, tensor);
  return mix_operand_form(mix_list_count(r->tensors) - 1);
}

static json_t *refused(const reading *r, const char *what) {
  return mix_fail_value("model_from_json: the call of layer '%.60s' %s", r->layer, what);
}

static json_t *keyword_item(void *context, const json_t *value) {
  reading *r = context;
  return is_reference(value) ? tensor_form(r, value) : NULL;
}

/* In the first argument. */
static json_t *first_item(void *context, const json_t *value) {
  reading *r = context;
  if (!is_leaf(value) && json_is_array(value)) {
    r->node->inputs_are_list = true;
    return NULL;
  }
  if (is_leaf(value) && !r->keywords) r->keywords = json_array_get(value, 3);
  if (is_leaf(value) && is_constant(value))
    return mix_json_whole(json_pack("{s:O}", MIX_OPERAND_VALUE, json_array_get(value, 2)));
  return is_reference(value) ? tensor_form(r, value)
                             : refused(r, "has something else than [layer, call, result, keywords]");
}

/* Inputs are the tensors of the first argument; of a constant, all. */
static void share_tensors(mix_tf_operation_node *node, mix_list *tensors, int first) {
  node->inputs = mix_list_new(0, NULL);
  for (int i = 0; i < mix_list_count(tensors); i++) {
    const bool input = !first || i < first;
    if (!input && !node->arguments) node->arguments = mix_list_new(0, NULL);
    mix_list_append(input ? node->inputs : node->arguments, mix_list_get(tensors, i));
  }
}

bool mix_read_operation_node(const json_t *node, const char *layer, mix_tf_operation_node *read) {
  reading r = {.node = read, .layer = layer, .tensors = mix_list_new(0, NULL)};
  if (mix_operand_form_reserved(node)) return refused(&r, "has an object that no function takes"), false;
  json_t *first = mix_form_map(node, first_item, &r), *keywords = NULL;
  const int count = first ? mix_list_count(r.tensors) : 0;
  if (r.keywords && !json_is_object(r.keywords))
    refused(&r, "has keywords that are no object");
  else if (!mix_failed() && !read->waits)
    keywords = r.keywords ? mix_form_map(r.keywords, keyword_item, &r) : json_object();
  if (keywords && !mix_failed() && !read->waits && !mix_list_count(r.tensors))
    refused(&r, "has no tensor; expected one at least");
  if (mix_failed() || read->waits) return json_decref(first), json_decref(keywords), false;
  share_tensors(read, r.tensors, count);
  read->form = mix_json_whole(json_pack("{s:o,s:o}", "args", first, "kwargs", keywords));
  return read->form;
}

/* ---- writing ---- */

typedef struct writing {
  mix_form_leaf *leaf;
  void *context;
  json_t *keywords;
} writing;

static json_t *node_item(void *context, const json_t *form) {
  const writing *w = context;
  const int number = mix_operand_form_number(form);
  const json_t *fixed = json_object_get(form, MIX_OPERAND_VALUE);
  if (fixed) return mix_json_whole(json_pack("[s,i,O,O]", CONSTANT, -1, fixed, w->keywords));
  json_t *reference = number < 0 ? NULL : mix_json_whole(w->leaf(w->context, number));
  if (reference) mix_json_append(reference, json_incref(w->keywords));
  return reference;
}

json_t *mix_tf_operation_node_json(const json_t *form, mix_form_leaf *reference, void *context) {
  json_t *keywords = mix_form_fill(json_object_get(form, "kwargs"), reference, context);
  json_t *node = keywords ? mix_form_map(json_object_get(form, "args"), node_item,
                                         &(writing){reference, context, keywords})
                          : NULL;
  json_decref(keywords);
  return node;
}

/* Lists in lists, of one length each. */
static json_t *constant_shape_json(const json_t *value) {
  json_t *shape = json_array();
  for (; json_is_array(value); value = json_array_get(value, 0))
    mix_json_append(shape, json_integer((json_int_t)json_array_size(value)));
  return mix_json_whole(shape);
}

static json_t *shape_item(void *context, const json_t *form) {
  const writing *w = context;
  const int number = mix_operand_form_number(form);
  const json_t *fixed = json_object_get(form, MIX_OPERAND_VALUE);
  if (number >= 0) return mix_json_whole(w->leaf(w->context, number));
  return fixed ? constant_shape_json(fixed) : NULL;
}

json_t *mix_tf_operation_shapes_json(const json_t *form, mix_form_leaf *shape, void *context) {
  return mix_form_map(json_object_get(form, "args"), shape_item,
                      &(writing){.leaf = shape, .context = context});
}
