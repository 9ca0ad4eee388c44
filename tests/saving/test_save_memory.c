/* Saving when memory ends at any point: an error of memory and the old file, or the file is whole. */
#include "support/every_allocation.h"

#include "model/support.h"

#include "base/alloc.h"
#include "base/text.h"
#include "support/ending_memory.h"
#include "support/expect.h"
#include "support/folder.h"
#include "support/skip.h"

static mix_model *small_model(void) {
  mix_set_semantics("keras3");
  mix_model *model = mix_model_from_json(
      "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[{\"class_name\":\"Dense\","
      "\"config\":{\"name\":\"d\",\"units\":3}}],\"build_input_shape\":[null,2]}}");
  assert_non_null(model);
  return model;
}

static mix_status save_whole(mix_model *model, const char *path) { return mix_model_save(model, path); }
static mix_status save_weights(mix_model *model, const char *path) {
  const double shards = strstr(path, ".json") ? 1 : 0;
  return mix_model_save_weights_with(
      model, &(mix_save_weights_options){sizeof(mix_save_weights_options), path, shards});
}

static int save(void *model) { return mix_model_save(model, in_folder("model.h5")); }

/* Each attempt is a process of its own, in which no library has begun. */
static void memory_ends_while_a_file_is_saved(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = small_model();
    expect_errors_of_memory(save, model);
    assert_non_null(mix_model_load(in_folder("model.h5")));
  }
}

/* Those of all libraries. A save as before leaves the same bytes, apart from the date in an archive. */
static void any_allocation_of_a_save_fails(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  static const char *const names[] = {"a.keras", "a.h5", "a.weights.h5", "a.weights.json", "a.npz"};
  for (int n = 0; n < 5; n++) {
    mix_status (*save_to)(mix_model *, const char *) = save_weights;
    if (n < 2) save_to = save_whole;
    const char *path = in_folder(names[n]);
    mix_model *model = small_model();
    assert_int_equal(save_to(model, path), MIX_OK);
    const int files = folder_count();
    int failed = 0;
    bool reached = true;
    for (int64_t i = 0; reached; i++) {
      allocations_left = i;
      const mix_status status = save_to(model, path);
      reached = allocations_left < 0;
      allocations_left = -1;
      if (status) expect_error(MIX_MEMORY_ERROR, "memory"), failed++;
      assert_int_equal(folder_count(), files);
    }
    print_message("%s: %d allocations failed\n", names[n], failed);
    assert_true(failed > 0);
    if (n < 2) assert_non_null(mix_model_load(path));
    if (n >= 2) assert_int_equal(mix_model_load_weights(model, path), MIX_OK);
  }
}

/* No allocation is as large as a quarter of the kernel, which has 9 MB: values are copied piece by piece. */
static void a_save_holds_no_second_copy(void **state) {
  (void)state;
  static const char *const names[] = {"large.keras", "large.h5", "large.weights.h5"};
  mix_set_semantics("keras3");
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(1500));
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 1500), x));
  assert_non_null(model);
  mix_limit_allocations(9000000 / 4);
  for (int n = 0; n < 3; n++)
    assert_int_equal((n < 2 ? save_whole : save_weights)(model, in_folder(names[n])), MIX_OK);
  mix_limit_allocations(0);
  for (int n = 0; n < 3; n++) assert_int_equal(mix_model_load_weights(model, in_folder(names[n])), MIX_OK);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(memory_ends_while_a_file_is_saved, teardown),
                                     cmocka_unit_test_teardown(any_allocation_of_a_save_fails, teardown),
                                     cmocka_unit_test_teardown(a_save_holds_no_second_copy, teardown)};
  return cmocka_run_group_tests_name("saving without memory", tests, folder_begin, folder_end);
}
