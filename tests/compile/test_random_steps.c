/* Random steps over variables of several dtypes, captured and op by op: the same bits for any number of
 * threads and any disabled passes, half of them in bands of rows. Variables get values, old values too,
 * rounded or not, conditionally or not. Sizes are no multiples of a vector, so that partial tiles and packets
 * occur. */
/* Holds docs/NUMERICS.md: The same bits again. */
#include "compile/support.h"
#include "backend/host/bands.h"

#include "base/philox.h"

enum { STEPS = 4, VARIABLES = 4, VALUES = 48, SEEDS = 300 };

static uint64_t position;
static int below(int n) { return (int)mix_philox_below(53, 11, &position, (uint64_t)n); }

typedef struct model {
  uint64_t seed;
  bool single; /* evaluates every op alone */
  mix_variable *v[VARIABLES];
} model;

static const mix_dtype dtypes[] = {MIX_FLOAT32, MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT64,
                                   MIX_INT64,   MIX_INT32,   MIX_INT8};
static mix_shape shape_of(uint64_t seed) {
  static const int64_t rows[] = {1, 3, 16, 33}, columns[] = {1, 5, 16, 40};
  return MIX_SHAPE(rows[seed % 4], columns[seed / 4 % 4]);
}

typedef mix_tensor *unary(mix_tensor *x);
static unary *const unaries[] = {mix_negative,   mix_relu, mix_square, mix_rsqrt,
                                 mix_reciprocal, mix_log,  mix_tanh,   mix_exp};
typedef mix_tensor *binary(mix_tensor *a, mix_tensor *b);
static binary *const binaries[] = {mix_add, mix_subtract, mix_multiply, mix_maximum};

/* A random tensor of the pool, cast to that dtype. */
static mix_tensor *one_of(mix_tensor **pool, int count, mix_dtype dtype) {
  return mix_cast(pool[below(count)], dtype);
}

static mix_list *step(void *context, mix_list *arguments) {
  model *m = context;
  const mix_shape shape = shape_of(m->seed);
  mix_tensor *pool[VALUES] = {mix_list_get(arguments, 0)};
  int count = 1;
  position = m->seed * 1000;
  for (int i = 0; i < VARIABLES; i++) pool[count++] = mix_variable_value(m->v[i]);
  for (int operations = 8 + below(24); operations > 0; operations--) {
    const mix_dtype floating = dtypes[below(4)], any = dtypes[below(COUNT(dtypes))];
    const int i = below(VARIABLES);
    mix_variable *v = m->v[i];
    mix_tensor *made = NULL;
    switch (below(10)) {
    case 0: made = one_of(pool, count, any); break;
    case 1: made = unaries[below(COUNT(unaries))](one_of(pool, count, floating)); break;
    case 2:
      made = binaries[below(COUNT(binaries))](one_of(pool, count, any), mix_scalar(below(5) - 2, any));
      break;
    case 3:
      made = binaries[below(COUNT(binaries))](one_of(pool, count, any), one_of(pool, count, any));
      break;
    case 4: { /* broadcasts one row or one number */
      mix_tensor *x = one_of(pool, count, floating);
      x = below(2) ? mix_reduce_max(x, MIX_ALL_AXES, false) : mix_reduce_max(x, MIX_AXES(0), true);
      made = unaries[below(COUNT(unaries))](mix_broadcast_to(x, shape));
      break;
    }
    case 5: { /* a product and a possible epilogue */
      mix_tensor *x = one_of(pool, count, floating);
      made = unaries[below(COUNT(unaries))](mix_matmul(x, mix_matmul(x, x, true, false), false, false));
      break;
    }
    case 6: mix_variable_assign_add(v, one_of(pool, count, mix_variable_true_dtype(v))); break;
    case 7: mix_variable_assign(v, one_of(pool, count, mix_variable_true_dtype(v))); break;
    case 8: { /* minus its own first row */
      mix_tensor *x = one_of(pool, count, floating);
      made = mix_subtract(x, mix_slice(x, MIX_SHAPE(0, 0), MIX_SHAPE(1, -1)));
      break;
    }
    default: {
      mix_tensor *finite = mix_all_finite(one_of(pool, count, floating));
      mix_variable_assign(
          v, mix_select(finite, one_of(pool, count, mix_variable_true_dtype(v)), mix_variable_value(v)));
    }
    }
    pool[count] = made ? made : mix_variable_value(v);
    if (m->single) mix_evaluate(1, &pool[count]);
    count++;
  }
  return mix_list_of(pool[count - 1], pool[count - 2], pool[below(count)], mix_cast(pool[1], MIX_BFLOAT16));
}

static model new_model(uint64_t seed, bool single) {
  model m = {.seed = seed, .single = single};
  position = seed * 1000 + 500;
  for (int i = 0; i < VARIABLES; i++) {
    const mix_dtype dtype = dtypes[i && below(2) ? below(COUNT(dtypes)) : 0];
    double numbers[33 * 40];
    for (int k = 0; k < COUNT(numbers); k++)
      numbers[k] = mix_dtype_is_floating(dtype) ? (below(2001) - 700) / 256.0 : below(20);
    m.v[i] = mix_variable_new(mix_tensor_from_doubles(numbers, dtype, shape_of(seed)));
  }
  return m;
}

/* Equal bits, but any NaN equals any NaN. */
static void same(mix_tensor *a, mix_tensor *b, uint64_t seed, const char *what, int number) {
  assert_int_equal(mix_tensor_dtype(a), mix_tensor_dtype(b));
  const int64_t count = mix_shape_size(mix_tensor_shape(a));
  const size_t element = mix_dtype_size(mix_tensor_dtype(a));
  const char *x = mix_tensor_data(a), *y = mix_tensor_data(b);
  if (!memcmp(x, y, (size_t)count * element)) return;
  double m[33 * 40], n[33 * 40];
  mix_tensor_read(a, MIX_FLOAT64, m, count);
  mix_tensor_read(b, MIX_FLOAT64, n, count);
  for (int64_t i = 0; i < count; i++)
    if (memcmp(x + (size_t)i * element, y + (size_t)i * element, element) && !(isnan(m[i]) && isnan(n[i])))
      fail_msg("seed %d, %s %d: element %d is %.17g; expected %.17g", (int)seed, what, number, (int)i, m[i],
               n[i]);
}

static size_t moved_bytes(uint64_t seed, bool bands) {
  model m = new_model(seed, false);
  mix_function *function = mix_function_new(step, &m);
  mix_plan_report report;
  mix_set_threads(1);
  mix_host_set_band_rule(bands ? MIX_BANDS_ALWAYS : MIX_BANDS_NEVER);
  mix_function_call(function, mix_list_of(mix_fill(shape_of(seed), 0.75, MIX_FLOAT32)));
  assert_int_equal(mix_function_report(function, &report, sizeof report), MIX_OK);
  return report.moved_bytes;
}

static void captured_steps_have_the_bits_of_single_operations(void **state) {
  (void)state;
  static const char *const passes[] = {
      "remove_identities",   "simplify_casts", "sink_broadcasts",    "constant_fold",   "cse",         "dce",
      "select_to_predicate", "upcast_matmul",  "cache_weight_casts", "expand_add_n",    "row_moments", "fuse",
      "fuse_epilogues",      "inplace",        "memory_plan",        "fold_transposes", "join_pads"};
  int seeds_saving = 0; /* whose steps move fewer bytes in bands */
  for (uint64_t seed = 0; seed < SEEDS; seed++)
    for (int form = 0; form < 3; form++)
      MIX_SCOPE {
        if (form == 0 && on_host()) {
          const size_t apart = moved_bytes(seed, false), bands = moved_bytes(seed, true);
          assert_true(bands <= apart);
          seeds_saving += bands < apart;
        }
        mix_host_set_band_rule(seed / 16 % 2 ? MIX_BANDS_ALWAYS : MIX_BANDS_NEVER);
        char off[200] = "";
        position = seed * 1000 + 900;
        for (int i = 0; i < COUNT(passes) && form == 2; i++)
          if (below(3) == 0) strcat(strcat(off, passes[i]), ",");
        model captured = new_model(seed, false), single = new_model(seed, true);
        mix_function *function = mix_function_new(step, &captured);
        mix_set_threads(1 + form);
        for (int s = 0; s < STEPS; s++) {
          mix_list *arguments = mix_list_of(mix_fill(shape_of(seed), s + 0.75, MIX_FLOAT32));
          setenv("MIXTAPE_DISABLE_PASSES", off, 1);
          mix_list *results = mix_function_call(function, arguments);
          unsetenv("MIXTAPE_DISABLE_PASSES");
          mix_list *expected = step(&single, arguments);
          no_error();
          for (int i = 0; i < mix_list_count(expected); i++)
            same(mix_list_get(results, i), mix_list_get(expected, i), seed, "result", i);
          for (int i = 0; i < VARIABLES; i++)
            same(mix_variable_true_value(captured.v[i]), mix_variable_true_value(single.v[i]), seed,
                 "variable", i);
        }
      }
  assert_true(!on_host() || seeds_saving > 0);
  mix_host_set_band_rule(MIX_BANDS_BY_SIZE);
}

int main(void) {
  mix_host_take_all_threads(true);
  const struct CMUnitTest tests[] = {TEST(captured_steps_have_the_bits_of_single_operations)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
