/* Softmax, log-softmax and the cross-entropies over the last axis, in float32. The vector functions take
 * short rows in blocks. Rows longer than a buffer are processed in pieces, in three passes: largest, sum,
 * result. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"
#include <math.h>

enum { BUFFER = 2048, MAX_ROWS = 256 };

typedef struct buffers {
  _Alignas(64) float logits[BUFFER + 16], labels[BUFFER + 16], result[BUFFER + 16], losses[MAX_ROWS];
  int64_t classes[MAX_ROWS]; /* labels of the sparse form */
} buffers;

typedef struct rows {
  const mix_vector *vector;
  mix_dtype dtype;
  int64_t element, n, begin, end; /* bytes, classes, rows of this thread */
} rows;

/* The grain of the tile executor for short rows, so that no barrier is needed between. */
static int64_t grain_of(int64_t n) { return n < 512 ? 512 / n : 1; }

static rows rows_of(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  const mix_type *logits = &args->input_types[0];
  rows r = {.vector = vector, .dtype = logits->dtype, .element = (int64_t)mix_dtype_size(logits->dtype)};
  r.n = logits->shape.dims[logits->shape.rank - 1];
  mix_team_share(team, mix_shape_size(logits->shape) / r.n, grain_of(r.n), &r.begin, &r.end);
  return r;
}
static int64_t rows_of_block(const rows *r) { return BUFFER / r->n < MAX_ROWS ? BUFFER / r->n : MAX_ROWS; }

/* Elements as float: float32 in place, other dtypes converted into the buffer. */
static const float *as_float(const rows *r, const void *source, int64_t first, int64_t count, float *buffer) {
  const char *p = (const char *)source + first * r->element;
  if (r->dtype == MIX_FLOAT32) return (const float *)(const void *)p;
  r->vector->load[r->dtype](buffer, p, count);
  return buffer;
}
static float *result_buffer(const rows *r, void *result, int64_t first, float *buffer) {
  return r->dtype == MIX_FLOAT32 ? (float *)result + first : buffer;
}
static void store_converted(const rows *r, void *result, int64_t first, int64_t count, const float *buffer) {
  if (r->dtype != MIX_FLOAT32) r->vector->store[r->dtype]((char *)result + first * r->element, buffer, count);
}

/* ---- rows longer than a buffer ---- */

typedef struct norm {
  float largest, sum;
} norm;

static norm normalise(const rows *r, const void *logits, int64_t first, float *buffer) {
  norm result = {-INFINITY, 0};
  double sum = 0;
  for (int64_t i = 0; i < r->n; i += BUFFER) {
    const int64_t m = r->n - i < BUFFER ? r->n - i : BUFFER;
    const float largest = r->vector->maximum(as_float(r, logits, first + i, m, buffer), m);
    if (largest != largest || largest > result.largest) result.largest = largest;
    if (largest != largest) break;
  }
  for (int64_t i = 0; i < r->n; i += BUFFER) {
    const int64_t m = r->n - i < BUFFER ? r->n - i : BUFFER;
    sum += r->vector->exp_sum(NULL, as_float(r, logits, first + i, m, buffer), result.largest, m);
  }
  result.sum = (float)sum;
  return result;
}

/* The softmax of m elements of a row. */
static void softmax_piece(const rows *r, float *result, const float *x, norm norm, int64_t m) {
  r->vector->exp_sum(result, x, norm.largest, m);
  for (int64_t i = 0; i < m; i++) result[i] /= norm.sum;
}

static void long_softmax(const rows *r, const mix_kernel_args *args, buffers *b, bool logarithm) {
  for (int64_t row = r->begin; row < r->end; row++) {
    const norm norm = normalise(r, args->inputs[0], row * r->n, b->logits);
    const float log_sum = logf(norm.sum);
    for (int64_t i = 0; i < r->n; i += BUFFER) {
      const int64_t m = r->n - i < BUFFER ? r->n - i : BUFFER, first = row * r->n + i;
      const float *x = as_float(r, args->inputs[0], first, m, b->logits);
      float *y = result_buffer(r, args->outputs[0], first, b->result);
      if (!logarithm)
        softmax_piece(r, y, x, norm, m);
      else
        for (int64_t j = 0; j < m; j++) y[j] = (x[j] - norm.largest) - log_sum;
      store_converted(r, args->outputs[0], first, m, y);
    }
  }
}

/* ---- softmax and log-softmax ---- */

static void softmax_run_rows(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector,
                             mix_softmax_kind kind) {
  buffers b;
  const rows r = rows_of(args, team, vector);
  if (r.n > BUFFER) {
    long_softmax(&r, args, &b, kind == MIX_ROWS_LOG_SOFTMAX);
    return;
  }
  const int64_t block = rows_of_block(&r);
  for (int64_t row = r.begin; row < r.end; row += block) {
    const int64_t count = r.end - row < block ? r.end - row : block, first = row * r.n;
    const float *x = as_float(&r, args->inputs[0], first, count * r.n, b.logits);
    float *y = result_buffer(&r, args->outputs[0], first, b.result);
    vector->softmax_rows(y, x, count, r.n, kind);
    store_converted(&r, args->outputs[0], first, count * r.n, y);
  }
}
static void softmax_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  softmax_run_rows(args, team, vector, MIX_ROWS_SOFTMAX);
}
static void log_softmax_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  softmax_run_rows(args, team, vector, MIX_ROWS_LOG_SOFTMAX);
}

/* ---- cross-entropies: losses (...) and backprop (..., classes) in one pass ---- */

static void store_losses(const rows *r, void *losses, int64_t row, int64_t count, const float *buffer) {
  r->vector->store[r->dtype]((char *)losses + row * r->element, buffer, count);
}

static void long_cross_entropy(const rows *r, const mix_kernel_args *args, buffers *b) {
  for (int64_t row = r->begin; row < r->end; row++) {
    const norm norm = normalise(r, args->inputs[0], row * r->n, b->logits);
    const float log_sum = logf(norm.sum);
    double loss = 0;
    for (int64_t i = 0; i < r->n; i += BUFFER) {
      const int64_t m = r->n - i < BUFFER ? r->n - i : BUFFER, first = row * r->n + i;
      const float *x = as_float(r, args->inputs[0], first, m, b->logits),
                  *label = as_float(r, args->inputs[1], first, m, b->labels);
      float *y = b->result;
      for (int64_t j = 0; j < m; j++) y[j] = label[j] * (log_sum - (x[j] - norm.largest));
      loss += r->vector->sum(y, m);
      softmax_piece(r, y, x, norm, m);
      for (int64_t j = 0; j < m; j++) y[j] -= label[j];
      r->vector->store[r->dtype]((char *)args->outputs[1] + first * r->element, y, m);
    }
    b->losses[0] = (float)loss;
    store_losses(r, args->outputs[0], row, 1, b->losses);
  }
}

static void softmax_cross_entropy_run(const mix_kernel_args *args, const mix_team *team,
                                      const mix_vector *vector) {
  buffers b;
  const rows r = rows_of(args, team, vector);
  if (r.n > BUFFER) {
    long_cross_entropy(&r, args, &b);
    return;
  }
  const int64_t block = rows_of_block(&r);
  for (int64_t row = r.begin; row < r.end; row += block) {
    const int64_t count = r.end - row < block ? r.end - row : block, first = row * r.n;
    const float *x = as_float(&r, args->inputs[0], first, count * r.n, b.logits);
    const float *labels = as_float(&r, args->inputs[1], first, count * r.n, b.labels);
    /* Through the buffer, because backprop may be the memory of the logits or the labels. */
    vector->cross_entropy_rows(b.losses, b.result, x, labels, count, r.n);
    vector->store[r.dtype]((char *)args->outputs[1] + first * r.element, b.result, count * r.n);
    store_losses(&r, args->outputs[0], row, count, b.losses);
  }
}

static void fail_first_label(const mix_kernel_args *args, int64_t row, const int64_t *labels,
                             int64_t classes) {
  while (*labels >= 0 && *labels < classes) labels++, row++;
  mix_kernel_fail_label(args, row, *labels, classes);
}

static void long_sparse_cross_entropy(const rows *r, const mix_kernel_args *args, buffers *b) {
  for (int64_t row = r->begin; row < r->end; row++) {
    const int64_t label = mix_load_integer(args->inputs[1], args->input_types[1].dtype, row);
    const bool valid = label >= 0 && label < r->n;
    if (!valid) mix_kernel_fail_label(args, row, label, r->n);
    const norm norm = normalise(r, args->inputs[0], row * r->n, b->logits);
    b->losses[0] = valid ? logf(norm.sum) - (*as_float(r, args->inputs[0], row * r->n + label, 1, b->logits) -
                                             norm.largest)
                         : NAN;
    for (int64_t i = 0; i < r->n; i += BUFFER) {
      const int64_t m = r->n - i < BUFFER ? r->n - i : BUFFER, first = row * r->n + i;
      const float *x = as_float(r, args->inputs[0], first, m, b->logits);
      float *y = result_buffer(r, args->outputs[1], first, b->result);
      softmax_piece(r, y, x, norm, m);
      if (label >= i && label < i + m) y[label - i] -= 1.0f;
      for (int64_t j = 0; j < m && !valid; j++) y[j] = NAN;
      store_converted(r, args->outputs[1], first, m, y);
    }
    store_losses(r, args->outputs[0], row, 1, b->losses);
  }
}

static void sparse_softmax_cross_entropy_run(const mix_kernel_args *args, const mix_team *team,
                                             const mix_vector *vector) {
  buffers b;
  const rows r = rows_of(args, team, vector);
  if (r.n > BUFFER) {
    long_sparse_cross_entropy(&r, args, &b);
    return;
  }
  const mix_dtype labels = args->input_types[1].dtype;
  const int64_t block = rows_of_block(&r), label_size = (int64_t)mix_dtype_size(labels);
  const int64_t elements = mix_shape_size(args->input_types[0].shape);
  const mix_tile_load_function load_labels = mix_tile_load_of(vector, labels);
  for (int64_t row = r.begin; row < r.end; row += block) {
    const int64_t count = r.end - row < block ? r.end - row : block, first = row * r.n;
    const float *x = as_float(&r, args->inputs[0], first, count * r.n, b.logits);
    float *y = result_buffer(&r, args->outputs[1], first, b.result);
    load_labels(b.classes, (const char *)args->inputs[1] + row * label_size, count);
    if (!vector->sparse_cross_entropy_rows(b.losses, y, x, b.classes, count, r.n,
                                           elements - elements % 8 - first))
      fail_first_label(args, row, b.classes, r.n);
    store_converted(&r, args->outputs[1], first, count * r.n, y);
    store_losses(&r, args->outputs[0], row, count, b.losses);
  }
}

/* ---- the kernels ---- */

static const char *softmax_unsupported_reason(const mix_kernel_args *args) {
  const mix_type *logits = &args->input_types[0];
  if (mix_tile_class_of(logits->dtype) != MIX_TILE_FLOAT) return "float64";
  if (logits->shape.rank < 1 || mix_shape_size(logits->shape) == 0) return "an empty operand";
  return NULL;
}
static bool serial(const mix_kernel_args *args) {
  return 16 * mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}
static bool softmax_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  const mix_shape *shape = &args->input_types[0].shape;
  const int64_t n = shape->dims[shape->rank - 1];
  *count = mix_shape_size(*shape);
  *grain = grain_of(n) * n;
  return true;
}
#define ROWS(op, text)                                                                                       \
  MIX_CPU_KERNELS(op, text, .unsupported_reason = softmax_unsupported_reason, .serial = serial,              \
                  .share = softmax_share)
ROWS(softmax, "softmax_acc32")
ROWS(log_softmax, "log_softmax_acc32")
ROWS(softmax_cross_entropy, "softmax_cross_entropy_acc32")
ROWS(sparse_softmax_cross_entropy, "sparse_softmax_cross_entropy_acc32")
