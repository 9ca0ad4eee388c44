/* All kernels of convolutions and their gradients over random shapes, strides, dilations, padding, groups and
 * multipliers, against the reference in float64. Small integers, whose sums every kernel has exactly, also
 * with numbers that are not finite among them; and numbers whose sums round, within a computed bound, where
 * the bits must not depend on threads. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/convolution_steps.h"
#include "backend/draws.h"
#include "backend/instruction_sets.h"
#include "support/share.h"

enum {
  CASES = 10,
  KINDS = 3,
  TERMS = 1 << 16,
  MANY_TERMS = 1 << 19,
  MOST_TERMS = 1 << 22,
  ELEMENTS = 1 << 16
};
enum family { PLAIN, GROUPS, DEPTHWISE, THREE_WIDE, ONE_AXIS, THREE_AXES, FAMILIES };

/* ---- shapes ---- */

static int64_t effective(int64_t kernel, int64_t dilation) { return (kernel - 1) * dilation + 1; }
static int64_t out_of(const shape *s, int i) {
  return (s->in[i] + s->before[i] + s->after[i] - effective(s->kernel[i], s->dilation[i])) / s->stride[i] + 1;
}

/* A window along an axis: also cells that see padding alone, and steps that no image has. */
static void draw_window(draws *d, shape *s, int i) {
  static const int64_t longest[] = {0, 60, 18, 7};
  s->in[i] = draw(d, 1, longest[s->axes]);
  s->kernel[i] = draw(d, 1, s->axes == 3 ? 3 : one_in(d, 8) ? 9 : 5);
  s->stride[i] = one_in(d, 2) ? 1 : draw(d, 2, one_in(d, 8) ? 40 : 4);
  s->dilation[i] = one_in(d, 2) ? 1 : draw(d, 2, 4);
  s->before[i] = draw(d, 0, one_in(d, 4) ? 9 : 3), s->after[i] = draw(d, 0, one_in(d, 4) ? 9 : 3);
  const bool far_dilation = one_in(d, 24), far_stride = one_in(d, 24);
  const int64_t far = (INT64_C(1) << 40) - draw(d, 0, 3);
  if (far_dilation) {
    const int64_t part = draw(d, 0, s->kernel[i] - 1);
    s->dilation[i] = far, s->before[i] += part * far, s->after[i] += (s->kernel[i] - 1 - part) * far;
  }
  if (far_stride) s->stride[i] = far, s->after[i] += draw(d, 0, 1) * far;
  const int64_t missing = effective(s->kernel[i], s->dilation[i]) - s->in[i] - s->before[i] - s->after[i];
  if (missing > 0) s->before[i] += missing;
}

/* The rows of a kernel three wide that moves by single cells, and mostly of one three high. */
static void narrow_window(draws *d, shape *s) {
  s->kernel[1] = 3, s->stride[1] = s->dilation[1] = 1;
  s->in[1] = draw(d, 3, 24), s->before[1] = draw(d, 0, 2), s->after[1] = draw(d, 0, 2);
  if (one_in(d, 4)) return;
  s->kernel[0] = 3, s->stride[0] = s->dilation[0] = 1;
  s->in[0] = draw(d, 3, 14), s->before[0] = draw(d, 0, 3), s->after[0] = draw(d, 0, 3);
}

static shape any_shape(draws *d, enum family family) {
  shape s = {.axes = family == ONE_AXIS ? 1 : family == THREE_AXES ? 3 : 2, .batch = draw(d, 1, 3)};
  for (int i = 0; i < s.axes; i++) draw_window(d, &s, i);
  if (family == THREE_WIDE) narrow_window(d, &s);
  s.groups = family == PLAIN                               ? 1
             : family == GROUPS                            ? draw(d, 2, 5)
             : family == DEPTHWISE || family == THREE_WIDE ? 0
             : family == THREE_AXES                        ? draw(d, 1, 2)
                                                           : draw(d, 0, 2);
  if (s.groups) {
    s.channels = s.groups * draw_few(d, 100), s.filters = s.groups * draw_few(d, 100);
  } else {
    s.channels = draw_few(d, 150);
    s.filters = one_in(d, family == THREE_WIDE ? 8 : 2) ? draw(d, 2, 6) : 1;
  }
  return s;
}

static double cells_of(const shape *s, const int64_t *sizes) {
  double cells = (double)s->batch;
  for (int i = 0; i < s->axes; i++) cells *= (double)sizes[i];
  return cells;
}

/* One in eight is large: several tiles, blocks of k, and shares of threads. A few are larger still: tiles
 * that take numbers apart accept no smaller ones. */
static shape shape_of(draws *d, enum family family) {
  const double terms = one_in(d, 64) ? MOST_TERMS : one_in(d, 8) ? MANY_TERMS : TERMS;
  while (true) {
    const shape s = any_shape(d, family);
    int64_t out[3];
    for (int i = 0; i < s.axes; i++) out[i] = out_of(&s, i);
    const double of_y = (double)(s.groups ? s.filters : s.channels * s.filters),
                 of_cell = s.groups ? (double)(s.channels / s.groups) : 1;
    double all = cells_of(&s, out) * of_y * of_cell;
    for (int i = 0; i < s.axes; i++) all *= (double)s.kernel[i];
    if (all <= terms && cells_of(&s, out) * of_y <= ELEMENTS &&
        cells_of(&s, s.in) * (double)s.channels <= ELEMENTS)
      return s;
  }
}

/* ---- problems ---- */

enum numbers { INTEGERS, NOT_FINITE, REAL, SORTS };
enum program { NONE, BIAS, BIAS_ON_SUMS, FINITE_TEST, PROGRAMS };

/* Operands as numbers that all dtypes have, and the reference's result; sizes: of the magnitudes of the
 * operands. */
typedef struct problem {
  enum family family;
  int number, kind;
  enum numbers numbers;
  enum program program;
  bool fixed;
  int threads;
  shape shape;
  int64_t counts[2], results;
  double *operands[2], *sums, *sizes, terms;
} problem;

/* Significands of 8 bits, which bfloat16 has, and exponents that float16 has: sums of products round in
 * float32. */
static double draw_real(draws *d) { return ldexp((double)draw(d, -127, 127), -7 - (int)draw(d, 0, 6)); }

static void draw_operands(draws *d, problem *p) {
  for (int i = 0; i < 2; i++)
    for (int64_t j = 0; j < p->counts[i]; j++)
      p->operands[i][j] = p->numbers == REAL ? draw_real(d) : (double)draw(d, -2, 2);
  if (p->numbers != NOT_FINITE) return;
  /* Of the operand that has padding alone: 0 * infinity is a term of a product, but not of the reference. */
  for (int64_t count = draw(d, 1, 3); count > 0; count--)
    p->operands[0][draw(d, 0, p->counts[0] - 1)] = one_in(d, 2) ? NAN : one_in(d, 2) ? INFINITY : -INFINITY;
}

static void fill_step(step *x, const problem *p, bool magnitudes) {
  for (int i = 0; i < 2; i++)
    for (int64_t j = 0; j < p->counts[i]; j++)
      mix_store_double(x->in[i], x->inputs[i].dtype, j,
                       magnitudes ? fabs(p->operands[i][j]) : p->operands[i][j]);
}

static double *reference_of(const problem *p, bool magnitudes) {
  step x = make_step(&p->shape, p->kind, MIX_FLOAT64);
  fill_step(&x, p, magnitudes);
  x.out[0] = new_output(x.output);
  run_step_with(ref_kernel(x.op), &x, 1);
  free_step(&x);
  return x.out[0];
}

static problem problem_of(enum family family, int number, int kind) {
  static const int teams[] = {2, 3, LARGEST_TEAM};
  draws d = draws_of(family, number * KINDS + kind);
  problem p = {.family = family, .number = number, .kind = kind, .shape = shape_of(&d, family)};
  p.numbers = (enum numbers)draw(&d, 0, SORTS - 1);
  p.program = (enum program)draw(&d, 0, PROGRAMS - 1);
  if (p.numbers != INTEGERS && (p.program == BIAS || p.program == BIAS_ON_SUMS)) p.program = NONE;
  p.fixed = one_in(&d, 2), p.threads = teams[draw(&d, 0, 2)];
  step x = make_step(&p.shape, kind, MIX_FLOAT64);
  for (int i = 0; i < 2; i++) {
    p.counts[i] = mix_shape_size(x.inputs[i].shape);
    p.operands[i] = matrix(MIX_FLOAT64, p.counts[i]);
  }
  p.results = mix_shape_size(x.output.shape);
  free_step(&x);
  draw_operands(&d, &p);
  const mix_conv_geometry g = mix_conv_geometry_of(x.op, &x.attributes, x.inputs);
  p.terms = kind == 2 ? (double)(g.batch * mix_conv_cells(g.out))
                      : (double)(mix_conv_cells(g.kernel) * (kind ? g.filters : g.channels));
  p.sums = reference_of(&p, false);
  if (p.numbers == REAL) p.sizes = reference_of(&p, true);
  return p;
}

static void free_problem(problem *p) {
  free(p->operands[0]), free(p->operands[1]), free(p->sums), free(p->sizes);
}

/* ---- comparing ---- */

/* Says which case it is, so that it can be run alone (draws.h). */
static void fail_at(const problem *p, const mix_kernel *kernel, const char *vectors, mix_dtype dtype,
                    int threads, const char *what, int64_t i, double got, double wanted) {
  static const char *const names[] = {"plain", "groups", "depthwise", "three wide", "one axis", "three axes"};
  const shape *s = &p->shape;
  for (int a = 0; a < s->axes; a++)
    print_message("axis %d: in %lld kernel %lld stride %lld dilation %lld before %lld after %lld\n", a,
                  (long long)s->in[a], (long long)s->kernel[a], (long long)s->stride[a],
                  (long long)s->dilation[a], (long long)s->before[a], (long long)s->after[a]);
  print_message("batch %lld, groups %lld, channels %lld, filters %lld\n", (long long)s->batch,
                (long long)s->groups, (long long)s->channels, (long long)s->filters);
  fail_msg("%s case %d, operation %d, numbers %d, program %d: %s on %s in %s, %d threads: %s: element %lld "
           "is %g, not %g",
           names[p->family], p->number, p->kind, (int)p->numbers, (int)p->program, kernel->name, vectors,
           mix_dtype_name(dtype), threads, what, (long long)i, got, wanted);
}

/* Of integers: the exact sum, rounded where the program rounds. */
static double wanted_at(const problem *p, const step *x, int64_t i, mix_dtype dtype) {
  if (!x->in[2]) return rounded_to(x->output.dtype, p->sums[i]);
  const double bias = mix_load_double(x->in[2], x->output.dtype, i % x->inputs[2].shape.dims[0]),
               sum = p->program == BIAS ? rounded_to(dtype, p->sums[i]) : p->sums[i];
  return fmax(rounded_to(x->output.dtype, sum + bias), 0);
}

/* Sums of n terms in any order, with or without fused multiply-adds, of numbers that a product on tiles takes
 * apart in three; float32 by three products of bfloat16 (`high`) leaves out the smallest of four. Then one
 * rounding. */
static double error_at(const problem *p, const mix_kernel *kernel, mix_dtype dtype, int64_t i) {
  const bool tiles = strstr(kernel->name, "_amx");
  const double unit = dtype == MIX_FLOAT64 ? 0x1p-52 : 0x1p-24, n = (tiles ? 3 : 1) * p->terms + 2,
               sum = (n * unit + (tiles && dtype == MIX_FLOAT32 ? 0x1p-14 : 0)) * p->sizes[i],
               digits = dtype == MIX_FLOAT16    ? 0x1p-11
                        : dtype == MIX_BFLOAT16 ? 0x1p-8
                                                : 0x1p-24;
  if (dtype == MIX_FLOAT64) return sum;
  return sum + digits * (fabs(p->sums[i]) + sum) + (dtype == MIX_FLOAT16 ? 0x1p-25 : 0);
}

static void check_result(const problem *p, const mix_kernel *kernel, const char *vectors, const step *x,
                         mix_dtype dtype, bool finite) {
  bool all = true;
  for (int64_t i = 0; i < p->results; i++) {
    const double got = mix_load_double(x->out[0], x->output.dtype, i), wanted = wanted_at(p, x, i, dtype);
    all &= isfinite(wanted) != 0;
    if (p->numbers == REAL && is_blocked(kernel)) continue; /* float16 chains: test_gemm_fp16.c */
    const bool right = p->numbers == REAL ? fabs(got - p->sums[i]) <= error_at(p, kernel, dtype, i)
                                          : got == wanted || (isnan(got) && isnan(wanted));
    if (!right) fail_at(p, kernel, vectors, dtype, 1, "result", i, got, wanted);
  }
  if (x->out[1] && finite != all) fail_at(p, kernel, vectors, dtype, 1, "finite test", 0, finite, all);
}

/* But for the sign of a NaN, which follows the order in which instructions name their operands. */
static bool same_bits(const char *a, const char *b, mix_dtype dtype, int64_t i) {
  const size_t size = mix_dtype_size(dtype);
  return !memcmp(a + (size_t)i * size, b + (size_t)i * size, size) ||
         (isnan(mix_load_double(a, dtype, i)) && isnan(mix_load_double(b, dtype, i)));
}

/* Returns whether the kernel accepts the problem. */
static bool check_kernel(const problem *p, const mix_kernel *kernel, const char *vectors, mix_dtype dtype) {
  step x = make_step(&p->shape, p->kind, dtype);
  epilogue e;
  bool finite[2] = {true, true};
  fill_step(&x, p, false);
  x.fixed = p->fixed;
  random_state = (uint64_t)p->number;
  if (p->program == FINITE_TEST) add_finite_test(&x, &e);
  if (p->program == BIAS) add_bias_relu(&x, &e, dtype);
  if (p->program == BIAS_ON_SUMS) add_bias_relu(&x, &e, dtype == MIX_FLOAT64 ? dtype : MIX_FLOAT32);
  const mix_kernel_args args = step_args(&x);
  const bool accepts = !shapes_in(mix_cpu_conv_kernels, kernel)->unsupported_reason(&args);
  void *results[2] = {NULL, NULL};
  for (int team = 0; accepts && team < 2; team++) {
    x.out[0] = results[team] = new_output(x.output);
    x.out[1] = p->program == FINITE_TEST ? &finite[team] : NULL;
    run_step_with(kernel, &x, team ? p->threads : 1);
    if (!team) check_result(p, kernel, vectors, &x, dtype, finite[0]);
  }
  for (int64_t i = 0; accepts && i < p->results; i++)
    if (!same_bits(results[0], results[1], x.output.dtype, i))
      fail_at(p, kernel, vectors, dtype, p->threads, "result of one thread", i,
              mix_load_double(results[1], x.output.dtype, i), mix_load_double(results[0], x.output.dtype, i));
  assert_int_equal(finite[0], finite[1]);
  free(results[0]), free(results[1]);
  free_step(&x);
  return accepts;
}

/* ---- all kernels ---- */

static const mix_dtype every[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32};

/* The depthwise kernel is of the vectors in force. */
static int check_channels(const problem *p) {
  int accepted = 0;
  for (int set = 0; set < VECTOR_SETS; set++) {
    mix_cpu_override(features_with(&instruction_sets[set]));
    if (features_with(&instruction_sets[set]) == mix_cpu_features())
      for (int d = 0; d < 3; d++)
        accepted += check_kernel(p, &mix_cpu_depthwise_kernel, instruction_sets[set].name, every[d]);
  }
  mix_cpu_override(UINT32_MAX);
  return accepted;
}

/* Whether pairs of bfloat16 gain here or not. */
static bool runs_here(const mix_kernel *kernel) {
  return !(kernel->needs & ~(mix_cpu_features() | MIX_CPU_BF16_PAIRS));
}

enum { KERNELS = 64, TABLES = 2 };
static const mix_kernel *const *const tables[TABLES] = {mix_cpu_conv_kernels, mix_emulated_conv_kernels};
static int accepted[TABLES][KERNELS], families_done; /* problems that a kernel accepted */

static void check_table(const problem *p, const mix_kernel *const *table, int done[KERNELS]) {
  for (int k = 0; table[k]; k++) {
    const mix_kernel *kernel = table[k];
    if (!runs_here(kernel)) continue;
    ask_for_sums_of(kernel);
    const bool high = strstr(kernel->name, "f32_acc32_amx");
    assert_int_equal(mix_set_float32_precision(high ? "high" : "highest"), MIX_OK);
    done[k] += kernel == &mix_cpu_depthwise_kernel
                   ? check_channels(p)
                   : check_kernel(p, kernel, "its own vectors", kernel->operands);
  }
}

static void each_case_of(void **state) {
  const enum family family = (enum family)(intptr_t)*state;
  mix_cpu_override(UINT32_MAX);
  for (int number = first_case(); number < first_case() + case_count(CASES); number++)
    for (int kind = 0; kind < KINDS; kind++) {
      if (left_out()) continue;
      problem p = problem_of(family, number, kind);
      for (int t = 0; t < TABLES; t++) check_table(&p, tables[t], accepted[t]);
      free_problem(&p);
    }
  families_done++;
}

/* Do small products repay what the kernel packs? Those do not of sums in float16, and of numbers that tiles
 * take apart. */
static bool does_small_ones(const mix_kernel *kernel) {
  return !is_blocked(kernel) && !(strstr(kernel->name, "_amx") && kernel->operands != MIX_BFLOAT16);
}

static void each_kernel_has_done_some(void **state) {
  (void)state;
  if (families_done < FAMILIES || case_count(CASES) < CASES) SKIP("not all shapes were tried");
  for (int t = 0; t < TABLES; t++)
    for (int k = 0; tables[t][k]; k++)
      if (runs_here(tables[t][k]) && does_small_ones(tables[t][k]) && !accepted[t][k])
        fail_msg("%s has done none of the shapes", tables[t][k]->name);
}

/* A batch of none is the reference's. */
static void nothing_is_left_to_the_reference(void **state) {
  (void)state;
  for (int family = 0; family < FAMILIES; family++)
    for (int kind = 0; kind < KINDS; kind++) {
      draws d = draws_of(family, kind);
      shape s = shape_of(&d, (enum family)family);
      s.batch = 0;
      for (int k = 0; mix_cpu_conv_kernels[k]; k++) {
        const mix_dtype operands = mix_cpu_conv_kernels[k]->operands;
        step x = make_step(&s, kind, operands == MIX_DTYPE_NONE ? MIX_FLOAT32 : operands);
        const mix_kernel_args args = step_args(&x);
        assert_non_null(mix_cpu_conv_kernels[k]->unsupported_reason(&args));
        free_step(&x);
      }
      step x = make_step(&s, kind, MIX_FLOAT32);
      x.out[0] = new_output(x.output);
      run_step_with(ref_kernel(x.op), &x, 1);
      for (int64_t i = 0; i < mix_shape_size(x.output.shape); i++)
        assert_true(((const float *)x.out[0])[i] == 0);
      free(x.out[0]);
      free_step(&x);
    }
}

int main(void) {
#define FAMILY(name, family)                                                                                 \
  { name, each_case_of, NULL, NULL, (void *)(intptr_t)(family) }
  static const struct CMUnitTest tests[] = {FAMILY("plain", PLAIN),
                                            FAMILY("groups", GROUPS),
                                            FAMILY("depthwise", DEPTHWISE),
                                            FAMILY("three_wide", THREE_WIDE),
                                            FAMILY("one_axis", ONE_AXIS),
                                            FAMILY("three_axes", THREE_AXES),
                                            cmocka_unit_test(each_kernel_has_done_some),
                                            cmocka_unit_test(nothing_is_left_to_the_reference)};
  return cmocka_run_group_tests_name("random convolutions", tests, NULL, NULL);
}
