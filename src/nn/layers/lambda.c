/* Lambda: a C function as a layer. */
#include "base/error.h"
#include "nn/layers/builtin.h"

static mix_list *lambda_call(mix_layer *layer, const mix_call_args *args) {
  const mix_lambda_options *l = mix_layer_data(layer);
  return mix_one_result(l->function(l->context, args));
}

static mix_tensor *lambda_mask(mix_layer *layer, const mix_call_args *args) {
  const mix_lambda_options *l = mix_layer_data(layer);
  return l->mask(l->context, args);
}

static bool lambda_decodes(const mix_layer *layer, const mix_call_args *args) {
  if (((const mix_lambda_options *)layer->data)->decodes) return true;
  return mix_fail_value("decode: layer '%s' (Lambda) does not say that its function can be decoded; if each "
                        "position depends on itself alone, set .decodes in its options",
                        layer->name);
}

static bool lambda_check(void *options, const mix_layer_kind *kind) {
  if (((const mix_lambda_options *)options)->function) return true;
  return mix_fail_type("%s: needs a function", kind->call);
}

static bool lambda_ready(mix_layer *layer) {
  /* a result that is the input itself keeps its mask */
  if (!((const mix_lambda_options *)layer->data)->mask) layer->class.compute_mask = NULL;
  return true;
}

static mix_layer *lambda_from(const mix_layer_kind *kind, const json_t *config, void *options) {
  const char *name = ((const mix_lambda_options *)options)->function_name;
  return mix_fail_value("%s: the C function '%.60s' is not in the config; make the layer in the program",
                        kind->call, name ? name : "lambda");
}

static const mix_field_row fields[] = {
    {"function", offsetof(mix_lambda_options, function_name), &mix_field_text, .text = "lambda"}, {0}};
MIX_LAYER_KIND(lambda, mix_lambda_options, .fields = fields, .call_has_mask = true, .check = lambda_check,
               .ready = lambda_ready, .from_config = lambda_from, .decodes = lambda_decodes,
               MIX_LAYER_CLASS(.name = "Lambda", .call = lambda_call, .compute_mask = lambda_mask))
