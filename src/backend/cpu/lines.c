/* Every transpose and every broadcast, by lines of the result along its last axis, whose elements lie at
 * equal distances in x. */
#include "backend/cpu/kernel_rows.h"
#include <string.h>

enum { GRAIN = 512 }; /* elements */

/* Elements of x that lie `stride` apart. */
#define GATHER(type)                                                                                         \
  static void gather_##type(void *result, const void *source, int64_t count, int64_t stride) {               \
    type *restrict to = result;                                                                              \
    const type *restrict from = source;                                                                      \
    for (int64_t i = 0; i < count; i++) to[i] = from[i * stride];                                            \
  }
GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)

static void repeat(char *to, const char *from, int64_t count, int64_t element) {
  const int64_t bytes = count * element;
  memcpy(to, from, (size_t)element);
  for (int64_t done = element; done < bytes; done *= 2)
    memcpy(to + done, to, (size_t)(done < bytes - done ? done : bytes - done));
}

static void copy_line(char *to, const char *from, int64_t count, int64_t stride, int64_t element) {
  if (stride == 0)
    repeat(to, from, count, element);
  else if (stride == 1)
    memcpy(to, from, (size_t)(count * element));
  else if (element == 1)
    gather_uint8_t(to, from, count, stride);
  else if (element == 2)
    gather_uint16_t(to, from, count, stride);
  else if (element == 4)
    gather_uint32_t(to, from, count, stride);
  else
    gather_uint64_t(to, from, count, stride);
}

/* The distance in x between neighbours along each axis of the result. */
static void copy_lines(const mix_kernel_args *args, const mix_team *team, const int64_t *strides) {
  const mix_shape *to = &args->output_types[0].shape;
  const int64_t element = (int64_t)mix_dtype_size(args->output_types[0].dtype), count = mix_shape_size(*to);
  int last = to->rank - 1;
  if (count == 0) return;
  while (last > 0 && to->dims[last] == 1) last--;
  int64_t length = last < 0 ? 1 : to->dims[last];
  const int64_t stride = last < 0 ? 1 : strides[last];
  /* A line goes on through axes that it runs through in x too. */
  while (last > 0 && strides[last - 1] == strides[last] * to->dims[last]) length *= to->dims[--last];
  const int64_t lines = count / length;
  int64_t first = 0, end_line = lines, begin = 0, end = length;
  if (lines >= 2 * team->size)
    mix_team_share(team, lines, 1, &first, &end_line);
  else
    mix_team_share(team, length, GRAIN, &begin, &end);
  for (int64_t line = first; line < end_line && begin < end; line++) {
    int64_t at = begin * stride, rest = line;
    for (int d = last - 1; d >= 0; rest /= to->dims[d--]) at += rest % to->dims[d] * strides[d];
    copy_line((char *)args->outputs[0] + (line * length + begin) * element,
              (const char *)args->inputs[0] + at * element, end - begin, stride, element);
  }
}

static void strides_of(const mix_shape *shape, int64_t *strides) {
  int64_t stride = 1;
  for (int d = shape->rank - 1; d >= 0; stride *= shape->dims[d--]) strides[d] = stride;
}

static void transpose_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_transpose_attributes *attributes = args->attributes;
  int64_t of_x[MIX_MAX_RANK], strides[MIX_MAX_RANK];
  strides_of(&args->input_types[0].shape, of_x);
  for (int d = 0; d < args->output_types[0].shape.rank; d++) strides[d] = of_x[attributes->permutation[d]];
  copy_lines(args, team, strides);
}

/* Axes of x are the last of the result; one of size 1 is repeated. */
static void broadcast_to_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_shape *x = &args->input_types[0].shape;
  const int added = args->output_types[0].shape.rank - x->rank;
  int64_t of_x[MIX_MAX_RANK], strides[MIX_MAX_RANK] = {0};
  strides_of(x, of_x);
  for (int d = 0; d < x->rank; d++) strides[d + added] = x->dims[d] == 1 ? 0 : of_x[d];
  copy_lines(args, team, strides);
}

static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL / 4;
}

const mix_kernel mix_cpu_transpose_lines = {
    .name = "transpose_lines", .run = transpose_run, .serial = serial};
static const mix_kernel broadcast_kernel = {
    .name = "broadcast_lines", .run = broadcast_to_run, .serial = serial};
const mix_kernel *const mix_cpu_broadcast_to_kernels[] = {&broadcast_kernel, NULL};
