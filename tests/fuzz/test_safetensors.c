/* The safetensors target on damaged files. */
#include "fuzz/mutate.h"

#include "fuzz/fuzz_safetensors.c"

static void damaged_safetensors(void **state) {
  (void)state;
  static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                               "\"b\":{\"dtype\":\"BF16\",\"shape\":[4],\"data_offsets\":[24,32]},"
                               "\"c\":{\"dtype\":\"F8_E4M3\",\"shape\":[],\"data_offsets\":[32,33]}}";
  bytes file = {.size = 8 + sizeof header - 1 + 33};
  file.data[0] = (unsigned char)(sizeof header - 1);
  memcpy(file.data + 8, header, sizeof header - 1);
  MIX_SCOPE {
    mix_safetensors *good = mix_safetensors_open_memory("good", file.data, file.size);
    assert_int_equal(mix_safetensors_count(good), 3);
  }
  mutate_and_run(&file, 50000, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(damaged_safetensors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
