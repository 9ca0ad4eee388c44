/* All kernels of matrix products over random shapes and transposes: small integers, also among numbers that
 * are not finite, as the reference has them; and numbers whose sums round, whose bits must not depend on
 * threads. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/draws.h"
#include "backend/gemm_products.h"
#include "support/share.h"

enum { CASES = 100, TERMS = 1 << 17, MANY_TERMS = 1 << 20, MOST_TERMS = 1 << 23 };
enum family { FEW_ROWS, FEW_COLUMNS, DEEP, ANY, FAMILIES };
static const char *const names[] = {"few_rows", "few_columns", "deep", "any"};

enum numbers { INTEGERS, NOT_FINITE, REAL, SORTS };
typedef struct problem {
  enum family family;
  int number, transposes, threads;
  enum numbers numbers;
  int64_t m, n, k;
} problem;

/* Near the sizes of vectors, tiles and blocks as often as anywhere. */
static int64_t draw_size(draws *d, int64_t most) {
  static const int64_t units[] = {8, 14, 16, 32, 64, 96, 384, 1024};
  const int64_t edge = units[draw(d, 0, 7)] * draw(d, 1, 3) + draw(d, -1, 1);
  return one_in(d, 2) && edge <= most ? edge : draw_few(d, most);
}

static problem problem_of(enum family family, int number) {
  static const int teams[] = {2, 3, LARGEST_TEAM};
  draws d = draws_of(200 + (int)family, number);
  problem p = {.family = family, .number = number};
  const int64_t most = one_in(&d, 64) ? MOST_TERMS : one_in(&d, 8) ? MANY_TERMS : TERMS;
  do {
    p.m = family == FEW_ROWS ? draw(&d, 1, 17) : draw_size(&d, 300);
    p.n = family == FEW_COLUMNS ? draw(&d, 1, 17) : draw_size(&d, family == FEW_ROWS ? 1500 : 300);
    p.k = draw_size(&d, family == DEEP ? 5000 : 1200);
    if (family == DEEP && p.k < 1000) p.k += 1000;
  } while (p.m * p.n * p.k > most);
  p.transposes = (int)draw(&d, 0, 3), p.threads = teams[draw(&d, 0, 2)];
  p.numbers = (enum numbers)draw(&d, 0, SORTS - 1);
  return p;
}

/* The same numbers for all dtypes. */
static product product_of(const problem *p, mix_dtype dtype) {
  product x = make_product(dtype, p->m, p->n, p->k, p->transposes);
  random_state = (uint64_t)p->number;
  fill(&x, 0, p->numbers == REAL ? 0 : 3), fill(&x, 1, p->numbers == REAL ? 0 : 3);
  for (int i = 0; p->numbers == NOT_FINITE && i < 3; i++) {
    static const double values[] = {NAN, INFINITY, -INFINITY};
    const int64_t at = next_random() % (uint64_t)p->m, l = next_random() % (uint64_t)p->k;
    set(&x, 0, at, l, values[i]);
  }
  return x;
}

static void fail_at(const problem *p, const mix_kernel *kernel, int threads, int64_t i, double got,
                    double wanted) {
  fail_msg(
      "%s case %d, numbers %d: %s, %lldx%lldx%lld, transposes %d, %d threads: element %lld is %g, not %g",
      names[p->family], p->number, (int)p->numbers, kernel->name, (long long)p->m, (long long)p->n,
      (long long)p->k, p->transposes, threads, (long long)i, got, wanted);
}

static bool check_kernel(const problem *p, const mix_kernel *kernel, const double *sums) {
  product x = product_of(p, kernel->operands);
  const mix_kernel_args args = args_of(&x);
  const bool accepts = !shapes_of(kernel)->unsupported_reason(&args);
  void *results[2] = {NULL, NULL};
  for (int team = 0; accepts && team < 2; team++) {
    free(x.out);
    x.out = new_result(&x);
    run_with(kernel, &x, team ? p->threads : 1);
    results[team] = x.out;
    x.out = NULL;
  }
  for (int64_t i = 0; accepts && i < p->m * p->n; i++) {
    const double one = mix_load_double(results[0], x.output.dtype, i),
                 other = mix_load_double(results[1], x.output.dtype, i),
                 wanted = p->numbers == REAL ? one : rounded_to(x.output.dtype, sums[i]);
    if (one != wanted && !(isnan(one) && isnan(wanted))) fail_at(p, kernel, 1, i, one, wanted);
    if (one != other && !(isnan(one) && isnan(other))) fail_at(p, kernel, p->threads, i, other, one);
  }
  free(results[0]), free(results[1]);
  free_product(&x);
  return accepts;
}

/* Returns how many kernels accepted the problem. */
static int check_table(const problem *p, const mix_kernel *const *row, const double *sums) {
  int accepted = 0;
  for (; *row; row++) {
    if ((*row)->needs & ~(mix_cpu_features() | MIX_CPU_BF16_PAIRS)) continue; /* whether they gain or not */
    ask_for_sums_of(*row);
    const bool high = strstr((*row)->name, "f32_acc32_amx");
    assert_int_equal(mix_set_float32_precision(high ? "high" : "highest"), MIX_OK);
    accepted += check_kernel(p, *row, sums);
  }
  return accepted;
}

static void each_case_of(void **state) {
  const enum family family = (enum family)(intptr_t)*state;
  int accepted = 0;
  mix_cpu_override(UINT32_MAX);
  for (int number = first_case(); number < first_case() + case_count(CASES); number++) {
    if (left_out()) continue;
    const problem p = problem_of(family, number);
    product x = product_of(&p, MIX_FLOAT64);
    double *sums = naive(&x, NULL);
    free_product(&x);
    accepted += check_table(&p, mix_cpu_matmul_kernels, sums);
    check_table(&p, mix_emulated_matmul_kernels, sums);
    free(sums);
  }
  assert_true(accepted > 0);
}

int main(void) {
  static struct CMUnitTest tests[FAMILIES];
  for (int i = 0; i < FAMILIES; i++)
    tests[i] = (struct CMUnitTest){names[i], each_case_of, NULL, NULL, (void *)(intptr_t)i};
  return _cmocka_run_group_tests("random products", tests, FAMILIES, NULL, NULL);
}
