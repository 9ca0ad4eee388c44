/* The summary as Keras prints it: layer and type, output shape, parameters, and where layers are connected.
 */
#include "model/model.h"
#include "model/summary_table.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/format.h"
#include "base/number.h"
#include "optim/optimizer.h"
#include <mixtape/device.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* the batch for which large products are described, since a model has no batch size */
enum { EXAMPLES = 1024 };
enum { LISTED = 8 }; /* layers */

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

static void find_main_layer(mix_layer *layer, mix_layer **found, int64_t *most) {
  const int64_t count = layer->is_model ? 0 : parameters(mix_layer_weights(layer));
  if (count > *most) *found = layer, *most = count;
  for (int i = 0; layer->is_model && i < mix_list_count(layer->layers); i++)
    find_main_layer(mix_list_get(layer->layers, i), found, most);
}

mix_layer *mix_model_main_layer(mix_model *model) {
  mix_layer *found = NULL;
  int64_t most = 0;
  find_main_layer(model->layer, &found, &most);
  return found;
}

/* ---- cells ---- */

/* A summary as it is written: the text, and the cells of the present row. */
typedef struct summary {
  mix_model *model;
  bool boxes; /* Keras 3's; else tf_keras's */
  mix_summary_table table;
  mix_text cells[MIX_SUMMARY_COLUMNS];
} summary;

static void clear_cells(summary *s) {
  for (int i = 0; i < MIX_SUMMARY_COLUMNS; i++) {
    s->cells[i].used = 0;
    mix_text_put(&s->cells[i], "%s", "");
  }
}

static void put_row(summary *s) {
  const char *cells[MIX_SUMMARY_COLUMNS];
  for (int i = 0; i < MIX_SUMMARY_COLUMNS; i++) {
    if (s->cells[i].failed) return;
    cells[i] = s->cells[i].text;
  }
  mix_summary_table_row(&s->table, cells);
}

/* "(None, 4)"; tf_keras writes tuples of one as Python does. */
static void put_shape(const summary *s, mix_text *out, mix_shape shape) {
  mix_text_put(out, "(");
  for (int i = 0; i < shape.rank; i++) {
    mix_text_put(out, i ? ", " : "");
    if (shape.dims[i] < 0)
      mix_text_put(out, "None");
    else
      mix_text_put(out, "%lld", (long long)shape.dims[i]);
  }
  mix_text_put(out, shape.rank == 1 && !s->boxes ? ",)" : ")");
}

/* tf_keras lists even the only shape of an input. */
static void put_shapes(summary *s, const mix_layer *layer, int count, const mix_shape *shapes) {
  mix_text *out = &s->cells[1];
  const bool listed = count > 1 || (layer->is_input && !s->boxes);
  if (count < 1 || shapes[0].rank < 0) {
    mix_text_put(out, "?");
    return;
  }
  if (listed) mix_text_put(out, "[");
  for (int i = 0; i < count; i++) {
    if (i) mix_text_put(out, ", ");
    put_shape(s, out, shapes[i]);
  }
  if (listed) mix_text_put(out, "]");
}

/* "1,234" in boxes. */
static void put_count(const summary *s, mix_text *out, int64_t count) {
  char digits[24];
  const int length = snprintf(digits, sizeof digits, "%lld", (long long)count);
  for (int i = 0; i < length; i++)
    mix_text_put(out, "%s%c", s->boxes && i && (length - i) % 3 == 0 ? "," : "", digits[i]);
}

static void begin_row(summary *s, mix_layer *layer) {
  clear_cells(s);
  mix_text_put(&s->cells[0], "%s (%s)", MIX_PRINTABLE(mix_layer_name(layer)),
               MIX_PRINTABLE(mix_layer_keras_name(layer)));
  put_count(s, &s->cells[2], layer->built || layer->is_input ? parameters(mix_layer_weights(layer)) : 0);
  if (!layer->built && !layer->is_input) mix_text_put(&s->cells[2], s->boxes ? " (unbuilt)" : " (unused)");
}

/* ---- functional models ---- */

static bool takes_one(const mix_layer_call *call) {
  mix_list *const lists[] = {call->inputs, call->arguments, call->masks, call->initial_state};
  int count = 0;
  for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
    for (int i = 0; i < mix_list_count(lists[l]); i++) count += mix_list_items(lists[l])[i] != NULL;
  return count == 1;
}

/* A chain of calls has no column of connections. */
static bool is_chain(const mix_functional *graph) {
  for (int c = 1; c < graph->call_count; c++) {
    const mix_layer_call *call = graph->calls[c];
    if (!call->inputs || !takes_one(call)) return false;
    if (mix_tensor_history(mix_list_get(call->inputs, 0), NULL) != graph->calls[c - 1]) return false;
    if (mix_functional_first_call(graph, call->layer) < c) return false;
  }
  return true;
}

/* ['tower[0][0]', 'tower[1][0]']; in boxes without marks. */
static void put_connections(summary *s, const mix_functional *graph, const mix_layer *layer) {
  mix_text *out = &s->cells[3];
  int count = 0;
  if (!s->boxes) mix_text_put(out, "[");
  for (int c = mix_functional_first_call(graph, layer); c >= 0; c = mix_functional_next_call(graph, c)) {
    const mix_layer_call *call = graph->calls[c];
    if (!call->inputs) continue;
    mix_list *const lists[] = {call->inputs, call->arguments, call->masks, call->initial_state};
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++)
      for (int i = 0; i < mix_list_count(lists[l]); i++) {
        int output = 0;
        const mix_layer_call *source = mix_tensor_history(mix_list_items(lists[l])[i], &output);
        if (!source) continue;
        mix_text_put(out, s->boxes ? "%s%s[%d][%d]" : "%s'%s[%d][%d]'", count++ ? ", " : "",
                     MIX_PRINTABLE(mix_layer_name(source->layer)), mix_functional_call_number(graph, source),
                     output);
      }
  }
  if (!s->boxes)
    mix_text_put(out, "]");
  else if (!count)
    mix_text_put(out, "-");
}

static bool same_shapes(const mix_layer_call *a, const mix_layer_call *b) {
  if (a->output_count != b->output_count) return false;
  for (int i = 0; i < a->output_count; i++)
    if (!mix_shape_equal(a->shapes[i], b->shapes[i])) return false;
  return true;
}

/* The shapes of the last call; tf_keras prints no shapes where calls differ. */
static void put_call_shapes(summary *s, const mix_functional *graph, const mix_layer *layer) {
  const mix_layer_call *last = NULL;
  bool differ = false;
  for (int c = mix_functional_first_call(graph, layer); c >= 0; c = mix_functional_next_call(graph, c)) {
    const mix_layer_call *call = graph->calls[c];
    differ |= last && !same_shapes(last, call);
    last = call;
  }
  if (differ && !s->boxes)
    mix_text_put(&s->cells[1], "multiple");
  else
    put_shapes(s, layer, last->output_count, last->shapes);
}

static void put_functional(summary *s) {
  const mix_functional *graph = mix_layer_data(s->model->layer);
  mix_list *layers = s->model->layer->layers;
  for (int i = 0; i < mix_list_count(layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(layers, i);
    begin_row(s, layer);
    put_call_shapes(s, graph, layer);
    put_connections(s, graph, layer);
    put_row(s);
  }
}

/* ---- other models ---- */

/* Shapes follow from the build shape or the first call; before that they are unknown. */
static void put_chain(summary *s) {
  mix_model *model = s->model;
  mix_shape shape = model->input_shape.rank ? model->input_shape : *(const mix_shape *)model->layer->data;
  if (shape.rank) shape.dims[0] = MIX_UNKNOWN;
  for (int i = 0; i < mix_list_count(model->layer->layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(model->layer->layers, i);
    if (layer->is_input) continue;
    if (shape.rank) shape = mix_layer_output_shape(layer, shape);
    begin_row(s, layer);
    put_shapes(s, layer, shape.rank > 0, &shape);
    put_row(s);
  }
}

/* What a call function does with its layers is not known. */
static void put_layers(summary *s) {
  for (int i = 0; i < mix_list_count(s->model->layer->layers) && !mix_failed(); i++) {
    mix_layer *layer = mix_list_get(s->model->layer->layers, i);
    begin_row(s, layer);
    put_shapes(s, layer, 0, NULL);
    put_row(s);
  }
}

/* ---- totals ---- */

static void put_total(summary *s, const char *what, int64_t count, size_t size) {
  static const char *const units[] = {NULL, "KB", "MB", "GB", "TB", "PB"};
  double scaled = (double)size;
  int unit = 0;
  for (; scaled >= 1024 && unit < 5; unit++) scaled /= 1024;
  mix_text_put(s->table.out, "%s%s: ", s->boxes ? " " : "", what);
  put_count(s, s->table.out, count);
  mix_text_put(s->table.out, " (%.2f %s)\n", scaled, unit ? units[unit] : s->boxes ? "B" : "Byte");
}

/* Keras 3 counts the optimizer's state too. */
static void put_totals(summary *s) {
  mix_list *trainable = mix_model_trainable_variables(s->model),
           *others = mix_model_non_trainable_variables(s->model);
  mix_optimizer *optimizer = mix_model_optimizer(s->model);
  mix_list *state = s->boxes && optimizer && mix_optimizer_plain(optimizer)->built
                        ? mix_optimizer_variables(optimizer)
                        : NULL;
  put_total(s, "Total params", parameters(trainable) + parameters(others) + parameters(state),
            bytes(trainable) + bytes(others) + bytes(state));
  put_total(s, "Trainable params", parameters(trainable), bytes(trainable));
  put_total(s, "Non-trainable params", parameters(others), bytes(others));
  if (state) put_total(s, "Optimizer params", parameters(state), bytes(state));
}

/* ---- the call ---- */

/* As Python's shutil.get_terminal_size: COLUMNS, then the terminal, then 80. */
static int terminal_columns(void) {
  const char *given = getenv("COLUMNS");
  struct winsize size;
  int64_t columns;
  if (given && mix_integer_read(given, &columns) && columns > 0)
    return columns < 10000 ? (int)columns : 10000;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

static void put_table(summary *s, mix_text *out) {
  const bool connected = s->model->kind == MIX_FUNCTIONAL && !is_chain(mix_layer_data(s->model->layer));
  mix_text_put(out, "Model: \"%s\"\n", MIX_PRINTABLE(mix_model_name(s->model)));
  s->table = mix_summary_table_begin(out, s->boxes, connected, terminal_columns());
  if (s->model->kind == MIX_SEQUENTIAL)
    put_chain(s);
  else if (s->model->kind == MIX_FUNCTIONAL)
    put_functional(s);
  else
    put_layers(s);
  mix_summary_table_end(&s->table);
  put_totals(s);
  mix_summary_table_close(&s->table);
}

static const char *policy_text(const mix_policy *policy) {
  const char *name = mix_policy_name(policy);
  return name ? name : "unnamed";
}

/* Appends the first layers, and those in them, that have another policy than most. */
static void put_other_policies(const mix_layer *outer, const mix_policy *most, mix_text *out, int *others) {
  for (int i = 0; i < mix_list_count(outer->layers) && *others < LISTED; i++) {
    const mix_layer *layer = mix_list_get(outer->layers, i);
    if (layer->is_input || layer->is_model || layer->policy->map) continue;
    if (strcmp(policy_text(layer->policy), policy_text(most))) {
      const char *name = outer->is_model || !layer->path ? layer->name : layer->path;
      mix_text_put(out, "%s%s %s", *others ? ", " : " (", MIX_PRINTABLE(name), policy_text(layer->policy));
      if (++*others == LISTED) mix_text_put(out, ", ...");
    }
    if (layer->kind && layer->kind->call_is_attention) put_other_policies(layer, most, out, others);
  }
}

/* The policy of most of the model, and the first layers that have another. */
static void put_policies(mix_model *model, const mix_policy *most, mix_text *out) {
  int others = 0;
  mix_text_put(out, "Policy: %s", policy_text(most));
  put_other_policies(model->layer, most, out, &others);
  if (others) mix_text_put(out, ")");
}

/* Of the layers with a map, each with its path there; those that never get a path have the default. */
static void put_matched_policies(const mix_layer *layer, mix_text *out, bool *begun) {
  if (layer->policy->map && !layer->is_model && !layer->is_input) {
    if (!*begun) mix_text_put(out, "Policies by layer:\n");
    *begun = true;
    mix_text_put(out, "  %-30s ", MIX_PRINTABLE(layer->map_path ? layer->map_path : layer->name));
    mix_text_put(out, "%s%s\n", policy_text(mix_layer_own_policy(layer)),
                 layer->map_path ? "" : " (no path: the default)");
  }
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    put_matched_policies(mix_list_get(layer->layers, i), out, begun);
}

static void put_arithmetic(mix_model *model, mix_text *out) {
  char products[512];
  const mix_layer *layer = mix_model_main_layer(model);
  const mix_policy *policy = layer ? layer->policy : mix_model_policy(model);
  const mix_dtype dtype = layer ? layer->compute : mix_policy_compute_dtype(policy);
  const mix_kernel_info info = mix_model_kernel_info(model, dtype, EXAMPLES);
  put_policies(model, policy, out);
  mix_text_put(out, "; device: %s; accumulation: %s\n", mix_device(), info.accumulation);
  mix_text_put(out, "Large products in %s: %s (the largest, of %d examples)\n", mix_dtype_name(dtype),
               mix_kernel_info_text(&info, products, sizeof products), EXAMPLES);
}

const char *mix_model_summary(mix_model *model) {
  if (!mix_model_given(model, "model_summary")) return NULL;
  mix_text out = {.grows = true};
  summary s = {.model = model, .boxes = model->semantics->summary_boxes};
  for (int i = 0; i < MIX_SUMMARY_COLUMNS; i++) s.cells[i].grows = true;
  MIX_MODEL_USE(model, MIX_READS_MODEL, "model_summary")
  MIX_SCOPE {
    put_table(&s, &out);
    model->summary_table = out.used;
    put_arithmetic(model, &out);
    put_matched_policies(model->layer, &out, &(bool){false});
  }
  for (int i = 0; i < MIX_SUMMARY_COLUMNS; i++) mix_free(s.cells[i].text);
  if (!mix_failed() && !out.failed) return mix_model_keep_text(&model->summary, out.text);
  mix_free(out.text);
  return NULL;
}
