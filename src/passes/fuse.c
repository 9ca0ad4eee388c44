/* fuse: element-wise fusion. Nodes over the same iteration space and under the same guard join one program
 * (fusion_groups.c). A program may end in a finite check, in a sum or mean of all elements, or in several of
 * rows and columns. */
#include "passes/fusion_groups.h"
#include "passes/rematerialize.h"
#include "tensor/shape.h"
#include <string.h>

/* Drops dimensions of size 1 and merges neighbours that every load steps through as one. */
static void collapse(mix_program *program, mix_shape space) {
  int rank = 0;
  for (int d = 0; d < space.rank; d++) {
    if (space.dims[d] == 1) continue;
    bool merges = rank > 0;
    for (int l = 0; l < program->load_count && merges; l++)
      merges = program->loads[l].strides[rank - 1] == program->loads[l].strides[d] * space.dims[d];
    if (merges)
      program->dims[rank - 1] *= space.dims[d];
    else
      program->dims[rank++] = space.dims[d];
    for (int l = 0; l < program->load_count; l++)
      program->loads[l].strides[rank - 1] = program->loads[l].strides[d];
  }
  if (rank == 0) {
    program->dims[0] = 1;
    for (int l = 0; l < program->load_count; l++) program->loads[l].strides[0] = 0;
    rank = 1;
  }
  program->rank = rank;
}

typedef struct building {
  mix_program *program;
  int inputs[MIX_FUSION_MEMBERS * 4], input_count; /* values loaded */
  mix_type outputs[MIX_FUSION_MEMBERS + 1];
  int output_values[MIX_FUSION_MEMBERS + 1], output_count;
} building;

static int member_list(mix_fusion_groups *g, int root, int *members) {
  int count = 0;
  for (int n = root; n >= 0; n = g->next[n]) members[count++] = n;
  for (int i = 1; i < count; i++) /* node order, so that operands come first */
    for (int j = i; j > 0 && members[j - 1] > members[j]; j--) {
      int t = members[j];
      members[j] = members[j - 1];
      members[j - 1] = t;
    }
  return count;
}

static int load_register(building *b, int value) {
  for (int i = 0; i < b->input_count; i++)
    if (b->inputs[i] == value) return i;
  return -1;
}

/* Strides of the operand that a load reads instead of a slice of it, whose rows must be long enough to repay
 * reading them one by one. Returns the operand, or `value` itself: where the operand is as large as the
 * space, a result may overwrite it, and a small part must not keep a large computed operand alive. */
static int load_from(const mix_ir *ir, int value, mix_shape space, mix_program_load *load) {
  enum { SHORTEST = 16, MOST = 8 };
  const mix_ir_node *slice = &ir->nodes[mix_ir_producer(ir, value)];
  const mix_shape own = ir->values[value].shape;
  mix_program_strides(own, space, load->strides);
  if (slice->source || !(slice->op->flags & MIX_OP_SLICE)) return value;
  const mix_slice_attributes *cut = slice->attributes;
  const mix_shape from = ir->values[slice->inputs[0]].shape;
  int64_t stride = 1, length = 1, offset = 0;
  bool whole = true;
  for (int d = own.rank - 1; d >= 0; stride *= from.dims[d--]) {
    if (from.dims[d] != 1 && from.dims[d] < space.dims[d + space.rank - own.rank]) return value;
    if (whole) length *= own.dims[d];
    whole = whole && own.dims[d] == from.dims[d];
    offset += cut->begin.dims[d] * stride;
  }
  const bool source = ir->nodes[mix_ir_producer(ir, slice->inputs[0])].source;
  if (whole || length < SHORTEST || mix_shape_size(from) == mix_shape_size(space)) return value;
  if (!source && mix_shape_size(from) > MOST * mix_shape_size(own)) return value;
  load->offset = offset;
  stride = 1;
  for (int d = own.rank - 1, s = space.rank - 1; d >= 0; stride *= from.dims[d--], s--)
    load->strides[s] = own.dims[d] == 1 ? 0 : stride;
  return slice->inputs[0];
}

/* A single reduction that is not of columns has a form of its own. */
static void end_in_one(mix_program *program) {
  if (program->sum_count != 1 || program->sums[0].column) return;
  program->reduction = program->sums[0].kind;
  program->reduced = program->sums[0].reg;
  program->reduction_output = program->sums[0].output;
  program->row = program->sums[0].row;
  program->sum_count = 0;
}

/* The register of an earlier instruction that computes what the next one does, or -1. Nodes that are repeated
 * to save memory may meet the first in one program. */
static int same_register(const mix_program *program) {
  const mix_instruction *next = &program->instructions[program->instruction_count];
  for (int i = 0; i < program->instruction_count && !mix_opcode_draws(next->opcode); i++) {
    const mix_instruction *x = &program->instructions[i];
    if (x->opcode == next->opcode && x->dtype == next->dtype && x->immediate == next->immediate &&
        !memcmp(x->operands, next->operands, sizeof x->operands))
      return program->load_count + i;
  }
  return -1;
}

/* Emits the program of one group and the node that holds it. `becomes` maps old values to results of the
 * node. */
static bool emit(mix_fusion_groups *g, int root, int *inside, int *value_register, int *becomes) {
  mix_ir *ir = g->ir;
  int members[MIX_FUSION_MEMBERS], count = member_list(g, root, members);
  mix_shape space = mix_fusion_space(ir, root);
  building *b = mix_ir_alloc(ir, sizeof *b);
  mix_program *program = b ? mix_ir_alloc(ir, sizeof *program) : NULL;
  if (!program) return false;
  for (int m = 0; m < count; m++)
    for (int i = 0; i < ir->nodes[members[m]].input_count; i++) {
      int value = ir->nodes[members[m]].inputs[i];
      if (mix_fusion_root(g, mix_ir_producer(ir, value)) == root &&
          mix_fusion_takes(ir, &ir->nodes[mix_ir_producer(ir, value)]))
        inside[value]++;
      else if (load_register(b, value) < 0)
        b->inputs[b->input_count++] = value;
    }
  program->load_count = b->input_count;
  program->loads = mix_ir_array(ir, b->input_count + 1, sizeof *program->loads);
  program->instructions = mix_ir_array(ir, count + 1, sizeof *program->instructions);
  program->stores = mix_ir_array(ir, count + 1, sizeof *program->stores);
  program->sums = mix_ir_array(ir, MIX_PROGRAM_SUMS, sizeof *program->sums);
  if (!program->loads || !program->instructions || !program->stores || !program->sums) return false;
  int read[MIX_FUSION_MEMBERS * 4]; /* values, of which a slice may be an input */
  memcpy(read, b->inputs, sizeof read);
  const bool in_place = !g->reduces[root] && mix_pass_wanted(ir, "fuse");
  for (int i = 0; i < b->input_count; i++) {
    mix_program_load *load = &program->loads[i];
    *load = (mix_program_load){.input = i, .dtype = ir->values[b->inputs[i]].dtype};
    if (in_place)
      read[i] = load_from(ir, b->inputs[i], space, load);
    else
      mix_program_strides(ir->values[b->inputs[i]].shape, space, load->strides);
  }
  const char *scope = NULL;
  int ended[MIX_PROGRAM_SUMS]; /* values, by sum */
  for (int m = 0; m < count; m++) {
    const mix_ir_node *node = &ir->nodes[members[m]];
    if (node->scope) scope = node->scope;
    int operands[3] = {0};
    for (int i = 0; i < node->input_count && i < 3; i++) {
      int reg = load_register(b, node->inputs[i]);
      operands[i] = reg >= 0 ? reg : value_register[node->inputs[i]];
    }
    if (mix_fusion_reduces(ir, node)) {
      mix_program_sum sum = {.kind = node->op->reduction};
      if (mix_fusion_is_sum(ir, node)) sum = mix_ir_sum_form(ir, node);
      sum.reg = operands[0];
      ended[program->sum_count] = node->first_output;
      program->sums[program->sum_count++] = sum;
      continue;
    }
    mix_instruction *instruction = &program->instructions[program->instruction_count];
    *instruction = (mix_instruction){.opcode = (mix_opcode)node->op->opcode,
                                     .dtype = ir->values[node->first_output].dtype,
                                     .operands = {operands[0], operands[1], operands[2]}};
    if (node->op->attributes_size == sizeof(mix_alpha_attributes))
      instruction->immediate = ((const mix_alpha_attributes *)node->attributes)->alpha;
    const bool stored = g->uses[node->first_output] != inside[node->first_output];
    const int same = stored ? -1 : same_register(program);
    value_register[node->first_output] =
        same >= 0 ? same : program->load_count + program->instruction_count++;
  }
  for (int m = 0; m < count; m++) {
    int value = ir->nodes[members[m]].first_output;
    if (mix_fusion_reduces(ir, &ir->nodes[members[m]]) || g->uses[value] == inside[value]) continue;
    program->stores[program->store_count++] =
        (mix_program_store){.output = b->output_count, .reg = value_register[value]};
    b->outputs[b->output_count] = ir->values[value].type;
    b->output_values[b->output_count++] = value;
  }
  for (int i = 0; i < program->sum_count; i++) {
    program->sums[i].output = b->output_count;
    b->outputs[b->output_count] = ir->values[ended[i]].type;
    b->output_values[b->output_count++] = ended[i];
  }
  end_in_one(program);
  collapse(program, space);
  int guard = ir->nodes[root].guard_key;
  for (int m = 0; m < count; m++) ir->nodes[members[m]].dead = true;
  if (!b->output_count) return true; /* unused, and "dce" is off */
  int fused = mix_ir_add(ir, &mix_op_fused, NULL, b->input_count, read, b->output_count, b->outputs);
  if (fused < 0) return false;
  ir->nodes[fused].program = program;
  ir->nodes[fused].guard = guard;
  ir->nodes[fused].scope = scope;
  for (int i = 0; i < b->output_count; i++) becomes[b->output_values[i]] = ir->nodes[fused].first_output + i;
  return true;
}

/* Slices whose users all read their operand. */
static bool remove_slices(mix_ir *ir) {
  const int *uses = mix_ir_uses(ir);
  for (int n = 0; n < ir->node_count && uses; n++)
    if ((ir->nodes[n].op->flags & MIX_OP_SLICE) && !uses[ir->nodes[n].first_output]) ir->nodes[n].dead = true;
  return uses != NULL;
}

bool mix_pass_fuse(mix_ir *ir) {
  mix_fusion_groups g;
  if (mix_pass_wanted(ir, "fuse") &&
      !(mix_ir_recompute_later(ir) && mix_ir_recompute(ir) && mix_ir_recompute_narrow(ir)))
    return false;
  if (!mix_ir_guard_keys(ir) || !mix_fusion_make_groups(ir, &g)) return false;
  int nodes = ir->node_count, values = ir->value_count;
  int *inside = mix_ir_ints(ir, values + 1);
  int *value_register = mix_ir_ints(ir, values + 1);
  int *becomes = mix_ir_ints(ir, values + 1);
  if (!inside || !value_register || !becomes) return false;
  for (int v = 0; v < values; v++) becomes[v] = v;
  for (int n = 0; n < nodes; n++) {
    if (mix_ir_update(&ir->nodes[n])) ir->nodes[n].guard = ir->nodes[n].guard_key;
    if (mix_fusion_root(&g, n) != n || !mix_fusion_takes(ir, &ir->nodes[n])) continue;
    /* A reduction alone keeps its own kernel, except the finite check of a product, which becomes its
     * epilogue. */
    const bool checks_product =
        mix_ir_finite_check(&ir->nodes[n]) && mix_ir_is_product(ir, ir->nodes[n].inputs[0]);
    if (mix_fusion_reduces(ir, &ir->nodes[n]) && g.size[n] == 1 && !checks_product) {
      ir->nodes[n].guard = ir->nodes[n].guard_key;
      continue;
    }
    if (!emit(&g, n, inside, value_register, becomes)) return false;
  }
  for (int n = 0; n < ir->node_count; n++) {
    mix_ir_node *node = &ir->nodes[n];
    if (node->dead) continue;
    for (int i = 0; i < node->input_count; i++)
      if (node->inputs[i] < values) node->inputs[i] = becomes[node->inputs[i]];
    if (node->guard >= 0 && node->guard < values) node->guard = becomes[node->guard];
    node->guard_key = -1;
  }
  for (int i = 0; i < ir->result_count; i++) ir->results[i] = becomes[ir->results[i]];
  for (int i = 0; i < ir->variable_count; i++) {
    ir->variables[i].exit = becomes[ir->variables[i].exit];
    if (ir->variables[i].guard >= 0) ir->variables[i].guard = becomes[ir->variables[i].guard];
  }
  return remove_slices(ir) && mix_ir_sort(ir);
}
