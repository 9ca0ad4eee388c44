/* check_numerics: a tensor that must be finite. print: one that each run logs. */
#include "ops/debug_ops.h"

#include "base/alloc.h"
#include "ops/rules.h"
#include <stdio.h>

static const char *const what[] = {"", "the tensor has NaN values", "the tensor has infinite values",
                                   "the tensor has NaN and infinite values"};

const char *mix_check_numerics_reason(const mix_check_numerics_attributes *attributes, int has) {
  char text[256];
  snprintf(text, sizeof text, "%.190s: %s", attributes->message ? attributes->message : "", what[has]);
  const char *reason = attributes->message ? mix_intern(text) : NULL;
  return reason ? reason : what[has];
}

mix_tensor *mix_check_numerics_node(mix_tensor *tensor, const char *message) {
  const mix_check_numerics_attributes attributes = {.message = message ? mix_intern(message) : NULL};
  if (message && !attributes.message) return NULL;
  return mix_apply(&mix_op_check_numerics, &attributes, 1, &tensor);
}

/* As TensorFlow's _CheckNumericsGrad. */
static void gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  const mix_check_numerics_attributes *a = node->attributes;
  char text[256];
  snprintf(text, sizeof text, "gradient%s%.180s", a->message ? " of " : "", a->message ? a->message : "");
  input_gradients[0] = mix_check_numerics_node(output_gradients[0], text);
}

bool mix_op_checks_numerics(const mix_op *op) { return op == &mix_op_check_numerics; }

static bool rows(const mix_row_query *query) { return query->batched[0]; }

static const mix_attribute_row check_fields[] = {
    {"message", MIX_ATTRIBUTE_TEXT, offsetof(mix_check_numerics_attributes, message)}, {NULL}};

const mix_op mix_op_check_numerics = {.name = "check_numerics",
                                      .tf_name = "CheckNumerics",
                                      .signature = "T->T",
                                      .types = "float",
                                      .flags = MIX_OP_CHECKS_VALUES | MIX_OP_STATEFUL,
                                      .attributes_size = sizeof(mix_check_numerics_attributes),
                                      .infer = mix_rule_one_shape,
                                      .gradient = gradient,
                                      .fields = check_fields,
                                      .row_independent = rows};

/* ---- print ---- */

/* Its result is a number, which the next print takes: so they run in order. */

static bool print_infer(mix_node *node) { return mix_rule_output(node, 0, (mix_shape){.rank = 0}); }

static const mix_attribute_row print_fields[] = {
    {"label", MIX_ATTRIBUTE_TEXT, offsetof(mix_print_attributes, label)}, {NULL}};

const mix_op mix_op_print = {.name = "print",
                             .tf_name = "PrintV2",
                             .signature = "T,l->l",
                             .types = "any",
                             .flags = MIX_OP_STATEFUL,
                             .attributes_size = sizeof(mix_print_attributes),
                             .infer = print_infer,
                             .fields = print_fields};

bool mix_op_prints(const mix_op *op) { return op == &mix_op_print; }

mix_tensor *mix_print_node(mix_tensor *tensor, const char *label, mix_tensor *before) {
  const mix_print_attributes attributes = {.label = mix_intern(label)};
  if (!attributes.label) return NULL;
  return mix_apply(&mix_op_print, &attributes, 2,
                   (mix_tensor *[]){tensor, before ? before : mix_scalar(0, MIX_INT64)});
}
