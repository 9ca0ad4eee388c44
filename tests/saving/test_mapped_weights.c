/* Weights that stay in the mapping of their file until something writes them (load_options.copy_weights). */
#include "support/skip.h"
#include "model/support.h"

#include "base/alloc.h"
#include "formats/file.h"
#include "formats/file_mapping.h"
#include "formats/zip_stored.h"
#include "graph/variable.h"
#include "support/folder.h"
#include "support/sanitizer.h"
#include "train/plan_step.h"
#include <mixtape/lora.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <zlib.h>

/* Devices with memory of their own copy every weight at its first use. */
#define HOST_ONLY()                                                                                          \
  do {                                                                                                       \
    if (!on_host()) SKIP("the device has memory of its own");                                                \
  } while (0)

enum { WIDTH = 64, ROWS = 8 }; /* kernels of 16 KiB, biases of less than a page */

static mix_model *model_of_width(int64_t width) {
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(width));
  mix_tensor *y = mix_call(mix_dense(width, "tanh", .name = "a"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(width, .name = "b"), y));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.1));
  return model;
}

static mix_tensor *rows_of(int64_t width) {
  int64_t state[2] = {3, 0};
  return mix_stateless_uniform(mix_tensor_from(state, MIX_INT64, MIX_SHAPE(2)), MIX_SHAPE(ROWS, width), F32);
}

/* "weights.weights.h5" of such a model, which lies as the library writes it. */
static const char *saved_weights(int64_t width) {
  const char *path = in_folder("weights.weights.h5");
  mix_model *model = model_of_width(width);
  mix_model_predict(model, rows_of(width)); /* initial values */
  mix_model_save_weights(model, path);
  assert_no_error();
  return path;
}

static mix_model *loaded(const char *path, bool copies) {
  mix_model *model = model_of_width(WIDTH);
  mix_model_load_weights_with(model, &(mix_load_weights_options){.size = sizeof(mix_load_weights_options),
                                                                 .path = path,
                                                                 .copy_weights = copies});
  assert_no_error();
  return model;
}

static bool in_file(mix_model *model, const char *name) { return variable_at(model, name)->in_file; }

static void assert_same_prediction(mix_model *a, mix_model *b) {
  mix_tensor *x = rows_of(WIDTH), *first = mix_list_get(mix_model_predict(a, x), 0),
             *second = mix_list_get(mix_model_predict(b, x), 0);
  assert_no_error();
  assert_memory_equal(mix_tensor_data(first), mix_tensor_data(second), ROWS * WIDTH * sizeof(float));
}

/* ---- which weights ---- */

static void large_weights_stay_in_the_file(void **state) {
  (void)state;
  HOST_ONLY();
  const char *path = saved_weights(WIDTH);
  mix_model *mapped = loaded(path, false), *copied = loaded(path, true);
  assert_true(in_file(mapped, "a/kernel") && in_file(mapped, "b/kernel"));
  assert_false(in_file(mapped, "a/bias")); /* less than a page */
  assert_false(in_file(copied, "a/kernel") || in_file(copied, "b/kernel"));
  assert_same_prediction(mapped, copied);
  assert_true(in_file(mapped, "a/kernel"));
}

static void a_write_leaves_the_file(void **state) {
  (void)state;
  HOST_ONLY();
  const char *path = saved_weights(WIDTH);
  size_t size, size_after;
  unsigned char *before = mix_file_read(path, SIZE_MAX, &size);
  mix_model *mapped = loaded(path, false), *copied = loaded(path, true);
  mix_tensor *x = rows_of(WIDTH), *y = mix_fill(MIX_SHAPE(ROWS, WIDTH), 1, F32);
  mix_tensor *old = mix_variable_true_value(variable_at(mapped, "a/kernel"));
  mix_tensor *same = mix_variable_true_value(variable_at(copied, "a/kernel"));
  for (int i = 0; i < 2; i++)
    mix_model_fit(i ? copied : mapped, x, y, .epochs = 3, .no_shuffle = true, .quiet = true);
  assert_no_error();
  assert_false(in_file(mapped, "a/kernel") || in_file(mapped, "b/kernel"));
  assert_same_prediction(mapped, copied);
  /* what was read before has the old values */
  assert_memory_equal(mix_tensor_data(old), mix_tensor_data(same), WIDTH * WIDTH * sizeof(float));
  unsigned char *after = mix_file_read(path, SIZE_MAX, &size_after);
  assert_int_equal(size_after, size);
  assert_memory_equal(before, after, size);
  mix_free(before);
  mix_free(after);
}

static void an_assignment_leaves_the_file(void **state) {
  (void)state;
  HOST_ONLY();
  mix_model *model = loaded(saved_weights(WIDTH), false);
  mix_variable *kernel = variable_at(model, "a/kernel"), *other = variable_at(model, "b/kernel");
  const double first = at(mix_variable_true_value(other), 5);
  mix_variable_assign(kernel, mix_fill(MIX_SHAPE(WIDTH, WIDTH), 2, F32));
  mix_variable_assign_add(other, mix_fill(MIX_SHAPE(WIDTH, WIDTH), 1, F32));
  assert_no_error();
  assert_false(kernel->in_file || other->in_file);
  assert_near(at(mix_variable_true_value(kernel), 77), 2, 0);
  assert_near(at(mix_variable_true_value(other), 5), (float)first + 1.0f, 0);
}

/* Its first training step moves what trains alone; a second load goes back into the file. */
static void frozen_weights_stay(void **state) {
  (void)state;
  HOST_ONLY();
  const char *path = saved_weights(WIDTH);
  mix_model *model = loaded(path, false);
  mix_layer_set_trainable(mix_model_get_layer(model, "b"), false);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.learning_rate = 0.1));
  mix_model_fit(model, rows_of(WIDTH), mix_fill(MIX_SHAPE(ROWS, WIDTH), 1, F32), .quiet = true);
  assert_no_error();
  assert_true(in_file(model, "b/kernel") && !in_file(model, "a/kernel"));
  mix_model_load_weights(model, path);
  assert_true(in_file(model, "b/kernel") && in_file(model, "a/kernel"));
  assert_same_prediction(model, loaded(path, true));
}

/* The library's own saves put a new file in the place of the old one, whose bytes live as long as weights do.
 */
static void a_save_over_the_file(void **state) {
  (void)state;
  HOST_ONLY();
  const char *path = saved_weights(WIDTH);
  mix_model *model = loaded(path, false), *same = loaded(path, true), *other = model_of_width(WIDTH);
  mix_model_set_weights(
      other, mix_list_of(mix_fill(MIX_SHAPE(WIDTH, WIDTH), 7, F32), mix_fill(MIX_SHAPE(WIDTH), 7, F32),
                         mix_fill(MIX_SHAPE(WIDTH, WIDTH), 7, F32), mix_fill(MIX_SHAPE(WIDTH), 7, F32)));
  mix_model_save_weights(other, path);
  assert_no_error();
  assert_same_prediction(model, same);
  mix_model_save_weights(model, path); /* over the file that it has just lost, and once more */
  mix_model_save_weights(model, path);
  assert_same_prediction(loaded(path, false), same);
}

/* ---- threads ---- */

typedef struct reader {
  mix_variable *kernel;
  double before, after; /* sums of all numbers */
  int others;           /* sums that are neither */
} reader;

static void *read_often(void *context) {
  reader *r = context;
  for (int i = 0; i < 100; i++)
    MIX_SCOPE {
      const double sum =
          mix_tensor_item(mix_reduce_sum(mix_variable_true_value(r->kernel), MIX_ALL_AXES, false));
      r->others += sum != r->before && sum != r->after;
    }
  r->others += mix_error() != MIX_OK;
  return NULL;
}

/* Who reads while the first write moves the variable sees all of the old value or all of the new one. */
static void threads_read_while_it_moves(void **state) {
  (void)state;
  HOST_ONLY();
  enum { READERS = 3, TIMES = 10 };
  const char *path = saved_weights(WIDTH);
  mix_model *model = loaded(path, false);
  mix_variable *kernel = variable_at(model, "a/kernel");
  const double before = mix_tensor_item(mix_reduce_sum(mix_variable_true_value(kernel), MIX_ALL_AXES, false));
  for (int time = 0; time < TIMES; time++)
    MIX_SCOPE {
      pthread_t threads[READERS];
      reader readers[READERS];
      mix_tensor *twos = mix_fill(MIX_SHAPE(WIDTH, WIDTH), 2, F32);
      mix_tensor_data(twos);
      for (int i = 0; i < READERS; i++) {
        readers[i] = (reader){kernel, before, 2.0 * WIDTH * WIDTH, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, read_often, &readers[i]), 0);
      }
      mix_variable_assign(kernel, twos);
      for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
      for (int i = 0; i < READERS; i++) assert_int_equal(readers[i].others, 0);
      assert_false(kernel->in_file);
      mix_model_load_weights(model, path);
      assert_true(kernel->in_file);
    }
  assert_no_error();
}

typedef struct runner {
  mix_variable *kernel;
  double values[2]; /* of all its elements */
  atomic_bool *ends;
  int others; /* sums that no mixture of the values has */
} runner;

static mix_list *sum_of_kernel(void *context, mix_list *arguments) {
  (void)arguments;
  return mix_list_of(
      mix_reduce_sum(mix_variable_true_value(((runner *)context)->kernel), MIX_ALL_AXES, false));
}

/* Plans read the storage without a lock. */
static void *run_often(void *context) {
  runner *r = context;
  MIX_SCOPE {
    mix_function *function = mix_function_new(sum_of_kernel, r);
    while (!atomic_load(r->ends) && !mix_error())
      MIX_SCOPE {
        const double sum =
            mix_tensor_item(mix_list_get(mix_function_call(function, mix_list_new(0, NULL)), 0));
        r->others += sum < r->values[0] * WIDTH * WIDTH || sum > r->values[1] * WIDTH * WIDTH;
      }
  }
  r->others += mix_error() != MIX_OK;
  return NULL;
}

/* "N.weights.h5" of such a model, all of whose weights are N. */
static const char *weights_of(int n) {
  char name[32];
  snprintf(name, sizeof name, "%d.weights.h5", n);
  mix_model *model = model_of_width(WIDTH);
  mix_tensor *kernel = mix_fill(MIX_SHAPE(WIDTH, WIDTH), n, F32), *bias = mix_fill(MIX_SHAPE(WIDTH), n, F32);
  mix_model_set_weights(model, mix_list_of(kernel, bias, kernel, bias));
  const char *path = in_folder(name);
  mix_model_save_weights(model, path);
  assert_no_error();
  return path;
}

/* Storages that are left while plans of other threads run are there until these end: memory at the first
 * load, mappings afterwards. A plan may see a part of each value, as under assignments. */
static void plans_run_while_it_moves(void **state) {
  (void)state;
  HOST_ONLY();
  enum { RUNNERS = 3, TIMES = 200 };
  char paths[2][600];
  for (int i = 0; i < 2; i++) snprintf(paths[i], sizeof paths[i], "%s", weights_of(i + 1));
  mix_model *model = loaded(paths[0], true);
  pthread_t threads[RUNNERS];
  runner runners[RUNNERS];
  atomic_bool ends = false;
  for (int i = 0; i < RUNNERS; i++) {
    runners[i] = (runner){variable_at(model, "a/kernel"), {1, 2}, &ends, 0};
    assert_int_equal(pthread_create(&threads[i], NULL, run_often, &runners[i]), 0);
  }
  for (int time = 0; time < TIMES; time++)
    MIX_SCOPE { mix_model_load_weights(model, paths[time % 2]); }
  atomic_store(&ends, true);
  for (int i = 0; i < RUNNERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < RUNNERS; i++) assert_int_equal(runners[i].others, 0);
  assert_true(in_file(model, "a/kernel"));
  assert_no_error();
}

/* ---- archives ---- */

typedef struct out {
  FILE *file;
  unsigned char directory[2048];
  size_t used;
  int count;
} out;

static void put(unsigned char *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (unsigned char)(value >> 8 * i);
}

/* A stored member whose first byte lies `over` bytes behind a multiple of 64. `wide`: its numbers in the
 * directory stand in fields of 64 bits. */
static void add(out *o, const char *name, const void *bytes, size_t size, int over, bool wide) {
  unsigned char local[30] = "PK\3\4\24", entry[46] = "PK\1\2\24\0\24", extra[28] = {1, 0, 24, 0};
  const long at = ftell(o->file);
  const size_t length = strlen(name), begin = (size_t)at + sizeof local + length + 4;
  const size_t pad = (64 - begin % 64 + (size_t)over) % 64;
  unsigned char padding[68] = {0x55, 0x55};
  put(local + 14, crc32(0, bytes, (uInt)size), 4);
  put(local + 18, size, 4);
  put(local + 22, size, 4);
  put(local + 26, length, 2);
  put(local + 28, pad + 4, 2);
  put(padding + 2, pad, 2);
  memcpy(entry + 16, local + 14, 14);
  put(entry + 30, wide ? sizeof extra : 0, 2);
  put(entry + 42, (uint64_t)at, 4);
  if (wide) {
    put(extra + 4, size, 8);
    put(extra + 12, size, 8);
    put(extra + 20, (uint64_t)at, 8);
    put(entry + 20, UINT32_MAX, 4);
    put(entry + 24, UINT32_MAX, 4);
    put(entry + 42, UINT32_MAX, 4);
  }
  fwrite(local, sizeof local, 1, o->file);
  fwrite(name, length, 1, o->file);
  fwrite(padding, pad + 4, 1, o->file);
  fwrite(bytes, size, 1, o->file);
  const struct {
    const void *data;
    size_t size;
  } pieces[] = {{entry, sizeof entry}, {name, length}, {extra, wide ? sizeof extra : 0}};
  for (int i = 0; i < 3; i++) {
    memcpy(o->directory + o->used, pieces[i].data, pieces[i].size);
    o->used += pieces[i].size;
  }
  o->count++;
}

static void finish(out *o, bool wide) {
  unsigned char end64[56] = "PK\6\6\54", locator[20] = "PK\6\7", end[22] = "PK\5\6";
  const uint64_t at = (uint64_t)ftell(o->file);
  fwrite(o->directory, o->used, 1, o->file);
  put(end64 + 12, 45, 2);
  put(end64 + 14, 45, 2);
  put(end64 + 24, (uint64_t)o->count, 8);
  put(end64 + 32, (uint64_t)o->count, 8);
  put(end64 + 40, o->used, 8);
  put(end64 + 48, at, 8);
  put(locator + 8, at + o->used, 8);
  put(locator + 16, 1, 4);
  put(end + 8, wide ? UINT16_MAX : (uint64_t)o->count, 2);
  put(end + 10, wide ? UINT16_MAX : (uint64_t)o->count, 2);
  put(end + 12, wide ? UINT32_MAX : o->used, 4);
  put(end + 16, wide ? UINT32_MAX : at, 4);
  if (wide) fwrite(end64, sizeof end64, 1, o->file);
  if (wide) fwrite(locator, sizeof locator, 1, o->file);
  fwrite(end, sizeof end, 1, o->file);
  assert_int_equal(fclose(o->file), 0);
}

/* "again.keras": the members of "model.keras" where they are wanted. */
static const char *archive_again(int over, bool wide) {
  static const char *const names[] = {"metadata.json", "config.json", "model.weights.h5"};
  const char *path = in_folder("again.keras");
  mix_zip *zip = mix_zip_open(in_folder("model.keras"));
  out o = {.file = fopen(path, "wb")};
  assert_non_null(o.file);
  for (int i = 0; i < 3; i++) {
    size_t size;
    void *bytes = mix_zip_read(zip, names[i], SIZE_MAX - 1, &size);
    assert_non_null(bytes);
    add(&o, names[i], bytes, size, over, wide);
    mix_free(bytes);
  }
  finish(&o, wide);
  return path;
}

static void archives(void **state) {
  (void)state;
  HOST_ONLY();
  mix_model *model = model_of_width(WIDTH);
  mix_model_save(model, in_folder("model.keras"));
  for (int wide = 0; wide < 2; wide++)
    for (int over = 0; over < 64; over += 4) {
      mix_model *again = mix_model_load(archive_again(over, wide));
      assert_no_error();
      assert_int_equal(in_file(again, "a/kernel"), over == 0);
      assert_same_prediction(again, model);
      assert_false(in_file(mix_model_load(in_folder("again.keras"), .copy_weights = true), "a/kernel"));
    }
}

/* Nothing is taken from where the directory and the checksum do not agree: libzip then says what is wrong. */
static void damaged_archives(void **state) {
  (void)state;
  size_t size, length;
  mix_model_save(model_of_width(WIDTH), in_folder("model.keras"));
  unsigned char *bytes = mix_file_read(archive_again(0, false), SIZE_MAX, &size), *whole = malloc(size);
  mix_zip *zip = mix_zip_open_memory("again", bytes, size);
  const unsigned char *found = mix_zip_find_stored(zip, "model.weights.h5", bytes, size, &length);
  assert_true(found && length > 2 * sizeof(float) * WIDTH * WIDTH);
  assert_null(mix_zip_find_stored(zip, "weights.h5", bytes, size, &length));
  memcpy(whole, bytes, size);
  /* any byte of the records, of the directory and of its end; the checksum tells of one of the member */
  const size_t directory = size - 22 - 3 * 46 - strlen("metadata.jsonconfig.jsonmodel.weights.h5");
  for (size_t i = directory; i < size; i++)
    for (int bit = 0; bit < 8; bit++) {
      whole[i] ^= (unsigned char)(1 << bit);
      const unsigned char *at_other = mix_zip_find_stored(zip, "model.weights.h5", whole, size, &length);
      if (at_other) assert_memory_equal(at_other, found, length); /* of a number that does not matter */
      whole[i] = bytes[i];
    }
  whole[found - bytes + 5000] ^= 4;
  assert_null(mix_zip_find_stored(zip, "model.weights.h5", whole, size, &length));
  for (size_t cut = 0; cut < size; cut += 97)
    assert_null(mix_zip_find_stored(zip, "model.weights.h5", whole, cut, &length));
  assert_true(mix_file_replace(in_folder("damaged.keras"), &(mix_bytes){whole, size}, 1, "test"));
  assert_null(mix_model_load(in_folder("damaged.keras")));
  assert_error(MIX_FORMAT_ERROR, "'model.weights.h5' is damaged");
  free(whole);
  mix_free(bytes);
}

/* ---- memory ---- */

/* A file that ends with a page is readable behind its end, as kernels read (base/alloc.h). */
static void behind_the_end(void **state) {
  (void)state;
  const size_t size = 2 * (size_t)sysconf(_SC_PAGESIZE);
  char *bytes = malloc(size);
  memset(bytes, 7, size);
  assert_true(mix_file_replace(in_folder("pages"), &(mix_bytes){bytes, size}, 1, "test"));
  mix_memory *memory = mix_file_map(in_folder("pages"));
  assert_non_null(memory);
  const volatile char *mapped = mix_memory_map(memory, MIX_MAP_READ);
  for (int i = 0; i < 64; i++) assert_int_equal(mapped[size + (size_t)i], 0);
  assert_int_equal(mapped[size - 1], 7);
  mix_memory_unmap(memory);
  mix_release(memory);
  assert_null(mix_file_map(in_folder("missing")));
  assert_null(mix_file_map(test_folder));
  assert_true(mix_file_replace(in_folder("empty"), NULL, 0, "test"));
  assert_null(mix_file_map(in_folder("empty")));
  assert_no_error();
  free(bytes);
}

static void no_memory_left(void **state) {
  (void)state;
  const char *path = saved_weights(WIDTH);
  mix_model *expected = loaded(path, true);
  bool good = false;
  int64_t count = 0;
  for (; !good && count < 100000; count++) {
    mix_scope *scope = mix_scope_begin();
    mix_model *model = model_of_width(WIDTH);
    mix_variable *kernel = variable_at(model, "a/kernel");
    mix_tensor *read = NULL;
    mix_inject_allocation_failure(count);
    good = mix_model_load_weights(model, path) == MIX_OK;
    if (good) read = mix_variable_true_value(kernel);
    good = good && mix_variable_assign(kernel, mix_fill(MIX_SHAPE(WIDTH, WIDTH), 1, F32)) == MIX_OK && read;
    mix_inject_allocation_failure(-1);
    if (!good) assert_error(MIX_MEMORY_ERROR, "out of memory");
    if (good) assert_near(at(mix_variable_true_value(kernel), 9), 1, 0);
    if (good) assert_near(at(read, 9), at(mix_variable_true_value(variable_at(expected, "a/kernel")), 9), 0);
    mix_scope_end(scope);
  }
  assert_true(good && count > 20);
}

/* Bytes of this process that no file has. */
static double anonymous(void) {
  char line[128];
  double kilobytes = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    if (!strncmp(line, "RssAnon:", 8)) kilobytes = atof(line + 8);
  if (file) fclose(file);
  return 1024 * kilobytes;
}

/* What loading and evaluating take in a process of its own, in bytes; negative: it failed. */
static double evaluation_takes(const char *path, bool copies, int64_t width) {
  int ends[2];
  double took = -1;
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    mix_scope *scope = mix_scope_begin();
    const double before = anonymous();
    mix_model *model = mix_model_load(path, .copy_weights = copies);
    mix_model_compile(model, .loss = "mse");
    mix_tensor *x = rows_of(width);
    mix_model_evaluate(model, x, x, .quiet = true);
    took = mix_error() || before < 0 ? -1 : anonymous() - before;
    const bool told = write(ends[1], &took, sizeof took) == sizeof took;
    mix_scope_end(scope);
    _exit(!told);
  }
  assert_true(read(ends[0], &took, sizeof took) == sizeof took);
  close(ends[0]);
  close(ends[1]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  return took;
}

/* 64 MiB of weights. Beside them there are packed panels of the product, no larger than the caches, values of
 * eight rows, and the program's own: far less than a quarter. */
static void evaluation_of_a_large_model(void **state) {
  (void)state;
  HOST_ONLY();
  if (UNDER_SANITIZER) SKIP("a sanitizer keeps freed memory");
  enum { LARGE = 4096 };
  const double size = sizeof(float) * (double)LARGE * LARGE;
  const char *path = in_folder("large.h5");
  const pid_t child = fork(); /* so that this process stays small */
  assert_true(child >= 0);
  if (!child) {
    mix_scope *scope = mix_scope_begin();
    mix_tensor *x = mix_input(.shape = MIX_SHAPE(LARGE));
    mix_model *model = mix_model_new(x, mix_call(mix_dense(LARGE), x));
    const bool saved = mix_model_save(model, path) == MIX_OK;
    mix_scope_end(scope);
    _exit(!saved);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  const double mapped = evaluation_takes(path, false, LARGE), copied = evaluation_takes(path, true, LARGE);
  print_message("64 MiB of weights, loaded and evaluated: %.1f MB mapped, %.1f MB copied\n", mapped / 1e6,
                copied / 1e6);
  assert_true(mapped >= 0 && mapped < 0.25 * size && copied >= size);
}

/* ---- LoRA ---- */

static size_t training_takes(const char *path, int64_t rank, size_t *in_files) {
  mix_plan_report report = {0};
  MIX_SCOPE {
    mix_model *model = guide_model(784, 4096);
    mix_model_load_weights(model, path);
    if (rank) mix_model_enable_lora(model, rank);
    mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop());
    const mix_on_batch_options batch = {.size = sizeof batch,
                                        .x = mix_fill(MIX_SHAPE(128, 784), 0.5, F32),
                                        .y = mix_fill(MIX_SHAPE(128), 3, MIX_INT64)};
    assert_true(mix_model_plan_training(model, &batch, &report));
  }
  assert_no_error();
  *in_files = report.file_bytes;
  return report.peak_bytes;
}

/* The goal of the specification: a step takes 0.45 of what training all takes, frozen weights aside that stay
 * in their file. */
static void lora_of_the_guide(void **state) {
  (void)state;
  HOST_ONLY();
  const char *path = in_folder("guide.weights.h5");
  size_t none, frozen;
  MIX_SCOPE {
    mix_set_semantics("keras3");
    mix_model_save_weights(guide_model(784, 4096), path);
  }
  assert_no_error();
  const size_t all = training_takes(path, 0, &none), some = training_takes(path, 8, &frozen);
  print_message("RMSprop at 4096 units: all %.1f MB, LoRA %.1f MB, of which %.1f MB stay in the file: %.3f\n",
                1e-6 * (double)all, 1e-6 * (double)some, 1e-6 * (double)frozen,
                (double)(some - frozen) / (double)all);
  assert_int_equal(none, 0);
  assert_int_equal(frozen, sizeof(float) * (784 * 4096 + 4096 * 4096 + 4096 * 10));
  assert_true((double)(some - frozen) <= 0.45 * (double)all);
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

#undef TEST
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
  const struct CMUnitTest tests[] = {TEST(large_weights_stay_in_the_file),
                                     TEST(a_write_leaves_the_file),
                                     TEST(an_assignment_leaves_the_file),
                                     TEST(frozen_weights_stay),
                                     TEST(a_save_over_the_file),
                                     TEST(threads_read_while_it_moves),
                                     TEST(plans_run_while_it_moves),
                                     TEST(archives),
                                     TEST(damaged_archives),
                                     TEST(behind_the_end),
                                     TEST(no_memory_left),
                                     TEST(evaluation_of_a_large_model),
                                     TEST(lora_of_the_guide)};
  return cmocka_run_group_tests_name("weights in files", tests, NULL, NULL);
}
