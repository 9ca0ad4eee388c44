/* All kernels of attention and its gradients over random shapes, masks, groups and dropout, and the
 * reference: within the bound of docs/NUMERICS.md, with the same bits on several threads. */
/* Holds docs/NUMERICS.md: Einstein sums and attention. */
#include "backend/attention_bounds.h"
#include "backend/cpu_kernels.h"
#include "backend/draws.h"
#include "tensor/shape.h"

enum { CASES = 60, RESULTS = 3, MOST_TERMS = 100000 };
enum { FORWARD, BACKWARD, PASSES };

/* ---- cases ---- */

/* Blocks of 32 queries, tiles and vectors are whole, or end one before or behind. */
static int64_t draw_places(draws *d, int64_t most) {
  const int64_t edge = 16 * draw(d, 1, most / 16) + draw(d, -1, 1);
  return one_in(d, 2) ? edge : draw(d, 1, most);
}

static attention_case any_case(draws *d) {
  attention_case c = {.batch = draw(d, 1, 2),
                      .queries = draw_places(d, 96),
                      .keys = draw_places(d, 96),
                      .groups = draw_few(d, 3),
                      .dim = draw_few(d, 48),
                      .value_dim = draw_few(d, 48),
                      .attributes = {.scale = one_in(d, 2) ? 1 : 0.3,
                                     .causal = one_in(d, 2),
                                     .mask_adds = one_in(d, 2),
                                     .mask_zeroes = one_in(d, 3),
                                     .rate = one_in(d, 3) ? 0.25 : 0}};
  c.heads = c.groups * draw(d, 1, 3);
  c.attributes.mask_value = c.attributes.mask_adds ? -3e4 : one_in(d, 2) ? -1e9 : -2.4e38;
  const int64_t whole[] = {c.batch, c.heads, c.queries, c.keys};
  const bool masked = !one_in(d, 3);
  c.mask.rank = 4;
  for (int i = 0; i < 4; i++) c.mask.dims[i] = masked && one_in(d, 2) ? whole[i] : 1;
  return c;
}

static int64_t terms_of(const attention_case *c) {
  return c->batch * c->heads * c->queries * c->keys * (c->dim + c->value_dim);
}
/* What the bounds have space for. */
static bool is_small(const attention_case *c) {
  const int64_t of_query = c->batch * c->queries * c->heads, of_key = c->batch * c->keys * c->groups;
  return terms_of(c) <= MOST_TERMS && of_query * (c->dim + c->value_dim) <= ELEMENTS / 2 &&
         of_key * (c->dim + c->value_dim) <= ELEMENTS / 2 && of_query * c->keys <= ELEMENTS &&
         c->keys * c->dim <= ELEMENTS / 4 && c->keys * c->value_dim <= ELEMENTS / 4;
}

static attention_case case_of(draws *d) {
  while (true) {
    const attention_case c = any_case(d);
    if (is_small(&c)) return c;
  }
}

/* ---- operands ---- */

static attention_operands given;
static const int64_t state[2] = {5, 9};

static void shapes_of(const attention_case *c, mix_shape shapes[OPERANDS]) {
  shapes[OF_QUERY] = MIX_SHAPE(c->batch, c->queries, c->heads, c->dim);
  shapes[OF_KEY] = MIX_SHAPE(c->batch, c->keys, c->groups, c->dim);
  shapes[OF_VALUE] = MIX_SHAPE(c->batch, c->keys, c->groups, c->value_dim);
  shapes[OF_MASK] = c->mask;
  shapes[OF_STATE] = MIX_SHAPE(2);
  shapes[OF_GRADIENT] = MIX_SHAPE(c->batch, c->queries, c->heads, c->value_dim);
}

/* Numbers of 8 bits, which all dtypes have. Of a mask every fifth is false, a row of queries, or all. */
static void draw_operands(draws *d, const attention_case *c, const mix_shape shapes[OPERANDS]) {
  const int64_t row = draw(d, 0, c->mask.dims[2]);
  const bool nothing = one_in(d, 8);
  for (int i = 0; i < OPERANDS; i++)
    for (int64_t j = 0; j < mix_shape_size(shapes[i]) && i != OF_STATE; j++)
      if (i == OF_MASK)
        given.of[i][j] = !nothing && !one_in(d, 5) && j / c->mask.dims[3] % c->mask.dims[2] != row;
      else
        given.of[i][j] = (double)draw(d, -127, 127) / 128;
}

static void draw_dropout(const attention_case *c, mix_dtype dtype) {
  for (int64_t i = 0; c->attributes.rate > 0 && i < c->batch * c->heads * c->queries * c->keys; i++)
    given.drawn[i] = mix_ref_uniform((uint64_t)state[0], (uint64_t)state[1], (uint64_t)i, dtype);
}

/* A step, whose memories have their exact sizes. */
typedef struct step {
  mix_type types[OPERANDS], results[RESULTS];
  void *in[OPERANDS], *out[RESULTS];
  int counted; /* results */
} step;

static void *exactly(mix_type type) {
  const size_t bytes = mix_value_bytes(type.dtype, type.shape);
  void *memory = malloc(bytes);
  assert_non_null(memory);
  return memset(memory, 0x7f, bytes);
}

static step step_of(const mix_shape shapes[OPERANDS], mix_dtype dtype, int pass) {
  step x = {.counted = pass == BACKWARD ? RESULTS : 1};
  for (int i = 0; i < OPERANDS; i++) {
    x.types[i] = (mix_type){i == OF_MASK ? MIX_BOOL : i == OF_STATE ? MIX_INT64 : dtype, shapes[i]};
    x.in[i] = exactly(x.types[i]);
    for (int64_t j = 0; j < mix_shape_size(shapes[i]); j++)
      if (i == OF_STATE)
        ((int64_t *)x.in[i])[j] = state[j];
      else if (i == OF_MASK)
        ((bool *)x.in[i])[j] = given.of[i][j] != 0;
      else
        mix_store_double(x.in[i], dtype, j, given.of[i][j]);
  }
  for (int r = 0; r < x.counted; r++) x.results[r] = x.types[pass == BACKWARD ? r : OF_GRADIENT];
  return x;
}

static void free_step(step *x) {
  for (int i = 0; i < OPERANDS; i++) free(x->in[i]);
}

/* Runs a kernel; its results are new memories. */
static void run_on(const mix_kernel *kernel, const attention_case *c, step *x, int pass, int threads) {
  const void *inputs[OPERANDS];
  for (int i = 0; i < OPERANDS; i++) inputs[i] = x->in[i];
  for (int r = 0; r < x->counted; r++) x->out[r] = exactly(x->results[r]);
  mix_kernel_args args = {.op = pass == BACKWARD ? &mix_op_attention_grad : &mix_op_attention,
                          .attributes = &c->attributes,
                          .input_count = pass == BACKWARD ? OPERANDS : OPERANDS - 1,
                          .output_count = x->counted,
                          .input_types = x->types,
                          .output_types = x->results,
                          .inputs = inputs,
                          .outputs = x->out};
  assert_true(!kernel->unsupported_reason || !kernel->unsupported_reason(&args));
  assert_null(run_kernel(kernel, &args, threads));
}

/* ---- comparing ---- */

static bounded right[ELEMENTS];

static void fail_at(const attention_case *c, int number, const mix_kernel *kernel, mix_dtype dtype,
                    int threads, int64_t i, double got, bounded wanted) {
  const mix_attention_attributes *a = &c->attributes;
  print_message("batch %lld, queries %lld, keys %lld, heads %lld, groups %lld, dim %lld, of values %lld\n",
                (long long)c->batch, (long long)c->queries, (long long)c->keys, (long long)c->heads,
                (long long)c->groups, (long long)c->dim, (long long)c->value_dim);
  print_message("scale %g, mask %g, adds %d, zeroes %d, causal %d, dropout %g, mask %lldx%lldx%lldx%lld\n",
                a->scale, a->mask_value, a->mask_adds, a->mask_zeroes, a->causal, a->rate,
                (long long)c->mask.dims[0], (long long)c->mask.dims[1], (long long)c->mask.dims[2],
                (long long)c->mask.dims[3]);
  fail_msg("case %d: %s in %s, %d threads: element %lld is %.9g, not %.9g within %g", number, kernel->name,
           mix_dtype_name(dtype), threads, (long long)i, got, wanted.is, wanted.off);
}

static void check_kernel(const attention_case *c, int number, const mix_kernel *kernel, step *x, int pass,
                         int threads) {
  const mix_dtype dtype = x->types[OF_QUERY].dtype;
  run_on(kernel, c, x, pass, 1);
  step again = *x;
  if (threads > 1) run_on(kernel, c, &again, pass, threads);
  int64_t first = 0;
  for (int r = 0; r < x->counted; r++) {
    const int64_t count = mix_shape_size(x->results[r].shape);
    for (int64_t i = 0; i < count; i++) {
      const double one = mix_load_double(x->out[r], dtype, i),
                   other = mix_load_double(again.out[r], dtype, i);
      const bounded wanted = right[first + i];
      if (!(fabs(one - wanted.is) <= wanted.off))
        fail_at(c, number, kernel, dtype, 1, first + i, one, wanted);
      if (one != other) fail_at(c, number, kernel, dtype, threads, first + i, other, (bounded){one, 0});
    }
    first += count;
    if (threads > 1) free(again.out[r]);
    free(x->out[r]);
  }
}

static const mix_kernel *ref_kernel(int pass) {
  for (const mix_kernel_row *row = mix_ref_kernels; row->op; row++)
    if (row->op == (pass == BACKWARD ? &mix_op_attention_grad : &mix_op_attention)) return row->kernels[0];
  return NULL;
}

static void check_case(const attention_case *c, int number, mix_dtype dtype, int threads,
                       const mix_shape shapes[OPERANDS]) {
  const attention_form form = {.of = c, .dtype = dtype};
  draw_dropout(c, dtype);
  for (int pass = 0; pass < PASSES; pass++) {
    const mix_kernel *const *kernels = pass ? mix_cpu_attention_grad_kernels : mix_cpu_attention_kernels;
    (pass ? bound_gradients : bound_results)(&form, &given, right);
    step x = step_of(shapes, dtype, pass);
    check_kernel(c, number, ref_kernel(pass), &x, pass, 1);
    for (; *kernels; kernels++) {
      const uint32_t needs = (*kernels)->needs & ~(uint32_t)MIX_CPU_BF16_PAIRS; /* whether they gain or not */
      if (needs & ~mix_cpu_features()) continue;
      if (needs != (*kernels)->needs && dtype != MIX_BFLOAT16) continue;
      check_kernel(c, number, *kernels, &x, pass, threads);
    }
    free_step(&x);
  }
}

static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16};

static void within_the_bound(void **unused) {
  (void)unused;
  static const int teams[] = {2, 3, 7};
  for (int number = first_case(); number < first_case() + case_count(CASES); number++) {
    draws d = draws_of(100, number);
    const attention_case c = case_of(&d);
    mix_shape shapes[OPERANDS];
    shapes_of(&c, shapes);
    draw_operands(&d, &c, shapes);
    for (int i = 0; i < COUNT(dtypes); i++) check_case(&c, number, dtypes[i], teams[draw(&d, 0, 2)], shapes);
  }
}

/* ---- masked scores that are not finite ---- */

/* Where masked scores are replaced, a key that nothing attends to may have scores that are infinite or NaN,
 * also by the overflow of float16 alone: no result notices. So a padded place does no harm. */
static void replaced_scores_may_be_infinite(void **unused) {
  (void)unused;
  static const double large[] = {300, 65504, -INFINITY, NAN}; /* 300 * 300 is infinite in float16 */
  for (int causal = 0; causal < 2; causal++)
    for (int number = 0; number < COUNT(large); number++) {
      /* the last key is masked, or behind the last query but one, whose scores of it are large */
      attention_case c = {1,
                          3,
                          3,
                          1,
                          1,
                          2,
                          2,
                          {4, {1, 1, 1, causal ? 1 : 3}},
                          {.scale = 1, .mask_value = -1e9, .causal = causal}};
      mix_shape shapes[OPERANDS];
      shapes_of(&c, shapes);
      for (int i = 0; i < OPERANDS; i++)
        for (int j = 0; j < 6; j++) given.of[i][j] = i == OF_MASK ? causal || j < 2 : 0.5 + 0.25 * (j % 3);
      for (int j = 0; j < 4; j++) given.of[OF_QUERY][j] = 300, given.of[OF_KEY][j] = 0.001 * j;
      if (causal) given.of[OF_QUERY][4] = given.of[OF_QUERY][5] = 0;
      if (causal && !isfinite(large[number])) continue; /* the last query attends to the last key */
      given.of[OF_KEY][4] = given.of[OF_KEY][5] = large[number];
      for (int i = 0; i < COUNT(dtypes); i++)
        for (const mix_kernel *const *kernels = mix_cpu_attention_kernels; *kernels; kernels++) {
          step x = step_of(shapes, dtypes[i], FORWARD);
          if (((*kernels)->needs & ~mix_cpu_features()) ||
              (((*kernels)->needs & MIX_CPU_BF16_PAIRS) && dtypes[i] != MIX_BFLOAT16)) {
            free_step(&x);
            continue;
          }
          step wanted = x;
          run_on(ref_kernel(FORWARD), &c, &wanted, FORWARD, 1);
          run_on(*kernels, &c, &x, FORWARD, 1);
          for (int j = 0; j < 6; j++) {
            const double is = mix_load_double(x.out[0], dtypes[i], j),
                         expected = mix_load_double(wanted.out[0], dtypes[i], j);
            assert_true(isfinite(expected));
            /* both round three probabilities of values below 1.25 once: an ulp of each */
            if (!(fabs(is - expected) <= 5 * unit_roundoff(dtypes[i])))
              fail_msg("%s in %s, causal %d, %g: element %d is %g, not %g", (*kernels)->name,
                       mix_dtype_name(dtypes[i]), causal, large[number], j, is, expected);
          }
          free(x.out[0]), free(wanted.out[0]);
          free_step(&x);
        }
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(within_the_bound), TEST(replaced_scores_may_be_infinite)};
  return cmocka_run_group_tests_name("random attention", tests, NULL, NULL);
}
