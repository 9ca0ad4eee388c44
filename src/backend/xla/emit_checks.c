/* Value errors: each check is a number of the signature, and the error word keeps the first one that fails.
 */
#include "backend/xla/emit_inside.h"

#include "ops/debug_ops.h"
#include <stdio.h>
#include <string.h>

/* The record of a check of the present node. Its number, or 0 with the error recorded. */
static int add_check(mix_emitter *e, mix_bad_value bad) {
  mix_xla_signature *s = e->signature;
  const mix_ir_node *node = e->node;
  if (s->check_count == e->check_capacity) {
    const int capacity = 2 * e->check_capacity + 8;
    mix_xla_check *larger = mix_ir_array(e->root, capacity, sizeof *larger);
    if (!larger) return 0;
    if (s->check_count) memcpy(larger, s->checks, sizeof *larger * (size_t)s->check_count);
    s->checks = larger;
    e->check_capacity = capacity;
  }
  mix_type *types = mix_ir_array(e->root, node->input_count + 1, sizeof *types);
  if (!types) return 0;
  for (int i = 0; i < node->input_count; i++) types[i] = e->ir->values[node->inputs[i]].type;
  s->checks[s->check_count++] = (mix_xla_check){.op = node->op,
                                                .scope = node->scope,
                                                .input_count = node->input_count,
                                                .input_types = types,
                                                .bad = bad};
  return s->check_count;
}

mix_hlo mix_emit_word(mix_hlo_writer *w, mix_hlo x) {
  return mix_hlo_reshape(w, mix_hlo_convert(w, x, MIX_INT64), MIX_SHAPE(1));
}

/* The lowest element that is bad, and its value, or 0 for an error that has none. */
void mix_emit_check(mix_emitter *e, mix_hlo bad, mix_hlo values, mix_bad_value reason) {
  mix_hlo_writer *w = &e->w;
  const int number = add_check(e, reason);
  if (!number) e->failed = true;
  const mix_shape flat = MIX_SHAPE(mix_shape_size(bad.shape));
  if (!number || !flat.dims[0]) return;
  bad = mix_hlo_reshape(w, bad, flat);
  const mix_hlo places = mix_hlo_iota(w, mix_type_of(MIX_INT64, flat), 0),
                behind = mix_hlo_like(w, places, (double)flat.dims[0]),
                first = mix_hlo_reduce_all(w, "minimum", mix_hlo_select(w, bad, places, behind),
                                           (double)flat.dims[0]);
  mix_hlo value = mix_hlo_like(w, first, 0);
  if (reason.range) {
    values = mix_hlo_convert(w, mix_hlo_reshape(w, values, flat), MIX_INT64);
    const mix_hlo here = mix_hlo_compare(w, "EQ", places, mix_hlo_broadcast(w, first, flat));
    value = mix_hlo_reduce_all(w, "add", mix_hlo_select(w, here, values, mix_hlo_like(w, values, 0)), 0);
  }
  const mix_hlo which = mix_emit_word(w, mix_hlo_whole(w, first.type, number)),
                element = mix_emit_word(w, first), met_value = mix_emit_word(w, value),
                words[] = {which, element, met_value},
                met = mix_hlo_concatenate(w, MIX_XLA_ERROR_WORDS, words, 0),
                fails = mix_hlo_compare(w, "LT", first, mix_hlo_like(w, first, (double)flat.dims[0])),
                before = mix_hlo_slice(w, e->error, (const int64_t[]){0}, (const int64_t[]){1}, NULL),
                former = mix_hlo_reshape(w, before, MIX_SCALAR),
                free_word = mix_hlo_compare(w, "EQ", former, mix_hlo_like(w, first, 0));
  e->error = mix_hlo_select(w, mix_hlo_and(w, fails, free_word), met, e->error);
}

/* Does any element have it? */
static mix_hlo any(mix_hlo_writer *w, mix_hlo elements) { return mix_hlo_reduce_all(w, "or", elements, 0); }

void mix_emit_check_numerics(mix_emitter *e, const mix_ir_node *node) {
  mix_hlo_writer *w = &e->w;
  const mix_hlo x = mix_emit_operand(e, node, 0), is_nan = mix_hlo_compare(w, "NE", x, x),
                is_infinite =
                    mix_hlo_not(w, mix_hlo_is_finite(w, mix_hlo_select(w, is_nan, mix_hlo_like(w, x, 0), x))),
                nan = any(w, is_nan), infinite = any(w, is_infinite), both = mix_hlo_and(w, nan, infinite),
                found[] = {both, nan, infinite};
  static const int has[] = {MIX_HAS_NAN | MIX_HAS_INFINITY, MIX_HAS_NAN, MIX_HAS_INFINITY};
  for (int i = 0; i < 3; i++) /* the first that fails counts */
    mix_emit_check(e, found[i], found[i],
                   (mix_bad_value){.what = mix_check_numerics_reason(node->attributes, has[i])});
  mix_emit_result(e, node, 0, x);
}

void mix_xla_error_text(const mix_xla_signature *signature, const int64_t word[MIX_XLA_ERROR_WORDS],
                        char *text, size_t size) {
  const int64_t number = word[MIX_XLA_ERROR_CHECK];
  if (number < 1 || number > signature->check_count) { /* of another program */
    snprintf(text, size, "a bad value, met by a run of another function");
    return;
  }
  const mix_xla_check *check = &signature->checks[number - 1];
  mix_value_error error = {.first = check->bad};
  error.first.element = word[MIX_XLA_ERROR_ELEMENT];
  error.first.value = word[MIX_XLA_ERROR_VALUE];
  const mix_kernel_args args = {
      .op = check->op, .input_count = check->input_count, .input_types = check->input_types, .error = &error};
  mix_value_error_text(&args, check->scope, text, size);
}
