/* Ops that copy contiguous runs of elements, and fill. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"

enum { GRAIN = 512 }; /* elements, as in the tile executor, so that no barrier is needed between the steps */

static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL;
}
static bool copy_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  *count = mix_shape_size(args->output_types[0].shape);
  *grain = GRAIN;
  return true;
}

#define PLAIN_KERNEL(op, ...)                                                                                \
  static const mix_kernel op##_kernel = {                                                                    \
      .name = #op "_copy", .run = op##_run, .serial = serial, __VA_ARGS__};                                  \
  const mix_kernel *const mix_cpu_##op##_kernels[] = {&op##_kernel, NULL};

/* ---- reshape: copies, unless operand and result are the same memory ---- */

static void reshape_run(const mix_kernel_args *args, const mix_team *team) {
  const int64_t element = (int64_t)mix_dtype_size(args->output_types[0].dtype);
  int64_t begin, end;
  if (args->inputs[0] == args->outputs[0]) return;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), GRAIN, &begin, &end);
  if (begin < end)
    memcpy((char *)args->outputs[0] + begin * element, (const char *)args->inputs[0] + begin * element,
           (size_t)((end - begin) * element));
}
PLAIN_KERNEL(reshape, .share = copy_share)

/* ---- fill ---- */

static void fill_elements(char *first, int64_t count, mix_dtype dtype, double value) {
  const int64_t element = (int64_t)mix_dtype_size(dtype), bytes = count * element;
  if (count <= 0) return;
  if (mix_dtype_is_floating(dtype) || dtype == MIX_BOOL)
    mix_store_double(first, dtype, 0, value);
  else
    mix_store_integer(first, dtype, 0, mix_f64_to_i64(value));
  /* Copy the filled part, doubling it each time. */
  for (int64_t done = element; done < bytes; done *= 2)
    memcpy(first + done, first, (size_t)(done < bytes - done ? done : bytes - done));
}

static void fill_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_shape_attributes *attributes = args->attributes;
  const mix_dtype dtype = args->output_types[0].dtype;
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), GRAIN, &begin, &end);
  fill_elements((char *)args->outputs[0] + begin * (int64_t)mix_dtype_size(dtype), end - begin, dtype,
                attributes->value);
}
PLAIN_KERNEL(fill, .share = copy_share)

/* ---- concat: each operand gives one run for each index of the dimensions before the axis ---- */

static void concat_run(const mix_kernel_args *args, const mix_team *team) {
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

static void slice_run(const mix_kernel_args *args, const mix_team *team) {
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

/* ---- pad: rows of the result, along the last axis that is padded and all axes after it ---- */

typedef struct padding {
  int axis; /* the last that is padded */
  /* Elements: of a row of the result, before x in it, and of a row of x. */
  int64_t row, before, inside;
} padding;

static padding padding_of(const mix_kernel_args *args) {
  const mix_shape *from = &args->input_types[0].shape, *to = &args->output_types[0].shape;
  padding p = {.axis = to->rank - 1};
  int64_t inner = 1;
  while (p.axis > 0 && from->dims[p.axis] == to->dims[p.axis]) inner *= to->dims[p.axis--];
  p.row = p.axis < 0 ? 1 : to->dims[p.axis] * inner;
  p.inside = p.axis < 0 ? 1 : from->dims[p.axis] * inner;
  p.before = p.axis < 0 ? 0 : ((const mix_pad_attributes *)args->attributes)->before.dims[p.axis] * inner;
  return p;
}

/* The row of x in a row of the result; -1: there is none. */
static int64_t row_inside(const mix_kernel_args *args, const padding *p, int64_t row) {
  const mix_pad_attributes *attributes = args->attributes;
  const mix_shape *from = &args->input_types[0].shape, *to = &args->output_types[0].shape;
  int64_t found = 0, stride = 1;
  for (int d = p->axis - 1; d >= 0; stride *= from->dims[d], row /= to->dims[d--]) {
    const int64_t index = row % to->dims[d] - attributes->before.dims[d];
    if (index < 0 || index >= from->dims[d]) return -1;
    found += index * stride;
  }
  return found;
}

/* Elements [begin, end) of a row of the result. */
static void pad_part(const mix_kernel_args *args, const padding *p, int64_t row, int64_t begin, int64_t end) {
  const double value = ((const mix_pad_attributes *)args->attributes)->value;
  const mix_dtype dtype = args->output_types[0].dtype;
  const int64_t element = (int64_t)mix_dtype_size(dtype), source = row_inside(args, p, row);
  char *to = (char *)args->outputs[0] + row * p->row * element;
  int64_t first = source < 0 || p->before > end ? end : p->before > begin ? p->before : begin;
  int64_t last = p->before + p->inside < end ? p->before + p->inside : end;
  if (last < first) last = first;
  fill_elements(to + begin * element, first - begin, dtype, value);
  if (first < last)
    memcpy(to + first * element,
           (const char *)args->inputs[0] + (source * p->inside + first - p->before) * element,
           (size_t)((last - first) * element));
  fill_elements(to + last * element, end - last, dtype, value);
}

static void pad_run(const mix_kernel_args *args, const mix_team *team) {
  const padding p = padding_of(args);
  const int64_t count = mix_shape_size(args->output_types[0].shape), rows = count ? count / p.row : 0;
  const bool by_rows = rows >= 2 * team->size;
  int64_t first = 0, last = rows, begin = 0, end = p.row;
  if (by_rows)
    mix_team_share(team, rows, 1, &first, &last);
  else
    mix_team_share(team, p.row, GRAIN, &begin, &end);
  for (int64_t row = first; row < last && begin < end; row++) pad_part(args, &p, row, begin, end);
}
PLAIN_KERNEL(pad)
