/* Loading a file takes 1.2 times its size beside the model's own memory, each load in a process of its own.
 */
#include "model/support.h"

#include "support/folder.h"
#include "support/sanitizer.h"
#include "support/skip.h"
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 3000 }; /* 36 MB, against which a process without a model is small */

/* The largest resident memory of a child that loads the file, in bytes. NULL: of one that loads nothing. */
static double memory_of(const char *path) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (!child) {
    mix_scope *scope = mix_scope_begin();
    const bool loads = !path || mix_model_load(path);
    mix_scope_end(scope);
    _exit(!loads);
  }
  int status;
  struct rusage usage;
  assert_int_equal(wait4(child, &status, 0, &usage), child);
  assert_int_equal(status, 0);
  return 1024.0 * (double)usage.ru_maxrss;
}

static void files_of_all_kinds(void **state) {
  (void)state;
  if (UNDER_SANITIZER) SKIP("a sanitizer keeps freed memory");
  static const char *const names[] = {"model.keras", "model.h5"};
  for (int i = 0; i < 2; i++) {
    const pid_t child = fork(); /* so that this process stays small */
    assert_true(child >= 0);
    if (!child) {
      mix_scope *scope = mix_scope_begin();
      mix_tensor *x = mix_input(.shape = MIX_SHAPE(WIDTH));
      mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = WIDTH), x));
      const bool saved = mix_model_save(model, in_folder(names[i])) == MIX_OK;
      mix_scope_end(scope);
      _exit(!saved);
    }
    int status;
    struct stat file;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(stat(in_folder(names[i]), &file), 0);
    const double took = memory_of(in_folder(names[i])) - memory_of(NULL);
    print_message("%s: %.2f times its size\n", names[i], took / (double)file.st_size);
    assert_true(took < (1.2 + 1) * (double)file.st_size);
  }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(files_of_all_kinds, begin, end)};
  return cmocka_run_group_tests_name("memory of loading", tests, NULL, NULL);
}
