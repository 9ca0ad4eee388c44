/* LSTM, GRU and RNN of ONNX as layers, one for each direction. */
#include "onnx/import.h"

#include "base/error.h"
#include "tensor/shape.h"
#include <string.h>

enum { MAX_GATES = 4, MAX_STATES = 2 };

typedef struct recurrence {
  const char *layer;
  int gates, states;
  int order[MAX_GATES]; /* of Keras's gates, where ONNX has them */
  const char *activations[3];
} recurrence;

static const recurrence kinds[] = {{"LSTM", 4, 2, {0, 2, 3, 1}, {"Sigmoid", "Tanh", "Tanh"}},
                                   {"GRU", 3, 1, {0, 1, 2}, {"Sigmoid", "Tanh"}},
                                   {"SimpleRNN", 1, 1, {0}, {"Tanh"}}};

typedef struct recurrent_node {
  const recurrence *kind;
  mix_tensor *x; /* (batch, steps, features) */
  int directions, rank_x;
  int64_t hidden, features;
  bool batch_first, resets_after;
  const char *activation;
  mix_tensor *kernel, *recurrent, *bias; /* of all directions */
} recurrent_node;

/* Row `direction` of a constant (directions, n, ...), without its first axis. */
static mix_tensor *row_of(mix_import *in, mix_tensor *all, int direction) {
  const mix_shape shape = mix_tensor_shape(all);
  mix_shape begin = {.rank = shape.rank, .dims = {direction}}, size = shape, rest = {.rank = shape.rank - 1};
  size.dims[0] = 1;
  for (int i = 1; i < shape.rank; i++) rest.dims[i - 1] = shape.dims[i];
  return mix_import_evaluated(in, mix_reshape(mix_slice(all, begin, size), rest));
}

/* Rows (gates * hidden, ...) in the order of Keras's gates. */
static mix_tensor *reordered(mix_import *in, const recurrent_node *n, mix_tensor *rows) {
  mix_tensor *parts[MAX_GATES];
  mix_shape size = mix_tensor_shape(rows);
  size.dims[0] = n->hidden;
  if (n->kind->gates == 1) return rows;
  for (int g = 0; g < n->kind->gates; g++)
    parts[g] = mix_slice(rows, (mix_shape){.rank = size.rank, .dims = {n->kind->order[g] * n->hidden}}, size);
  return mix_import_evaluated(in, mix_concat(n->kind->gates, parts, 0));
}

/* (gates * hidden, n) -> (n, gates * hidden) */
static mix_tensor *kernel_of(mix_import *in, const recurrent_node *n, mix_tensor *all, int direction) {
  mix_tensor *rows = row_of(in, all, direction);
  rows = rows ? reordered(in, n, rows) : NULL;
  return rows ? mix_import_transposed(in, rows, MIX_AXES(1, 0)) : NULL;
}

/* The two biases of ONNX: both rows where Keras has them, else their sum. */
static mix_tensor *bias_of(mix_import *in, const recurrent_node *n, int direction) {
  const int64_t size = n->kind->gates * n->hidden;
  mix_tensor *both = row_of(in, n->bias, direction), *halves[2];
  for (int i = 0; i < 2 && both; i++) {
    halves[i] = mix_import_evaluated(in, mix_slice(both, MIX_SHAPE(i * size), MIX_SHAPE(size)));
    if (!halves[i] || !(halves[i] = reordered(in, n, halves[i]))) return NULL;
  }
  if (!both) return NULL;
  if (!n->resets_after) return mix_import_evaluated(in, mix_add(halves[0], halves[1]));
  for (int i = 0; i < 2; i++) halves[i] = mix_reshape(halves[i], MIX_SHAPE(1, size));
  return mix_import_evaluated(in, mix_concat(2, halves, 0));
}

/* ---- what the node has ---- */

static mix_tensor *constant_input(mix_import *in, int index, mix_shape shape) {
  mix_import_value *value = mix_import_input(in, index);
  if (!value || value->shared)
    return mix_import_fail(in, MIX_UNSUPPORTED, "input %d is missing, or other nodes read it too", index);
  mix_tensor *tensor = mix_import_constant(in, value);
  if (!tensor || mix_shape_equal(mix_tensor_shape(tensor), shape)) return tensor;
  return mix_import_fail(in, MIX_FORMAT_ERROR, "input %d has shape %s; expected %s", index,
                         MIX_SHAPE_TEXT(mix_tensor_shape(tensor)), MIX_SHAPE_TEXT(shape));
}

/* Those of the kind, for each direction; RNN may have Relu. */
static bool check_activations(mix_import *in, recurrent_node *n) {
  const mix_onnx_attribute *given = mix_onnx_find(in->node, "activations");
  int each = 0;
  n->activation = "tanh";
  while (each < MAX_STATES + 1 && n->kind->activations[each]) each++;
  if (given && (given->count != each * n->directions || !given->strings)) each = -1;
  for (int i = 0; given && i < each * n->directions; i++) {
    const bool relu =
        each == 1 && !strcmp(given->strings[i], "Relu") && (!i || !strcmp(n->activation, "relu"));
    if (relu)
      n->activation = "relu";
    else if (strcmp(given->strings[i], n->kind->activations[i % each]))
      each = -1;
  }
  return each > 0 || mix_import_fail(in, MIX_UNSUPPORTED, "its activations are others than its default ones");
}

static bool check_options(mix_import *in, recurrent_node *n) {
  if (!check_activations(in, n)) return false;
  if (mix_onnx_find(in->node, "clip") || mix_onnx_integer(in->node, "input_forget", 0))
    return mix_import_fail(in, MIX_UNSUPPORTED, "clip or input_forget; expected neither");
  if (mix_import_input(in, 4))
    return mix_import_fail(in, MIX_UNSUPPORTED, "sequence_lens; expected sequences of one length");
  if (n->kind->states == 2 && mix_import_input(in, 7))
    return mix_import_fail(in, MIX_UNSUPPORTED, "peephole weights");
  return true;
}

static mix_tensor *swapped(mix_import *in, mix_tensor *x) {
  return x ? mix_import_apply(in, "Transpose", x, MIX_PACK("{s:[i,i,i]}", "axes", 1, 0, 2)) : NULL;
}

static bool read_node(mix_import *in, recurrent_node *n) {
  const char *op = in->node->op, *direction = mix_onnx_string(in->node, "direction", "forward");
  n->kind = &kinds[!strcmp(op, "LSTM") ? 0 : !strcmp(op, "GRU") ? 1 : 2];
  n->directions = !strcmp(direction, "bidirectional") ? 2 : 1;
  n->hidden = mix_onnx_integer(in->node, "hidden_size", 0);
  n->batch_first = mix_onnx_integer(in->node, "layout", 0) != 0;
  n->resets_after = !strcmp(op, "GRU") && mix_onnx_integer(in->node, "linear_before_reset", 0);
  n->x = mix_import_operand(in, 0);
  if (!n->x || !check_options(in, n)) return false;
  n->features = mix_tensor_shape(n->x).dims[2];
  if (mix_tensor_shape(n->x).rank != 3 || n->features < 1 || n->hidden < 1 || n->hidden > 1 << 24)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "hidden_size %lld, and data of shape %s",
                           (long long)n->hidden, MIX_SHAPE_TEXT(mix_tensor_shape(n->x)));
  if (!mix_tensor_is_symbolic(n->x)) return mix_import_fail(in, MIX_UNSUPPORTED, "its data are constants");
  const int64_t rows = n->kind->gates * n->hidden;
  n->kernel = constant_input(in, 1, MIX_SHAPE(n->directions, rows, n->features));
  n->recurrent = constant_input(in, 2, MIX_SHAPE(n->directions, rows, n->hidden));
  if (mix_import_input(in, 3)) n->bias = constant_input(in, 3, MIX_SHAPE(n->directions, 2 * rows));
  if (!mix_failed() && !n->batch_first) n->x = swapped(in, n->x);
  return !mix_failed();
}

/* ---- states ---- */

static bool is_zero(mix_import *in, mix_import_value *value) {
  mix_tensor *x = value->fill                     ? value->fill
                  : mix_import_is_constant(value) ? mix_import_constant(in, value)
                                                  : NULL;
  if (!x || mix_shape_size(mix_tensor_shape(x)) < 1) return false;
  mix_tensor *most = mix_reduce_max(mix_abs(x), (mix_axes){.count = 0}, false);
  return most && mix_tensor_item(mix_shape_size(mix_tensor_shape(most)) == 1
                                     ? most
                                     : mix_reduce_max(mix_reshape(mix_abs(x), MIX_SHAPE(MIX_UNKNOWN)),
                                                      MIX_AXES(0), false)) == 0;
}

/* A list of the states of a direction; NULL without an error: they begin as zeros. */
static mix_list *states_of(mix_import *in, const recurrent_node *n, int direction) {
  mix_list *states = mix_list_new(0, NULL);
  int zeros = 0;
  for (int i = 0; i < n->kind->states; i++) {
    mix_import_value *value = mix_import_input(in, 5 + i);
    zeros += !value || is_zero(in, value);
  }
  if (zeros == n->kind->states || mix_failed()) return NULL;
  for (int i = 0; i < n->kind->states; i++) {
    mix_import_value *value = mix_import_input(in, 5 + i);
    mix_tensor *x = value ? mix_import_operand(in, 5 + i) : NULL;
    if (!x || mix_tensor_shape(x).rank != 3)
      return mix_import_fail(in, MIX_UNSUPPORTED, "one of its states is missing, or not of rank 3");
    json_t *key = json_array();
    if (n->batch_first)
      mix_json_append(key, MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config", "start",
                                    "stop", "step"));
    mix_json_append(key, json_integer(direction));
    mix_list *part = mix_import_run(in, "GetItem", 1, &x, NULL, MIX_PACK("[o]", key));
    mix_tensor *state = part ? mix_list_get(part, 0) : NULL;
    if (state && !mix_tensor_is_symbolic(state))
      return mix_import_fail(in, MIX_UNSUPPORTED, "its first states are constants other than 0");
    mix_list_append(states, state);
  }
  return mix_failed() ? NULL : states;
}

/* ---- the layers ---- */

/* (batch, steps, hidden), then the states (batch, hidden). */
static mix_list *run_direction(mix_import *in, const recurrent_node *n, int direction) {
  const bool reversed = direction || !strcmp(mix_onnx_string(in->node, "direction", ""), "reverse");
  mix_tensor *weights[] = {kernel_of(in, n, n->kernel, direction), NULL, NULL};
  weights[1] = weights[0] ? kernel_of(in, n, n->recurrent, direction) : NULL;
  if (n->bias && weights[1]) weights[2] = bias_of(in, n, direction);
  mix_list *states = mix_failed() ? NULL : states_of(in, n, direction);
  if (mix_failed()) return NULL;
  json_t *config = MIX_PACK("{s:I,s:b,s:b,s:b,s:b,s:s}", "units", (json_int_t)n->hidden, "use_bias",
                            n->bias != NULL, "return_sequences", 1, "return_state", 1, "go_backwards",
                            reversed, "dtype", mix_dtype_name(mix_tensor_dtype(n->kernel)));
  mix_json_set(config, "activation", json_string(n->activation));
  if (!strcmp(n->kind->layer, "GRU")) mix_json_set(config, "reset_after", json_boolean(n->resets_after));
  const mix_import_value *value = mix_import_input(in, 1);
  return mix_import_call_layer(in, n->kind->layer, config, n->x, states, value->weight ? value->weight : "",
                               NULL, n->bias ? 3 : 2, weights);
}

/* (batch, steps, hidden) of each direction -> (steps, directions, batch, hidden), or batch first. */
static mix_tensor *joined(mix_import *in, const recurrent_node *n, mix_list *const *results) {
  mix_tensor *parts[2];
  for (int i = 0; i < n->directions; i++) {
    parts[i] = mix_list_get(results[i], 0);
    const bool reversed = i || !strcmp(mix_onnx_string(in->node, "direction", ""), "reverse");
    if (reversed) parts[i] = mix_import_apply(in, "Flip", parts[i], MIX_PACK("{s:i}", "axis", 1));
    if (!n->batch_first && parts[i]) parts[i] = swapped(in, parts[i]);
    if (!parts[i]) return NULL;
  }
  const int axis = n->batch_first ? 2 : 1;
  if (n->directions == 1)
    return mix_import_apply(in, "ExpandDims", parts[0], MIX_PACK("{s:i}", "axis", axis));
  return mix_import_run_one(in, "Stack", 2, parts, MIX_PACK("{s:i}", "axis", axis));
}

static mix_tensor *last_states(mix_import *in, const recurrent_node *n, mix_list *const *results, int state) {
  const int axis = n->batch_first ? 1 : 0;
  mix_tensor *parts[2];
  for (int i = 0; i < n->directions; i++) parts[i] = mix_list_get(results[i], state);
  if (n->directions == 1)
    return mix_import_apply(in, "ExpandDims", parts[0], MIX_PACK("{s:i}", "axis", axis));
  return mix_import_run_one(in, "Stack", 2, parts, MIX_PACK("{s:i}", "axis", axis));
}

bool mix_import_recurrent(mix_import *in) {
  recurrent_node n = {0};
  mix_list *results[2];
  if (!read_node(in, &n)) return false;
  for (int i = 0; i < n.directions; i++)
    if (!(results[i] = run_direction(in, &n, i))) return false;
  if (mix_import_is_used(in, 0) && !mix_import_bind(in, 0, joined(in, &n, results))) return false;
  for (int i = 1; i <= n.kind->states; i++)
    if (mix_import_is_used(in, i) && !mix_import_bind(in, i, last_states(in, &n, results, i))) return false;
  return true;
}
