/* Softmax and log-softmax over the last axis, in double. */
#include "backend/ref/ref.h"
#include <math.h>

/* Subtracting the largest logit keeps exp in range. If it is a NaN or infinite, the row is NaN, as in
 * TensorFlow. */
static void rows(const mix_kernel_args *args, bool logarithm) {
  mix_shape shape = args->input_types[0].shape;
  mix_dtype dtype = args->input_types[0].dtype;
  int64_t classes = shape.dims[shape.rank - 1], count = classes ? mix_shape_size(shape) / classes : 0;
  for (int64_t row = 0; row < count; row++) {
    double largest = -INFINITY, sum = 0;
    for (int64_t j = 0; j < classes; j++) {
      double x = mix_ref_load(args->inputs[0], dtype, row * classes + j).real;
      if (x > largest || x != x) largest = x;
      if (x != x) break;
    }
    for (int64_t j = 0; j < classes; j++)
      sum += exp(mix_ref_load(args->inputs[0], dtype, row * classes + j).real - largest);
    for (int64_t j = 0; j < classes; j++) {
      double shifted = mix_ref_load(args->inputs[0], dtype, row * classes + j).real - largest;
      mix_ref_value y = {.real = logarithm ? shifted - log(sum) : exp(shifted) / sum};
      mix_ref_store(args->outputs[0], dtype, row * classes + j, y);
    }
  }
}

static void softmax_run(const mix_kernel_args *args, const mix_team *team) { rows(args, false); }
static void log_softmax_run(const mix_kernel_args *args, const mix_team *team) { rows(args, true); }

const mix_kernel mix_ref_softmax = {.name = "ref_softmax", .serial = mix_ref_serial, .run = softmax_run};
const mix_kernel mix_ref_log_softmax = {
    .name = "ref_log_softmax", .serial = mix_ref_serial, .run = log_softmax_run};
