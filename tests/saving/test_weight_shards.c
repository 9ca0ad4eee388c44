/* Sharded weights (.weights.json): written and read, in Keras's form; indexes that are damaged or hostile;
 * and the recorded ones of $MIXTAPE_REFERENCE_DIR/precision. */
#include "model/support.h"

#include "base/alloc.h"
#include "support/expect.h"
#include "support/folder.h"
#include "support/skip.h"
#include <dirent.h>
#include <jansson.h>

#define EXPECT(call, status, part) ((void)(call), expect_error(status, part))

enum { GB = 1 << 30, LARGEST = 12 * 4 };

static mix_model *small(void) {
  mix_set_semantics("keras3");
  mix_set_seed(7);
  mix_tensor *x = mix_input(.shape = MIX_SHAPE(4));
  mix_tensor *y = mix_call(mix_dense(.units = 3, .activation = "relu", .name = "first"), x);
  mix_model *model = mix_model_new(x, mix_call(mix_dense(.units = 2, .name = "second"), y));
  mix_model_compile(model, .loss = "mse", .optimizer = mix_adam(.learning_rate = 0.25));
  return model;
}

static void train(mix_model *model) {
  mix_model_train_on_batch(model, mix_list_of(mix_fill(MIX_SHAPE(6, 4), 1, F32)),
                           mix_list_of(mix_fill(MIX_SHAPE(6, 2), 1, F32)));
  assert_int_equal(mix_error(), MIX_OK);
}

static mix_status save(mix_model *model, const char *path, double bytes) {
  return mix_model_save_weights_with(
      model, &(const mix_save_weights_options){
                 .size = sizeof(mix_save_weights_options), .path = path, .max_shard_size = bytes / GB});
}

static void assert_same(mix_model *a, mix_model *b) {
  mix_list *lists[2][2] = {
      {mix_model_weights(a), mix_model_weights(b)},
      {mix_optimizer_variables(mix_model_optimizer(a)), mix_optimizer_variables(mix_model_optimizer(b))}};
  for (int l = 0; l < 2; l++) {
    assert_int_equal(mix_list_count(lists[l][0]), mix_list_count(lists[l][1]));
    for (int i = 0; i < mix_list_count(lists[l][0]); i++) {
      mix_tensor *x = mix_variable_true_value(mix_list_get(lists[l][0], i)),
                 *y = mix_variable_true_value(mix_list_get(lists[l][1], i));
      for (int64_t e = 0; e < mix_shape_size(mix_tensor_shape(x)); e++) assert_true(at(x, e) == at(y, e));
    }
  }
}

static int files_in_folder(void) {
  int count = 0;
  DIR *folder = opendir(test_folder);
  for (const struct dirent *entry; folder && (entry = readdir(folder));) count += *entry->d_name != '.';
  closedir(folder);
  return count;
}

/* "w_00000.weights.h5 w_00001.weights.h5": the shards of a group. */
static const char *shards_of(const char *index, const char *group) {
  static char text[512];
  json_t *json = json_load_file(index, 0, NULL),
         *value = json_object_get(json_object_get(json, "weight_map"), group);
  text[0] = 0;
  if (json_is_string(value)) snprintf(text, sizeof text, "%s", json_string_value(value));
  for (size_t i = 0; i < json_array_size(value); i++) {
    const size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "",
             json_string_value(json_array_get(value, i)));
  }
  json_decref(json);
  return text;
}

/* S06, S07: weights and the optimizer's state come back from shards of every size. */
static void they_come_back(void **state) {
  (void)state;
  static const double sizes[] = {LARGEST, LARGEST + 12, 100, 1e6};
  static const char *const first[] = {"w_00000.weights.h5 w_00001.weights.h5", "w_00000.weights.h5",
                                      "w_00000.weights.h5", "w_00000.weights.h5"};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    MIX_SCOPE {
      mix_model *model = small(), *other = small();
      train(model);
      train(other);
      train(other);
      assert_int_equal(save(model, in_folder("w.weights.json"), sizes[i]), MIX_OK);
      assert_string_equal(shards_of(in_folder("w.weights.json"), "/layers/dense/vars"), first[i]);
      mix_model_load_weights(other, in_folder("w.weights.json"));
      assert_int_equal(mix_error(), MIX_OK);
      assert_same(model, other);
      json_t *json = json_load_file(in_folder("w.weights.json"), 0, NULL);
      const double total = json_real_value(json_object_get(json_object_get(json, "metadata"), "total_size"));
      assert_true(total == 3 * 4 * (12 + 3 + 6 + 2) + 8 + 4);
      json_decref(json);
    }
}

/* S08, and that a failure leaves the files that were there. */
static void what_cannot_be_sharded(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = small();
    train(model);
    assert_int_equal(save(model, in_folder("w.weights.json"), 1e6), MIX_OK);
    const int files = files_in_folder();
    EXPECT(save(model, in_folder("w.weights.json"), LARGEST - 1), MIX_VALUE_ERROR,
           "'first/kernel' has 48 bytes, more than a shard of max_shard_size, which is 47");
    EXPECT(mix_model_save_weights(model, in_folder("w.weights.json")), MIX_VALUE_ERROR, "max_shard_size");
    EXPECT(save(model, in_folder("w.npz"), 1e6), MIX_VALUE_ERROR, "ends in .weights.json");
    EXPECT(save(model, in_folder("w.keras"), 1e6), MIX_VALUE_ERROR, "ends in .weights.json");
    EXPECT(save(model, in_folder("w.weights.json"), -1), MIX_VALUE_ERROR, "a positive number of GB");
    EXPECT(save(model, in_folder("none/w.weights.json"), 1e6), MIX_IO_ERROR, "none/w_00000");
    EXPECT(mix_model_save(model, in_folder("w.weights.json")), MIX_VALUE_ERROR, "a file of weights");
    assert_int_equal(files_in_folder(), files);
    mix_model *other = small();
    train(other);
    mix_model_load_weights(other, in_folder("w.weights.json"));
    assert_int_equal(mix_error(), MIX_OK);
    assert_same(model, other);
    assert_int_equal(save(model, in_folder("h.weights.h5"), 1e6), MIX_OK); /* renamed, with a warning */
    assert_int_equal(files_in_folder(), files + 2);
    mix_set_semantics("tf_keras");
    mix_model *old = mix_sequential(mix_list_of(mix_dense(2)));
    mix_model_build(old, MIX_SHAPE(1, 2));
    EXPECT(save(old, in_folder("w.weights.json"), 1e6), MIX_VALUE_ERROR, "files of Keras 3");
  }
}

static void write_file(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static void bad_indexes_are_named(void **state) {
  (void)state;
  static const struct {
    const char *text, *part;
    mix_status status;
  } rows[] = {
      {"{", "the index of shards", MIX_VALUE_ERROR},
      {"{}", "no object weight_map", MIX_FORMAT_ERROR},
      {"{\"weight_map\": []}", "no object weight_map", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"/layers/dense/vars\": 3}}", "expected names of files", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"/layers/dense/vars\": [\"w_00000.weights.h5\", {}]}}", "expected names of files",
       MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"../w_00000.weights.h5\"}}", "no name of a file beside", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "no name of a file beside", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"..\"}}", "no name of a file beside", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"\"}}", "no name of a file beside", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"b\\\\c\"}}", "no name of a file beside", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"a\": \"none.weights.h5\"}}", "is missing", MIX_IO_ERROR},
      {"{\"weight_map\": {\"a\": \"bad.weights.json\"}}", "HDF5", MIX_FORMAT_ERROR},
      {"{\"weight_map\": {\"/layers/dense/vars\": []}}", "has 2 variables", MIX_VALUE_ERROR},
      {"{\"weight_map\": {\"/layers/dense/vars\": \"w_00001.weights.h5\"}}", "has 2 variables",
       MIX_VALUE_ERROR},
      {"{\"weight_map\": {\"/layers/dense/vars\": [\"w_00001.weights.h5\", \"w_00001.weights.h5\"]}}",
       "is in none of its shards", MIX_FORMAT_ERROR},
  };
  MIX_SCOPE {
    mix_model *model = small(), *kept = small();
    train(model);
    train(kept);
    assert_int_equal(save(model, in_folder("w.weights.json"), LARGEST), MIX_OK);
    train(model);
    train(kept);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
      write_file(in_folder("bad.weights.json"), rows[i].text);
      mix_model_load_weights(model, in_folder("bad.weights.json"));
      if (mix_error() != rows[i].status || !strstr(mix_error_message(), rows[i].part) ||
          !strstr(mix_error_message(), "bad.weights.json"))
        fail_msg("%s: %s: %s", rows[i].text, mix_status_name(mix_error()), mix_error_message());
      mix_error_clear();
    }
    EXPECT((mix_model_load(in_folder("w.weights.json")), mix_error()), MIX_FORMAT_ERROR, "no model");
    assert_same(model, kept);
  }
}

/* Memory ends at each place in turn: an error, the old files whole, the model as it was. */
static void memory_may_end(void **state) {
  (void)state;
  MIX_SCOPE {
    mix_model *model = small(), *kept = small(), *read = small();
    train(model);
    train(kept);
    train(read);
    assert_int_equal(save(model, in_folder("w.weights.json"), LARGEST), MIX_OK);
    train(model);
    for (int loads = 0; loads < 2; loads++)
      for (int64_t count = 0;; count++) {
        assert_true(count < 100000);
        const int files = files_in_folder();
        mix_inject_allocation_failure(count);
        if (loads)
          mix_model_load_weights(model, in_folder("w.weights.json"));
        else
          save(model, in_folder("w.weights.json"), LARGEST);
        const mix_status status = mix_error();
        mix_inject_allocation_failure(-1);
        mix_error_clear();
        if (status == MIX_OK) break;
        assert_string_equal(mix_status_name(status), mix_status_name(MIX_MEMORY_ERROR));
        assert_int_equal(files_in_folder(), files);
        if (loads || count % 16) continue;
        mix_model_load_weights(read, in_folder("w.weights.json"));
        assert_int_equal(mix_error(), MIX_OK);
        assert_same(read, kept);
      }
    mix_model_load_weights(read, in_folder("w.weights.json"));
    assert_same(read, model);
  }
}

static void recorded_shards_are_read(void **state) {
  (void)state;
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  if (!folder) SKIP("MIXTAPE_REFERENCE_DIR is not set: no recorded shards");
  char path[1024];
  snprintf(path, sizeof path, "%s/precision/sharded-mlp.keras", folder);
  MIX_SCOPE {
    mix_set_semantics("keras3");
    mix_model *model = mix_model_load(path), *again = mix_model_load(path);
    assert_int_equal(mix_error(), MIX_OK);
    mix_list *weights = mix_model_weights(again);
    for (int i = 0; i < mix_list_count(weights); i++) {
      mix_variable *weight = mix_list_get(weights, i);
      mix_variable_assign(weight, mix_fill(mix_variable_shape(weight), 9, F32));
    }
    snprintf(path, sizeof path, "%s/precision/sharded-mlp.weights.json", folder);
    mix_model_load_weights(again, path);
    assert_int_equal(mix_error(), MIX_OK);
    assert_same(model, again);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(they_come_back, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(what_cannot_be_sharded, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(bad_indexes_are_named, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(memory_may_end, folder_begin, folder_end),
      cmocka_unit_test(recorded_shards_are_read)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
