/* Pooling, window by window. */
#include "backend/ref/ref.h"
#include "ops/pooling.h"
#include <string.h>

/* Of the op that args describe: of x and y, wherever they are. */
static mix_pool pool_of(const mix_kernel_args *args, const mix_type *x, const mix_type *y) {
  return mix_pool_of(args->attributes, x->shape, y->shape);
}

/* Is a less than b? */
static bool is_less(mix_ref_value a, mix_ref_value b, mix_dtype dtype) {
  return mix_dtype_is_floating(dtype) ? a.real < b.real : a.integer < b.integer;
}

/* A NaN is the maximum. */
static void max_pool_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_pool p = pool_of(args, &args->input_types[0], &args->output_types[0]);
  int64_t at[MIX_POOL_AXES];
  for (int64_t w = 0; w < p.batch * p.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&p, w % p.out_cells);
    for (int64_t c = 0; c < p.channels; c++) {
      mix_ref_value max = {0};
      bool first = true;
      for (int64_t i = mix_pool_first(&p, &range, at); i >= 0;
           i = mix_pool_next(&p, &range, at), first = false) {
        const int64_t element = (w / p.out_cells * p.in_cells + i) * p.channels + c;
        const mix_ref_value x = mix_ref_load(args->inputs[0], dtype, element);
        if (first || is_less(max, x, dtype) || x.real != x.real) max = x;
      }
      mix_ref_store(args->outputs[0], dtype, w * p.channels + c, max);
    }
  }
}

typedef void visit_function(void *context, int64_t element);

/* Visits the elements of x, counted in x, that are not less than the maximum of their window: the first one,
 * or each. */
static void visit_largest(const mix_kernel_args *args, const mix_pool *p, int64_t w, int64_t c,
                          visit_function *visit, void *context) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_pool_range range = mix_pool_range_of(p, w % p->out_cells);
  const mix_ref_value max = mix_ref_load(args->inputs[1], dtype, w * p->channels + c);
  int64_t at[MIX_POOL_AXES];
  for (int64_t i = mix_pool_first(p, &range, at); i >= 0; i = mix_pool_next(p, &range, at)) {
    const int64_t element = (w / p->out_cells * p->in_cells + i) * p->channels + c;
    if (is_less(mix_ref_load(args->inputs[0], dtype, element), max, dtype)) continue;
    visit(context, element);
    if (!mix_pool_gives_each(args->input_types[0].shape)) return;
  }
}

static size_t sums_bytes(const mix_kernel_args *args, int threads) {
  return (size_t)mix_shape_size(args->output_types[0].shape) * sizeof(double);
}

static void store_sums(const mix_kernel_args *args) {
  const double *sums = args->workspace;
  const int64_t count = mix_shape_size(args->output_types[0].shape);
  const mix_dtype dtype = args->output_types[0].dtype;
  for (int64_t i = 0; i < count; i++)
    mix_ref_store(args->outputs[0], dtype, i, mix_ref_round((mix_ref_value){.real = sums[i]}, dtype));
}

typedef struct share {
  double *sums, value;
} share;
static void add_share(void *context, int64_t element) {
  const share *s = context;
  s->sums[element] += s->value;
}

static void max_pool_grad_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_pool p = pool_of(args, &args->input_types[0], &args->input_types[1]);
  double *sums = args->workspace;
  memset(sums, 0, sums_bytes(args, 1));
  for (int64_t w = 0; w < p.batch * p.out_cells; w++)
    for (int64_t c = 0; c < p.channels; c++) {
      share s = {sums, mix_ref_load(args->inputs[2], args->input_types[2].dtype, w * p.channels + c).real};
      visit_largest(args, &p, w, c, add_share, &s);
    }
  store_sums(args);
}

typedef struct reading {
  const mix_kernel_args *args;
  double sum;
} reading;
static void read_element(void *context, int64_t element) {
  reading *r = context;
  r->sum += mix_ref_load(r->args->inputs[2], r->args->input_types[2].dtype, element).real;
}

static void max_pool_grad_grad_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_pool p = pool_of(args, &args->input_types[0], &args->output_types[0]);
  for (int64_t w = 0; w < p.batch * p.out_cells; w++)
    for (int64_t c = 0; c < p.channels; c++) {
      reading r = {.args = args};
      visit_largest(args, &p, w, c, read_element, &r);
      mix_ref_store(args->outputs[0], dtype, w * p.channels + c,
                    mix_ref_round((mix_ref_value){.real = r.sum}, dtype));
    }
}

static void avg_pool_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_pool p = pool_of(args, &args->input_types[0], &args->output_types[0]);
  int64_t at[MIX_POOL_AXES];
  for (int64_t w = 0; w < p.batch * p.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&p, w % p.out_cells);
    for (int64_t c = 0; c < p.channels; c++) {
      double sum = 0;
      for (int64_t i = mix_pool_first(&p, &range, at); i >= 0; i = mix_pool_next(&p, &range, at))
        sum += mix_ref_load(args->inputs[0], dtype, (w / p.out_cells * p.in_cells + i) * p.channels + c).real;
      const mix_ref_value mean = {.real = sum / (double)range.count};
      mix_ref_store(args->outputs[0], dtype, w * p.channels + c, mix_ref_round(mean, dtype));
    }
  }
}

static void avg_pool_grad_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_pool p = pool_of(args, &args->output_types[0], &args->input_types[0]);
  double *sums = args->workspace;
  int64_t at[MIX_POOL_AXES];
  memset(sums, 0, sums_bytes(args, 1));
  for (int64_t w = 0; w < p.batch * p.out_cells; w++) {
    const mix_pool_range range = mix_pool_range_of(&p, w % p.out_cells);
    for (int64_t i = mix_pool_first(&p, &range, at); i >= 0; i = mix_pool_next(&p, &range, at))
      for (int64_t c = 0; c < p.channels; c++)
        sums[(w / p.out_cells * p.in_cells + i) * p.channels + c] +=
            mix_ref_load(args->inputs[0], args->input_types[0].dtype, w * p.channels + c).real /
            (double)range.count;
  }
  store_sums(args);
}

#define KERNEL(op, ...)                                                                                      \
  const mix_kernel mix_ref_##op = {                                                                          \
      .name = "ref_" #op, .serial = mix_ref_serial, .run = op##_run, __VA_ARGS__};
KERNEL(max_pool, .workspace = NULL)
KERNEL(max_pool_grad, .workspace = sums_bytes)
KERNEL(max_pool_grad_grad, .workspace = NULL)
KERNEL(avg_pool, .workspace = NULL)
KERNEL(avg_pool_grad, .workspace = sums_bytes)
