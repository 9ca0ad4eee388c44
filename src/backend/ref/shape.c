/* Ops that move elements or generate them. */
#include "backend/ref/ref.h"
#include "tensor/convert.h"

/* The source of an element of the result: an index of the operand, or -1 for the padding value. */
typedef int64_t source_of(const mix_kernel_args *args, const int64_t *index);

static void copy_elements(const mix_kernel_args *args, source_of *source, double padding) {
  mix_shape shape = args->output_types[0].shape;
  mix_dtype dtype = args->output_types[0].dtype;
  size_t bytes = mix_dtype_size(dtype);
  int64_t count = mix_shape_size(shape), index[MIX_MAX_RANK];
  char *to = args->outputs[0];
  for (int64_t i = 0; i < count; i++, to += bytes) {
    mix_ref_unravel(i, shape.rank, shape.dims, index);
    int64_t from = source(args, index);
    if (from >= 0)
      memcpy(to, (const char *)args->inputs[0] + (size_t)from * bytes, bytes);
    else
      mix_ref_store(to, dtype, 0, mix_ref_cast((mix_ref_value){.real = padding}, MIX_FLOAT64, dtype));
  }
}

static int64_t transposed(const mix_kernel_args *args, const int64_t *index) {
  const mix_transpose_attributes *attributes = args->attributes;
  mix_shape shape = args->input_types[0].shape;
  int64_t from[MIX_MAX_RANK] = {0};
  for (int d = 0; d < shape.rank; d++) from[attributes->permutation[d]] = index[d];
  return mix_ref_ravel(shape.rank, shape.dims, from);
}

static int64_t broadcast(const mix_kernel_args *args, const int64_t *index) {
  mix_shape shape = args->input_types[0].shape;
  int64_t from[MIX_MAX_RANK] = {0};
  int added = args->output_types[0].shape.rank - shape.rank;
  for (int d = 0; d < shape.rank; d++) from[d] = shape.dims[d] == 1 ? 0 : index[d + added];
  return mix_ref_ravel(shape.rank, shape.dims, from);
}

static int64_t sliced(const mix_kernel_args *args, const int64_t *index) {
  const mix_slice_attributes *attributes = args->attributes;
  mix_shape shape = args->input_types[0].shape;
  int64_t from[MIX_MAX_RANK] = {0};
  for (int d = 0; d < shape.rank; d++) from[d] = attributes->begin.dims[d] + index[d];
  return mix_ref_ravel(shape.rank, shape.dims, from);
}

static int64_t padded(const mix_kernel_args *args, const int64_t *index) {
  const mix_pad_attributes *attributes = args->attributes;
  mix_shape shape = args->input_types[0].shape;
  int64_t from[MIX_MAX_RANK] = {0};
  for (int d = 0; d < shape.rank; d++) {
    from[d] = index[d] - attributes->before.dims[d];
    if (from[d] < 0 || from[d] >= shape.dims[d]) return -1;
  }
  return mix_ref_ravel(shape.rank, shape.dims, from);
}

static void transpose_run(const mix_kernel_args *args, const mix_team *team) {
  copy_elements(args, transposed, 0);
}
static void broadcast_to_run(const mix_kernel_args *args, const mix_team *team) {
  copy_elements(args, broadcast, 0);
}
static void slice_run(const mix_kernel_args *args, const mix_team *team) { copy_elements(args, sliced, 0); }
static void pad_run(const mix_kernel_args *args, const mix_team *team) {
  copy_elements(args, padded, ((const mix_pad_attributes *)args->attributes)->value);
}

/* Operand and result may be the same memory. */
static void reshape_run(const mix_kernel_args *args, const mix_team *team) {
  size_t bytes =
      (size_t)mix_shape_size(args->output_types[0].shape) * mix_dtype_size(args->output_types[0].dtype);
  if (args->inputs[0] != args->outputs[0]) memcpy(args->outputs[0], args->inputs[0], bytes);
}

static void concat_run(const mix_kernel_args *args, const mix_team *team) {
  int axis = ((const mix_axis_attributes *)args->attributes)->axis;
  mix_shape shape = args->output_types[0].shape;
  int64_t outer = 1;
  size_t inner = mix_dtype_size(args->output_types[0].dtype);
  for (int d = 0; d < axis; d++) outer *= shape.dims[d];
  for (int d = axis + 1; d < shape.rank; d++) inner *= (size_t)shape.dims[d];
  char *to = args->outputs[0];
  for (int64_t o = 0; o < outer; o++)
    for (int k = 0; k < args->input_count; k++) {
      size_t bytes = (size_t)args->input_types[k].shape.dims[axis] * inner;
      if (bytes) memcpy(to, (const char *)args->inputs[k] + (size_t)o * bytes, bytes);
      to += bytes;
    }
}

static void fill_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_shape_attributes *attributes = args->attributes;
  mix_dtype dtype = args->output_types[0].dtype;
  int64_t count = mix_shape_size(args->output_types[0].shape);
  mix_ref_value value = mix_ref_cast((mix_ref_value){.real = attributes->value}, MIX_FLOAT64, dtype);
  for (int64_t i = 0; i < count; i++) mix_ref_store(args->outputs[0], dtype, i, value);
}

static void range_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_range_attributes *attributes = args->attributes;
  mix_dtype dtype = args->output_types[0].dtype;
  for (int64_t i = 0; i < attributes->count; i++) {
    mix_ref_value value = {.real = attributes->start + (double)i * attributes->step};
    mix_ref_store(args->outputs[0], dtype, i, mix_ref_cast(value, MIX_FLOAT64, dtype));
  }
}

#define KERNEL(kernel_name)                                                                                  \
  const mix_kernel mix_ref_##kernel_name = {                                                                 \
      .name = "ref_" #kernel_name, .serial = mix_ref_serial, .run = kernel_name##_run}
KERNEL(reshape);
KERNEL(transpose);
KERNEL(broadcast_to);
KERNEL(concat);
KERNEL(slice);
KERNEL(pad);
KERNEL(fill);
KERNEL(range);
