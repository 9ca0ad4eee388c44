/* Einstein sums of two operands, element by element. Accumulates in double (integers in int64) and rounds
 * once. */
#include "backend/ref/ref.h"

/* The dimensions of the result, then those that are summed over, with their strides in both operands. */
typedef struct space {
  int kept, rank;
  int64_t dims[3 * MIX_MAX_RANK], strides[2][3 * MIX_MAX_RANK];
} space;

static int64_t stride_of(const mix_shape *shape, int axis) {
  int64_t stride = 1;
  for (int i = axis + 1; i < shape->rank; i++) stride *= shape->dims[i];
  return stride;
}

static void add_dimension(space *s, const mix_kernel_args *args, int64_t label) {
  const mix_einsum_attributes *labels = args->attributes;
  const mix_shape *lists[] = {&labels->a, &labels->b};
  for (int k = 0; k < 2; k++) {
    const int at = mix_einsum_find(lists[k], label);
    s->strides[k][s->rank] = at < 0 ? 0 : stride_of(&args->input_types[k].shape, at);
    if (at >= 0) s->dims[s->rank] = args->input_types[k].shape.dims[at];
  }
  s->rank++;
}

static space space_of(const mix_kernel_args *args) {
  const mix_einsum_attributes *labels = args->attributes;
  space s = {.kept = labels->result.rank};
  for (int i = 0; i < labels->result.rank; i++) add_dimension(&s, args, labels->result.dims[i]);
  for (int i = 0; i < labels->a.rank; i++)
    if (mix_einsum_find(&labels->result, labels->a.dims[i]) < 0) add_dimension(&s, args, labels->a.dims[i]);
  return s;
}

/* Adds the place of element `flat` of the dimensions [from, to) in both operands. */
static void move(const space *s, int from, int to, int64_t flat, int64_t at[2]) {
  for (int d = to - 1; d >= from; d--) {
    for (int k = 0; k < 2; k++) at[k] += flat % s->dims[d] * s->strides[k][d];
    flat /= s->dims[d];
  }
}

static void einsum_run(const mix_kernel_args *args, const mix_team *team) {
  const space s = space_of(args);
  const mix_dtype dtype = args->input_types[0].dtype;
  const int64_t size = mix_shape_size(args->output_types[0].shape);
  int64_t depth = 1;
  for (int d = s.kept; d < s.rank; d++) depth *= s.dims[d];
  for (int64_t element = 0; element < size; element++) {
    double sum = 0;
    uint64_t integer_sum = 0;
    for (int64_t p = 0; p < depth; p++) {
      int64_t at[2] = {0, 0};
      move(&s, 0, s.kept, element, at);
      move(&s, s.kept, s.rank, p, at);
      const mix_ref_value a = mix_ref_load(args->inputs[0], dtype, at[0]),
                          b = mix_ref_load(args->inputs[1], dtype, at[1]);
      sum += a.real * b.real;
      integer_sum += (uint64_t)a.integer * (uint64_t)b.integer;
    }
    const mix_ref_value result = {mix_dtype_is_floating(dtype) ? sum : 0, (int64_t)integer_sum};
    mix_ref_store(args->outputs[0], dtype, element, mix_ref_round(result, dtype));
  }
}

const mix_kernel mix_ref_einsum = {.name = "ref_einsum_acc64", .serial = mix_ref_serial, .run = einsum_run};
