/* argmax and argmin along the last axis: the first position of the extreme. A NaN is more extreme than any
 * number. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"
#include <math.h>

enum { PART = 512, SHORT = 32 };

/* The position of the extreme among those of the n elements that are more extreme than *best, or -1. A NaN
 * ends the search. `first`: *best is not set yet. */
#define FIND(name, type, is_nan)                                                                             \
  static int64_t name(const type *x, int64_t n, bool smallest, bool first, type *best) {                     \
    int64_t found = -1;                                                                                      \
    for (int64_t i = 0; i < n; i++) {                                                                        \
      if (is_nan(x[i])) {                                                                                    \
        *best = x[i];                                                                                        \
        return i;                                                                                            \
      }                                                                                                      \
      if (first || (smallest ? x[i] < *best : x[i] > *best)) {                                               \
        first = false;                                                                                       \
        *best = x[i];                                                                                        \
        found = i;                                                                                           \
      }                                                                                                      \
    }                                                                                                        \
    return found;                                                                                            \
  }
#define IS_NAN(x) ((x) != (x))
#define NEVER(x) ((void)(x), false)
FIND(find_float, float, IS_NAN)
FIND(find_double, double, IS_NAN)
FIND(find_integer, int64_t, NEVER)

typedef struct row {
  const mix_vector *vector;
  mix_tile_load_function load;
  mix_tile_class class;
  mix_dtype dtype;
  int64_t element, n;
  bool smallest;
} row;

static int64_t position(const row *r, const char *source) {
  _Alignas(64) char tile[PART * 8 + MIX_TILE_PADDING];
  int64_t found = 0;
  float best_float = 0;
  double best_double = 0;
  int64_t best_integer = 0;
  for (int64_t i = 0; i < r->n; i += PART) {
    const int64_t n = r->n - i < PART ? r->n - i : PART;
    const void *x = source + i * r->element;
    int64_t at = -1;
    if (r->dtype != MIX_FLOAT32) {
      r->load(tile, x, n);
      x = tile;
    }
    if (r->class == MIX_TILE_FLOAT) {
      /* A part whose extreme is not better than the best so far is not searched. */
      const float extreme = n <= SHORT || i == 0 ? NAN
                            : r->smallest        ? r->vector->minimum(x, n)
                                                 : r->vector->maximum(x, n);
      const bool better = IS_NAN(extreme) || (r->smallest ? extreme < best_float : extreme > best_float);
      if (better) at = find_float(x, n, r->smallest, i == 0, &best_float);
      if (at >= 0 && IS_NAN(best_float)) return i + at;
    } else if (r->class == MIX_TILE_DOUBLE) {
      at = find_double(x, n, r->smallest, i == 0, &best_double);
      if (at >= 0 && IS_NAN(best_double)) return i + at;
    } else {
      at = find_integer(x, n, r->smallest, i == 0, &best_integer);
    }
    if (at >= 0) found = i + at;
  }
  return found;
}

static void extremum_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                         bool smallest) {
  const mix_type *x = &args->input_types[0];
  const row r = {.vector = vector,
                 .load = mix_tile_load_of(vector, x->dtype),
                 .class = mix_tile_class_of(x->dtype),
                 .dtype = x->dtype,
                 .element = (int64_t)mix_dtype_size(x->dtype),
                 .n = x->shape.dims[x->shape.rank - 1],
                 .smallest = smallest};
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(x->shape) / r.n, r.n < PART ? PART / r.n : 1, &begin, &end);
  for (int64_t i = begin; i < end; i++)
    mix_store_integer(args->outputs[0], args->output_types[0].dtype, i,
                      position(&r, (const char *)args->inputs[0] + i * r.n * r.element));
}
static void argmax_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  extremum_run(args, team, vector, false);
}
static void argmin_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  extremum_run(args, team, vector, true);
}

static const char *argmax_unsupported_reason(const mix_kernel_args *args) {
  const mix_type *x = &args->input_types[0];
  if (((const mix_axis_attributes *)args->attributes)->axis != x->shape.rank - 1)
    return "an axis that is not the last";
  if (x->dtype == MIX_BOOL) return "bool";
  return mix_shape_size(x->shape) == 0 ? "an empty operand" : NULL;
}
static bool serial(const mix_kernel_args *args) {
  return 4 * mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}

MIX_CPU_KERNELS(argmax, "argmax", .unsupported_reason = argmax_unsupported_reason, .serial = serial)
MIX_CPU_KERNELS(argmin, "argmin", .unsupported_reason = argmax_unsupported_reason, .serial = serial)
