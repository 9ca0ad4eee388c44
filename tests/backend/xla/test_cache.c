/* The folder of compiled programs: what somebody else could have put there is not run, nothing outside is
 * written, and what cannot be used is compiled. With a fake, whose programs give zero. */
#include "backend/xla/support.h"
#include "support/folder.h"

#include "backend/xla/cache_files.h"
#include "backend/xla/xla.h"
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

static char log_text[4000];
static void remember(void *context, mix_log_level level, const char *message) {
  (void)context;
  if (level == MIX_LOG_WARNING || level == MIX_LOG_INFO)
    snprintf(log_text + strlen(log_text), sizeof log_text - strlen(log_text), "%s\n", message);
}

static void name_folder(const char *path) { setenv("MIXTAPE_XLA_CACHE", path, 1); }

static mix_list *compute_new(void) {
  CHECK(mix_set_device(fake("keeps")) == MIX_OK);
  return call(new_function());
}
/* Compiles or loads a program, always the same one. */
static void compute(int loaded, int written) {
  char counts[80];
  mix_list *results = compute_new();
  CHECK(results && mix_tensor_item(mix_list_get(results, 0)) == 0);
  snprintf(counts, sizeof counts, "%d loaded and %d written by this process", loaded, written);
  if (!strstr(mix_devices_text(), counts)) fprintf(stderr, "%s\n%s", mix_devices_text(), log_text);
  CHECK(strstr(mix_devices_text(), counts));
}
/* The folder is refused, and nothing is computed. */
static void check_error(const char *reason) {
  char message[2048];
  CHECK(!compute_new());
  CHECK(mix_error_take(message, sizeof message) == MIX_IO_ERROR);
  if (!strstr(message, reason)) fprintf(stderr, "%s\n", message);
  CHECK(strstr(message, reason) && strstr(message, "name another folder, or \"off\""));
}
static void check_refused(const char *reason) {
  check_error(reason);
  CHECK(strstr(mix_devices_text(), reason));
}

static mode_t mode_of(const char *path) {
  struct stat found;
  CHECK(lstat(path, &found) == 0);
  return found.st_mode;
}
/* The only file of the cache. */
static const char *the_file(void) {
  static char path[600];
  glob_t found = {0};
  CHECK(glob(in_folder("cache/*"), 0, NULL, &found) == 0 && found.gl_pathc == 1);
  snprintf(path, sizeof path, "%s", found.gl_pathv[0]);
  globfree(&found);
  return path;
}
static void write_text(const char *path, const char *text) {
  FILE *file = fopen(path, "w");
  CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}
static void check_text(const char *path, const char *text) {
  char found[100] = "";
  FILE *file = fopen(path, "r");
  CHECK(file && fgets(found, sizeof found, file) && !strcmp(found, text));
  fclose(file);
}

/* ---- the folder ---- */

static void makes_its_folder(void) {
  umask(0);
  name_folder(in_folder("cache"));
  compute(0, 1);
  CHECK(mode_of(in_folder("cache")) == (S_IFDIR | 0700));
  CHECK(mode_of(the_file()) == (S_IFREG | 0600));
  compute(1, 1);
}

static void refuses_a_planted_program(void) {
  name_folder(in_folder("cache"));
  compute(0, 1);
  static const mode_t modes[] = {0777, 0755, 0770, 0702, 0500};
  for (int i = 0; i < 5; i++) {
    CHECK(chmod(in_folder("cache"), modes[i]) == 0);
    check_refused("so others may have put programs into it; expected 0700; remove it");
  }
  CHECK(chmod(in_folder("cache"), 0700) == 0);
  compute(1, 1);
  CHECK(chmod(the_file(), 0620) == 0); /* written by others while the folder was open to them */
  compute(1, 2);
  CHECK(mode_of(the_file()) == (S_IFREG | 0600));
  if (geteuid()) return;
  CHECK(chown(the_file(), 65534, 65534) == 0);
  compute(1, 3);
}

static void refuses_the_folder_of_another_user(void) {
  name_folder("/usr");
  if (!geteuid()) {
    CHECK(mkdir(in_folder("theirs"), 0700) == 0 && chown(in_folder("theirs"), 65534, 65534) == 0);
    name_folder(in_folder("theirs"));
  }
  check_refused("it belongs to user ");
}

static void refuses_a_link_to_a_folder(void) {
  CHECK(mkdir(in_folder("victim"), 0700) == 0);
  CHECK(symlink("victim", in_folder("cache")) == 0);
  name_folder(in_folder("cache"));
  check_refused("it is a symbolic link or no folder");
  name_folder(in_folder("cache///"));
  check_refused("it is a symbolic link or no folder");
  CHECK(rmdir(in_folder("victim")) == 0); /* it is empty */
  name_folder(in_folder("victim/below"));
  check_error("No such file or directory");
  write_text(in_folder("file"), "text");
  name_folder(in_folder("file"));
  check_refused("it is a symbolic link or no folder");
}

static void refuses_a_folder_that_all_may_replace(void) {
  CHECK(mkdir(in_folder("all"), 0700) == 0 && chmod(in_folder("all"), 0777) == 0);
  name_folder(in_folder("all/cache"));
  check_refused("all users may replace it: the mode of the folder around it is 0777");
  CHECK(chmod(in_folder("all"), 01777) == 0); /* as /tmp */
  compute(0, 1);
}

/* Where no folder is named, a bad one is left alone, with one warning. */
static void uses_the_folder_of_the_user(void) {
  unsetenv("MIXTAPE_XLA_CACHE");
  unsetenv("XDG_CACHE_HOME");
  mix_set_log_callback(remember, NULL);
  setenv("HOME", test_folder, 1);
  compute(0, 1);
  CHECK(mode_of(in_folder(".cache")) == (S_IFDIR | 0700));
  CHECK(mode_of(in_folder(".cache/mixtape")) == (S_IFDIR | 0700));
  setenv("XDG_CACHE_HOME", in_folder("xdg"), 1);
  compute(0, 2);
  CHECK(mode_of(in_folder("xdg/mixtape")) == (S_IFDIR | 0700));
  setenv("XDG_CACHE_HOME", "relative", 1); /* is to be ignored */
  compute(1, 2);
  CHECK(!*log_text);
  CHECK(chmod(in_folder(".cache/mixtape"), 0755) == 0);
  for (int i = 0; i < 2; i++) CHECK(compute_new());
  const char *warning = strstr(log_text, "its mode is 0755");
  CHECK(warning && !strstr(warning + 1, "its mode is 0755"));
  CHECK(strstr(mix_devices_text(), "its mode is 0755"));
  setenv("MIXTAPE_XLA_CACHE", "off", 1);
  CHECK(compute_new() && strstr(mix_devices_text(), "off, by MIXTAPE_XLA_CACHE"));
  unsetenv("MIXTAPE_XLA_CACHE");
  unsetenv("HOME");
  CHECK(compute_new() && strstr(mix_devices_text(), "off, there is no home folder"));
}

/* ---- its files ---- */

static void writes_through_no_link(void) {
  name_folder(in_folder("cache"));
  compute(0, 1);
  char name[600];
  strcpy(name, the_file());
  CHECK(rename(name, in_folder("good")) == 0 && symlink("../good", name) == 0);
  compute(0, 2); /* nor reads */
  CHECK(mode_of(name) == (S_IFREG | 0600));
  write_text(in_folder("victim"), "precious");
  CHECK(unlink(name) == 0 && symlink("../victim", name) == 0);
  compute(0, 3);
  check_text(in_folder("victim"), "precious");
  CHECK(mode_of(name) == (S_IFREG | 0600));
}

static void waits_for_no_fifo(void) {
  alarm(60);
  name_folder(in_folder("cache"));
  compute(0, 1);
  char name[600];
  strcpy(name, the_file());
  CHECK(unlink(name) == 0 && mkfifo(name, 0600) == 0);
  compute(0, 2);
  CHECK(mode_of(name) == (S_IFREG | 0600));
  compute(1, 2);
}

static void flip_a_bit(const char *path, long at) {
  FILE *file = fopen(path, "r+");
  CHECK(file && fseek(file, at, SEEK_SET) == 0);
  const int byte = fgetc(file);
  CHECK(byte != EOF && fseek(file, at, SEEK_SET) == 0 && fputc(byte ^ 4, file) != EOF && fclose(file) == 0);
}

static void finds_damage(void) {
  name_folder(in_folder("cache"));
  compute(0, 1);
  static const long places[] = {0, 8, 39, 40, 71, 72, 135, 136, 5135};
  int written = 1;
  for (int i = 0; i < 9; i++) {
    flip_a_bit(the_file(), places[i]);
    compute(0, ++written);
  }
  static const off_t sizes[] = {0, 1, 136, 137, 5135, 5137};
  for (int i = 0; i < 6; i++) {
    CHECK(truncate(the_file(), sizes[i]) == 0);
    compute(0, ++written);
  }
  compute(1, written);
}

static void tells_programs_apart(void) {
  name_folder(in_folder("cache"));
  compute(0, 1);
  setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true", 1);
  compute(0, 2);
  unsetenv("XLA_FLAGS");
  compute(1, 2);
  pjrt_loaded *other = mix_xla_compile_text("another program", "test");
  CHECK(other && strstr(mix_devices_text(), "1 loaded and 3 written"));
}

/* A program of another driver is compiled anew; one that was compiled without a driver suits each. */
static void checks_the_driver(void) {
  name_folder(in_folder("cache"));
  static char driver[600];
  strcpy(driver, in_folder("driver"));
  mix_xla_driver_file = driver;
  compute(0, 1);
  write_text(driver, "580.65.06\n");
  compute(1, 1);
  flip_a_bit(the_file(), 200); /* is written again, now for this driver */
  compute(1, 2);
  compute(2, 2);
  write_text(driver, "580.65.07\n");
  compute(2, 3);
  compute(3, 3);
  CHECK(unlink(driver) == 0);
  compute(3, 4);
}

/* All files were used an hour earlier. */
static void make_older(void) {
  glob_t found = {0};
  CHECK(glob(in_folder("cache/*"), 0, NULL, &found) == 0);
  for (size_t i = 0; i < found.gl_pathc; i++) {
    struct stat s;
    CHECK(stat(found.gl_pathv[i], &s) == 0);
    const struct timespec earlier = {s.st_mtim.tv_sec - 3600, s.st_mtim.tv_nsec},
                          times[] = {earlier, earlier};
    CHECK(utimensat(AT_FDCWD, found.gl_pathv[i], times, 0) == 0);
  }
  globfree(&found);
}

static void keeps_its_bound(void) {
  name_folder(in_folder("cache"));
  char text[40];
  glob_t found;
  enum { FILE_BYTES = 5136 };
  mix_xla_cache_bytes = 3 * FILE_BYTES + 10;
  compute(0, 1);
  write_text(in_folder("cache/notes"), "not of the cache");
  for (int i = 0; i < 6; i++) {
    make_older();
    snprintf(text, sizeof text, "program %d", i);
    CHECK(mix_xla_compile_text(text, "test"));
    make_older();
    compute(i + 1, i + 2); /* what is used stays */
  }
  CHECK(glob(in_folder("cache/*"), 0, NULL, &found) == 0 && found.gl_pathc == 4);
  globfree(&found);
  check_text(in_folder("cache/notes"), "not of the cache");
  mix_xla_cache_bytes = 100; /* nothing fits, nothing is removed */
  CHECK(mix_xla_compile_text("program 7", "test"));
  CHECK(glob(in_folder("cache/*"), 0, NULL, &found) == 0 && found.gl_pathc == 4);
  globfree(&found);
}

static void survives_a_full_disk(void) {
  name_folder(in_folder("cache"));
  mix_set_log_callback(remember, NULL);
  signal(SIGXFSZ, SIG_IGN);
  const struct rlimit limit = {1000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
  CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  mix_list *results = compute_new();
  CHECK(mix_xla_compile_text("another program", "test")); /* is no second warning */
  CHECK(setrlimit(RLIMIT_FSIZE, &none) == 0);
  CHECK(results && strstr(log_text, "cannot be kept in") && strstr(log_text, "make room there"));
  CHECK(!strstr(strstr(log_text, "cannot be kept in") + 1, "cannot be kept in"));
  CHECK(rmdir(in_folder("cache")) == 0); /* no half file */
  compute(0, 1);
}

/* ---- other things ---- */

static void tells_of_a_long_compilation(void *context, mix_log_level level, const char *message) {
  remember(context, level, message);
  if (strstr(message, "compiling ")) write_text(getenv("MIXTAPE_FAKE_WAITS"), "go on");
}
static void says_that_it_takes_long(void) {
  alarm(60);
  name_folder("off");
  setenv("MIXTAPE_FAKE_WAITS", in_folder("go"), 1);
  mix_xla_patience = 0.001;
  mix_set_log_callback(tells_of_a_long_compilation, NULL);
  CHECK(compute_new());
  CHECK(strstr(log_text, " for cuda: 0 s\n"));
}

/* The error says so, or the program is compiled; then everything works. */
static void survives_each_failed_allocation(void) {
  name_folder(in_folder("cache"));
  alarm(120);
  compute(0, 1);
  int failures = 0;
  for (bool met = true; met; failures++) {
    char message[2048] = "";
    bool good = false;
    const uint64_t before = mix_inject_allocation_failure(failures);
    MIX_SCOPE
      good = compute_new() && mix_synchronize() == MIX_OK;
    met = mix_inject_allocation_failure(-1) - before > (uint64_t)failures;
    if (mix_error() != MIX_OK) mix_error_take(message, sizeof message), good = false;
    CHECK(good || strstr(message, "out of memory"));
    CHECK(failures < 3000 && (good || met));
  }
  CHECK(failures > 50);
  CHECK(compute_new());
}

#define CASE(function)                                                                                       \
  static void case_##function(void **state) {                                                                \
    (void)state;                                                                                             \
    in_child(function);                                                                                      \
  }
CASE(makes_its_folder)
CASE(refuses_a_planted_program)
CASE(refuses_the_folder_of_another_user)
CASE(refuses_a_link_to_a_folder)
CASE(refuses_a_folder_that_all_may_replace)
CASE(uses_the_folder_of_the_user)
CASE(writes_through_no_link)
CASE(waits_for_no_fifo)
CASE(finds_damage)
CASE(tells_programs_apart)
CASE(checks_the_driver)
CASE(keeps_its_bound)
CASE(survives_a_full_disk)
CASE(says_that_it_takes_long)
CASE(survives_each_failed_allocation)

int main(void) {
#define IN_FOLDER(function) cmocka_unit_test_setup_teardown(case_##function, folder_begin, folder_end)
  const struct CMUnitTest tests[] = {
      IN_FOLDER(makes_its_folder),
      IN_FOLDER(refuses_a_planted_program),
      IN_FOLDER(refuses_the_folder_of_another_user),
      IN_FOLDER(refuses_a_link_to_a_folder),
      IN_FOLDER(refuses_a_folder_that_all_may_replace),
      IN_FOLDER(uses_the_folder_of_the_user),
      IN_FOLDER(writes_through_no_link),
      IN_FOLDER(waits_for_no_fifo),
      IN_FOLDER(finds_damage),
      IN_FOLDER(tells_programs_apart),
      IN_FOLDER(checks_the_driver),
      IN_FOLDER(keeps_its_bound),
      IN_FOLDER(survives_a_full_disk),
      IN_FOLDER(says_that_it_takes_long),
      IN_FOLDER(survives_each_failed_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
