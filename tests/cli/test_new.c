/* mixtape new: the files that it writes, under the folder's name, and what it refuses. Whether they build and
 * run, tests/api/install_commands.sh says. */
#include "cli/program.h"

#include <signal.h>
#include <sys/resource.h>

static void a_project_has_its_name(void **state) {
  (void)state;
  static char text[1 << 13];
  static const char *const files[][2] = {
      {"my_net/CMakeLists.txt", "project(my_net LANGUAGES C)"},
      {"my_net/Makefile", "\t@mkdir -p build\n\t$(CC) -std=c11 $(CFLAGS) $< model.c -o $@ $(MIXTAPE)"},
      {"my_net/model.h", "make_model(void);"},
      {"my_net/model.c", "mix_model *make_model(void) {"},
      {"my_net/my_net.c", "\"my_net.keras\""},
      {"my_net/test_my_net.c", "int main(void)"}};
  assert_code(run_program("new", in_folder("my_net/")), 0);
  assert_has(program_out, "my_net test\n");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    read_text(in_folder(files[i][0]), text, sizeof text);
    assert_has(text, files[i][1]);
    if (i != 1) assert_null(strchr(text, '@'));
  }
  DIR *folder = opendir(in_folder("my_net"));
  int count = -2;
  while (readdir(folder)) count++;
  closedir(folder);
  assert_int_equal(count, 6);
}

static void what_is_there_stays(void **state) {
  (void)state;
  write_in_folder("/mine/model.c", "mine");
  assert_code(run_program("new", in_folder("mine")), 1);
  assert_has(program_err, "mine cannot be made: File exists");
  char text[64];
  read_text(in_folder("mine/model.c"), text, sizeof text);
  assert_string_equal(text, "mine");
  assert_code(run_program("new", in_folder("no/where")), 1);
  assert_has(program_err, "No such file or directory");
}

/* The first file fits, the second does not; SIGXFSZ would end the program. */
static bool limit_files(void) {
  const struct rlimit limit = {500, 500};
  return signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &limit) == 0;
}

static void a_failure_leaves_no_folder(void **state) {
  (void)state;
  program_begins = limit_files;
  const int code = run_program("new", in_folder("my_net"));
  program_begins = NULL;
  assert_code(code, 1);
  assert_has(program_err, "Makefile cannot be written");
  assert_int_not_equal(access(in_folder("my_net"), F_OK), 0);
  assert_code(run_program("new", in_folder("my_net")), 0);
}

static void bad_names_end_with_2(void **state) {
  (void)state;
  static const char *const names[] = {"",   "/",    "a b",   "a-b", "1a",      "gr\xc3\xbcn",
                                      "..", "test", "model", "a.c", "Makefile"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_code(run_program("new", names[i]), 2);
    assert_has(program_err, "is no name of a program");
  }
  assert_code(run_program("new"), 2);
  assert_has(program_err, "the folder is missing");
  assert_code(run_program("new", "a", "b"), 2);
  assert_has(program_err, "expected one folder");
  assert_code(run_program("new", "--cpp"), 2);
  assert_has(program_err, "no options but --help");
  assert_code(run_program("new", "--help"), 0);
  assert_has(program_out, "usage: mixtape new FOLDER");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_project_has_its_name, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(what_is_there_stays, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(a_failure_leaves_no_folder, folder_begin, folder_end),
      cmocka_unit_test_setup_teardown(bad_names_end_with_2, folder_begin, folder_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
