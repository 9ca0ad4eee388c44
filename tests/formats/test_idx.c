/* IDX files, plain and gzipped, and damaged ones. */
#include "formats/idx_bytes.h"

#include "base/alloc.h"
#include "formats/idx.h"

static const uint32_t dims[3] = {2, 3, 4};

static void plain_and_gzipped_files_are_read(void **state) {
  (void)state;
  bytes plain = {.size = 0}, gzipped = {.size = 0};
  put_idx(&plain, 3, dims, 250, 256);
  put_gzip(&gzipped, &plain);
  write_file(in_folder("a"), plain.data, plain.size);
  write_file(in_folder("a.gz"), gzipped.data, gzipped.size);
  for (int i = 0; i < 2; i++) {
    mix_tensor *tensor = mix_idx_load(in_folder(i ? "a.gz" : "a"));
    assert_non_null(tensor);
    assert_int_equal(mix_tensor_dtype(tensor), MIX_UINT8);
    assert_true(mix_shape_equal(mix_tensor_shape(tensor), MIX_SHAPE(2, 3, 4)));
    const uint8_t *data = mix_tensor_data(tensor);
    for (int j = 0; j < 24; j++) assert_int_equal(data[j], (250 + j) % 256);
  }
}

static void cut_at_every_byte_is_an_error(void **state) {
  (void)state;
  bytes files[2] = {{.size = 0}, {.size = 0}};
  put_idx(&files[0], 3, dims, 0, 256);
  put_gzip(&files[1], &files[0]);
  for (int i = 0; i < 2; i++) {
    for (size_t size = 0; size < files[i].size; size++) {
      unsigned char *exact = malloc(size ? size : 1);
      memcpy(exact, files[i].data, size);
      assert_null(mix_idx_read_memory("cut", exact, size));
      assert_failed(MIX_FORMAT_ERROR, "cut");
      free(exact);
    }
    put(&files[i], "x", 1);
    assert_null(mix_idx_read_memory("long", files[i].data, files[i].size));
    assert_failed(MIX_FORMAT_ERROR, "more follows");
  }
}

static void damaged_files_are_errors(void **state) {
  (void)state;
  static const struct {
    unsigned char header[16];
    mix_status status;
    const char *message;
  } cases[] = {
      {{1, 0, 8, 1, 0, 0, 0, 12}, MIX_FORMAT_ERROR, "two zero bytes"},
      {{0, 0, 13, 1, 0, 0, 0, 12}, MIX_UNSUPPORTED, "0x0d"},
      {{0, 0, 8, 0, 0, 0, 0, 12}, MIX_FORMAT_ERROR, "dimensions"},
      {{0, 0, 8, 9, 0, 0, 0, 12}, MIX_FORMAT_ERROR, "dimensions"},
      {{0, 0, 8, 1, 255, 255, 255, 255}, MIX_FORMAT_ERROR, "more elements"},
      {{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255},
       MIX_FORMAT_ERROR,
       "more elements"},
      {{0, 0, 8, 1, 0, 0, 0, 7}, MIX_FORMAT_ERROR, "more follows"},
  };
  mix_shutdown();
  mix_buffer_peak_reset();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    assert_null(mix_idx_read_memory("case", cases[i].header, 16));
    assert_failed(cases[i].status, cases[i].message);
  }
  assert_true(mix_buffer_peak() < 1 << 20); /* the declared size was not allocated */
  assert_null(mix_idx_load(in_folder("absent")));
  assert_failed(MIX_IO_ERROR, "absent");
}

static void a_wrong_checksum_is_an_error(void **state) {
  (void)state;
  bytes plain = {.size = 0}, gzipped = {.size = 0};
  put_idx(&plain, 3, dims, 0, 256);
  put_gzip(&gzipped, &plain);
  for (size_t at = gzipped.size - 8; at < gzipped.size; at++) { /* CRC-32 and length */
    gzipped.data[at] ^= 1;
    assert_null(mix_idx_read_memory("case", gzipped.data, gzipped.size));
    assert_failed(MIX_FORMAT_ERROR, "checksum");
    gzipped.data[at] ^= 1;
  }
  assert_non_null(mix_idx_read_memory("case", gzipped.data, gzipped.size));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLDER_TEST(plain_and_gzipped_files_are_read),
      FOLDER_TEST(cut_at_every_byte_is_an_error),
      FOLDER_TEST(damaged_files_are_errors),
      FOLDER_TEST(a_wrong_checksum_is_an_error),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
