/* matmul_downcast of a float32 matrix, which it rounds, and one in 16 bits: the bits of the product of both
 * in 16 bits. Weights are read so by products of many examples (passes/round_weights.c). */
/* Holds docs/NUMERICS.md: Products. */
#include "support/share.h"
#include "backend/gemm_products.h"
#include "backend/instruction_sets.h"

#include "backend/context.h"
#include "backend/host/host.h"

enum { SHAPES = 9, BLOCKED = 6 };
/* The first ones are done in blocks, the others in part by algorithms that read operands of one storage. */
static const int64_t shapes[SHAPES][3] = {{128, 64, 784}, {33, 70, 50},   {131, 133, 401},
                                          {70, 90, 1030}, {400, 40, 385}, {29, 513, 800},
                                          {60, 10, 1100}, {9, 100, 300},  {1, 1, 1}};

typedef struct pair {
  product narrow, mixed;
  int rounded; /* the operand that is float32 in `mixed` */
} pair;

/* The float32 matrix has numbers between those of 16 bits, some that round to infinity, and no numbers. */
static void fill_pair(pair *p, mix_dtype dtype) {
  static const float special[] = {INFINITY, -INFINITY, NAN, 65520, -65519, 1e-8f, 0x1p-130f, -0.0f};
  fill(&p->narrow, !p->rounded, 0);
  const int64_t counts[2] = {p->narrow.m * p->narrow.k, p->narrow.k * p->narrow.n};
  memcpy(p->mixed.in[!p->rounded], p->narrow.in[!p->rounded],
         (size_t)counts[!p->rounded] * mix_dtype_size(dtype));
  float *numbers = p->mixed.in[p->rounded];
  const int64_t count = counts[p->rounded];
  for (int64_t i = 0; i < count; i++) numbers[i] = (float)uniform();
  for (int i = 0; i < 8 && count > 50; i++) numbers[next_random() % (uint64_t)count] = special[i];
  mix_convert(numbers, MIX_FLOAT32, p->narrow.in[p->rounded], dtype, count);
}

static pair make_pair(mix_dtype dtype, const int64_t *shape, int transposes, int rounded) {
  pair p = {.narrow = make_product(dtype, shape[0], shape[1], shape[2], transposes),
            .mixed = make_product(dtype, shape[0], shape[1], shape[2], transposes),
            .rounded = rounded};
  p.mixed.op = &mix_op_matmul_downcast;
  p.mixed.attributes.dtype = dtype;
  p.mixed.attributes.round_operands = true;
  p.mixed.inputs[rounded].dtype = MIX_FLOAT32;
  free(p.mixed.in[rounded]);
  p.mixed.in[rounded] = matrix(MIX_FLOAT32, mix_shape_size(p.mixed.inputs[rounded].shape));
  fill_pair(&p, dtype);
  return p;
}

static void compare(pair *p, const mix_kernel *kernel, int threads) {
  const product *x = &p->narrow;
  run_with(kernel, &p->narrow, threads), run_with(kernel, &p->mixed, threads);
  for (int64_t i = 0; i < x->m * x->n; i++)
    if (((const uint16_t *)x->out)[i] != ((const uint16_t *)p->mixed.out)[i] &&
        !(isnan(result(x, i)) && isnan(result(&p->mixed, i)))) /* of any sign */
      fail_msg("%s %lldx%lldx%lld transposes %d%d operand %d threads %d: element %lld is %g, not %g",
               kernel->name, (long long)x->m, (long long)x->n, (long long)x->k, x->attributes.transpose_a,
               x->attributes.transpose_b, p->rounded, threads, (long long)i, result(&p->mixed, i),
               result(x, i));
}

/* relu of the product, stored in its dtype. */
static void compare_with_epilogue(pair *p, const mix_kernel *kernel, int threads) {
  const mix_dtype dtype = p->narrow.output.dtype;
  mix_program_load load = {.input = MIX_FROM_ACCUMULATOR, .dtype = dtype, .strides = {p->narrow.n, 1}};
  mix_instruction relu = {.opcode = MIX_OPCODE_RELU, .dtype = dtype, .operands = {0}};
  mix_program_store store = {.output = 0, .reg = 1};
  const mix_program program = {.rank = 2,
                               .dims = {p->narrow.m, p->narrow.n},
                               .load_count = 1,
                               .instruction_count = 1,
                               .store_count = 1,
                               .loads = &load,
                               .instructions = &relu,
                               .stores = &store};
  p->narrow.program = p->mixed.program = &program;
  compare(p, kernel, threads);
  p->narrow.program = p->mixed.program = NULL;
}

static bool is_offered(const pair *p) {
  mix_context context = mix_context_default();
  context.memory = MIX_MEMORY_LEAST;
  const product *x = &p->narrow;
  return mix_host_rounds_operand(&context,
                                 &(mix_product){.op = x->op,
                                                .attributes = &x->attributes,
                                                .transpose_a = x->attributes.transpose_a,
                                                .transpose_b = x->attributes.transpose_b,
                                                .dtype = x->inputs[0].dtype,
                                                .a = x->inputs[0].shape,
                                                .b = x->inputs[1].shape,
                                                .result = x->output.shape},
                                 p->rounded);
}

/* Kernels that widen 16 bits on vectors, and those of pairs on AVX-512, offer it for all that they do in
 * blocks. */
static void where_it_is_offered_the_bits_are_those_of_16_bits(void **state) {
  NEED_INSTRUCTION_SET(state);
  for (int s = 0; s < SHAPES; s++)
    for (int how = 0; how < 16; how++) {
      if (left_out()) continue;
      random_state = (uint64_t)(s * 100 + how + 7); /* the failing case's own seed */
      pair p = make_pair(how & 8 ? MIX_FLOAT16 : MIX_BFLOAT16, shapes[s], how & 3, how >> 2 & 1);
      const mix_kernel *kernel = dispatched(&p.narrow);
      const bool offered = is_offered(&p);
      const bool pairs = strstr(kernel->name, "avx512bf16") != NULL;
      if ((kernel->widened || pairs) && s < BLOCKED) assert_true(offered);
      for (int threads = 1; threads <= MAX_THREADS && offered; threads++) {
        compare(&p, kernel, threads);
        compare_with_epilogue(&p, kernel, threads);
      }
      free_product(&p.narrow), free_product(&p.mixed);
    }
}

static void the_reference_has_the_bits_of_16_bits(void **state) {
  (void)state;
  for (int s = 0; s < SHAPES; s++)
    for (int how = 0; how < 16; how++) {
      random_state = (uint64_t)(s * 100 + how + 7);
      pair p = make_pair(how & 8 ? MIX_FLOAT16 : MIX_BFLOAT16, shapes[s], how & 3, how >> 2 & 1);
      if (!left_out()) compare(&p, reference(), 1);
      free_product(&p.narrow), free_product(&p.mixed);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      ON_EACH_SET_OF_PRODUCTS(where_it_is_offered_the_bits_are_those_of_16_bits),
      cmocka_unit_test(the_reference_has_the_bits_of_16_bits)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
