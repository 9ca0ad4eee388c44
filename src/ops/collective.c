/* Collectives. All ranks run the same ones in the same order, which passes and planner keep
 * (MIX_OP_COLLECTIVE). A process that is gone is an error at run time, as a bad value is. */
#include "ops/collective.h"

#include "ops/rules.h"
#include <stddef.h>

mix_tensor *mix_all_reduce_start(mix_tensor *x) { return mix_apply1(&mix_op_all_reduce_start, x); }
mix_tensor *mix_all_reduce_done(mix_tensor *pending) { return mix_apply1(&mix_op_all_reduce_done, pending); }

/* What every rank adds flows back from what every rank makes of the sum. */
static void start_gradient(mix_node *node, mix_tensor *const *output_gradients,
                           mix_tensor **input_gradients) {
  input_gradients[0] = mix_all_reduce_done(mix_all_reduce_start(output_gradients[0]));
}
static void done_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  input_gradients[0] = output_gradients[0];
}

const mix_op mix_op_all_reduce_start = {.name = "all_reduce_start",
                                        .signature = "T->T",
                                        .types = "number",
                                        .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES,
                                        .infer = mix_rule_same,
                                        .gradient = start_gradient};
const mix_op mix_op_all_reduce_done = {.name = "all_reduce_done",
                                       .tf_name = "CollectiveReduceV2",
                                       .signature = "T->T",
                                       .types = "number",
                                       .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES | MIX_OP_WAITS,
                                       .infer = mix_rule_same,
                                       .gradient = done_gradient};

static bool broadcast_infer(mix_node *node) {
  if (((const mix_broadcast_attributes *)node->attributes)->root < 0)
    return mix_rule_fail(node, "the root is not a rank");
  return mix_rule_same(node);
}
static const mix_attribute_row broadcast_fields[] = {
    {"root", MIX_ATTRIBUTE_INT, offsetof(mix_broadcast_attributes, root)}, {NULL}};

const mix_op mix_op_broadcast = {.name = "broadcast",
                                 .tf_name = "CollectiveBcastSendV2",
                                 .signature = "T->T",
                                 .types = "any",
                                 .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES,
                                 .attributes_size = sizeof(mix_broadcast_attributes),
                                 .infer = broadcast_infer,
                                 .fields = broadcast_fields};

mix_tensor *mix_broadcast_from(mix_tensor *x, int root) {
  return mix_apply(&mix_op_broadcast, &(mix_broadcast_attributes){root}, 1, &x);
}

static bool all_gather_infer(mix_node *node) {
  const int ranks = ((const mix_all_gather_attributes *)node->attributes)->ranks;
  mix_shape shape = mix_input_value(node, 0)->shape;
  if (ranks < 1) return mix_rule_fail(node, "the number of ranks is not positive");
  if (shape.rank < 1) return mix_rule_fail(node, "expected a tensor with rows, (rows, ...)");
  if (shape.dims[0] != MIX_UNKNOWN) shape.dims[0] *= ranks;
  return mix_rule_output(node, 0, shape);
}
static const mix_attribute_row all_gather_fields[] = {
    {"ranks", MIX_ATTRIBUTE_INT, offsetof(mix_all_gather_attributes, ranks)}, {NULL}};

const mix_op mix_op_all_gather = {.name = "all_gather",
                                  .tf_name = "CollectiveGatherV2",
                                  .signature = "T->T",
                                  .types = "any",
                                  .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES,
                                  .attributes_size = sizeof(mix_all_gather_attributes),
                                  .infer = all_gather_infer,
                                  .fields = all_gather_fields};

mix_tensor *mix_all_gather_of(mix_tensor *x, int ranks) {
  return mix_apply(&mix_op_all_gather, &(mix_all_gather_attributes){ranks}, 1, &x);
}

/* ---- values that are divided among the ranks ---- */

mix_division mix_division_of(mix_shape shape, int owner) {
  const int64_t rows = shape.rank ? shape.dims[0] : 1;
  return (mix_division){owner, rows, rows ? mix_shape_size(shape) / rows : 0};
}

mix_shape mix_share_shape(mix_shape shape, const mix_division *division, int rank, int ranks) {
  const int64_t rows = mix_division_rows(division, ranks, rank);
  if (!rows) return (mix_shape){.rank = 0};
  if (shape.rank) shape.dims[0] = rows;
  return shape;
}

static const mix_attribute_row share_fields[] = {
    {"owner", MIX_ATTRIBUTE_INT, offsetof(mix_share_attributes, owner)},
    {"rank", MIX_ATTRIBUTE_INT, offsetof(mix_share_attributes, rank)},
    {"ranks", MIX_ATTRIBUTE_INT, offsetof(mix_share_attributes, ranks)},
    {"shape", MIX_ATTRIBUTE_SHAPE, offsetof(mix_share_attributes, shape)},
    {NULL}};

/* Sets the shape of this rank's share. */
static bool share_checked(mix_node *node, mix_shape *own) {
  const mix_share_attributes *a = node->attributes;
  if (a->ranks < 1 || a->rank < 0 || a->rank >= a->ranks || a->owner < MIX_BY_ROWS || a->owner >= a->ranks)
    return mix_rule_fail(node, "the owner or the rank is not one of the ranks");
  const mix_division division = mix_division_of(a->shape, a->owner);
  if (a->owner == MIX_BY_ROWS && (!a->shape.rank || !mix_division_reaches(&division, a->ranks)))
    return mix_rule_fail(node, "there are too few rows for so many ranks");
  *own = mix_share_shape(a->shape, &division, a->rank, a->ranks);
  return true;
}

static bool scatter_start_infer(mix_node *node) {
  mix_shape own;
  const mix_share_attributes *a = node->attributes;
  if (!share_checked(node, &own)) return false;
  if (!mix_shape_equal(mix_input_value(node, 0)->shape, a->shape))
    return mix_rule_fail(node, "the operand has another shape than what is divided");
  return mix_rule_same(node);
}
static bool scatter_done_infer(mix_node *node) {
  mix_shape own;
  const mix_share_attributes *a = node->attributes;
  if (!share_checked(node, &own)) return false;
  if (!mix_shape_equal(mix_input_value(node, 0)->shape, a->shape))
    return mix_rule_fail(node, "the operand has another shape than what is divided");
  return mix_rule_output(node, 0, own);
}
static bool collect_infer(mix_node *node) {
  mix_shape own;
  const mix_share_attributes *a = node->attributes;
  if (!share_checked(node, &own)) return false;
  if (!mix_shape_equal(mix_input_value(node, 0)->shape, own))
    return mix_rule_fail(node, "the operand is not this rank's share");
  return mix_rule_output(node, 0, a->shape);
}

const mix_op mix_op_reduce_scatter_start = {.name = "reduce_scatter_start",
                                            .signature = "T->T",
                                            .types = "number",
                                            .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES,
                                            .attributes_size = sizeof(mix_share_attributes),
                                            .infer = scatter_start_infer,
                                            .fields = share_fields};
const mix_op mix_op_reduce_scatter_done = {.name = "reduce_scatter_done",
                                           .tf_name = "CollectiveReduceScatterV2",
                                           .signature = "T->T",
                                           .types = "number",
                                           .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES | MIX_OP_WAITS,
                                           .attributes_size = sizeof(mix_share_attributes),
                                           .infer = scatter_done_infer,
                                           .fields = share_fields};
const mix_op mix_op_collect_shares = {.name = "collect_shares",
                                      .signature = "T->T",
                                      .types = "any",
                                      .flags = MIX_OP_COLLECTIVE | MIX_OP_CHECKS_VALUES,
                                      .attributes_size = sizeof(mix_share_attributes),
                                      .infer = collect_infer,
                                      .fields = share_fields};

bool mix_op_hands_on(const mix_op *op) { return op == &mix_op_collect_shares; }

mix_tensor *mix_reduce_scatter_start(mix_tensor *x, mix_division division, int rank, int ranks) {
  const mix_share_attributes attributes = {division.owner, rank, ranks, mix_tensor_shape(x)};
  return mix_apply(&mix_op_reduce_scatter_start, &attributes, 1, &x);
}
mix_tensor *mix_reduce_scatter_done(mix_tensor *pending) {
  return pending ? mix_apply(&mix_op_reduce_scatter_done, pending->node->attributes, 1, &pending) : NULL;
}
mix_tensor *mix_collect_shares(mix_tensor *own, mix_shape shape, mix_division division, int rank, int ranks) {
  const mix_share_attributes attributes = {division.owner, rank, ranks, shape};
  return mix_apply(&mix_op_collect_shares, &attributes, 1, &own);
}

mix_tensor *mix_before_upcast(mix_tensor *x) {
  if (!x || mix_tensor_dtype(x) != MIX_FLOAT32) return x;
  const mix_node *node = x->node;
  while (node->op->flags & MIX_OP_ELEMENTWISE && node->op->opcode == MIX_OPCODE_IDENTITY && node->input_count)
    node = node->inputs[0].node;
  if (node->op != &mix_op_cast || !node->input_count) return x;
  const mix_value *source = mix_input_value(node, 0);
  return mix_dtype_is_floating(source->dtype) && mix_dtype_size(source->dtype) == 2
             ? mix_tensor_of(node->inputs[0].node, node->inputs[0].output)
             : x;
}
