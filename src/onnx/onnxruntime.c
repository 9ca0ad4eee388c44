/* onnxruntime by its C interface: a table of functions whose places never change, of which these are used. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "onnx/onnxruntime.h"

#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "compile/evaluate.h"
#include "onnx/onnx.h"
#include "tensor/shape.h"
#include <mixtape/object.h>
#include <pthread.h>
#include <stdlib.h>

/* Of the library; NULL for a status is success. */
typedef struct status status;
typedef struct api_base {
  const void *const *(*table)(uint32_t version);
  const char *(*version)(void);
} api_base;

/* Places in the table. */
enum {
  ERROR_MESSAGE = 2,
  CREATE_ENVIRONMENT = 3,
  CREATE_SESSION = 7,
  RUN = 9,
  CREATE_OPTIONS = 10,
  CREATE_TENSOR = 49,
  TENSOR_DATA = 51,
  ELEMENT_TYPE = 60,
  RANK = 61,
  SIZES = 62,
  TYPE_AND_SHAPE = 65,
  CREATE_CPU_MEMORY = 69,
  RELEASE_ENVIRONMENT = 92,
  RELEASE_STATUS = 93,
  RELEASE_MEMORY = 94,
  RELEASE_SESSION = 95,
  RELEASE_VALUE = 96,
  RELEASE_TYPE = 99,
  RELEASE_OPTIONS = 100
};
enum {
  OLDEST_TABLE = 1,
  WARNINGS_AND_ERRORS = 3,
  DEVICE_ALLOCATOR = 0,
  DEFAULT_MEMORY = 0,
  MAX_VALUES = 128
};

typedef status *create_environment(int severity, const char *name, void **environment);
typedef status *create_session(void *environment, const char *path, void *options, void **session);
typedef status *create_options(void **options);
typedef status *create_cpu_memory(int allocator, int kind, void **memory);
typedef status *create_tensor(void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank,
                              int type, void **value);
typedef status *run(void *session, void *options, const char *const *input_names, void *const *inputs,
                    size_t input_count, const char *const *output_names, size_t output_count, void **outputs);
typedef status *get_pointer(const void *from, void **result);
typedef status *get_number(const void *from, int *result);
typedef status *get_size(const void *from, size_t *result);
typedef status *get_sizes(const void *from, int64_t *result, size_t count);
typedef const char *get_text(const status *from);
typedef void release(void *object);

struct mix_onnxruntime {
  const void *const *table;
  const char *path;
  void *environment, *options, *memory, *session;
};

static const api_base *base;
static pthread_once_t loading = PTHREAD_ONCE_INIT;

static void load(void) {
  const char *given = secure_getenv("MIXTAPE_ONNXRUNTIME");
  const char *const found[] = {"libonnxruntime.so.1", "libonnxruntime.so", NULL};
  const char *const named[] = {given, NULL};
  const api_base *(*get)(void) = NULL;
  const mix_library_function functions[] = {{"OrtGetApiBase", &get}, {0}};
  if (mix_load_library(given && *given ? named : found, functions)) base = get();
}

static const api_base *loaded(void) {
  pthread_once(&loading, load);
  return base;
}

const char *mix_onnxruntime_version(void) { return loaded() ? base->version() : NULL; }

#define FUNCTION(type, place) ((type *)session->table[place])

/* False with the error recorded: the status says one. */
static bool good(const mix_onnxruntime *session, status *result) {
  if (!result) return true;
  mix_fail_runtime("%s: onnxruntime %s: %.700s", session->path, base->version(),
                   FUNCTION(get_text, ERROR_MESSAGE)(result));
  FUNCTION(release, RELEASE_STATUS)(result);
  return false;
}

mix_onnxruntime *mix_onnxruntime_open(const char *path) {
  if (!loaded())
    return mix_fail_unsupported("%s: no library of onnxruntime; MIXTAPE_ONNXRUNTIME names its file", path);
  mix_onnxruntime *session = mix_calloc(1, sizeof *session);
  if (!session) return NULL;
  session->path = path;
  session->table = base->table(OLDEST_TABLE);
  if (!session->table) {
    mix_free(session);
    return mix_fail_unsupported("%s: onnxruntime %s has no C interface of version 1", path, base->version());
  }
  if (good(session, FUNCTION(create_environment, CREATE_ENVIRONMENT)(WARNINGS_AND_ERRORS, "mixtape",
                                                                     &session->environment)) &&
      good(session, FUNCTION(create_options, CREATE_OPTIONS)(&session->options)) &&
      good(session, FUNCTION(create_cpu_memory, CREATE_CPU_MEMORY)(DEVICE_ALLOCATOR, DEFAULT_MEMORY,
                                                                   &session->memory)) &&
      good(session, FUNCTION(create_session, CREATE_SESSION)(session->environment, path, session->options,
                                                             &session->session)))
    return session;
  mix_onnxruntime_close(session);
  return NULL;
}

void mix_onnxruntime_close(mix_onnxruntime *session) {
  if (!session) return;
  if (session->session) FUNCTION(release, RELEASE_SESSION)(session->session);
  if (session->memory) FUNCTION(release, RELEASE_MEMORY)(session->memory);
  if (session->options) FUNCTION(release, RELEASE_OPTIONS)(session->options);
  if (session->environment) FUNCTION(release, RELEASE_ENVIRONMENT)(session->environment);
  mix_free(session);
}

/* The type and the shape of a result. False with the error recorded. */
static bool read_type(const mix_onnxruntime *session, const void *value, mix_dtype *dtype, mix_shape *shape) {
  void *type = NULL;
  int element = 0;
  size_t rank = 0;
  if (!good(session, FUNCTION(get_pointer, TYPE_AND_SHAPE)(value, &type))) return false;
  bool known = good(session, FUNCTION(get_number, ELEMENT_TYPE)(type, &element)) &&
               good(session, FUNCTION(get_size, RANK)(type, &rank));
  *shape = (mix_shape){.rank = (int)rank};
  if (known && rank > MIX_MAX_RANK)
    known = mix_fail_unsupported("%s: a result of %zu axes; at most %d", session->path, rank, MIX_MAX_RANK);
  known = known && good(session, FUNCTION(get_sizes, SIZES)(type, shape->dims, rank));
  FUNCTION(release, RELEASE_TYPE)(type);
  *dtype = mix_onnx_dtype_of(element);
  if (known && *dtype == MIX_DTYPE_NONE)
    return mix_fail_unsupported("%s: a result of ONNX's element type %d", session->path, element);
  return known;
}

static mix_tensor *result_of(const mix_onnxruntime *session, void *value) {
  mix_dtype dtype;
  mix_shape shape;
  void *data = NULL;
  if (!read_type(session, value, &dtype, &shape) ||
      !good(session, FUNCTION(get_pointer, TENSOR_DATA)(value, &data)))
    return NULL;
  return mix_tensor_from(data, dtype, shape);
}

/* The values share the memory of the tensors, which are pinned. */
static bool make_inputs(const mix_onnxruntime *session, int count, mix_tensor *const *inputs,
                        mix_pinned *pinned, int *pinned_count, void **values) {
  for (int i = 0; i < count; i++) {
    if (!mix_tensor_pin(inputs[i], &pinned[i])) return false;
    ++*pinned_count;
    const mix_shape shape = mix_tensor_shape(inputs[i]);
    const mix_dtype dtype = mix_tensor_dtype(inputs[i]);
    if (!good(session, FUNCTION(create_tensor, CREATE_TENSOR)(
                           session->memory, (void *)pinned[i].data, mix_value_bytes(dtype, shape), shape.dims,
                           (size_t)shape.rank, mix_onnx_type_of(dtype), &values[i])))
      return false;
  }
  return true;
}

mix_list *mix_onnxruntime_run(mix_onnxruntime *session, int input_count, const char *const *input_names,
                              mix_tensor *const *inputs, int output_count, const char *const *output_names) {
  void *values[MAX_VALUES] = {NULL}, *results[MAX_VALUES] = {NULL};
  mix_pinned pinned[MAX_VALUES];
  int pinned_count = 0;
  if (mix_failed()) return NULL;
  if (input_count > MAX_VALUES || output_count > MAX_VALUES)
    return mix_fail_unsupported("%s: more than %d inputs or outputs", session->path, MAX_VALUES);
  mix_list *list = mix_list_new(0, NULL);
  bool fine =
      list && make_inputs(session, input_count, inputs, pinned, &pinned_count, values) &&
      good(session, FUNCTION(run, RUN)(session->session, NULL, input_names, values, (size_t)input_count,
                                       output_names, (size_t)output_count, results));
  for (int i = 0; fine && i < output_count; i++)
    fine = mix_list_append(list, result_of(session, results[i])) == MIX_OK;
  for (int i = 0; i < output_count; i++)
    if (results[i]) FUNCTION(release, RELEASE_VALUE)(results[i]);
  for (int i = 0; i < input_count; i++)
    if (values[i]) FUNCTION(release, RELEASE_VALUE)(values[i]);
  for (int i = 0; i < pinned_count; i++) mix_tensor_unpin(&pinned[i]);
  return fine && !mix_failed() ? list : NULL;
}
