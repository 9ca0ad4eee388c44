/* sink_broadcasts: moves broadcasts after element-wise nodes. Programs broadcast by strides, so an
 * element-wise node reads x instead of broadcast_to(x), and a scalar instead of a fill. A node whose operands
 * are all smaller than its result is computed in their shape and broadcast afterwards. The gradient of a mean
 * (fill -> reshape -> broadcast_to -> divide) thus becomes one number, which "constant_fold" evaluates. The
 * bits do not change. Operations whose bits depend on the position of an element keep their shape. */
#include "passes/passes.h"
#include "passes/rematerialize.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

typedef struct broadcasting {
  mix_ir *ir;
  int *scalar; /* by node: the scalar constant of a fill; 0: not made yet */
} broadcasting;

static mix_ir_node *producer_of(const mix_ir *ir, int value) {
  return &ir->nodes[mix_ir_producer(ir, value)];
}
static int64_t size_of(const mix_ir *ir, int value) { return mix_shape_size(ir->values[value].shape); }

static void becomes_broadcast(mix_ir *ir, int n, int from, mix_shape_attributes *attributes) {
  mix_ir_node *node = &ir->nodes[n];
  attributes->shape = ir->values[node->first_output].shape;
  node->op = &mix_op_broadcast_to;
  node->attributes = attributes;
  node->input_count = 1;
  node->inputs[0] = from;
}

/* The value of a fill as a scalar constant. -1: out of memory. */
static int scalar_of_fill(broadcasting *b, int n) {
  if (b->scalar[n]) return b->scalar[n];
  const mix_shape_attributes *fill = b->ir->nodes[n].attributes;
  mix_memory *memory = mix_memory_new(&mix_host_memory, mix_dtype_size(fill->dtype));
  void *data = memory ? mix_memory_map(memory, MIX_MAP_WRITE) : NULL;
  if (!data) return mix_release(memory), -1;
  if (mix_dtype_is_floating(fill->dtype))
    mix_store_double(data, fill->dtype, 0, fill->value);
  else
    mix_convert(&fill->value, MIX_FLOAT64, data, fill->dtype, 1);
  mix_memory_unmap(memory);
  b->scalar[n] = mix_ir_add_constant(b->ir, memory, 0, (mix_type){fill->dtype, {.rank = 0}});
  mix_release(memory);
  return b->scalar[n];
}

/* What an element-wise node can read instead of the value. -1: out of memory. */
static int narrower(broadcasting *b, int value) {
  const mix_ir_node *producer = producer_of(b->ir, value);
  for (; producer->op->flags & MIX_OP_BROADCAST; producer = producer_of(b->ir, value))
    value = producer->inputs[0];
  if ((producer->op->flags & MIX_OP_UNIFORM) && size_of(b->ir, value) > 1)
    return scalar_of_fill(b, mix_ir_producer(b->ir, value));
  return value;
}

/* Do the bits of an element depend on its position? With fewer than eight elements all are in the tail. */
static bool depends_on_position(const mix_ir_node *node, mix_ir_value result) {
  return mix_opcode_draws(node->op->opcode) ||
         (mix_opcode_has_tail(node->op->opcode) && result.dtype != MIX_FLOAT64 &&
          mix_shape_size(result.shape) >= 8);
}

static bool narrow_node(broadcasting *b, int n) {
  mix_ir *ir = b->ir;
  int inputs[3], count = ir->nodes[n].input_count;
  mix_ir_value result = ir->values[ir->nodes[n].first_output];
  mix_shape shape = {.rank = 0};
  for (int i = 0; i < count; i++) {
    inputs[i] = narrower(b, ir->nodes[n].inputs[i]);
    if (inputs[i] < 0 || !mix_shape_broadcast(shape, ir->values[inputs[i]].shape, &shape))
      return inputs[i] >= 0;
  }
  mix_ir_node *node = &ir->nodes[n];
  if (mix_shape_equal(shape, result.shape)) {
    for (int i = 0; i < count; i++) node->inputs[i] = inputs[i];
    return true;
  }
  if (depends_on_position(node, result) && mix_shape_size(shape) != mix_shape_size(result.shape)) return true;
  mix_shape_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  int small = attributes ? mix_ir_add(ir, node->op, node->attributes, count, inputs, 1,
                                      &(mix_type){.dtype = result.dtype, .shape = shape})
                         : -1;
  if (small < 0) return false;
  ir->nodes[small].scope = ir->nodes[n].scope;
  ir->nodes[small].backward = ir->nodes[n].backward;
  ir->nodes[small].keep = ir->nodes[n].keep;
  becomes_broadcast(ir, n, ir->nodes[small].first_output, attributes);
  return true;
}

/* A reshape of a uniform value is the same value in another shape; a reshape of a scalar is its broadcast. */
static bool reshape_uniform(broadcasting *b, int n) {
  mix_ir *ir = b->ir;
  const mix_ir_node *producer = producer_of(ir, ir->nodes[n].inputs[0]);
  bool fill = producer->op->flags & MIX_OP_UNIFORM,
       one = (producer->op->flags & MIX_OP_BROADCAST) && size_of(ir, producer->inputs[0]) == 1;
  mix_shape shape = ir->values[ir->nodes[n].first_output].shape;
  bool scalar = ir->values[ir->nodes[n].inputs[0]].shape.rank == 0;
  if (!fill && !one && !scalar) return true;
  mix_shape_attributes *attributes = mix_ir_alloc(ir, sizeof *attributes);
  if (!attributes) return false;
  if (fill) {
    *attributes = *(const mix_shape_attributes *)producer->attributes;
    attributes->shape = shape;
    ir->nodes[n].op = producer->op;
    ir->nodes[n].attributes = attributes;
    ir->nodes[n].input_count = 0;
    return true;
  }
  int x = scalar ? ir->nodes[n].inputs[0] : producer->inputs[0];
  if (ir->values[x].shape.rank > 0) {
    mix_shape_attributes *rank_0 = mix_ir_alloc(ir, sizeof *rank_0);
    mix_type type = {.dtype = ir->values[x].dtype, .shape = {.rank = 0}};
    int reshape = rank_0 ? mix_ir_add(ir, &mix_op_reshape, rank_0, 1, &x, 1, &type) : -1;
    if (reshape < 0) return false;
    x = ir->nodes[reshape].first_output;
  }
  becomes_broadcast(ir, n, x, attributes);
  return true;
}

bool mix_pass_sink_broadcasts(mix_ir *ir) {
  int count = ir->node_count; /* added nodes come later and need no visit */
  broadcasting b = {.ir = ir, .scalar = mix_ir_ints(ir, count + 1)};
  if (!b.scalar) return false;
  for (int n = 0; n < count; n++) {
    const mix_ir_node *node = &ir->nodes[n];
    if (node->dead || node->source || node->output_count != 1) continue;
    if (node->op->flags & MIX_OP_VIEW) {
      if (!reshape_uniform(&b, n)) return false;
    } else if (mix_ir_fusable(node) && !mix_ir_may_fail(ir, node)) {
      if (!narrow_node(&b, n)) return false;
    }
  }
  /* A broadcast that must still be stored becomes an identity over the larger space, which can join a
   * program. */
  for (int n = 0; n < ir->node_count; n++)
    if (!ir->nodes[n].dead && (ir->nodes[n].op->flags & MIX_OP_BROADCAST)) ir->nodes[n].op = &mix_op_identity;
  return mix_ir_sort(ir);
}
