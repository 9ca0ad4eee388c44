/* Errors of a thread and messages to the log callback. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/error.h"
#include "base/format.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int clear(void **state) {
  (void)state;
  mix_error_clear();
  mix_set_log_callback(NULL, NULL);
  unsetenv("MIXTAPE_VERBOSE");
  return 0;
}

static void no_error_at_first(void **state) {
  (void)state;
  assert_int_equal(mix_error(), MIX_OK);
  assert_false(mix_failed());
  assert_string_equal(mix_error_message(), "");
}

static void the_first_error_stays(void **state) {
  (void)state;
  assert_null(mix_fail(MIX_VALUE_ERROR, "dense: units is %d; expected a positive number", -3));
  assert_true(mix_failed());
  assert_int_equal(mix_fail_status(MIX_TYPE_ERROR, "second"), MIX_VALUE_ERROR);
  assert_null(mix_fail_memory("third"));
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
  assert_string_equal(mix_error_message(), "dense: units is -3; expected a positive number");
}

static void clearing_allows_the_next(void **state) {
  (void)state;
  mix_fail(MIX_VALUE_ERROR, "first");
  mix_error_clear();
  assert_int_equal(mix_error(), MIX_OK);
  assert_string_equal(mix_error_message(), "");
  assert_int_equal(mix_fail_status(MIX_BUSY, "next"), MIX_BUSY);
  assert_string_equal(mix_error_message(), "next");
}

static void taking_returns_and_clears(void **state) {
  (void)state;
  char message[32] = "untouched";
  mix_fail(MIX_IO_ERROR, "no such file");
  assert_int_equal(mix_error_take(message, sizeof message), MIX_IO_ERROR);
  assert_string_equal(message, "no such file");
  assert_int_equal(mix_error(), MIX_OK);
  assert_int_equal(mix_error_take(message, sizeof message), MIX_OK);
  assert_string_equal(message, "");
  mix_fail(MIX_IO_ERROR, "no such file");
  assert_int_equal(mix_error_take(NULL, 0), MIX_IO_ERROR);
  mix_fail(MIX_IO_ERROR, "no such file");
  char shorter[8];
  mix_error_take(shorter, sizeof shorter);
  assert_string_equal(shorter, "no s...");
  mix_fail(MIX_IO_ERROR, "no such file");
  char exact[13];
  mix_error_take(exact, sizeof exact);
  assert_string_equal(exact, "no such file");
}

static void a_long_message_is_cut_between_characters(void **state) {
  (void)state;
  char text[3001];
  for (size_t i = 0; i < 3000; i += 2) memcpy(text + i, "\xc3\xa9", 2); /* e with acute accent, two bytes */
  text[3000] = '\0';
  for (int shift = 0; shift < 2; shift++) {
    mix_error_clear();
    mix_fail(MIX_FORMAT_ERROR, "%s%s", shift ? "x" : "", text);
    const char *message = mix_error_message();
    size_t length = strlen(message);
    assert_in_range(length, 1020, 1023);
    assert_string_equal(message + length - 3, "...");
    assert_int_equal((unsigned char)message[length - 4], 0xa9); /* the character is complete */
  }
}

static void letters_are_counted_and_not_cut(void **state) {
  (void)state;
  static const char text[] = "a\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80z"; /* of 1, 2, 3, 4 and 1 bytes */
  static const size_t bytes[] = {0, 1, 3, 6, 10, 11, 11};
  assert_int_equal(mix_letters(text), 5);
  assert_int_equal(mix_letters(""), 0);
  for (size_t count = 0; count < sizeof bytes / sizeof *bytes; count++)
    assert_int_equal(mix_letters_bytes(text, count), bytes[count]);
}

static void ok_is_not_an_error_to_record(void **state) {
  (void)state;
  mix_fail(MIX_OK, "a defect");
  assert_int_equal(mix_error(), MIX_INTERNAL_ERROR);
}

/* What functions of the caller's own do: the message is text, not a format, and no one's memory but ours. */
static void callers_record_errors(void **state) {
  (void)state;
  char message[2000] = "100 %s of the cells are too hot";
  assert_int_equal(mix_error_record(MIX_RUNTIME_ERROR, message), MIX_RUNTIME_ERROR);
  message[0] = 0;
  assert_string_equal(mix_error_message(), "100 %s of the cells are too hot");
  assert_int_equal(mix_error_record(MIX_VALUE_ERROR, "another"), MIX_RUNTIME_ERROR);
  mix_error_clear();
  assert_int_equal(mix_error_record(MIX_VALUE_ERROR, NULL), MIX_VALUE_ERROR);
  assert_string_equal(mix_error_message(), "ValueError");
  mix_error_clear();
  assert_int_equal(mix_error_record(MIX_OK, "no error"), MIX_INTERNAL_ERROR);
  mix_error_clear();
  memset(message, 'x', sizeof message - 1);
  mix_error_record(MIX_VALUE_ERROR, message);
  assert_int_equal(strlen(mix_error_message()), MIX_ERROR_BYTES - 1);
}

static void memory_errors_name_what(void **state) {
  (void)state;
  assert_null(mix_fail_memory("a list of 7 items"));
  assert_int_equal(mix_error(), MIX_MEMORY_ERROR);
  assert_non_null(strstr(mix_error_message(), "a list of 7 items"));
}

static void *other_thread(void *seen) {
  *(mix_status *)seen = mix_error();
  mix_fail(MIX_BUSY, "of the other thread");
  return NULL;
}

static void errors_belong_to_their_thread(void **state) {
  (void)state;
  mix_status seen = MIX_INTERNAL_ERROR;
  pthread_t thread;
  mix_fail(MIX_VALUE_ERROR, "of this thread");
  assert_int_equal(pthread_create(&thread, NULL, other_thread, &seen), 0);
  pthread_join(thread, NULL);
  assert_int_equal(seen, MIX_OK);
  assert_int_equal(mix_error(), MIX_VALUE_ERROR);
}

static void statuses_have_names(void **state) {
  (void)state;
  assert_string_equal(mix_status_name(MIX_OK), "ok");
  assert_string_equal(mix_status_name(MIX_VALUE_ERROR), "ValueError");
  assert_string_equal(mix_status_name(MIX_UNSUPPORTED), "NotImplementedError");
  assert_string_equal(mix_status_name(MIX_INTERNAL_ERROR), "InternalError");
  assert_string_equal(mix_status_name((mix_status)99), "unknown status");
  assert_string_equal(mix_status_name((mix_status)-1), "unknown status");
}

typedef struct heard {
  int count;
  mix_log_level level;
  char text[64];
} heard;

static void listen_once(void *context, mix_log_level level, const char *message) {
  heard *h = context;
  h->count++;
  h->level = level;
  strncpy(h->text, message, sizeof h->text - 1);
  if (h->count == 1) mix_log_message(MIX_LOG_DEBUG, "said while listening"); /* must not deadlock */
}

static void messages_go_to_the_callback(void **state) {
  (void)state;
  heard h = {0};
  mix_log_message(MIX_LOG_ERROR, "nobody listens");
  mix_set_log_callback(listen_once, &h);
  mix_log_message(MIX_LOG_WARNING, "skipped %d of %d", 3, 7);
  assert_int_equal(h.count, 2);
  assert_int_equal(h.level, MIX_LOG_DEBUG);
  mix_log_message(MIX_LOG_INFO, "step %d", 8);
  assert_int_equal(h.count, 3);
  assert_int_equal(h.level, MIX_LOG_INFO);
  assert_string_equal(h.text, "step 8");
  mix_set_log_callback(NULL, NULL);
  mix_log_message(MIX_LOG_INFO, "gone");
  assert_int_equal(h.count, 3);
}

/* Progress is printed as it is, any other message as a line. */
static void messages_go_to_standard_error(void **state) {
  (void)state;
  char path[] = "/tmp/mixtape_stderr_XXXXXX", text[64] = "";
  int file = mkstemp(path), former = dup(STDERR_FILENO);
  assert_true(file >= 0 && former >= 0);
  fflush(stderr);
  assert_true(dup2(file, STDERR_FILENO) >= 0);
  mix_log_to_stderr(NULL, MIX_LOG_WARNING, "a whole message");
  mix_log_to_stderr(NULL, MIX_LOG_PROGRESS, "3/4");
  fflush(stderr);
  assert_true(dup2(former, STDERR_FILENO) >= 0);
  assert_true(lseek(file, 0, SEEK_SET) == 0 && read(file, text, sizeof text - 1) > 0);
  close(file);
  close(former);
  remove(path);
  assert_string_equal(text, "a whole message\n3/4");
}
/* Names come from files: what they hold must neither reach a terminal's control nor forge a line. */
static void control_characters_are_escaped(void **state) {
  (void)state;
  char small[8], room[64];
  assert_string_equal(mix_printable("größe/körner", room, sizeof room), "größe/körner");
  assert_string_equal(mix_printable("a\x1b[2J\nb\x7f\t", room, sizeof room), "a\\x1b[2J\\nb\\x7f\\t");
  assert_string_equal(mix_printable("a\xc2\x9b-\x9b\xff", room, sizeof room), "a\\xc2\\x9b-\\x9b\\xff");
  assert_string_equal(mix_printable("\x1b\x1b\x1b", small, sizeof small), "\\x1b...");
  assert_null(mix_fail(MIX_VALUE_ERROR, "no layer '%s'", "a\nb\x1b[31m"));
  assert_string_equal(mix_error_message(), "no layer 'a\\nb\\x1b[31m'");
  mix_error_clear();
  char many[MIX_ERROR_BYTES];
  memset(many, 1, sizeof many - 1);
  many[sizeof many - 1] = 0;
  mix_fail(MIX_VALUE_ERROR, "%s", many);
  assert_null(strchr(mix_error_message(), 1));
  assert_non_null(strstr(mix_error_message(), "..."));
}

static void verbose_finds_whole_words(void **state) {
  (void)state;
  assert_false(mix_verbose("dispatch"));
  setenv("MIXTAPE_VERBOSE", "", 1);
  assert_false(mix_verbose("dispatch"));
  assert_false(mix_verbose(""));
  setenv("MIXTAPE_VERBOSE", "compiled, memory,dispatch", 1);
  assert_true(mix_verbose("dispatch"));
  assert_true(mix_verbose("memory"));
  assert_false(mix_verbose("compile"));
  assert_false(mix_verbose("mem"));
  assert_false(mix_verbose(""));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(no_error_at_first, clear),
      cmocka_unit_test_teardown(the_first_error_stays, clear),
      cmocka_unit_test_teardown(clearing_allows_the_next, clear),
      cmocka_unit_test_teardown(taking_returns_and_clears, clear),
      cmocka_unit_test_teardown(a_long_message_is_cut_between_characters, clear),
      cmocka_unit_test_teardown(letters_are_counted_and_not_cut, clear),
      cmocka_unit_test_teardown(ok_is_not_an_error_to_record, clear),
      cmocka_unit_test_teardown(callers_record_errors, clear),
      cmocka_unit_test_teardown(memory_errors_name_what, clear),
      cmocka_unit_test_teardown(errors_belong_to_their_thread, clear),
      cmocka_unit_test_teardown(statuses_have_names, clear),
      cmocka_unit_test_teardown(messages_go_to_the_callback, clear),
      cmocka_unit_test_teardown(messages_go_to_standard_error, clear),
      cmocka_unit_test_teardown(control_characters_are_escaped, clear),
      cmocka_unit_test_teardown(verbose_finds_whole_words, clear),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
