/* mixtape amp explain of a model under a mixed policy: no rewrite decides there but the policies of the
 * layers, which dtype each computes in and what it casts. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/cli.h"
#include "model/model.h"

#include <string.h>

/* "kernel, bias to float16": the weights that the layer reads in another dtype than they are kept in. */
static void put_weights(mix_text *out, mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer);
  bool any = false;
  for (int i = 0; i < mix_list_count(weights); i++) {
    const mix_variable *weight = mix_list_get(weights, i);
    if (!mix_variable_is_autocast(weight) || mix_variable_true_dtype(weight) == layer->compute) continue;
    const char *name = mix_variable_name(weight), *end = strrchr(name, '/');
    mix_text_put(out, "%s%s", any ? ", " : out->used ? "; " : "", MIX_PRINTABLE(end ? end + 1 : name));
    any = true;
  }
  if (any) mix_text_put(out, " to %s", mix_dtype_name(layer->compute));
}

static void put_floats(mix_text *out, const mix_layer *layer, mix_list *inputs, mix_dtype *seen) {
  for (int i = 0; i < mix_list_count(inputs); i++) {
    const mix_dtype dtype = mix_tensor_dtype(mix_list_get(inputs, i));
    if (!mix_dtype_is_floating(dtype) || dtype == layer->compute || dtype == *seen) continue;
    mix_text_put(out, "%s %s", out->used ? "," : "input from", mix_dtype_name(dtype));
    *seen = dtype;
  }
}

/* "input from float16": floats that another layer made in another dtype. `inputs`: what a layer of a
 * sequential model gets; a functional model has its calls recorded. */
static void put_inputs(mix_text *out, const mix_layer *model, const mix_layer *layer, mix_list *inputs) {
  const mix_functional *graph = mix_layer_is_functional(model) ? model->data : NULL;
  mix_dtype seen = MIX_DTYPE_NONE;
  if (!layer->autocast || !mix_dtype_is_floating(layer->compute)) return;
  if (inputs) put_floats(out, layer, inputs, &seen);
  for (int c = graph ? mix_functional_first_call(graph, layer) : -1; c >= 0;
       c = mix_functional_next_call(graph, c))
    if (graph->calls[c]->inputs) put_floats(out, layer, graph->calls[c]->inputs, &seen);
}

/* Symbolic data as a sequential model begins with; NULL: it was never called, or an error. */
static mix_list *first_inputs(const mix_layer *model) {
  const mix_layer *first = mix_sequential_input_layer(model);
  const mix_dtype dtype = first ? ((const mix_input_layer_data *)first->data)->dtype
                                : ((const mix_sequential_data *)model->data)->dtype;
  const mix_shape shape = mix_sequential_shape(model);
  if (shape.rank < 1 || dtype == MIX_DTYPE_NONE) return NULL;
  mix_input_options input = mix_input_defaults();
  input.dtype = mix_dtype_name(dtype);
  input.shape.rank = shape.rank - 1;
  for (int d = 1; d < shape.rank; d++) input.shape.dims[d - 1] = shape.dims[d];
  mix_tensor *tensor = mix_input_with(&input);
  return tensor ? mix_list_of(tensor) : NULL;
}

/* What a layer of a sequential model passes on. */
static mix_list *outputs_of(mix_layer *layer, mix_list *inputs) {
  return mix_layer_call_outputs(layer, inputs, mix_list_count(inputs) > 1, NULL, NULL, NULL, MIX_INHERIT,
                                NULL);
}

static bool has_float_weights(mix_layer *layer) {
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++)
    if (mix_dtype_is_floating(mix_variable_true_dtype(mix_list_get(weights, i)))) return true;
  return false;
}

static const char *policy_of(const mix_layer *layer) {
  const char *name = mix_policy_name(mix_layer_own_policy(layer));
  return name ? name : "unnamed";
}

static void put_layer(mix_text *out, const mix_layer *model, mix_layer *layer, mix_list *inputs,
                      const char *path, int width) {
  mix_text casts = {.grows = true};
  put_inputs(&casts, model, layer, inputs);
  put_weights(&casts, layer);
  mix_text_put(out, "%-*s  %-22s  %-14s  %-8s  %-9s  %s\n", mix_column_bytes(path, width), path,
               MIX_PRINTABLE(mix_layer_class_name(layer)), policy_of(layer), mix_dtype_name(layer->compute),
               has_float_weights(layer) ? mix_dtype_name(mix_layer_variable_dtype(layer)) : "-",
               casts.used ? casts.text : "-");
  out->failed |= casts.failed;
  mix_free(casts.text);
}

/* Rows of the layers, those of models in the model by their paths; width 0: only measures the longest. */
static int put_layers(mix_text *out, mix_layer *model, const char *prefix, int width) {
  mix_list *layers = mix_layer_layers(model),
           *inputs = width && mix_layer_is_sequential(model) ? first_inputs(model) : NULL;
  int longest = 5;
  for (int i = 0; i < mix_list_count(layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    char path[1024];
    snprintf(path, sizeof path, "%s%s", prefix, MIX_PRINTABLE(layer->name));
    int own = (int)mix_letters(path);
    if (layer->is_model) {
      strncat(path, "/", sizeof path - strlen(path) - 1);
      own = put_layers(out, layer, path, width);
    } else if (width && !layer->is_input) {
      put_layer(out, model, layer, inputs, path, width);
    }
    if (inputs && !layer->is_input) inputs = outputs_of(layer, inputs);
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
  const int width = put_layers(&out, model->layer, "", 0);
  mix_text_put(&out, "The policies decide here; the graph rewrite is for float32 models.\n\n");
  mix_text_put(&out, "%-*s  %-22s  %-14s  %-8s  %-9s  %s\n", width, "layer", "class", "policy", "computes",
               "variables", "casts");
  put_layers(&out, model->layer, "", width);
  if (!mix_failed() && !out.failed) fputs(out.text, stdout);
  mix_free(out.text);
  return !mix_failed();
}
