/* Loading when memory runs out: each allocation in turn fails, the library's own and those of libzip, jansson
 * and libc. The call records an error and leaves nothing behind, or the model is whole. */
#include "support/skip.h"
#include "model/support.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "support/every_allocation.h"
#include "support/folder.h"

enum { MOST = 200000 };

static const char *const ends[] = {".keras", ".h5", ".weights.h5"};
static mix_model *target; /* of weights */

static void extract(const char *name) {
  char path[1024];
  size_t size;
  snprintf(path, sizeof path, "%s/saving/files/keras3.zip", getenv("MIXTAPE_TESTS_DIR"));
  void *bytes = mix_zip_read(mix_zip_open(path), name, SIZE_MAX - 1, &size);
  FILE *file = fopen(in_folder(name), "wb");
  assert_true(bytes && file && fwrite(bytes, 1, size, file) == size);
  fclose(file);
  mix_free(bytes);
}

/* True if it was loaded. */
static bool load(const char *end) {
  char name[32];
  bool good = false;
  snprintf(name, sizeof name, "scaled%s", end);
  const char *path = in_folder(name);
  MIX_SCOPE {
    mix_model *model = NULL;
    if (!strcmp(end, ".weights.h5"))
      mix_model_load_weights(model = target, path);
    else
      model = mix_model_load(path);
    good = !mix_error();
    if (good) good = mix_list_count(mix_model_weights(model)) == 4 && mix_model_optimizer(model);
  }
  return good;
}

static void each_of_our_allocations(void **state) {
  (void)state;
  for (int e = 0; e < 3; e++) {
    bool good = load(ends[e]);
    assert_true(good);
    good = false;
    int64_t count = 0;
    for (; !good && count < MOST; count++) {
      mix_inject_allocation_failure(count);
      good = load(ends[e]);
      mix_inject_allocation_failure(-1);
      if (!good) assert_string_equal(mix_status_name(mix_error()), mix_status_name(MIX_MEMORY_ERROR));
      mix_error_clear();
    }
    assert_true(good && count > 20);
  }
}

/* jansson and libzip may say what they like, so any error will do. */
static void each_allocation_of_the_process(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  for (int e = 0; e < 3; e++) {
    bool reached = true;
    int64_t count = 0;
    for (; reached && count < MOST; count += 1 + count / 500) {
      allocations_left = count;
      const bool good = load(ends[e]);
      reached = allocations_left < 0;
      allocations_left = -1;
      if (!good && !mix_error())
        fail_msg("%s: allocation %lld failed without an error", ends[e], (long long)count);
      mix_error_clear();
    }
    assert_true(!reached && count > 20);
  }
}

static int begin(void **state) {
  if (folder_begin(state) || setup(state)) return -1;
  for (int e = 0; e < 3; e++) {
    char name[32];
    snprintf(name, sizeof name, "scaled%s", ends[e]);
    extract(name);
  }
  return (target = mix_model_load(in_folder("scaled.keras"))) ? 0 : -1;
}
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
#define FILES_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {FILES_TEST(each_of_our_allocations),
                                     FILES_TEST(each_allocation_of_the_process)};
  return cmocka_run_group_tests_name("loading without memory", tests, NULL, NULL);
}
