/* Pictures drawn by cairo: colours and places, text in any bytes, sizes, threads, and errors of writing. What
 * letters look like depends on the machine's fonts. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/loaded.h"
#include "support/ending_memory.h"
#include "support/expect.h"
#include "support/folder.h"
#include "support/picture.h"
#include "train/numerics/canvas.h"
#include <math.h>
#include <pthread.h>

enum { WHITE = 0xffffff, RED = 0xd62728, BLUE = 0x08306b, LETTER = 12 };

static picture written(mix_canvas *canvas) {
  assert_true(mix_canvas_write_png(canvas, in_folder("picture.png")));
  mix_canvas_close(canvas);
  return read_picture(in_folder("picture.png"));
}

static void rectangles_are_exact_and_clipped(void **state) {
  (void)state;
  for (int scale = 1; scale <= 2; scale++) {
    mix_canvas canvas;
    assert_true(mix_canvas_open(&canvas, 40, 30, scale, "test"));
    mix_canvas_fill(&canvas, 3, 5, 10, 7, RED);
    mix_canvas_fill(&canvas, 35, -4, 100, 6, BLUE);
    picture p = written(&canvas);
    assert_int_equal(p.image.width, 40 * scale);
    assert_int_equal(p.image.height, 30 * scale);
    assert_int_equal(pixels_in(&p, 3 * scale, 5 * scale, 10 * scale, 7 * scale, RED), 70 * scale * scale);
    assert_int_equal(pixels_in(&p, 35 * scale, 0, 5 * scale, 2 * scale, BLUE), 10 * scale * scale);
    assert_int_equal(pixels_of(&p, WHITE), (40 * 30 - 70 - 10) * scale * scale);
    free(p.pixels);
  }
}

/* Draws at (24, 40). */
static picture of_text(const char *text, int letter) {
  mix_canvas canvas;
  assert_true(mix_canvas_open(&canvas, 400, 100, 1, "test"));
  mix_canvas_text(&canvas, 24, 40, letter, BLUE, text);
  return written(&canvas);
}
static int ink_in(const picture *p, int x, int y, int width, int height) {
  return width * height - pixels_in(p, x, y, width, height, WHITE);
}
static int ink_of(const picture *p) { return ink_in(p, 0, 0, 400, 100); }

/* Capital letters are as high as (x, y) and the letter's width say, each in a cell of its own. */
static void text_is_where_the_layout_expects_it(void **state) {
  (void)state;
  for (int letter = 6; letter <= 24; letter += 6) {
    picture p = of_text("HHHHH", letter);
    const int all = ink_of(&p);
    assert_true(all > 5 * letter);
    assert_int_equal(ink_in(&p, 23, 38, 5 * letter + 2, 2 * letter), all);
    for (int i = 0; i < 5; i++) assert_true(ink_in(&p, 24 + i * letter, 40, letter, letter) > letter / 2);
    free(p.pixels);
  }
  picture none = of_text("   ", LETTER), empty = of_text("", LETTER);
  assert_int_equal(ink_of(&none) + ink_of(&empty), 0);
  free(none.pixels);
  free(empty.pixels);
}

static void assert_same(const char *a, const char *b, bool same) {
  picture first = of_text(a, LETTER), second = of_text(b, LETTER);
  if (!memcmp(first.pixels, second.pixels, 400 * 100 * 3) != same)
    fail_msg("'%s' and '%s' look %s", a, b, same ? "different" : "the same");
  free(first.pixels);
  free(second.pixels);
}

/* Names of layers come from anywhere, and may be cut inside a character. */
static void bytes_that_are_no_text_become_question_marks(void **state) {
  (void)state;
  static const char *const wrong[] = {"\xff",
                                      "\x80",
                                      "\xc3",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xf8\x88\x80\x80\x80",
                                      "\xe2\x82",
                                      "\x1b",
                                      "\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char text[16], marks[16] = "x";
    snprintf(text, sizeof text, "x%sy", wrong[i]);
    memset(marks + 1, '?', strlen(wrong[i]));
    strcat(marks, "y");
    assert_same(text, marks, true);
  }
  assert_same("H", "I", false);
  /* not a byte at a time */
  assert_same("\xc3\xa9", "??", false);
  assert_same("\xe2\x82\xac", "???", false);
  assert_same("\xf0\x9f\x8c\x8d", "????", false);
  char text[2000];
  memset(text, 'H', sizeof text);
  text[sizeof text - 1] = '\0';
  picture p = of_text(text, LETTER);
  assert_true(ink_in(&p, 380, 0, 20, 100) > LETTER);
  free(p.pixels);
}

static void scales_fit_what_cairo_can_draw(void **state) {
  (void)state;
  assert_float_equal(mix_canvas_scale(1000, 1000, 2), 2, 0);
  assert_float_equal(mix_canvas_scale(100, 32767, 1), 1, 0);
  assert_true(mix_canvas_scale(100, 32768, 1) < 1);
  static const int sizes[][2] = {{20, 52001}, {100000, 30}, {30000, 30000}};
  for (int i = 0; i < 3; i++) {
    const double scale = mix_canvas_scale(sizes[i][0], sizes[i][1], 1);
    assert_true(scale < 1 && scale * sizes[i][0] <= 32767 && scale * sizes[i][1] <= 32767);
    assert_true(scale * sizes[i][0] * scale * sizes[i][1] <= (1 << 28) * (1 + 1e-9));
  }
  mix_canvas canvas;
  assert_true(mix_canvas_open(&canvas, 20, 52001, mix_canvas_scale(20, 52001, 1), "test"));
  mix_canvas_fill(&canvas, 0, 51000, 20, 1001, RED);
  picture p = written(&canvas);
  assert_int_equal(p.image.height, 32767);
  assert_int_equal(pixel_at(&p, 5, 32700), RED);
  free(p.pixels);
  assert_true(
      mix_canvas_open(&canvas, 16, 0, mix_canvas_scale(16, 0, 1), "test")); /* a model without layers */
  p = written(&canvas);
  assert_int_equal(p.image.width * p.image.height, 16);
  free(p.pixels);
  expect_refused(mix_canvas_open(&canvas, 20, 52001, 1, "test"), MIX_INTERNAL_ERROR, "test: cairo: ");
}

static void a_picture_is_written_as_a_whole_or_not_at_all(void **state) {
  (void)state;
  mix_canvas canvas;
  assert_true(mix_canvas_open(&canvas, 300, 300, 1, "test"));
  mix_canvas_fill(&canvas, 0, 0, 300, 300, RED);
  expect_refused(mix_canvas_write_png(&canvas, "/nowhere/a.png"), MIX_IO_ERROR, "/nowhere/a.png");
  assert_true(mix_canvas_write_png(&canvas, in_folder("picture.png")));
  mix_canvas_fill(&canvas, 0, 0, 300, 300, BLUE);
  int refused = 0;
  for (int count = 0;; count++) {
    mix_inject_allocation_failure(count);
    const bool good = mix_canvas_write_png(&canvas, in_folder("picture.png"));
    mix_inject_allocation_failure(-1);
    if (good) break;
    expect_error(MIX_MEMORY_ERROR, "");
    picture p = read_picture(in_folder("picture.png"));
    assert_int_equal(pixels_of(&p, RED), 300 * 300);
    free(p.pixels);
    refused++;
  }
  assert_true(refused > 0);
  picture p = written(&canvas);
  assert_int_equal(pixels_of(&p, BLUE), 300 * 300);
  free(p.pixels);
}

static void *draw(void *context) {
  const int number = *(int *)context;
  for (int i = 0; i < 20; i++) {
    char name[96];
    mix_canvas canvas;
    snprintf(name, sizeof name, "%s/thread%d.png", test_folder, number);
    if (!mix_canvas_open(&canvas, 100, 30, 1, "test")) return NULL;
    mix_canvas_text(&canvas, 5, 5, LETTER, number % 2 ? RED : BLUE, "a text");
    if (!mix_canvas_write_png(&canvas, name)) return NULL;
    mix_canvas_close(&canvas);
  }
  return context;
}

static void threads_may_draw_at_once(void **state) {
  (void)state;
  enum { THREADS = 4 };
  pthread_t threads[THREADS];
  int numbers[THREADS];
  picture pictures[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    assert_int_equal(pthread_create(&threads[i], NULL, draw, &numbers[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    void *result;
    char name[96];
    pthread_join(threads[i], &result);
    assert_ptr_equal(result, &numbers[i]);
    snprintf(name, sizeof name, "%s/thread%d.png", test_folder, i);
    pictures[i] = read_picture(name);
  }
  for (int i = 0; i < 2; i++) assert_memory_equal(pictures[i].pixels, pictures[i + 2].pixels, 100 * 30 * 3);
  assert_memory_not_equal(pictures[0].pixels, pictures[1].pixels, 100 * 30 * 3);
  for (int i = 0; i < THREADS; i++) free(pictures[i].pixels);
}

static void libraries_without_what_is_needed_are_refused(void **state) {
  (void)state;
  int (*compare)(const char *, const char *) = NULL;
  const mix_library_function there[] = {{"strcmp", &compare}, {NULL, NULL}},
                             absent[] = {{"mixtape_no_such_function", &compare}, {NULL, NULL}};
  assert_false(mix_load_library((const char *const[]){"libmixtape-no-such.so", NULL}, there));
  assert_false(mix_load_library((const char *const[]){"libc.so.6", NULL}, absent));
  assert_null(compare);
  assert_true(mix_load_library((const char *const[]){"libmixtape-no-such.so", "libc.so.6", NULL}, there));
  assert_int_equal(compare("a", "a"), 0);
}

/* Each attempt is a process in which neither cairo nor fontconfig has begun, if this test is the first. */
static int draw_and_write(void *path) {
  mix_canvas canvas;
  if (!mix_canvas_open(&canvas, 100, 50, 1, "test")) return -1;
  mix_canvas_text(&canvas, 10, 10, LETTER, BLUE, "memory");
  const bool good = mix_canvas_write_png(&canvas, path);
  mix_canvas_close(&canvas);
  return good ? 0 : -1;
}
static void memory_ends_while_a_picture_is_drawn(void **state) {
  (void)state;
  expect_errors_of_memory(draw_and_write, in_folder("picture.png"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_ends_while_a_picture_is_drawn),
      cmocka_unit_test(rectangles_are_exact_and_clipped),
      cmocka_unit_test(text_is_where_the_layout_expects_it),
      cmocka_unit_test(bytes_that_are_no_text_become_question_marks),
      cmocka_unit_test(scales_fit_what_cairo_can_draw),
      cmocka_unit_test(a_picture_is_written_as_a_whole_or_not_at_all),
      cmocka_unit_test(threads_may_draw_at_once),
      cmocka_unit_test(libraries_without_what_is_needed_are_refused),
  };
  return cmocka_run_group_tests_name("train: pictures", tests, folder_begin, folder_end);
}
