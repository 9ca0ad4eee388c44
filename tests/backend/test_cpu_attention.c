/* Attention by blocks and its gradients, on the CPU and on the reference, against their formulas and against
 * the plain form; its memory is linear in the number of places. */
/* Holds docs/NUMERICS.md: Einstein sums and attention. */
#include "backend/attention_bounds.h"
#include "backend/host/executor.h"
#include "base/philox.h"
#include <mixtape/device.h>
#include <mixtape/function.h>

#define NO_MASK                                                                                              \
  {                                                                                                          \
    4, { 1, 1, 1, 1 }                                                                                        \
  }
static const attention_case cases[] = {
    {2, 5, 7, 2, 2, 4, 3, NO_MASK, {.scale = 0.5, .mask_value = -2.4e38}},
    {1, 70, 70, 2, 1, 8, 8, NO_MASK, {.scale = 0.35, .mask_value = -2.4e38, .causal = true}},
    {2, 33, 65, 4, 2, 17, 9, {4, {2, 1, 1, 65}}, {.scale = 0.25, .mask_value = -2.4e38}},
    {2, 33, 40, 2, 2, 16, 16, {4, {2, 1, 33, 40}}, {.scale = 1, .mask_value = -3e4, .mask_adds = true}},
    {1,
     40,
     24,
     3,
     3,
     5,
     6,
     {4, {1, 3, 40, 24}},
     {.scale = 1, .mask_value = -1e9, .mask_zeroes = true, .causal = true}},
    {1,
     66,
     50,
     2,
     1,
     8,
     24,
     {4, {1, 1, 1, 50}},
     {.scale = 1, .mask_value = -1e9, .mask_zeroes = true, .rate = 0.3}},
    {1, 1, 600, 1, 1, 3, 1, NO_MASK, {.scale = 1, .mask_value = -1e9, .mask_adds = true, .rate = 0.5}},
    {1, 45, 45, 8, 2, 6, 5, {4, {1, 1, 45, 45}}, {.scale = 0.4, .mask_value = -2.4e38, .causal = true}, 9},
    {2, 34, 29, 3, 1, 7, 4, {4, {2, 1, 34, 29}}, {.scale = 0.6, .mask_value = -2.4e38}},
    {2,
     20,
     36,
     6,
     3,
     5,
     5,
     {4, {2, 6, 20, 36}},
     {.scale = 1, .mask_value = -3e4, .mask_adds = true, .causal = true, .rate = 0.25}},
};

/* Uniform in (-1, 1). */
static mix_tensor *numbers_of(mix_dtype dtype, mix_shape shape, int seed) {
  static double values[ELEMENTS];
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= ELEMENTS);
  for (int64_t i = 0; i < count; i++)
    values[i] = (double)mix_philox_word(17, (uint64_t)seed, (uint64_t)i) * 0x1p-31 - 1;
  return mix_tensor_from_doubles(values, dtype, shape);
}

/* Every fifth is masked, and the first row of a mask with queries; or all outside of the window. */
static mix_tensor *mask_of(const attention_case *c) {
  static bool values[ELEMENTS];
  const mix_shape shape = c->mask;
  const int64_t count = mix_shape_size(shape);
  assert_true(count <= ELEMENTS);
  for (int64_t i = 0; i < count; i++)
    if (c->window)
      values[i] = llabs(i / shape.dims[3] % shape.dims[2] - i % shape.dims[3]) < c->window;
    else
      values[i] = count == 1 || ((i * 3 + 1) % 5 && !(shape.dims[2] > 1 && i < shape.dims[3]));
  return mix_tensor_from(values, MIX_BOOL, shape);
}

static void make_operands(const attention_case *c, mix_dtype dtype, mix_tensor **x) {
  x[0] = numbers_of(dtype, MIX_SHAPE(c->batch, c->queries, c->heads, c->dim), 1);
  x[1] = numbers_of(dtype, MIX_SHAPE(c->batch, c->keys, c->groups, c->dim), 2);
  x[2] = numbers_of(dtype, MIX_SHAPE(c->batch, c->keys, c->groups, c->value_dim), 3);
  x[3] = mask_of(c);
  x[4] = mix_tensor_from((const int64_t[]){5, 9}, MIX_INT64, MIX_SHAPE(2));
  x[5] = numbers_of(dtype, MIX_SHAPE(c->batch, c->queries, c->heads, c->value_dim), 4);
}

/* Result 0, or the gradients, as doubles, one after the other. */
static int64_t read_results(mix_tensor *first, int results, double *to) {
  int64_t total = 0;
  no_error();
  for (int r = 0; r < results; r++) {
    mix_tensor *y = mix_tensor_of(first->node, r);
    const int64_t count = mix_shape_size(mix_tensor_shape(y));
    assert_true(total + count <= ELEMENTS);
    assert_int_equal(mix_tensor_read(y, MIX_FLOAT64, to + total, count), MIX_OK);
    total += count;
  }
  return total;
}

static double got[ELEMENTS], wanted[ELEMENTS];

/* ---- within the bounds of docs/NUMERICS.md, Einstein sums and attention ---- */

static bounded right[ELEMENTS], other[ELEMENTS];

static const attention_operands *read_operands(const attention_case *c, mix_dtype dtype,
                                               mix_tensor *const *x) {
  static attention_operands operands;
  const mix_shape scores = MIX_SHAPE(c->batch, c->heads, c->queries, c->keys);
  for (int i = 0; i < OPERANDS; i++) read_into(x[i], mix_shape_size(mix_tensor_shape(x[i])), operands.of[i]);
  if (c->attributes.rate > 0)
    read_into(mix_stateless_uniform(x[OF_STATE], scores, dtype), mix_shape_size(scores), operands.drawn);
  return &operands;
}

static void compare_bounded(const attention_case *c, const char *what, mix_dtype dtype, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!(fabs(got[i] - right[i].is) <= right[i].off))
      fail_msg("case %d, %s on %s in %s: element %d is %.9g, not %.9g within %g", (int)(c - cases), what,
               mix_device(), mix_dtype_name(dtype), (int)i, got[i], right[i].is, right[i].off);
}

static const mix_dtype kernel_dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};
static const char *const devices[] = {"ref", "cpu"};

static void both_devices_within_the_bound(void **state) {
  (void)state;
  const char *former = mix_device();
  for (int i = 0; i < COUNT(cases) * COUNT(kernel_dtypes) * 2; i++)
    MIX_SCOPE {
      const attention_form form = {.of = &cases[i / 2 % COUNT(cases)],
                                   .dtype = kernel_dtypes[i / 2 / COUNT(cases)]};
      const bool gradient = i % 2;
      const mix_op *op = gradient ? &mix_op_attention_grad : &mix_op_attention;
      mix_tensor *x[OPERANDS];
      make_operands(form.of, form.dtype, x);
      (gradient ? bound_gradients : bound_results)(&form, read_operands(form.of, form.dtype, x), right);
      for (int device = 0; device < COUNT(devices); device++) {
        assert_int_equal(mix_set_device(devices[device]), MIX_OK);
        const int64_t count =
            read_results(mix_apply(op, &form.of->attributes, gradient ? 6 : 5, x), gradient ? 3 : 1, got);
        compare_bounded(form.of, op->name, form.dtype, count);
      }
    }
  mix_set_device(former);
}

/* The elements of the gradients of query, key and value. */
static void count_gradients(const attention_case *c, int64_t counts[3]) {
  counts[0] = c->batch * c->queries * c->heads * c->dim;
  counts[1] = c->batch * c->keys * c->groups * c->dim;
  counts[2] = c->batch * c->keys * c->groups * c->value_dim;
}

/* Is the largest of each gradient at least `times` the largest error? So zeros are far outside. */
static void expect_small_errors(const attention_form *f, const bounded *x, const bounded *more,
                                double times) {
  int64_t counts[3], first = 0;
  count_gradients(f->of, counts);
  for (int k = 0; k < 3; first += counts[k++]) {
    double largest = 0, off = 0;
    for (int64_t i = first; i < first + counts[k]; i++) {
      largest = fmax(largest, fabs(x[i].is));
      off = fmax(off, x[i].off + (more ? more[i].off : 0));
    }
    if (!(largest >= times * off))
      fail_msg("case %d in %s: gradient %d of %g at most has an error of %g", (int)(f->of - cases),
               mix_dtype_name(f->dtype), k, largest, off);
  }
}

static bool changes_gradients(const attention_case *c, attention_fault fault) {
  const mix_attention_attributes *a = &c->attributes;
  if (fault == SCALE) return a->scale != 1;
  if (fault == DROPOUT) return a->rate > 0;
  if (fault == MASK) /* a row without keys */
    return !a->mask_adds && !a->mask_zeroes && c->mask.dims[2] > 1 && !c->window;
  return true;
}

/* No kernel with one of these faults passes for a right one: at some element they are farther apart than the
 * errors of both. A gradient grows as the root of its n terms, its error in float32 as n times 3 n u (n + 8
 * of P, n of the row sum and of the sum): of 600 keys it is below 1 / 256 of the largest. In 16 bits a result
 * has e more, and a share of the terms an ulp, as there is a tie within their error: 2 (n + 8) u of half an
 * ulp, 2^-11, and scores' errors, below a fifth. So it is below 1 / 16. */
static void wrong_gradients_are_refused(void **state) {
  (void)state;
  int64_t counts[3];
  for (int i = 0; i < COUNT(cases) * COUNT(kernel_dtypes); i++)
    MIX_SCOPE {
      attention_form form = {.of = &cases[i % COUNT(cases)], .dtype = kernel_dtypes[i / COUNT(cases)]};
      mix_tensor *x[OPERANDS];
      make_operands(form.of, form.dtype, x);
      const attention_operands *operands = read_operands(form.of, form.dtype, x);
      count_gradients(form.of, counts);
      bound_gradients(&form, operands, right);
      expect_small_errors(&form, right, NULL, form.dtype == MIX_FLOAT32 ? 256 : 16);
      for (form.without = NOTHING + 1; form.without < FAULTS; form.without++) {
        bool refused = !changes_gradients(form.of, form.without);
        if (refused) continue;
        bound_gradients(&form, operands, other);
        for (int64_t k = 0; k < counts[0] + counts[1] + counts[2]; k++)
          refused |= fabs(right[k].is - other[k].is) > right[k].off + other[k].off;
        if (!refused)
          fail_msg("case %d in %s: fault %d is within the bound", i % COUNT(cases),
                   mix_dtype_name(form.dtype), (int)form.without);
      }
    }
}

/* ---- the plain form ---- */

/* The gradients of query, key and value. */
static int64_t read_tape(const attention_case *c, mix_tensor *const *x, bool plain, double *to) {
  int64_t counts[3], total = 0;
  mix_list *sources = mix_list_of(x[0], x[1], x[2]);
  mix_tape *tape = mix_tape_begin();
  for (int i = 0; i < 3; i++) mix_tape_watch(tape, x[i]);
  mix_tensor *y = plain ? mix_attention_plain(x, &c->attributes)
                        : mix_apply(&mix_op_attention, &c->attributes, 5, (mix_tensor **)x);
  mix_tape_end(tape);
  no_error();
  mix_list *gradients = mix_tape_gradient_from(tape, mix_list_of(y), mix_list_of(x[OF_GRADIENT]), sources);
  no_error();
  count_gradients(c, counts);
  for (int i = 0; i < 3; total += counts[i++]) read_into(mix_list_get(gradients, i), counts[i], to + total);
  return total;
}

/* Two forms are as far apart as the errors of both. A gradient grows as the root of its n terms, its error as
 * n times that of a term. In 16 bits the plain form has some 5 half ulps in each: of P, dP, dS twice, and a
 * head's result. In float32 both forms have (n + 8) u in P and the row sum, and n u in a sum. So of 600 keys
 * the errors are below 1 / 2 of the largest gradient in bfloat16, 1 / 8 in float16 and 1 / 128 in float32. */
static void gradients_as_those_of_the_plain_form(void **state) {
  (void)state;
  static const struct {
    mix_dtype dtype;
    double times;
  } rows[] = {{MIX_FLOAT64, 128}, {MIX_FLOAT32, 128}, {MIX_FLOAT16, 8}, {MIX_BFLOAT16, 2}};
  const char *former = mix_device(), *accumulate = mix_accumulate();
  assert_int_equal(mix_set_accumulate("exact"), MIX_OK);
  for (int i = 0; i < COUNT(cases) * COUNT(rows) * COUNT(devices); i++)
    MIX_SCOPE {
      attention_form form = {.of = &cases[i / 2 % COUNT(cases)], .dtype = rows[i / 2 / COUNT(cases)].dtype};
      mix_tensor *x[OPERANDS];
      assert_int_equal(mix_set_device(devices[i % 2]), MIX_OK);
      make_operands(form.of, form.dtype, x);
      const attention_operands *operands = read_operands(form.of, form.dtype, x);
      bound_gradients(&form, operands, right);
      form.plain = true;
      bound_gradients(&form, operands, other);
      expect_small_errors(&form, right, other, rows[i / 2 / COUNT(cases)].times);
      const int64_t count = read_tape(form.of, x, true, wanted);
      read_tape(form.of, x, false, got);
      for (int64_t k = 0; k < count; k++)
        if (!(fabs(got[k] - wanted[k]) <= right[k].off + other[k].off))
          fail_msg("case %d on %s in %s: element %d is %.9g, not %.9g of the plain form within %g",
                   (int)(form.of - cases), mix_device(), mix_dtype_name(form.dtype), (int)k, got[k],
                   wanted[k], right[k].off + other[k].off);
    }
  mix_set_accumulate(accumulate);
  mix_set_device(former);
}

static void compare(const attention_case *c, const char *what, mix_dtype dtype, int64_t count,
                    const double *got, const double *wanted) {
  for (int64_t i = 0; i < count; i++)
    if (got[i] != wanted[i])
      fail_msg("case %d, %s in %s: element %d is %.17g, not %.17g", (int)(c - cases), what,
               mix_dtype_name(dtype), (int)i, got[i], wanted[i]);
}

/* In float32 and float64 the reference rounds where the plain form does, in the same order of sums: the bits
 * are the same. */
static void the_reference_as_the_plain_form(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT64};
  const char *former = mix_device();
  assert_int_equal(mix_set_device("ref"), MIX_OK);
  for (int i = 0; i < COUNT(cases) * COUNT(dtypes); i++)
    MIX_SCOPE {
      const attention_case *c = &cases[i % COUNT(cases)];
      const mix_dtype dtype = dtypes[i / COUNT(cases)];
      mix_tensor *x[OPERANDS];
      make_operands(c, dtype, x);
      const int64_t count = read_results(mix_apply(&mix_op_attention, &c->attributes, 5, x), 1, got);
      mix_tensor *plain = mix_attention_plain(x, &c->attributes);
      no_error();
      mix_tensor_read(plain, MIX_FLOAT64, wanted, count);
      compare(c, "plain form", dtype, count, got, wanted);
    }
  mix_set_device(former);
}

/* One head of one sequence, and groups that share keys: several threads give the same bits. */
static void bits_do_not_depend_on_threads(void **state) {
  (void)state;
  static const attention_case shapes[] = {
      {1, 200, 400, 1, 1, 6, 7, NO_MASK, {.scale = 0.5, .mask_value = -2.4e38}},
      {1, 150, 220, 4, 2, 5, 3, NO_MASK, {.scale = 1, .mask_value = -2.4e38, .causal = true, .rate = 0.25}}};
  static const int threads[] = {1, 2, 3, 5};
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_BFLOAT16};
  const char *former = mix_device();
  const int before = mix_threads();
  assert_int_equal(mix_set_device("cpu"), MIX_OK);
  mix_host_take_all_threads(true);
  for (int i = 0; i < COUNT(shapes) * COUNT(dtypes) * COUNT(threads); i++)
    MIX_SCOPE {
      const attention_case *c = &shapes[i / COUNT(threads) % COUNT(shapes)];
      const mix_dtype dtype = dtypes[i / COUNT(threads) / COUNT(shapes)];
      double *to = i % COUNT(threads) ? got : wanted;
      mix_tensor *x[OPERANDS];
      assert_int_equal(mix_set_threads(threads[i % COUNT(threads)]), MIX_OK);
      make_operands(c, dtype, x);
      int64_t count = read_results(mix_apply(&mix_op_attention, &c->attributes, 5, x), 1, to);
      count += read_results(mix_apply(&mix_op_attention_grad, &c->attributes, 6, x), 3, to + count);
      if (to == got) assert_memory_equal(got, wanted, (size_t)count * sizeof *got);
    }
  mix_host_take_all_threads(false);
  assert_int_equal(mix_set_threads(before), MIX_OK);
  mix_set_device(former);
}

/* ---- memory ---- */

static mix_list *forward_and_backward(void *context, mix_list *arguments) {
  (void)context;
  const mix_attention_attributes attributes = {.scale = 0.125, .mask_value = -2.4e38, .causal = true};
  mix_tensor *x[] = {mix_list_get(arguments, 0), mix_list_get(arguments, 1), mix_list_get(arguments, 2),
                     mix_tensor_from((const bool[]){true}, MIX_BOOL, MIX_SHAPE(1, 1, 1, 1)),
                     mix_tensor_from((const int64_t[]){0, 0}, MIX_INT64, MIX_SHAPE(2))};
  mix_tape *tape = mix_tape_begin();
  for (int i = 0; i < 3; i++) mix_tape_watch(tape, x[i]);
  mix_tensor *y = mix_apply(&mix_op_attention, &attributes, 5, x);
  y = mix_square(y);
  mix_tape_end(tape);
  return mix_tape_gradient(tape, y, mix_list_of(x[0], x[1], x[2]));
}

static size_t memory_of(int64_t places) {
  size_t bytes = 0;
  MIX_SCOPE {
    mix_tensor *x = mix_fill(MIX_SHAPE(1, places, 2, 8), 0.5, MIX_FLOAT32);
    mix_function *function = mix_function_new(forward_and_backward, NULL);
    mix_plan_report report;
    assert_non_null(mix_function_call(function, mix_list_of(x, x, x)));
    assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
    bytes = report.peak_bytes;
  }
  return bytes;
}

/* Twice the places take at most twice the memory; all scores would take four times. */
static void memory_is_linear(void **state) {
  (void)state;
  const char *former = mix_device();
  assert_int_equal(mix_set_device("cpu"), MIX_OK);
  const size_t once = memory_of(1024), twice = memory_of(2048);
  assert_true(twice <= 2 * once);
  assert_true(once < sizeof(float) * 2 * 1024 * 1024); /* less than the scores of the two heads */
  mix_set_device(former);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(both_devices_within_the_bound),        TEST(wrong_gradients_are_refused),
      TEST(gradients_as_those_of_the_plain_form), TEST(the_reference_as_the_plain_form),
      TEST(bits_do_not_depend_on_threads),        TEST(memory_is_linear)};
  return cmocka_run_group_tests_name("attention by blocks", tests, NULL, NULL);
}
