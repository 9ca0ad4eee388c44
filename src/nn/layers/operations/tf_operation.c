/* The layers of TensorFlow's functions in functional models of tf_keras. The form of a call
 * (mix_call_keywords) is {"args": first argument, "kwargs": {name: value}}; values are those of the text, but
 * for tensors (mix_operand_form), and {MIX_OPERAND_VALUE: value} in the first argument. */
#include "nn/layers/operations/operation.h"

#include "base/error.h"
#include <string.h>

typedef struct op_lambda_options {
  size_t size;
  MIX_LAYER_OPTIONS
  const char *function;
} op_lambda_options;

static bool function_known(void *options, const mix_layer_kind *kind) {
  const char *function = ((const op_lambda_options *)options)->function;
  if (mix_tf_operation_named(function)) return true;
  return mix_fail_unsupported("%s: tf.%.80s is not supported", kind->class.name, function ? function : "?");
}

static mix_list *op_lambda_call(mix_layer *layer, const mix_call_args *args) {
  const op_lambda_options *options = mix_layer_data(layer);
  const json_t *form = mix_call_form();
  mix_operands o = {.layer = layer,
                    .operation = mix_tf_operation_named(options->function),
                    .tensors = mix_operand_tensors(args->inputs, args->arguments),
                    .symbolic = args->symbolic};
  if (!form)
    return mix_fail_unsupported(
        "%s '%s': it is called inside the model of its file alone; use the function of "
        "<mixtape/ops.h>",
        layer->class.name, layer->name);
  json_t *first = json_pack("[O]", json_object_get(form, "args"));
  const bool bound = mix_operands_bind(&o, first, json_object_get(form, "kwargs"), NULL);
  mix_list *results = bound ? mix_operation_run(&o) : NULL;
  json_decref(o.values);
  json_decref(first);
  return results;
}

static bool op_lambda_decodes(const mix_layer *layer, const mix_call_args *args) {
  static const mix_operation *const elementwise[] = {mix_tf_elementwise_operations,
                                                     mix_tf_function_operations};
  const char *function = ((const op_lambda_options *)layer->data)->function;
  for (int i = 0; i < 2; i++)
    for (const mix_operation *of = elementwise[i]; of->name; of++)
      if (!strcmp(of->name, function)) return true;
  return false;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(op_lambda_options, function), &mix_field_text, .required = true}, {0}};

#define OP_LAMBDA(operation, class_name)                                                                     \
  const mix_layer_kind mix_##operation##_kind = {                                                            \
      .call = #operation,                                                                                    \
      .options_size = sizeof(op_lambda_options),                                                             \
      .fields = fields,                                                                                      \
      .check = function_known,                                                                               \
      .module = "tf_keras.src.layers.core.tf_op_layer",                                                      \
      .call_has_form = true,                                                                                 \
      .decodes = op_lambda_decodes,                                                                          \
      .tf_keras_only = true,                                                                                 \
      MIX_LAYER_CLASS(.name = class_name, .call = op_lambda_call, .no_autocast = true)};
OP_LAMBDA(tf_op_lambda, "TFOpLambda")
OP_LAMBDA(slicing_op_lambda, "SlicingOpLambda")
