/* Archives of named values with a checksum: the bits of every dtype, and errors for truncated or altered
 * files. */
#include "data/support.h"

#include "base/alloc.h"
#include "saving/checkpoint_folder.h"
#include "formats/archive.h"
#include "tensor/shape.h"
#include <mixtape/arrays.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void assert_refused(mix_status status, const char *part) {
  char message[1024];
  mix_status got = mix_error_take(message, sizeof message);
  if (got != status || !strstr(message, part))
    fail_msg("%s: '%s'; expected %s with '%s'", mix_status_name(got), message, mix_status_name(status), part);
}

static void save_small(const char *path) {
  MIX_SCOPE {
    mix_archive *archive = mix_archive_new();
    assert_true(mix_archive_put(archive, "weights/0",
                                mix_tensor_from((const float[]){1, 2, 3}, MIX_FLOAT32, MIX_SHAPE(3))));
    assert_true(mix_archive_put_integers(archive, "place", 2, (const int64_t[]){INT64_MIN, 7}));
    assert_true(mix_archive_put_text(archive, "names", "a \"kernel\"\n"));
    assert_true(mix_archive_save(archive, path, "test"));
  }
}

static void values_keep_their_bits(void **state) {
  (void)state;
  const char *path = in_folder("all.npz");
  /* Signalling NaN, subnormals, -0, of each width. */
  const uint16_t bits[] = {0x7f81, 0xff81, 0x0001, 0x8000, 0x7c01, 0xfc00};
  static const mix_dtype dtypes[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_INT16};
  for (int i = 0; i < 3; i++)
    MIX_SCOPE {
      mix_archive *put = mix_archive_new();
      assert_true(mix_archive_put(put, "x", mix_tensor_from(bits, dtypes[i], MIX_SHAPE(2, 3))));
      assert_true(mix_archive_put(put, "empty", mix_tensor_from(bits, dtypes[i], MIX_SHAPE(0))));
      assert_true(mix_archive_put(put, "scalar", mix_tensor_from(bits, dtypes[i], (mix_shape){.rank = 0})));
      assert_true(mix_archive_save(put, path, "test"));
      mix_archive *got = mix_archive_load(path);
      mix_tensor *x = mix_archive_get(got, "x");
      assert_int_equal(mix_tensor_dtype(x), dtypes[i]);
      assert_memory_equal(mix_tensor_data(x), bits, sizeof bits);
      assert_int_equal(mix_tensor_shape(mix_archive_get(got, "empty")).dims[0], 0);
      assert_memory_equal(mix_tensor_data(mix_archive_get(got, "scalar")), bits, 2);
      assert_null(mix_archive_get(got, "y"));
      assert_int_equal(mix_error(), MIX_OK);
    }
}

static void numbers_texts_and_missing_values(void **state) {
  (void)state;
  const char *path = in_folder("small.npz");
  save_small(path);
  MIX_SCOPE {
    mix_archive *got = mix_archive_load(path);
    int64_t numbers[2];
    assert_true(mix_archive_get_integers(got, "place", 2, numbers));
    assert_true(numbers[0] == INT64_MIN && numbers[1] == 7);
    char *text = mix_archive_get_text(got, "names");
    assert_string_equal(text, "a \"kernel\"\n");
    mix_free(text);
    assert_false(mix_archive_get_integers(got, "place", 3, numbers));
    assert_refused(MIX_FORMAT_ERROR, path);
    assert_false(mix_archive_get_integers(got, "names", 2, numbers));
    assert_refused(MIX_FORMAT_ERROR, "'names' is of another kind");
    assert_null(mix_archive_get_text(got, "nothing"));
    assert_refused(MIX_FORMAT_ERROR, "'nothing' is missing");
    /* It is an archive that other programs can read. */
    mix_npz *npz = mix_npz_open(path);
    assert_int_equal(mix_npz_count(npz), 3);
    assert_non_null(mix_npz_get(npz, "weights/0"));
  }
}

static void truncated_or_altered_files_are_errors(void **state) {
  (void)state;
  const char *path = in_folder("small.npz");
  size_t size;
  save_small(path);
  unsigned char *good = malloc(1 << 16);
  const unsigned char *read = read_file(path, &size);
  memcpy(good, read, size);
  MIX_SCOPE { assert_non_null(mix_archive_load_memory("good", good, size)); }
  for (size_t cut = 0; cut < size; cut++) {
    MIX_SCOPE { assert_null(mix_archive_load_memory("cut", good, cut)); }
    assert_refused(MIX_FORMAT_ERROR, "cut: ");
  }
  for (size_t at = 0; at < size; at++)
    for (int change = 0; change < 2; change++) {
      unsigned char kept = good[at];
      good[at] ^= change ? 0xff : (unsigned char)(1 << at % 8);
      MIX_SCOPE { assert_null(mix_archive_load_memory("altered", good, size)); }
      assert_refused(MIX_FORMAT_ERROR, "altered: ");
      good[at] = kept;
    }
  write_file(path, good, size - 1); /* the file is named */
  MIX_SCOPE { assert_null(mix_archive_load(path)); }
  assert_refused(MIX_FORMAT_ERROR, path);
  free(good);
}

/* Disk full in the middle of the file. A limit on the file size has the same effect at any chosen byte. */
static void a_full_disk_loses_nothing(void **state) {
  (void)state;
  const char *path = in_folder("kept.npz");
  save_small(path);
  size_t size;
  read_file(path, &size);
  struct rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
  int files = folder_count();
  for (rlim_t limit = 0; limit < size; limit += size / 40 + 1) {
    struct rlimit small = {limit, before.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
    MIX_SCOPE {
      mix_archive *next = mix_archive_new();
      float more[512] = {0};
      mix_archive_put(next, "weights/0", mix_tensor_from(more, MIX_FLOAT32, MIX_SHAPE(512)));
      assert_false(mix_archive_save(next, path, "checkpoint"));
    }
    setrlimit(RLIMIT_FSIZE, &before);
    assert_refused(MIX_IO_ERROR, path);
    assert_int_equal(folder_count(), files); /* no partial file remains */
    MIX_SCOPE { assert_non_null(mix_archive_load(path)); }
    assert_int_equal(mix_error(), MIX_OK);
  }
  signal(SIGXFSZ, handler);
}

static void folders_number_and_prune(void **state) {
  (void)state;
  char *sub = strdup(in_folder("runs"));
  assert_int_equal(mix_checkpoint_folder_newest(sub, INT64_MAX, "test"), -1); /* not there yet */
  assert_int_equal(mkdir(sub, 0777), 0);
  static const char *const names[] = {"checkpoint-9.npz",
                                      "checkpoint-10.npz",
                                      "checkpoint-11.npz",
                                      "checkpoint-x.npz",
                                      "checkpoint-12.np",
                                      "notes.txt",
                                      "checkpoint-12.npz.part-2147483646-0"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    char path[700];
    snprintf(path, sizeof path, "%s/%s", sub, names[i]);
    write_file(path, "x", 1);
  }
  assert_int_equal(mix_checkpoint_folder_newest(sub, INT64_MAX, "test"), 11);
  assert_int_equal(mix_checkpoint_folder_newest(sub, 11, "test"), 10);
  mix_checkpoint_folder_prune(sub, 11, 9, false);
  assert_int_equal(mix_checkpoint_folder_newest(sub, 11, "test"), 9);
  char part[700];
  snprintf(part, sizeof part, "%s/%s", sub, names[6]);
  assert_int_equal(access(part, F_OK), -1); /* of a process that no longer exists */
  mix_checkpoint_folder_remove(sub, false);
  assert_int_equal(mix_checkpoint_folder_newest(sub, INT64_MAX, "test"), -1);
  assert_int_equal(access(sub, F_OK), 0); /* other files are in it */
  assert_int_equal(mix_checkpoint_folder_newest("/dev/null", INT64_MAX, "test"), -1);
  assert_refused(MIX_IO_ERROR, "/dev/null");
  free(sub);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_keep_their_bits), cmocka_unit_test(numbers_texts_and_missing_values),
      cmocka_unit_test(truncated_or_altered_files_are_errors), cmocka_unit_test(a_full_disk_loses_nothing),
      cmocka_unit_test(folders_number_and_prune)};
  return cmocka_run_group_tests(tests, folder_begin, data_end);
}
