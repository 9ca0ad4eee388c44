/* Constructors and files when memory runs out: each allocation in turn fails, the library's own and those of
 * libzip, jansson and libc. A call that fails records an error, releases nothing twice and works
 * when there is memory again. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_NEXT */
#endif
#include "support/skip.h"
#include "base/alloc.h"
#include "base/error.h"
#include "model/support.h"
#include "support/every_allocation.h"
#include "support/folder.h"
#include <dlfcn.h>
#include <jansson.h>
#include <mixtape/callback.h>
#include <mixtape/checkpoint.h>
#include <mixtape/dataset.h>
#include <mixtape/numerics.h>
#include <sys/wait.h>
#include <unistd.h>

static int releases;
static void count_release(void *context) {
  assert_ptr_equal(context, &releases);
  releases++;
}
static mix_list *no_element(void *context, int64_t index) { return (void)context, (void)index, NULL; }
static mix_list *same(void *context, mix_list *element) { return (void)context, element; }
static bool yes(void *context, mix_list *element) { return (void)context, (void)element, true; }
static mix_dataset *one(void *context, mix_list *element) {
  return (void)context, (void)element, mix_dataset_range(0, 1, 1);
}
static double rate(void *context, int64_t epoch, double now) { return (void)context, (void)epoch, now; }

static mix_dataset *range;
static mix_model *model;

#define CONTEXT .context = &releases, .release = count_release
static void *user_callback(void) { return mix_callback_new(.context = &releases, .release = count_release); }
static void *generator(void) { return mix_dataset_from_generator(no_element, CONTEXT); }
static void *map(void) { return mix_dataset_map(range, same, CONTEXT); }
static void *filter(void) { return mix_dataset_filter(range, yes, CONTEXT); }
static void *interleave(void) { return mix_dataset_interleave(range, one, CONTEXT); }

static void *early_stopping(void) { return mix_early_stopping(.monitor = "loss"); }
static void *plateau(void) { return mix_reduce_lr_on_plateau(.monitor = "loss"); }
static void *scheduler(void) { return mix_learning_rate_scheduler(rate, NULL); }
static void *model_checkpoint(void) { return mix_model_checkpoint("/tmp/none.npz", .monitor = "loss"); }
static void *csv_logger(void) { return mix_csv_logger("/tmp/none.csv"); }
static void *tensorboard(void) { return mix_tensorboard("/tmp/none"); }
static void *backup(void) { return mix_backup_and_restore("/tmp/none"); }
static void *nan_stop(void) { return mix_terminate_on_nan(); }
static void *from_text(void) { return mix_callback_from_text("early_stopping:monitor=loss,patience=2"); }

static void *array(void) { return mix_dataset_from_tensors(mix_fill(MIX_SHAPE(4, 2), 1, F32)); }
static void *take(void) { return mix_dataset_take(range, 2); }
static void *batch(void) { return mix_dataset_batch(range, 2); }
static void *shuffle(void) { return mix_dataset_shuffle(range, 2); }
static void *concatenate(void) { return mix_dataset_concatenate(range, range); }
static void *zip(void) { return mix_dataset_zip(range, range); }
static void *cache(void) { return mix_dataset_cache(range); }
static void *iterator(void) { return mix_dataset_iterate(mix_dataset_cache(mix_dataset_take(range, 2))); }
static void *dense(void) { return mix_dense(.units = 3, .activation = "relu"); }
static void *optimizer(void) { return mix_optimizer_from_text("adam:learning_rate=0.5,beta_1=0.8", NULL); }
static void *scaled(void) { return mix_loss_scale_optimizer(mix_sgd(.momentum = 0.5)); }
static void *loss(void) { return mix_loss_new("mse"); }
static void *metric(void) { return mix_metric_from_text("auc:num_thresholds=20", NULL); }
static void *checkpoint(void) { return mix_checkpoint_new(in_folder("made"), .model = model); }

typedef void *constructor(void);
static const struct {
  const char *name;
  constructor *make;
  bool takes_context;
} rows[] = {
#define ROW(name)                                                                                            \
  { #name, name, false }
    {"user_callback", user_callback, true},
    {"generator", generator, true},
    {"map", map, true},
    {"filter", filter, true},
    {"interleave", interleave, true},
    ROW(early_stopping),
    ROW(plateau),
    ROW(scheduler),
    ROW(model_checkpoint),
    ROW(csv_logger),
    ROW(tensorboard),
    ROW(backup),
    ROW(nan_stop),
    ROW(from_text),
    ROW(array),
    ROW(take),
    ROW(batch),
    ROW(shuffle),
    ROW(concatenate),
    ROW(zip),
    ROW(cache),
    ROW(iterator),
    ROW(dense),
    ROW(optimizer),
    ROW(scaled),
    ROW(loss),
    ROW(metric),
    ROW(checkpoint)};

/* One attempt in a scope that has no memory yet. True if it succeeded. */
static bool attempt(size_t row, int64_t after, bool every) {
  mix_shutdown(); /* no recycled scope, no free list */
  releases = 0;
  void *made = NULL;
  mix_scope *scope = mix_scope_begin();
  assert_non_null(scope);
  if (every)
    allocations_left = after;
  else
    mix_inject_allocation_failure(after);
  made = rows[row].make();
  const bool failed = mix_failed();
  allocations_left = -1;
  mix_inject_allocation_failure(-1);
  if (!made && !failed) fail_msg("%s: NULL without an error, allocation %d", rows[row].name, (int)after);
  assert_int_equal(releases, 0); /* of a failed constructor the context is still the caller's */
  mix_scope_end(scope);
  if (made && rows[row].takes_context) assert_int_equal(releases, 1);
  if (failed) mix_error_clear();
  return made != NULL && !failed;
}

static void constructors(bool every) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t after = 0;
    while (!attempt(i, after, every)) after++;
    if (after < 1) fail_msg("%s: no allocation failed", rows[i].name);
  }
}
static void constructors_when_an_allocation_fails(void **state) { (void)state, constructors(false); }
static void constructors_when_any_allocation_fails(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  constructors(true);
}

/* ---- files ---- */

#if REACHES_EVERY_ALLOCATION
/* jansson 2.14 goes on without a part of a token that it could not save (lex_save in load.c), and writes
 * outside its memory. The library asks for room before (mix_json_has_room), so here jansson has it. */
SEEN_BY_LIBRARIES json_t *json_loads(const char *text, size_t flags, json_error_t *error) {
  static json_t *(*next)(const char *, size_t, json_error_t *);
  const int64_t left = allocations_left;
  allocations_left = -1;
  if (!next) *(void **)&next = dlsym(RTLD_NEXT, "json_loads");
  json_t *json = next(text, flags, error);
  allocations_left = left;
  return json;
}
#endif

/* Calls save or restore with the allocation `after` failing. `*done`: none failed. */
static bool call(bool save, int64_t after, bool *done) {
  bool good = false;
  MIX_SCOPE {
    mix_checkpoint *c = mix_checkpoint_new(in_folder("files"), .model = model);
    if (save) mix_checkpoint_restore(c, NULL);
    assert_no_error();
    allocations_left = after;
    good = save ? mix_checkpoint_save(c, 7, NULL) == MIX_OK : mix_checkpoint_restore(c, NULL) == 7;
    *done = after < 0 || allocations_left >= 0;
    allocations_left = -1;
  }
  return good;
}
static void checkpoints_when_any_allocation_fails(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  for (int save = 1; save >= 0; save--) {
    bool done = false, whole;
    int failures = 0;
    for (int64_t after = 0; !done; after += after < 200 ? 1 : 7) {
      const bool good = call(save, after, &done);
      if (!good) assert_true(mix_failed());
      failures += !good;
      mix_error_clear();
      if (done) assert_true(good);
      /* What is said to be saved can be read: something needless, like removing old files, has failed. */
      if (good && save) assert_true(call(false, -1, &whole));
    }
    assert_true(failures > 20);
  }
}

/* The first checkpoint of a process, in which no library has begun, in a child of its own for each. Exit
 * code 0: it was saved, or an error is recorded; 1: no allocation has failed; 2: neither. */
static int first_save(int64_t after) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) {
    allocations_left = after;
    mix_checkpoint *c = mix_checkpoint_new(in_folder("first"), .model = model);
    const bool good = c && mix_checkpoint_save(c, 1, NULL) == MIX_OK;
    const bool whole = allocations_left >= 0;
    allocations_left = -1;
    _exit(good == mix_failed() ? 2 : whole);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  forget("first");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
static void the_first_checkpoint_when_any_allocation_fails(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  int code, tried = 0;
  for (int64_t after = 0; (code = first_save(after)) != 1; after += 1 + after / 32, tried++)
    if (code) fail_msg("allocation %lld: exit code %d", (long long)after, code);
  assert_true(tried > 50);
}

/* A layer whose two weights have names that nothing has interned yet. */
typedef struct named {
  mix_variable *kernel, *bias;
} named;
static int name_number;
static mix_variable *weight_named(mix_layer *layer, const char *stem, mix_shape shape) {
  char name[32];
  snprintf(name, sizeof name, "%s_%d", stem, name_number);
  return mix_layer_add_weight(layer, name, .shape = shape);
}
static mix_status named_build(mix_layer *layer, int count, const mix_shape *shapes) {
  (void)count;
  named *x = mix_layer_data(layer);
  x->kernel = weight_named(layer, "kernel", MIX_SHAPE(shapes[0].dims[1], 2));
  x->bias = weight_named(layer, "bias", MIX_SHAPE(2));
  return mix_error();
}
static mix_list *named_call(mix_layer *layer, const mix_call_args *args) {
  named *x = mix_layer_data(layer);
  mix_tensor *y = mix_matmul(mix_call_input(args, 0), mix_variable_value(x->kernel), false, false);
  return mix_list_of(mix_add(y, mix_variable_value(x->bias)));
}
static const mix_layer_class named_class = {.size = sizeof named_class,
                                            .name = "Named",
                                            .instance_size = sizeof(named),
                                            .build = named_build,
                                            .call = named_call};

/* The watched step of the numerics report: names are interned while memory fails. */
static void numerics_when_an_allocation_fails(void **state) {
  (void)state;
  bool done = false;
  int failures = 0;
  for (int64_t after = 0; !done; after += after < 300 ? 1 : 5) {
    MIX_SCOPE {
      name_number = (int)after;
      mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(3));
      mix_model *watched = mix_model_new(inputs, mix_call(mix_layer_new(&named_class), inputs));
      mix_model_compile(watched, .loss = "mse", .optimizer_name = "sgd");
      mix_tensor *x = mix_fill(MIX_SHAPE(4, 3), 1, F32), *y = mix_fill(MIX_SHAPE(4, 2), 1, F32);
      assert_no_error();
      mix_inject_allocation_failure(after);
      done = mix_numerics_run(watched, x, y, .steps = 1, .batch_size = 4) != NULL;
      mix_inject_allocation_failure(-1);
      if (!done) assert_true(mix_failed());
    }
    mix_error_clear();
    failures += !done;
  }
  assert_true(failures > 100);
}

static int begin(void **state) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2));
  model = mix_retain(mix_model_new(inputs, mix_call(mix_dense(.units = 2), inputs)));
  mix_model_compile(model, .loss = "mse", .optimizer_name = "adam");
  range = mix_retain(mix_dataset_range(0, 4, 1));
  return mix_failed() || folder_begin(state);
}
static int finish(void **state) {
  mix_release(range);
  mix_release(model);
  mix_shutdown();
  return folder_end(state);
}

int main(void) {
  /* The first test is that of what a process does once. */
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_first_checkpoint_when_any_allocation_fails),
                                     cmocka_unit_test(constructors_when_an_allocation_fails),
                                     cmocka_unit_test(constructors_when_any_allocation_fails),
                                     cmocka_unit_test(checkpoints_when_any_allocation_fails),
                                     cmocka_unit_test(numerics_when_an_allocation_fails)};
  return cmocka_run_group_tests(tests, begin, finish);
}
