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

/* ---- safetensors ---- */

/* As many layers of 16 MiB as make `mebibytes`. */
static mix_model *wide_model(int mebibytes) {
  mix_tensor *inputs = mix_input(.shape = MIX_SHAPE(2048)), *x = inputs;
  for (int i = 0; i < mebibytes / 16; i++) x = mix_call(mix_dense(.units = 2048, .no_bias = true), x);
  return mix_model_new(inputs, x);
}

/* Pages of this process in memory, in bytes: what a child begins with is not counted. */
static double peak_of_this(void) {
  char line[200];
  long kilobytes = -1;
  FILE *status = fopen("/proc/self/status", "r");
  while (status && fgets(line, sizeof line, status)) sscanf(line, "VmHWM: %ld", &kilobytes);
  if (status) fclose(status);
  return 1024.0 * (double)kilobytes;
}

/* Builds the model, loads the file, and reads every weight: weights and mapped pages count. */
static int load_safetensors(const char *path, int mebibytes, double bytes) {
  mix_scope *scope = mix_scope_begin();
  const double before = peak_of_this();
  mix_model *model = wide_model(mebibytes);
  if (mix_model_load_weights(model, path) != MIX_OK) return 1;
  double sum = 0;
  mix_list *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    MIX_SCOPE {
      const float *values = mix_tensor_data(mix_variable_value(mix_list_get(weights, i)));
      for (int64_t k = 0; values && k < 2048 * 2048; k += 256) sum += (double)values[k];
    }
  const double took = peak_of_this() - before;
  print_message("safetensors of %d MiB: %.3f times its size (sum %g)\n", mebibytes, took / bytes, sum);
  mix_scope_end(scope);
  return before < 0 ? 2 : took < 1.2 * bytes && took > 0.9 * bytes ? 0 : 3;
}

/* 64 MiB, or as many as MIXTAPE_LOAD_MEBIBYTES says. */
static void safetensors_take_their_size(void **state) {
  (void)state;
  if (UNDER_SANITIZER) SKIP("a sanitizer keeps freed memory");
  const char *given = getenv("MIXTAPE_LOAD_MEBIBYTES"), *path = in_folder("wide.safetensors");
  const int mebibytes = given && atoi(given) >= 16 ? atoi(given) : 64;
  for (int loads = 0; loads < 2; loads++) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child && !loads) {
      mix_scope *scope = mix_scope_begin();
      const bool saved = mix_model_save_weights(wide_model(mebibytes), path) == MIX_OK;
      mix_scope_end(scope);
      _exit(!saved);
    }
    struct stat file = {0};
    if (!child) _exit(stat(path, &file) ? 4 : load_safetensors(path, mebibytes, (double)file.st_size));
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
  }
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(files_of_all_kinds, begin, end),
      cmocka_unit_test_setup_teardown(safetensors_take_their_size, begin, end)};
  return cmocka_run_group_tests_name("memory of loading", tests, NULL, NULL);
}
