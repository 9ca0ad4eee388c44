/* Saving HDF5 when memory ends at any point, from the start of the HDF5 library on: an error of memory, or
 * the file is whole. Each attempt is a process of its own, in which that library has not begun. */
#include "model/support.h"

#include "base/alloc.h"
#include "base/text.h"
#include "support/ending_memory.h"
#include "support/folder.h"
#include "support/skip.h"

static int save(void *model) { return mix_model_save(model, in_folder("model.h5")); }

static void memory_ends_while_a_file_is_saved(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = mix_model_from_json(
        "{\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[{\"class_name\":\"Dense\","
        "\"config\":{\"name\":\"d\",\"units\":3}}],\"build_input_shape\":[null,2]}}");
    assert_non_null(model);
    expect_errors_of_memory(save, model);
    assert_non_null(mix_model_load(in_folder("model.h5")));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(memory_ends_while_a_file_is_saved, teardown)};
  return cmocka_run_group_tests_name("saving without memory", tests, folder_begin, folder_end);
}
