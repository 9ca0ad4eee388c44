/* Softmax and cross-entropies, over the last axis. */
#include "backend/xla/emit_inside.h"

#include <math.h>

typedef struct normalized {
  mix_hlo shifted, exponentials, sum; /* sum: without the axis */
} normalized;

static normalized normalize(mix_emitter *e, mix_hlo x) {
  mix_hlo_writer *w = &e->w;
  x = mix_emit_widen(e, x);
  const mix_hlo largest = mix_hlo_reduce_last(w, "maximum", x, -INFINITY);
  normalized n = {.shifted = mix_hlo_subtract(w, x, mix_emit_along_last(e, largest, x.shape))};
  n.exponentials = mix_hlo_unary(w, "exponential", n.shifted);
  n.sum = mix_hlo_reduce_last(w, "add", n.exponentials, 0);
  return n;
}

static mix_hlo probabilities(mix_emitter *e, const normalized *n) {
  return mix_hlo_divide(&e->w, n->exponentials, mix_emit_along_last(e, n->sum, n->exponentials.shape));
}

mix_hlo mix_emit_probabilities(mix_emitter *e, mix_hlo x) {
  const normalized n = normalize(e, x);
  return probabilities(e, &n);
}

void mix_emit_softmax(mix_emitter *e, const mix_ir_node *node) {
  mix_emit_result(e, node, 0, mix_emit_probabilities(e, mix_emit_operand(e, node, 0)));
}

void mix_emit_log_softmax(mix_emitter *e, const mix_ir_node *node) {
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_hlo logarithm = mix_hlo_unary(&e->w, "log", n.sum);
  mix_emit_result(e, node, 0,
                  mix_hlo_subtract(&e->w, n.shifted, mix_emit_along_last(e, logarithm, n.shifted.shape)));
}

void mix_emit_softmax_cross_entropy(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_hlo labels =
                    mix_hlo_broadcast(w, mix_emit_widen(e, mix_emit_operand(e, node, 1)), n.shifted.shape),
                logarithm = mix_emit_along_last(e, mix_hlo_unary(w, "log", n.sum), n.shifted.shape),
                losses = mix_hlo_multiply(w, labels, mix_hlo_subtract(w, logarithm, n.shifted));
  mix_emit_result(e, node, 0, mix_hlo_reduce_last(w, "add", losses, 0));
  mix_emit_result(e, node, 1, mix_hlo_subtract(w, probabilities(e, &n), labels));
}

/* A label outside fails, and gives NaN. */
void mix_emit_sparse_softmax_cross_entropy(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const normalized n = normalize(e, mix_emit_operand(e, node, 0));
  const mix_shape shape = n.shifted.shape;
  const int64_t classes = shape.dims[shape.rank - 1];
  const mix_hlo labels = mix_hlo_convert(w, mix_emit_operand(e, node, 1), MIX_INT64),
                bad = mix_emit_outside(e, labels, classes),
                places = mix_hlo_iota(w, mix_type_of(MIX_INT64, shape), shape.rank - 1),
                hot = mix_hlo_compare(w, "EQ", places, mix_emit_along_last(e, labels, shape)),
                zero = mix_hlo_like(w, n.shifted, 0), nan = mix_hlo_like(w, n.shifted, NAN),
                own = mix_hlo_reduce_last(w, "add", mix_hlo_select(w, hot, n.shifted, zero), 0),
                loss = mix_hlo_subtract(w, mix_hlo_unary(w, "log", n.sum), own),
                likely = probabilities(e, &n),
                gradient = mix_hlo_subtract(w, likely, mix_hlo_convert(w, hot, zero.dtype));
  mix_emit_check(e, bad, labels,
                 (mix_bad_value){.what = "label",
                                 .range = "the classes",
                                 .remedy = "labels are indices into the last dimension of the predictions, "
                                           "from 0 on",
                                 .limit = classes});
  mix_emit_result(e, node, 0, mix_hlo_select(w, bad, mix_hlo_like(w, loss, NAN), loss));
  mix_emit_result(e, node, 1, mix_hlo_select(w, mix_emit_along_last(e, bad, shape), nan, gradient));
}
