/* The symbolic tensors of functional models, for models that are made of a part of one. */
#include "base/error.h"
#include "model/model.h"

static const mix_functional *functional_of(mix_model *model, const char *call) {
  if (!mix_model_given(model, call)) return NULL;
  if (mix_layer_is_functional(model->layer)) return mix_layer_data(model->layer);
  return mix_fail_value(
      "%s: '%s' is not functional; make the new model of its layers, which mix_model_layers gives", call,
      mix_model_name(model));
}

mix_list *mix_model_inputs(mix_model *model) {
  const mix_functional *graph = functional_of(model, "model_inputs");
  return graph ? mix_list_new(graph->input_count, (void *const *)graph->inputs) : NULL;
}

mix_list *mix_model_outputs(mix_model *model) {
  const mix_functional *graph = functional_of(model, "model_outputs");
  return graph ? mix_list_new(graph->output_count, (void *const *)graph->outputs) : NULL;
}

/* ---- results of a layer ---- */

/* Calls do not keep their results: these are found where they are read. */
static void note_result(const mix_layer_call *call, mix_tensor *tensor, mix_tensor **results) {
  int output = 0;
  if (tensor && mix_tensor_history(tensor, &output) == call) results[output] = tensor;
}

static void note_results_read_by(const mix_layer_call *reader, const mix_layer_call *call,
                                 mix_tensor **results) {
  mix_list *const lists[] = {reader->inputs, reader->arguments, reader->masks, reader->initial_state,
                             reader->keywords.argument_masks};
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
    for (int i = 0; lists[l] && i < mix_list_count(lists[l]); i++)
      note_result(call, mix_list_items(lists[l])[i], results);
  note_result(call, reader->keywords.attention_mask, results);
}

mix_list *mix_model_layer_outputs(mix_model *model, const char *name) {
  const mix_functional *graph = functional_of(model, "model_layer_outputs");
  const mix_layer *layer = graph ? mix_model_get_layer(model, name) : NULL;
  if (!layer) return NULL;
  const mix_layer_call *call = graph->calls[mix_functional_first_call(graph, layer)];
  mix_tensor **results = mix_scoped_memory(((size_t)call->output_count + 1) * sizeof *results);
  if (!results) return NULL;
  for (int i = 0; i < graph->input_count; i++) note_result(call, graph->inputs[i], results);
  for (int i = 0; i < graph->output_count; i++) note_result(call, graph->outputs[i], results);
  for (int i = 0; i < graph->extra_count; i++) note_result(call, graph->extras[i], results);
  for (int c = 0; c < graph->call_count; c++) note_results_read_by(graph->calls[c], call, results);
  return mix_list_new(call->output_count, (void *const *)results);
}
