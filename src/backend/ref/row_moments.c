/* Mean and variance of rows: each sum in double, each mean, difference and square rounded to the dtype of the
 * results, as by the operations that it stands for. */
#include "backend/ref/ref.h"

static void row_moments_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_type *x = &args->input_types[0];
  const mix_dtype dtype = args->output_types[0].dtype;
  const int64_t rows = mix_shape_size(args->output_types[0].shape),
                length = rows ? mix_shape_size(x->shape) / rows : 0;
  for (int64_t row = 0; row < rows; row++) {
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < length; i++)
      sum += mix_ref_load(args->inputs[0], x->dtype, row * length + i).real;
    const mix_ref_value mean = mix_ref_round((mix_ref_value){.real = sum / (double)length}, dtype);
    for (int64_t i = 0; i < length; i++) {
      const double value = mix_ref_load(args->inputs[0], x->dtype, row * length + i).real;
      const mix_ref_value difference = mix_ref_round((mix_ref_value){.real = value - mean.real}, dtype);
      squares += mix_ref_round((mix_ref_value){.real = difference.real * difference.real}, dtype).real;
    }
    mix_ref_store(args->outputs[0], dtype, row, mean);
    mix_ref_store(args->outputs[1], dtype, row,
                  mix_ref_round((mix_ref_value){.real = squares / (double)length}, dtype));
  }
}

const mix_kernel mix_ref_row_moments = {
    .name = "ref_row_moments", .serial = mix_ref_serial, .run = row_moments_run};
