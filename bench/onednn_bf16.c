#include "onednn_bf16.h"
#include <dlfcn.h>
#include <stdlib.h>

/* Of oneDNN 2's C API (dnnl.h). Only the library reads and writes descriptors, so that any size that is large
 * enough will do. */
enum {
  DNNL_BF16 = 2,
  DNNL_CPU = 1,
  DNNL_DEFAULT = 1,
  DNNL_SRC = 1,
  DNNL_DST = 17,
  DNNL_WEIGHTS = 33,
  DNNL_DIMS = 12
};
typedef struct descriptor {
  _Alignas(64) char bytes[8192];
} descriptor;
typedef struct argument {
  int which;
  void *memory;
} argument;

static struct {
  int (*engine_create)(void **engine, int kind, size_t index);
  int (*stream_create)(void **stream, void *engine, unsigned flags);
  int (*memory_desc_init_by_strides)(void *desc, int rank, const int64_t *dims, int dtype,
                                     const int64_t *strides);
  int (*matmul_desc_init)(void *desc, const void *src, const void *weights, const void *bias,
                          const void *dst);
  int (*primitive_desc_create)(void **desc, const void *op, const void *attributes, void *engine,
                               const void *hint);
  int (*primitive_desc_destroy)(void *desc);
  int (*primitive_create)(void **primitive, const void *desc);
  int (*primitive_destroy)(void *primitive);
  int (*memory_create)(void **memory, const void *desc, void *engine, void *data);
  int (*memory_destroy)(void *memory);
  int (*primitive_execute)(const void *primitive, void *stream, int count, const argument *arguments);
  int (*stream_wait)(void *stream);
} dnnl;
static void *engine, *stream;

struct bench_onednn {
  void *primitive, *memory[3];
};

static bool load(void) {
  static bool tried, good;
  if (tried) return good;
  tried = true;
  void *library = dlopen("libdnnl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!library) return false;
#define FIND(name) (*(void **)&dnnl.name = dlsym(library, "dnnl_" #name)) != NULL
  good = FIND(engine_create) && FIND(stream_create) && FIND(memory_desc_init_by_strides) &&
         FIND(matmul_desc_init) && FIND(primitive_desc_create) && FIND(primitive_desc_destroy) &&
         FIND(primitive_create) && FIND(primitive_destroy) && FIND(memory_create) && FIND(memory_destroy) &&
         FIND(primitive_execute) && FIND(stream_wait) && !dnnl.engine_create(&engine, DNNL_CPU, 0) &&
         !dnnl.stream_create(&stream, engine, DNNL_DEFAULT);
  return good;
}

/* A matrix (rows, columns), stored by columns if `transposed`. */
static bool describe(descriptor *d, int64_t rows, int64_t columns, bool transposed) {
  const int64_t dims[DNNL_DIMS] = {rows, columns},
                strides[DNNL_DIMS] = {transposed ? 1 : columns, transposed ? rows : 1};
  return !dnnl.memory_desc_init_by_strides(d, 2, dims, DNNL_BF16, strides);
}

bench_onednn *bench_onednn_new(const bench_shape *s, const void *a, const void *b, void *c) {
  static descriptor of[3], product;
  bench_onednn *x = calloc(1, sizeof *x);
  void *desc = NULL, *data[3] = {(void *)(uintptr_t)a, (void *)(uintptr_t)b, c};
  bool good = x && load() && describe(&of[0], s->m, s->k, s->ta) && describe(&of[1], s->k, s->n, s->tb) &&
              describe(&of[2], s->m, s->n, false) &&
              !dnnl.matmul_desc_init(&product, &of[0], &of[1], NULL, &of[2]) &&
              !dnnl.primitive_desc_create(&desc, &product, NULL, engine, NULL) &&
              !dnnl.primitive_create(&x->primitive, desc);
  for (int i = 0; i < 3 && good; i++) good = !dnnl.memory_create(&x->memory[i], &of[i], engine, data[i]);
  if (desc) dnnl.primitive_desc_destroy(desc);
  if (good) return x;
  bench_onednn_free(x);
  return NULL;
}

void bench_onednn_run(bench_onednn *x) {
  const argument arguments[] = {
      {DNNL_SRC, x->memory[0]}, {DNNL_WEIGHTS, x->memory[1]}, {DNNL_DST, x->memory[2]}};
  dnnl.primitive_execute(x->primitive, stream, 3, arguments);
  dnnl.stream_wait(stream);
}

void bench_onednn_free(bench_onednn *x) {
  if (!x) return;
  for (int i = 0; i < 3; i++)
    if (x->memory[i]) dnnl.memory_destroy(x->memory[i]);
  if (x->primitive) dnnl.primitive_destroy(x->primitive);
  free(x);
}
