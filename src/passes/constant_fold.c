/* constant_fold: evaluates small values that depend only on constants at compile time, by the backend that
 * would compute them in each run (same kernels, same bits), or by its host. */
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "base/alloc.h"
#include "base/error.h"
#include "tensor/shape.h"

enum { MAX_BYTES = 256, PITCH = MAX_BYTES + 64 };

static size_t bytes_of(const mix_ir *ir, int value) {
  return mix_value_bytes(ir->values[value].dtype, ir->values[value].shape);
}

/* Ops that cannot fail and are cheap: those without operands, views, broadcasts and element-wise ones. */
static bool foldable(const mix_ir *ir, const mix_ir_node *node, const bool *known) {
  if (node->dead || node->source || node->output_count != 1 || node->program || node->guard >= 0)
    return false;
  bool cheap = !node->input_count || (node->op->flags & (MIX_OP_VIEW | MIX_OP_BROADCAST)) ||
               (mix_ir_fusable(node) && !mix_ir_may_fail(ir, node));
  if (!cheap || !mix_op_is_repeatable(node->op) || bytes_of(ir, node->first_output) > MAX_BYTES) return false;
  for (int i = 0; i < node->input_count; i++)
    if (!known[mix_ir_producer(ir, node->inputs[i])]) return false;
  return true;
}

/* Copies the foldable nodes into a graph of their own. Its results are the values that other nodes use.
 * `mapped` maps old values to new ones. */
static mix_ir *extract(mix_ir *ir, const bool *known, const bool *wanted, int *mapped, int result_count) {
  mix_ir *part = mix_ir_new();
  if (!part) return NULL;
  part->name = "constants";
  part->eager = true;
  part->context = ir->context;
  part->results = mix_ir_ints(part, result_count + 1);
  bool good = part->results != NULL;
  for (int n = 0; n < ir->node_count && good; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (!known[n]) continue;
    mix_type type = ir->values[node->first_output].type;
    int inputs[3], value;
    if (node->source) {
      value = mix_ir_add_constant(part, node->memory, node->offset, type);
    } else {
      for (int i = 0; i < node->input_count; i++) inputs[i] = mapped[node->inputs[i]];
      int copy = mix_ir_add(part, node->op, node->attributes, node->input_count, inputs, 1, &type);
      value = copy < 0 ? -1 : part->nodes[copy].first_output;
    }
    good = value >= 0;
    mapped[node->first_output] = value;
    if (wanted[n]) part->results[part->result_count++] = value;
  }
  if (good) return part;
  mix_ir_free(part);
  return NULL;
}

/* Runs the part; result r begins at r * PITCH of the memory. */
static bool compute(const mix_ir *ir, mix_ir *part, int result_count, mix_memory *memory) {
  mix_memory **results = mix_calloc((size_t)result_count + 1, sizeof *results);
  bool good = results != NULL;
  for (int r = 0; r < result_count && good; r++)
    good = (results[r] = mix_memory_part(memory, (size_t)r * PITCH, MAX_BYTES)) != NULL;
  if (good)
    good = ir->evaluate(part, results);
  else
    mix_ir_free(part);
  for (int r = 0; results && r < result_count; r++) mix_release(results[r]);
  mix_free(results);
  return good;
}

bool mix_pass_constant_fold(mix_ir *ir) {
  if (ir->eager || !ir->evaluate) return true;
  bool *known = mix_ir_flags(ir, ir->node_count + 1); /* constants, and nodes that fold */
  /* folds, and is needed by a result, a variable or a node that does not fold */
  bool *wanted = mix_ir_flags(ir, ir->node_count + 1);
  bool *condition = mix_ir_conditions(ir); /* a guard stays a computed value */
  int *mapped = mix_ir_ints(ir, ir->value_count + 1);
  if (!known || !wanted || !condition || !mapped) return false;
  for (int n = 0; n < ir->node_count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    known[n] = node->source == MIX_IR_CONSTANT ? bytes_of(ir, node->first_output) <= MAX_BYTES
                                               : !condition[node->first_output] && foldable(ir, node, known);
    for (int i = 0; i < node->input_count && !known[n]; i++)
      wanted[mix_ir_producer(ir, node->inputs[i])] = true;
  }
  for (int i = 0; i < ir->result_count; i++) wanted[mix_ir_producer(ir, ir->results[i])] = true;
  for (int i = 0; i < ir->variable_count; i++) wanted[mix_ir_producer(ir, ir->variables[i].exit)] = true;
  int result_count = 0;
  for (int n = 0; n < ir->node_count; n++)
    result_count += wanted[n] = wanted[n] && known[n] && !ir->nodes[n].source;
  if (!result_count) return true;
  mix_memory *buffer = mix_memory_new(&mix_host_memory, (size_t)result_count * PITCH);
  if (!buffer) return false;
  mix_ir *part = extract(ir, known, wanted, mapped, result_count);
  bool good = part && compute(ir, part, result_count, buffer) && mix_ir_hold(ir, buffer);
  mix_release(buffer);
  if (!good) return false;
  for (int n = 0, r = 0; n < ir->node_count; n++) {
    if (!wanted[n]) continue;
    mix_ir_node *node = &ir->nodes[n];
    node->op = &mix_op_constant;
    node->source = MIX_IR_CONSTANT;
    node->attributes = NULL;
    node->input_count = 0;
    node->memory = buffer;
    node->offset = (size_t)r++ * PITCH;
  }
  return mix_ir_sort(ir);
}
