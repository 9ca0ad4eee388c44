/* The summary against what real Keras and KerasHub print (summaries/record.py), line by line: of the recorded
 * models and of the files in tests/saving/files, whose layers exist. */
#include "model/support.h"

#include "base/alloc.h"
#include "formats/zip_members.h"
#include "support/folder.h"
#include "support/skip.h"
#include <mixtape/saving.h>

static char *read_all(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) fail_msg("cannot open %s", path);
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  char *text = calloc(1, (size_t)size + 1);
  rewind(file);
  assert_int_equal(fread(text, 1, (size_t)size, file), size);
  fclose(file);
  return text;
}

/* The path of a recorded model, or of a file that is extracted from the archive of the generation. */
static const char *find_model(const char *generation, const char *name) {
  static char path[1024];
  if (strchr(name, '-')) {
    const char *folder = strncmp(name, "hub-", strlen("hub-")) ? "models" : "hub";
    snprintf(path, sizeof path, "%s/%s/%s.keras", getenv("MIXTAPE_REFERENCE_DIR"), folder, name);
    return path;
  }
  char archive[1024], member[80];
  size_t size;
  snprintf(archive, sizeof archive, "%s/saving/files/%s.zip", getenv("MIXTAPE_TESTS_DIR"), generation);
  snprintf(member, sizeof member, "%s.keras", name);
  snprintf(path, sizeof path, "%s", in_folder(member));
  mix_zip *zip = mix_zip_open(archive);
  void *bytes = mix_zip_read(zip, member, SIZE_MAX - 1, &size);
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, size, file), size);
  fclose(file);
  mix_free(bytes);
  return path;
}

static void assert_lines(const char *name, const char *got, const char *expected) {
  for (int line = 1; *expected; line++) {
    const size_t length = strcspn(expected, "\n");
    if (strncmp(got, expected, length + 1) != 0)
      fail_msg("%s: line %d is\n%.*s\nKeras prints\n%.*s", name, line, (int)strcspn(got, "\n"), got,
               (int)length, expected);
    got += length + 1;
    expected += length + 1;
  }
}

/* False: layers are missing. */
static bool check(const char *generation, const char *name, const char *columns, const char *expected) {
  bool exists = false;
  MIX_SCOPE {
    mix_clear_names();
    /* Keras compiles no task of KerasHub that it loads: there are no parameters of an optimizer. */
    mix_model *model = mix_model_load(find_model(generation, name), .no_compile = !strcmp(generation, "hub"));
    setenv("COLUMNS", columns, 1);
    const char *text = mix_model_summary(model);
    if ((exists = text != NULL)) {
      assert_lines(name, text, expected);
      assert_non_null(strstr(text, "Policy: ")); /* and lines of our own behind */
    } else {
      assert_error(MIX_VALUE_ERROR, "there is no built-in layer class");
    }
  }
  return exists;
}

static int check_all(const char *generation) {
  char path[1024];
  int compared = 0;
  snprintf(path, sizeof path, "%s/model/summaries/%s.txt", getenv("MIXTAPE_TESTS_DIR"), generation);
  char *text = read_all(path);
  for (char *at = text; at && *at;) {
    char name[64], columns[8];
    assert_int_equal(sscanf(at, "#%63s %7s", name, columns), 2);
    char *begin = strchr(at, '\n') + 1, *next = strstr(begin, "\n#");
    if (next) next[1] = 0;
    compared += check(generation, name, columns, begin);
    if (next) next[1] = '#';
    at = next ? next + 1 : NULL;
  }
  free(text);
  return compared;
}

static void keras3_draws_boxes(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  assert_true(check_all("keras3") >= 20);
}

static void tf_keras_prints_columns(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  assert_true(check_all("tf_keras") >= 18);
}

static void models_of_keras_hub_are_one_row(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  if (strstr(mix_parts_left_out(), "hub")) SKIP("this build leaves out the classes of KerasHub");
  assert_int_equal(check_all("hub"), 7);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(keras3_draws_boxes), TEST(models_of_keras_hub_are_one_row),
                                     TEST(tf_keras_prints_columns)};
  return cmocka_run_group_tests_name("summaries", tests, folder_begin, folder_end);
}
