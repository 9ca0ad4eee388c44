/* Weights stored as integers: packing of 4 bits, numbers and their meaning, products. */
#include "backend/ref/ref.h"
#include "tensor/shape.h"

/* ---- nibbles: an axis between `outer` and `inner` ---- */

static int nibble(const int8_t *bytes, int64_t byte, bool high) {
  const int bits = (bytes[byte] >> (high ? 4 : 0)) & 15;
  return bits < 8 ? bits : bits - 16;
}

typedef struct nibbles {
  int64_t outer, numbers, bytes, inner;
} nibbles;

static nibbles nibbles_of(const mix_kernel_args *args, mix_shape numbers) {
  const mix_nibble_attributes *a = args->attributes;
  nibbles n = {.outer = 1, .numbers = numbers.dims[a->axis], .inner = 1};
  n.bytes = (n.numbers + 1) / 2;
  for (int d = 0; d < numbers.rank; d++)
    if (d != a->axis) *(d < a->axis ? &n.outer : &n.inner) *= numbers.dims[d];
  return n;
}

static void unpack_run(const mix_kernel_args *args, const mix_team *team) {
  const nibbles n = nibbles_of(args, args->output_types[0].shape);
  int8_t *to = args->outputs[0];
  for (int64_t o = 0; o < n.outer; o++)
    for (int64_t p = 0; p < n.numbers; p++)
      for (int64_t i = 0; i < n.inner; i++)
        *to++ = (int8_t)nibble(args->inputs[0], (o * n.bytes + p / 2) * n.inner + i, p & 1);
}

static void pack_run(const mix_kernel_args *args, const mix_team *team) {
  const nibbles n = nibbles_of(args, args->input_types[0].shape);
  const int8_t *from = args->inputs[0];
  int8_t *to = args->outputs[0];
  for (int64_t o = 0; o < n.outer; o++)
    for (int64_t p = 0; p < n.bytes; p++)
      for (int64_t i = 0; i < n.inner; i++) {
        const int64_t at = (o * n.numbers + 2 * p) * n.inner + i;
        const int low = from[at] & 15, high = 2 * p + 1 < n.numbers ? from[at + n.inner] & 15 : 0;
        *to++ = (int8_t)(low | high << 4);
      }
}

const mix_kernel mix_ref_unpack_int4 = {
    .name = "ref_unpack_int4", .serial = mix_ref_serial, .run = unpack_run};
const mix_kernel mix_ref_pack_int4 = {.name = "ref_pack_int4", .serial = mix_ref_serial, .run = pack_run};

/* ---- stored weights ---- */

/* Operands first, first + 1 and, of blocks, first + 2. */
typedef struct weight {
  const mix_stored_attributes *a;
  const mix_kernel_args *args;
  int first;
  int64_t rows, bytes, groups; /* as stored; groups of columns, if transposed */
  mix_dtype dtype;             /* of the values */
} weight;

static weight weight_of(const mix_kernel_args *args, int first, mix_dtype dtype) {
  const mix_stored_attributes *a = args->attributes;
  const mix_shape shape = args->input_types[first].shape;
  weight w = {.a = a, .args = args, .first = first, .rows = 1, .dtype = dtype};
  for (int d = 0; d < shape.rank - 1; d++) w.rows *= shape.dims[d];
  w.bytes = shape.dims[shape.rank - 1];
  if (a->block) w.groups = (a->columns + a->block - 1) / a->block;
  return w;
}

static int64_t number_at(const weight *w, int64_t row, int64_t column) {
  const int8_t *stored = w->args->inputs[w->first];
  return w->a->bits == 4 ? nibble(stored, row * w->bytes + column / 2, column & 1)
                         : stored[row * w->bytes + column];
}

/* Operand `first + offset`, at the element that the number belongs to. */
static mix_ref_value shared_at(const weight *w, int offset, int64_t row, int64_t column) {
  const int64_t block = w->a->block;
  const int64_t at = w->a->transposed ? (block ? row * w->groups + column / block : row)
                                      : (block ? row / block * w->a->columns + column : column);
  const int operand = w->first + offset;
  return mix_ref_load(w->args->inputs[operand], w->args->input_types[operand].dtype, at);
}

/* In float32, and of float64 scales in float64; one rounding more to the dtype. */
static mix_ref_value value_at(const weight *w, int64_t row, int64_t column) {
  const mix_dtype scale_dtype = w->args->input_types[w->first + 1].dtype;
  const double number = (double)number_at(w, row, column), scale = shared_at(w, 1, row, column).real;
  if (!w->a->block) {
    const mix_ref_value cast = mix_ref_round((mix_ref_value){.real = scale}, w->dtype);
    return mix_ref_round((mix_ref_value){.real = number / cast.real}, w->dtype);
  }
  const mix_dtype zero_dtype = w->args->input_types[w->first + 2].dtype,
                  wide = scale_dtype == MIX_FLOAT64 ? MIX_FLOAT64 : MIX_FLOAT32;
  const mix_ref_value zero = mix_ref_cast(shared_at(w, 2, row, column), zero_dtype, wide),
                      difference = mix_ref_round((mix_ref_value){.real = number - zero.real}, wide),
                      product = mix_ref_round((mix_ref_value){.real = difference.real * scale}, wide);
  return mix_ref_round(product, w->dtype);
}

static void dequantize_run(const mix_kernel_args *args, const mix_team *team) {
  const weight w = weight_of(args, 0, args->output_types[0].dtype);
  int64_t element = 0;
  for (int64_t row = 0; row < w.rows; row++)
    for (int64_t column = 0; column < w.a->columns; column++)
      mix_ref_store(args->outputs[0], w.dtype, element++, value_at(&w, row, column));
}

const mix_kernel mix_ref_dequantize = {
    .name = "ref_dequantize", .serial = mix_ref_serial, .run = dequantize_run};

/* Of channels: numbers, which the scale divides after the sum. */
static double factor_at(const weight *w, int64_t row, int64_t column) {
  if (w->a->block) return value_at(w, row, column).real;
  return mix_ref_round((mix_ref_value){.real = (double)number_at(w, row, column)}, w->dtype).real;
}

static void product_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const weight w = weight_of(args, 1, dtype);
  const bool transposed = w.a->transposed;
  const int64_t depth = transposed ? w.a->columns : w.rows, n = transposed ? w.rows : w.a->columns;
  const mix_shape shape = args->input_types[0].shape;
  int64_t m = 1;
  for (int d = 0; d < shape.rank - 1; d++) m *= shape.dims[d];
  double *factors = args->workspace; /* of one column of the result */
  for (int64_t j = 0; j < n; j++) {
    for (int64_t k = 0; k < depth; k++) factors[k] = transposed ? factor_at(&w, j, k) : factor_at(&w, k, j);
    for (int64_t i = 0; i < m; i++) {
      double sum = 0;
      for (int64_t k = 0; k < depth; k++)
        sum += mix_ref_load(args->inputs[0], dtype, i * depth + k).real * factors[k];
      mix_ref_value value = mix_ref_round((mix_ref_value){.real = sum}, dtype);
      if (!w.a->block) {
        const mix_ref_value scale =
            mix_ref_round(transposed ? shared_at(&w, 1, j, 0) : shared_at(&w, 1, 0, j), dtype);
        value = mix_ref_round((mix_ref_value){.real = value.real / scale.real}, dtype);
      }
      mix_ref_store(args->outputs[0], dtype, i * n + j, value);
    }
  }
}

static size_t product_workspace(const mix_kernel_args *args, int threads) {
  const mix_shape x = args->input_types[0].shape;
  return (size_t)x.dims[x.rank - 1] * sizeof(double);
}

const mix_kernel mix_ref_matmul_stored = {.name = "ref_matmul_stored_acc64",
                                          .workspace = product_workspace,
                                          .serial = mix_ref_serial,
                                          .run = product_run};
