/* Images of files: values for each number of channels, and damaged files. */
#include "formats/image_bytes.h"
#include "formats/image_file.h"

enum { HEIGHT = 2, WIDTH = 3 };
static const unsigned char rgba[] = {255, 0,  0,  255, 0,   255, 0,   128, 0,  0,  255, 0,
                                     10,  20, 30, 40,  255, 255, 255, 255, 90, 80, 70,  255};

static void expect_bytes(mix_tensor *image, mix_shape shape, const unsigned char *wanted, int distance) {
  if (!image) fail_msg("%s", mix_error_message());
  assert_true(mix_shape_equal(mix_tensor_shape(image), shape));
  const unsigned char *got = mix_tensor_data(image);
  for (int64_t i = 0; i < mix_shape_size(shape); i++)
    if (abs(got[i] - wanted[i]) > distance) fail_msg("byte %d is %d, expected %d", (int)i, got[i], wanted[i]);
}

static void png_images(void **state) {
  (void)state;
  static bytes file;
  put_png(&file, HEIGHT, WIDTH, 4, rgba);
  unsigned char rgb[3 * HEIGHT * WIDTH];
  for (int i = 0; i < HEIGHT * WIDTH; i++) memcpy(rgb + 3 * i, rgba + 4 * i, 3);
  MIX_SCOPE {
    expect_bytes(mix_image_read_memory("x", file.data, file.size, 4), MIX_SHAPE(HEIGHT, WIDTH, 4), rgba, 0);
    /* opacity is dropped, not applied */
    expect_bytes(mix_image_read_memory("x", file.data, file.size, 3), MIX_SHAPE(HEIGHT, WIDTH, 3), rgb, 0);
    /* 0.299 R + 0.587 G + 0.114 B */
    const unsigned char grey[] = {76, 150, 29, 18, 255, 82};
    expect_bytes(mix_image_read_memory("x", file.data, file.size, 1), MIX_SHAPE(HEIGHT, WIDTH, 1), grey, 0);
  }
  static bytes grey_file;
  put_png(&grey_file, HEIGHT, WIDTH, 1, rgba);
  unsigned char wide[3 * HEIGHT * WIDTH];
  for (int i = 0; i < 3 * HEIGHT * WIDTH; i++) wide[i] = rgba[i / 3];
  MIX_SCOPE {
    expect_bytes(mix_image_read_memory("x", grey_file.data, grey_file.size, 1), MIX_SHAPE(HEIGHT, WIDTH, 1),
                 rgba, 0);
    expect_bytes(mix_image_read_memory("x", grey_file.data, grey_file.size, 3), MIX_SHAPE(HEIGHT, WIDTH, 3),
                 wide, 0);
  }
}

/* At quality 100 a smooth image loses a few units. */
static void jpeg_images(void **state) {
  (void)state;
  enum { SIDE = 16 };
  static unsigned char pixels[3 * SIDE * SIDE], grey[SIDE * SIDE];
  for (int i = 0; i < SIDE * SIDE; i++) {
    const int y = i / SIDE, x = i % SIDE;
    pixels[3 * i] = (unsigned char)(10 * y);
    pixels[3 * i + 1] = (unsigned char)(100 + 5 * x);
    pixels[3 * i + 2] = (unsigned char)(200 - 3 * x - 3 * y);
    grey[i] = (unsigned char)(0.299 * pixels[3 * i] + 0.587 * pixels[3 * i + 1] + 0.114 * pixels[3 * i + 2]);
  }
  for (int progressive = 0; progressive < 2; progressive++) {
    static bytes file;
    file.size = 0;
    put_jpeg(&file, SIDE, SIDE, 3, pixels, progressive);
    MIX_SCOPE {
      expect_bytes(mix_image_read_memory("x", file.data, file.size, 3), MIX_SHAPE(SIDE, SIDE, 3), pixels, 4);
      expect_bytes(mix_image_read_memory("x", file.data, file.size, 1), MIX_SHAPE(SIDE, SIDE, 1), grey, 4);
    }
    assert_null(mix_image_read_memory("photo.jpg", file.data, file.size, 4));
    assert_failed(MIX_UNSUPPORTED, "photo.jpg");
  }
}

static void damaged_images(void **state) {
  (void)state;
  static bytes png, jpeg;
  static unsigned char noise[3 * 32 * 32];
  for (int i = 0; i < (int)sizeof noise; i++) noise[i] = (unsigned char)(i * i % 251);
  png.size = jpeg.size = 0;
  put_png(&png, 32, 32, 3, noise);
  put_jpeg(&jpeg, 32, 32, 3, noise, false);
  const bytes *const files[] = {&png, &jpeg};
  for (int i = 0; i < 2; i++)
    for (size_t size = 8; size + 20 < files[i]->size; size += 37) {
      assert_null(mix_image_read_memory("folder/cut", files[i]->data, size, 3));
      assert_failed(MIX_FORMAT_ERROR, "folder/cut");
    }
  assert_null(mix_image_read_memory("empty", "", 0, 3));
  assert_failed(MIX_UNSUPPORTED, "empty: neither a PNG nor a JPEG");
  assert_null(mix_image_read_memory("a.gif", "GIF89a", 6, 3));
  assert_failed(MIX_UNSUPPORTED, "a.gif");
  assert_null(mix_image_load(in_folder("missing.png"), 3));
  assert_failed(MIX_IO_ERROR, "missing.png");
  write_file(in_folder("a.png"), png.data, png.size / 2);
  assert_null(mix_image_load(in_folder("a.png"), 3));
  assert_failed(MIX_FORMAT_ERROR, "a.png");
}

int main(void) {
  const struct CMUnitTest tests[] = {FOLDER_TEST(png_images), FOLDER_TEST(jpeg_images),
                                     FOLDER_TEST(damaged_images)};
  return cmocka_run_group_tests_name("formats/image_file", tests, NULL, NULL);
}
