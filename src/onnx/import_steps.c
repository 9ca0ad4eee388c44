/* Loop, Scan and If of ONNX. Keras's files have no loop of any body, so that each step becomes layers and
 * operations of its own, whose weights are those of the others; how many steps there are is known. */
#include "onnx/import.h"

#include "base/error.h"
#include "base/fields.h"
#include "tensor/shape.h"
#include <string.h>

/* ---- a body in one step ---- */

static const char *name_in(const mix_import_step *step, const char *name) {
  for (; step; step = step->outer) {
    const json_t *found = json_object_get(step->names, name);
    if (found) return json_string_value(found);
  }
  return name;
}

static mix_import_node *node_of(const mix_import *in) {
  return (mix_import_node *)in->node; /* which it begins with */
}

static mix_import_step *new_step(mix_import *in, const mix_import_node *node) {
  mix_import_step *step = mix_scoped_memory(sizeof *step);
  if (!step) return NULL;
  *step = (mix_import_step){node->step, mix_import_new_map(in)};
  return step->names ? step : NULL;
}

static mix_import_node *copy_of(mix_import *in, const mix_import_step *step, const mix_import_node *node) {
  const size_t names = (size_t)node->node.input_count + (size_t)node->node.output_count;
  mix_import_node *copy = mix_scoped_memory(sizeof *copy);
  const char **all = mix_scoped_memory((names + 1) * sizeof *all);
  if (!copy || !all || !mix_import_spend(in, &node->node)) return NULL;
  *copy = *node;
  copy->step = step;
  copy->node.inputs = all;
  copy->node.outputs = all + node->node.input_count;
  for (int i = 0; i < node->node.input_count; i++) all[i] = name_in(step, node->node.inputs[i]);
  for (int i = 0; i < node->node.output_count; i++) {
    const char *name = node->node.outputs[i];
    const char *own = *name ? mix_import_new_name(in, name) : "";
    if (!own ||
        (*own && (!mix_json_set(step->names, name, json_string(own)) || !mix_import_add_name(in, own))))
      return NULL;
    copy->node.outputs[i] = own;
  }
  return copy;
}

/* Converts the body with what the step's names say of its inputs. */
static bool convert_body(mix_import *in, const mix_import_body *body, const mix_import_step *step) {
  mix_import_nodes nodes = {0};
  const mix_onnx_node *around = in->node;
  if (!mix_import_spend_names(in, body->output_count - around->output_count)) return false;
  for (int n = 0; n < body->nodes.count; n++) {
    mix_import_node *copy = copy_of(in, step, body->nodes.items[n]);
    if (!copy || !mix_import_append(&nodes, copy)) return false;
  }
  for (int n = 0; n < nodes.count; n++) {
    for (int i = 0; i < nodes.items[n]->node.input_count; i++) {
      mix_import_value *value = mix_import_own_value(in, step, body->nodes.items[n]->node.inputs[i]);
      if (value) mix_import_note_use(value, nodes.items[n], i);
    }
    mix_import_count_bodies(in, step, nodes.items[n]);
  }
  for (int i = 0; i < body->output_count; i++) {
    mix_import_value *value = mix_import_own_value(in, step, body->outputs[i]);
    if (value) value->uses++, value->reader = NULL;
  }
  if (!in->convert_nodes(in, &nodes)) return false;
  in->node = around;
  return true;
}

/* The value of an output of the body. NULL with the error recorded. */
static mix_import_value *output_of(mix_import *in, const mix_import_body *body, const mix_import_step *step,
                                   int index, const char **name) {
  *name = name_in(step, body->outputs[index]);
  mix_import_value *value = mix_import_value_named(in, *name);
  if (value && value->bound) return value;
  return mix_import_fail(in, MIX_FORMAT_ERROR, "output '%.60s' of its graph is made by no node",
                         body->outputs[index]);
}

/* A value of a new name. */
static const char *name_tensor(mix_import *in, const char *like, mix_tensor *x) {
  const char *name = x ? mix_import_new_name(in, like) : NULL;
  mix_import_value *value = name ? mix_import_add_name(in, name) : NULL;
  if (!value) return NULL;
  value->tensor = x;
  value->bound = true;
  value->uses = 2;
  return name;
}

/* A condition of one element. False where it is false, or an error is recorded. */
static bool is_true(mix_import *in, const char *name) {
  unsigned char holds = 0;
  mix_import_value *value = mix_import_value_named(in, name);
  if (!value || !mix_import_is_constant(value))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "whether it goes on is computed from the data; expected a known number of steps");
  mix_tensor *x = mix_import_constant(in, value);
  if (!x) return false;
  if (mix_tensor_dtype(x) != MIX_BOOL || mix_shape_size(mix_tensor_shape(x)) != 1)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its condition is %s %s; expected one bool",
                           mix_dtype_name(mix_tensor_dtype(x)), MIX_SHAPE_TEXT(mix_tensor_shape(x)));
  return !mix_tensor_read(x, MIX_BOOL, &holds, 1) && holds;
}

/* ---- what is carried from step to step ---- */

typedef struct carried {
  const char **names;
  int count;
} carried;

/* A first state of floats is symbolic, so that no step is computed once for all from weights as they are now:
 * zeros as they are, other numbers as a weight. */
static const char *first_state(mix_import *in, int index) {
  mix_import_value *value = mix_import_input(in, index);
  if (!value) return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks input %d", index);
  const char *name = in->node->inputs[index];
  if (!mix_import_is_constant(value)) return name;
  mix_tensor *x = mix_import_constant(in, value);
  const int64_t size = x ? mix_shape_size(mix_tensor_shape(x)) : 0;
  if (!x || !size || !mix_dtype_is_floating(mix_tensor_dtype(x))) return x ? name : NULL;
  mix_tensor *most = mix_reduce_max(mix_abs(x), MIX_ALL_AXES, false);
  most = mix_import_evaluated(in, most);
  if (!most) return NULL;
  const bool trains = value->weight && mix_tensor_item(most) != 0 && !mix_import_is_mask(in, x);
  return name_tensor(in, name,
                     trains ? mix_import_parameter(in, x, value->weight, true) : mix_import_symbolic(in, x));
}

static bool begin(mix_import *in, int first, int count, carried *c) {
  c->count = count;
  c->names = mix_scoped_memory(((size_t)count + 1) * sizeof(char *));
  for (int i = 0; c->names && i < count; i++)
    if (!(c->names[i] = first_state(in, first + i))) return false;
  return c->names;
}

/* Rows of the results that every step adds to, one list a result. */
static mix_list **new_rows(int count) {
  mix_list **rows = mix_scoped_memory(((size_t)count + 1) * sizeof(mix_list *));
  for (int i = 0; rows && i < count; i++)
    if (!(rows[i] = mix_list_new(0, NULL))) return NULL;
  return rows;
}

/* Takes the body's outputs from `first` on: what is carried, then rows. */
static bool end_step(mix_import *in, const mix_import_node *node, const mix_import_step *step, int first,
                     carried *c, mix_list **rows) {
  const mix_import_body *body = node->body;
  for (int i = 0; i < c->count; i++)
    if (!output_of(in, body, step, first + i, &c->names[i])) return false;
  for (int i = 0; i < body->output_count - first - c->count; i++) {
    const char *name;
    mix_import_value *value = output_of(in, body, step, first + c->count + i, &name);
    mix_tensor *row = value ? mix_import_tensor_of(in, value) : NULL;
    if (!row) return false;
    mix_list_append(rows[i], row);
  }
  return !mix_failed();
}

static mix_tensor *stacked(mix_import *in, mix_list *rows, int64_t axis, bool reversed) {
  const int count = mix_list_count(rows);
  mix_tensor **all = mix_scoped_memory(((size_t)count + 1) * sizeof(mix_tensor *));
  if (!all) return NULL;
  if (!count) return mix_import_fail(in, MIX_UNSUPPORTED, "it has no step, and a result without rows");
  for (int i = 0; i < count; i++) all[i] = mix_list_get(rows, reversed ? count - 1 - i : i);
  return mix_import_run_one(in, "Stack", count, all, MIX_PACK("{s:I}", "axis", (json_int_t)axis));
}

static bool bind_carried(mix_import *in, const carried *c) {
  for (int i = 0; i < c->count; i++) {
    const mix_import_value *value = mix_import_value_named(in, c->names[i]);
    if (!value || !mix_import_bind_value(in, i, *value)) return false;
  }
  return true;
}

/* ---- Loop ---- */

/* How many steps it has at most. -1 with the error recorded. */
static int64_t most_steps(mix_import *in) {
  int64_t most = INT64_MAX;
  mix_import_value *value = mix_import_input(in, 0);
  if (!value) return most;
  if (!mix_import_is_constant(value))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "how many steps it has is computed from the data, or is an open size; expected a "
                           "file exported with a fixed one"),
           -1;
  return mix_import_integers(in, 0, 1, &most) == 1 ? most : -1;
}

/* Is the condition of each step the first one, which is true? */
static bool goes_on(const mix_import_body *body) {
  const char *name = body->outputs[0];
  for (int n = body->nodes.count - 1; n >= 0; n--) {
    const mix_onnx_node *node = &body->nodes.items[n]->node;
    for (int i = 0; i < node->output_count; i++) {
      if (strcmp(node->outputs[i], name)) continue;
      if (strcmp(node->op, "Identity") || node->input_count != 1) return false;
      name = node->inputs[0];
    }
  }
  return !strcmp(name, body->inputs[1]);
}

static bool begin_step(mix_import *in, const mix_import_node *node, mix_import_step *step, int64_t number,
                       const char *condition, const carried *c) {
  const char *count = name_tensor(in, "step", mix_tensor_from(&number, MIX_INT64, MIX_SCALAR));
  if (!count) return false;
  mix_json_set(step->names, node->body->inputs[0], json_string(count));
  mix_json_set(step->names, node->body->inputs[1], json_string(condition));
  for (int i = 0; i < c->count; i++)
    mix_json_set(step->names, node->body->inputs[2 + i], json_string(c->names[i]));
  return !mix_failed();
}

bool mix_import_loop(mix_import *in) {
  const mix_import_node *node = node_of(in);
  const mix_import_body *body = node->body;
  const unsigned char yes = 1;
  carried c;
  const int states = body ? body->input_count - 2 : -1, results = body ? body->output_count - 1 - states : -1;
  if (states < 0 || results < 0 || (in->node->input_count != 2 + states && states) ||
      in->node->output_count > states + results)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its graph has other inputs or outputs than it");
  const int64_t most = most_steps(in);
  const char *condition = mix_import_input(in, 1)
                              ? in->node->inputs[1]
                              : name_tensor(in, "condition", mix_tensor_from(&yes, MIX_BOOL, MIX_SCALAR));
  mix_list **rows = new_rows(results);
  if (mix_failed() || !rows || !condition) return false;
  if (goes_on(body) && !mix_import_can_spend(in, most, body->nodes.count, body->nodes.items)) return false;
  if (!begin(in, 2, states, &c)) return false;
  for (int64_t k = 0; k < most && is_true(in, condition); k++) {
    mix_import_step *step = new_step(in, node);
    if (!step || !mix_import_spend(in, in->node) || !begin_step(in, node, step, k, condition, &c) ||
        !convert_body(in, body, step) || !output_of(in, body, step, 0, &condition) ||
        !end_step(in, node, step, 1, &c, rows))
      return false;
  }
  if (mix_failed() || !bind_carried(in, &c)) return false;
  for (int i = 0; i < results; i++)
    if (mix_import_is_used(in, states + i) &&
        !mix_import_bind(in, states + i, stacked(in, rows[i], 0, false)))
      return false;
  return true;
}

/* ---- Scan ---- */

static int64_t entry_of(mix_import *in, const char *name, int index) {
  const mix_onnx_attribute *list = mix_onnx_find(in->node, name);
  return list && list->ints && index < list->count ? list->ints[index] : 0;
}

/* Row `index` of an input, along its axis, as a value of a new name. */
static const char *row_of(mix_import *in, mix_tensor *x, int axis, int64_t index) {
  json_t *key = json_array();
  for (int i = 0; i < axis; i++)
    mix_json_append(
        key, MIX_PACK("{s:s,s:{s:n,s:n,s:n}}", "class_name", "__slice__", "config", "start", "stop", "step"));
  mix_json_append(key, json_integer(index));
  mix_list *row = mix_import_run(in, "GetItem", 1, &x, NULL, MIX_PACK("[o]", key));
  return row ? name_tensor(in, "row", mix_list_get(row, 0)) : NULL;
}

typedef struct sequence {
  mix_tensor *x;
  int axis;
  bool reversed;
} sequence;

/* The inputs that a Scan goes along, and how long they are. -1 with the error recorded. */
static int64_t open_sequences(mix_import *in, int first, int count, sequence *all) {
  int64_t steps = -1;
  for (int i = 0; i < count; i++) {
    mix_tensor *x = mix_import_operand(in, first + i);
    if (!x) return -1;
    const mix_shape shape = mix_tensor_shape(x);
    const int axis = mix_import_axis(in, entry_of(in, "scan_input_axes", i), shape.rank);
    if (axis < 0) return -1;
    all[i] = (sequence){x, axis, entry_of(in, "scan_input_directions", i) != 0};
    if (shape.dims[axis] == MIX_UNKNOWN)
      return mix_import_fail(
                 in, MIX_UNSUPPORTED,
                 "how many steps it has is an open size; expected a file exported with a fixed one"),
             -1;
    if (i && shape.dims[axis] != steps)
      return mix_import_fail(in, MIX_FORMAT_ERROR, "inputs of %lld and %lld steps", (long long)steps,
                             (long long)shape.dims[axis]),
             -1;
    steps = shape.dims[axis];
  }
  return steps;
}

bool mix_import_scan(mix_import *in) {
  const mix_import_node *node = node_of(in);
  const mix_import_body *body = node->body;
  const int64_t count = mix_onnx_integer(in->node, "num_scan_inputs", 0);
  carried c;
  if (!body || count < 1 || count > body->input_count || in->node->input_count != body->input_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its graph has other inputs than it");
  const int inputs = (int)count, states = body->input_count - inputs, results = body->output_count - states;
  sequence *all = mix_scoped_memory((size_t)inputs * sizeof *all);
  if (results < 0 || in->node->output_count > body->output_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "its graph has other outputs than it");
  const int64_t steps = all ? open_sequences(in, states, inputs, all) : -1;
  mix_list **rows = new_rows(results);
  if (steps < 0 || !rows || !mix_import_can_spend(in, steps, body->nodes.count, body->nodes.items) ||
      !begin(in, 0, states, &c))
    return false;
  for (int64_t k = 0; k < steps; k++) {
    mix_import_step *step = new_step(in, node);
    if (!step || !mix_import_spend(in, in->node)) return false;
    for (int i = 0; i < states; i++) mix_json_set(step->names, body->inputs[i], json_string(c.names[i]));
    for (int i = 0; i < inputs; i++) {
      const char *row = row_of(in, all[i].x, all[i].axis, all[i].reversed ? steps - 1 - k : k);
      if (!row || !mix_json_set(step->names, body->inputs[states + i], json_string(row))) return false;
    }
    if (!convert_body(in, body, step) || !end_step(in, node, step, 0, &c, rows)) return false;
  }
  if (!bind_carried(in, &c)) return false;
  for (int i = 0; i < results; i++)
    if (mix_import_is_used(in, states + i) &&
        !mix_import_bind(in, states + i,
                         stacked(in, rows[i], entry_of(in, "scan_output_axes", i),
                                 entry_of(in, "scan_output_directions", i) != 0)))
      return false;
  return true;
}

/* ---- If ---- */

/* The output of one branch or the other, as an element-wise choice of tensors of one type. */
static mix_tensor *chosen(mix_import *in, mix_tensor *condition, mix_import_value *a, mix_import_value *b) {
  mix_tensor *x = mix_import_tensor_of(in, a), *y = x ? mix_import_tensor_of(in, b) : NULL;
  if (!y || x == y) return y;
  if (mix_tensor_dtype(x) != mix_tensor_dtype(y) ||
      !mix_shape_equal(mix_tensor_shape(x), mix_tensor_shape(y)))
    return mix_import_fail(in, MIX_UNSUPPORTED,
                           "its condition is computed from the data, and its branches give %s %s and %s %s; "
                           "expected tensors of one type",
                           mix_dtype_name(mix_tensor_dtype(x)), MIX_SHAPE_TEXT(mix_tensor_shape(x)),
                           mix_dtype_name(mix_tensor_dtype(y)), MIX_SHAPE_TEXT(mix_tensor_shape(y)));
  mix_tensor *three[] = {condition, x, y};
  return mix_import_run_one(in, "Where", 3, three, NULL);
}

static bool choose(mix_import *in, const mix_import_node *node) {
  mix_tensor *condition = mix_import_operand(in, 0);
  mix_import_step *first = new_step(in, node), *other = new_step(in, node);
  if (!condition || !first || !other) return false;
  if (mix_shape_size(mix_tensor_shape(condition)) != 1 || mix_tensor_dtype(condition) != MIX_BOOL)
    return mix_import_fail(in, MIX_UNSUPPORTED, "its condition is %s %s; expected one bool",
                           mix_dtype_name(mix_tensor_dtype(condition)),
                           MIX_SHAPE_TEXT(mix_tensor_shape(condition)));
  if (mix_tensor_shape(condition).rank)
    condition = mix_import_apply(in, "Reshape", condition, MIX_PACK("{s:[]}", "newshape"));
  if (!condition || !convert_body(in, node->body, first) || !convert_body(in, node->other, other))
    return false;
  for (int i = 0; i < in->node->output_count; i++) {
    const char *name;
    mix_import_value *a = output_of(in, node->body, first, i, &name);
    mix_import_value *b = a ? output_of(in, node->other, other, i, &name) : NULL;
    if (!b || !mix_import_bind(in, i, chosen(in, condition, a, b))) return false;
  }
  return true;
}

bool mix_import_branch(mix_import *in) {
  const mix_import_node *node = node_of(in);
  mix_import_value *condition = mix_import_input(in, 0);
  if (!node->body || !condition || node->body->output_count < in->node->output_count ||
      node->other->output_count < in->node->output_count)
    return mix_import_fail(in, MIX_FORMAT_ERROR, "it lacks its condition, or its graphs an output");
  if (!mix_import_is_constant(condition)) return choose(in, node);
  const mix_import_body *body = is_true(in, in->node->inputs[0]) ? node->body : node->other;
  mix_import_step *step = mix_failed() ? NULL : new_step(in, node);
  if (!step || !convert_body(in, body, step)) return false;
  for (int i = 0; i < in->node->output_count; i++) {
    const char *name;
    const mix_import_value *value = output_of(in, body, step, i, &name);
    if (!value || !mix_import_bind_value(in, i, *value)) return false;
  }
  return true;
}
