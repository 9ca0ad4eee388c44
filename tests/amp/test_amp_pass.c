/* The mixed precision rewrite of captured functions: the list of each op, graphs before and after, numeric
 * results. */
/* Holds docs/NUMERICS.md: The automatic rewrite. */
#include "compile/support.h"

#include "amp/rewrite.h"
#include "amp/setting.h"
#include "compile/evaluate.h"
#include "amp/amp_pass.h"
#include "passes/passes.h"
#include "graph/tape.h"
#include "graph/capture.h"
#include "support/captured_graph.h"
#include "support/count.h"
#include <mixtape/attention.h>
#include <mixtape/convolution.h>
#include <stdio.h>

static int begin_rewrite(void **state) {
  mix_amp_set_target(MIX_FLOAT16);
  return begin_test(state);
}
static int end_rewrite(void **state) {
  mix_amp_set_target(MIX_DTYPE_NONE);
  return end_test(state);
}
#define REWRITE(function) cmocka_unit_test_setup_teardown(function, begin_rewrite, end_rewrite)

/* The lists of docs/spec/mixed_precision.md, section 8: every TensorFlow op that the library has or may get.
 */
static const char *const both_allow =
    " BatchMatMul BatchMatMulV2 MatMul Conv2D Conv2DBackpropFilter Conv2DBackpropInput Conv3D"
    " Conv3DBackpropFilterV2 Conv3DBackpropInputV2 DepthwiseConv2dNative DepthwiseConv2dNativeBackpropFilter"
    " DepthwiseConv2dNativeBackpropInput Einsum ";
static const char *const both_infer =
    " Add AddN AddV2 AvgPool AvgPool3D AvgPool3DGrad AvgPoolGrad BiasAdd BiasAddGrad"
    " BiasAddV1 Elu EluGrad Erf Erfc FloorDiv Inv LeakyRelu LeakyReluGrad Log Log1p"
    " LogSoftmax Mul Prod RealDiv Reciprocal Selu SeluGrad Sigmoid SigmoidGrad"
    " Softmax Softplus SoftplusGrad Softsign SoftsignGrad Sqrt Sub Tanh TanhGrad ";
static const char *const bfloat16_infer = " Mean Rsqrt Square SquaredDifference Sum ";
static const char *const both_deny =
    " Exp Expm1 L2Loss Pow SaveV2 SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits ";
static const char *const float16_deny = " Mean Sum ";
static const char *const both_clear =
    " Abs ArgMax ArgMin BroadcastTo Ceil CheckNumerics ClipByValue Concat ConcatV2 Equal ExpandDims Fill"
    " Floor Gather GatherNd GatherV2 Greater GreaterEqual Identity IdentityN IsFinite IsInf IsNan Less"
    " LessEqual Max"
    " MaxPool MaxPool3D MaxPool3DGrad MaxPoolGrad MaxPoolGradGrad Maximum Min Minimum Neg NotEqual OnesLike"
    " Pack Pad PadV2 Relu Relu6 Relu6Grad ReluGrad Reshape"
    " Reverse Round Select SelectV2 Shape Sign Slice Split Squeeze StopGradient StridedSlice Tile Transpose"
    " Where ZerosLike ";
static const char *const float16_clear = " MaxPool3DGradGrad OneHot Size ";

static bool listed(const char *list, const char *name) {
  char word[128];
  snprintf(word, sizeof word, " %s ", name);
  return strstr(list, word) != NULL;
}

static mix_amp_class wanted_class(const char *name, bool float16) {
  if (!name) return MIX_AMP_NONE;
  if (listed(both_allow, name)) return MIX_AMP_ALLOW;
  if (listed(both_infer, name) || (!float16 && listed(bfloat16_infer, name))) return MIX_AMP_INFER;
  if (listed(both_deny, name) || (float16 && listed(float16_deny, name))) return MIX_AMP_DENY;
  if (listed(both_clear, name) || (float16 && listed(float16_clear, name))) return MIX_AMP_CLEAR;
  return MIX_AMP_NONE;
}

/* Each op is in the list written above for its TensorFlow name. An op without a TensorFlow name is in no
 * list. */
static void classes_are_those_of_the_lists(void **state) {
  (void)state;
  static const mix_dtype targets[] = {MIX_FLOAT16, MIX_BFLOAT16};
  for (int t = 0; t < 2; t++) {
    mix_amp_options options;
    mix_amp_lists lists;
    assert_true(mix_amp_setting_options(targets[t], &options));
    assert_true(mix_amp_lists_make(&lists, &options, NULL));
    for (const mix_op *const *op = mix_all_ops; *op; op++) {
      mix_amp_class own = wanted_class((*op)->tf_name, t == 0);
      mix_amp_class listed = (*op)->tf_name ? mix_amp_lists_class(&lists, (*op)->tf_name) : MIX_AMP_NONE;
      if (own != listed)
        fail_msg("%s (%s): class %d, the %s list says %d", (*op)->name, (*op)->tf_name, own,
                 mix_dtype_name(targets[t]), listed);
    }
    mix_amp_lists_free(&lists);
  }
}

/* ---- graphs ---- */

static void becomes(graph *g, mix_list *results, const char *expected) {
  mix_ir *ir = end_graph(g, results);
  assert_true(mix_pass_amp(ir));
  no_error();
  assert_string_equal(mix_ir_text(ir), expected);
  mix_ir_free(ir);
}

/* A convolution, its bias and its gradients are in 16 bits, the loss is not. */
static void convolution_layer(void **state) {
  (void)state;
  graph g;
  mix_variable *kernel = variable("kernel", mix_fill(MIX_SHAPE(3, 2, 4), 0, MIX_FLOAT32)),
               *depthwise = variable("depthwise", mix_fill(MIX_SHAPE(3, 4, 1), 0, MIX_FLOAT32));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 8, 2));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_conv(x, mix_variable_value(kernel), .padding = "causal");
  mix_tensor *loss =
      mix_reduce_sum(mix_exp(mix_depthwise_conv(y, mix_variable_value(depthwise))), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(kernel, depthwise));
  mix_ir *ir = end_graph(&g, gradients);
  assert_true(mix_pass_amp(ir));
  no_error();
  static const char *const expected[] = {"float16(2, 8, 4) = conv(", "float16(2, 6, 4) = depthwise_conv(",
                                         "float16(2, 8, 4) = depthwise_conv_input_gradient(",
                                         "float16(3, 4, 1) = depthwise_conv_kernel_gradient(",
                                         "float16(3, 2, 4) = conv_kernel_gradient("};
  for (int i = 0; i < COUNT(expected); i++)
    if (!strstr(mix_ir_text(ir), expected[i])) fail_msg("no %s in\n%s", expected[i], mix_ir_text(ir));
  mix_ir_free(ir);
}

static const char *rewritten_call(mix_layer *layer, mix_shape shape, bool as_list) {
  static char text[1 << 16];
  graph g;
  if (!as_list) mix_layer_build(layer, shape); /* the other has no weights */
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, shape);
  mix_tensor *y = as_list
                      ? mix_call(layer, mix_list_of(x, x), .use_causal_mask = true)
                      : mix_call(layer, x, .arguments = mix_list_of(x), .use_causal_mask = shape.rank == 3);
  no_error();
  mix_ir *ir = end_graph(&g, mix_list_of(y));
  assert_true(mix_pass_amp(ir));
  no_error();
  snprintf(text, sizeof text, "%s", mix_ir_text(ir));
  mix_ir_free(ir);
  return text;
}

/* What TensorFlow's lists say of attention: einsums and products are allowed; scaling, the mask's sum and the
 * softmax of one axis are inferred, so they stay in 16 bits between these; a softmax over two axes has an
 * exp, which is denied. The op of several steps, which no list names, is not there. */
static void attention_layers(void **state) {
  (void)state;
  const char *text =
      rewritten_call(mix_multi_head_attention(2, 4, .semantics = mix_semantics_named("tf_keras")),
                     MIX_SHAPE(1, 3, 8), false);
  assert_int_equal(count_of(text, " = einsum("), 6); /* three projections, scores, values, the last one */

  for (const char *p = text; (p = strstr(p, " = einsum(")); p++) {
    const char *line = p;
    while (line > text && line[-1] != '\n') line--;
    if (!strstr(line, ":float16") || strstr(line, ":float16") > p) fail_msg("no float16: %.60s", line);
  }
  assert_int_equal(count_of(text, ":float16(1, 2, 3, 3) = softmax("), 1);
  assert_int_equal(count_of(text, " attention("), 0);
  text =
      rewritten_call(mix_attention(.semantics = mix_semantics_named("tf_keras")), MIX_SHAPE(1, 3, 8), true);
  assert_int_equal(count_of(text, ":float16(1, 3, 3) = batch_matmul("), 1);
  assert_int_equal(count_of(text, ":float16(1, 3, 8) = batch_matmul("), 1);
  assert_int_equal(count_of(text, ":float16(1, 3, 3) = softmax("), 1);
  text = rewritten_call(mix_multi_head_attention(2, 4, .attention_axes = MIX_AXES(1, 2),
                                                 .semantics = mix_semantics_named("tf_keras")),
                        MIX_SHAPE(1, 3, 2, 8), false);
  assert_true(count_of(text, " = exp(") > 0);
  assert_int_equal(count_of(text, " = exp("), count_of(text, ":float32(1, 2, 3, 2, 3, 2) = exp("));
}

/* Allow, then infer, clear, deny. The deny op gets float32 again; constants and variables keep their
 * dtype. */
static void dense_layer(void **state) {
  (void)state;
  graph g;
  mix_variable *kernel = variable("kernel", mix_fill(MIX_SHAPE(3, 2), 0, MIX_FLOAT32)),
               *bias = variable("bias", mix_fill(MIX_SHAPE(2), 0, MIX_FLOAT32));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(4, 3));
  /* One node a statement fixes their order. */
  mix_tensor *product = mix_matmul(x, mix_variable_value(kernel), false, false);
  mix_tensor *y = mix_relu(mix_bias_add(product, mix_variable_value(bias)));
  becomes(&g, mix_list_of(mix_exp(y)),
          "%0:float32(4, 3) = argument 0\n"
          "%1:float32(3, 2) = variable 'kernel'\n"
          "%2:float32(2) = variable 'bias'\n"
          "%7:float16(4, 3) = cast(%0) {dtype=float16}\n"
          "%8:float16(3, 2) = cast(%1) {dtype=float16}\n"
          "%3:float16(4, 2) = matmul(%7, %8)\n"
          "%9:float16(2) = cast(%2) {dtype=float16}\n"
          "%4:float16(4, 2) = bias_add(%3, %9)\n"
          "%5:float16(4, 2) = relu(%4)\n"
          "%10:float32(4, 2) = cast(%5) {dtype=float32}\n"
          "%6:float32(4, 2) = exp(%10)\n"
          "return %6\n");
}

/* Kept nodes and the optimizer's identity are barriers. Results of the function and stores stay float32. */
static void barriers(void **state) {
  (void)state;
  graph g;
  mix_variable *v = variable("v", mix_fill(MIX_SHAPE(2, 2), 0, MIX_FLOAT32));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2)), *product = mix_matmul(x, x, false, false);
  mix_tensor *gradient = mix_relu(mix_gradient_identity(product)), *kept = mix_relu(product);
  kept->node->keep = true;
  mix_variable_assign(v, mix_relu(product));
  becomes(&g, mix_list_of(product, gradient, kept),
          "%0:float32(2, 2) = argument 0\n"
          "%1:float32(2, 2) = variable 'v'\n"
          "%7:float16(2, 2) = cast(%0) {dtype=float16}\n"
          "%2:float16(2, 2) = matmul(%7, %7)\n"
          "%8:float32(2, 2) = cast(%2) {dtype=float32}\n"
          "%3:float32(2, 2) = gradient(%8) keep\n"
          "%4:float32(2, 2) = relu(%3)\n"
          "%5:float32(2, 2) = relu(%8) keep\n"
          "%6:float16(2, 2) = relu(%2)\n"
          "%9:float32(2, 2) = cast(%6) {dtype=float32}\n"
          "store %1 'v' = %9\n"
          "return %8, %4, %5\n");
}

/* A Cast to float32 whose readers are all converted, and a Fill, get the new dtype in their attributes too.
 * Integers do not change. */
static void attributes_follow(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *b = argument(&g, MIX_BOOL, MIX_SHAPE(2, 2)), *i = argument(&g, MIX_INT32, MIX_SHAPE(2, 2));
  mix_tensor *ones = mix_cast(b, MIX_FLOAT32), *threes = mix_fill(MIX_SHAPE(2, 2), 3, MIX_FLOAT32);
  mix_tensor *product = mix_matmul(ones, threes, false, false), *integers = mix_matmul(i, i, false, false);
  becomes(&g, mix_list_of(integers, product),
          "%0:bool(2, 2) = argument 0\n"
          "%1:int32(2, 2) = argument 1\n"
          "%2:float16(2, 2) = cast(%0) {dtype=float16}\n"
          "%3:float16(2, 2) = fill() {shape=(2, 2) dtype=float16 value=3}\n"
          "%4:float16(2, 2) = matmul(%2, %3)\n"
          "%5:int32(2, 2) = matmul(%1, %1)\n"
          "%6:float32(2, 2) = cast(%4) {dtype=float32}\n"
          "return %5, %6\n");
}

/* bfloat16 has other lists: Sum is an infer op there and a deny op in float16. */
static void lists_of_the_target(void **state) {
  (void)state;
  for (int bfloat16 = 0; bfloat16 <= 1; bfloat16++) {
    graph g;
    mix_amp_set_target(bfloat16 ? MIX_BFLOAT16 : MIX_FLOAT16);
    begin_graph(&g);
    mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2));
    becomes(&g, mix_list_of(mix_reduce_sum(mix_matmul(x, x, false, false), (mix_axes){.count = 0}, false)),
            bfloat16 ? "%0:float32(2, 2) = argument 0\n"
                       "%3:bfloat16(2, 2) = cast(%0) {dtype=bfloat16}\n"
                       "%1:bfloat16(2, 2) = matmul(%3, %3)\n"
                       "%2:bfloat16() = reduce_sum(%1) {axes=[0, 1]}\n"
                       "%4:float32() = cast(%2) {dtype=float32}\n"
                       "return %4\n"
                     : "%0:float32(2, 2) = argument 0\n"
                       "%3:float16(2, 2) = cast(%0) {dtype=float16}\n"
                       "%1:float16(2, 2) = matmul(%3, %3)\n"
                       "%4:float32(2, 2) = cast(%1) {dtype=float32}\n"
                       "%2:float32() = reduce_sum(%4) {axes=[0, 1]}\n"
                       "return %2\n");
  }
}

static void edits_of_the_environment(void **state) {
  (void)state;
  graph g;
  setenv(MIX_AMP_ENVIRONMENT "ALLOWLIST_REMOVE", "MatMul", 1);
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2));
  becomes(&g, mix_list_of(mix_matmul(x, x, false, false)),
          "%0:float32(2, 2) = argument 0\n"
          "%1:float32(2, 2) = matmul(%0, %0)\n"
          "return %1\n");
  unsetenv(MIX_AMP_ENVIRONMENT "ALLOWLIST_REMOVE");
}

/* ---- removed casts ---- */

typedef struct cast_report {
  int times, inserted, own;
  /* The pass that removed each cast, "-" for none: first the inserted casts, then those of the graph. */
  char passes[400];
  int64_t bytes;
} cast_report;

static void listen(void *context, const mix_amp_result *r) {
  cast_report *t = context;
  t->times++;
  t->bytes = r->bytes_cast;
  t->inserted = r->cast_count;
  for (int c = 0; c < r->cast_count; c++)
    snprintf(t->passes + strlen(t->passes), 40, "%s ", r->cast_removed[c] ? r->cast_removed[c] : "-");
  for (int n = 0; n < r->graph->node_count; n++) {
    if (strcmp(r->graph->nodes[n].as_is.op, "Cast") != 0) continue;
    t->own++;
    snprintf(t->passes + strlen(t->passes), 40, "%s ", r->node_removed[n] ? r->node_removed[n] : "-");
  }
}

/* The weight's cast becomes its cached copy. The graph's own cast of the product to float16 cancels the cast
 * inserted before it, so both go. The cast of the argument stays, and the one report counts its bytes. */
static mix_list *casts_of(void *context, mix_list *arguments) {
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tensor *product = mix_matmul(x, mix_variable_value(((mix_variable **)context)[0]), false, false);
  return mix_list_of(mix_cast(product, MIX_FLOAT16));
}

static void casts_that_later_passes_remove(void **state) {
  (void)state;
  mix_variable *kernel = variable("kernel", mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4), MIX_SHAPE(2, 2)));
  mix_list *arguments = mix_list_of(mix_reshape(vec(MIX_FLOAT32, 1, 2, 3, 4, 5, 6), MIX_SHAPE(3, 2)));
  static const struct {
    const char *disabled, *passes;
    int64_t bytes;
  } cases[] = {{"", "- cache_weight_casts dce simplify_casts ", 3 * 2 * 2},
               {"cache_weight_casts", "- - dce simplify_casts ", 3 * 2 * 2 + 2 * 2 * 2},
               {"cache_weight_casts,simplify_casts", "- - - - ", 3 * 2 * 2 + 2 * 2 * 2 + 3 * 2 * 4}};
  for (int i = 0; i < COUNT(cases); i++) {
    cast_report t = {0};
    setenv("MIXTAPE_DISABLE_PASSES", cases[i].disabled, 1);
    mix_function *function = mix_function_new(casts_of, &kernel);
    mix_amp_observe(listen, &t);
    mix_list *results = mix_function_call(function, arguments);
    /* A dump runs the passes again and reports nothing. */
    assert_non_null(mix_function_dump(function, "cache_weight_casts"));
    mix_amp_observe(NULL, NULL);
    no_error();
    has_values(mix_list_get(results, 0), 7, 10, 15, 22, 23, 34);
    assert_int_equal(t.times, 1);
    assert_string_equal(t.passes, cases[i].passes);
    assert_int_equal(t.bytes, cases[i].bytes);
  }
}

/* ---- numbers ---- */

static mix_list *square(void *context, mix_list *arguments) {
  (void)context;
  mix_tensor *x = mix_list_get(arguments, 0);
  return mix_list_of(mix_matmul(x, x, false, false));
}

/* 1024 squared is 2^20: infinite in float16, finite after the rewrite is switched off. */
static void G62_traced_product(void **state) {
  (void)state;
  mix_function *function = mix_function_new(square, NULL);
  mix_list *arguments = mix_list_of(mix_reshape(vec(MIX_FLOAT32, 1024), MIX_SHAPE(1, 1)));
  has_values(mix_list_get(mix_function_call(function, arguments), 0), INFINITY);
  mix_amp_set_target(MIX_BFLOAT16);
  has_values(mix_list_get(mix_function_call(function, arguments), 0), 0x1p20);
  mix_amp_set_target(MIX_DTYPE_NONE);
  has_values(mix_list_get(mix_function_call(function, arguments), 0), 0x1p20);
  mix_amp_set_target(MIX_FLOAT16);
  has_values(mix_list_get(mix_function_call(function, arguments), 0), INFINITY);
}

static void G61_eager_product(void **state) {
  (void)state;
  mix_tensor *x = mix_reshape(vec(MIX_FLOAT32, 1024), MIX_SHAPE(1, 1));
  has_values(mix_matmul(x, x, false, false), 0x1p20);
}

typedef struct training {
  mix_variable *kernel, *bias;
} training;

/* relu(x kernel + bias), mean of squares, one step of gradient descent. */
static mix_list *train(void *context, mix_list *arguments) {
  training *t = context;
  mix_tape *tape = mix_tape_begin();
  mix_tensor *kernel = mix_variable_value(t->kernel), *bias = mix_variable_value(t->bias);
  mix_tensor *y = mix_relu(mix_bias_add(mix_matmul(mix_list_get(arguments, 0), kernel, false, false), bias));
  mix_tensor *loss = mix_reduce_mean(mix_square(y), (mix_axes){.count = 0}, false);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(t->kernel, t->bias));
  mix_variable *variables[] = {t->kernel, t->bias};
  mix_tensor *values[] = {kernel, bias};
  for (int i = 0; i < 2; i++) {
    mix_tensor *gradient = mix_gradient_identity(mix_list_get(gradients, i));
    mix_variable_assign(variables[i], mix_subtract(values[i], mix_multiply(gradient, scalar(0.5))));
  }
  return mix_list_of(loss);
}

/* Small integers and halves are exact in float16: forward, backward and update give the float32 numbers. The
 * weights stay float32. */
static void training_step(void **state) {
  (void)state;
  double results[2][1 + 4 + 2];
  for (int rewritten = 0; rewritten <= 1; rewritten++) {
    mix_amp_set_target(rewritten ? MIX_FLOAT16 : MIX_DTYPE_NONE);
    training t = {variable("kernel", mix_reshape(vec(MIX_FLOAT32, 1, -2, 3, 1), MIX_SHAPE(2, 2))),
                  variable("bias", vec(MIX_FLOAT32, 1, 2))};
    mix_function *function = mix_function_new(train, &t);
    mix_list *list =
        mix_function_call(function, mix_list_of(mix_reshape(vec(MIX_FLOAT32, 1, 2, -3, 1), MIX_SHAPE(2, 2))));
    no_error();
    mix_tensor_read(mix_list_get(list, 0), MIX_FLOAT64, results[rewritten], 1);
    assert_int_equal(mix_tensor_dtype(mix_variable_true_value(t.kernel)), MIX_FLOAT32);
    mix_tensor_read(mix_variable_true_value(t.kernel), MIX_FLOAT64, results[rewritten] + 1, 4);
    mix_tensor_read(mix_variable_true_value(t.bias), MIX_FLOAT64, results[rewritten] + 5, 2);
    no_error();
  }
  for (int i = 0; i < 7; i++) assert_true(results[0][i] == results[1][i]);
  assert_true(results[0][1] != 1); /* the step changed the weights */
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  bool whole = false;
  for (int64_t k = 0; !whole; k++) {
    assert_true(k < 10000);
    MIX_SCOPE {
      mix_function *function = mix_function_new(square, NULL);
      mix_list *arguments = mix_list_of(mix_reshape(vec(MIX_FLOAT32, 2), MIX_SHAPE(1, 1)));
      mix_inject_allocation_failure(k);
      mix_list *results = mix_function_call(function, arguments);
      mix_inject_allocation_failure(-1);
      whole = results != NULL;
      assert_int_equal(mix_error(), whole ? MIX_OK : MIX_MEMORY_ERROR);
      mix_error_clear();
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(classes_are_those_of_the_lists),
      REWRITE(dense_layer),
      REWRITE(convolution_layer),
      REWRITE(attention_layers),
      REWRITE(barriers),
      REWRITE(attributes_follow),
      REWRITE(lists_of_the_target),
      REWRITE(edits_of_the_environment),
      REWRITE(G62_traced_product),
      REWRITE(G61_eager_product),
      REWRITE(training_step),
      REWRITE(every_allocation_may_fail),
      REWRITE(casts_that_later_passes_remove),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
