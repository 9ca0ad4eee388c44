/* Models as graphs: a box for each call of a layer, with its shape, dtype and parameters. */
#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "base/text.h"
#include "cli/drawing/drawing.h"

enum { MAX_NODES = 1 << 18, NAME_LETTERS = 48, CLASS_LETTERS = 40 };

int drawing_add_node(drawing *d) {
  if (d->node_count == MAX_NODES) {
    mix_fail(MIX_VALUE_ERROR,
             "the model is too large to be drawn: more than %d layers and edges between ranks", MAX_NODES);
    return -1;
  }
  if (!mix_reserve(&d->nodes, &d->node_capacity, d->node_count + 1, sizeof *d->nodes)) return -1;
  d->nodes[d->node_count] = (drawing_node){0};
  return d->node_count++;
}

bool drawing_add_edge(drawing *d, int from, int to) {
  if (!mix_reserve(&d->edges, &d->edge_capacity, d->edge_count + 1, sizeof *d->edges)) return false;
  d->edges[d->edge_count++] = (drawing_edge){from, to};
  return true;
}

void drawing_free(drawing *d) {
  mix_free(d->nodes);
  mix_free(d->edges);
}

int drawing_line_count(const drawing_node *node) {
  int count = 0;
  while (count < DRAWING_LINES && node->lines[count][0]) count++;
  return count;
}

/* ---- boxes ---- */

static uint32_t colour_of(mix_dtype dtype) {
  switch (dtype) {
  case MIX_FLOAT16: return 0xb7e1a1;
  case MIX_BFLOAT16: return 0xfff2a8;
  case MIX_FLOAT32: return 0xc9dcf2;
  case MIX_FLOAT64: return 0xd9c7ee;
  default: return 0xffffff;
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

/* Control characters would break the lines. */
static void clean(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ') *text = ' ';
}

static int add_box(drawing *d, mix_layer *layer, int call, int count, const mix_shape *shapes) {
  const int index = drawing_add_node(d);
  if (index < 0) return -1;
  drawing_node *node = &d->nodes[index];
  mix_text title = {.text = node->lines[0], .size = sizeof node->lines[0]},
           shape = {.text = node->lines[1], .size = sizeof node->lines[1]};
  const char *name = mix_layer_name(layer), *class = mix_layer_class_name(layer);
  mix_text_put(&title, "%.*s (%.*s)", (int)mix_letters_bytes(name, NAME_LETTERS), name,
               (int)mix_letters_bytes(class, CLASS_LETTERS), class);
  if (call) mix_text_put(&title, ", call %d", call + 1);
  mix_mark_cut(node->lines[0], sizeof node->lines[0], title.used);
  for (int i = 0; i < count && i < 2; i++) {
    mix_text_put(&shape, i ? ", " : "");
    put_shape(&shape, shapes[i]);
  }
  mix_text_put(&shape, "%s%s%s", count > 2 ? ", ..." : "", count ? " " : "",
               mix_dtype_name(mix_layer_compute_dtype(layer)));
  int64_t parameters = 0;
  mix_list *weights = mix_layer_weights(layer);
  for (int i = 0; i < mix_list_count(weights); i++)
    parameters += mix_shape_size(mix_variable_shape(mix_list_get(weights, i)));
  if (parameters) snprintf(node->lines[2], sizeof node->lines[2], "%lld parameters", (long long)parameters);
  for (int i = 0; i < DRAWING_LINES; i++) clean(node->lines[i]);
  node->colour = colour_of(mix_layer_compute_dtype(layer));
  return mix_failed() ? -1 : index;
}

/* ---- models ---- */

/* The boxes are in the order of the calls, so a call's index is that of its box. */
static bool add_calls(drawing *d, const mix_functional *graph) {
  for (int c = 0; c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    if (add_box(d, call->layer, mix_functional_call_number(graph, call), call->output_count, call->shapes) <
        0)
      return false;
    mix_list *const lists[] = {call->inputs, call->arguments, call->masks, call->initial_state};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
      for (int i = 0; i < mix_list_count(lists[l]); i++) {
        const int source =
            mix_functional_call_place(graph, mix_tensor_history(mix_list_items(lists[l])[i], &(int){0}));
        if (source >= 0 && !drawing_add_edge(d, source, c)) return false;
      }
  }
  return true;
}

/* Layers in order; what a subclassed model does with them is not known. */
static bool add_layers(drawing *d, const mix_model *model) {
  const bool chain = model->kind == MIX_SEQUENTIAL;
  mix_shape shape = mix_model_input_shape(model, 0);
  if (chain && shape.rank < 1) shape = model->input_shape;
  for (int i = 0; i < mix_list_count(model->layer->layers); i++) {
    mix_layer *layer = mix_list_get(model->layer->layers, i);
    if (chain && shape.rank > 0 && !layer->is_input) shape = mix_layer_output_shape(layer, shape);
    if (add_box(d, layer, 0, chain && shape.rank > 0, &shape) < 0) return false;
    d->nodes[i].rank = i;
    if (chain && i && !drawing_add_edge(d, i - 1, i)) return false;
  }
  return true;
}

bool drawing_of_model(drawing *d, mix_model *model) {
  *d = (drawing){0};
  return (model->kind == MIX_FUNCTIONAL ? add_calls(d, mix_layer_data(model->layer))
                                        : add_layers(d, model)) &&
         !mix_failed();
}
