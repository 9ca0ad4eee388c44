/* Each pass alone, as text before and after, and all together: fused programs give the bits of single
 * steps. */
#include "compile/support.h"

#include "base/philox.h"
#include "compile/evaluate.h"
#include "compile/compile.h"
#include "passes/passes.h"
#include "graph/capture.h"
#include "support/captured_graph.h"
#include "support/memory.h"
#include "support/constant.h"
#include "ir/ir.h"

/* ---- graphs in, text out ---- */

static void becomes(mix_ir *ir, bool (*pass)(mix_ir *ir), const char *expected) {
  assert_true(pass(ir));
  no_error();
  assert_string_equal(mix_ir_text(ir), expected);
}

static void from_graph(void **state) {
  (void)state;
  graph g;
  mix_variable *v = variable("v", vec(MIX_FLOAT32, 1, 2));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *unused = mix_exp(x);
  const char *former = mix_graph_scope_set("layer");
  mix_tensor *y = mix_add(mix_variable_value(v), x);
  mix_graph_scope_set(former);
  mix_variable_assign(v, y);
  (void)unused;
  mix_ir *ir = end_graph(&g, mix_list_of(mix_leaky_relu(y, 0.5), x));
  assert_string_equal(mix_ir_text(ir), "%0:float32(2) = argument 0\n"
                                       "%1:float32(2) = variable 'v'\n"
                                       "%2:float32(2) = add(%1, %0) @layer\n"
                                       "%3:float32(2) = leaky_relu(%2) {alpha=0.5}\n"
                                       "store %1 'v' = %2\n"
                                       "return %3, %0\n");
  mix_ir_free(ir);
}

static void identity(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2));
  mix_tensor *y = mix_identity(mix_stop_gradient(mix_gradient_identity(x)));
  mix_ir *ir = end_graph(&g, mix_list_of(mix_exp(y), y));
  becomes(ir, mix_pass_remove_identities,
          "%0:float32(2) = argument 0\n"
          "%4:float32(2) = exp(%0)\n"
          "return %4, %0\n");
  mix_ir_free(ir);
}

static void cse(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2));
  mix_tensor *e = mix_exp(x), *a = mix_add(e, scalar(2)), *f = mix_exp(x),
             *b = mix_add(f, scalar(2));                                /* equal constants too */
  mix_tensor *c = mix_leaky_relu(x, 0.25), *d = mix_leaky_relu(x, 0.5); /* other attributes */
  mix_tensor *product = mix_multiply(a, b), *one = mix_subtract(c, d), *other = mix_subtract(d, c);
  mix_ir *ir = end_graph(&g, mix_list_of(product, one, other));
  becomes(ir, mix_pass_cse,
          "%0:float32(2) = argument 0\n"
          "%1:float32(2) = exp(%0)\n"
          "%2:float32() = constant 2\n"
          "%3:float32(2) = add(%1, %2)\n"
          "%7:float32(2) = leaky_relu(%0) {alpha=0.25}\n"
          "%8:float32(2) = leaky_relu(%0) {alpha=0.5}\n"
          "%9:float32(2) = multiply(%3, %3)\n"
          "%10:float32(2) = subtract(%7, %8)\n"
          "%11:float32(2) = subtract(%8, %7)\n"
          "return %9, %10, %11\n");
  mix_ir_free(ir);
}

/* Bytes that are no attribute (padding, unused axes) do not distinguish two nodes. */
static void cse_of_padded_attributes(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 3)), *sums[3];
  for (int i = 0; i < 3; i++) {
    mix_reduce_attributes attributes;
    memset(&attributes, i ? 0xff : 0, sizeof attributes);
    attributes.axis_count = 1;
    attributes.axes[0] = i == 2;
    attributes.keep_dims = false;
    sums[i] = mix_apply(&mix_op_reduce_sum, &attributes, 1, &x);
  }
  mix_ir *ir = end_graph(&g, mix_list_of(sums[0], sums[1], sums[2]));
  becomes(ir, mix_pass_cse,
          "%0:float32(2, 3) = argument 0\n"
          "%1:float32(3) = reduce_sum(%0) {axes=[0]}\n"
          "%3:float32(2) = reduce_sum(%0) {axes=[1]}\n"
          "return %1, %1, %3\n");
  mix_ir_free(ir);
}

static void dce(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *y = mix_exp(x);
  mix_tensor *z = mix_sqrt(y);
  mix_ir *ir = end_graph(&g, mix_list_of(z, mix_add(z, scalar(1))));
  ir->result_count = 1;
  ir->results[0] = 1; /* only exp is still used */
  becomes(ir, mix_pass_dce,
          "%0:float32(2) = argument 0\n"
          "%1:float32(2) = exp(%0)\n"
          "return %1\n");
  mix_ir_free(ir);
}

/* The gradient of a mean: one number for all elements, read with stride 0. */
static void broadcast(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 3)), *one = mix_fill(MIX_SCALAR, 1, MIX_FLOAT32);
  mix_tensor *ones = mix_broadcast_to(mix_reshape(one, MIX_SHAPE(1, 1)), MIX_SHAPE(2, 3)),
             *down = mix_divide(ones, scalar(6));
  mix_ir *ir = end_graph(&g, mix_list_of(mix_multiply(down, x)));
  becomes(ir, mix_pass_sink_broadcasts,
          "%0:float32(2, 3) = argument 0\n"
          "%1:float32() = fill() {shape=() dtype=float32 value=1}\n"
          "%2:float32(1, 1) = fill() {shape=(1, 1) dtype=float32 value=1}\n"
          "%3:float32(2, 3) = identity(%2)\n"
          "%4:float32() = constant 6\n"
          "%7:float32(1, 1) = divide(%2, %4)\n"
          "%5:float32(2, 3) = identity(%7)\n"
          "%6:float32(2, 3) = multiply(%7, %0)\n"
          "return %6\n");
  mix_pass_run(ir, "constant_fold");
  becomes(ir, mix_pass_dce,
          "%0:float32(2, 3) = argument 0\n"
          "%7:float32(1, 1) = constant [0.16666667]\n"
          "%6:float32(2, 3) = multiply(%7, %0)\n"
          "return %6\n");
  assert_true(*(const float *)bytes_of_constant(&ir->nodes[1]) == 1.0f / 6);
  mix_ir_free(ir);
}

static void broadcast_keeps_the_consumers_shape(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(3)), *y = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 1));
  mix_tensor *wide = mix_broadcast_to(x, MIX_SHAPE(4, 2, 3)),
             *zeros = mix_fill(MIX_SHAPE(2, 3), 0, MIX_FLOAT32);
  mix_tensor *first = mix_exp(wide), *second = mix_add(zeros, y);
  mix_tensor *twos = mix_fill(MIX_SHAPE(2, 3), 2, MIX_FLOAT32),
             *square = mix_broadcast_to(x, MIX_SHAPE(3, 3));
  mix_ir *ir = end_graph(&g, mix_list_of(first, second, mix_matmul(twos, square, false, false)));
  becomes(ir, mix_pass_sink_broadcasts,
          "%0:float32(3) = argument 0\n"
          "%1:float32(2, 1) = argument 1\n"
          "%2:float32(4, 2, 3) = identity(%0)\n"
          "%3:float32(2, 3) = fill() {shape=(2, 3) dtype=float32 value=0}\n"
          "%9:float32(3) = exp(%0)\n"
          "%4:float32(4, 2, 3) = identity(%9)\n"
          "%10:float32() = constant 0\n"
          "%11:float32(2, 1) = add(%10, %1)\n"
          "%5:float32(2, 3) = identity(%11)\n"
          "%6:float32(2, 3) = fill() {shape=(2, 3) dtype=float32 value=2}\n"
          "%7:float32(3, 3) = identity(%0)\n"
          "%8:float32(2, 3) = matmul(%6, %7)\n"
          "return %4, %5, %8\n");
  becomes(ir, mix_pass_remove_identities, mix_ir_text(ir)); /* none of these is an identity */
  mix_ir_free(ir);
}

static void constant_fold(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT16, MIX_SHAPE(2));
  mix_tensor *one = scalar(1), *beta = scalar(0.5),
             *half = mix_cast(mix_subtract(one, mix_multiply(beta, beta)), MIX_FLOAT16);
  mix_tensor *range = mix_reshape(mix_cast(mix_range(0, 2, 1, MIX_INT32), MIX_FLOAT16), MIX_SHAPE(2));
  mix_tensor *zero = mix_scalar(0, MIX_INT32),
             *fails = mix_floor_divide(zero, zero); /* an error at run time */
  mix_tensor *product = mix_multiply(mix_add(x, range), half);
  mix_ir *ir = end_graph(&g, mix_list_of(product, fails));
  mix_pass_run(ir, "constant_fold");
  becomes(ir, mix_pass_dce,
          "%0:float16(2) = argument 0\n"
          "%5:float16() = constant 0.75\n"
          "%7:float16(2) = constant [0, 1]\n"
          "%8:int32() = constant 0\n"
          "%9:int32() = floor_divide(%8, %8)\n"
          "%10:float16(2) = add(%0, %7)\n"
          "%11:float16(2) = multiply(%10, %5)\n"
          "return %11, %9\n");
  assert_int_equal(*(const uint16_t *)bytes_of_constant(&ir->nodes[1]), 0x3a00); /* 0.75 */
  assert_int_equal(((const uint16_t *)bytes_of_constant(&ir->nodes[2]))[1], 0x3c00);
  mix_ir_free(ir);
}

static void select_to_predicate(void **state) {
  (void)state;
  graph g;
  mix_variable *w = variable("w", vec(MIX_FLOAT32, 1, 2)), *m = variable("m", vec(MIX_FLOAT32, 0, 0));
  begin_graph(&g);
  mix_tensor *dw = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *finite = mix_all_finite(dw);
  mix_tensor *new_m = mix_add(mix_variable_value(m), dw), *new_w = mix_subtract(mix_variable_value(w), new_m);
  mix_variable_assign(m, mix_select(finite, new_m, mix_variable_value(m)));
  mix_variable_assign(w, mix_select(finite, new_w, mix_variable_value(w)));
  mix_ir *ir = end_graph(&g, mix_list_new(0, NULL));
  const char *expected = "%0:float32(2) = argument 0\n"
                         "%1:float32(2) = variable 'm'\n"
                         "%2:float32(2) = variable 'w'\n"
                         "%3:bool() = all_finite(%0) keep\n"
                         "%4:float32(2) = add(%1, %0)\n"
                         "%5:float32(2) = subtract(%2, %4)\n"
                         "store %1 'm' = %4 if %3\n"
                         "store %2 'w' = %5 if %3\n"
                         "return\n";
  becomes(ir, mix_pass_select_to_predicate, expected);
  becomes(ir, mix_pass_fuse,
          "%0:float32(2) = argument 0\n"
          "%1:float32(2) = variable 'm'\n"
          "%2:float32(2) = variable 'w'\n"
          "%3:bool() = all_finite(%0) keep\n"
          "%8:float32(2), %9:float32(2) = fused(%1, %0, %2) if %3\n"
          "    over (2)\n"
          "      r0 = float32 load 0 strides (1)\n"
          "      r1 = float32 load 1 strides (1)\n"
          "      r2 = float32 load 2 strides (1)\n"
          "      r3 = float32 add r0, r1\n"
          "      r4 = float32 subtract r2, r3\n"
          "      store r3 -> 0\n"
          "      store r4 -> 1\n"
          "store %1 'm' = %8 if %3\n"
          "store %2 'w' = %9 if %3\n"
          "return\n");
  mix_ir_free(ir);
}

/* Selections that must stay: a condition for each element, another variable's old value, a result with other
 * readers, a condition that is a variable. */
static void select_to_predicate_leaves_other_selections(void **state) {
  (void)state;
  graph g;
  mix_variable *a = variable("a", vec(MIX_FLOAT32, 1, 2)), *b = variable("b", vec(MIX_FLOAT32, 1, 2)),
               *c = variable("c", vec(MIX_FLOAT32, 1, 2)), *d = variable("d", vec(MIX_FLOAT32, 1, 2)),
               *flag = variable("flag", mix_scalar(1, MIX_BOOL));
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(2)), *y = mix_exp(x), *finite = mix_all_finite(x);
  mix_variable_assign(a, mix_select(mix_greater(x, y), y, mix_variable_value(a)));
  mix_variable_assign(b, mix_select(finite, y, mix_variable_value(c)));
  mix_tensor *used = mix_select(finite, mix_sqrt(x), mix_variable_value(c));
  mix_variable_assign(c, used);
  mix_variable_assign(d, mix_select(mix_variable_value(flag), mix_negative(x), mix_variable_value(d)));
  mix_ir *ir = end_graph(&g, mix_list_of(used));
  char *before = strdup(mix_ir_text(ir));
  becomes(ir, mix_pass_select_to_predicate, before);
  free(before);
  mix_ir_free(ir);
}

/* A path that leaves a group and returns prevents fusion: exp -> sum -> divide. The operand of the sum is
 * recomputed. */
static void fuse(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT16, MIX_SHAPE(4, 3)), *row = argument(&g, MIX_FLOAT16, MIX_SHAPE(3));
  mix_tensor *y = mix_exp(mix_multiply(x, row)), *sum = mix_reduce_sum(y, MIX_AXES(1), true);
  mix_tensor *z = mix_divide(y, sum);
  mix_ir *ir = end_graph(&g, mix_list_of(z, mix_all_finite(z)));
  becomes(ir, mix_pass_fuse,
          "%0:float16(4, 3) = argument 0\n"
          "%1:float16(3) = argument 1\n"
          "%11:float16(4, 1) = fused(%0, %1)\n"
          "    over (4, 3)\n"
          "      r0 = float16 load 0 strides (3, 1)\n"
          "      r1 = float16 load 1 strides (0, 1)\n"
          "      r2 = float16 multiply r0, r1\n"
          "      r3 = float16 exp r2\n"
          "      sum of r3 -> 0\n"
          "      in rows of 3\n"
          "%9:float16(4, 3), %10:bool() = fused(%0, %1, %11)\n"
          "    over (4, 3)\n"
          "      r0 = float16 load 0 strides (3, 1)\n"
          "      r1 = float16 load 1 strides (0, 1)\n"
          "      r2 = float16 load 2 strides (1, 0)\n"
          "      r3 = float16 multiply r0, r1\n"
          "      r4 = float16 exp r3\n"
          "      r5 = float16 divide r4, r2\n"
          "      store r5 -> 0\n"
          "      all_finite of r5 -> 1\n"
          "return %9, %10\n");
  mix_ir_free(ir);
}

static void epilogue(void **state) {
  (void)state;
  graph g;
  begin_graph(&g);
  mix_tensor *x = argument(&g, MIX_FLOAT32, MIX_SHAPE(4, 2)), *w = argument(&g, MIX_FLOAT32, MIX_SHAPE(2, 3)),
             *bias = argument(&g, MIX_FLOAT32, MIX_SHAPE(3));
  mix_ir *ir = end_graph(&g, mix_list_of(mix_relu(mix_bias_add(mix_matmul(x, w, false, false), bias))));
  mix_pass_run(ir, "fuse");
  becomes(ir, mix_pass_fuse_epilogues,
          "%0:float32(4, 2) = argument 0\n"
          "%1:float32(2, 3) = argument 1\n"
          "%2:float32(3) = argument 2\n"
          "%7:float32(4, 3) = matmul(%0, %1, %2)\n"
          "    over (4, 3)\n"
          "      r0 = float32 product\n"
          "      r1 = float32 load 2 strides (0, 1)\n"
          "      r2 = float32 add r0, r1\n"
          "      r3 = float32 relu r2\n"
          "      store r3 -> 0\n"
          "return %7\n");
  mix_ir_free(ir);
}

/* ---- all together ---- */

static uint64_t position;
static int below(int n) { return (int)mix_philox_below(31, 7, &position, (uint64_t)n); }

typedef mix_tensor *unary(mix_tensor *x);
static unary *const unaries[] = {mix_negative, mix_abs,     mix_sign,   mix_floor,      mix_ceil, mix_round,
                                 mix_sqrt,     mix_rsqrt,   mix_square, mix_reciprocal, mix_exp,  mix_expm1,
                                 mix_log,      mix_log1p,   mix_sin,    mix_cos,        mix_tanh, mix_sigmoid,
                                 mix_erf,      mix_erfc,    mix_relu,   mix_relu6,      mix_elu,  mix_selu,
                                 mix_softplus, mix_softsign};
typedef mix_tensor *binary(mix_tensor *a, mix_tensor *b);
static binary *const binaries[] = {mix_add,          mix_subtract, mix_multiply,           mix_divide,
                                   mix_maximum,      mix_minimum,  mix_squared_difference, mix_power,
                                   mix_floor_divide, mix_floor_mod};
static binary *const comparisons[] = {mix_less,          mix_less_equal, mix_greater,
                                      mix_greater_equal, mix_equal,      mix_not_equal};
static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};

/* A random element-wise graph over (5, 21) with operands that broadcast; the same for the same seed. */
static mix_list *random_body(void *context, mix_list *arguments) {
  mix_tensor *pool[64];
  int count = 0;
  position = *(const uint64_t *)context;
  for (int i = 0; i < mix_list_count(arguments); i++) pool[count++] = mix_list_get(arguments, i);
  mix_dtype dtype = mix_tensor_dtype(pool[0]);
  pool[count++] = mix_fill(MIX_SHAPE(5, 21), 0.75, dtype);
  pool[count++] = mix_scalar_like(pool[0], -1.5);
  for (int steps = 6 + below(30); steps > 0 && count < 64; steps--) {
    mix_tensor *a = pool[below(count)], *b = pool[below(count)];
    switch (below(10)) {
    case 0:
    case 1:
    case 2: pool[count++] = unaries[below(COUNT(unaries))](a); break;
    case 3:
    case 4:
    case 5: pool[count++] = binaries[below(COUNT(binaries))](a, b); break;
    case 6: pool[count++] = mix_select(comparisons[below(COUNT(comparisons))](a, b), a, b); break;
    case 7: pool[count++] = mix_cast(mix_cast(a, dtypes[below(4)]), dtype); break;
    case 8: {
      mix_tensor *sum[] = {mix_add(a, b), mix_negative(mix_add(b, a)), mix_exp(mix_add(a, b)),
                           mix_subtract(mix_add(b, a), a)};
      pool[count++] = mix_add_n(2 + below(3), sum);
      break;
    }
    default: pool[count++] = mix_add(mix_broadcast_to(a, MIX_SHAPE(5, 21)), mix_leaky_relu(b, 0.125)); break;
    }
  }
  mix_list *results = mix_list_of(pool[count - 1], pool[count - 3],
                                  mix_all_finite(mix_add(pool[count - 2], pool[count - 4])));
  mix_list_append(results, mix_broadcast_to(pool[count - 5], MIX_SHAPE(5, 21)));
  return results;
}

static mix_list *random_results(uint64_t *seed, mix_list *arguments, const char *device,
                                const char *disabled) {
  assert_int_equal(mix_set_device(device), MIX_OK);
  setenv("MIXTAPE_DISABLE_PASSES", disabled, 1);
  mix_list *results = mix_function_call(mix_function_new(random_body, seed), arguments);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  no_error();
  return results;
}

/* Equal bits, but any NaN equals any NaN. */
static void same_bits(mix_tensor *a, mix_tensor *b, const char *what, uint64_t seed) {
  const mix_value *x = mix_tensor_value(a), *y = mix_tensor_value(b);
  assert_int_equal(mix_memory_bytes(x->memory), mix_memory_bytes(y->memory));
  if (!memcmp(bytes_of_memory(x->memory), bytes_of_memory(y->memory), mix_memory_bytes(x->memory))) return;
  int64_t count = mix_shape_size(x->shape);
  size_t element = mix_dtype_size(x->dtype);
  double *m = malloc(sizeof *m * (size_t)count), *n = malloc(sizeof *n * (size_t)count);
  mix_tensor_read(a, MIX_FLOAT64, m, count);
  mix_tensor_read(b, MIX_FLOAT64, n, count);
  for (int64_t i = 0; i < count; i++) {
    size_t at = (size_t)i * element;
    if (memcmp((char *)bytes_of_memory(x->memory) + at, (char *)bytes_of_memory(y->memory) + at, element) &&
        !(isnan(m[i]) && isnan(n[i])))
      fail_msg("seed %llu, %s, %s: element %d is %.17g and %.17g", (unsigned long long)seed, what,
               mix_dtype_name(x->dtype), (int)i, m[i], n[i]);
  }
  free(m), free(n);
}

/* Holds docs/NUMERICS.md: Element-wise operations. */
static void fused_is_unfused_bit_for_bit(void **state) {
  (void)state;
  static const char *const none =
      "remove_identities,sink_broadcasts,constant_fold,cse,dce,select_to_predicate,upcast_matmul,"
      "cache_weight_casts,expand_add_n,row_moments,fuse,fuse_epilogues";
  static const char *const some[] = {"", "fuse", "sink_broadcasts,constant_fold", "cse,dce",
                                     "remove_identities"};
  for (uint64_t seed = 0; seed < 60; seed++) {
    MIX_SCOPE {
      mix_dtype dtype = dtypes[seed % 4];
      uint64_t start = seed * 1000;
      double numbers[105];
      position = start + 500;
      for (int i = 0; i < 105; i++) numbers[i] = (below(4001) - 2000) / (i % 3 ? 256.0 : 16.0);
      mix_list *arguments = mix_list_of(mix_tensor_from_doubles(numbers, dtype, MIX_SHAPE(5, 21)),
                                        mix_tensor_from_doubles(numbers + 7, dtype, MIX_SHAPE(21)),
                                        mix_tensor_from_doubles(numbers + 50, dtype, MIX_SHAPE(5, 1)),
                                        mix_tensor_from_doubles(numbers + 3, dtype, MIX_SCALAR));
      for (int device = 0; device < 2; device++) {
        const char *name = device ? "ref" : "cpu";
        mix_list *single = random_results(&start, arguments, name, none);
        for (int s = 0; s < COUNT(some); s++) {
          mix_list *fused = random_results(&start, arguments, name, some[s]);
          for (int r = 0; r < mix_list_count(single); r++)
            same_bits(mix_list_get(single, r), mix_list_get(fused, r), name, seed);
        }
      }
    }
  }
}

/* ---- the 16-bit copy of a weight ---- */

static mix_list *product_and_update(void *context, mix_list *arguments) {
  mix_variable *w = context;
  mix_tensor *x = mix_list_get(arguments, 0);
  mix_tensor *y = mix_matmul(x, mix_cast(mix_variable_value(w), MIX_FLOAT16), false, false);
  mix_tensor *finite = mix_all_finite(y), *old = mix_variable_value(w);
  mix_variable_assign(w, mix_select(finite, mix_add(old, scalar(1)), old));
  return mix_list_of(mix_reduce_sum(y, MIX_ALL_AXES, false));
}
static mix_list *product(void *context, mix_list *arguments) {
  return mix_list_of(mix_matmul(mix_list_get(arguments, 0),
                                mix_cast(mix_variable_value(context), MIX_FLOAT16), false, false));
}

static void follows_every_write(const char *copy) {
  mix_variable *w = variable("w", mix_fill(MIX_SHAPE(2, 1), 1, MIX_FLOAT32));
  mix_function *step = mix_function_new(product_and_update, w), *predict = mix_function_new(product, w);
  mix_list *x = mix_list_of(mix_fill(MIX_SHAPE(1, 2), 1, MIX_FLOAT16)),
           *bad = mix_list_of(mix_fill(MIX_SHAPE(1, 2), INFINITY, MIX_FLOAT16));
  has_values(mix_list_get(mix_function_call(step, x), 0), 2);
  assert_non_null(strstr(mix_function_dump(step, "passes"), copy));
  has_values(mix_list_get(mix_function_call(step, x), 0), 4);
  has_values(mix_list_get(mix_function_call(predict, x), 0), 6); /* another plan's write */
  mix_function_call(step, bad);                                  /* a skipped step */
  has_values(mix_list_get(mix_function_call(predict, x), 0), 6);
  mix_variable_assign(w, mix_fill(MIX_SHAPE(2, 1), 10, MIX_FLOAT32)); /* a write outside any plan */
  has_values(mix_list_get(mix_function_call(predict, x), 0), 20);
  has_values(mix_list_get(mix_function_call(step, x), 0), 20);
  has_values(mix_list_get(mix_function_call(step, x), 0), 22);
  variable_has(w, 12, 12);
}

static void the_copy_of_a_weight_follows_every_write(void **state) {
  (void)state;
  setenv("MIXTAPE_DISABLE_PASSES", "upcast_matmul", 1);
  follows_every_write("float16(2, 1) = copy %");
  unsetenv("MIXTAPE_DISABLE_PASSES");
}
static void so_does_the_float32_copy_of_a_16_bit_weight(void **state) {
  (void)state;
  follows_every_write("rounded float16");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(from_graph),
      TEST(identity),
      TEST(cse),
      TEST(cse_of_padded_attributes),
      TEST(dce),
      TEST(broadcast),
      TEST(broadcast_keeps_the_consumers_shape),
      TEST(constant_fold),
      TEST(select_to_predicate),
      TEST(select_to_predicate_leaves_other_selections),
      TEST(fuse),
      TEST(epilogue),
      TEST(fused_is_unfused_bit_for_bit),
      TEST(the_copy_of_a_weight_follows_every_write),
      TEST(so_does_the_float32_copy_of_a_16_bit_weight),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
