/* Models from ONNX and to it when memory runs out: an allocation fails, the library's own or one of jansson
 * and libc. The call records an error and leaves nothing behind, or it is done. */
#include "support/skip.h"
#include "model/support.h"

#include "base/alloc.h"
#include "onnx/graphs.h"
#include "onnx/import.h"
#include "support/every_allocation.h"
#include "support/folder.h"
#include <mixtape/export.h>

enum { MOST = 1000000 };

enum { GRAPHS = 4 };
static mix_message files[GRAPHS];
static mix_model *models[GRAPHS];

static bool reads(int i) {
  bool good = false;
  MIX_SCOPE {
    mix_onnx_file file;
    good =
        mix_onnx_open_memory(&file, "memory", files[i].data, files[i].size) && mix_import_file(&file, NULL);
  }
  return good;
}

static bool writes(int i) { return mix_model_export(models[i], in_folder("memory.onnx")) == MIX_OK; }

/* The first 60 allocations, then ever fewer: a model has thousands. */
static int64_t next_of(int64_t count) { return count + 1 + count / 60; }

static void each_of_our_allocations(bool (*work)(int)) {
  for (int i = 0; i < GRAPHS; i++) {
    bool good = work(i);
    assert_true(good);
    good = false;
    int64_t count = 0;
    for (; !good && count < MOST; count = next_of(count)) {
      mix_inject_allocation_failure(count);
      good = work(i);
      mix_inject_allocation_failure(-1);
      if (!good) assert_string_equal(mix_status_name(mix_error()), mix_status_name(MIX_MEMORY_ERROR));
      mix_error_clear();
    }
    assert_true(good && count > 100);
  }
}

/* jansson may say what it likes, so any error will do. */
static void each_allocation_of_the_process(bool (*work)(int)) {
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  for (int i = 0; i < GRAPHS; i++) {
    bool reached = true;
    int64_t count = 0;
    for (; reached && count < MOST; count = next_of(count)) {
      allocations_left = count;
      const bool good = work(i);
      reached = allocations_left < 0;
      allocations_left = -1;
      if (!good && !mix_error()) fail_msg("allocation %lld failed without an error", (long long)count);
      mix_error_clear();
    }
    assert_true(!reached && count > 100);
  }
}

static void reading_with_failing_allocations(void **state) {
  (void)state;
  each_of_our_allocations(reads);
}
static void reading_while_the_process_has_none(void **state) {
  (void)state;
  each_allocation_of_the_process(reads);
}
static void writing_with_failing_allocations(void **state) {
  (void)state;
  each_of_our_allocations(writes);
}
static void writing_while_the_process_has_none(void **state) {
  (void)state;
  each_allocation_of_the_process(writes);
}

static int begin(void **state) {
  if (folder_begin(state) || setup(state)) return -1;
  mix_message (*const graphs[])(void) = {graph_mlp, graph_cnn, graph_words, graph_steps};
  for (int i = 0; i < GRAPHS; i++) {
    mix_onnx_file file;
    files[i] = graphs[i]();
    if (!mix_onnx_open_memory(&file, "memory", files[i].data, files[i].size)) return -1;
    if (!(models[i] = mix_import_file(&file, NULL))) return -1;
  }
  return 0;
}

static int end(void **state) {
  for (int i = 0; i < GRAPHS; i++) mix_message_free(&files[i]);
  return teardown(state) || folder_end(state);
}

int main(void) {
#define FILES_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {
      FILES_TEST(reading_with_failing_allocations), FILES_TEST(reading_while_the_process_has_none),
      FILES_TEST(writing_with_failing_allocations), FILES_TEST(writing_while_the_process_has_none)};
  return cmocka_run_group_tests_name("ONNX without memory", tests, NULL, NULL);
}
