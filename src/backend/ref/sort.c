/* argsort: a merge sort of places, which keeps the order of equal elements. */
#include "backend/ref/ref.h"

typedef struct rows {
  const void *data;
  mix_dtype dtype;
  bool descending;
} rows;

/* Does the element at b come before the one at a, which is in front of it? NaN is the largest. */
static bool comes_first(const rows *r, int64_t b, int64_t a) {
  const mix_ref_value x = mix_ref_load(r->data, r->dtype, r->descending ? a : b),
                      y = mix_ref_load(r->data, r->dtype, r->descending ? b : a);
  if (!mix_dtype_is_floating(r->dtype)) return x.integer < y.integer;
  return x.real == x.real && (y.real != y.real || x.real < y.real);
}

static void merge(const rows *r, int64_t row, const int32_t *from, int32_t *to, int64_t begin, int64_t middle,
                  int64_t end) {
  int64_t a = begin, b = middle;
  for (int64_t i = begin; i < end; i++) {
    const bool second = b < end && (a == middle || comes_first(r, row + from[b], row + from[a]));
    to[i] = from[second ? b++ : a++];
  }
}

static void sort_row(const rows *r, int64_t row, int64_t count, int32_t *places, int32_t *other) {
  for (int64_t i = 0; i < count; i++) places[i] = (int32_t)i;
  for (int64_t width = 1; width < count; width *= 2) {
    for (int64_t begin = 0; begin < count; begin += 2 * width) {
      const int64_t middle = begin + width < count ? begin + width : count,
                    end = middle + width < count ? middle + width : count;
      merge(r, row, places, other, begin, middle, end);
    }
    for (int64_t i = 0; i < count; i++) places[i] = other[i];
  }
}

static int64_t length_of(const mix_kernel_args *args) {
  const mix_shape shape = args->input_types[0].shape;
  return mix_shape_size(shape) ? shape.dims[shape.rank - 1] : 0;
}

static size_t argsort_workspace(const mix_kernel_args *args, int threads) {
  return (size_t)length_of(args) * sizeof(int32_t);
}

static void argsort_run(const mix_kernel_args *args, const mix_team *team) {
  const rows r = {args->inputs[0], args->input_types[0].dtype,
                  ((const mix_argsort_attributes *)args->attributes)->descending};
  const int64_t count = length_of(args), size = mix_shape_size(args->input_types[0].shape);
  int32_t *places = args->outputs[0];
  for (int64_t row = 0; row < size; row += count) sort_row(&r, row, count, places + row, args->workspace);
}

const mix_kernel mix_ref_argsort = {
    .name = "ref_argsort", .workspace = argsort_workspace, .serial = mix_ref_serial, .run = argsort_run};
