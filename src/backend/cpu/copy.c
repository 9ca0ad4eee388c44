/* Ops that copy contiguous runs of elements, and fill. */
#include "backend/cpu/kernel_rows.h"
#include "ops/table.h"
#include "tensor/convert.h"
#include <string.h>

enum { GRAIN = 512 }; /* elements, as in the tile executor, so that no barrier is needed between the steps */

static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL;
}
static bool share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  *count = mix_shape_size(args->output_types[0].shape);
  *grain = GRAIN;
  return true;
}

#define PLAIN_KERNEL(op, ...)                                                                                \
  static const mix_kernel op##_kernel = {                                                                    \
      .name = #op "_copy", .run = run_##op, .serial = serial, __VA_ARGS__};                                  \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {&op##_kernel, NULL};

/* ---- reshape: copies, unless operand and result are the same memory ---- */

static void run_reshape(const mix_kernel_args *args, const mix_team *team) {
  const int64_t element = (int64_t)mix_dtype_size(args->output_types[0].dtype);
  int64_t begin, end;
  if (args->inputs[0] == args->outputs[0]) return;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), GRAIN, &begin, &end);
  if (begin < end)
    memcpy((char *)args->outputs[0] + begin * element, (const char *)args->inputs[0] + begin * element,
           (size_t)((end - begin) * element));
}
PLAIN_KERNEL(reshape, .share = share)

/* ---- fill ---- */

static void run_fill(const mix_kernel_args *args, const mix_team *team) {
  const mix_shape_attributes *attributes = args->attributes;
  const mix_dtype dtype = args->output_types[0].dtype;
  const int64_t element = (int64_t)mix_dtype_size(dtype);
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), GRAIN, &begin, &end);
  if (begin == end) return;
  char *first = (char *)args->outputs[0] + begin * element;
  if (mix_dtype_is_floating(dtype) || dtype == MIX_BOOL)
    mix_store_double(first, dtype, 0, attributes->value);
  else
    mix_store_integer(first, dtype, 0, mix_f64_to_i64(attributes->value));
  /* Copy the filled part, doubling it each time. */
  const int64_t bytes = (end - begin) * element;
  for (int64_t done = element; done < bytes; done *= 2)
    memcpy(first + done, first, (size_t)(done < bytes - done ? done : bytes - done));
}
PLAIN_KERNEL(fill, .share = share)

/* ---- concat: each operand gives one run for each index of the dimensions before the axis ---- */

static void run_concat(const mix_kernel_args *args, const mix_team *team) {
  const int axis = ((const mix_axis_attributes *)args->attributes)->axis;
  const mix_shape *shape = &args->output_types[0].shape;
  int64_t outer = 1, inner = (int64_t)mix_dtype_size(args->output_types[0].dtype);
  for (int d = 0; d < axis; d++) outer *= shape->dims[d];
  for (int d = axis + 1; d < shape->rank; d++) inner *= shape->dims[d];
  const int64_t stride_bytes = shape->dims[axis] * inner;
  const bool by_rows = outer >= 2 * team->size;
  int64_t first = 0, last = outer;
  if (by_rows) mix_team_share(team, outer, 1, &first, &last);
  for (int64_t o = first; o < last; o++) {
    char *to = (char *)args->outputs[0] + o * stride_bytes;
    for (int k = 0; k < args->input_count; k++) {
      const int64_t bytes = args->input_types[k].shape.dims[axis] * inner;
      int64_t begin = 0, end = bytes;
      if (!by_rows) mix_team_share(team, bytes, 4096, &begin, &end);
      if (begin < end)
        memcpy(to + begin, (const char *)args->inputs[k] + o * bytes + begin, (size_t)(end - begin));
      to += bytes;
    }
  }
}
PLAIN_KERNEL(concat)

/* ---- slice: a run spans the last axis that is cut and all axes after it ---- */

static void run_slice(const mix_kernel_args *args, const mix_team *team) {
  const mix_slice_attributes *attributes = args->attributes;
  const mix_shape *from = &args->input_types[0].shape, *to = &args->output_types[0].shape;
  const int64_t element = (int64_t)mix_dtype_size(args->output_types[0].dtype), count = mix_shape_size(*to);
  if (count == 0) return;
  int cut = to->rank - 1;
  while (cut > 0 && from->dims[cut] == to->dims[cut]) cut--;
  int64_t run_length = 1, strides[MIX_MAX_RANK], stride = 1;
  for (int d = to->rank - 1; d >= 0; stride *= from->dims[d--]) strides[d] = stride;
  for (int d = cut; d < to->rank && d >= 0; d++) run_length *= to->dims[d];
  int64_t start = 0, begin, end;
  for (int d = 0; d < to->rank; d++) start += attributes->begin.dims[d] * strides[d];
  const int64_t runs = count / run_length;
  if (runs >= 2 * team->size) {
    mix_team_share(team, runs, 1, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
      int64_t at = start, rest = i;
      for (int d = cut - 1; d >= 0; rest /= to->dims[d--]) at += rest % to->dims[d] * strides[d];
      memcpy((char *)args->outputs[0] + i * run_length * element,
             (const char *)args->inputs[0] + at * element, (size_t)(run_length * element));
    }
    return;
  }
  mix_team_share(team, run_length, GRAIN, &begin, &end);
  for (int64_t i = 0; i < runs && begin < end; i++) {
    int64_t at = start + begin, rest = i;
    for (int d = cut - 1; d >= 0; rest /= to->dims[d--]) at += rest % to->dims[d] * strides[d];
    memcpy((char *)args->outputs[0] + (i * run_length + begin) * element,
           (const char *)args->inputs[0] + at * element, (size_t)((end - begin) * element));
  }
}
PLAIN_KERNEL(slice)
