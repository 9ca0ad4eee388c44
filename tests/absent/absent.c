/* A build that leaves parts out: what needs one fails with an error that names the part and its option, and
 * the rest trains, saves and loads. CMakeLists.txt links this with a library without each part, and without
 * all. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/features.h"
#include "support/folder.h"
#include "support/skip.h"
#include <mixtape/mixtape.h>
#include <sys/stat.h>

static bool is_absent(const char *part) { return strstr(mix_parts_left_out(), part) != NULL; }

/* The pending error names the part and its option. */
static void assert_absent(const char *part, const char *option) {
  char message[1024];
  assert_int_not_equal(mix_error_take(message, sizeof message), MIX_OK);
  if (!strstr(message, part) || !strstr(message, option)) fail_msg("no %s in: %s", option, message);
}

static void the_parts_are_those_of_the_build(void **state) {
  (void)state;
  const char *expected = getenv("MIXTAPE_EXPECTED_OUT");
  if (!expected) fail_msg("MIXTAPE_EXPECTED_OUT is not set");
  assert_string_equal(mix_parts_left_out(), expected);
}

static void the_rest_trains_and_saves(void **state) {
  (void)state;
  mix_scope *scope = mix_scope_begin();
  mix_model *model = mix_sequential(mix_list_of(mix_dense(1)));
  mix_model_compile(model, .optimizer = mix_sgd(0.1), .loss = "mse");
  mix_tensor *x = mix_fill(MIX_SHAPE(4, 2), 1, MIX_FLOAT32), *y = mix_fill(MIX_SHAPE(4, 1), 3, MIX_FLOAT32);
  mix_history *history = mix_model_fit(model, x, y, .epochs = 2, .verbose = MIX_SILENT);
  if (!history) fail_msg("%s", mix_error_message());
  if (mix_model_save(model, in_folder("small.keras"))) fail_msg("%s", mix_error_message());
  if (!mix_model_load(in_folder("small.keras"))) fail_msg("%s", mix_error_message());
  mix_scope_end(scope);
}

static void images_are_refused(void **state) {
  (void)state;
  if (!is_absent("images")) SKIP("this library reads images");
  mix_scope *scope = mix_scope_begin();
  mkdir(in_folder("pictures"), 0777);
  mkdir(in_folder("pictures/one"), 0777);
  FILE *file = fopen(in_folder("pictures/one/a.png"), "wb");
  fclose(file);
  mix_image_dataset images = mix_image_dataset_from_directory(in_folder("pictures"));
  assert_non_null(images.dataset);
  assert_null(mix_iterator_next(mix_dataset_iterate(images.dataset)));
  assert_absent("images", "-DMIXTAPE_IMAGES=ON");
  mix_scope_end(scope);
}

static void pictures_are_refused_and_pages_are_not(void **state) {
  (void)state;
  if (!is_absent("drawing")) SKIP("this library draws");
  mix_scope *scope = mix_scope_begin();
  mix_numerics *report = mix_numerics_new();
  assert_int_equal(mix_numerics_write_html(report, in_folder("report.html")), MIX_OK);
  assert_int_not_equal(mix_numerics_write_png(report, in_folder("report.png")), MIX_OK);
  assert_absent("drawing", "-DMIXTAPE_DRAWING=ON");
  mix_scope_end(scope);
}

static void downloads_are_refused(void **state) {
  (void)state;
  if (!is_absent("download")) SKIP("this library downloads");
  mix_scope *scope = mix_scope_begin();
  setenv("HOME", in_folder("nobody"), 1);
  unsetenv("MIXTAPE_DATA_DIR");
  unsetenv("KERAS_HOME");
  unsetenv("MIXTAPE_OFFLINE");
  assert_null(mix_mnist_load().x_train);
  assert_absent("download", "-DMIXTAPE_DOWNLOAD=ON");
  mix_scope_end(scope);
}

static void devices_of_plugins_are_refused(void **state) {
  (void)state;
  if (!is_absent("xla")) SKIP("this library has the device xla");
  static const char *const devices[] = {"xla", "xla:/a/plugin.so", "cuda", "cuda:1"};
  for (int i = 0; i < 4; i++) {
    assert_int_not_equal(mix_set_device(devices[i]), MIX_OK);
    assert_absent("xla", "-DMIXTAPE_XLA=ON");
  }
  assert_int_equal(mix_set_device("auto"), MIX_OK);
  assert_string_equal(mix_device(), "cpu");
  assert_non_null(strstr(mix_devices_text(), "cuda: unavailable"));
}

static void files_of_onnx_are_refused(void **state) {
  (void)state;
  if (!is_absent("onnx")) SKIP("this library reads and writes ONNX");
  mix_scope *scope = mix_scope_begin();
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(2));
  mix_model_export(mix_model_new(x, mix_call(mix_dense(1), x)), in_folder("small.onnx"));
  assert_absent("onnx", "-DMIXTAPE_ONNX=ON");
  assert_null(mix_model_load(in_folder("small.onnx")));
  assert_absent("onnx", "-DMIXTAPE_ONNX=ON");
  mix_scope_end(scope);
}

static void processes_are_refused(void **state) {
  (void)state;
  if (!is_absent("mpi")) SKIP("this library trains in several processes");
  mix_scope *scope = mix_scope_begin();
  unsetenv("OMPI_COMM_WORLD_RANK");
  assert_int_equal(mix_distribution_size(mix_distribution_mpi()), 1); /* of a process by itself */
  mix_scope_end(scope);
  scope = mix_scope_begin();
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  assert_null(mix_distribution_mpi());
  assert_absent("mpi", "-DMIXTAPE_MPI=ON");
  assert_null(mix_distribution_mpi_from(0, NULL));
  assert_absent("mpi", "-DMIXTAPE_MPI=ON");
  mix_scope_end(scope);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_parts_are_those_of_the_build),
      cmocka_unit_test(the_rest_trains_and_saves),
      cmocka_unit_test(images_are_refused),
      cmocka_unit_test(pictures_are_refused_and_pages_are_not),
      cmocka_unit_test(downloads_are_refused),
      cmocka_unit_test(devices_of_plugins_are_refused),
      cmocka_unit_test(files_of_onnx_are_refused),
      cmocka_unit_test(processes_are_refused),
  };
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
