/* Matrix products: a (..., m, k) x b (..., k, n) -> (..., m, n). Each operand may be stored transposed,
 * leading dimensions broadcast, and there may be an epilogue program. Accumulates in double (integers in
 * int64) and rounds once. */
#include "backend/ref/ref.h"

typedef struct geometry {
  int64_t m, n, k;
  int batch_rank;
  int64_t batch[MIX_MAX_RANK];
  int64_t a_strides[MIX_MAX_RANK], b_strides[MIX_MAX_RANK]; /* in matrices; 0 along broadcast dimensions */
} geometry;

static void batch_strides(mix_shape shape, int batch_rank, int64_t *batch, int64_t *strides) {
  int64_t stride = 1;
  for (int d = batch_rank - 1, from = shape.rank - 3; d >= 0; d--, from--) {
    int64_t size = from >= 0 ? shape.dims[from] : 1;
    strides[d] = size == 1 ? 0 : stride;
    if (size != 1) batch[d] = size;
    stride *= size;
  }
}

static geometry geometry_of(const mix_kernel_args *args) {
  const mix_matmul_attributes *attributes = args->attributes;
  mix_shape a = args->input_types[0].shape, b = args->input_types[1].shape;
  geometry g = {.batch_rank = (a.rank > b.rank ? a.rank : b.rank) - 2};
  g.m = a.dims[a.rank - 2 + attributes->transpose_a];
  g.k = a.dims[a.rank - 1 - attributes->transpose_a];
  g.n = b.dims[b.rank - 1 - attributes->transpose_b];
  for (int d = 0; d < g.batch_rank; d++) g.batch[d] = 1;
  batch_strides(a, g.batch_rank, g.batch, g.a_strides);
  batch_strides(b, g.batch_rank, g.batch, g.b_strides);
  return g;
}

static size_t matmul_workspace(const mix_kernel_args *args, int threads) {
  geometry g = geometry_of(args);
  return (size_t)((g.m + g.n) * g.k) * sizeof(mix_ref_value);
}

/* Loads matrix `number` of an operand as (rows, k), for either storage order, and rounds it. */
static void load_matrix(const void *data, mix_dtype dtype, mix_dtype rounded, int64_t number, int64_t rows,
                        int64_t k, bool k_first, mix_ref_value *to) {
  for (int64_t i = 0; i < rows; i++)
    for (int64_t p = 0; p < k; p++)
      to[i * k + p] = mix_ref_round(
          mix_ref_load(data, dtype, number * rows * k + (k_first ? p * rows + i : i * k + p)), rounded);
}

static mix_ref_value dot(const mix_ref_value *a, const mix_ref_value *b, int64_t k, bool real) {
  double sum = 0;
  uint64_t integer_sum = 0;
  if (real)
    for (int64_t p = 0; p < k; p++) sum += a[p].real * b[p].real;
  else
    for (int64_t p = 0; p < k; p++) integer_sum += (uint64_t)a[p].integer * (uint64_t)b[p].integer;
  return (mix_ref_value){sum, (int64_t)integer_sum};
}

static void matmul_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_matmul_attributes *attributes = args->attributes;
  geometry g = geometry_of(args);
  mix_dtype dtype = args->input_types[0].dtype, rounded = args->op == &mix_op_matmul_downcast
                                                              ? attributes->dtype
                                                          : args->op == &mix_op_matmul_integer ? MIX_INT32
                                                                                               : dtype;
  const mix_dtype operands =
      args->op == &mix_op_matmul_downcast && attributes->round_operands ? attributes->dtype : dtype;
  bool real = mix_dtype_is_floating(dtype);
  mix_ref_value *a = args->workspace, *b = a + g.m * g.k;
  int64_t batches = 1, element = 0;
  for (int d = 0; d < g.batch_rank; d++) batches *= g.batch[d];
  if (args->program) mix_ref_program_begin(args);
  for (int64_t batch = 0; batch < batches; batch++) {
    int64_t index[MIX_MAX_RANK], a_number = 0, b_number = 0;
    mix_ref_unravel(batch, g.batch_rank, g.batch, index);
    for (int d = 0; d < g.batch_rank; d++) {
      a_number += index[d] * g.a_strides[d];
      b_number += index[d] * g.b_strides[d];
    }
    load_matrix(args->inputs[0], dtype, operands, a_number, g.m, g.k, attributes->transpose_a, a);
    load_matrix(args->inputs[1], args->input_types[1].dtype, operands, b_number, g.n, g.k,
                !attributes->transpose_b, b);
    for (int64_t i = 0; i < g.m; i++)
      for (int64_t j = 0; j < g.n; j++, element++) {
        mix_ref_value product = dot(a + i * g.k, b + j * g.k, g.k, real);
        if (args->program)
          mix_ref_program_element(args, element, product);
        else
          mix_ref_store(args->outputs[0], rounded, element, mix_ref_round(product, rounded));
      }
  }
  if (args->program) mix_ref_program_end(args);
}

static const char *matmul_unsupported_reason(const mix_kernel_args *args) {
  return args->program ? mix_ref_program_unsupported_reason(args->program) : NULL;
}

static bool matmul_prepare(mix_kernel_args *args, int threads) {
  return !args->program || mix_ref_program_prepare(args, threads);
}

const mix_kernel mix_ref_matmul = {.name = "ref_matmul_acc64",
                                   .unsupported_reason = matmul_unsupported_reason,
                                   .workspace = matmul_workspace,
                                   .prepare = matmul_prepare,
                                   .serial = mix_ref_serial,
                                   .run = matmul_run};
