/* Uniform random numbers for dropout. Element i comes from word 0 of Philox block (key, counter, i), as in
 * backend/ref/random.c, so the numbers depend neither on the kernel nor on the instruction set nor on the
 * threads. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"

enum { PART = 512 };

/* Rounds multiples of 2^-24 in [0, 1) down to a 16-bit dtype, so that the result is never 1, and keeps them
 * as float32: the fraction bits that the dtype lacks are cleared. Multiples below 2^-14 are exact in
 * float16, as subnormal numbers. */
static void round_down(float *numbers, const uint32_t *words, mix_dtype dtype, int64_t n) {
  const uint32_t cleared = dtype == MIX_BFLOAT16 ? 0xffff : 0x1fff;
  const float min_normal = dtype == MIX_BFLOAT16 ? 0 : 0x1p-14f;
  for (int64_t i = 0; i < n; i++) {
    const float x = (float)(words[i] >> 8) * 0x1p-24f;
    const uint32_t bits = mix_float_bits(x);
    numbers[i] = mix_bits_float(x < min_normal ? bits : bits & ~cleared);
  }
}

static void random_uniform_run(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  uint32_t words[PART];
  float numbers[PART];
  const mix_dtype dtype = args->output_types[0].dtype;
  const int64_t *state = args->inputs[0];
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), PART, &begin, &end);
  for (int64_t i = begin; i < end; i += PART) {
    const int64_t n = end - i < PART ? end - i : PART;
    vector->philox_words(words, (uint64_t)state[0], (uint64_t)state[1], (uint64_t)i, n);
    if (dtype == MIX_FLOAT32)
      for (int64_t j = 0; j < n; j++) ((float *)args->outputs[0])[i + j] = (float)(words[j] >> 8) * 0x1p-24f;
    else {
      round_down(numbers, words, dtype, n);
      vector->store[dtype]((uint16_t *)args->outputs[0] + i, numbers, n);
    }
  }
}
static const char *random_unsupported_reason(const mix_kernel_args *args) {
  return mix_tile_class_of(args->output_types[0].dtype) == MIX_TILE_FLOAT ? NULL : "float64";
}
static bool serial(const mix_kernel_args *args) {
  return 16 * mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL;
}
static bool random_share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  *count = mix_shape_size(args->output_types[0].shape);
  *grain = PART;
  return true;
}
MIX_CPU_KERNELS(random_uniform, "random_uniform", .unsupported_reason = random_unsupported_reason,
                .serial = serial, .share = random_share)

/* Only initial weights are normal: the reference kernel is fast enough. */
const mix_kernel *const mix_cpu_random_normal_kernels[] = {NULL};
