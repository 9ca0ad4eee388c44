/* A folder of KerasHub that is saved again holds the old model, the new one, or says what to do, wherever the
 * saving ends: `rename` and `unlink` of this program stop working after a number of calls, as the disk of a
 * killed process does. */
#include "support/every_allocation.h"

#include "model/support.h"
#include "support/folder.h"
#include "support/skip.h"

#include "base/alloc.h"
#include "formats/file.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

static int calls_left = -1; /* -1: no end */

static bool ended(void) {
  if (calls_left > 0) calls_left--;
  if (calls_left == 0) errno = EIO;
  return calls_left == 0;
}
int rename(const char *from, const char *to) { return ended() ? -1 : renameat(AT_FDCWD, from, AT_FDCWD, to); }
int unlink(const char *path) { return ended() ? -1 : unlinkat(AT_FDCWD, path, 0); }

#define BERT                                                                                                 \
  "{\"class_name\": \"BertBackbone\", \"registered_name\": \"keras_hub>BertBackbone\", \"config\": "         \
  "{\"name\": \"bert\", \"dtype\": \"float32\", \"vocabulary_size\": 20, \"num_layers\": 1, "                \
  "\"num_heads\": 2, \"hidden_dim\": 8, \"intermediate_dim\": 12, "                                          \
  "\"max_sequence_length\": 6, \"num_segments\": 2}}"
#define TASK                                                                                                 \
  "{\"class_name\": \"BertTextClassifier\", \"registered_name\": \"keras_hub>BertTextClassifier\", "         \
  "\"config\": {\"name\": \"task\", \"num_classes\": 3, \"backbone\": " BERT "}}"

static mix_model *model_of(const char *json, int seed) {
  mix_set_seed(seed);
  mix_model *model = mix_model_from_json(json);
  assert_no_error();
  return model;
}

static bool same_weights(mix_model *a, mix_model *b) {
  mix_list *x = mix_model_get_weights(a), *y = mix_model_get_weights(b);
  bool same = mix_list_count(x) == mix_list_count(y);
  for (int i = 0; i < mix_list_count(x) && same; i++) {
    mix_tensor *u = mix_list_get(x, i), *v = mix_list_get(y, i);
    same = mix_shape_equal(mix_tensor_shape(u), mix_tensor_shape(v));
    for (int64_t k = 0; same && k < mix_shape_size(mix_tensor_shape(u)); k++) same = at(u, k) == at(v, k);
  }
  assert_no_error();
  return same;
}

static void remove_folder(const char *folder) {
  DIR *directory = opendir(folder);
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    if (entry->d_name[0] != '.') assert_int_equal(unlinkat(dirfd(directory), entry->d_name, 0), 0);
  if (directory) closedir(directory);
}

/* What the error says. */
static void take_parts_off(const char *folder) {
  DIR *directory = opendir(folder);
  assert_non_null(directory);
  for (struct dirent *entry; (entry = readdir(directory));) {
    const char *part = strstr(entry->d_name, ".part-");
    char name[256];
    snprintf(name, sizeof name, "%.*s", part ? (int)(part - entry->d_name) : 0, entry->d_name);
    if (part) assert_int_equal(renameat(dirfd(directory), entry->d_name, dirfd(directory), name), 0);
  }
  closedir(directory);
}

static int parts_in(const char *folder) {
  int count = 0;
  DIR *directory = opendir(folder);
  for (struct dirent *entry; directory && (entry = readdir(directory));)
    count += strstr(entry->d_name, ".part-") != NULL;
  if (directory) closedir(directory);
  return count;
}

/* Saves `second` over `first`, ended after each number of calls. */
static void save_and_end(const char *first, const char *second, bool new_is_backbone) {
  int olds = 0, news = 0, errors = 0;
  for (int n = 1; !news; n++)
    MIX_SCOPE {
      mix_model *old = model_of(first, 1), *new = model_of(second, 2);
      remove_folder(in_folder("model"));
      mix_model_save(old, in_folder("model/"));
      assert_no_error();
      calls_left = n;
      mix_model_save(new, in_folder("model/"));
      const bool done = mix_error() == MIX_OK;
      calls_left = -1;
      mix_error_clear();
      mix_model *found = mix_model_load(in_folder("model"));
      if (found) {
        assert_true(same_weights(found, done ? new : old));
        olds += !done;
        news += done;
      } else {
        errors++;
        assert_error(MIX_IO_ERROR, "whose saving has not ended; save the model again, or take \".part-");
        if (n % 2) {
          take_parts_off(in_folder("model"));
          if (new_is_backbone) unlink(in_folder("model/task.json"));
        } else {
          mix_model_save(new, in_folder("model/"));
        }
        assert_no_error();
        assert_true(same_weights(mix_model_load(in_folder("model")), new));
      }
      assert_true(n < 40);
    }
  assert_true(olds > 0 && errors > 1 && news == 1);
  assert_int_equal(parts_in(in_folder("model")), 0);
}

static void a_save_that_ends_early(void **state) {
  (void)state;
  save_and_end(TASK, TASK, false);
  save_and_end(BERT, TASK, false);
  save_and_end(TASK, BERT, true);
  save_and_end(BERT, BERT, true);
}

/* One file of the new model cannot be written: nothing of the old one has changed. */
static void a_file_that_cannot_be_written(void **state) {
  (void)state;
  static const char *const names[] = {"model/task.weights.h5", "model/metadata.json"};
  mix_model *old = model_of(BERT, 1), *new = model_of(TASK, 2);
  for (int i = 0; i < 2; i++) {
    remove_folder(in_folder("model"));
    mix_model_save(old, in_folder("model/"));
    assert_no_error();
    unlink(in_folder(names[i]));
    assert_int_equal(mkdir(in_folder(names[i]), 0777), 0);
    mix_model_save(new, in_folder("model/"));
    assert_error(MIX_IO_ERROR, strchr(names[i], '/') + 1);
    assert_true(same_weights(mix_model_load(in_folder("model")), old));
    assert_int_equal(parts_in(in_folder("model")), 0);
    assert_int_equal(rmdir(in_folder(names[i])), 0);
  }
}

/* Where memory ends, nothing of the old one has changed. */
static void any_allocation_of_a_save_fails(void **state) {
  (void)state;
  if (!REACHES_EVERY_ALLOCATION) SKIP("the sanitizer has its own malloc");
  mix_model *old = model_of(TASK, 1), *new = model_of(TASK, 2);
  remove_folder(in_folder("model"));
  mix_model_save(old, in_folder("model/"));
  assert_no_error();
  int failed = 0;
  bool reached = true;
  for (int64_t i = 0; reached; i += 1 + i / 16) /* all at the beginning, then fewer: a save has thousands */
    MIX_SCOPE {
      allocations_left = i;
      const mix_status status = mix_model_save(new, in_folder("model/"));
      reached = allocations_left < 0;
      allocations_left = -1;
      failed += status != MIX_OK;
      mix_error_clear();
      assert_true(same_weights(mix_model_load(in_folder("model")), status ? old : new));
      assert_int_equal(parts_in(in_folder("model")), 0);
      if (!status) mix_model_save(old, in_folder("model/"));
    }
  assert_true(failed > 20);
}

/* A snapshot of links to files elsewhere, as Hugging Face's cache has them: the links stay. */
static void links_stay(void **state) {
  (void)state;
  mix_model *old = model_of(BERT, 1), *new = model_of(BERT, 2);
  remove_folder(in_folder("model"));
  mix_model_save(old, in_folder("model/"));
  assert_int_equal(rename(in_folder("model/config.json"), in_folder("blob")), 0);
  assert_int_equal(chmod(in_folder("blob"), 0640), 0);
  assert_int_equal(symlink("../blob", in_folder("model/config.json")), 0);
  mix_model_save(new, in_folder("model/"));
  assert_no_error();
  struct stat status;
  assert_int_equal(lstat(in_folder("model/config.json"), &status), 0);
  assert_true(S_ISLNK(status.st_mode));
  assert_int_equal(stat(in_folder("model/config.json"), &status), 0);
  assert_int_equal(status.st_mode & 0777, 0640);
  assert_true(same_weights(mix_model_load(in_folder("model")), new));
}

static int begin(void **state) {
  mix_set_semantics("keras3");
  return folder_begin(state);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(a_save_that_ends_early), TEST(a_file_that_cannot_be_written),
                                     TEST(any_allocation_of_a_save_fails), TEST(links_stay)};
  return cmocka_run_group_tests_name("writing folders of KerasHub", tests, begin, folder_end);
}
