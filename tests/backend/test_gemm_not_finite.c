/* NaNs and infinities in products, every kernel called by name: an element is finite, NaN or which infinity
 * as the reference kernel says. The other numbers are small integers, whose sums every kernel has exactly, so
 * that what is finite is the reference's very number. */
/* Holds docs/NUMERICS.md: Products. */
#include "backend/gemm_products.h"

/* ZERO meets infinities. The signalling NaN is negative and has the last bit of its significand alone: what a
 * split into parts, or a narrower number, may lose. */
enum special { PLUS_INFINITY, MINUS_INFINITY, QUIET_NAN, SIGNALLING_NAN, ZERO, SPECIALS, NOT_FINITE = ZERO };

static void set_special(product *x, int which, int64_t row, int64_t column, enum special what) {
  static const double values[] = {INFINITY, -INFINITY, NAN, 0, 0};
  const int64_t at = place(x, which, row, column);
  if (what != SIGNALLING_NAN) {
    mix_store_double(x->in[which], x->inputs[which].dtype, at, values[what]);
    return;
  }
  switch (x->inputs[which].dtype) {
  case MIX_FLOAT16: ((uint16_t *)x->in[which])[at] = 0xfc01; break;
  case MIX_BFLOAT16: ((uint16_t *)x->in[which])[at] = 0xff81; break;
  case MIX_FLOAT32: ((uint32_t *)x->in[which])[at] = 0xff800001u; break;
  default: ((uint64_t *)x->in[which])[at] = UINT64_C(0xfff0000000000001); break;
  }
}

/* The reference's result; `number` and `seed` say which case it is. */
static void *compare(const mix_kernel *kernel, product *x, int threads, const char *what, int64_t number) {
  void *out = x->out;
  x->out = new_result(x);
  run_with(reference(), x, 1);
  void *expected = x->out;
  x->out = out;
  run_with(kernel, x, threads);
  for (int64_t i = 0; i < x->m * x->n; i++) {
    const double want = mix_load_double(expected, x->output.dtype, i), got = result(x, i);
    if (kind_of(got) != kind_of(want) || (isfinite(want) && got != want))
      fail_msg("%s %lldx%lldx%lld transposes %d%d, %s, case %lld: element %lld is %g, the reference's %g",
               kernel->name, (long long)x->m, (long long)x->n, (long long)x->k, x->attributes.transpose_a,
               x->attributes.transpose_b, what, (long long)number, (long long)i, got, want);
  }
  return expected;
}

/* Elements of A, then those of B, in one row; the element's line (row of op(A), column of op(B)) and k. */
static void put(product *x, int64_t position, enum special what) {
  const int64_t count = x->m * x->k;
  if (position < count)
    set_special(x, 0, position / x->k, position % x->k, what);
  else
    set_special(x, 1, (position - count) / x->n, (position - count) % x->n, what);
}
static int64_t positions_of(const product *x) { return (x->m + x->n) * x->k; }

/* Every special number in every position, in every layout; then two of them in every two positions, the
 * layouts taking turns: infinities that meet zeros, and each other in a sum. */
static void in_every_position(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{3, 5, 7}, {2, 3, 5}};
  for (int two = 0; two < 2; two++) {
    int64_t number = 0;
    const int64_t *shape = shapes[two];
    product layouts[4];
    for (int t = 0; t < 4; t++) layouts[t] = make_product(kernel->operands, shape[0], shape[1], shape[2], t);
    const int64_t positions = positions_of(&layouts[0]);
    for (int64_t first = 0; first < positions; first++)
      for (int64_t second = two ? first + 1 : first; second < (two ? positions : first + 1); second++)
        for (int a = 0; a < NOT_FINITE; a++)
          for (int b = two ? 0 : a; b < (two ? SPECIALS : a + 1); b++)
            for (int t = two ? (int)(number % 4) : 0; t < 4; t += two ? 4 : 1, number++) {
              product *x = &layouts[t];
              fill(x, 0, 3), fill(x, 1, 3);
              put(x, first, (enum special)a);
              put(x, second, (enum special)b);
              if (two && number % 2) put(x, first, (enum special)b), put(x, second, (enum special)a);
              free(compare(kernel, x, 1, two ? "two" : "one", number));
            }
    for (int t = 0; t < 4; t++) free_product(&layouts[t]);
  }
}

/* Every position in every layout again, where panels, tiles, vectors and steps of k end inside: one special
 * number in A and one in B. */
static void on_edges_of_tiles(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{15, 33, 34}};
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(kernel->operands, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      const int64_t of_a = x.m * x.k, of_b = x.k * x.n;
      fill(&x, 0, 3), fill(&x, 1, 3);
      for (int64_t i = 0; i < (of_a > of_b ? of_a : of_b); i++) {
        const int64_t a = i % of_a, b = i % of_b;
        put(&x, a, (enum special)((i + transposes) % NOT_FINITE));
        put(&x, of_a + b, (enum special)((i / NOT_FINITE + transposes) % NOT_FINITE));
        free(compare(kernel, &x, 1, "on an edge", i));
        set(&x, 0, a / x.k, a % x.k, integer_below(3)), set(&x, 1, b / x.n, b % x.n, integer_below(3));
      }
      free_product(&x);
    }
}

/* Several at once, in shapes that end one row or column behind an edge or before one. */
static void several_at_once(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{17, 18, 19}, {34, 15, 65}, {29, 65, 33}, {7, 17, 31}};
  enum { CASES = 60 };
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int i = 0; i < CASES; i++) {
      product x = make_product(kernel->operands, shapes[s][0], shapes[s][1], shapes[s][2], i % 4);
      fill(&x, 0, 3), fill(&x, 1, 3);
      for (int count = 1 + (int)(next_random() % 8); count > 0; count--)
        put(&x, next_random() % (uint64_t)positions_of(&x), (enum special)(next_random() % SPECIALS));
      free(compare(kernel, &x, 1, "several", i));
      free_product(&x);
    }
}

/* Products of more than 1,024 terms, which have forms of their own (test_gemm.c), and those that tiles sum in
 * halves: at the first and last k, and where vectors, steps, blocks and halves end. */
static void in_deep_products(const mix_kernel *kernel) {
  static const int64_t shapes[][3] = {{13, 5, 1031}, {5, 13, 1031}, {18, 16, 1026}};
  static const int64_t depths[] = {0,   1,   15,  16,  31,  32,  63,   64,   127, 128,
                                   383, 384, 511, 512, 767, 768, 1023, 1024, 1025};
  enum { DEPTHS = sizeof depths / sizeof *depths };
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
    for (int transposes = 0; transposes < 4; transposes++) {
      product x = make_product(kernel->operands, shapes[s][0], shapes[s][1], shapes[s][2], transposes);
      fill(&x, 0, 3), fill(&x, 1, 3);
      for (int i = 0; i <= DEPTHS; i++) {
        const int64_t l = i < DEPTHS ? depths[i] : x.k - 1;
        const int64_t row = next_random() % (uint64_t)x.m, column = next_random() % (uint64_t)x.n;
        const double before[2] = {get(&x, 0, row, l), get(&x, 1, l, column)};
        set_special(&x, 0, row, l, (enum special)((i + transposes) % NOT_FINITE));
        if (i % 2) set_special(&x, 1, l, column, (enum special)(i / 2 % SPECIALS));
        free(compare(kernel, &x, 2, "deep", i));
        set(&x, 0, row, l, before[0]), set(&x, 1, l, column, before[1]);
      }
      free_product(&x);
    }
}

/* One NaN; a few of all kinds, the largest float16 among them where that is exact; infinities of one sign,
 * but everywhere. What meets none of them has the bits that it has without them. */
static void in_large_products(const mix_kernel *kernel) {
  static const int64_t sizes[][3] = {{70, 90, 300}, {33, 40, 20}, {90, 64, 64}, {40, 33, 520}, {20, 50, 900}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int many = 0; many < 3; many++)
      for (int transposes = (int)(s + (size_t)many) % 2; transposes < 4; transposes += 2) {
        product x = make_product(kernel->operands, sizes[s][0], sizes[s][1], sizes[s][2], transposes);
        const size_t size = mix_dtype_size(x.output.dtype);
        fill(&x, 0, 5), fill(&x, 1, 5);
        run_with(kernel, &x, 2);
        void *clean = x.out;
        x.out = new_result(&x);
        bool *dirty[2] = {calloc((size_t)x.m, 1), calloc((size_t)x.n, 1)};
        const int64_t lines[2] = {x.m, x.n};
        const int count = many == 0 ? 1 : many == 1 ? 12 : (int)(x.m * x.k);
        for (int i = 0; i < count; i++)
          for (int side = 0; side < (many == 1 ? 2 : 1); side++) {
            const int64_t line = next_random() % (uint64_t)lines[side], l = next_random() % (uint64_t)x.k;
            const int what = many == 0   ? QUIET_NAN
                             : many == 1 ? (int)(next_random() % (SPECIALS + 1))
                                         : PLUS_INFINITY;
            if (what == SPECIALS)
              set(&x, side, side ? l : line, side ? line : l, is_blocked(kernel) ? 4 : 65504);
            else
              set_special(&x, side, side ? l : line, side ? line : l, (enum special)what);
            dirty[side][line] = true;
          }
        free(compare(kernel, &x, 3, many == 0 ? "one" : many == 1 ? "a few" : "everywhere", 0));
        for (int64_t i = 0; i < x.m * x.n; i++)
          if (!dirty[0][i / x.n] && !dirty[1][i % x.n])
            assert_memory_equal((char *)x.out + (size_t)i * size, (char *)clean + (size_t)i * size, size);
        free(clean), free(dirty[0]), free(dirty[1]);
        free_product(&x);
      }
}

int main(void) {
  static const kernel_test tests[] = {{"in_every_position", in_every_position},
                                      {"on_edges_of_tiles", on_edges_of_tiles},
                                      {"several_at_once", several_at_once},
                                      {"in_deep_products", in_deep_products},
                                      {"in_large_products", in_large_products}};
  return WITH_EACH_KERNEL(tests);
}
