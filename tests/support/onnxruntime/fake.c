/* A library with the C interface of onnxruntime, as far as mixtape calls it, whose every result is its first
 * input. MIXTAPE_FAKE_APART is added to the first element; MIXTAPE_FAKE_REFUSES: no session begins. What is
 * left when the environment is released is told on standard error. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_RANK = 8, FLOAT = 1 };

typedef struct value {
  void *data;
  int64_t shape[MAX_RANK];
  size_t rank, bytes;
  int type;
  bool owned;
} value;

static int living;
static char refusal[] = "the fake has no kernel for this";

static void *make(size_t size) {
  living++;
  return calloc(1, size);
}
static void release(void *object) {
  living--;
  free(object);
}

static const char *error_message(const void *status) { return status; }
static void release_status(void *status) { (void)status; }
static void *create_environment(int severity, const char *name, void **environment) {
  (void)severity, (void)name;
  *environment = make(1);
  return NULL;
}
static void release_environment(void *environment) {
  release(environment);
  if (living) fprintf(stderr, "fake onnxruntime: %d objects are left\n", living);
}
static void *create_options(void **options) {
  *options = make(1);
  return NULL;
}
static void *create_session(void *environment, const char *path, void *options, void **session) {
  (void)environment, (void)options;
  FILE *file = fopen(path, "rb");
  if (!file || getenv("MIXTAPE_FAKE_REFUSES")) return refusal;
  fclose(file);
  *session = make(1);
  return NULL;
}
static void *create_memory(int allocator, int kind, void **memory) {
  (void)allocator, (void)kind;
  *memory = make(1);
  return NULL;
}

static void *create_tensor(void *memory, void *data, size_t bytes, const int64_t *shape, size_t rank,
                           int type, void **result) {
  (void)memory;
  value *made = make(sizeof *made);
  *made = (value){.data = data, .rank = rank, .bytes = bytes, .type = type};
  memcpy(made->shape, shape, rank * sizeof *shape);
  *result = made;
  return NULL;
}
static void release_value(void *object) {
  value *v = object;
  if (v->owned) free(v->data);
  release(v);
}

static void *run(void *session, void *options, const char *const *input_names, void *const *inputs,
                 size_t input_count, const char *const *output_names, size_t output_count, void **outputs) {
  (void)session, (void)options, (void)input_names, (void)input_count, (void)output_names;
  const char *apart = getenv("MIXTAPE_FAKE_APART");
  for (size_t i = 0; i < output_count; i++) {
    value *made = make(sizeof *made);
    *made = *(const value *)inputs[0];
    made->data = malloc(made->bytes + 1);
    made->owned = true;
    memcpy(made->data, ((const value *)inputs[0])->data, made->bytes);
    if (apart && made->type == FLOAT) ((float *)made->data)[0] += strtof(apart, NULL);
    outputs[i] = made;
  }
  return NULL;
}

static void *type_and_shape(const void *of, void **type) {
  value *copy = make(sizeof *copy);
  *copy = *(const value *)of;
  *type = copy;
  return NULL;
}
static void *element_type(const void *type, int *result) {
  *result = ((const value *)type)->type;
  return NULL;
}
static void *rank_of(const void *type, size_t *rank) {
  *rank = ((const value *)type)->rank;
  return NULL;
}
static void *sizes_of(const void *type, int64_t *sizes, size_t count) {
  memcpy(sizes, ((const value *)type)->shape, count * sizeof *sizes);
  return NULL;
}
static void *tensor_data(void *of, void **data) {
  *data = ((value *)of)->data;
  return NULL;
}

#define AT(place, function) [place] = (const void *)function
static const void *const table[101] = {AT(2, error_message),
                                       AT(3, create_environment),
                                       AT(7, create_session),
                                       AT(9, run),
                                       AT(10, create_options),
                                       AT(49, create_tensor),
                                       AT(51, tensor_data),
                                       AT(60, element_type),
                                       AT(61, rank_of),
                                       AT(62, sizes_of),
                                       AT(65, type_and_shape),
                                       AT(69, create_memory),
                                       AT(92, release_environment),
                                       AT(93, release_status),
                                       AT(94, release),
                                       AT(95, release),
                                       AT(96, release_value),
                                       AT(99, release),
                                       AT(100, release)};

static const void *const *get_table(uint32_t version) { return version == 1 ? table : NULL; }
static const char *version(void) { return "fake 1.0"; }

typedef struct base {
  const void *const *(*table)(uint32_t version);
  const char *(*version)(void);
} base;

const base *OrtGetApiBase(void);
__attribute__((visibility("default"))) const base *OrtGetApiBase(void) {
  static const base own = {get_table, version};
  return &own;
}
