/* Functional models: the recorded layer calls between inputs and outputs, and their replay. */
#include "model/model.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/json.h"
#include "nn/layers/operands.h"
#include <stdlib.h>
#include <string.h>

static mix_functional *functional_of(const mix_layer *layer) { return mix_layer_data(layer); }

int mix_functional_call_number(const mix_functional *graph, const mix_layer_call *call) {
  const int place = mix_functional_call_place(graph, call);
  return place < 0 ? 0 : graph->of_layer[place].number;
}

static int by_sequence(const void *a, const void *b) {
  uint64_t x = (*(mix_layer_call *const *)a)->sequence, y = (*(mix_layer_call *const *)b)->sequence;
  return x < y ? -1 : x > y;
}

static bool add_call(mix_functional *graph, int *capacity, mix_tensor *tensor) {
  int output;
  mix_layer_call *call = mix_tensor_history(tensor, &output);
  if (!call)
    return mix_fail_value(
        "model_new: a tensor between inputs and outputs was made by operation '%s' outside any layer; use a "
        "layer for it",
        tensor->node->op->name);
  if (mix_functional_call_place(graph, call) >= 0) return true;
  if (!mix_reserve(&graph->calls, capacity, graph->call_count + 1, sizeof *graph->calls) ||
      !mix_key_map_set(&graph->places, mix_address_key(call), graph->call_count))
    return false;
  graph->calls[graph->call_count++] = mix_retain(call);
  return true;
}

static bool is_input(const mix_functional *graph, const mix_layer_call *call) {
  for (int i = 0; i < graph->input_count; i++)
    if (mix_tensor_history(graph->inputs[i], &(int){0}) == call) return true;
  return false;
}

/* Sorts the calls as they were made, and notes where each stands. */
static bool place_calls(mix_functional *graph) {
  qsort(graph->calls, (size_t)graph->call_count, sizeof *graph->calls, by_sequence);
  graph->of_layer = mix_calloc((size_t)graph->call_count + 1, sizeof *graph->of_layer);
  bool good = graph->of_layer;
  for (int c = graph->call_count - 1; c >= 0 && good; c--) {
    const mix_layer_call *call = graph->calls[c];
    graph->of_layer[c].next = mix_functional_first_call(graph, call->layer);
    good = mix_key_map_set(&graph->places, mix_address_key(call), c) &&
           mix_key_map_set(&graph->places, mix_address_key(call->layer), c);
  }
  for (int c = 0; c < graph->call_count && good; c++) {
    const int next = graph->of_layer[c].next;
    if (next >= 0) graph->of_layer[next].number = graph->of_layer[c].number + 1;
  }
  return good;
}

/* Collects the calls that the outputs need, back to the inputs. */
static bool collect(mix_functional *graph) {
  int capacity = 0;
  for (int i = 0; i < graph->input_count; i++)
    if (!add_call(graph, &capacity, graph->inputs[i])) return false;
  for (int i = 0; i < graph->output_count; i++)
    if (!add_call(graph, &capacity, graph->outputs[i])) return false;
  for (int i = 0; i < graph->extra_count; i++)
    if (!add_call(graph, &capacity, graph->extras[i])) return false;
  for (int c = 0; c < graph->call_count; c++) {
    mix_layer_call *call = graph->calls[c];
    if (is_input(graph, call)) continue;
    if (!call->inputs)
      return mix_fail_value("model_new: the outputs need input '%s', which is not among the model's inputs",
                            mix_layer_name(call->layer));
    mix_list *const lists[] = {call->inputs, call->arguments, call->masks, call->initial_state,
                               call->keywords.argument_masks};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
      for (int i = 0; lists[l] && i < mix_list_count(lists[l]); i++) {
        mix_tensor *tensor = mix_list_get(lists[l], i);
        if (tensor && tensor->node->symbolic && !add_call(graph, &capacity, tensor)) return false;
      }
    mix_tensor *mask = call->keywords.attention_mask;
    if (mask && mask->node->symbolic && !add_call(graph, &capacity, mask)) return false;
  }
  return place_calls(graph);
}

/* ---- replay ---- */

/* The tensor of this call that a recorded tensor stands for. Non-symbolic tensors stand for themselves. */
static mix_tensor *mapped_tensor(const mix_functional *graph, mix_list *const *results, mix_tensor *tensor) {
  if (!tensor || !tensor->node->symbolic) return tensor;
  int output;
  int index = mix_functional_call_place(graph, mix_tensor_history(tensor, &output));
  return index >= 0 && results[index] ? mix_list_get(results[index], output) : NULL;
}

static mix_list *mapped_list(const mix_functional *graph, mix_list *const *results, mix_list *list) {
  if (!list) return NULL;
  mix_list *mapped = mix_list_like(list);
  for (int i = 0; i < mix_list_count(list); i++)
    mix_list_append_like(mapped, list, i, mapped_tensor(graph, results, mix_list_get(list, i)));
  return mapped;
}

/* The place of an input among those given: in a dict that of its name. -1 with the error recorded. */
static int place_of(const mix_functional *graph, const mix_layer *layer, const mix_list *given, int input) {
  if (!mix_list_is_dict(given)) return input;
  const char *name = mix_layer_name(mix_tensor_history(graph->inputs[input], &(int){0})->layer);
  for (int i = 0; i < mix_list_count(given); i++)
    if (!strcmp(mix_dict_name(given, i), name)) return i;
  mix_fail_value("%s: missing data for input '%s'", layer->name, name);
  return -1;
}

mix_tensor *mix_model_conform(mix_tensor *given, mix_shape wanted, mix_dtype dtype) {
  const mix_shape shape = given ? mix_tensor_shape(given) : wanted;
  mix_tensor *tensor = given;
  if (shape.rank == wanted.rank + 1 && shape.rank > 1 && shape.dims[shape.rank - 1] == 1)
    tensor = mix_squeeze(tensor, MIX_AXES(-1));
  else if (shape.rank > 0 && shape.rank == wanted.rank - 1 && wanted.dims[wanted.rank - 1] == 1)
    tensor = mix_expand_dims(tensor, -1);
  if (tensor && mix_tensor_dtype(tensor) != dtype) tensor = mix_cast(tensor, dtype);
  if (tensor && tensor != given && !tensor->mask) tensor->mask = mix_retain(given->mask);
  return tensor;
}

/* Input i of those given, as it is declared. */
static mix_tensor *conformed_input(const mix_functional *graph, mix_list *given, int place, int i) {
  const mix_tensor *input = graph->inputs[i];
  return mix_model_conform(mix_list_get(given, place), mix_tensor_shape(input), mix_tensor_dtype(input));
}

static mix_list *functional_call(mix_layer *layer, const mix_call_args *args) {
  mix_functional *graph = functional_of(layer);
  if (!mix_list_is_dict(args->inputs) && mix_list_count(args->inputs) != graph->input_count)
    return mix_fail_value("%s: %d inputs given; the model has %d", mix_layer_name(layer),
                          mix_list_count(args->inputs), graph->input_count);
  mix_list *inputs = mix_call_masked_inputs(args);
  mix_list **results = mix_calloc((size_t)graph->call_count + 1, sizeof *results);
  if (!results) return NULL;
  for (int i = 0; i < graph->input_count && !mix_failed(); i++) {
    int output, place = place_of(graph, layer, args->inputs, i),
                index = mix_functional_call_place(graph, mix_tensor_history(graph->inputs[i], &output));
    if (place >= 0) results[index] = mix_list_of(conformed_input(graph, inputs, place, i));
  }
  for (int c = 0; c < graph->call_count && !mix_failed(); c++) {
    mix_layer_call *call = graph->calls[c];
    if (results[c]) continue;
    mix_call_keywords keywords = call->keywords;
    keywords.argument_masks = mapped_list(graph, results, keywords.argument_masks);
    keywords.attention_mask = mapped_tensor(graph, results, keywords.attention_mask);
    results[c] = mix_layer_call_outputs(
        call->layer, mapped_list(graph, results, call->inputs), call->inputs_are_list,
        mapped_list(graph, results, call->arguments), mapped_list(graph, results, call->masks),
        mapped_list(graph, results, call->initial_state), call->training, &keywords);
  }
  mix_list *outputs = mix_failed() ? NULL : mix_list_new(0, NULL);
  for (int i = 0; i < graph->output_count && !mix_failed(); i++)
    mix_list_append(outputs, mapped_tensor(graph, results, graph->outputs[i]));
  mix_free(results);
  return mix_failed() ? NULL : outputs;
}

static void functional_finalize(mix_layer *layer) {
  mix_functional *graph = functional_of(layer);
  for (int i = 0; graph->inputs && i < graph->input_count; i++) mix_release(graph->inputs[i]);
  for (int i = 0; graph->outputs && i < graph->output_count; i++) mix_release(graph->outputs[i]);
  for (int i = 0; graph->extras && i < graph->extra_count; i++) mix_release(graph->extras[i]);
  for (int i = 0; i < graph->call_count; i++) mix_release(graph->calls[i]);
  mix_free(graph->inputs);
  mix_free(graph->outputs);
  mix_free(graph->extras);
  mix_free(graph->calls);
  mix_free(graph->of_layer);
  mix_key_map_clear(&graph->places);
  json_decref(graph->input_form);
  json_decref(graph->output_form);
}

const mix_layer_class mix_class_functional = {.size = sizeof(mix_layer_class),
                                              .name = "Functional",
                                              .instance_size = sizeof(mix_functional),
                                              .call = functional_call,
                                              .finalize = functional_finalize,
                                              .no_autocast = true};

/* ---- construction ---- */

/* Is each input the result of a separate call? */
static bool distinct_inputs(mix_list *inputs) {
  for (int i = 0; i < mix_list_count(inputs); i++)
    for (int before = 0; before < i; before++)
      if (mix_tensor_history(mix_list_get(inputs, i), &(int){0}) ==
          mix_tensor_history(mix_list_get(inputs, before), &(int){0}))
        return mix_fail_value(
            "model_new: inputs %d and %d are the same tensor or results of one call; expected different "
            "mix_input tensors",
            before, i);
  return true;
}

static mix_tensor **retained_tensors(mix_list *list) {
  int count = mix_list_count(list);
  mix_tensor **tensors = mix_calloc((size_t)count + 1, sizeof *tensors);
  for (int i = 0; tensors && i < count; i++) tensors[i] = mix_retain(mix_list_get(list, i));
  return tensors;
}

static json_t *form_of(void *given, int count) {
  if (!mix_is(given, &mix_list_class)) return mix_operand_form(0);
  json_t *list = json_array();
  for (int i = 0; i < count; i++) mix_json_append(list, mix_operand_form(i));
  return list;
}

static bool symbolic_all(mix_list *list, const char *what) {
  if (mix_list_count(list) < 1 || mix_list_count(list) > MIX_MODEL_MAX)
    return mix_fail_value("model_new: %d %s; expected 1 to %d", mix_list_count(list), what, MIX_MODEL_MAX);
  for (int i = 0; i < mix_list_count(list); i++)
    if (!mix_tensor_is_symbolic(mix_list_get(list, i)))
      return mix_fail_value(
          "model_new: %s %d holds data; expected what mix_input returned or was computed from it by layers",
          what, i);
  return true;
}

static bool is_name_before(const mix_functional *graph, int output, const char *name) {
  bool found = false;
  for (int i = 0; i < output; i++) found |= !strcmp(graph->output_names[i], name);
  return found;
}

/* Those of the layers; in tf_keras a second output of one layer is "lstm_1", or the next that is free. */
static bool name_outputs(mix_functional *graph, const mix_semantics *semantics) {
  for (int i = 0; i < graph->output_count && !mix_failed(); i++) {
    const char *layer = mix_tensor_history(graph->outputs[i], NULL)->layer->name, *name = layer;
    for (int n = 1; name && semantics->output_names_unique && is_name_before(graph, i, name); n++) {
      mix_text text = {.grows = true};
      mix_text_put(&text, "%s_%d", layer, n);
      name = text.failed ? NULL : mix_intern(text.text);
      mix_free(text.text);
    }
    graph->output_names[i] = name;
  }
  return !mix_failed();
}

mix_model *mix_model_with(const mix_model_options *options) { return mix_model_with_extras(options, NULL); }

mix_model *mix_model_with_extras(const mix_model_options *given, mix_list *extras) {
  MIX_OPTIONS(mix_model_options, options, given, "model_new");
  mix_list *inputs = mix_tensors_given(options.inputs, "model_new", "inputs");
  mix_list *outputs = inputs ? mix_tensors_given(options.outputs, "model_new", "outputs") : NULL;
  if (!outputs || !symbolic_all(inputs, "inputs") || !symbolic_all(outputs, "outputs") ||
      !distinct_inputs(inputs))
    return NULL;
  const mix_semantics *semantics = mix_semantics_or_current(options.semantics);
  mix_layer_common common = {.name = options.name ? options.name
                                                  : mix_unique_name(semantics->functional_name, false),
                             .semantics = semantics};
  mix_layer *layer = mix_scoped(mix_layer_make(&mix_class_functional, &common, NULL, "model_new"));
  if (!layer) return NULL;
  mix_functional *graph = functional_of(layer);
  graph->inputs = retained_tensors(inputs);
  graph->outputs = retained_tensors(outputs);
  graph->input_count = mix_list_count(inputs);
  graph->output_count = mix_list_count(outputs);
  graph->extras = extras ? retained_tensors(extras) : NULL;
  graph->extra_count = graph->extras ? mix_list_count(extras) : 0;
  graph->input_form = form_of(options.inputs, graph->input_count);
  graph->output_form = form_of(options.outputs, graph->output_count);
  if (!graph->inputs || !graph->outputs || !collect(graph)) return NULL;
  if (!name_outputs(graph, semantics) || !mix_functional_add_layers(layer, graph)) return NULL;
  layer->built = true;
  return mix_model_wrap(layer, MIX_FUNCTIONAL);
}
