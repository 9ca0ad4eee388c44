/* Table stored: products with weights of 8 and 4 bits beside those with float weights of the same shape,
 * interleaved. */
#include "tables.h"

enum { SIZE = 4096, BLOCK = 128 };

typedef enum product_kind { FLOATS, INTEGERS, CHANNELS, BLOCKS } product_kind;

typedef struct product {
  const char *name;
  product_kind kind;
  mix_dtype dtype; /* of x */
  int bits;
  int64_t rows;
  mix_function *function;
  mix_list *arguments;
} product;

static mix_list *product_body(void *context, mix_list *arguments) {
  const product *p = context;
  mix_tensor *x = mix_list_get(arguments, 0), *weight = mix_list_get(arguments, 1);
  mix_stored_options options = {
      .size = sizeof options, .bits = p->bits, .block = p->kind == BLOCKS ? BLOCK : 0};
  mix_tensor *y = NULL;
  switch (p->kind) {
  case FLOATS: y = mix_matmul(x, weight, false, false); break;
  case INTEGERS: y = mix_matmul_integer(x, weight, false, false); break;
  case CHANNELS: y = mix_matmul_stored(x, weight, mix_list_get(arguments, 2), NULL, &options); break;
  case BLOCKS:
    y = mix_matmul_stored(x, weight, mix_list_get(arguments, 2), mix_list_get(arguments, 3), &options);
    break;
  }
  return y ? mix_list_of(y) : NULL;
}

static bool run_product(void *context) {
  product *p = context;
  bool good = false;
  MIX_SCOPE {
    mix_list *result = mix_function_call(p->function, p->arguments);
    good = result && mix_evaluate(1, (mix_tensor *[]){mix_list_get(result, 0)}) == MIX_OK;
  }
  return good && mix_error() == MIX_OK;
}

static mix_tensor *numbers(mix_generator *generator, mix_shape shape, double scale, mix_dtype dtype) {
  mix_tensor *x = mix_random_normal(generator, shape, MIX_FLOAT32);
  return mix_cast(mix_multiply(x, mix_scalar_like(x, scale)), dtype);
}

static bool prepare(product *p) {
  mix_generator *generator = mix_generator_new(7);
  const int64_t columns = p->bits == 4 ? SIZE / 2 : SIZE;
  mix_tensor *x[] = {
      numbers(generator, MIX_SHAPE(p->rows, SIZE), p->kind == INTEGERS ? 30 : 1, p->dtype),
      numbers(generator, MIX_SHAPE(SIZE, columns), 30, p->kind == FLOATS ? p->dtype : MIX_INT8),
      numbers(generator, p->kind == BLOCKS ? MIX_SHAPE(SIZE / BLOCK, SIZE) : MIX_SHAPE(SIZE), 1, MIX_FLOAT32),
      numbers(generator, MIX_SHAPE(SIZE / BLOCK, SIZE), 3, MIX_INT8)};
  if (mix_evaluate(4, x) != MIX_OK) return false;
  p->arguments = mix_list_of(x[0], x[1], x[2], x[3]);
  p->function = mix_function_new(product_body, p, .name = p->name);
  return run_product(p);
}

static bool one_comparison(const bench_settings *settings, product ours, product theirs, json_t *rows) {
  bench_candidate runs[2];
  int rounds;
  if (!prepare(&ours) || !prepare(&theirs)) return false;
  runs[0] = (bench_candidate){.run = run_product, .context = &ours};
  runs[1] = (bench_candidate){.run = run_product, .context = &theirs};
  if (!bench_interleave(runs, 2, settings->quick ? 0.5 : 3, &rounds)) return false;
  const double ratio = bench_ratio(&runs[1], &runs[0], rounds);
  json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:f, s:f, s:f}", "product", ours.name, "beside",
                                        theirs.name, "rows", (json_int_t)ours.rows, "seconds", runs[0].median,
                                        "seconds_beside", runs[1].median, "ratio", ratio));
  if (settings->text)
    printf("%-26s %-9s %5lld %10.3f %10.3f %8.2f\n", ours.name, theirs.name, (long long)ours.rows,
           1e3 * runs[0].median, 1e3 * runs[1].median, ratio);
  return true;
}

bool bench_stored(const bench_settings *settings) {
  static const struct {
    product ours, theirs;
  } rows[] = {
      {{"int8", INTEGERS, MIX_INT8, 8, 128}, {"bfloat16", FLOATS, MIX_BFLOAT16, 8, 128}},
      {{"int8", INTEGERS, MIX_INT8, 8, 128}, {"float32", FLOATS, MIX_FLOAT32, 8, 128}},
      {{"int8", INTEGERS, MIX_INT8, 8, 1}, {"float32", FLOATS, MIX_FLOAT32, 8, 1}},
      {{"float32 x int8", CHANNELS, MIX_FLOAT32, 8, 1}, {"float32", FLOATS, MIX_FLOAT32, 8, 1}},
      {{"float32 x int4 blocks", BLOCKS, MIX_FLOAT32, 4, 1}, {"float32", FLOATS, MIX_FLOAT32, 8, 1}},
      {{"bfloat16 x int4 blocks", BLOCKS, MIX_BFLOAT16, 4, 1}, {"bfloat16", FLOATS, MIX_BFLOAT16, 8, 1}},
      {{"float32 x int4 blocks", BLOCKS, MIX_FLOAT32, 4, 8}, {"float32", FLOATS, MIX_FLOAT32, 8, 8}},
      {{"float32 x int4 blocks", BLOCKS, MIX_FLOAT32, 4, 128}, {"float32", FLOATS, MIX_FLOAT32, 8, 128}},
      {{"bfloat16 x int4 blocks", BLOCKS, MIX_BFLOAT16, 4, 128}, {"bfloat16", FLOATS, MIX_BFLOAT16, 8, 128}},
  };
  json_t *list = json_array();
  bool good = true;
  if (settings->text)
    printf("\nproducts with weights of %d x %d stored as integers beside floats, interleaved\n"
           "%-26s %-9s %5s %10s %10s %8s\n",
           SIZE, SIZE, "product", "beside", "rows", "ms", "ms beside", "ratio");
  for (size_t i = 0; i < sizeof rows / sizeof *rows && good; i++) {
    MIX_SCOPE { good = one_comparison(settings, rows[i].ours, rows[i].theirs, list); }
    fflush(stdout);
  }
  json_object_set_new(settings->json, "stored", list);
  return good;
}
