/* mix_model_export: captures the model's prediction for a few batches, and writes the graph as ONNX. */
#include <mixtape/export.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/float_modes.h"
#include "compile/function.h"
#include "compile/pass_pipeline.h"
#include "model/model.h"
#include "onnx/emit_graph.h"
#include "onnx/export_file.h"
#include <stdio.h>
#include <string.h>

#define CALL "mix_model_export"
/* A file of protobuf has at most 2^31 bytes, of which the graph takes some. */
static const int64_t external_bytes = (INT64_C(1) << 31) - (INT64_C(1) << 26);

static mix_list *predict(void *context, mix_list *arguments) {
  mix_model *model = context;
  const bool one = mix_list_count(arguments) == 1;
  const mix_model_call_options call = {.size = sizeof call,
                                       .inputs = one ? mix_list_get(arguments, 0) : (void *)arguments,
                                       .training = MIX_FALSE};
  return mix_model_call_outputs_with(model, &call);
}

/* ---- the graphs ---- */

/* Inputs of a batch; a model whose batch is fixed has that. */
static mix_list *inputs_of(mix_model *model, int64_t batch) {
  mix_list *list = mix_list_new(0, NULL);
  for (int i = 0; i < mix_model_input_count(model) && !mix_failed(); i++) {
    mix_shape shape = mix_model_input_shape(model, i);
    if (shape.rank < 1)
      return mix_fail_value(CALL ": input %d of '%s' has no known shape; build the model first", i,
                            mix_model_name(model));
    if (shape.dims[0] < 0) shape.dims[0] = batch;
    for (int d = 1; d < shape.rank; d++)
      if (shape.dims[d] < 0)
        return mix_fail_value(CALL ": input '%s' of '%s' has an axis %d of any size; only the batch, axis 0, "
                                   "may be of any",
                              mix_model_input_name(model, i), mix_model_name(model), d);
    mix_list_append(list, mix_fill(shape, 0, mix_model_input_dtype(model, i)));
  }
  return mix_failed() ? NULL : list;
}

/* Passes that leave the operations as layers made them, and none that looks at sizes. */
static bool simplify(mix_ir *ir) {
  static const char *const passes[] = {"hoist_invariants", "expand_einsum", "remove_identities",
                                       "simplify_casts",   "cse",           "dce"};
  for (size_t i = 0; i < sizeof passes / sizeof *passes; i++)
    if (!mix_passes_run_one(ir, passes[i])) return false;
  return true;
}

static mix_ir *capture(mix_model *model, int64_t batch) {
  const mix_function_options options = {
      .size = sizeof options, .body = predict, .context = model, .name = "export"};
  mix_list *inputs = inputs_of(model, batch);
  mix_function *function = inputs ? mix_function_with(&options) : NULL;
  mix_ir *ir = function ? mix_function_capture(function, inputs) : NULL;
  if (ir && simplify(ir)) return ir;
  mix_ir_free(ir);
  return NULL;
}

static bool assigns(const mix_ir *ir, const mix_model *model) {
  for (int i = 0; i < ir->variable_count; i++)
    if (ir->variables[i].exit != ir->variables[i].entry)
      return !mix_fail_unsupported(CALL ": '%s' changes '%s' as it predicts; graphs of ONNX keep no state",
                                   mix_model_name(model), ir->variables[i].variable->name);
  return false;
}

/* ---- the graph's message ---- */

/* Names of the inputs, which are declared. */
static bool put_inputs(mix_onnx_emitter *e, mix_model *model, mix_message *graph) {
  const mix_ir *ir = e->ir;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->source != MIX_IR_ARGUMENT) continue;
    char unnamed[24];
    const char *name = mix_model_input_name(model, node->index);
    snprintf(unnamed, sizeof unnamed, "input_%d", node->index);
    e->values[node->first_output] = mix_intern(name ? name : unnamed);
    if (!node->index) e->first = e->values[node->first_output];
  }
  for (int i = 0; i < ir->argument_count; i++)
    for (int n = 0; n < ir->node_count; n++) {
      const mix_ir_node *node = &ir->nodes[n];
      if (node->source != MIX_IR_ARGUMENT || node->index != i) continue;
      const mix_type type = ir->values[node->first_output].type;
      mix_onnx_size sizes[MIX_MAX_RANK];
      for (int d = 0; d < type.shape.rank; d++) sizes[d] = mix_onnx_axis(e, node->first_output, d);
      mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_INPUT, e->values[node->first_output], type.dtype,
                         type.shape.rank, sizes);
    }
  return !e->failed && !mix_failed();
}

static bool put_outputs(mix_onnx_emitter *e, mix_message *graph, mix_message *nodes) {
  const mix_ir *ir = e->ir;
  for (int r = 0; r < ir->result_count; r++) {
    const int value = ir->results[r];
    const mix_type type = ir->values[value].type;
    mix_onnx_size sizes[MIX_MAX_RANK];
    char name[32] = "Identity:0";
    const char *own = name, *from = mix_onnx_value_name(e, value);
    if (r) snprintf(name, sizeof name, "Identity_%d:0", r);
    for (int d = 0; d < type.shape.rank; d++) sizes[d] = mix_onnx_axis(e, value, d);
    mix_onnx_put_node(e, nodes, "Identity", 1, &from, 1, &own);
    mix_onnx_put_value(e, graph, MIX_ONNX_GRAPH_OUTPUT, name, mix_onnx_written(e, type.dtype),
                       type.shape.rank, sizes);
  }
  return !e->failed && !mix_failed();
}

static bool make_graph(mix_onnx_emitter *e, mix_model *model, mix_message *graph, mix_message *nodes) {
  mix_message_text(graph, MIX_ONNX_GRAPH_NAME, mix_model_name(model));
  const bool good = put_inputs(e, model, graph) && mix_onnx_emit_nodes(e) && put_outputs(e, graph, nodes);
  mix_message_append(graph, &e->prologue);
  mix_message_append(graph, nodes);
  return good && !graph->failed;
}

/* ---- the whole ---- */

typedef struct graphs {
  mix_ir *of[MIX_ONNX_BATCHES];
} graphs;

static bool export_graphs(mix_model *model, const mix_export_options *options, graphs *g) {
  mix_ir *ir = g->of[0];
  mix_message graph = {0}, nodes = {0};
  mix_onnx_emitter e = {.root = ir,
                        .ir = ir,
                        .others = {g->of[1], g->of[2]},
                        .values = mix_ir_array(ir, ir->value_count + 1, sizeof *e.values),
                        .nodes = &nodes,
                        .call = CALL,
                        .widens = options->widen,
                        .folds = options->fold_normalization,
                        .keeps_weights = options->weights == MIX_EXPORT_FLOAT32,
                        .attention = options->attention,
                        .graph = mix_onnx_emit_nodes};
  e.opset = options->opset ? options->opset : mix_onnx_default_opset(&e, ir);
  for (int i = 0; i < MIX_ONNX_BATCHES; i++) e.batches[i] = g->of[i]->values[0].shape.dims[0];
  bool good = e.values && make_graph(&e, model, &graph, &nodes);
  const mix_onnx_export_file file = {.call = CALL,
                                     .path = options->path,
                                     .opset = e.opset,
                                     .graph = &graph,
                                     .tensors = e.tensors,
                                     .tensor_count = e.tensor_count,
                                     .external_bytes =
                                         options->external_bytes ? options->external_bytes : external_bytes};
  good = good && mix_onnx_write(&file);
  mix_message_free(&graph);
  mix_message_free(&nodes);
  mix_message_free(&e.prologue);
  mix_message_free(&e.attributes);
  mix_free(e.tensors);
  return good;
}

/* Batches that no size of a model is likely to be. */
static bool capture_all(mix_model *model, int64_t batch, graphs *g) {
  static const int64_t batches[MIX_ONNX_BATCHES] = {1009, 1013, 1021};
  for (int i = 0; i < MIX_ONNX_BATCHES; i++) {
    g->of[i] = capture(model, batch ? batch : batches[i]);
    if (!g->of[i] || assigns(g->of[i], model)) return false;
    if (i && !mix_onnx_same_graph(g->of[0], g->of[i]))
      return mix_fail_unsupported(
          CALL ": '%s' computes batches of other sizes by other operations; .batch (--batch N) fixes it",
          mix_model_name(model));
  }
  return true;
}

static void export_model(mix_model *model, const mix_export_options *options) {
  graphs g = {{NULL}};
  if (capture_all(model, options->batch, &g)) export_graphs(model, options, &g);
  for (int i = 0; i < MIX_ONNX_BATCHES; i++) mix_ir_free(g.of[i]);
}

static bool options_valid(const mix_export_options *options) {
  const size_t length = options->path ? strlen(options->path) : 0;
  if (!options->path) return mix_fail_type(CALL ": path is NULL");
  if (length < 6 || strcmp(options->path + length - 5, ".onnx"))
    return mix_fail_value(CALL ": path is '%s'; expected a name that ends in .onnx", options->path);
  if (options->opset && (options->opset < MIX_ONNX_OLDEST_OPSET || options->opset > MIX_ONNX_NEWEST_OPSET))
    return mix_fail_value(CALL ": opset is %d; expected %d to %d, or 0 for what the model needs",
                          options->opset, MIX_ONNX_OLDEST_OPSET, MIX_ONNX_NEWEST_OPSET);
  if (options->batch < 0)
    return mix_fail_value(CALL ": batch is %lld; expected a number of examples, or 0 for any",
                          (long long)options->batch);
  if (options->weights != MIX_EXPORT_COMPUTE && options->weights != MIX_EXPORT_FLOAT32)
    return mix_fail_value(CALL ": weights is %d; expected MIX_EXPORT_COMPUTE or MIX_EXPORT_FLOAT32",
                          (int)options->weights);
  if (options->attention != MIX_EXPORT_PRODUCTS && options->attention != MIX_EXPORT_OPERATOR)
    return mix_fail_value(CALL ": attention is %d; expected MIX_EXPORT_PRODUCTS or MIX_EXPORT_OPERATOR",
                          (int)options->attention);
  return true;
}

mix_status mix_model_export_with(mix_model *model, const mix_export_options *given) {
  MIX_OWN_FLOAT_MODES;
  mix_export_options options;
  if (!mix_model_given(model, CALL)) return mix_error();
  if (!given || !mix_options_copy(&options, sizeof options, given, CALL))
    return mix_failed() ? mix_error() : mix_fail_status(MIX_TYPE_ERROR, CALL ": no options");
  if (!options_valid(&options)) return mix_error();
  MIX_MODEL_USE(model, MIX_READS_MODEL, CALL)
  MIX_SCOPE { export_model(model, &options); }
  return mix_error();
}
