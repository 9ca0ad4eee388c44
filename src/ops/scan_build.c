/* The node of a loop from the values of one step. */
#include "base/alloc.h"
#include "base/error.h"
#include "graph/loop_capture.h"
#include "ops/scan.h"

mix_shape mix_scan_stacked(int64_t steps, mix_shape shape) {
  mix_shape stacked = {.rank = shape.rank + 1, .dims = {steps}};
  for (int i = 0; i < shape.rank; i++) stacked.dims[i + 1] = shape.dims[i];
  return stacked;
}

static bool is_output(const mix_body *body, int carry_count, mix_edge edge) {
  for (int r = carry_count; r < body->result_count; r++)
    if (mix_edge_equal(body->results[r], edge)) return true;
  return false;
}

/* Every value of a step that its gradient may read becomes an output; dead code elimination drops the
 * others. */
static bool save_values(mix_body *body, int carry_count) {
  int count = 0, capacity = 0;
  mix_edge *saved = NULL;
  bool good = mix_reserve(&saved, &capacity, carry_count + 1, sizeof *saved);
  for (int i = 0; i < carry_count && good; i++)
    if (!is_output(body, carry_count, body->parameters[i])) saved[count++] = body->parameters[i];
  for (int n = 0; n < body->node_count && good; n++)
    for (int o = 0; o < body->nodes[n]->output_count && good; o++) {
      const mix_edge edge = {body->nodes[n], o};
      if (!body->varies[n] || is_output(body, carry_count, edge) ||
          mix_edge_value(edge)->shape.rank == MIX_MAX_RANK)
        continue;
      good = mix_reserve(&saved, &capacity, count + 1, sizeof *saved);
      if (good) saved[count++] = edge;
    }
  good = good && mix_body_add_results(body, count, saved);
  mix_free(saved);
  return good;
}

static mix_node *new_node(const mix_op *op, const mix_scan_parts *parts, mix_body *body) {
  const int varying = parts->carry_count + parts->input_count, operands = body->parameter_count;
  mix_edge *inputs = mix_calloc((size_t)operands + 1, sizeof *inputs);
  mix_type *types = mix_calloc((size_t)body->result_count + 1, sizeof *types);
  mix_node *node = NULL;
  for (int i = 0; inputs && i < operands; i++)
    inputs[i] =
        i < varying ? (mix_edge){parts->operands[i]->node, parts->operands[i]->output} : body->parameters[i];
  for (int r = 0; types && r < body->result_count; r++) {
    types[r] = mix_edge_value(body->results[r])->type;
    if (r >= parts->carry_count) types[r].shape = mix_scan_stacked(parts->steps, types[r].shape);
  }
  if (inputs && types)
    node = mix_node_new_with_body(op,
                                  &(mix_scan_attributes){.steps = parts->steps,
                                                         .carries = parts->carry_count,
                                                         .inputs = parts->input_count,
                                                         .reverse = parts->reverse},
                                  body, operands, inputs, body->result_count, types);
  mix_free(inputs);
  mix_free(types);
  return node;
}

/* A step rounds what it reads to float16 by itself, so that gradients of steps add up in the wide dtype:
 * their sum may be too large for float16. hoist_invariants moves it out again. Not in a loop inside a loop:
 * what is rounded may change in the outer one, whose gradient must find it among its own nodes. */
static bool rounds_to_float16(const mix_node *node) {
  if (mix_loop_capture_current() || node->op != &mix_op_cast || !node->input_count ||
      node->outputs[0].dtype != MIX_FLOAT16)
    return false;
  const mix_dtype before = mix_input_value(node, 0)->dtype;
  return before == MIX_FLOAT32 || before == MIX_FLOAT64;
}

mix_node *mix_scan_build(const mix_op *op, const mix_scan_parts *parts) {
  if (mix_failed()) return NULL;
  mix_body *body =
      mix_body_new(parts->carry_count + parts->input_count, parts->varying,
                   parts->carry_count + parts->output_count, parts->results, parts->begin, rounds_to_float16);
  if (!body) return NULL;
  mix_node *node = NULL;
  if (!mix_tapes_open() || save_values(body, parts->carry_count)) node = new_node(op, parts, body);
  mix_release(body);
  return node;
}
