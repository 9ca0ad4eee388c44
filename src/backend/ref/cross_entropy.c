/* Softmax cross-entropy, in double. Operands: logits (..., classes), then labels (..., classes) of the same
 * dtype, or (...) of an integer dtype. Results, as of TensorFlow's ops: losses (...) and d loss / d logits
 * (..., classes). */
#include "backend/ref/ref.h"
#include <math.h>

typedef struct row {
  double largest, sum; /* softmax_j = exp(x_j - largest) / sum */
} row;

static double logit(const mix_kernel_args *args, int64_t at) {
  return mix_ref_load(args->inputs[0], args->input_types[0].dtype, at).real;
}

static row normalise(const mix_kernel_args *args, int64_t first, int64_t classes) {
  row r = {-INFINITY, 0};
  for (int64_t j = 0; j < classes && r.largest == r.largest; j++) {
    double x = logit(args, first + j);
    if (x > r.largest || x != x) r.largest = x;
  }
  for (int64_t j = 0; j < classes; j++) r.sum += exp(logit(args, first + j) - r.largest);
  return r;
}

static void store(const mix_kernel_args *args, int output, int64_t at, double value) {
  mix_ref_store(args->outputs[output], args->output_types[output].dtype, at, (mix_ref_value){.real = value});
}

static void softmax_cross_entropy_run(const mix_kernel_args *args, const mix_team *team) {
  mix_shape shape = args->input_types[0].shape;
  int64_t classes = shape.dims[shape.rank - 1], count = mix_shape_size(args->output_types[0].shape);
  for (int64_t i = 0; i < count; i++) {
    row r = normalise(args, i * classes, classes);
    double loss = 0;
    for (int64_t j = 0; j < classes; j++) {
      double label = mix_ref_load(args->inputs[1], args->input_types[1].dtype, i * classes + j).real;
      double shifted = logit(args, i * classes + j) - r.largest;
      loss += label * (log(r.sum) - shifted);
      store(args, 1, i * classes + j, exp(shifted) / r.sum - label);
    }
    store(args, 0, i, loss);
  }
}

static void sparse_softmax_cross_entropy_run(const mix_kernel_args *args, const mix_team *team) {
  mix_shape shape = args->input_types[0].shape;
  int64_t classes = shape.dims[shape.rank - 1], count = mix_shape_size(args->output_types[0].shape);
  for (int64_t i = 0; i < count; i++) {
    int64_t label = mix_ref_load(args->inputs[1], args->input_types[1].dtype, i).integer;
    bool valid = label >= 0 && label < classes;
    if (!valid) mix_kernel_fail_label(args, i, label, classes);
    row r = normalise(args, i * classes, classes);
    store(args, 0, i, valid ? log(r.sum) - (logit(args, i * classes + label) - r.largest) : NAN);
    for (int64_t j = 0; j < classes; j++)
      store(args, 1, i * classes + j,
            valid ? exp(logit(args, i * classes + j) - r.largest) / r.sum - (j == label) : NAN);
  }
}

const mix_kernel mix_ref_softmax_cross_entropy = {
    .name = "ref_softmax_cross_entropy", .serial = mix_ref_serial, .run = softmax_cross_entropy_run};
const mix_kernel mix_ref_sparse_softmax_cross_entropy = {.name = "ref_sparse_softmax_cross_entropy",
                                                         .serial = mix_ref_serial,
                                                         .run = sparse_softmax_cross_entropy_run};
