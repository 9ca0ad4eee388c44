/* matmul_finite_bound: the largest column norms of both operands, in double. */
#include "backend/ref/ref.h"

static double largest_square(const void *matrix, const mix_type *type) {
  const int64_t rows = type->shape.dims[0], columns = type->shape.dims[1];
  double largest = 0;
  for (int64_t j = 0; j < columns; j++) {
    double sum = 0;
    for (int64_t i = 0; i < rows; i++) {
      const double x = mix_ref_load(matrix, type->dtype, i * columns + j).real;
      sum += x * x;
    }
    if (!(sum <= largest)) largest = sum;
    if (sum != sum) return sum;
  }
  return largest;
}

static void finite_bound_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_finite_bound_attributes *attributes = args->attributes;
  const double a = largest_square(args->inputs[0], &args->input_types[0]),
               b = largest_square(args->inputs[1], &args->input_types[1]);
  const bool finite = mix_finite_bound_holds(attributes->dtype, a, b,
                                             args->input_count > 2 ? *(const float *)args->inputs[2] : 1);
  *(bool *)args->outputs[0] = finite;
  *(bool *)args->outputs[1] = !finite;
}

const mix_kernel mix_ref_matmul_finite_bound = {
    .name = "ref_matmul_finite_bound", .serial = mix_ref_serial, .run = finite_bound_run};
