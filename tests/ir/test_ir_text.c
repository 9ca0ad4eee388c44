/* Graphs as text: every op and every form of a program is read back to the same text. Malformed text is an
 * error with its line and node. */
#include "support/skip.h"
#include "compile/support.h"

#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "passes/passes.h"
#include "support/memory.h"
#include "support/constant.h"
#include "ir/ir.h"
#include <stdio.h>

enum { MAX_BYTES = 1 << 20 };

static mix_ir *read_text(const char *text) { return mix_ir_read("test", text, strlen(text), MAX_BYTES); }

static void comes_back(const char *text) {
  mix_ir *ir = read_text(text);
  no_error();
  assert_string_equal(mix_ir_text(ir), text);
  mix_ir_free(ir);
}

/* Also after the passes, with some of them disabled. */
static void comes_back_compiled(const char *text, const char *disabled) {
  setenv("MIXTAPE_DISABLE_PASSES", disabled, 1);
  mix_ir *ir = read_text(text);
  assert_true(mix_passes_run(ir));
  char *after = strdup(mix_ir_text(ir));
  mix_ir_free(ir);
  comes_back(after);
  free(after);
  unsetenv("MIXTAPE_DISABLE_PASSES");
}

static void every_op(void **state) {
  (void)state;
  static char text[1 << 16];
  char path[1024];
  if (!getenv("MIXTAPE_TESTS_DIR")) SKIP("MIXTAPE_TESTS_DIR is not set");
  snprintf(path, sizeof path, "%s/ir/graphs/all_ops.txt", getenv("MIXTAPE_TESTS_DIR"));
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  for (int i = 0; mix_all_ops[i]; i++) {
    char call[80];
    snprintf(call, sizeof call, " %s(", mix_all_ops[i]->name);
    if (!(mix_all_ops[i]->flags & MIX_OP_SOURCE) && !strstr(text, call))
      fail_msg("graphs/all_ops.txt has no%s)", call);
  }
  comes_back(text);
  comes_back_compiled(text, "");
  comes_back_compiled(text, "sink_broadcasts,constant_fold");
  comes_back_compiled(text, "fuse");
}

static void constants(void **state) {
  (void)state;
  mix_ir *ir = read_text("%3:float32(3) = constant [0.1, nan, -0]\n"
                         "%5:bfloat16() = constant 3.1399999\n"
                         "%7:float64() = constant 0.30000000000000004\n"
                         "%8:int64() = constant -9223372036854775808\n"
                         "%9:float16(2) = constant [0x7e01, 1e9]\n"
                         "return %3\n");
  no_error();
  const float *three = bytes_of_constant(&ir->nodes[0]);
  assert_true(three[0] == 0.1f && isnan(three[1]) && three[2] == 0 && signbit(three[2]));
  assert_true(*(const double *)bytes_of_constant(&ir->nodes[2]) == 0.1 + 0.2);
  assert_true(*(const int64_t *)bytes_of_constant(&ir->nodes[3]) == INT64_MIN);
  assert_int_equal(((const uint16_t *)bytes_of_constant(&ir->nodes[4]))[0], 0x7e01);
  assert_string_equal(mix_ir_text(ir), "%3:float32(3) = constant [0.1, nan, -0]\n"
                                       "%5:bfloat16() = constant 3.14\n"
                                       "%7:float64() = constant 0.30000000000000004\n"
                                       "%8:int64() = constant -9223372036854775808\n"
                                       "%9:float16(2) = constant [0x7e01, inf]\n"
                                       "return %3\n");
  mix_ir_free(ir);
}

/* A seed always gives the same numbers, in [-1, 1), and another seed other numbers. */
static void large_constants_and_variables(void **state) {
  (void)state;
  float numbers[200], again[200], others[200];
  mix_ir_fill(numbers, MIX_FLOAT32, 200, 5);
  mix_ir_fill(again, MIX_FLOAT32, 200, 5);
  mix_ir_fill(others, MIX_FLOAT32, 200, 6);
  assert_memory_equal(numbers, again, sizeof numbers);
  double sum = 0;
  int equal = 0;
  for (int i = 0; i < 200; i++) {
    assert_true(numbers[i] >= -1 && numbers[i] < 1);
    sum += numbers[i];
    equal += numbers[i] == others[i];
  }
  assert_true(fabs(sum) < 200 * 0.2 && equal < 3); /* the mean's standard deviation is 0.04 */
  mix_ir *ir = read_text(
      "%0:float32(200) = constant seed 5\n%1:float32(200) = variable 'v'\n%2:int32() = variable 'n'\n"
      "return\n");
  no_error();
  assert_memory_equal(bytes_of_constant(&ir->nodes[0]), numbers, sizeof numbers);
  assert_in_range(*(const int32_t *)bytes_of_memory(ir->variables[1].variable->memory), 0, 1);
  /* Numbers without a known seed: the writer finds one, and the text is stable from then on. */
  ir->nodes[0].index = 0;
  char *text = strdup(mix_ir_text(ir));
  mix_ir_free(ir);
  assert_non_null(strstr(text, "constant seed "));
  comes_back(text);
  free(text);
}

static void layout_is_free(void **state) {
  (void)state;
  mix_ir *ir = read_text(
      "# a comment\r\n\n%0 : float32 ( 2,3 )=argument 0 \r\n"
      "  # another\n%7:float32(2,3) = leaky_relu( %0 ){ alpha = 0.50 }  keep @ 'a b'\nreturn %7,%0");
  no_error();
  assert_string_equal(mix_ir_text(ir), "%0:float32(2, 3) = argument 0\n"
                                       "%7:float32(2, 3) = leaky_relu(%0) {alpha=0.5} keep @'a b'\n"
                                       "return %7, %0\n");
  mix_ir_free(ir);
}

typedef struct wrong {
  const char *text, *error;
} wrong;

#define X "%0:float32(2, 3) = argument 0\n"
#define F X "%1:float32(2, 3) = fused(%0)\n"

static const wrong malformed[] = {
    {"", "line 0: the text ends without 'return'"},
    {X, "line 1: the text ends without 'return'"},
    {X "return %1\n", "line 2 (return): value %1 is not defined"},
    {X "return %0 %0\n", "line 2 (return): expected ','"},
    {X "return %0\nreturn\n", "line 3: more lines behind 'return'"},
    {"nonsense\n", "line 1: expected '%N:dtype(shape) = ...', 'store' or 'return'"},
    {X "eager\nreturn\n", "line 2: expected"},
    {"%0:float33(2) = argument 0\n", "line 1 (%0): expected ':' and a dtype"},
    {"%0:uint64(2) = argument 0\n", "line 1 (%0): expected ':' and a dtype"},
    {"%0:float32(-2) = argument 0\n", "line 1 (%0): expected a shape"},
    {"%0:float32(2 = argument 0\n", "line 1 (%0): expected a shape"},
    {"%0:float32(1, 1, 1, 1, 1, 1, 1, 1, 1) = argument 0\n", "line 1 (%0): expected a shape"},
    {"%0:float32(9223372036854775807, 2) = argument 0\n", "line 1 (%0): expected a shape"},
    {"%999999999:float32() = argument 0\n", "value %999999999: number values from %0 on"},
    {"%0:float32() = \n", "line 1 (%0): expected an operation, argument, variable, copy or constant"},
    {"%0:float32() = argument\n", "line 1 (%0 = argument): expected the number of the argument"},
    {"%0:float32() = argument 0\n%1:float32() = argument 0\nreturn\n",
     "line 2 (%1 = argument): argument 0 is there twice"},
    {"%0:float32() = argument 1\nreturn\n", "(%0 = argument): argument 1, but there are 1"},
    {"%0:float32() = variable\n", "(%0 = variable): expected the name"},
    {"%0:float32() = variable 'open\n", "(%0 = variable): expected the name"},
    {"%0:float32(), %1:float32() = constant 1\n", "(%0 = constant): constant has one result"},
    {"%0:float32(2) = constant 1\n", "(%0 = constant): expected '[numbers]'"},
    {"%0:float32(2) = constant [1]\n", "(%0 = constant): expected 2 numbers"},
    {"%0:float32(2) = constant [1, 2, 3]\n", "(%0 = constant): expected 2 numbers"},
    {"%0:float32(2) = constant [1, 0x1234567890]\n", "more bits than float32 has"},
    {"%0:float32(2) = constant seed 0\n", "expected a seed"},
    {"%0:int8() = constant 128\n", "128 is no int8"},
    {"%0:int8() = constant 1.5\n", "(%0 = constant): "},
    {"%0:float32(1000000) = constant all 1\n", "its 4000000 bytes are more than may be made up"},
    {X "%1:float32(2) = copy %0\n", "%0 is not a variable that has copies"},
    {"%0:float32(2) = variable 'v'\n%1:float16(3) = copy %0\n", "a copy has the shape"},
    {"%0:float32(2) = variable 'v'\n%1:float32(2) = copy %0\n", "a copy has the shape"},
    {"%0:float32(2) = variable 'v'\n%1:float16(2) = copy %0\n%2:float16(2) = copy %0\n",
     "line 3 (%2 = copy): the float16 copy of %0"},
    {X "%0:float32(2, 3) = exp(%0)\n", "line 2 (%0): value %0 is defined twice"},
    {X "%1:float32(2, 3), %3:float32(2) = exp(%0)\n",
     "line 2 (%1): result %3: the results of a node are numbered"},
    {X "%1:float32(2, 3) = exp2(%0)\nreturn\n", "line 2 (%1 = exp2): there is no operation 'exp2'"},
    {X "%1:float32(2, 3) = placeholder()\nreturn\n", "there is no operation 'placeholder'"},
    {X "%1:float32(2, 3) = exp %0\nreturn\n", "(%1 = exp): expected '('"},
    {X "%1:float32(2, 3) = exp(%2)\nreturn\n",
     "line 2 (%1 = exp): value %2 is not defined before it is used"},
    {X "%1:float32(2, 3) = exp(%1)\nreturn\n", "(%1 = exp): value %1 is not defined"}, /* a cycle */
    {X "%1:float32(2, 3) = exp(%0, %0)\nreturn\n", "(%1 = exp): exp takes 1 operands, not 2"},
    {X "%1:float32(2, 3) = exp(%0) {alpha=1}\nreturn\n", "exp has no attributes"},
    {X "%1:float32(2, 3) = exp(%0) twice\nreturn\n", "what is 'twice'?"},
    {X "%1:float32(2, 3) = exp(%0) @\nreturn\n", "expected the name of a layer"},
    {X "%1:float32(2, 3) = leaky_relu(%0)\nreturn\n", "attribute 'alpha' is missing"},
    {X "%1:float32(2, 3) = leaky_relu(%0) {alpha=1\nreturn\n", "expected '}'"},
    {X "%1:float32(2, 3) = leaky_relu(%0) {beta=1}\nreturn\n", "leaky_relu has no attribute 'beta'"},
    {X "%1:float32(2, 3) = leaky_relu(%0) {alpha=1 alpha=1}\nreturn\n", "attribute 'alpha' is there twice"},
    {X "%1:float32(2, 3) = leaky_relu(%0) {alpha=x}\nreturn\n", "attribute 'alpha' has no value"},
    {X "%1:float16(2, 3) = exp(%0)\nreturn\n", "line 2 (%1 = exp): result 0 of exp is float32"},
    {X "%1:float32(3, 3) = exp(%0)\nreturn\n", "operand %0 does not broadcast to the result"},
    {X "%1:float32(4, 2, 3) = exp(%0)\nreturn\n", "the operands are smaller than the result"},
    {X "%1:float32(2, 3) = exp(%0)\n%2:float16(2, 3) = cast(%1) {dtype=bfloat16}\nreturn\n",
     "line 3 (%2 = cast): result 0 of cast"},
    {X "%1:bool(2, 3) = is_nan(%0)\n%2:float32(2, 3) = add(%0, %1)\nreturn\n", "(%2 = add): "},
    {X "%1:float32(2) = reduce_sum(%0) {axes=[2]}\nreturn\n", "(%1 = reduce_sum): "},
    {X "%1:float32(2, 3) = reduce_sum(%0) {axes=[]}\nreturn\n", "at least one"},
    {X "%1:float32(2, 3) = concat(%0, %0) {axis=-1}\nreturn\n", "axis -1 is outside"},
    {X "%1:float32(2, 3) = concat() {axis=0}\nreturn\n", "0 operands do not fit"},
    {X "%1:int64(2) = argmax(%0) {axis=2}\nreturn\n", "axis 2 is outside"},
    {X "%1:float32(2, 3) = transpose(%0) {permutation=[1, 1]}\nreturn\n", "expected a permutation"},
    {X "%1:float32(4) = reshape(%0) {shape=(4)}\nreturn\n", "6 elements do not fill"},
    {X "%1:float32(2, 2) = matmul(%0, %0)\nreturn\n", "(%1 = matmul): "},
    {X "%1:int64(2) = constant [1, 2]\n%2:int32(2) = random_uniform(%1) {shape=(2) dtype=int32}\nreturn\n",
     "cannot make that dtype"},
    {X "%1:bool() = all_finite(%0)\n%2:float32(2, 3) = exp(%0) if %1\nreturn\n",
     "only fused programs stand under a condition"},
    {X "%1:float32(2, 3) = exp(%0)\nstore %0 'x' = %1\nreturn\n", "line 3 (store): %0 is no variable"},
    {X "%1:float16(2, 3) = cast(%0) {dtype=float16}\n"
       "%2:float16(2, 2) = matmul_downcast(%1, %0) {transpose_b dtype=float16}\n",
     "expected float32 matrices"},
    {X "%1:float16(2, 3) = cast(%0) {dtype=float16}\n"
       "%2:bfloat16(2, 2) = matmul_downcast(%1, %0) {transpose_b dtype=bfloat16 round_operands}\n",
     "expected float32 matrices"},
    {"%0:float32(2) = variable 'v'\nstore %0 'w' = %0\nreturn\n", "(store 'v'): %0 is the variable 'v'"},
    {"%0:float32(2) = variable 'v'\nstore %0 'v' = %0\nreturn\n", "the variable would keep its value"},
    {X "%1:float32(2) = variable 'v'\nstore %1 'v' = %0\nreturn\n", "%0 has another dtype or shape"},
    {X "%1:float32(2, 3) = variable 'v'\nstore %1 'v' = %0\nstore %1 'v' = %0\nreturn\n",
     "line 4 (store 'v'): the variable is stored twice"},
    {X "%1:float32(2, 3) = variable 'v'\n%2:bool() = argument 1\nstore %1 'v' = %0 if %2\nreturn\n",
     "condition and value must be computed"},
    {X "%1:float32(2, 3) = variable 'v'\n%2:float32(2, 3) = exp(%0)\nstore %1 'v' = %2 if %2\nreturn\n",
     "the condition %2 is no bool()"},
    /* programs */
    {F "return\n", "line 2 (%1 = fused): its program is missing"},
    {"    over (6)\nreturn\n", "line 1: an indented line belongs to a program"},
    {X
     "%1:float32(2, 3) = exp(%0)\n    over (6)\n      r0 = float32 load 0 strides (1)\n      store r0 -> 0\n"
     "return\n",
     "line 2 (%1 = exp): only matmul and fused have programs"},
    {F "    over 6\nreturn\n", "line 3 (%1 = fused): no line of a program"},
    {F "    over (6)\n      r1 = float32 load 0 strides (1)\nreturn\n",
     "line 4 (%1 = fused): no line of a program"},
    {F "    over (6)\n      r0 = float32 load 1 strides (1)\n      store r0 -> 0\nreturn\n",
     "r0 loads operand 1 of 1"},
    {F "    over (6)\n      r0 = float16 load 0 strides (1)\n      store r0 -> 0\nreturn\n",
     "r0 loads float16 from float32"},
    {F "    over (6)\n      r0 = float32 load 0 strides (2)\n      store r0 -> 0\nreturn\n",
     "the strides of r0 lead out of operand 0"},
    {F "    over (2, 3)\n      r0 = float32 load 0 strides (1, 2)\n      store r0 -> 0\nreturn\n",
     "do not follow operand 0"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      r1 = float32 exp r1\n      store r1 -> 0\n"
       "return\n",
     "r1 reads r1"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      r1 = float64 exp r0\n      store r0 -> 0\n"
       "return\n",
     "r1 cannot be float64"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      r1 = float32 logical_not r0\n"
       "      store r0 -> 0\nreturn\n",
     "r1 cannot be float32"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      r1 = float32 matmul r0, r0\n"
       "      store r0 -> 0\nreturn\n",
     "no line of a program"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      store r0 -> 1\nreturn\n",
     "there is no result 1"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\n      store r0 -> 0\n      store r0 -> 0\n"
       "return\n",
     "written twice"},
    {F "    over (5)\n      r0 = float32 load 0 strides (1)\n      store r0 -> 0\nreturn\n",
     "r0 does not fill result 0"},
    {F "    over (6)\n      r0 = float32 load 0 strides (1)\nreturn\n", "results are written"},
    {F "    over (6)\n      r0 = float32 product\n      store r0 -> 0\nreturn\n",
     "only the program of a matmul reads a product"},
#define SUM_OF(text) F "    over (6)\n      r0 = float32 load 0 strides (1)\n      " text "\nreturn\n"
    {SUM_OF("sum of r0 -> 0 by rows of 4"), "one program cannot end in these sums"},
    {SUM_OF("sum of r0 -> 0 by columns of 4"), "one program cannot end in these sums"},
    {SUM_OF("sum of r0 -> 0 by columns of 0"), "one program cannot end in these sums"},
    {SUM_OF("sum of r0 -> 0 by rows of -3"), "one program cannot end in these sums"},
    {SUM_OF("sum of r0 -> 0 by rows of 3"), "result 0 cannot be the sum of r0"},
    {SUM_OF("sum of r1 -> 0 by columns of 3"), "there is no r1"},
    {SUM_OF("sum of r0 -> 0 by columns of 3\n      sum of r0 -> 1 by rows of 2"),
     "one program cannot end in these sums"}, /* rows that go beyond the columns */
    {SUM_OF("sum of r0 -> 0 by columns"), "no line of a program"},
    {SUM_OF("sum of r0 -> 0 by columns of 3\n      sum of r0 -> 1"), "no line of a program"},
    {SUM_OF("all_finite of r0 -> 0 by columns of 3"), "no line of a program"},
#undef SUM_OF
    {X "%1:float32(3, 3) = matmul(%0, %0) {transpose_a}\n    over (9)\n      r0 = float32 product\n"
       "      store r0 -> 0\nreturn\n",
     "the program does not run over the product"},
    {X "%1:float32(3, 3) = matmul(%0, %0) {transpose_a}\n    over (3, 3)\n      r0 = float16 product\n"
       "      store r0 -> 0\nreturn\n",
     "the product is float32"},
};

static void malformed_text_is_an_error(void **state) {
  (void)state;
  for (int i = 0; i < COUNT(malformed); i++) {
    mix_ir *ir = read_text(malformed[i].text);
    if (ir) fail_msg("read without an error, though \"%s\":\n%s", malformed[i].error, malformed[i].text);
    char message[1024];
    assert_int_equal(mix_error_take(message, sizeof message), MIX_FORMAT_ERROR);
    if (!strstr(message, "graph text test, line ") || !strstr(message, malformed[i].error))
      fail_msg("the message is\n%s\nexpected: %s", message, malformed[i].error);
  }
}

static void without_memory(void **state) {
  (void)state;
  static const char *const text =
      X "%1:float32(2, 3) = variable 'v'\n%5:float16(2, 3) = copy %1\n"
        "%2:float32(2, 3) = leaky_relu(%0) {alpha=0.5} @layer\n%3:float32(2, 3) = fused(%2)\n"
        "    over (6)\n      r0 = float32 load 0 strides (1)\n      store r0 -> 0\n"
        "store %1 'v' = %3\nreturn %3\n";
  for (int allowed = 0;; allowed++) {
    mix_inject_allocation_failure(allowed);
    mix_ir *ir = read_text(text);
    bool written = ir && mix_ir_text(ir);
    mix_inject_allocation_failure(-1);
    mix_ir_free(ir);
    if (written) break;
    assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
    mix_error_clear();
    assert_true(allowed < 200);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(every_op),
      TEST(constants),
      TEST(large_constants_and_variables),
      TEST(layout_is_free),
      TEST(malformed_text_is_an_error),
      TEST(without_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
