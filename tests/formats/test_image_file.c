/* Images of files: values for each number of channels, those of TensorFlow (images/record.py), and damaged
 * files. */
#include "formats/image_bytes.h"
#include "formats/image_file.h"

#include "support/records.h"
#include "support/skip.h"

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

/* A smooth image loses a few units. The bounds, 4 and 2 in grey, are below what a shift by one pixel makes:
 * 10 in red or 5 in green, and 2.6 in grey. */
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
      expect_bytes(mix_image_read_memory("x", file.data, file.size, 1), MIX_SHAPE(SIDE, SIDE, 1), grey, 2);
    }
    assert_null(mix_image_read_memory("photo.jpg", file.data, file.size, 4));
    assert_failed(MIX_UNSUPPORTED, "photo.jpg");
  }
}

/* ---- recorded images ---- */

enum { MAX_BYTES = 4096 };

/* The bytes of a text in hexadecimal. */
static int read_hex(const json_t *text, unsigned char *data) {
  const char *digits = json_string_value(text);
  int count = 0;
  for (unsigned byte; sscanf(digits + 2 * count, "%2x", &byte) == 1; count++) {
    assert_true(count < MAX_BYTES);
    data[count] = (unsigned char)byte;
  }
  assert_int_equal(json_string_length(text), 2 * count);
  return count;
}

static int integer_of(const json_t *object, const char *key) {
  return (int)json_integer_value(json_object_get(object, key));
}

/* Both say no, or both have the same bytes. Gives how many differ. */
static int compare(const json_t *image, int channels) {
  static unsigned char file[MAX_BYTES], wanted[MAX_BYTES];
  const char *name = json_string_value(json_object_get(image, "name"));
  const json_t *pixels = json_object_get(image, channels == 1 ? "1" : channels == 3 ? "3" : "4");
  const int size = read_hex(json_object_get(image, "file"), file);
  mix_tensor *result = mix_image_read_memory(name, file, (size_t)size, channels);
  assert_non_null(pixels);
  if (json_is_null(pixels)) {
    assert_null(result);
    mix_error_clear();
    return 0;
  }
  if (!result) fail_msg("%d channels: %s", channels, mix_error_message());
  const mix_shape shape = MIX_SHAPE(integer_of(image, "height"), integer_of(image, "width"), channels);
  assert_true(mix_shape_equal(mix_tensor_shape(result), shape));
  const int count = read_hex(pixels, wanted);
  assert_int_equal(count, mix_shape_size(shape));
  const unsigned char *got = mix_tensor_data(result);
  int different = 0, worst = 0;
  for (int i = 0; i < count; i++) {
    different += got[i] != wanted[i];
    if (abs(got[i] - wanted[i]) > worst) worst = abs(got[i] - wanted[i]);
  }
  if (different)
    print_error("%s, %d channels: %d of %d bytes differ, by up to %d\n", name, channels, different, count,
                worst);
  return different;
}

static void compare_images(bool jpeg, int wanted) {
  json_t *images = load_records("formats/images/images.json", 40);
  int compared = 0, different = 0;
  for (size_t i = 0; i < json_array_size(images); i++) {
    const json_t *image = json_array_get(images, i);
    if (!strncmp(json_string_value(json_object_get(image, "name")), "JPEG", 4) != jpeg) continue;
    compared++;
    for (int channels = 1; channels <= 4; channels += channels == 1 ? 2 : 1)
      MIX_SCOPE { different += compare(image, channels); }
  }
  json_decref(images);
  assert_int_equal(compared, wanted);
  assert_int_equal(different, 0);
}

static void png_bytes_are_those_of_tensorflow(void **state) {
  (void)state;
  compare_images(false, 43);
}

/* TensorFlow decodes with libjpeg-turbo; other libraries of this interface round in other ways. */
static void jpeg_bytes_are_those_of_tensorflow(void **state) {
  (void)state;
#ifndef LIBJPEG_TURBO_VERSION
  SKIP("libjpeg is not libjpeg-turbo");
#endif
  compare_images(true, 12);
}

/* ---- damage ---- */

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
  /* a header of 2^16 x 2^16 pixels, with its checksum */
  static bytes large;
  large = png;
  memcpy(large.data + 16, "\0\1\0\0\0\1\0\0", 8);
  const uint32_t sum = (uint32_t)crc32(0, large.data + 12, 17);
  for (int i = 0; i < 4; i++) large.data[29 + i] = (unsigned char)(sum >> (24 - 8 * i));
  assert_null(mix_image_read_memory("large.png", large.data, large.size, 3));
  assert_failed(MIX_FORMAT_ERROR, "large.png: not a usable PNG image: it has no pixels, or more than 2^28");
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
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(png_images), FOLDER_TEST(jpeg_images), FOLDER_TEST(png_bytes_are_those_of_tensorflow),
      FOLDER_TEST(jpeg_bytes_are_those_of_tensorflow), FOLDER_TEST(damaged_images)};
  return cmocka_run_group_tests_name("formats/image_file", tests, NULL, NULL);
}
