/* matmul_finite_bound: the largest column norms of both operands. Each thread takes blocks of columns of
 * both; the last thread to arrive stores the result. */
#include "backend/cpu/kernel_rows.h"
#include "base/alloc.h"
#include <string.h>

enum { BLOCK = 256 }; /* columns; their sums stay in the first-level cache while rows stream through it */

typedef struct largest {
  float square[2]; /* the largest squared column norm of each operand, in one thread's blocks */
  char padding[64 - 2 * sizeof(float)]; /* one cache line for each thread */
} largest;

typedef struct prepared_bound {
  atomic_int arrived;
  largest threads[];
} prepared_bound;

static bool finite_bound_prepare(mix_kernel_args *args, int threads) {
  args->prepared = mix_calloc(1, sizeof(prepared_bound) + sizeof(largest) * (size_t)threads);
  return args->prepared != NULL;
}

static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) + mix_shape_size(args->input_types[1].shape) <
         MIX_CPU_SMALL;
}

/* NaN propagates. */
static float larger(float a, float b) { return a > b || a != a ? a : b; }

static float largest_square(const mix_vector *vector, const mix_type *type, const void *matrix,
                            int64_t column, int64_t columns) {
  _Alignas(64) float sums[BLOCK];
  const size_t element = mix_dtype_size(type->dtype);
  memset(sums, 0, sizeof sums);
  for (int64_t row = 0; row < type->shape.dims[0]; row++)
    vector->add_squares[type->dtype](
        sums, (const char *)matrix + (size_t)(row * type->shape.dims[1] + column) * element, columns);
  return vector->maximum(sums, columns);
}

static void matmul_finite_bound_run(const mix_kernel_args *args, const mix_team *team,
                                    const mix_vector *vector) {
  prepared_bound *prepared = args->prepared;
  largest *own = &prepared->threads[team->rank];
  for (int i = 0; i < 2; i++) {
    const int64_t columns = args->input_types[i].shape.dims[1];
    int64_t begin, end;
    own->square[i] = 0;
    mix_team_share(team, columns, BLOCK, &begin, &end);
    for (; begin < end; begin += BLOCK) {
      const int64_t n = end - begin < BLOCK ? end - begin : BLOCK;
      own->square[i] =
          larger(own->square[i], largest_square(vector, &args->input_types[i], args->inputs[i], begin, n));
    }
  }
  if (!mix_team_last(team, &prepared->arrived)) return;
  float square[2] = {0, 0};
  for (int t = 0; t < team->size; t++)
    for (int i = 0; i < 2; i++) square[i] = larger(square[i], prepared->threads[t].square[i]);
  const mix_finite_bound_attributes *attributes = args->attributes;
  const bool finite = mix_finite_bound_holds(attributes->dtype, square[0], square[1],
                                             args->input_count > 2 ? *(const float *)args->inputs[2] : 1);
  *(bool *)args->outputs[0] = finite;
  *(bool *)args->outputs[1] = !finite;
}

MIX_CPU_KERNELS(matmul_finite_bound, "matmul_finite_bound", .prepare = finite_bound_prepare, .serial = serial)
