/* mix_einsum against sums written out over all letters, with and without the pass that makes products of
 * matrices of it; equations and shapes that are refused. */
/* Holds docs/NUMERICS.md: Einstein sums and attention. */
#include "ops/support.h"
#include <ctype.h>
#include <mixtape/device.h>
#include <mixtape/einsum.h>

enum { OPERANDS = 3, ELEMENTS = 256, LETTERS = 128 };

typedef struct einsum_case {
  const char *equation; /* in letters alone, with a result */
  int count;
  mix_shape shapes[OPERANDS];
} einsum_case;

static const einsum_case cases[] = {
    {"ab,bc->ac", 2, {{2, {2, 3}}, {2, {3, 4}}}},
    {"ab,cb->ca", 2, {{2, {2, 3}}, {2, {4, 3}}}},
    {"abc,cde->abde", 2, {{3, {2, 3, 4}}, {3, {4, 2, 3}}}},
    {"aecd,abcd->acbe", 2, {{4, {2, 3, 2, 4}}, {4, {2, 5, 2, 4}}}},
    {"acbe,aecd->abcd", 2, {{4, {2, 2, 5, 3}}, {4, {2, 3, 2, 4}}}},
    {"abcd,cde->abe", 2, {{4, {2, 3, 2, 4}}, {3, {2, 4, 5}}}},
    {"bquh,bkuh->buqk", 2, {{4, {2, 3, 2, 4}}, {4, {2, 5, 2, 4}}}},
    {"cab,acd->dab", 2, {{3, {3, 2, 4}}, {3, {2, 3, 5}}}},
    {"ab,ab->ab", 2, {{2, {2, 3}}, {2, {2, 3}}}},
    {"ab,b->ba", 2, {{2, {2, 3}}, {1, {3}}}},
    {"a,b->ab", 2, {{1, {2}}, {1, {3}}}},
    {"ab,ab->", 2, {{2, {2, 3}}, {2, {2, 3}}}},
    {"a,a->", 2, {{1, {4}}, {1, {4}}}},
    {"abd,bc->ac", 2, {{3, {2, 3, 2}}, {2, {3, 4}}}}, /* d is summed over alone */
    {"aab,bc->ac", 2, {{3, {2, 2, 3}}, {2, {3, 4}}}}, /* a diagonal */
    {"abb,bca->cb", 2, {{3, {2, 3, 3}}, {3, {3, 4, 2}}}},
    {"aaa->a", 1, {{3, {3, 3, 3}}}},
    {"aa->", 1, {{2, {3, 3}}}},
    {"abc->cab", 1, {{3, {2, 3, 4}}}},
    {"abc->b", 1, {{3, {2, 3, 4}}}},
    {"ab,bc,cd->ad", 3, {{2, {2, 3}}, {2, {3, 4}}, {2, {4, 2}}}},
    {"ab,ac,ad->bcd", 3, {{2, {2, 3}}, {2, {2, 4}}, {2, {2, 2}}}},
    {"ab,cd,bd->ac", 3, {{2, {2, 3}}, {2, {4, 2}}, {2, {3, 2}}}},
    {"ab,bc->ac", 2, {{2, {2, 0}}, {2, {0, 3}}}}, /* an empty sum */
    {"ab,bc->ac", 2, {{2, {0, 2}}, {2, {2, 3}}}},
};

/* Small integers, of which all sums here are exact in every dtype: at most 72 terms of at most 3 * 3 * 3 in
 * magnitude, below 2^11 / 1 for float16; bfloat16 holds integers up to 256, which rounding to nearest of the
 * exact sum takes into account. */
static double element_of(int operand, int64_t i) { return (double)((i * 7 + operand * 3) % 5) - 2; }

/* The place in an operand of what the letters index. */
static int64_t place_of(const char *term, size_t length, const mix_shape *shape, const int64_t *index) {
  int64_t at = 0;
  for (size_t i = 0; i < length; i++) at = at * shape->dims[i] + index[(int)term[i]];
  return at;
}

/* The sum over all values of all letters; returns the number of elements. */
static int64_t write_out(const einsum_case *c, double *result, mix_shape *shape) {
  int64_t sizes[LETTERS] = {0}, index[LETTERS] = {0};
  const char *terms[OPERANDS], *at = c->equation, *out = strstr(c->equation, "->") + 2;
  size_t lengths[OPERANDS];
  char letters[LETTERS] = "";
  int letter_count = 0;
  for (int k = 0; k < c->count; k++, at++) {
    terms[k] = at;
    for (; isalpha((unsigned char)*at); at++) {
      if (!strchr(letters, *at)) letters[letter_count++] = *at;
      sizes[(int)*at] = c->shapes[k].dims[at - terms[k]];
    }
    lengths[k] = (size_t)(at - terms[k]);
  }
  *shape = (mix_shape){.rank = (int)strlen(out)};
  int64_t count = 1, all = 1;
  for (int i = 0; i < shape->rank; i++) count *= shape->dims[i] = sizes[(int)out[i]];
  for (int l = 0; l < letter_count; l++) all *= sizes[(int)letters[l]];
  assert_true(count <= ELEMENTS);
  for (int64_t i = 0; i < count; i++) result[i] = 0;
  for (int64_t n = 0; n < all; n++) {
    int64_t rest = n;
    for (int l = 0; l < letter_count; l++) {
      index[(int)letters[l]] = rest % sizes[(int)letters[l]];
      rest /= sizes[(int)letters[l]];
    }
    double product = 1;
    for (int k = 0; k < c->count; k++)
      product *= element_of(k, place_of(terms[k], lengths[k], &c->shapes[k], index));
    result[place_of(out, strlen(out), shape, index)] += product;
  }
  return count;
}

static mix_tensor *operand_of(const einsum_case *c, int k, mix_dtype dtype) {
  double values[ELEMENTS];
  const int64_t count = mix_shape_size(c->shapes[k]);
  for (int64_t i = 0; i < count; i++) values[i] = element_of(k, i);
  return mix_tensor_from_doubles(values, dtype, c->shapes[k]);
}

static void check(const einsum_case *c, mix_dtype dtype) {
  double expected[ELEMENTS], got[ELEMENTS];
  mix_tensor *operands[OPERANDS];
  mix_shape shape;
  const int64_t count = write_out(c, expected, &shape);
  for (int k = 0; k < c->count; k++) operands[k] = operand_of(c, k, dtype);
  mix_tensor *y = mix_einsum(c->equation, c->count, operands);
  no_error();
  assert_int_equal(mix_tensor_dtype(y), dtype);
  assert_int_equal(mix_tensor_shape(y).rank, shape.rank);
  assert_true(mix_shape_size(mix_tensor_shape(y)) == count);
  for (int i = 0; i < shape.rank; i++) assert_int_equal(mix_tensor_shape(y).dims[i], shape.dims[i]);
  assert_int_equal(mix_tensor_read(y, MIX_FLOAT64, got, count), MIX_OK);
  for (int64_t i = 0; i < count; i++)
    if (got[i] != expected[i])
      fail_msg("%s in %s: element %d is %g, not %g", c->equation, mix_dtype_name(dtype), (int)i, got[i],
               expected[i]);
}

static void each_case(void) {
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT64, MIX_FLOAT16, MIX_BFLOAT16, MIX_INT32};
  for (int c = 0; c < COUNT(cases); c++)
    for (int d = 0; d < COUNT(dtypes); d++)
      MIX_SCOPE { check(&cases[c], dtypes[d]); }
}

static void sums_over_letters(void **state) {
  (void)state;
  each_case();
}

/* The op's own kernel. */
static void sums_without_the_pass(void **state) {
  (void)state;
  setenv("MIXTAPE_DISABLE_PASSES", "expand_einsum", 1);
  each_case();
  unsetenv("MIXTAPE_DISABLE_PASSES");
}

static mix_tensor *of_ones(mix_shape shape) { return mix_fill(shape, 1, MIX_FLOAT32); }
static void has_shape(mix_tensor *y, mix_shape shape) {
  no_error();
  assert_int_equal(mix_tensor_shape(y).rank, shape.rank);
  for (int i = 0; i < shape.rank; i++) assert_int_equal(mix_tensor_shape(y).dims[i], shape.dims[i]);
}

static void dimensions_without_names(void **state) {
  (void)state;
  mix_tensor *x = of_ones(MIX_SHAPE(2, 3, 4)), *w = of_ones(MIX_SHAPE(4, 5)), *one[] = {x};
  has_shape(mix_einsum("...b,bc->...c", 2, (mix_tensor *[]){x, w}), MIX_SHAPE(2, 3, 5));
  has_shape(mix_einsum("a...,ab->b...", 2, (mix_tensor *[]){of_ones(MIX_SHAPE(4, 2, 3)), w}),
            MIX_SHAPE(5, 2, 3));
  has_shape(mix_einsum("...->...", 1, one), MIX_SHAPE(2, 3, 4));
  has_shape(mix_einsum("...a->a...", 1, one), MIX_SHAPE(4, 2, 3));
  /* they broadcast, also where one operand has fewer */
  mix_tensor *y = mix_einsum("...ij,...jk->...ik", 2,
                             (mix_tensor *[]){of_ones(MIX_SHAPE(2, 1, 3, 4)), of_ones(MIX_SHAPE(5, 4, 2))});
  has_shape(y, MIX_SHAPE(2, 5, 3, 2));
  assert_true(((const float *)mix_tensor_data(y))[59] == 4);
  has_shape(
      mix_einsum("...i,...i->...", 2, (mix_tensor *[]){of_ones(MIX_SHAPE(1, 3)), of_ones(MIX_SHAPE(4, 3))}),
      MIX_SHAPE(4));
  has_shape(
      mix_einsum("...i,...i->...", 2, (mix_tensor *[]){of_ones(MIX_SHAPE(1, 3)), of_ones(MIX_SHAPE(1, 3))}),
      MIX_SHAPE(1));
  /* the result without an arrow: letters that occur once, in alphabetical order */
  has_shape(mix_einsum("ba", 1, (mix_tensor *[]){of_ones(MIX_SHAPE(2, 3))}), MIX_SHAPE(3, 2));
  has_shape(mix_einsum(" ij , jk ", 2, (mix_tensor *[]){of_ones(MIX_SHAPE(2, 3)), of_ones(MIX_SHAPE(3, 4))}),
            MIX_SHAPE(2, 4));
  has_shape(mix_einsum("...b,ba", 2, (mix_tensor *[]){x, w}), MIX_SHAPE(2, 3, 5));
}

static void refuse(mix_tensor *y, mix_status status, const char *mentions) {
  assert_null(y);
  if (mix_error() != status || !strstr(mix_error_message(), mentions))
    fail_msg("'%s' is missing in: %s", mentions, mix_error_message());
  mix_error_clear();
}

static void equations_that_are_refused(void **state) {
  (void)state;
  mix_tensor *x = of_ones(MIX_SHAPE(2, 3)), *two[] = {x, x}, *mixed[] = {x, mix_cast(x, MIX_FLOAT16)};
  refuse(mix_einsum("ab,bc->ac", 2, two), MIX_VALUE_ERROR, "sizes 3 and 2");
  refuse(mix_einsum("ab->ab", 2, two), MIX_VALUE_ERROR, "fewer terms");
  refuse(mix_einsum("ab,ab,ab->ab", 2, two), MIX_VALUE_ERROR, "more terms");
  refuse(mix_einsum("abc,ab->ab", 2, two), MIX_VALUE_ERROR, "3 letters");
  refuse(mix_einsum("a,ab->ab", 2, two), MIX_VALUE_ERROR, "1 letters");
  refuse(mix_einsum("ab,ab->aa", 2, two), MIX_VALUE_ERROR, "twice in the result");
  refuse(mix_einsum("ab,ab->c", 2, two), MIX_VALUE_ERROR, "no operand has");
  refuse(mix_einsum("a1,ab->a", 2, two), MIX_VALUE_ERROR, "expected letters");
  refuse(mix_einsum("ab,ab-a", 2, two), MIX_VALUE_ERROR, "expected letters");
  refuse(mix_einsum("ab,ab->a->b", 2, two), MIX_VALUE_ERROR, "not the last");
  refuse(mix_einsum("a...,ab->a", 2, two), MIX_VALUE_ERROR, "'...'");
  refuse(mix_einsum("......,ab->a", 2, two), MIX_VALUE_ERROR, "twice in one term");
  refuse(mix_einsum("abcdefghi,ab->a", 2, two), MIX_VALUE_ERROR, "more letters");
  refuse(mix_einsum("ab,ab->ab", 0, two), MIX_VALUE_ERROR, "0 operands");
  refuse(mix_einsum("ab,ab->ab", 2, mixed), MIX_TYPE_ERROR, "float16");
  refuse(mix_einsum(NULL, 2, two), MIX_TYPE_ERROR, "equation");
  refuse(mix_einsum("ab,ab->ab", 2, (mix_tensor *[]){x, NULL}), MIX_TYPE_ERROR, "NULL");
}

static void gradients_flow_through_the_rest(void **state) {
  (void)state;
  /* of sum(x_iij w_jk): on the diagonal the sums of the rows of w */
  mix_tensor *x = of_ones(MIX_SHAPE(2, 2, 2)),
             *w = mix_tensor_from((const float[]){1, 2, 3, 4}, MIX_FLOAT32, MIX_SHAPE(2, 2));
  mix_tape *tape = mix_tape_begin();
  mix_tape_watch(tape, x);
  mix_tensor *y = mix_reduce_sum(mix_einsum("iij,jk->k", 2, (mix_tensor *[]){x, w}), MIX_ALL_AXES, false);
  mix_tape_end(tape);
  mix_tensor *gradient = mix_list_get(mix_tape_gradient(tape, y, mix_list_of(x)), 0);
  no_error();
  const float expected[] = {3, 7, 0, 0, 0, 0, 3, 7}, *got = mix_tensor_data(gradient);
  for (int i = 0; i < COUNT(expected); i++) assert_true(got[i] == expected[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(sums_over_letters), TEST(sums_without_the_pass),
                                     TEST(dimensions_without_names), TEST(equations_that_are_refused),
                                     TEST(gradients_flow_through_the_rest)};
  return cmocka_run_group_tests_name("einsum", tests, NULL, NULL);
}
