/* Weights in HDF5 files that the HDF5 library was made to write with a circle, with links or data in other
 * files, or with thousands of groups: an error that names what is wrong, or a model, and no other file
 * opened. */
#include "model/support.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "support/expect.h"
#include "support/folder.h"
#include <hdf5.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zip.h>

static char *config;  /* of a small model of Keras 3 */
static void *weights; /* its model.weights.h5 */
static size_t weights_size;
/* A pipe that nobody writes to: who opens it waits until the alarm. */
static char trap[512];

static void *member_of(const char *path, const char *member, size_t *size) {
  void *bytes = mix_zip_read(mix_zip_open(path), member, SIZE_MAX - 1, size);
  assert_non_null(bytes);
  return bytes;
}

static void *member_of_recorded(const char *member, size_t *size) {
  char path[1024];
  size_t inner_size;
  snprintf(path, sizeof path, "%s/saving/files/keras3.zip", getenv("MIXTAPE_TESTS_DIR"));
  void *inner = member_of(path, "schedule.keras", &inner_size);
  void *bytes = mix_zip_read(mix_zip_open_memory("inner", inner, inner_size), member, SIZE_MAX - 1, size);
  assert_non_null(bytes);
  mix_free(inner);
  return bytes;
}

/* ---- changing a file with the HDF5 library ---- */

static hid_t open_weights(void) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_core(access, 1 << 16, false);
  H5Pset_file_image(access, weights, weights_size);
  const hid_t file = H5Fopen("an image in memory", H5F_ACC_RDWR, access);
  assert_true(file >= 0);
  H5Pclose(access);
  return file;
}

/* Closes the file; the path of an archive with it. */
static const char *archive_of(hid_t file) {
  const char *path = in_folder("model.keras");
  H5Fflush(file, H5F_SCOPE_GLOBAL);
  const ssize_t size = H5Fget_file_image(file, NULL, 0);
  assert_true(size > 0);
  void *bytes = malloc((size_t)size);
  assert_true(bytes && H5Fget_file_image(file, bytes, (size_t)size) == size);
  H5Fclose(file);
  unlink(path);
  zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, NULL);
  assert_non_null(archive);
  zip_file_add(archive, "config.json", zip_source_buffer(archive, config, strlen(config), 0), 0);
  zip_file_add(archive, "model.weights.h5", zip_source_buffer(archive, bytes, (zip_uint64_t)size, 0), 0);
  assert_int_equal(zip_close(archive), 0);
  free(bytes);
  return path;
}

static const char kernel[] = "layers/dense/vars/0";

static hid_t without(const char *path) {
  const hid_t file = open_weights();
  assert_true(H5Ldelete(file, path, H5P_DEFAULT) >= 0);
  return file;
}

static void expect_file_refused(hid_t file, mix_status status, const char *mentions) {
  alarm(60);
  expect_refused(mix_model_load(archive_of(file)), status, mentions);
  alarm(0);
}

/* ---- circles ---- */

static void a_soft_link_to_itself(void **state) {
  (void)state;
  const hid_t file = without(kernel);
  H5Lcreate_soft("/layers/dense/vars/0", file, kernel, H5P_DEFAULT, H5P_DEFAULT);
  expect_file_refused(file, MIX_UNSUPPORTED, "soft links");
}

/* In a group whose links are messages of their own, as those that count the order of creation are. */
static void a_soft_link_in_a_new_group(void **state) {
  (void)state;
  const hid_t file = without("layers/dense/vars"), made = H5Pcreate(H5P_GROUP_CREATE);
  H5Pset_link_creation_order(made, H5P_CRT_ORDER_TRACKED);
  H5Gclose(H5Gcreate2(file, "layers/dense/vars", H5P_DEFAULT, made, H5P_DEFAULT));
  H5Pclose(made);
  H5Lcreate_soft("/layers/dense/vars/0", file, kernel, H5P_DEFAULT, H5P_DEFAULT);
  expect_file_refused(file, MIX_UNSUPPORTED, "soft links");
}

/* vars holds itself, and a group further up, as the weights. */
static void groups_that_hold_each_other(void **state) {
  (void)state;
  static const char *const targets[] = {"layers/dense/vars", "layers", "/"};
  for (int i = 0; i < 3; i++) {
    const hid_t file = without(kernel);
    assert_true(H5Lcreate_hard(file, targets[i], file, kernel, H5P_DEFAULT, H5P_DEFAULT) >= 0);
    expect_file_refused(file, MIX_FORMAT_ERROR, "'layers/dense/vars/0' is no data set");
  }
}

/* A circle beside the weights changes nothing. */
static void a_circle_beside_the_weights(void **state) {
  (void)state;
  const hid_t file = open_weights();
  assert_true(H5Lcreate_hard(file, "/", file, "layers/again", H5P_DEFAULT, H5P_DEFAULT) >= 0);
  assert_non_null(mix_model_load(archive_of(file)));
}

/* ---- other files ---- */

static void an_external_link(void **state) {
  (void)state;
  const hid_t file = without(kernel);
  H5Lcreate_external(trap, "/x", file, kernel, H5P_DEFAULT, H5P_DEFAULT);
  expect_file_refused(file, MIX_UNSUPPORTED, "external links");
}

static hid_t kernel_space(void) { return H5Screate_simple(2, (const hsize_t[]){4, 3}, NULL); }

static void data_in_another_file(void **state) {
  (void)state;
  const hid_t file = without(kernel), space = kernel_space(), made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_external(made, trap, 0, 48);
  H5Dclose(H5Dcreate2(file, kernel, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
  H5Pclose(made);
  H5Sclose(space);
  expect_file_refused(file, MIX_UNSUPPORTED, "data in other files");
}

static void a_virtual_data_set(void **state) {
  (void)state;
  const hid_t file = without(kernel), space = kernel_space(), made = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_virtual(made, space, trap, "/x", space);
  const hid_t set = H5Dcreate2(file, kernel, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT);
  assert_true(set >= 0);
  H5Dclose(set);
  H5Pclose(made);
  H5Sclose(space);
  expect_file_refused(file, MIX_UNSUPPORTED, "virtual data sets");
}

/* ---- many ---- */

/* Beside the weights, and each in the one before. */
static void thousands_of_groups(void **state) {
  (void)state;
  enum { GROUPS = 5000, DEEP = 3000 };
  char name[32];
  const hid_t file = open_weights();
  hid_t inner = H5Gopen2(file, "layers", H5P_DEFAULT);
  for (int i = 0; i < GROUPS; i++) {
    snprintf(name, sizeof name, "layers/g%d", i);
    H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  for (int i = 0; i < DEEP; i++) {
    const hid_t next = H5Gcreate2(inner, "in", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(inner);
    inner = next;
  }
  H5Gclose(inner);
  assert_non_null(mix_model_load(archive_of(file)));
}

/* In the place of a layer's variables. */
static void thousands_of_groups_for_variables(void **state) {
  (void)state;
  char name[64];
  const hid_t file = open_weights();
  for (int i = 0; i < 5000; i++) {
    snprintf(name, sizeof name, "layers/dense/vars/g%d", i);
    H5Gclose(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  }
  expect_file_refused(file, MIX_VALUE_ERROR,
                      "'dense_1' has 2 variables (kernel (4, 3), bias (3)), but 'layers/dense/vars' in the "
                      "file has 5002");
}

/* ---- what only values show ---- */

/* A data set that was never written, whose values are another number than 0. */
static void a_fill_value(void **state) {
  (void)state;
  const hid_t file = without(kernel), space = kernel_space(), made = H5Pcreate(H5P_DATASET_CREATE);
  const float seven = 7;
  H5Pset_fill_value(made, H5T_NATIVE_FLOAT, &seven);
  H5Dclose(H5Dcreate2(file, kernel, H5T_IEEE_F32LE, space, H5P_DEFAULT, made, H5P_DEFAULT));
  H5Pclose(made);
  H5Sclose(space);
  expect_file_refused(file, MIX_UNSUPPORTED, "a fill value that is not 0");
}

/* ---- a state of another optimizer ---- */

/* Keras saves a loss-scale optimizer that has not trained with four numbers, as many as SGD with momentum has
 * variables for one layer; they are not that state. */
static void a_loss_scale_optimizer_that_has_not_trained(void **state) {
  (void)state;
  mix_set_semantics("keras3");
  mix_set_global_policy("mixed_float16");
  mix_model *model = mix_sequential(mix_list_of(mix_dense(.units = 2)));
  assert_int_equal(mix_model_build(model, MIX_SHAPE(MIX_UNKNOWN, 3)), MIX_OK);
  mix_model_compile(model, .loss = "mse", .optimizer = mix_sgd(.momentum = 0.5));
  assert_int_equal(mix_model_save(model, in_folder("saved.keras")), MIX_OK);
  mix_free(config), mix_free(weights);
  config = member_of(in_folder("saved.keras"), "config.json", &(size_t){0});
  weights = member_of(in_folder("saved.keras"), "model.weights.h5", &weights_size);
  const hid_t file = open_weights();
  assert_true(H5Ldelete(file, "optimizer/vars/4", H5P_DEFAULT) >= 0);
  assert_true(H5Ldelete(file, "optimizer/vars/5", H5P_DEFAULT) >= 0);
  mix_model *again = mix_model_load(archive_of(file));
  if (!again) fail_msg("%s", mix_error_message());
  assert_int_equal(mix_optimizer_iterations(mix_model_optimizer(again)), 0);
}

static int begin(void **state) {
  if (folder_begin(state) || setup(state)) return -1;
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  snprintf(trap, sizeof trap, "%s", in_folder("trap.h5"));
  assert_int_equal(mkfifo(trap, 0600), 0);
  config = member_of_recorded("config.json", &(size_t){0});
  weights = member_of_recorded("model.weights.h5", &weights_size);
  return 0;
}
static int end(void **state) {
  mix_free(config);
  mix_free(weights);
  return teardown(state) || folder_end(state);
}

int main(void) {
#define WEIGHTS_TEST(function) cmocka_unit_test_setup_teardown(function, begin, end)
  const struct CMUnitTest tests[] = {WEIGHTS_TEST(a_soft_link_to_itself),
                                     WEIGHTS_TEST(a_soft_link_in_a_new_group),
                                     WEIGHTS_TEST(groups_that_hold_each_other),
                                     WEIGHTS_TEST(a_circle_beside_the_weights),
                                     WEIGHTS_TEST(an_external_link),
                                     WEIGHTS_TEST(data_in_another_file),
                                     WEIGHTS_TEST(a_virtual_data_set),
                                     WEIGHTS_TEST(thousands_of_groups),
                                     WEIGHTS_TEST(thousands_of_groups_for_variables),
                                     WEIGHTS_TEST(a_fill_value),
                                     WEIGHTS_TEST(a_loss_scale_optimizer_that_has_not_trained)};
  return cmocka_run_group_tests_name("hostile weights", tests, NULL, NULL);
}
