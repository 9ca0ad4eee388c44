/* The recorded models of $MIXTAPE_REFERENCE_DIR/models, as far as their layers exist: saved in every kind of
 * file and loaded again, they predict the same bits. */
#include "model/support.h"

#include "support/folder.h"
#include "support/skip.h"
#include <dirent.h>

enum { MAX_ARRAYS = 64 };

static const char *path_of(const char *name, const char *end) {
  static char path[1024];
  snprintf(path, sizeof path, "%s/models/%s%s", getenv("MIXTAPE_REFERENCE_DIR"), name, end);
  return path;
}

static mix_list *inputs(const char *name) {
  char member[32];
  mix_npz *npz = mix_npz_open(path_of(name, ".npz"));
  mix_list *list = mix_list_new(0, NULL);
  mix_tensor *one = mix_npz_get(npz, "x");
  if (one) mix_list_append(list, one);
  for (int i = 0; !one && i < MAX_ARRAYS; i++) {
    snprintf(member, sizeof member, "x_%d", i);
    mix_tensor *next = mix_npz_get(npz, member);
    if (!next) break;
    mix_list_append(list, next);
  }
  assert_no_error();
  return list;
}

static void check_predictions(const char *name, const char *kind, mix_model *model, mix_list *x,
                              mix_list *expected) {
  if (mix_error()) fail_msg("%s %s: %s", name, kind, mix_error_message());
  mix_list *made = mix_model_predict(model, x);
  assert_no_error();
  assert_int_equal(mix_list_count(made), mix_list_count(expected));
  for (int i = 0; i < mix_list_count(made); i++) {
    mix_tensor *a = mix_list_get(made, i), *b = mix_list_get(expected, i);
    assert_true(mix_shape_equal(mix_tensor_shape(a), mix_tensor_shape(b)));
    const size_t count = (size_t)mix_shape_size(mix_tensor_shape(a));
    if (memcmp(mix_tensor_data(a), mix_tensor_data(b), count * mix_dtype_size(mix_tensor_dtype(a))))
      fail_msg("%s %s: other bits", name, kind);
  }
}

static void zero_weights(mix_model *model) {
  mix_list *zeros = mix_list_new(0, NULL), *weights = mix_model_weights(model);
  for (int i = 0; i < mix_list_count(weights); i++)
    mix_list_append(zeros, mix_zeros_like(mix_variable_true_value(mix_list_get(weights, i))));
  mix_model_set_weights(model, zeros);
}

static void check_model(const char *name, mix_model *model) {
  static const char *const wholes[] = {"saved.keras", "saved.h5"};
  static const char *const parts[] = {"saved.weights.h5", "saved.legacy.h5", "saved.npz"};
  mix_list *x = inputs(name), *expected = mix_model_predict(model, x);
  for (int i = 0; i < 2; i++)
    MIX_SCOPE {
      mix_model_save(model, in_folder(wholes[i]));
      check_predictions(name, wholes[i], mix_model_load(in_folder(wholes[i])), x, expected);
    }
  for (int i = 0; i < 3; i++) mix_model_save_weights(model, in_folder(parts[i]));
  for (int i = 0; i < 3; i++) {
    zero_weights(model);
    mix_model_load_weights(model, in_folder(parts[i]));
    check_predictions(name, parts[i], model, x, expected);
  }
}

static void every_kind_of_file_and_back(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  int checked = 0;
  DIR *folder = opendir(path_of("", ""));
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder));)
    MIX_SCOPE {
      char name[256];
      snprintf(name, sizeof name, "%s", entry->d_name);
      char *end = strstr(name, ".keras");
      if (end) {
        *end = 0;
        mix_model *model = mix_model_load(path_of(name, ".keras"));
        if (model) check_model(name, model), checked++;
        if (!model) assert_error(MIX_VALUE_ERROR, "there is no built-in layer class");
      }
    }
  closedir(folder);
  print_message("%d models\n", checked);
  assert_true(checked >= 21);
}

static int begin(void **state) { return folder_begin(state) || setup(state); }
static int end(void **state) { return teardown(state) || folder_end(state); }

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(every_kind_of_file_and_back, begin, end)};
  return cmocka_run_group_tests_name("reference models in files", tests, NULL, NULL);
}
