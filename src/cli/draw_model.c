/* Models in graphviz's language: a box for each call of a layer, with its shape, dtype and parameters. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "cli/cli.h"
#include "model/model.h"

enum { NAME_LETTERS = 48, CLASS_LETTERS = 40 };

static const char *colour_of(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: return "#b7e1a1";
  case MIX_BFLOAT16: return "#fff2a8";
  case MIX_FLOAT32: return "#c9dcf2";
  case MIX_FLOAT64: return "#d9c7ee";
  default: return "#ffffff";
  }
}

static void put_shape(mix_text *out, mix_shape shape) {
  mix_text_put(out, "(");
  for (int i = 0; i < shape.rank; i++)
    if (shape.dims[i] < 0)
      mix_text_put(out, "%sNone", i ? ", " : "");
    else
      mix_text_put(out, "%s%lld", i ? ", " : "", (long long)shape.dims[i]);
  mix_text_put(out, ")");
}

static void put_title(mix_text *out, mix_layer *layer, int call) {
  char title[256];
  mix_text text = {.text = title, .size = sizeof title};
  const char *name = mix_layer_name(layer), *class = mix_layer_class_name(layer);
  mix_text_put(&text, "%.*s (%.*s)", (int)mix_letters_bytes(name, NAME_LETTERS), name,
               (int)mix_letters_bytes(class, CLASS_LETTERS), class);
  if (call) mix_text_put(&text, ", call %d", call + 1);
  mix_mark_cut(title, sizeof title, text.used);
  mix_text_put_dot(out, title);
}

static void put_box(mix_text *out, int index, mix_layer *layer, int call, int count,
                    const mix_shape *shapes) {
  const mix_dtype dtype = mix_layer_compute_dtype(layer);
  mix_text_put(out, "  n%d [fillcolor=\"%s\" label=\"", index, colour_of(dtype));
  put_title(out, layer, call);
  mix_text_put(out, "\\n");
  for (int i = 0; i < count && i < 2; i++) {
    mix_text_put(out, i ? ", " : "");
    put_shape(out, shapes[i]);
  }
  mix_text_put(out, "%s%s%s", count > 2 ? ", ..." : "", count ? " " : "", mix_dtype_name(dtype));
  int64_t parameters = 0;
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++)
    parameters += mix_shape_size(mix_variable_shape(mix_list_get(weights, i)));
  if (parameters) mix_text_put(out, "\\n%lld parameters", (long long)parameters);
  mix_text_put(out, "\"];\n");
}

static int put_calls(mix_text *out, const mix_functional *graph) {
  for (int c = 0; c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    put_box(out, c, call->layer, mix_functional_call_number(graph, call), call->output_count, call->shapes);
    mix_list *const lists[] = {call->inputs, call->arguments, call->masks, call->initial_state};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
      for (int i = 0; i < mix_list_count(lists[l]); i++) {
        const int source =
            mix_functional_call_place(graph, mix_tensor_history(mix_list_items(lists[l])[i], &(int){0}));
        if (source >= 0) mix_text_put(out, "  n%d -> n%d;\n", source, c);
      }
  }
  return graph->call_count;
}

/* One below the other. What a subclassed model does is not known: its edges are invisible. */
static int put_layers(mix_text *out, const mix_model *model) {
  const bool chain = model->kind == MIX_SEQUENTIAL;
  const int count = mix_list_count(model->layer->layers);
  mix_shape shape = mix_model_input_shape(model, 0);
  if (chain && shape.rank < 1) shape = model->input_shape;
  for (int i = 0; i < count; i++) {
    mix_layer *layer = mix_list_get(model->layer->layers, i);
    if (chain && shape.rank > 0 && !layer->is_input) shape = mix_layer_output_shape(layer, shape);
    put_box(out, i, layer, 0, chain && shape.rank > 0, &shape);
    if (i) mix_text_put(out, "  n%d -> n%d%s;\n", i - 1, i, chain ? "" : " [style=invis]");
  }
  return count;
}

bool cli_draw_model(const char *path, mix_model *model) {
  mix_text out = {.grows = true};
  mix_text_put(&out, "digraph model {\n  node [shape=box style=filled fontname=\"Helvetica\" fontsize=10];\n"
                     "  edge [color=\"#606060\"];\n");
  const int boxes =
      model->kind == MIX_FUNCTIONAL ? put_calls(&out, mix_layer_data(model->layer)) : put_layers(&out, model);
  mix_text_put(&out, "}\n");
  const bool good = !mix_failed() && cli_draw("summary", path, out.text, boxes);
  mix_free(out.text);
  return good;
}
