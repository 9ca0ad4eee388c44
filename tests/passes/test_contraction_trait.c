/* Contractions that no pass, planner or executor names: a convolution and a product, each of a record and a
 * kernel of this file alone. They get gradients, epilogues, folded transposes, a plan and threads. */
#include "compile/support.h"

#include "backend/host/executor.h"
#include "backend/ref/ref.h"
#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "ops/rules.h"
#include "support/captured_graph.h"
#include "support/memory.h"

/* ---- a convolution: x (batch, length, channels), kernel (width, channels, filters) ---- */

static bool conv_infer(mix_node *node) {
  mix_shape x = mix_input_value(node, 0)->shape, kernel = mix_input_value(node, 1)->shape;
  if (x.rank != 3 || kernel.rank != 3 || x.dims[2] != kernel.dims[1])
    return mix_rule_fail(node, "expected x (batch, length, channels) and kernel (width, channels, filters)");
  return mix_rule_output(node, 0, MIX_SHAPE(x.dims[0], x.dims[1] - kernel.dims[0] + 1, kernel.dims[2]));
}

/* Of the kernel, whose tap w multiplies the rows of x from w on. */
static void conv_gradient(mix_node *node, mix_tensor *const *output_gradients, mix_tensor **input_gradients) {
  mix_tensor *x = mix_node_input(node, 0), *dy = output_gradients[0], *taps[8];
  const mix_shape in = mix_tensor_shape(x), out = mix_tensor_shape(dy);
  const int64_t rows = out.dims[0] * out.dims[1], width = mix_input_value(node, 1)->shape.dims[0];
  dy = mix_reshape(dy, MIX_SHAPE(rows, out.dims[2]));
  for (int64_t w = 0; w < width; w++) {
    mix_tensor *part = mix_slice(x, MIX_SHAPE(0, w, 0), MIX_SHAPE(in.dims[0], out.dims[1], in.dims[2]));
    part = mix_reshape(part, MIX_SHAPE(rows, in.dims[2]));
    taps[w] = mix_expand_dims(mix_matmul(part, dy, true, false), 0);
  }
  input_gradients[1] = mix_concat((int)width, taps, 0);
}

static double conv_multiplications(const void *attributes, const mix_shape operands[MIX_CONTRACTED]) {
  (void)attributes;
  const int64_t *x = operands[0].dims, *kernel = operands[1].dims;
  return (double)(x[0] * (x[1] - kernel[0] + 1) * kernel[0] * kernel[1] * kernel[2]);
}

static const mix_contraction conv_traits = {.epilogue = true, .multiplications = conv_multiplications};
static const mix_op op_conv = {.name = "conv",
                               .signature = "T,T->T",
                               .types = "float",
                               .infer = conv_infer,
                               .gradient = conv_gradient,
                               .contraction = &conv_traits,
                               .accumulator = MIX_FLOAT32};

static void conv_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  const int64_t *x = args->input_types[0].shape.dims, *k = args->input_types[1].shape.dims;
  const mix_dtype dtype = args->input_types[0].dtype;
  int64_t element = 0;
  if (args->program) mix_ref_program_begin(args);
  for (int64_t n = 0; n < x[0]; n++)
    for (int64_t i = 0; i <= x[1] - k[0]; i++)
      for (int64_t f = 0; f < k[2]; f++, element++) {
        mix_ref_value sum = {0};
        for (int64_t w = 0; w < k[0]; w++)
          for (int64_t c = 0; c < k[1]; c++)
            sum.real += mix_ref_load(args->inputs[0], dtype, (n * x[1] + i + w) * x[2] + c).real *
                        mix_ref_load(args->inputs[1], dtype, (w * k[1] + c) * k[2] + f).real;
        if (args->program)
          mix_ref_program_element(args, element, sum);
        else
          mix_ref_store(args->outputs[0], dtype, element, mix_ref_round(sum, dtype));
      }
  if (args->program) mix_ref_program_end(args);
}

static bool conv_prepare(mix_kernel_args *args, int threads) {
  return !args->program || mix_ref_program_prepare(args, threads);
}

static const mix_kernel conv_kernel = {
    .name = "conv", .prepare = conv_prepare, .serial = mix_ref_serial, .run = conv_run};

/* ---- a product with attributes of its own: the flags are not where matmul has them ---- */

typedef struct product_attributes {
  double nothing;
  mix_dtype rounded;
  bool flip_right, flip_left;
} product_attributes;

static bool product_infer(mix_node *node) {
  const product_attributes *attributes = node->attributes;
  mix_shape a = mix_input_value(node, 0)->shape, b = mix_input_value(node, 1)->shape;
  if (a.rank != 2 || b.rank != 2 || a.dims[!attributes->flip_left] != b.dims[attributes->flip_right])
    return mix_rule_fail(node, "expected matrices that fit");
  return mix_rule_output(node, 0, MIX_SHAPE(a.dims[attributes->flip_left], b.dims[!attributes->flip_right]));
}

static const mix_attribute_row product_fields[] = {
    {"rounded", MIX_ATTRIBUTE_DTYPE, offsetof(product_attributes, rounded)},
    {"flip_right", MIX_ATTRIBUTE_BOOL, offsetof(product_attributes, flip_right)},
    {"flip_left", MIX_ATTRIBUTE_BOOL, offsetof(product_attributes, flip_left)},
    {NULL}};
static const mix_contraction downcast_traits = {.result_dtype = &product_fields[0]};
static const mix_op op_downcast = {.name = "product_downcast",
                                   .attributes_size = sizeof(product_attributes),
                                   .fields = product_fields,
                                   .contraction = &downcast_traits};
static const mix_contraction product_traits = {
    .transpose = {&product_fields[2], &product_fields[1]}, .swaps = true, .downcast = &op_downcast};
static const mix_op op_product = {.name = "product",
                                  .signature = "T,T->T",
                                  .types = "float",
                                  .attributes_size = sizeof(product_attributes),
                                  .infer = product_infer,
                                  .fields = product_fields,
                                  .contraction = &product_traits,
                                  .accumulator = MIX_FLOAT32};

static const char *only_one_flag(const mix_kernel_args *args) {
  const product_attributes *attributes = args->attributes;
  return attributes->flip_left && attributes->flip_right ? "both operands are flipped" : NULL;
}
static const char *only_rounded_to_float16(const mix_kernel_args *args) {
  const product_attributes *attributes = args->attributes;
  return attributes->rounded != MIX_FLOAT16 || !attributes->flip_right ? "another product" : NULL;
}
static const mix_kernel wide_kernel = {.name = "wide", .unsupported_reason = only_rounded_to_float16};
static const mix_kernel product_kernel = {
    .name = "product", .unsupported_reason = only_one_flag, .widened = &wide_kernel};

#define ROW(op, kernel)                                                                                      \
  {                                                                                                          \
    &op, (const mix_kernel *const[]) { &kernel, NULL }                                                       \
  }
static const mix_kernel_row rows[] = {
    ROW(op_conv, conv_kernel), ROW(op_product, product_kernel), ROW(op_downcast, wide_kernel), {NULL, NULL}};
static const mix_kernel_row *const tables[] = {rows, mix_ref_kernels, NULL};

static mix_executable *host_compile(const mix_plan *plan, const mix_context *context) {
  return mix_host_compile(plan, context->threads, context->precision, tables, false);
}
static const mix_backend test_backend = {
    .name = "test", .host = &test_backend, .own = tables, .compile = host_compile, MIX_HOST_BACKEND};
static const mix_context test_context = {.backend = &test_backend, .threads = 1};

/* ---- compiling and running ---- */

static mix_tensor *conv(mix_tensor *x, mix_tensor *kernel) { return mix_apply2(&op_conv, x, kernel); }
static mix_tensor *product(mix_tensor *a, mix_tensor *b) {
  return mix_apply(&op_product, &(product_attributes){0}, 2, (mix_tensor *[]){a, b});
}

static const mix_ir_node *node_of(const mix_ir *ir, const mix_op *op) {
  const mix_ir_node *found = NULL;
  for (int n = 0; n < ir->node_count; n++)
    if (ir->nodes[n].op == op) assert_null(found), found = &ir->nodes[n];
  return found;
}

static mix_compiled *compiled(mix_ir *ir) {
  mix_compiled *made = mix_compile(ir, &test_context, false);
  no_error();
  return made;
}

static mix_ir *finish(graph *g, mix_list *results) {
  mix_ir *ir = end_graph(g, results);
  ir->context = &test_context;
  return ir;
}

/* ---- tests ---- */

enum { BATCH = 2, LENGTH = 5, CHANNELS = 2, WIDTH = 2, FILTERS = 3, OUT = LENGTH - WIDTH + 1 };

static float x_at(int i) { return (float)(i * 7 % 5 - 2); }
static float kernel_at(int i) { return (float)(i * 5 % 7 - 3); }

/* kernel -= d sum(relu(conv(x, kernel) + bias)) / d kernel; all numbers are small integers. */
static mix_ir *training_step(void) {
  double numbers[WIDTH * CHANNELS * FILTERS];
  for (int i = 0; i < WIDTH * CHANNELS * FILTERS; i++) numbers[i] = (double)kernel_at(i);
  graph g;
  mix_variable *kernel =
      variable("kernel", mix_tensor_from_doubles(numbers, MIX_FLOAT32, MIX_SHAPE(WIDTH, CHANNELS, FILTERS)));
  mix_tensor *bias = vec(MIX_FLOAT32, 1, 0, -1);
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(BATCH, LENGTH, CHANNELS));
  mix_tape *tape = mix_tape_begin();
  mix_tensor *y = mix_relu(mix_bias_add(conv(x, mix_variable_value(kernel)), bias));
  mix_tensor *loss = mix_reduce_sum(y, MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_list *gradients = mix_tape_gradient(tape, loss, mix_list_of(kernel));
  mix_variable_assign(kernel, mix_subtract(mix_variable_value(kernel), mix_list_get(gradients, 0)));
  return finish(&g, mix_list_of(y));
}

/* The same by hand. */
static void expected_step(float *y, float *kernel) {
  const float bias[FILTERS] = {1, 0, -1};
  for (int i = 0; i < WIDTH * CHANNELS * FILTERS; i++) kernel[i] = kernel_at(i);
  for (int n = 0; n < BATCH; n++)
    for (int i = 0; i < OUT; i++)
      for (int f = 0; f < FILTERS; f++) {
        float sum = bias[f];
        for (int w = 0; w < WIDTH; w++)
          for (int c = 0; c < CHANNELS; c++)
            sum += x_at((n * LENGTH + i + w) * CHANNELS + c) * kernel_at((w * CHANNELS + c) * FILTERS + f);
        y[(n * OUT + i) * FILTERS + f] = sum > 0 ? sum : 0;
        for (int w = 0; w < WIDTH && sum > 0; w++)
          for (int c = 0; c < CHANNELS; c++)
            kernel[(w * CHANNELS + c) * FILTERS + f] -= x_at((n * LENGTH + i + w) * CHANNELS + c);
      }
}

/* With and without passes the step gives the numbers worked out by hand. */
static void a_step_trains_it(void **state) {
  (void)state;
  const char *const disabled[] = {"", "fuse", "fuse_epilogues,inplace",
                                  "fuse,fuse_epilogues,memory_plan,cse"};
  float y[BATCH * OUT * FILTERS], kernel[WIDTH * CHANNELS * FILTERS];
  expected_step(y, kernel);
  for (int p = 0; p < COUNT(disabled); p++) {
    setenv("MIXTAPE_DISABLE_PASSES", disabled[p], 1);
    mix_compiled *step = compiled(training_step());
    float in[BATCH * LENGTH * CHANNELS], out[BATCH * OUT * FILTERS];
    for (int i = 0; i < COUNT(in); i++) in[i] = x_at(i);
    mix_memory *x = mix_memory_wrap(in, sizeof in, NULL), *result = mix_memory_wrap(out, sizeof out, NULL);
    assert_true(mix_compiled_run(step, &x, &result, NULL));
    assert_memory_equal(out, y, sizeof y);
    assert_memory_equal(bytes_of_memory(step->ir->variables[0].variable->memory), kernel, sizeof kernel);
    mix_release(result);
    mix_release(x);
    mix_compiled_free(step);
  }
}

/* Bias and relu run on the block of results that the kernel has in cache. */
static void it_has_an_epilogue(void **state) {
  (void)state;
  mix_ir *ir = training_step();
  assert_true(mix_passes_run(ir));
  const mix_ir_node *node = node_of(ir, &op_conv);
  assert_non_null(node->program);
  assert_int_equal(node->input_count,
                   MIX_CONTRACTED + 2); /* bias, and the zero of relu's gradient or one load */
  assert_int_equal(node->program->dims[0], BATCH * OUT);
  assert_int_equal(node->program->dims[1], FILTERS);
  char problem[256] = "";
  if (!mix_ir_check(ir, node, problem, sizeof problem)) fail_msg("%s", problem);
  mix_ir_free(ir);
}

static void its_finite_check_is_an_epilogue(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT16, MIX_SHAPE(2, 4, 2)),
             *k = argument(&g, MIX_FLOAT16, MIX_SHAPE(2, 2, 3));
  mix_tensor *y = conv(x, k);
  mix_ir *ir = finish(&g, mix_list_of(mix_all_finite(y), y));
  assert_true(mix_passes_run(ir));
  assert_int_equal(node_of(ir, &op_conv)->program->reduction, MIX_REDUCE_ALL_FINITE);
  mix_ir_free(ir);
}

/* Under jit_compile an epilogue reads the float32 sums. */
static void its_epilogue_reads_the_accumulator(void **state) {
  (void)state;
  for (int excess = 0; excess < 2; excess++) {
    graph g;
    begin_graph(&g);
    mix_tensor *x = argument(&g, MIX_FLOAT16, MIX_SHAPE(2, 4, 2)),
               *k = argument(&g, MIX_FLOAT16, MIX_SHAPE(2, 2, 3));
    mix_ir *ir = finish(&g, mix_list_of(mix_relu(mix_multiply(conv(x, k), conv(x, k)))));
    ir->excess_precision = excess;
    assert_true(mix_passes_run(ir));
    const mix_program *program = node_of(ir, &op_conv)->program;
    assert_int_equal(program->loads[0].input, MIX_FROM_ACCUMULATOR);
    assert_int_equal(program->loads[0].dtype, excess ? MIX_FLOAT32 : MIX_FLOAT16);
    mix_ir_free(ir);
  }
}

/* A result may overwrite what its epilogue reads element by element, never what is contracted. */
static void only_epilogue_operands_are_overwritten(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 8, 16)),
             *k = argument(&g, MIX_FLOAT32, MIX_SHAPE(1, 16, 16));
  mix_tensor *contracted = mix_softmax(x), *added = mix_log_softmax(x);
  mix_ir *ir = finish(&g, mix_list_of(mix_softmax(mix_add(conv(contracted, k), added))));
  mix_compiled *made = compiled(ir);
  const mix_step *step = NULL;
  for (int s = 0; s < made->plan.step_count; s++)
    if (made->plan.steps[s].op == &op_conv) step = &made->plan.steps[s];
  assert_non_null(step);
  assert_int_equal(step->input_count, MIX_CONTRACTED + 1);
  const mix_slot *slots = made->plan.slots, *result = &slots[step->outputs[0]];
  assert_int_equal(result->kind, MIX_SLOT_ARENA);
  assert_int_equal(result->offset, slots[step->inputs[MIX_CONTRACTED]].offset);
  assert_int_not_equal(result->offset, slots[step->inputs[0]].offset);
  mix_compiled_free(made);
}

/* Its weights are read by a contraction, and its multiplications pay for fetching them from another core. */
static void threads_count_its_work(void **state) {
  (void)state;
  enum { X, WEIGHTS, Y, UPDATED, SLOTS };
  static const int operands[] = {X, WEIGHTS}, result[] = {Y}, updated[] = {UPDATED};
  const mix_step steps[] = {
      {.op = &op_conv, .input_count = 2, .output_count = 1, .inputs = operands, .outputs = result},
      {.op = &mix_op_fused, .output_count = 1, .outputs = updated}};
  for (int large = 0; large < 2; large++) {
    const mix_shape x = MIX_SHAPE(1, large ? 257 : 2, 32), weights = MIX_SHAPE(2, 32, 64);
    mix_slot slots[SLOTS] = {[X] = {.kind = MIX_SLOT_ARGUMENT, .shape = x},
                             [WEIGHTS] = {.kind = MIX_SLOT_VARIABLE, .shape = weights},
                             [Y] = {.kind = MIX_SLOT_ARENA, .shape = MIX_SHAPE(1, x.dims[1] - 1, 64)},
                             [UPDATED] = {.kind = MIX_SLOT_VARIABLE, .shape = weights}};
    for (int i = 0; i < SLOTS; i++)
      slots[i].dtype = MIX_FLOAT32, slots[i].bytes = mix_value_bytes(MIX_FLOAT32, slots[i].shape);
    const mix_plan plan = {.slot_count = SLOTS,
                           .step_count = COUNT(steps),
                           .slots = slots,
                           .steps = (mix_step *)steps,
                           .argument_count = 1,
                           .variable_count = 1};
    assert_int_equal(mix_host_thread_count(&plan, 4, MIX_CPU_AVX2), large ? 4 : 1);
  }
}

static void folds_to(mix_ir *ir, const char *expected) {
  assert_true(mix_pass_run(ir, "fold_transposes"));
  assert_true(mix_pass_run(ir, "dce"));
  assert_string_equal(mix_ir_text(ir), expected);
  mix_ir_free(ir);
}

/* The kernel runs it with either flag, but not with both. */
static void transposes_become_its_flags(void **state) {
  (void)state;
  const mix_axes reversed = {.count = 0};
  graph g;
  begin_graph(&g);
  mix_tensor *a = argument(&g, MIX_FLOAT32, MIX_SHAPE(3, 2)), *b = argument(&g, MIX_FLOAT32, MIX_SHAPE(4, 3));
  a = mix_transpose(a, reversed);
  mix_ir *ir = finish(&g, mix_list_of(product(a, mix_transpose(b, reversed))));
  folds_to(ir, "%0:float32(3, 2) = argument 0\n"
               "%1:float32(4, 3) = argument 1\n"
               "%3:float32(3, 4) = transpose(%1) {permutation=[1, 0]}\n"
               "%4:float32(2, 4) = product(%0, %3) {rounded=none flip_left}\n"
               "return %4\n");
}

/* Under jit_compile the result is transposed by swapping the operands. */
static void transposes_of_its_result_swap_operands(void **state) {
  (void)state;
  const mix_axes reversed = {.count = 0};
  graph g;
  begin_graph(&g);
  mix_tensor *a = argument(&g, MIX_FLOAT32, MIX_SHAPE(3, 2)), *b = argument(&g, MIX_FLOAT32, MIX_SHAPE(3, 4));
  mix_tensor *y = mix_transpose(product(mix_transpose(a, reversed), b), reversed);
  mix_ir *ir = finish(&g, mix_list_of(y));
  ir->excess_precision = true;
  folds_to(ir, "excess_precision\n"
               "%0:float32(3, 2) = argument 0\n"
               "%1:float32(3, 4) = argument 1\n"
               "%4:float32(4, 2) = product(%1, %0) {rounded=none flip_left}\n"
               "return %4\n");
}

/* The convolution has no flags: its operands are transposed by steps. */
static void other_transposes_stay(void **state) {
  (void)state;
  const mix_axes last_two = {.count = 3, .axis = {0, 2, 1}};
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2, 4)),
             *k = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 2, 3));
  mix_ir *ir = finish(&g, mix_list_of(mix_transpose(conv(mix_transpose(x, last_two), k), last_two)));
  ir->excess_precision = true;
  const char *before = mix_ir_text(ir);
  assert_true(mix_pass_run(ir, "fold_transposes"));
  assert_string_equal(mix_ir_text(ir), before);
  mix_ir_free(ir);
}

/* The wide kernel takes the product with its right operand flipped. */
static void it_becomes_its_downcast_variant(void **state) {
  (void)state;
  const product_attributes right = {.flip_right = true};
  graph g;
  begin_graph(&g);
  mix_tensor *a = argument(&g, MIX_FLOAT16, MIX_SHAPE(3, 2)), *b = argument(&g, MIX_FLOAT16, MIX_SHAPE(4, 2));
  mix_tensor *y = mix_apply(&op_product, &right, 2, (mix_tensor *[]){a, b});
  mix_ir *ir = finish(&g, mix_list_of(product(a, mix_transpose(b, (mix_axes){0})), y));
  assert_true(mix_pass_run(ir, "upcast_matmul"));
  assert_string_equal(mix_ir_text(ir),
                      "%0:float16(3, 2) = argument 0\n"
                      "%1:float16(4, 2) = argument 1\n"
                      "%5:float32(3, 2) = cast(%0) {dtype=float32}\n"
                      "%6:float32(4, 2) = cast(%1) {dtype=float32}\n"
                      "%2:float16(3, 4) = product_downcast(%5, %6) {rounded=float16 flip_right}\n"
                      "%3:float16(2, 4) = transpose(%1) {permutation=[1, 0]}\n"
                      "%4:float16(3, 4) = product(%0, %3) {rounded=none}\n"
                      "return %4, %2\n");
  mix_ir_free(ir);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_step_trains_it),
                                     TEST(it_has_an_epilogue),
                                     TEST(its_finite_check_is_an_epilogue),
                                     TEST(its_epilogue_reads_the_accumulator),
                                     TEST(only_epilogue_operands_are_overwritten),
                                     TEST(threads_count_its_work),
                                     TEST(transposes_become_its_flags),
                                     TEST(transposes_of_its_result_swap_operands),
                                     TEST(other_transposes_stay),
                                     TEST(it_becomes_its_downcast_variant)};
  return cmocka_run_group_tests_name("passes.contraction_trait", tests, NULL, NULL);
}
