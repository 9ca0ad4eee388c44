/* Downloads: checksums and errors. No network: the files come from file:// addresses. */
#include "support/skip.h"
#include "data/support.h"

#include "base/alloc.h"
#include "data/datasets/find_files.h"

#include <stdlib.h>

/* sha256sum of "abc" (FIPS 180-2, appendix B.1) */
#define ABC_SHA256 "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

static char reason[300];

static void *fetch(const char *name, const char *sha256, size_t limit, bool local_files, size_t *size) {
  char url[700];
  snprintf(url, sizeof url, "file://%s", in_folder(name));
  const mix_download_request request = {
      .url = url, .sha256 = sha256, .limit = limit, .local_files = local_files};
  *reason = 0;
  return mix_download(&request, size, reason, sizeof reason);
}

/* Without libcurl the other tests do nothing. */
static bool available(void) {
  size_t size;
  mix_free(fetch("none", ABC_SHA256, 10, true, &size));
  return !strstr(reason, "cannot be loaded");
}

static void content_of_the_right_checksum_is_given(void **state) {
  (void)state;
  if (!available()) SKIP("libcurl cannot be loaded");
  size_t size = 0;
  write_file(in_folder("abc"), "abc", 3);
  char *data = fetch("abc", ABC_SHA256, 3, true, &size);
  if (!data) print_message("%s\n", reason);
  assert_non_null(data);
  assert_int_equal(size, 3);
  assert_memory_equal(data, "abc", 3);
  mix_free(data);
}

static void everything_else_is_an_error(void **state) {
  (void)state;
  if (!available()) SKIP("libcurl cannot be loaded");
  size_t size;
  write_file(in_folder("abc"), "abc", 3);
  write_file(in_folder("abd"), "abd", 3);
  write_file(in_folder("empty"), "", 0);
  assert_null(fetch("abd", ABC_SHA256, 3, true, &size));
  assert_non_null(strstr(
      reason,
      "SHA-256 is a52d159f262b2c6ddb724a61840befc36eb30c88877a4030b65cbe86298449c9")); /* by sha256sum */
  assert_null(fetch("abc", ABC_SHA256, 2, true, &size));
  assert_non_null(strstr(reason, "more than the 2 bytes"));
  assert_null(fetch("empty", ABC_SHA256, 3, true, &size));
  assert_non_null(strstr(reason, "empty"));
  assert_null(fetch("absent", ABC_SHA256, 3, true, &size));
  assert_true(*reason);
  assert_null(fetch("abc", ABC_SHA256, 3, false, &size)); /* https only */
  assert_true(*reason);
  const mix_download_request plain = {
      .url = "http://localhost:1/mnist.npz", .sha256 = ABC_SHA256, .limit = 3};
  assert_null(mix_download(&plain, &size, reason, sizeof reason));
  assert_true(*reason);
  assert_int_equal(mix_error(), MIX_OK);
}

/* ---- the announcement ---- */

static char announced[1000];

static void note_message(void *context, mix_log_level level, const char *message) {
  (void)context, (void)level;
  if (!*announced) snprintf(announced, sizeof announced, "%s", message);
}
static bool find_nothing(const char *folder, void *context) {
  (void)folder, (void)context;
  return false;
}
static void see_announced(const void *data, size_t size, void *context) {
  (void)data, (void)size;
  *(bool *)context = strstr(announced, "abc_load: no abc is in ") &&
                     strstr(announced, "; downloading file://") &&
                     strstr(announced, ", which is then kept in ");
}

/* Before anything goes out: what is missing and where, from where it comes, and where it stays. */
static void a_download_is_announced(void **state) {
  (void)state;
  if (!available()) SKIP("libcurl cannot be loaded");
  char url[700];
  bool seen = false;
  snprintf(url, sizeof url, "file://%s", in_folder("abc"));
  write_file(in_folder("abc"), "abc", 3);
  setenv("MIXTAPE_DATA_DIR", in_folder("kept"), 1);
  unsetenv("MIXTAPE_OFFLINE");
  const mix_data_files files = {.call = "abc_load",
                                .folder = "abc",
                                .missing = "no abc is",
                                .kept_as = "abc.bin",
                                .request = {url, ABC_SHA256, 3, true},
                                .search = find_nothing,
                                .take = see_announced};
  mix_set_log_callback(note_message, NULL);
  assert_true(mix_data_files_find(&files, NULL, false, &seen));
  mix_set_log_callback(NULL, NULL);
  unsetenv("MIXTAPE_DATA_DIR");
  if (!seen) fail_msg("%s", announced);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(content_of_the_right_checksum_is_given),
      FOLDER_TEST(everything_else_is_an_error),
      FOLDER_TEST(a_download_is_announced),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
