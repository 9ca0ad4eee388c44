/* The gradient of scan: a scan in the other direction. Its body is the gradient of the body, cut where it
 * reads values of the forward step, which come in as inputs. */
#include "ops/scan.h"

#include "base/alloc.h"
#include "base/error.h"
#include "graph/node_set.h"
#include "graph/tape.h"
#include <string.h>

/* Values inside the step, and the tensors outside that they stand for. */
typedef struct pairs {
  mix_edge *inside;
  mix_tensor **outside;
  int count, inside_capacity, outside_capacity;
} pairs;

typedef struct backward {
  mix_node *node; /* the forward scan */
  const mix_scan_attributes *attributes;
  const mix_body *body;
  uint64_t begin;         /* nodes from here on are those of the gradient */
  mix_tensor **gradients; /* by parameter of the body: that of one step, or NULL */
  pairs carry, inputs;    /* of the new scan */
  pairs next, outputs;    /* its results; `outside` is set once it is there */
  int *carried;           /* by parameter: the carry that holds its gradient; -1: none */
  int *stacked;           /* by parameter: the output that holds its gradient; -1: none */
  mix_node *scan;         /* the new one */
} backward;

static bool add_pair(pairs *list, mix_edge inside, mix_tensor *outside) {
  if (!mix_reserve(&list->inside, &list->inside_capacity, list->count + 1, sizeof *list->inside) ||
      !mix_reserve(&list->outside, &list->outside_capacity, list->count + 1, sizeof *list->outside))
    return false;
  list->inside[list->count] = inside;
  list->outside[list->count++] = outside;
  return true;
}

static int find_pair(const pairs *list, mix_edge inside) {
  for (int i = 0; i < list->count; i++)
    if (mix_edge_equal(list->inside[i], inside)) return i;
  return -1;
}

static mix_edge edge_of(const mix_tensor *tensor) { return (mix_edge){tensor->node, tensor->output}; }

/* ---- values of the forward step ---- */

/* All steps of a value of the forward step: an input, or an output of the forward scan. NULL: it was not
 * saved. */
static mix_tensor *saved_steps(const backward *b, mix_edge edge) {
  const int parameter = mix_body_parameter(b->body, edge), carries = b->attributes->carries;
  if (parameter >= carries && parameter < b->body->varying_count) return mix_node_input(b->node, parameter);
  for (int r = carries; r < b->body->result_count; r++)
    if (mix_edge_equal(b->body->results[r], edge)) return mix_tensor_of(b->node, r);
  return NULL;
}

static bool varies(const backward *b, mix_edge edge) { return mix_body_varies(b->body, edge); }

static bool add_saved_input(backward *b, mix_edge edge) {
  if (find_pair(&b->inputs, edge) >= 0) return true;
  mix_tensor *steps = saved_steps(b, edge);
  if (!steps && !mix_failed())
    mix_fail_runtime("scan: the gradient needs a value of a step that was not kept, of op %s",
                     edge.node->op->name);
  return steps && add_pair(&b->inputs, edge, steps);
}

/* What the nodes of the gradient read of the forward step. */
static bool find_saved(backward *b, const pairs *results, mix_node_set *set) {
  for (int i = 0; i < results->count; i++) {
    const mix_edge edge = results->inside[i];
    if (varies(b, edge) ? !add_saved_input(b, edge)
                        : edge.node->sequence >= b->begin && !mix_node_set_add(set, edge.node))
      return false;
  }
  for (int n = 0; n < set->count; n++)
    for (int i = 0; i < set->nodes[n]->input_count; i++) {
      const mix_edge edge = set->nodes[n]->inputs[i];
      if (varies(b, edge) ? !add_saved_input(b, edge)
                          : edge.node->sequence >= b->begin && !mix_node_set_add(set, edge.node))
        return false;
    }
  return true;
}

/* ---- the gradient of one step ---- */

static mix_tensor *placeholder(mix_edge edge) {
  const mix_value *value = mix_edge_value(edge);
  mix_node *node = mix_node_placeholder(value->dtype, value->shape, false);
  mix_tensor *tensor = mix_tensor_of(node, 0);
  mix_release(node);
  return tensor;
}

static bool is_floating(mix_edge edge) { return mix_dtype_is_real(mix_edge_value(edge)->dtype); }

/* The gradients that arrive: those of the next carry and those of step i of the outputs. */
static bool add_targets(backward *b, mix_tensor *const *above, mix_list *targets, mix_list *upstream) {
  const int carries = b->attributes->carries;
  for (int r = 0; r < b->body->result_count && !mix_failed(); r++) {
    const mix_edge edge = b->body->results[r];
    if (!is_floating(edge) || (r >= carries && !above[r])) continue;
    mix_tensor *gradient = placeholder(edge);
    mix_tensor *first = r >= carries || above[r] ? above[r] : mix_zeros_like(mix_node_input(b->node, r));
    if (!gradient || !first) return false;
    if (r < carries) b->carried[r] = b->carry.count;
    if (!add_pair(r < carries ? &b->carry : &b->inputs, edge_of(gradient), first)) return false;
    mix_list_append(targets, mix_tensor_of(edge.node, edge.output));
    mix_list_append(upstream, gradient);
  }
  return !mix_failed();
}

static bool find_gradients(backward *b, mix_tensor *const *above) {
  const mix_body *body = b->body;
  mix_list *targets = mix_list_new(0, NULL), *upstream = mix_list_new(0, NULL),
           *sources = mix_list_new(0, NULL);
  mix_watched *watched = mix_calloc((size_t)body->parameter_count + 1, sizeof *watched);
  mix_tape records = {.nodes = body->nodes, .node_count = body->node_count, .watched = watched};
  for (int i = 0; watched && i < body->parameter_count && !mix_failed(); i++) {
    if (!is_floating(body->parameters[i])) continue;
    watched[records.watched_count++].edge = body->parameters[i];
    mix_list_append(sources, mix_tensor_of(body->parameters[i].node, body->parameters[i].output));
  }
  mix_list *found = watched && add_targets(b, above, targets, upstream)
                        ? mix_gradient_walk(&records, targets, upstream, sources, b->body->segment)
                        : NULL;
  for (int i = 0, s = 0; found && i < body->parameter_count; i++)
    if (is_floating(body->parameters[i])) b->gradients[i] = mix_list_get(found, s++);
  mix_free(watched);
  return found != NULL;
}

/* ---- sums over all steps of the gradients of invariants ---- */

/* The sum of a value of the gradient over all steps, as one operation on all steps of its operands, where it
 * has such a form: a product over the rows of the batch, a sum over them, and sums, casts and paddings of
 * these. Before the new scan is built, it makes outputs of the values that are needed, and returns whether
 * all is possible. */
static bool plan_total(backward *b, mix_edge edge);

static bool plan_steps_of(backward *b, mix_edge edge) {
  if (mix_edge_value(edge)->shape.rank == MIX_MAX_RANK) return false;
  if (saved_steps(b, edge) || find_pair(&b->inputs, edge) >= 0 || find_pair(&b->outputs, edge) >= 0)
    return true;
  return !mix_failed() && add_pair(&b->outputs, edge, NULL);
}

static bool is_row_product(const mix_node *node) {
  const mix_matmul_attributes *attributes = node->attributes;
  return node->op == &mix_op_matmul && attributes->transpose_a && !attributes->transpose_b;
}

static bool is_linear(const mix_op *op) {
  return op == &mix_op_add || op == &mix_op_add_n || op == &mix_op_cast || op == &mix_op_identity ||
         op == &mix_op_reshape || op == &mix_op_pad;
}
static bool changes_shape(const mix_op *op) { return op == &mix_op_reshape || op == &mix_op_pad; }
static bool pads_with_a_number(const mix_node *node) {
  return node->op == &mix_op_pad && ((const mix_pad_attributes *)node->attributes)->value != 0;
}

static bool plan_total(backward *b, mix_edge edge) {
  const mix_node *node = edge.node;
  if (node->sequence < b->begin || varies(b, edge)) return false;
  if (is_row_product(node)) return plan_steps_of(b, node->inputs[0]) && plan_steps_of(b, node->inputs[1]);
  if (node->op == &mix_op_bias_add_grad || node->op == &mix_op_reduce_sum)
    return plan_steps_of(b, node->inputs[0]);
  if (!is_linear(node->op) || pads_with_a_number(node)) return false;
  for (int i = 0; i < node->input_count; i++) {
    const mix_shape in = mix_input_value(node, i)->shape, out = mix_edge_value(edge)->shape;
    if ((!changes_shape(node->op) && !mix_shape_equal(in, out)) || !plan_total(b, node->inputs[i]))
      return false;
  }
  return true;
}

/* Where no plan is possible, its outputs are rolled back. */
static bool has_total(backward *b, mix_edge edge) {
  const int count = b->outputs.count;
  if (plan_total(b, edge)) return true;
  b->outputs.count = count;
  return false;
}

static mix_tensor *steps_of(backward *b, mix_edge edge) {
  mix_tensor *saved = saved_steps(b, edge);
  if (saved || mix_failed()) return saved;
  const int input = find_pair(&b->inputs, edge);
  return input >= 0 ? b->inputs.outside[input] : b->outputs.outside[find_pair(&b->outputs, edge)];
}

/* (steps, rows, columns) as (steps * rows, columns). */
static mix_tensor *all_rows(mix_tensor *steps) {
  if (!steps) return NULL;
  const mix_shape shape = mix_tensor_shape(steps);
  return mix_reshape(steps, MIX_SHAPE(shape.dims[0] * shape.dims[1], shape.dims[2]));
}

static mix_tensor *total_sum(backward *b, mix_edge edge, mix_dtype dtype) {
  const mix_reduce_attributes *attributes = edge.node->attributes;
  mix_axes axes = {.count = 1 + attributes->axis_count};
  for (int i = 0; i < attributes->axis_count; i++) axes.axis[i + 1] = attributes->axes[i] + 1;
  mix_tensor *steps = mix_cast(steps_of(b, edge.node->inputs[0]), dtype);
  return mix_reshape(mix_reduce_sum(steps, axes, false), mix_edge_value(edge)->shape);
}

/* As a sum, which shares a program with the cast, so that no wider form of all steps is stored. */
static mix_tensor *total_of_rows(backward *b, mix_edge edge, mix_dtype dtype) {
  mix_tensor *steps = mix_cast(steps_of(b, edge.node->inputs[0]), dtype);
  mix_axes axes = {.count = 0};
  for (int d = 0; steps && d < mix_tensor_shape(steps).rank - 1; d++) axes.axis[axes.count++] = d;
  return mix_reduce_sum(steps, axes, false);
}

/* The dtype in which a value that is cast is summed: where steps cast float16 to a wider dtype, in that. */
static mix_dtype dtype_of_sum(mix_edge before_cast, mix_dtype after) {
  const mix_dtype before = mix_edge_value(before_cast)->dtype;
  return before == MIX_FLOAT16 && (after == MIX_FLOAT32 || after == MIX_FLOAT64) ? after : before;
}

/* In the value's dtype, or in a wider one. */
static mix_tensor *total(backward *b, mix_edge edge, mix_dtype dtype) {
  const mix_node *node = edge.node;
  if (is_row_product(node))
    return mix_matmul(mix_cast(all_rows(steps_of(b, node->inputs[0])), dtype),
                      mix_cast(all_rows(steps_of(b, node->inputs[1])), dtype), true, false);
  if (node->op == &mix_op_bias_add_grad) return total_of_rows(b, edge, dtype);
  if (node->op == &mix_op_reduce_sum) return total_sum(b, edge, dtype);
  if (node->op == &mix_op_cast)
    return mix_cast(total(b, node->inputs[0], dtype_of_sum(node->inputs[0], dtype)), dtype);
  mix_tensor *sum = total(b, node->inputs[0], dtype);
  if (node->op == &mix_op_reshape) return mix_reshape(sum, mix_edge_value(edge)->shape);
  const mix_pad_attributes *pad = node->attributes;
  if (node->op == &mix_op_pad) return mix_pad(sum, pad->before, pad->after, 0);
  for (int i = 1; i < node->input_count; i++) sum = mix_add(sum, total(b, node->inputs[i], dtype));
  return sum;
}

static mix_dtype wide(mix_dtype dtype) { return dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32; }

/* A carry in float32 that adds up the steps. */
static bool add_accumulator(backward *b, int parameter, mix_tensor *gradient) {
  const mix_value *value = mix_edge_value(b->body->parameters[parameter]);
  const mix_dtype dtype = wide(value->dtype);
  mix_node *node = mix_node_placeholder(dtype, value->shape, false);
  mix_tensor *before = mix_tensor_of(node, 0), *zeros = mix_fill(value->shape, 0, dtype);
  mix_release(node);
  mix_tensor *after = mix_add(before, mix_cast(gradient, dtype));
  if (!after || !zeros) return false;
  b->carried[parameter] = b->carry.count;
  return add_pair(&b->carry, edge_of(before), zeros) && add_pair(&b->next, edge_of(after), NULL);
}

/* ---- the new scan ---- */

/* The next carry in the order of the carry, which the accumulators of invariants follow. */
static bool add_next_carry(backward *b) {
  for (int i = 0; i < b->attributes->carries; i++) {
    if (b->carried[i] < 0) continue;
    mix_tensor *next = b->gradients[i]
                           ? b->gradients[i]
                           : mix_zeros_like(mix_tensor_of(b->carry.inside[b->carried[i]].node, 0));
    if (!next || !add_pair(&b->next, edge_of(next), NULL)) return false;
  }
  return true;
}

static bool add_results(backward *b) {
  const mix_body *body = b->body;
  if (!add_next_carry(b)) return false;
  for (int i = b->attributes->carries; i < body->varying_count; i++) {
    if (!b->gradients[i]) continue;
    b->stacked[i] = b->outputs.count;
    if (!add_pair(&b->outputs, edge_of(b->gradients[i]), NULL)) return false;
  }
  for (int i = body->varying_count; i < body->parameter_count; i++)
    if (b->gradients[i] && !has_total(b, edge_of(b->gradients[i])) &&
        (mix_failed() || !add_accumulator(b, i, b->gradients[i])))
      return false;
  return true;
}

/* Two lists, one after the other. */
static void *join(const void *a, int a_count, const void *b, int b_count, size_t size) {
  char *joined = mix_calloc((size_t)(a_count + b_count) + 1, size);
  if (joined && a_count) memcpy(joined, a, size * (size_t)a_count);
  if (joined && b_count) memcpy(joined + size * (size_t)a_count, b, size * (size_t)b_count);
  return joined;
}

static bool build_scan(backward *b) {
  mix_edge *varying =
      join(b->carry.inside, b->carry.count, b->inputs.inside, b->inputs.count, sizeof *varying);
  mix_tensor **operands =
      join(b->carry.outside, b->carry.count, b->inputs.outside, b->inputs.count, sizeof *operands);
  mix_edge *results =
      join(b->next.inside, b->next.count, b->outputs.inside, b->outputs.count, sizeof *results);
  if (varying && operands && results)
    b->scan = mix_scan_build(b->node->op, &(mix_scan_parts){.steps = b->attributes->steps,
                                                            .reverse = !b->attributes->reverse,
                                                            .carry_count = b->carry.count,
                                                            .input_count = b->inputs.count,
                                                            .output_count = b->outputs.count,
                                                            .varying = varying,
                                                            .operands = operands,
                                                            .results = results,
                                                            .begin = b->begin});
  mix_free(varying);
  mix_free(operands);
  mix_free(results);
  for (int i = 0; b->scan && i < b->outputs.count; i++)
    if (!(b->outputs.outside[i] = mix_tensor_of(b->scan, b->carry.count + i))) return false;
  return b->scan != NULL;
}

static mix_tensor *gradient_of(backward *b, int parameter) {
  const mix_dtype dtype = mix_edge_value(b->body->parameters[parameter])->dtype;
  if (b->carried[parameter] >= 0) {
    mix_tensor *carried = mix_tensor_of(b->scan, b->carried[parameter]);
    return parameter < b->attributes->carries ? carried : mix_cast(carried, dtype);
  }
  if (b->stacked[parameter] >= 0) return b->outputs.outside[b->stacked[parameter]];
  return b->gradients[parameter] ? total(b, edge_of(b->gradients[parameter]), dtype) : NULL;
}

static void build(backward *b, mix_tensor *const *above, mix_tensor **below) {
  const int parameters = b->body->parameter_count;
  mix_node_set set = {0};
  b->gradients = mix_calloc((size_t)parameters + 1, sizeof *b->gradients);
  b->carried = mix_calloc((size_t)parameters + 1, sizeof *b->carried);
  b->stacked = mix_calloc((size_t)parameters + 1, sizeof *b->stacked);
  if (!b->gradients || !b->carried || !b->stacked) return;
  for (int i = 0; i < parameters; i++) b->carried[i] = b->stacked[i] = -1;
  b->begin = mix_node_next_sequence();
  bool good = find_gradients(b, above) && add_results(b) && find_saved(b, &b->next, &set) &&
              find_saved(b, &b->outputs, &set) && build_scan(b);
  mix_node_set_clear(&set);
  for (int i = 0; i < parameters && good && !mix_failed(); i++) below[i] = gradient_of(b, i);
}

void mix_scan_gradient(mix_node *node, mix_tensor *const *above, mix_tensor **below) {
  backward b = {.node = node, .attributes = node->attributes, .body = node->body};
  build(&b, above, below);
  mix_release(b.scan);
  mix_free(b.gradients);
  mix_free(b.carried);
  mix_free(b.stacked);
  pairs *const all[] = {&b.carry, &b.inputs, &b.next, &b.outputs};
  for (int i = 0; i < 4; i++) {
    mix_free(all[i]->inside);
    mix_free(all[i]->outside);
  }
}
