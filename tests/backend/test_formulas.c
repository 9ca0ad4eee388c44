/* The formulas of element-wise operations (ops/formulas.h), as the reference computes them, against MPFR with
 * 200 bits: definitions of their own, from MPFR's functions. */
#include "support/skip.h"
#include "ops/rules.h"
#include "ops/support.h"
#include <mixtape/device.h>
#include <mpfr.h>

enum { BITS = 200, COUNT_OF_OPERANDS = 400 };

typedef void unary(mpfr_t result, const mpfr_t x);
typedef void binary(mpfr_t result, const mpfr_t a, const mpfr_t b);

#define FORWARD(name)                                                                                        \
  static void exact_##name(mpfr_t r, const mpfr_t x) { mpfr_##name(r, x, MPFR_RNDN); }
/* clang-format off */
FORWARD(sqrt) FORWARD(exp) FORWARD(expm1) FORWARD(log) FORWARD(log1p) FORWARD(sin) FORWARD(cos) FORWARD(tanh)
FORWARD(erf) FORWARD(erfc) FORWARD(rec_sqrt) FORWARD(sqr)
    /* clang-format on */

    static void exact_reciprocal(mpfr_t r, const mpfr_t x) {
  mpfr_ui_div(r, 1, x, MPFR_RNDN);
}
static void exact_sigmoid(mpfr_t r, const mpfr_t x) { /* 1 / (1 + e^-x) */
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}
static void exact_softplus(mpfr_t r, const mpfr_t x) { /* log(1 + e^x) */
  mpfr_exp(r, x, MPFR_RNDN);
  mpfr_log1p(r, r, MPFR_RNDN);
}
static void exact_softsign(mpfr_t r, const mpfr_t x) { /* x / (1 + |x|) */
  mpfr_abs(r, x, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_div(r, x, r, MPFR_RNDN);
}
static void exact_elu(mpfr_t r, const mpfr_t x) {
  if (mpfr_sgn(x) < 0)
    mpfr_expm1(r, x, MPFR_RNDN);
  else
    mpfr_set(r, x, MPFR_RNDN);
}
/* Klambauer et al.: Self-normalizing neural networks, 2017, to 40 digits. */
#define SCALE "1.0507009873554804934193349852946122168730"
#define ALPHA "1.6732632423543772848170429916717279109600"
static void times_text(mpfr_t r, const char *factor) {
  mpfr_t x;
  mpfr_init2(x, BITS);
  mpfr_set_str(x, factor, 10, MPFR_RNDN);
  mpfr_mul(r, r, x, MPFR_RNDN);
  mpfr_clear(x);
}
static void exact_selu(mpfr_t r, const mpfr_t x) {
  exact_elu(r, x);
  if (mpfr_sgn(x) < 0) times_text(r, ALPHA);
  times_text(r, SCALE);
}

/* The error in units of 2^-53 of the result that the double formula may have: 2 for each of the C library's
 * functions, whose results are within 1 ulp (tanh 2: glibc's manual, "Errors in Math Functions"), 1 for each
 * rounding. erf: of its polynomial's last sum and of 1 - erfc, 2 roundings. erfc: 2 for each exp, a rounding
 * for each of two products, a quotient, 1 + 2x and the polynomial's last sum, and 1 of its former ones.
 * sigmoid: of e^x, twice in the fraction, and two roundings. */
static const struct {
  const mix_op *op;
  unary *exact;
  double least, most; /* operands */
  int error;
} of_one[] = {
    {&mix_op_sqrt, exact_sqrt, 1e-30, 1e30, 1},
    {&mix_op_rsqrt, exact_rec_sqrt, 1e-30, 1e30, 2},
    {&mix_op_square, exact_sqr, -1e15, 1e15, 1},
    {&mix_op_reciprocal, exact_reciprocal, 1e-30, 1e30, 1},
    {&mix_op_exp, exact_exp, -80, 80, 2},
    {&mix_op_expm1, exact_expm1, -80, 80, 2},
    {&mix_op_log, exact_log, 1e-30, 1e30, 2},
    {&mix_op_log1p, exact_log1p, -0.9375, 1e30, 2},
    {&mix_op_sin, exact_sin, -100, 100, 2},
    {&mix_op_cos, exact_cos, -100, 100, 2},
    {&mix_op_tanh, exact_tanh, -20, 20, 4},
    {&mix_op_sigmoid, exact_sigmoid, -80, 80, 6},
    {&mix_op_erf, exact_erf, -6, 6, 2},
    {&mix_op_erfc, exact_erfc, -6, 8, 10},
    {&mix_op_elu, exact_elu, -80, 80, 2},
    {&mix_op_selu, exact_selu, -80, 80, 6},
    {&mix_op_softplus, exact_softplus, -80, 80, 5},
    {&mix_op_softsign, exact_softsign, -1e15, 1e15, 2},
};

/* Numbers between the two on a scale that has as many of each magnitude as of signs; exact in float32. */
static double operand(int i, double least, double most) {
  const double share = (double)((uint64_t)i * 2654435761u % 1000003u) / 1000003;
  double x;
  if (least > 0)
    x = least * pow(most / least, share);
  else if (i % 2)
    x = least * pow(2, -40 * share * share);
  else
    x = most * pow(2, -40 * share * share);
  return (float)x;
}

/* `error` units of 2^-53 of the exact value, and one rounding to the dtype. */
static bool within(double got, const mpfr_t exact, int error, mix_dtype dtype) {
  mpfr_t difference, bound;
  mpfr_inits2(BITS, difference, bound, (mpfr_ptr)NULL);
  mpfr_d_sub(difference, got, exact, MPFR_RNDN);
  mpfr_abs(difference, difference, MPFR_RNDN);
  mpfr_abs(bound, exact, MPFR_RNDU);
  mpfr_mul_d(bound, bound, error * 0x1p-53 * (1 + 0x1p-40) + (dtype == MIX_FLOAT32 ? 0x1p-24 : 0), MPFR_RNDU);
  const bool good = mpfr_lessequal_p(difference, bound);
  mpfr_clears(difference, bound, (mpfr_ptr)NULL);
  return good;
}

static void functions_of_one_operand(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT64};
  mpfr_t x, exact;
  mpfr_inits2(BITS, x, exact, (mpfr_ptr)NULL);
  for (int r = 0; r < COUNT(of_one); r++)
    for (int d = 0; d < COUNT(dtypes); d++) {
      double operands[COUNT_OF_OPERANDS], got[COUNT_OF_OPERANDS];
      for (int i = 0; i < COUNT_OF_OPERANDS; i++) operands[i] = operand(i, of_one[r].least, of_one[r].most);
      mix_tensor *result =
          mix_apply1(of_one[r].op, tensor(dtypes[d], MIX_SHAPE(COUNT_OF_OPERANDS), operands));
      read_into(result, COUNT_OF_OPERANDS, got);
      for (int i = 0; i < COUNT_OF_OPERANDS; i++) {
        mpfr_set_d(x, operands[i], MPFR_RNDN);
        of_one[r].exact(exact, x);
        if (!within(got[i], exact, of_one[r].error, dtypes[d]))
          fail_msg("%s(%a) in %s: %.17g; MPFR: %.17g", of_one[r].op->name, operands[i],
                   mix_dtype_name(dtypes[d]), got[i], mpfr_get_d(exact, MPFR_RNDN));
      }
    }
  mpfr_clears(x, exact, (mpfr_ptr)NULL);
}

static void exact_power(mpfr_t r, const mpfr_t a, const mpfr_t b) { mpfr_pow(r, a, b, MPFR_RNDN); }
static void exact_atan2(mpfr_t r, const mpfr_t a, const mpfr_t b) { mpfr_atan2(r, a, b, MPFR_RNDN); }
static void exact_divide(mpfr_t r, const mpfr_t a, const mpfr_t b) { mpfr_div(r, a, b, MPFR_RNDN); }
static void exact_floor_mod(mpfr_t r, const mpfr_t a, const mpfr_t b) { /* of the sign of b */
  mpfr_fmod(r, a, b, MPFR_RNDN);
  if (mpfr_sgn(r) && mpfr_sgn(r) != mpfr_sgn(b)) mpfr_add(r, r, b, MPFR_RNDN);
}
static void exact_softplus_grad(mpfr_t r, const mpfr_t a, const mpfr_t b) {
  exact_sigmoid(r, b);
  mpfr_mul(r, a, r, MPFR_RNDN);
}
static void exact_softsign_grad(mpfr_t r, const mpfr_t a, const mpfr_t b) { /* dy / (1 + |x|)^2 */
  mpfr_abs(r, b, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_sqr(r, r, MPFR_RNDN);
  mpfr_div(r, a, r, MPFR_RNDN);
}
static void exact_sqrt_grad(mpfr_t r, const mpfr_t a, const mpfr_t b) { /* dy / (2 y) */
  mpfr_div(r, b, a, MPFR_RNDN);
  mpfr_div_ui(r, r, 2, MPFR_RNDN);
}
static void exact_rsqrt_grad(mpfr_t r, const mpfr_t a, const mpfr_t b) { /* -dy y^3 / 2 */
  mpfr_pow_ui(r, a, 3, MPFR_RNDN);
  mpfr_mul(r, r, b, MPFR_RNDN);
  mpfr_div_si(r, r, -2, MPFR_RNDN);
}
static void exact_reciprocal_grad(mpfr_t r, const mpfr_t a, const mpfr_t b) { /* -dy y^2 */
  mpfr_sqr(r, a, MPFR_RNDN);
  mpfr_mul(r, r, b, MPFR_RNDN);
  mpfr_neg(r, r, MPFR_RNDN);
}

/* As above. In float32 a formula without the C library's functions rounds each operation to float32: `error`
 * roundings of 2^-24. */
static const struct {
  const mix_op *op;
  binary *exact;
  double least[2], most[2];
  int error;
  bool in_double;
} of_two[] = {
    {&mix_op_power, exact_power, {1e-3, -8}, {1e3, 8}, 2, true},
    {&mix_op_atan2, exact_atan2, {-1e3, -1e3}, {1e3, 1e3}, 2, true},
    {&mix_op_divide, exact_divide, {-1e15, 1e-15}, {1e15, 1e15}, 1, false},
    {&mix_op_floor_mod, exact_floor_mod, {-1e6, 1e-3}, {1e6, 1e3}, 1, true},
    {&mix_op_softplus_grad, exact_softplus_grad, {-1e6, -60}, {1e6, 60}, 7, true},
    {&mix_op_softsign_grad, exact_softsign_grad, {-1e6, -1e6}, {1e6, 1e6}, 4, true},
    {&mix_op_sqrt_grad, exact_sqrt_grad, {1e-6, -1e6}, {1e6, 1e6}, 2, true},
    {&mix_op_rsqrt_grad, exact_rsqrt_grad, {1e-6, -1e6}, {1e6, 1e6}, 4, true},
    {&mix_op_reciprocal_grad, exact_reciprocal_grad, {1e-6, -1e6}, {1e6, 1e6}, 2, false},
};

static void functions_of_two_operands(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT64};
  mpfr_t x[2], exact;
  mpfr_inits2(BITS, x[0], x[1], exact, (mpfr_ptr)NULL);
  for (int r = 0; r < COUNT(of_two); r++)
    for (int d = 0; d < COUNT(dtypes); d++) {
      double operands[2][COUNT_OF_OPERANDS], got[COUNT_OF_OPERANDS];
      for (int i = 0; i < COUNT_OF_OPERANDS; i++)
        for (int k = 0; k < 2; k++)
          operands[k][i] = operand(i * (k ? 7 : 1) + k * (i / 2), of_two[r].least[k], of_two[r].most[k]);
      mix_tensor *result =
          mix_apply2(of_two[r].op, tensor(dtypes[d], MIX_SHAPE(COUNT_OF_OPERANDS), operands[0]),
                     tensor(dtypes[d], MIX_SHAPE(COUNT_OF_OPERANDS), operands[1]));
      read_into(result, COUNT_OF_OPERANDS, got);
      const bool narrow = dtypes[d] == MIX_FLOAT32 && !of_two[r].in_double;
      for (int i = 0; i < COUNT_OF_OPERANDS; i++) {
        for (int k = 0; k < 2; k++) mpfr_set_d(x[k], operands[k][i], MPFR_RNDN);
        of_two[r].exact(exact, x[0], x[1]);
        if (!within(got[i], exact, of_two[r].error * (narrow ? 1 << 29 : 1), dtypes[d]))
          fail_msg("%s(%a, %a) in %s: %.17g; MPFR: %.17g", of_two[r].op->name, operands[0][i], operands[1][i],
                   mix_dtype_name(dtypes[d]), got[i], mpfr_get_d(exact, MPFR_RNDN));
      }
    }
  mpfr_clears(x[0], x[1], exact, (mpfr_ptr)NULL);
}

static int on_ref(void **state) { return (void)state, mix_set_device("ref") != MIX_OK; }
static int end(void **state) {
  (void)state;
  mpfr_free_cache();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_of_one_operand),
                                     cmocka_unit_test(functions_of_two_operands)};
  return cmocka_run_group_tests(tests, on_ref, end);
}
