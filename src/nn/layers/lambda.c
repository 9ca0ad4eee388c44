/* Lambda: a C function as a layer. */
#include "base/alloc.h"
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct lambda {
  mix_tensor *(*function)(void *context, const mix_call_args *args);
  mix_tensor *(*mask)(void *context, const mix_call_args *args);
  void *context;
  const char *function_name; /* interned */
} lambda;

static mix_list *lambda_call(mix_layer *layer, const mix_call_args *args) {
  const lambda *l = mix_layer_data(layer);
  return mix_one_result(l->function(l->context, args));
}

static mix_tensor *lambda_mask(mix_layer *layer, const mix_call_args *args) {
  const lambda *l = mix_layer_data(layer);
  return l->mask(l->context, args);
}

static mix_status lambda_config(mix_layer *layer, mix_config *config) {
  return mix_config_text(config, "function", ((const lambda *)mix_layer_data(layer))->function_name);
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "Lambda",
                                      .instance_size = sizeof(lambda),
                                      .call = lambda_call,
                                      .get_config = lambda_config,
                                      .compute_mask = lambda_mask};

mix_lambda_options mix_lambda_defaults(void) {
  return (mix_lambda_options){.size = sizeof(mix_lambda_options)};
}

mix_layer *mix_lambda_with(const mix_lambda_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_lambda_options, o, options, "lambda");
  if (!o.function) return mix_fail(MIX_TYPE_ERROR, "lambda: needs a function");
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "lambda");
  if (layer) {
    *(lambda *)layer->data =
        (lambda){o.function, o.mask, o.context, mix_intern(o.function_name ? o.function_name : "lambda")};
    if (!o.mask) layer->class.compute_mask = NULL; /* a result that is the input itself keeps its mask */
  }
  return mix_scoped(layer);
}

mix_layer *mix_lambda_from(const json_t *config, const mix_semantics *semantics) {
  (void)semantics;
  return mix_fail(MIX_VALUE_ERROR,
                  "lambda: the C function '%.60s' is not in the config; make the layer in the program",
                  mix_json_string_or(config, "function", "lambda"));
}
