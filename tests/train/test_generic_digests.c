/* The kernels of portable C have the same bits on every architecture: digests of the weights after twelve
 * steps of the guide's model, recorded on x86-64 and on arm64. The logarithms and exponentials of the last
 * packet are the C library's (glibc's here). */
/* Holds docs/NUMERICS.md: Following TensorFlow to the bit. */
#include "base/processor.h"
#include "model/support.h"
#include "support/skip.h"

enum { ROWS = 96, PIXELS = 784, UNITS = 32 };

/* FNV-1a, 64 bits: http://www.isthe.com/chongo/tech/comp/fnv/ */
static uint64_t digest(const unsigned char *bytes, size_t size) {
  uint64_t h = 0xcbf29ce484222325u;
  for (size_t i = 0; i < size; i++) h = (h ^ bytes[i]) * 0x100000001b3u;
  return h;
}

/* Class c is bright where pixel % 10 is c; noise from a linear congruence. */
static void draw(float *images, int64_t *labels) {
  uint32_t noise = 1;
  for (int i = 0; i < ROWS; i++) {
    labels[i] = i % 10;
    for (int p = 0; p < PIXELS; p++) {
      noise = noise * 1664525u + 1013904223u;
      images[i * PIXELS + p] = (float)((noise >> 25) + (p % 10 == i % 10 ? 128 : 0)) / 255;
    }
  }
}

typedef struct recorded {
  const char *policy;
  uint64_t digest;
} recorded;
static recorded policies[] = {{"float32", 0x51213929e373c419},
                              {"mixed_float16", 0x239617b014ade3b4},
                              {"mixed_bfloat16", 0xc0a25fab3085f778},
                              {"float64", 0x76e42879c58a1312}};

static void weights_have_the_recorded_digest(void **state) {
  const recorded *r = *state;
  if (!on_host()) SKIP("other devices sum in their own order");
  static float images[ROWS * PIXELS];
  int64_t labels[ROWS];
  draw(images, labels);
  mix_cpu_override(0);
  mix_set_global_policy(r->policy);
  mix_set_seed(5);
  mix_model *model = guide_model(PIXELS, UNITS);
  mix_model_compile(model, .loss = "sparse_categorical_crossentropy", .optimizer = mix_rmsprop());
  mix_model_fit(model, mix_tensor_from(images, F32, MIX_SHAPE(ROWS, PIXELS)),
                mix_tensor_from(labels, MIX_INT64, MIX_SHAPE(ROWS)), .batch_size = 32, .epochs = 4,
                .verbose = MIX_SILENT);
  assert_no_error();
  size_t size;
  unsigned char *bits = bits_of(mix_model_weights(model), &size);
  const uint64_t got = digest(bits, size);
  free(bits);
  mix_cpu_override(UINT32_MAX);
  if (got != r->digest)
    fail_msg("%s: digest 0x%016llx, recorded 0x%016llx", r->policy, (unsigned long long)got,
             (unsigned long long)r->digest);
}

int main(void) {
  struct CMUnitTest tests[4];
  for (int i = 0; i < 4; i++)
    tests[i] =
        (struct CMUnitTest){policies[i].policy, weights_have_the_recorded_digest, NULL, NULL, &policies[i]};
  return _cmocka_run_group_tests("digests", tests, 4, NULL, NULL);
}
