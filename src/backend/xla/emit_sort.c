/* Places in order, by a stable sort of the elements and their places. */
#include "backend/xla/emit_inside.h"

static void put_types(mix_hlo_writer *w, const mix_hlo *values) {
  mix_text_put(&w->text, "(");
  mix_hlo_put_type(w, values[0].type);
  mix_text_put(&w->text, ", ");
  mix_hlo_put_type(w, values[1].type);
  mix_text_put(&w->text, ")");
}

/* a < b, where NaN is the largest. */
static mix_hlo is_less(mix_hlo_writer *w, mix_hlo a, mix_hlo b) {
  const mix_hlo less = mix_hlo_compare(w, "LT", a, b);
  if (!mix_dtype_is_floating(a.dtype)) return less;
  const mix_hlo first_is_number = mix_hlo_compare(w, "EQ", a, a),
                second_is_nan = mix_hlo_compare(w, "NE", b, b);
  return mix_hlo_binary(w, "or", less, mix_hlo_and(w, first_is_number, second_is_nan));
}

/* The region: parameters a and b of each of the two operands. */
static void put_order(mix_hlo_writer *w, mix_dtype dtype, bool descending) {
  mix_hlo of[4];
  for (int i = 0; i < 4; i++) of[i] = mix_hlo_new(w, mix_type_of(i < 2 ? dtype : MIX_INT32, MIX_SCALAR));
  mix_text_put(&w->text, " ({\n");
  mix_hlo_line(w);
  for (int i = 0; i < 4; i++) {
    mix_text_put(&w->text, "%s%%%d: ", i ? ", " : "^bb0(", of[i].number);
    mix_hlo_put_type(w, of[i].type);
  }
  mix_text_put(&w->text, "):\n");
  w->indent++;
  const mix_hlo first = is_less(w, of[descending], of[!descending]);
  mix_hlo_line(w);
  mix_text_put(&w->text, "stablehlo.return ");
  mix_hlo_put(w, first);
  mix_text_put(&w->text, " : tensor<i1>\n");
  w->indent--;
  mix_hlo_line(w);
  mix_text_put(&w->text, "}) : ");
}

void mix_emit_argsort(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_type type = mix_emit_type(e, node, 0);
  const mix_hlo x = mix_emit_widen(e, mix_emit_operand(e, node, 0)),
                operands[] = {x, mix_hlo_iota(w, type, type.shape.rank - 1)};
  if (!mix_shape_size(type.shape)) {
    mix_emit_result(e, node, 0, operands[1]);
    return;
  }
  mix_hlo places = mix_hlo_new(w, type);
  mix_hlo_line(w);
  mix_text_put(&w->text, "%%%d:2 = \"stablehlo.sort\"(", places.number);
  mix_hlo_put(w, operands[0]);
  mix_text_put(&w->text, ", ");
  mix_hlo_put(w, operands[1]);
  mix_text_put(&w->text, ") <{dimension = %d : i64, is_stable = true}>", type.shape.rank - 1);
  put_order(w, x.dtype, ((const mix_argsort_attributes *)node->attributes)->descending);
  put_types(w, operands);
  mix_text_put(&w->text, " -> ");
  put_types(w, operands);
  mix_text_put(&w->text, "\n");
  places.part = 1;
  mix_emit_result(e, node, 0, places);
}
