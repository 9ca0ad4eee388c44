/* Casts through lossless dtypes, and transposes of a product's operands: what is removed, what stays, and
 * that no bit changes. Names of passes in MIXTAPE_DISABLE_PASSES. */
/* Holds docs/NUMERICS.md: Element-wise operations. */
#include "compile/support.h"

#include "passes/passes.h"
#include "tensor/convert.h"
#include "support/memory.h"
#include "support/count.h"
#include <stdio.h>

typedef mix_tensor *body(mix_tensor *const *x);
static mix_list *call_body(void *context, mix_list *arguments) {
  mix_tensor *x[4] = {0};
  for (int i = 0; i < mix_list_count(arguments) && i < 4; i++) x[i] = mix_list_get(arguments, i);
  return mix_list_of((*(body *const *)context)(x));
}

enum { MAX_BYTES = 1 << 18 };
typedef struct outcome {
  unsigned char bytes[MAX_BYTES];
  size_t count;
  char text[8192]; /* after all passes; each program has one node, so that nodes can be counted */
} outcome;

static void run(body *f, mix_list *arguments, const char *disabled, outcome *out) {
  setenv("MIXTAPE_DISABLE_PASSES", disabled, 1);
  mix_function *function = mix_function_new(call_body, &f);
  mix_list *results = mix_function_call(function, arguments);
  unsetenv("MIXTAPE_DISABLE_PASSES");
  no_error();
  const mix_value *value = mix_tensor_value(mix_list_get(results, 0));
  assert_true(mix_memory_bytes(value->memory) <= MAX_BYTES);
  memset(out, 0, sizeof *out);
  memcpy(out->bytes, bytes_of_memory(value->memory), out->count = mix_memory_bytes(value->memory));
  snprintf(out->text, sizeof out->text, "%s", mix_function_dump(function, "passes"));
}

/* The pass reduces the occurrences of `part` from `before` to `left` and changes no bit. */
static void cleans(body *f, mix_list *arguments, const char *pass, const char *part, int before, int left) {
  static outcome with, without;
  char disabled[64];
  run(f, arguments, "fuse", &with);
  snprintf(disabled, sizeof disabled, "fuse,%s", pass);
  run(f, arguments, disabled, &without);
  assert_int_equal(count_of(without.text, part), before);
  if (count_of(with.text, part) != left)
    fail_msg("%d of %s left, not %d:\n%s", count_of(with.text, part), part, left, with.text);
  assert_int_equal(with.count, without.count);
  assert_memory_equal(with.bytes, without.bytes, with.count);
}

/* ---- casts ---- */

static const mix_dtype every[] = {MIX_BOOL,    MIX_INT8,    MIX_UINT8,         MIX_INT16,
                                  MIX_INT32,   MIX_INT64,   MIX_FLOAT16,       MIX_BFLOAT16,
                                  MIX_FLOAT32, MIX_FLOAT64, MIX_FLOAT8_E4M3FN, MIX_FLOAT8_E5M2};

/* Every value of the small dtypes, and edge values of the others, survives a cast to a dtype that embeds it
 * and back. If the dtype does not embed it, some value does not survive. */
static void embedding_is_what_conversion_does(void **state) {
  (void)state;
  static unsigned char from[8 * 65536 + 64], wide[8 * 65536 + 64], back[8 * 65536 + 64];
  for (int a = 0; a < COUNT(every); a++) {
    size_t size = mix_dtype_size(every[a]);
    int count = every[a] == MIX_BOOL ? 2 : size == 1 ? 256 : 65536;
    for (int i = 0; i < count; i++) {
      uint64_t bits = size <= 2 ? (uint64_t)i : (uint64_t)i * 0x9e3779b97f4a7c15u; /* all patterns, or many */
      if (size > 2 && i < 512)
        bits = i & 1 ? ~(uint64_t)0 << (i >> 1) % 64 : ((uint64_t)1 << (i >> 1) % 64) - (uint64_t)(i >> 8);
      memcpy(from + (size_t)i * size, &bits, size);
    }
    for (int b = 0; b < COUNT(every); b++) {
      mix_convert(from, every[a], wide, every[b], count);
      mix_convert(wide, every[b], back, every[a], count);
      bool kept = true;
      for (int i = 0; i < count && kept; i++) {
        double before = mix_load_double(from, every[a], i), between = mix_load_double(wide, every[b], i);
        if (isnan(before))
          kept = isnan(between) && isnan(mix_load_double(back, every[a], i));
        else
          kept = before == between && !memcmp(from + (size_t)i * size, back + (size_t)i * size, size);
      }
      if (kept != mix_dtype_embeds(every[a], every[b]))
        fail_msg("%s in %s: %d", mix_dtype_name(every[a]), mix_dtype_name(every[b]), kept);
    }
  }
}

/* All float16 numbers, including NaN and infinities. */
static mix_list *all_halves(mix_dtype dtype) {
  static uint16_t halves[16384];
  for (int i = 0; i < 16384; i++) halves[i] = (uint16_t)(i * 4 + i % 4);
  for (int i = 0; i < 16384; i++) /* arithmetic makes no signalling NaNs, and a cast would quiet them */
    if (dtype == MIX_FLOAT16 ? (halves[i] & 0x7c00) == 0x7c00 && halves[i] & 0x3ff
                             : (halves[i] & 0x7f80) == 0x7f80 && halves[i] & 0x7f)
      halves[i] |= dtype == MIX_FLOAT16 ? 0x200 : 0x40;
  return mix_list_of(mix_tensor_from(halves, dtype, MIX_SHAPE(128, 128)));
}

static mix_tensor *to(mix_tensor *x, mix_dtype dtype) { return mix_cast(x, dtype); }
static mix_tensor *there_and_back(mix_tensor *const *x) {
  return to(to(x[0], MIX_FLOAT32), mix_tensor_dtype(x[0]));
}
static mix_tensor *further(mix_tensor *const *x) {
  return to(to(to(x[0], MIX_FLOAT32), MIX_FLOAT64), MIX_FLOAT32);
}
static mix_tensor *to_the_other(mix_tensor *const *x) {
  return to(to(x[0], MIX_FLOAT32), mix_tensor_dtype(x[0]) == MIX_FLOAT16 ? MIX_BFLOAT16 : MIX_FLOAT16);
}
static mix_tensor *narrow_and_wide(mix_tensor *const *x) {
  return mix_add(to(to(to(x[0], MIX_FLOAT32), MIX_BFLOAT16), MIX_FLOAT32), mix_scalar(0, MIX_FLOAT32));
}
static mix_tensor *flattened(mix_tensor *const *x) {
  mix_dtype own = mix_tensor_dtype(x[0]);
  mix_tensor *flat = to(mix_reshape(to(x[0], MIX_FLOAT32), MIX_SHAPE(-1)), own);
  mix_tensor *transposed = to(mix_transpose(to(x[0], MIX_FLOAT32), MIX_AXES(1, 0)), own);
  return mix_concat(2, (mix_tensor *[]){flat, mix_reshape(transposed, MIX_SHAPE(-1))}, 0);
}
/* The float32 numbers are also used: no cast can be removed. */
static mix_tensor *flattened_twice(mix_tensor *const *x) {
  mix_tensor *flat = mix_reshape(to(x[0], MIX_FLOAT32), MIX_SHAPE(-1));
  return mix_concat(2, (mix_tensor *[]){to(to(flat, mix_tensor_dtype(x[0])), MIX_FLOAT32), mix_sqrt(flat)},
                    0);
}

static void casts(void **state) {
  (void)state;
  for (int b = 0; b < 2; b++) {
    mix_dtype dtype = b ? MIX_BFLOAT16 : MIX_FLOAT16;
    mix_list *halves = all_halves(dtype);
    cleans(there_and_back, halves, "simplify_casts", " cast ", 2, 0);
    cleans(to_the_other, halves, "simplify_casts", " cast ", 2, 1);
    if (b) mix_set_device("ref"); /* a cast to float64 flushes subnormal float32 numbers on the device cpu */
    cleans(further, halves, "simplify_casts", " cast ", 3, 1);
    mix_set_device("cpu");
    cleans(flattened, halves, "simplify_casts,cse", " cast ", 4, 0);
  }
  /* float16 to bfloat16 rounds, and stays. */
  cleans(narrow_and_wide, all_halves(MIX_FLOAT16), "simplify_casts", " cast ", 3, 2);
  cleans(flattened_twice, all_halves(MIX_FLOAT16), "simplify_casts", " cast ", 3, 3);
}

static mix_tensor *integers(mix_tensor *const *x) {
  mix_tensor *wide = to(to(x[0], MIX_INT32), MIX_FLOAT32);               /* one cast */
  mix_tensor *cut = to(to(mix_add(x[0], x[0]), MIX_FLOAT16), MIX_INT32); /* no embedding: two casts */
  /* Neither does bool: three. */
  return mix_add(wide, to(mix_add(cut, mix_cast(to(x[0], MIX_BOOL), MIX_INT32)), MIX_FLOAT32));
}
static void casts_of_integers(void **state) {
  (void)state;
  static int16_t numbers[16384];
  for (int i = 0; i < 16384; i++) numbers[i] = (int16_t)(i * 4 - 32768 + i % 4);
  cleans(integers, mix_list_of(mix_tensor_from(numbers, MIX_INT16, MIX_SHAPE(16384))), "simplify_casts",
         " cast ", 7, 6);
}

/* ---- transposes ---- */

static mix_tensor *numbers(mix_dtype dtype, mix_shape shape) {
  static double data[3 * 128 * 64];
  int64_t count = mix_shape_size(shape);
  assert_true(count <= COUNT(data));
  for (int64_t i = 0; i < count; i++) data[i] = (double)((i * 7919 + 13) % 251 - 125) / 37;
  return mix_tensor_from_doubles(data, dtype, shape);
}
static mix_tensor *transpose_last(mix_tensor *x) {
  int rank = mix_tensor_shape(x).rank;
  mix_axes axes = {.count = rank};
  for (int i = 0; i < rank; i++) axes.axis[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
  return mix_transpose(x, axes);
}
static mix_tensor *first_transposed(mix_tensor *const *x) {
  return mix_matmul(transpose_last(x[0]), x[1], false, false);
}
static mix_tensor *second_transposed(mix_tensor *const *x) {
  return mix_matmul(x[0], transpose_last(x[1]), false, false);
}
static mix_tensor *both_transposed(mix_tensor *const *x) {
  return mix_matmul(transpose_last(x[0]), transpose_last(x[1]), true, false);
}
static mix_tensor *transposed_twice(mix_tensor *const *x) {
  return mix_add(transpose_last(transpose_last(x[0])),
                 mix_transpose(mix_transpose(x[0], MIX_AXES(2, 0, 1)), MIX_AXES(1, 2, 0)));
}

static void transposes(void **state) {
  (void)state;
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64};
  static const int64_t sizes[][3] = {{48, 32, 64}, {33, 17, 29}, {1, 40, 24}, {64, 10, 128}}; /* m, n, k */
  for (int d = 0; d < COUNT(dtypes); d++)
    for (int s = 0; s < COUNT(sizes); s++) {
      int64_t m = sizes[s][0], n = sizes[s][1], k = sizes[s][2];
      /* The kernel of a narrow product may depend on its layout. Then the transpose is folded only if it does
       * not. */
      bool wide = s < 2;
      for (int batch = 0; batch < 2; batch++) {
        mix_tensor *a = numbers(dtypes[d], batch ? MIX_SHAPE(3, m, k) : MIX_SHAPE(m, k));
        mix_tensor *at = numbers(dtypes[d], batch ? MIX_SHAPE(3, k, m) : MIX_SHAPE(k, m));
        mix_tensor *b = numbers(dtypes[d], MIX_SHAPE(k, n)), *bt = numbers(dtypes[d], MIX_SHAPE(n, k));
        static outcome with, without;
        body *const bodies[] = {first_transposed, second_transposed, both_transposed};
        mix_list *const arguments[] = {mix_list_of(at, b), mix_list_of(a, bt), mix_list_of(a, bt)};
        for (int f = 0; f < COUNT(bodies); f++) {
          run(bodies[f], arguments[f], "fuse", &with);
          run(bodies[f], arguments[f], "fuse,fold_transposes", &without);
          assert_true(count_of(without.text, "transpose(") > 0);
          if (wide) assert_int_equal(count_of(with.text, "transpose("), 0);
          assert_memory_equal(with.bytes, without.bytes, with.count);
        }
      }
    }
  cleans(transposed_twice, mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(3, 5, 7))), "fold_transposes",
         "transpose(", 4, 0);
}

static mix_tensor *deep(mix_tensor *const *x) { return mix_matmul(transpose_last(x[0]), x[1], false, false); }
static mix_tensor *moves_nothing(mix_tensor *const *x) {
  return mix_transpose(mix_exp(x[0]), MIX_AXES(1, 0, 2));
}
static mix_tensor *permuted_batch(mix_tensor *const *x) {
  return mix_matmul(mix_transpose(x[0], MIX_AXES(1, 0, 2)), x[1], false, false);
}

/* Deep products with few columns sum along vectors, or are computed transposed, if the layout allows. That is
 * another order of summation, so the transpose stays. */
static void transposes_that_stay(void **state) {
  (void)state;
  static outcome with, without;
  mix_list *arguments =
      mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(1500, 9)), numbers(MIX_FLOAT32, MIX_SHAPE(1500, 4)));
  run(deep, arguments, "fuse", &with);
  run(deep, arguments, "fuse,fold_transposes", &without);
  assert_memory_equal(with.bytes, without.bytes, with.count);
  mix_list *batch =
      mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(4, 3, 8)), numbers(MIX_FLOAT32, MIX_SHAPE(8, 5)));
  cleans(permuted_batch, batch, "fold_transposes", "transpose(", 1, 1);
  cleans(moves_nothing, mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(1, 3, 8))), "fold_transposes",
         "transpose(", 1, 0); /* becomes a reshape */
}

/* ---- names ---- */

static char heard[1024];
static int warnings;
static void listen(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level != MIX_LOG_WARNING) return;
  warnings++;
  snprintf(heard, sizeof heard, "%s", message);
}

static mix_tensor *plain(mix_tensor *const *x) { return mix_exp(x[0]); }
static void unknown_pass_names_give_a_warning(void **state) {
  (void)state;
  static outcome out;
  mix_list *x = mix_list_of(numbers(MIX_FLOAT32, MIX_SHAPE(3)));
  mix_set_log_callback(listen, NULL);
  warnings = 0;
  run(plain, x, "cse,fusion", &out);
  run(plain, x, "cse,fusion", &out); /* warns only once */
  assert_int_equal(warnings, 1);
  assert_non_null(strstr(heard, "'fusion'"));
  static const char *const names[] = {"amp",
                                      "remove_identities",
                                      "simplify_casts",
                                      "fold_transposes",
                                      "sink_broadcasts",
                                      "constant_fold",
                                      "cse",
                                      "dce",
                                      "select_to_predicate",
                                      "upcast_matmul",
                                      "cache_weight_casts",
                                      "expand_add_n",
                                      "row_moments",
                                      "fuse",
                                      "fuse_epilogues",
                                      "speculative_update",
                                      "excess_precision",
                                      "inplace",
                                      "memory_plan",
                                      "keep_packed"};
  for (int i = 0; i < COUNT(names); i++) {
    if (!strstr(heard, names[i])) fail_msg("%s is not in: %s", names[i], heard);
    run(plain, x, names[i], &out);
  }
  assert_int_equal(warnings, 1);
  mix_set_log_callback(NULL, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(embedding_is_what_conversion_does),
      TEST(casts),
      TEST(casts_of_integers),
      TEST(transposes),
      TEST(transposes_that_stay),
      TEST(unknown_pass_names_give_a_warning),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
