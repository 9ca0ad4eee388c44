/* mix_scan: builds the body of a loop once, from placeholders for the values of a step. What it reads from
 * outside becomes an operand of the node; variables that it assigns become part of the carry. */
#include "ops/scan.h"

#include "base/alloc.h"
#include "base/fields.h"
#include "graph/loop_capture.h"
#include "ops/rules.h"
#include <mixtape/scan.h>

typedef struct scan_call {
  const mix_scan_options *options;
  mix_scan_parts parts;
  mix_edge *varying, *results; /* in the scope of the call, as `operands` */
  mix_tensor **operands;
  /* The carry is that of the caller, and the values of variables that the body assigns. */
  int given_carries;
  mix_loop_capture trace; /* these variables */
  bool symbolic;
} scan_call;

static bool fail_operand(const char *kind, int index, const char *what) {
  return mix_fail_type("scan: %s %d is %s", kind, index, what);
}

static bool is_tensor(const char *kind, int index, const void *item) {
  if (mix_is(item, &mix_tensor_class)) return true;
  return fail_operand(kind, index, item ? "another object; expected a tensor" : "NULL; expected a tensor");
}

/* The length of the first axis of all inputs. */
static bool find_steps(scan_call *call) {
  const mix_list *inputs = call->options->inputs;
  int64_t steps = call->options->steps ? call->options->steps : MIX_UNKNOWN;
  for (int i = 0; i < mix_list_count(inputs); i++) {
    const mix_shape shape = mix_tensor_shape(mix_list_get(inputs, i));
    if (!shape.rank || !mix_dimension_merge(steps, shape.dims[0], &steps))
      return mix_fail_value("scan: input %d has shape %s; expected %s%lld steps along its first axis", i,
                            MIX_SHAPE_TEXT(shape), shape.rank ? "" : "one dimension or more, for ",
                            (long long)(steps == MIX_UNKNOWN ? 1 : steps));
  }
  call->parts.steps = steps;
  if (steps >= 0 || call->symbolic) return true;
  return mix_fail_value("scan: there are no inputs; expected a number of steps");
}

static bool collect_operands(scan_call *call) {
  mix_list *lists[2] = {call->options->carry, call->options->inputs};
  static const char *const kinds[2] = {"carry", "input"};
  const int carries = call->given_carries, inputs = call->parts.input_count;
  const int count = carries + call->trace.count + inputs;
  call->parts.carry_count = carries + call->trace.count;
  call->varying = mix_scoped_memory(sizeof *call->varying * ((size_t)count + 1));
  call->operands = mix_scoped_memory(sizeof *call->operands * ((size_t)count + 1));
  if (!call->varying || !call->operands) return false;
  for (int l = 0; l < 2; l++)
    for (int i = 0; i < (l ? inputs : carries); i++) {
      mix_tensor *tensor = mix_list_get(lists[l], i);
      if (!is_tensor(kinds[l], i, tensor)) return false;
      call->symbolic |= tensor->node->symbolic;
      call->operands[l ? call->parts.carry_count + i : i] = tensor;
    }
  for (int i = 0; i < call->trace.count; i++)
    if (!(call->operands[carries + i] = mix_variable_true_value(call->trace.variables[i].variable)))
      return false;
  return find_steps(call);
}

/* The shape without its first axis. */
static mix_shape step_shape(mix_shape stacked) {
  mix_shape shape = {.rank = stacked.rank - 1};
  for (int i = 0; i < shape.rank; i++) shape.dims[i] = stacked.dims[i + 1];
  return shape;
}

/* Placeholders for operands [first, first + count). */
static mix_list *placeholders(scan_call *call, int first, int count) {
  mix_list *list = mix_list_new(0, NULL);
  for (int i = first; i < first + count && !mix_failed(); i++) {
    const mix_type type = mix_tensor_value(call->operands[i])->type;
    mix_node *node = mix_node_placeholder(
        type.dtype, i < call->parts.carry_count ? type.shape : step_shape(type.shape), call->symbolic);
    if (node) mix_list_append(list, mix_tensor_of(node, 0));
    call->varying[i] = (mix_edge){node, 0};
    mix_release(node);
  }
  return mix_failed() ? NULL : list;
}

static bool same_type(const scan_call *call, int index, mix_tensor *next) {
  const mix_value *before = mix_edge_value(call->varying[index]), *after = mix_tensor_value(next);
  bool same = before->dtype == after->dtype && before->shape.rank == after->shape.rank;
  int64_t merged;
  for (int d = 0; same && d < before->shape.rank; d++)
    same = mix_dimension_merge(before->shape.dims[d], after->shape.dims[d], &merged);
  if (same) return true;
  return mix_fail_value("scan: carry %d is %s %s before a step and %s %s after it; expected one type", index,
                        mix_dtype_name(before->dtype), MIX_SHAPE_TEXT(before->shape),
                        mix_dtype_name(after->dtype), MIX_SHAPE_TEXT(after->shape));
}

/* The results of the body: two lists. */
static bool collect_results(scan_call *call, mix_list *given) {
  mix_list *lists[2];
  if (!mix_is(given, &mix_list_class) || mix_list_count(given) != 2)
    return mix_fail_type("scan: the body returned %s; expected a list of two lists, the next carry and "
                         "the outputs",
                         given ? "something else" : "NULL");
  for (int l = 0; l < 2; l++) {
    lists[l] = mix_list_get(given, l);
    if (lists[l] && !mix_is(lists[l], &mix_list_class))
      return mix_fail_type("scan: the body returned a list of tensors; expected a list of two lists");
  }
  const int carries = mix_list_count(lists[0]), outputs = mix_list_count(lists[1]);
  if (carries != call->given_carries)
    return mix_fail_value("scan: the body returned %d tensors as the next carry; expected %d", carries,
                          call->given_carries);
  const int variables = call->trace.count;
  call->parts.output_count = outputs;
  call->results = mix_scoped_memory(sizeof(mix_edge) * ((size_t)(carries + variables + outputs) + 1));
  for (int i = 0; call->results && i < variables; i++)
    call->results[carries + i] =
        (mix_edge){call->trace.variables[i].value->node, call->trace.variables[i].value->output};
  if (!call->results) return false;
  for (int i = 0; i < carries + outputs; i++) {
    mix_tensor *tensor = mix_list_get(lists[i >= carries], i < carries ? i : i - carries);
    if (!is_tensor(i < carries ? "next carry" : "output", i < carries ? i : i - carries, tensor))
      return false;
    if (i < carries && !same_type(call, i, tensor)) return false;
    if (i >= carries && mix_tensor_shape(tensor).rank == MIX_MAX_RANK)
      return mix_fail_value("scan: output %d has %d dimensions; expected at most %d", i - carries,
                            MIX_MAX_RANK, MIX_MAX_RANK - 1);
    call->results[i < carries ? i : i + variables] = (mix_edge){tensor->node, tensor->output};
  }
  return true;
}

/* Symbolic nodes keep nothing that they read, so that a body has no graph. */
static mix_node *symbolic_node(scan_call *call) {
  const mix_scan_parts *parts = &call->parts;
  const int operands = parts->carry_count + parts->input_count,
            results = parts->carry_count + parts->output_count;
  mix_edge *inputs = mix_calloc((size_t)operands + 1, sizeof *inputs);
  mix_type *types = mix_calloc((size_t)results + 1, sizeof *types);
  mix_node *node = NULL;
  for (int i = 0; inputs && i < operands; i++)
    inputs[i] = (mix_edge){call->operands[i]->node, call->operands[i]->output};
  for (int r = 0; types && r < results; r++) {
    types[r] = mix_edge_value(call->results[r])->type;
    if (r >= parts->carry_count) types[r].shape = mix_scan_stacked(parts->steps, types[r].shape);
  }
  if (inputs && types)
    node = mix_node_new_with_body(&mix_op_scan, &(mix_scan_attributes){.steps = parts->steps}, NULL, operands,
                                  inputs, results, types);
  mix_free(inputs);
  mix_free(types);
  return node;
}

static mix_list *result_lists(const scan_call *call, mix_node *node) {
  mix_list *carry = mix_list_new(0, NULL), *outputs = mix_list_new(0, NULL);
  const int carries = call->parts.carry_count;
  for (int i = 0; i < call->given_carries && !mix_failed(); i++)
    mix_list_append(carry, mix_tensor_of(node, i));
  for (int i = 0; i < call->parts.output_count && !mix_failed(); i++)
    mix_list_append(outputs, mix_tensor_of(node, carries + i));
  for (int i = call->given_carries; i < carries && !call->symbolic && !mix_failed(); i++)
    mix_variable_assign(call->trace.variables[i - call->given_carries].variable, mix_tensor_of(node, i));
  return mix_failed() ? NULL : mix_list_of(carry, outputs);
}

/* Builds one step: placeholders stand for what changes from step to step. */
static bool build_step(scan_call *call) {
  const mix_scan_options *options = call->options;
  mix_scan_parts *parts = &call->parts;
  parts->begin = mix_node_next_sequence();
  mix_list *carry = placeholders(call, 0, call->given_carries);
  mix_list *values = placeholders(call, call->given_carries, call->trace.count);
  mix_list *inputs = values ? placeholders(call, parts->carry_count, parts->input_count) : NULL;
  for (int i = 0; i < mix_list_count(values) && inputs; i++)
    mix_loop_assign(&call->trace, call->trace.variables[i].variable, mix_list_get(values, i));
  mix_loop_capture *former = mix_loop_capture_set(&call->trace);
  mix_list *given = inputs && !mix_failed() ? options->body(options->context, carry, inputs) : NULL;
  mix_loop_capture_set(former);
  return !mix_failed() && collect_results(call, given);
}

/* A body that assigns variables is built again, with their values as part of the carry. */
static mix_list *run_body(scan_call *call) {
  mix_scan_parts *parts = &call->parts;
  int known;
  do {
    known = call->trace.count;
    if (!collect_operands(call) || !build_step(call)) return NULL;
  } while (call->trace.count > known);
  parts->varying = call->varying;
  parts->operands = call->operands;
  parts->results = call->results;
  mix_node *node = call->symbolic ? symbolic_node(call) : mix_scan_build(&mix_op_scan, parts);
  mix_list *result = node ? result_lists(call, node) : NULL;
  mix_release(node);
  return result;
}

mix_list *mix_scan_with(const mix_scan_options *given) {
  MIX_OPTIONS(mix_scan_options, options, given, "scan");
  if (!options.body) return mix_fail_type("scan: the body is NULL; expected a function");
  if (options.steps < 0)
    return mix_fail_value("scan: %lld steps; expected 0 or more", (long long)options.steps);
  if ((options.carry && !mix_is(options.carry, &mix_list_class)) ||
      (options.inputs && !mix_is(options.inputs, &mix_list_class)))
    return mix_fail_type("scan: carry or inputs are another object; expected lists of tensors");
  scan_call call = {.options = &options,
                    .given_carries = mix_list_count(options.carry),
                    .parts = {.input_count = mix_list_count(options.inputs), .reverse = options.reverse},
                    .trace = {.outer = mix_loop_capture_current()}};
  mix_scope *scope = mix_scope_begin();
  mix_list *result = scope ? mix_retain(run_body(&call)) : NULL;
  mix_loop_capture_clear(&call.trace);
  mix_scope_end(scope);
  return mix_scoped(result);
}
