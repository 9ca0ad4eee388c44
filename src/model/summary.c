/* The summary as Keras prints it: layer and type, output shape, parameters. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/text.h"
#include <mixtape/device.h>
#include <stdio.h>
#include <string.h>

/* the batch for which large products are described, since a model has no batch size */
enum { EXAMPLES = 1024 };

static int64_t parameters(mix_list *variables) {
  int64_t count = 0;
  for (int i = 0; variables && i < mix_list_count(variables); i++)
    count += mix_shape_size(mix_variable_shape(mix_list_get(variables, i)));
  return count;
}

static size_t bytes(mix_list *variables) {
  size_t count = 0;
  for (int i = 0; variables && i < mix_list_count(variables); i++) {
    mix_variable *variable = mix_list_get(variables, i);
    count += (size_t)mix_shape_size(mix_variable_shape(variable)) *
             mix_dtype_size(mix_variable_true_dtype(variable));
  }
  return count;
}

mix_kernel_info mix_model_kernel_info(mix_model *model, mix_dtype dtype, int64_t examples) {
  mix_list *weights = mix_model_weights(model);
  int64_t inputs = 0, units = 0;
  for (int i = 0; weights && i < mix_list_count(weights); i++) {
    const mix_variable *weight = mix_list_get(weights, i);
    const mix_shape shape = mix_variable_shape(weight);
    const int64_t size = mix_shape_size(shape);
    /* not embeddings */
    const bool multiplied = shape.rank >= 2 && strstr(mix_variable_name(weight), "kernel");
    if (multiplied && size > inputs * units) units = shape.dims[shape.rank - 1], inputs = size / units;
  }
  const mix_context context = mix_context_default();
  return mix_kernel_info_of_layer(&context, dtype, examples, inputs, units);
}

static void put_layer(mix_text *out, mix_layer *layer, mix_shape shape, mix_dtype output) {
  char name[96], where[176], text[160];
  snprintf(name, sizeof name, "%s (%s)", mix_layer_name(layer), mix_layer_class_name(layer));
  snprintf(where, sizeof where, "%s", shape.rank < 0 ? "?" : mix_shape_text(shape, text, sizeof text));
  mix_text_put(out, " %-34.34s %-22.22s %-12lld %s", name, where,
               (long long)parameters(mix_layer_weights(layer)),
               mix_policy_name(mix_layer_policy(layer)) ? mix_policy_name(mix_layer_policy(layer)) : "");
  if (output != MIX_DTYPE_NONE) mix_text_put(out, " -> %s", mix_dtype_name(output));
  mix_text_put(out, "\n");
}

static void put_functional(mix_text *out, mix_model *model) {
  const mix_functional *graph = mix_layer_data(model->layer);
  for (int c = 0; c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    bool seen = false;
    for (int before = 0; before < c && !seen; before++) seen = graph->calls[before]->layer == call->layer;
    if (seen) continue;
    /* Shape and dtype of the first result, from any tensor that refers to it. */
    mix_shape shape = {.rank = -1};
    mix_dtype dtype = MIX_DTYPE_NONE;
    for (int i = 0; i < graph->output_count; i++) {
      int output;
      if (mix_tensor_history(graph->outputs[i], &output) == call)
        shape = mix_tensor_shape(graph->outputs[i]), dtype = mix_tensor_dtype(graph->outputs[i]);
    }
    for (int i = 0; i < graph->input_count; i++) {
      int output;
      if (mix_tensor_history(graph->inputs[i], &output) == call)
        shape = mix_tensor_shape(graph->inputs[i]), dtype = mix_tensor_dtype(graph->inputs[i]);
    }
    for (int later = c + 1; later < graph->call_count && shape.rank < 0; later++)
      for (int i = 0; graph->calls[later]->inputs && i < mix_list_count(graph->calls[later]->inputs); i++) {
        int output;
        mix_tensor *tensor = mix_list_get(graph->calls[later]->inputs, i);
        if (mix_tensor_history(tensor, &output) == call)
          shape = mix_tensor_shape(tensor), dtype = mix_tensor_dtype(tensor);
      }
    put_layer(out, call->layer, shape, dtype);
  }
}

/* Shapes follow from the build shape or the first call; before that they are unknown. */
static void put_chain(mix_text *out, mix_model *model) {
  mix_shape shape = model->input_shape.rank ? model->input_shape : *(const mix_shape *)model->layer->data;
  if (shape.rank) shape.dims[0] = MIX_UNKNOWN;
  for (int i = 0; i < mix_list_count(model->layer->layers); i++) {
    mix_layer *layer = mix_list_get(model->layer->layers, i);
    if (shape.rank) shape = mix_layer_output_shape(layer, shape);
    put_layer(out, layer, shape.rank ? shape : (mix_shape){.rank = -1}, MIX_DTYPE_NONE);
  }
}

/* What a call function does with its layers is not known. */
static void put_layers(mix_text *out, mix_model *model) {
  for (int i = 0; i < mix_list_count(model->layer->layers); i++)
    put_layer(out, mix_list_get(model->layer->layers, i), (mix_shape){.rank = -1}, MIX_DTYPE_NONE);
}

static void put_size(mix_text *out, const char *what, mix_list *variables) {
  size_t size = bytes(variables);
  mix_text_put(out, "%s: %lld (", what, (long long)parameters(variables));
  if (size >= 1 << 20)
    mix_text_put(out, "%.2f MB)\n", (double)size / (1 << 20));
  else if (size >= 1 << 10)
    mix_text_put(out, "%.2f KB)\n", (double)size / (1 << 10));
  else
    mix_text_put(out, "%zu Byte)\n", size);
}

const char *mix_model_summary(mix_model *model) {
  if (!mix_model_given(model, "model_summary")) return NULL;
  mix_text out = {.size = 4096 + 256 * (size_t)mix_list_count(model->layer->layers)};
  if (!(out.text = mix_alloc(out.size))) return NULL;
  static const char rule[] =
      "_______________________________________________________________________________________________\n";
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_summary")
  MIX_SCOPE {
    mix_text_put(&out, "Model: \"%s\"\n%s %-34s %-22s %-12s %s\n", mix_model_name(model), rule,
                 "Layer (type)", "Output Shape", "Param #", "Policy");
    mix_text_put(
        &out,
        "===============================================================================================\n");
    if (model->kind == MIX_SEQUENTIAL)
      put_chain(&out, model);
    else if (model->kind == MIX_FUNCTIONAL)
      put_functional(&out, model);
    else
      put_layers(&out, model);
    mix_text_put(
        &out,
        "===============================================================================================\n");
    put_size(&out, "Total params", mix_model_weights(model));
    put_size(&out, "Trainable params", mix_model_trainable_variables(model));
    put_size(&out, "Non-trainable params", mix_model_non_trainable_variables(model));
    const mix_dtype dtype = mix_policy_compute_dtype(mix_model_policy(model));
    const mix_kernel_info info = mix_model_kernel_info(model, dtype, EXAMPLES);
    char products[512];
    mix_text_put(&out, "%sPolicy: %s; device: %s; accumulation: %s\n", rule,
                 mix_policy_name(mix_model_policy(model)), mix_device(), info.accumulation);
    mix_text_put(&out, "Large products in %s: %s (the largest, of %d examples)\n", mix_dtype_name(dtype),
                 mix_kernel_info_text(&info, products, sizeof products), EXAMPLES);
  }
  if (!mix_failed()) return mix_model_keep_text(&model->summary, out.text);
  mix_free(out.text);
  return NULL;
}
