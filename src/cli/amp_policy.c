/* mixtape amp explain of a model under a mixed policy: no rewrite decides there but the policies of the
 * layers, which dtype each computes in and what it casts. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/cli.h"
#include "model/model.h"
#include "tensor/type.h"

#include <string.h>

/* "kernel, bias to float16": the weights that are kept in another dtype than the layer computes in. */
static void put_weights(mix_text *out, mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer);
  bool any = false;
  for (int i = 0; i < mix_list_count(weights); i++) {
    const mix_variable *weight = mix_list_get(weights, i);
    const mix_dtype dtype = mix_variable_true_dtype(weight);
    if (!mix_dtype_is_floating(dtype) || dtype == layer->compute) continue;
    const char *name = mix_variable_name(weight), *end = strrchr(name, '/');
    mix_text_put(out, "%s%s", any ? ", " : out->used ? "; " : "", MIX_PRINTABLE(end ? end + 1 : name));
    any = true;
  }
  if (any) mix_text_put(out, " to %s", mix_dtype_name(layer->compute));
}

/* "input from float16": floats that another layer made in another dtype. */
static void put_inputs(mix_text *out, const mix_model *model, const mix_layer *layer) {
  const mix_functional *graph = model->kind == MIX_FUNCTIONAL ? mix_layer_data(model->layer) : NULL;
  mix_dtype seen = MIX_DTYPE_NONE;
  for (int c = 0; graph && c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    for (int i = 0; call->layer == layer && i < mix_list_count(call->inputs); i++) {
      const mix_dtype dtype = mix_tensor_dtype(mix_list_get(call->inputs, i));
      if (!mix_dtype_is_floating(dtype) || dtype == layer->compute || dtype == seen) continue;
      mix_text_put(out, "%s %s", out->used ? "," : "input from", mix_dtype_name(dtype));
      seen = dtype;
    }
  }
}

static bool has_float_weights(mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++)
    if (mix_dtype_is_floating(mix_variable_true_dtype(mix_list_get(weights, i)))) return true;
  return false;
}

static const char *policy_of(const mix_layer *layer) {
  const char *name = mix_policy_name(layer->policy);
  return name ? name : "unnamed";
}

static void put_layer(mix_text *out, const mix_model *model, mix_layer *layer, const char *path, int width) {
  mix_text casts = {.grows = true};
  put_inputs(&casts, model, layer);
  put_weights(&casts, layer);
  mix_text_put(out, "%-*s  %-22s  %-14s  %-8s  %-9s  %s\n", mix_column_bytes(path, width), path,
               MIX_PRINTABLE(mix_layer_class_name(layer)), policy_of(layer), mix_dtype_name(layer->compute),
               has_float_weights(layer) ? mix_dtype_name(mix_policy_variable_dtype(layer->policy)) : "-",
               casts.used ? casts.text : "-");
  out->failed |= casts.failed;
  mix_free(casts.text);
}

/* Rows of the layers, those of models in the model by their paths; width 0: only measures the longest. */
static int put_layers(mix_text *out, const mix_model *model, mix_list *layers, const char *prefix,
                      int width) {
  int longest = 5;
  for (int i = 0; i < mix_list_count(layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    char path[1024];
    snprintf(path, sizeof path, "%s%s", prefix, MIX_PRINTABLE(layer->name));
    int own = (int)mix_letters(path);
    if (layer->is_model) {
      strncat(path, "/", sizeof path - strlen(path) - 1);
      own = put_layers(out, model, mix_layer_layers(layer), path, width);
    } else if (width && !layer->is_input) {
      put_layer(out, model, layer, path, width);
    }
    if (own > longest) longest = own;
  }
  return longest;
}

static bool computes_in_16_bits(mix_list *layers) {
  for (int i = 0; i < mix_list_count(layers); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    if (layer->is_model ? computes_in_16_bits(mix_layer_layers(layer))
                        : mix_dtype_is_16_bit(layer->compute) && !layer->is_input)
      return true;
  }
  return false;
}

bool cli_is_mixed(mix_model *model) { return computes_in_16_bits(mix_model_layers(model)); }

bool cli_print_policies(mix_model *model) {
  mix_text out = {.grows = true};
  mix_list *layers = mix_model_layers(model);
  const int width = put_layers(&out, model, layers, "", 0);
  mix_text_put(&out, "The policies decide here; the graph rewrite is for float32 models.\n\n");
  mix_text_put(&out, "%-*s  %-22s  %-14s  %-8s  %-9s  %s\n", width, "layer", "class", "policy", "computes",
               "variables", "casts");
  put_layers(&out, model, layers, "", width);
  if (!mix_failed() && !out.failed) fputs(out.text, stdout);
  mix_free(out.text);
  return !mix_failed();
}
