/* The image target on damaged PNG and JPEG files. */
#include "formats/image_bytes.h"
#include "fuzz/mutate.h"

#include "fuzz/fuzz_image_file.c"

static void damaged_images(void **state) {
  (void)state;
  static bytes png, jpeg, progressive;
  unsigned char pixels[3 * 8 * 8];
  for (int i = 0; i < (int)sizeof pixels; i++) pixels[i] = (unsigned char)(i * i % 251);
  put_png(&png, 8, 8, 3, pixels);
  put_jpeg(&jpeg, 8, 8, 3, pixels, false);
  put_jpeg(&progressive, 8, 8, 3, pixels, true);
  assert_non_null(mix_image_read_memory("good", png.data, png.size, 3));
  assert_non_null(mix_image_read_memory("good", jpeg.data, jpeg.size, 3));
  assert_non_null(mix_image_read_memory("good", progressive.data, progressive.size, 1));
  mutate_and_run(&png, 3000, 1);
  mutate_and_run(&jpeg, 3000, 2);
  mutate_and_run(&progressive, 1000, 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_images)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
