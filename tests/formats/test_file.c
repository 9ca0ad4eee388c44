/* Files that replace others: names of part files, what killed processes left, mode and owner. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "formats/file.h"
#include "support/folder.h"
#include <errno.h>
#include <mixtape/mixtape.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void write_text(const char *path, const char *text) {
  assert_true(mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, "test"));
}

static bool exists(const char *path) { return access(path, F_OK) == 0; }

static void mode_and_owner_are_kept(void **state) {
  (void)state;
  const char *path = in_folder("kept");
  static const mode_t modes[] = {0600, 0640, 0777, 0444};
  const bool root = geteuid() == 0;
  write_text(path, "a");
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    struct stat status;
    assert_int_equal(chmod(path, modes[i]), 0);
    if (root) assert_int_equal(chown(path, 12345, 54321), 0);
    write_text(path, "b");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 07777, modes[i]);
    assert_int_equal(status.st_size, 1);
    if (root) assert_true(status.st_uid == 12345 && status.st_gid == 54321);
  }
  /* A new file has the mode that the process gives. */
  const mode_t mask = umask(027);
  write_text(in_folder("new"), "a");
  umask(mask);
  struct stat status;
  assert_int_equal(stat(in_folder("new"), &status), 0);
  assert_int_equal(status.st_mode & 07777, 0640);
}

static const char *this_program;

/* Two processes of the same number, as in two containers, have different names for their parts. */
static void part_names_differ(void **state) {
  (void)state;
  int to_parent[2];
  char theirs[600] = "";
  char *ours = mix_file_part(in_folder("file"), "test"), *next = mix_file_part(in_folder("file"), "test");
  assert_non_null(ours);
  assert_string_not_equal(ours, next);
  assert_int_equal(pipe(to_parent), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(to_parent[1], 1);
    setenv("MIXTAPE_TEST_PART_NAME", in_folder("file"), 1);
    execl(this_program, this_program, NULL);
    _exit(127);
  }
  close(to_parent[1]);
  assert_true(read(to_parent[0], theirs, sizeof theirs - 1) > 0);
  close(to_parent[0]);
  assert_int_equal(waitpid(child, NULL, 0), child);
  const char *our_rest = strchr(strstr(ours, ".part-") + 6, '-'),
             *their_rest = strchr(strstr(theirs, ".part-") + 6, '-');
  assert_non_null(their_rest);
  const size_t token = strlen("-machine8-0123456789abcdef");
  assert_true(strlen(their_rest) > token);
  assert_memory_equal(our_rest, their_rest, strlen("-machine8-"));
  assert_memory_not_equal(our_rest, their_rest, token); /* more than the process's number differs */
  mix_free(ours);
  mix_free(next);
}

static void stale_parts_are_removed(void **state) {
  (void)state;
  const char *path = in_folder("data.npy");
  char *own = mix_file_part(path, "test"), stale[700], alive[700], other[700], foreign[700];
  const char *tail = strchr(strstr(own, ".part-") + 6, '-'); /* -MACHINE-TOKEN-NUMBER */
  char machine[16];
  snprintf(machine, sizeof machine, "%.9s", tail);
  snprintf(stale, sizeof stale, "%s.part-2147483646%s-00000000000000aa-0", path, machine);
  snprintf(alive, sizeof alive, "%s.part-%ld%s-00000000000000aa-0", path, (long)getppid(), machine);
  snprintf(other, sizeof other, "%s.part-2147483646%s-00000000000000aa-0", in_folder("data.npz"), machine);
  snprintf(foreign, sizeof foreign, "%s.part-2147483646-%08x-00000000000000aa-0", path,
           (unsigned)strtoul(machine + 1, NULL, 16) + 1);
  const char *const all[] = {own, stale, alive, other, foreign};
  for (int i = 0; i < 5; i++) {
    FILE *file = fopen(all[i], "w");
    assert_non_null(file);
    fclose(file);
  }
  write_text(path, "a");
  assert_true(exists(own));     /* this process may be writing it */
  assert_true(exists(alive));   /* a running process too */
  assert_true(exists(foreign)); /* and one of another machine */
  assert_true(exists(other));   /* of another file */
  assert_false(exists(stale));
  mix_free(own);
}

static bool refuse(void *context, mix_bytes *piece) {
  (void)context;
  (void)piece;
  errno = EEXIST; /* of something else */
  return mix_fail_memory("the next piece");
}

/* A part that was made goes, whatever errno is; one that another has made stays. */
static void failed_parts_are_removed(void **state) {
  (void)state;
  const mix_piece_source source = {.size = 1 << 20, .next = refuse};
  char *part = mix_file_part(in_folder("refused"), "test");
  assert_non_null(part);
  assert_false(mix_file_write_source(part, in_folder("refused"), &source, "test"));
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  mix_error_clear();
  assert_false(exists(part));
  write_text(part, "of another");
  assert_false(mix_file_write_part(part, in_folder("refused"), &(mix_bytes){"a", 1}, 1, "test"));
  assert_int_equal(mix_error(), MIX_IO_ERROR);
  mix_error_clear();
  assert_true(exists(part));
  unlink(part);
  mix_free(part);
}

int main(int count, char **arguments) {
  (void)count;
  this_program = arguments[0];
  const char *path = getenv("MIXTAPE_TEST_PART_NAME");
  if (path) { /* part_names_differ runs this program again */
    char *part = mix_file_part(path, "test");
    puts(part);
    mix_free(part);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(mode_and_owner_are_kept), cmocka_unit_test(part_names_differ),
      cmocka_unit_test(stale_parts_are_removed), cmocka_unit_test(failed_parts_are_removed)};
  return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
