/* Several copies of the library in one process, as where two plug-ins of a host contain it: each has policy,
 * threads and errors of its own, and all train at once, with the bits of one alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/folder.h"
#include "support/plugin/train.h"
#include "support/skip.h"
#include <dlfcn.h>
#include <pthread.h>

typedef bool train_function(const char *policy, int threads, training *result);

typedef struct copy {
  const char *path; /* NULL: the program's own */
  train_function *train;
  const char *policy;
  training result;
  bool done;
} copy;

/* What the loader takes for another library. */
static const char *duplicate(const char *path) {
  char command[1200];
  const char *to = in_folder("duplicate.so");
  snprintf(command, sizeof command, "cp '%s' '%s'", path, to);
  assert_int_equal(system(command), 0);
  return to;
}

static void open_copy(copy *c) {
  c->train = train_digits;
  if (!c->path) return;
  void *plugin = dlopen(c->path, RTLD_NOW | RTLD_LOCAL);
  if (!plugin) fail_msg("%s", dlerror());
  *(void **)&c->train = dlsym(plugin, "train");
  assert_non_null(c->train);
}

static void *train_with(void *context) {
  copy *c = context;
  c->done = c->train(c->policy, 2, &c->result);
  return NULL;
}

static void train_all(copy *copies, int count) {
  pthread_t threads[8];
  for (int i = 0; i < count; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, train_with, &copies[i]), 0);
  for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
}

static int count_threads(void) {
  DIR *tasks = opendir("/proc/self/task");
  int count = -2; /* . and .. */
  while (tasks && readdir(tasks)) count++;
  if (tasks) closedir(tasks);
  return count;
}

static void copies_train_at_once(void **state) {
  (void)state;
  const char *plugin = getenv("MIXTAPE_PLUGIN"), *shared = getenv("MIXTAPE_SHARED_PLUGIN");
  if (!plugin) SKIP("the sanitizers do not support a second library");
  copy copies[4] = {{NULL, .policy = "float32"},
                    {plugin, .policy = "mixed_float16"},
                    {duplicate(plugin), .policy = "float32"},
                    {shared, .policy = "mixed_float16"}};
  const int count = shared ? 4 : 3; /* the core has no shared library */
  uint64_t digests[2];
  for (int i = 0; i < count; i++) {
    copy *c = &copies[i];
    open_copy(c);
    train_with(c);
    if (!c->done) fail_msg("copy %d does not train", i);
    assert_string_equal(c->result.left_policy, "float32"); /* as in a new process */
    if (i < 2) digests[i] = c->result.digest;
    assert_true(c->result.digest == digests[i % 2]);
  }
  assert_true(digests[0] != digests[1]);
  for (int round = 0; round < 4; round++) {
    train_all(copies, count);
    for (int i = 0; i < count; i++) {
      if (!copies[i].done) fail_msg("copy %d does not train in round %d", i, round);
      assert_string_equal(copies[i].result.left_policy, copies[i].policy);
      assert_int_equal(copies[i].result.left_threads, 2);
      assert_true(copies[i].result.digest == digests[i % 2]);
    }
  }
  assert_true(count_threads() > count); /* this one, and at least one of each copy */
}

/* In no copy but the one whose call failed. The program's own is asked for its. */
static void errors_are_a_copys_own(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_PLUGIN")) SKIP("the sanitizers do not support a second library");
  copy guest = {getenv("MIXTAPE_PLUGIN")};
  training result = {0};
  open_copy(&guest);
  assert_false(guest.train("no_policy", 2, &result));
  assert_int_equal(mix_error(), MIX_OK);
  assert_true(train_digits("float32", 2, &result));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(copies_train_at_once),
                                     cmocka_unit_test(errors_are_a_copys_own)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
