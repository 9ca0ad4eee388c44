/* Reductions over axes: each result has one accumulator, which is finished once. Also add_n, argmax, argmin
 * and all_finite. */
#include "backend/ref/ref.h"
#include "tensor/convert.h"
#include <math.h>

/* The accumulators are in the workspace, one for each element of the result. */
typedef struct reduction {
  mix_ref_value (*start)(mix_dtype dtype);
  mix_ref_value (*fold)(mix_ref_value sum, mix_ref_value x);
  mix_ref_value (*finish)(mix_ref_value sum, int64_t count, mix_dtype dtype); /* NULL: unchanged */
} reduction;

static mix_ref_value zero(mix_dtype dtype) { return (mix_ref_value){0}; }
static mix_ref_value one(mix_dtype dtype) { return (mix_ref_value){1, 1}; }

static mix_ref_value lowest(mix_dtype dtype) { return (mix_ref_value){-INFINITY, mix_dtype_lowest(dtype)}; }
static mix_ref_value highest(mix_dtype dtype) { return (mix_ref_value){INFINITY, mix_dtype_highest(dtype)}; }

static mix_ref_value fold_sum(mix_ref_value sum, mix_ref_value x) {
  return (mix_ref_value){sum.real + x.real, (int64_t)((uint64_t)sum.integer + (uint64_t)x.integer)};
}
static mix_ref_value fold_prod(mix_ref_value sum, mix_ref_value x) {
  return (mix_ref_value){sum.real * x.real, (int64_t)((uint64_t)sum.integer * (uint64_t)x.integer)};
}
/* NaN propagates. */
static mix_ref_value fold_max(mix_ref_value sum, mix_ref_value x) {
  return (mix_ref_value){sum.real != sum.real || sum.real > x.real ? sum.real : x.real,
                         sum.integer > x.integer ? sum.integer : x.integer};
}
static mix_ref_value fold_min(mix_ref_value sum, mix_ref_value x) {
  return (mix_ref_value){sum.real != sum.real || sum.real < x.real ? sum.real : x.real,
                         sum.integer < x.integer ? sum.integer : x.integer};
}

/* The mean of integers rounds toward zero, as in TensorFlow. The mean of no elements is NaN, or 0 for
 * integers. */
static mix_ref_value finish_mean(mix_ref_value sum, int64_t count, mix_dtype dtype) {
  if (mix_dtype_is_floating(dtype)) return (mix_ref_value){.real = sum.real / (double)count};
  return (mix_ref_value){.integer = count ? sum.integer / count : 0};
}

static const reduction sum_reduction = {zero, fold_sum, NULL}, mean_reduction = {zero, fold_sum, finish_mean},
                       prod_reduction = {one, fold_prod, NULL}, max_reduction = {lowest, fold_max, NULL},
                       min_reduction = {highest, fold_min, NULL};

static size_t accumulator_bytes(const mix_kernel_args *args, int threads) {
  return (size_t)mix_shape_size(args->output_types[0].shape) * sizeof(mix_ref_value);
}

static void reduce_axes(const mix_kernel_args *args, const reduction *how, int axis_count, const int *axes) {
  mix_shape shape = args->input_types[0].shape;
  mix_dtype dtype = args->input_types[0].dtype;
  int64_t results = mix_shape_size(args->output_types[0].shape), count = mix_shape_size(shape);
  int64_t kept[MIX_MAX_RANK], index[MIX_MAX_RANK];
  for (int d = 0; d < shape.rank; d++) kept[d] = shape.dims[d];
  for (int i = 0; i < axis_count; i++) kept[axes[i]] = 1;
  mix_ref_value *sums = args->workspace;
  for (int64_t i = 0; i < results; i++) sums[i] = how->start(dtype);
  for (int64_t i = 0; i < count; i++) {
    mix_ref_unravel(i, shape.rank, shape.dims, index);
    for (int k = 0; k < axis_count; k++) index[axes[k]] = 0;
    mix_ref_value *sum = &sums[mix_ref_ravel(shape.rank, kept, index)];
    *sum = how->fold(*sum, mix_ref_load(args->inputs[0], dtype, i));
  }
  int64_t folded = 1;
  for (int i = 0; i < axis_count; i++) folded *= shape.dims[axes[i]];
  for (int64_t i = 0; i < results; i++) {
    mix_ref_value result = how->finish ? how->finish(sums[i], folded, dtype) : sums[i];
    mix_ref_store(args->outputs[0], dtype, i, mix_ref_round(result, dtype));
  }
}

static void reduce(const mix_kernel_args *args, const reduction *how) {
  const mix_reduce_attributes *attributes = args->attributes;
  reduce_axes(args, how, attributes->axis_count, attributes->axes);
}

static void sum_run(const mix_kernel_args *args, const mix_team *team) { reduce(args, &sum_reduction); }
static void mean_run(const mix_kernel_args *args, const mix_team *team) { reduce(args, &mean_reduction); }
static void prod_run(const mix_kernel_args *args, const mix_team *team) { reduce(args, &prod_reduction); }
static void max_run(const mix_kernel_args *args, const mix_team *team) { reduce(args, &max_reduction); }
static void min_run(const mix_kernel_args *args, const mix_team *team) { reduce(args, &min_reduction); }

/* (..., units) -> (units). */
static void bias_add_grad_run(const mix_kernel_args *args, const mix_team *team) {
  static const int leading[] = {0, 1, 2, 3, 4, 5, 6, 7};
  reduce_axes(args, &sum_reduction, args->input_types[0].shape.rank - 1, leading);
}

#define KERNEL(kernel_name, run_function)                                                                    \
  const mix_kernel mix_ref_##kernel_name = {.name = "ref_" #kernel_name,                                     \
                                            .workspace = accumulator_bytes,                                  \
                                            .serial = mix_ref_serial,                                        \
                                            .run = run_function}
KERNEL(reduce_sum, sum_run);
KERNEL(reduce_mean, mean_run);
KERNEL(reduce_prod, prod_run);
KERNEL(reduce_max, max_run);
KERNEL(reduce_min, min_run);
KERNEL(reduce_all, min_run); /* bool is 0 or 1 */
KERNEL(reduce_any, max_run);
KERNEL(bias_add_grad, bias_add_grad_run);

/* ---- add_n, argmax and argmin, all_finite ---- */

static void add_n_run(const mix_kernel_args *args, const mix_team *team) {
  mix_dtype dtype = args->output_types[0].dtype,
            wide = dtype == MIX_FLOAT16 || dtype == MIX_BFLOAT16 ? MIX_FLOAT32 : dtype;
  int64_t count = mix_shape_size(args->output_types[0].shape);
  for (int64_t i = 0; i < count; i++) {
    mix_ref_value sum = mix_ref_load(args->inputs[0], dtype, i);
    for (int k = 1; k < args->input_count; k++) /* rounds each sum to the dtype of accumulation */
      sum = mix_ref_round(fold_sum(sum, mix_ref_load(args->inputs[k], dtype, i)), wide);
    mix_ref_store(args->outputs[0], dtype, i, mix_ref_round(sum, dtype));
  }
}

static bool above(mix_ref_value x, mix_ref_value best) {
  return x.real > best.real || x.integer > best.integer;
}
static bool below(mix_ref_value x, mix_ref_value best) {
  return x.real < best.real || x.integer < best.integer;
}

/* The position of the first extreme along the axis, or of the first NaN, if there is one. */
static void position(const mix_kernel_args *args, bool (*better)(mix_ref_value, mix_ref_value)) {
  const mix_axis_attributes *attributes = args->attributes;
  mix_shape shape = args->input_types[0].shape;
  int64_t inner = 1, length = shape.dims[attributes->axis],
          count = mix_shape_size(args->output_types[0].shape);
  for (int d = attributes->axis + 1; d < shape.rank; d++) inner *= shape.dims[d];
  for (int64_t i = 0; i < count; i++) {
    int64_t first = i / inner * length * inner + i % inner, found = 0;
    mix_ref_value best = mix_ref_load(args->inputs[0], args->input_types[0].dtype, first);
    for (int64_t k = 1; k < length && best.real == best.real; k++) {
      mix_ref_value x = mix_ref_load(args->inputs[0], args->input_types[0].dtype, first + k * inner);
      if (x.real == x.real && !better(x, best)) continue;
      best = x;
      found = k;
    }
    mix_ref_store(args->outputs[0], args->output_types[0].dtype, i, (mix_ref_value){.integer = found});
  }
}

static void argmax_run(const mix_kernel_args *args, const mix_team *team) { position(args, above); }
static void argmin_run(const mix_kernel_args *args, const mix_team *team) { position(args, below); }

static void all_finite_run(const mix_kernel_args *args, const mix_team *team) {
  int64_t count = mix_shape_size(args->input_types[0].shape);
  bool finite = true;
  for (int64_t i = 0; i < count; i++)
    finite = finite && isfinite(mix_ref_load(args->inputs[0], args->input_types[0].dtype, i).real);
  *(bool *)args->outputs[0] = finite;
}

#define PLAIN_KERNEL(kernel_name)                                                                            \
  const mix_kernel mix_ref_##kernel_name = {                                                                 \
      .name = "ref_" #kernel_name, .serial = mix_ref_serial, .run = kernel_name##_run}
PLAIN_KERNEL(add_n);
PLAIN_KERNEL(argmax);
PLAIN_KERNEL(argmin);
PLAIN_KERNEL(all_finite);
