/* The table of operations: names, codes, and the classes of the mixed precision lists
 * (docs/spec/mixed_precision.md, section 8). */
#include "ops/support.h"

#include "ops/attributes.h"

static void names_are_unique_and_found(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++) {
    assert_ptr_equal(mix_op_by_name(mix_all_ops[i]->name), mix_all_ops[i]);
    for (int j = 0; j < i; j++) assert_string_not_equal(mix_all_ops[i]->name, mix_all_ops[j]->name);
  }
  assert_null(mix_op_by_name("convolve"));
  assert_null(mix_op_by_name(NULL));
}

/* Every code belongs to an element-wise op with the same number of operands, and every op has a shape rule.
 */
static void codes_and_operations_agree(void **state) {
  (void)state;
  bool used[MIX_OPCODE_COUNT] = {false};
  for (int i = 0; mix_all_ops[i]; i++) {
    const mix_op *op = mix_all_ops[i];
    if (!(op->flags & MIX_OP_SOURCE)) assert_non_null(op->infer);
    assert_int_equal((op->flags & MIX_OP_ELEMENTWISE) != 0, op->opcode != MIX_OPCODE_NONE);
    if (op->opcode == MIX_OPCODE_NONE) continue;
    int operands = 1;
    for (const char *p = op->signature; *p != '-'; p++) operands += *p == ',';
    assert_int_equal(mix_opcode_operands(op->opcode), operands);
    used[op->opcode] = true;
  }
  for (int code = MIX_OPCODE_NONE + 1; code < MIX_OPCODE_COUNT; code++) {
    assert_true(used[code]);
    assert_int_equal(mix_op_by_name(mix_opcode_name(code))->opcode, code);
  }
  assert_string_equal(mix_opcode_name(MIX_OPCODE_ADD), "add");
  assert_string_equal(mix_opcode_name(MIX_OPCODE_IDENTITY), "identity");
  assert_string_equal(mix_opcode_name(MIX_OPCODE_NONE), "none");
  assert_int_equal(mix_opcode_operands(MIX_OPCODE_NONE), 0);
  assert_int_equal(mix_opcode_operands(MIX_OPCODE_SELECT), 3);
}

static void prints(mix_tensor *t, const char *wanted) {
  char text[512] = "";
  no_error();
  mix_attributes_put(t->node->op, t->node->attributes, &(mix_text){.text = text, .size = sizeof text});
  assert_string_equal(text, wanted);
  char problem[256];
  _Alignas(max_align_t) char again[512] = {0};
  mix_scan scan = {text, text + strlen(text)};
  assert_true(mix_attributes_read(t->node->op, again, &scan, problem, sizeof problem));
  mix_attributes_put(t->node->op, again, &(mix_text){.text = text, .size = sizeof text});
  assert_string_equal(text, wanted);
}

/* An op with attributes has rows for the text form of graphs. */
static void attributes_are_described(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++)
    if ((mix_all_ops[i]->attributes_size > 0) != (mix_all_ops[i]->fields != NULL))
      fail_msg("op '%s': .fields must describe its attributes (src/graph/op.h, mix_attribute_row)",
               mix_all_ops[i]->name);
}

static bool has_field(const mix_op *op, const mix_attribute_row *wanted, mix_attribute_kind kind) {
  for (const mix_attribute_row *field = op->fields; field && field->name; field++)
    if (field->offset == wanted->offset) return field->kind == kind && wanted->kind == kind;
  return false;
}

/* What passes rely on where they ask a contraction. */
static void check_contraction(const mix_op *op) {
  const mix_contraction *contraction = op->contraction;
  assert_non_null(contraction->multiplications);
  for (int i = 0; i < MIX_CONTRACTED; i++)
    if (contraction->transpose[i]) assert_true(has_field(op, contraction->transpose[i], MIX_ATTRIBUTE_BOOL));
  if (contraction->swaps) assert_true(contraction->transpose[0] && contraction->transpose[1]);
  if (contraction->result_dtype) assert_true(has_field(op, contraction->result_dtype, MIX_ATTRIBUTE_DTYPE));
  const mix_op *downcast = contraction->downcast;
  if (!downcast) return;
  assert_non_null(downcast->contraction->result_dtype);
  assert_int_equal(downcast->attributes_size, op->attributes_size);
  assert_true(op->attributes_size <= 16 * sizeof(max_align_t)); /* room in host/dispatch.c */
  assert_int_not_equal(op->accumulator, MIX_DTYPE_NONE);
}

static void traits_agree(void **state) {
  (void)state;
  for (int i = 0; mix_all_ops[i]; i++) {
    const mix_op *op = mix_all_ops[i];
    if (op->contraction) check_contraction(op);
    if (op->axes) assert_true(has_field(op, op->axes, MIX_ATTRIBUTE_AXES));
    if (op->flags & MIX_OP_TRANSPOSE) assert_int_equal(op->attributes_size, sizeof(mix_transpose_attributes));
    if (op->flags & (MIX_OP_BROADCAST | MIX_OP_UNIFORM))
      assert_int_equal(op->attributes_size, sizeof(mix_shape_attributes));
    if (op->elementwise) assert_true(op->elementwise->flags & MIX_OP_ELEMENTWISE);
  }
  assert_true(mix_op_matmul.contraction && mix_op_batch_matmul.contraction &&
              mix_op_matmul_downcast.contraction);
  assert_int_equal(mix_op_all_finite.reduction, MIX_REDUCE_ALL_FINITE);
  assert_int_equal(mix_op_reduce_sum.reduction, MIX_REDUCE_TO_SUM);
  assert_int_equal(mix_op_reduce_mean.reduction, MIX_REDUCE_TO_MEAN);
}

static void attributes_print(void **state) {
  (void)state;
  mix_tensor *x = ones(MIX_FLOAT32, MIX_SHAPE(2, 3)), *square = ones(MIX_FLOAT32, MIX_SHAPE(3, 3));
  prints(mix_reduce_sum(x, MIX_AXES(-1), true), "axes=[1] keep_dims");
  prints(mix_reduce_max(x, MIX_ALL_AXES, false), "axes=[0, 1]");
  prints(mix_leaky_relu(x, 0.25), "alpha=0.25");
  prints(mix_matmul(square, square, true, true), "transpose_a transpose_b");
  prints(mix_matmul(x, square, false, false), "");
  prints(mix_argmax(x, -2), "axis=0");
  prints(mix_cast(x, MIX_FLOAT16), "dtype=float16");
  prints(mix_slice(x, MIX_SHAPE(0, 1), MIX_SHAPE(-1, 2)), "begin=[0, 1] size=[2, 2]");
  prints(mix_pad(x, MIX_SHAPE(1, 0), MIX_SHAPE(0, 2), -1), "before=[1, 0] after=[0, 2] value=-1");
  prints(mix_reshape(x, MIX_SHAPE(6)), "shape=(6)");
  prints(mix_fill(MIX_SHAPE(2), 0.5, MIX_BFLOAT16), "shape=(2) dtype=bfloat16 value=0.5");
  prints(mix_range(1, 2, 0.5, MIX_FLOAT32), "start=1 step=0.5 count=2 dtype=float32");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(names_are_unique_and_found), TEST(codes_and_operations_agree),
      TEST(attributes_are_described),   TEST(traits_agree),
      TEST(attributes_print),
  };
  return cmocka_run_group_tests_name("ops/table", tests, NULL, NULL);
}
