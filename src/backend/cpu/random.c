/* Uniform numbers for dropout: element i is made of word 0 of Philox block (key, counter, i), as backend/ref/random.c has it, so
 * that the numbers do not depend on the kernel, the instruction set or the threads. */
#include "backend/cpu/kernel_rows.h"
#include "tensor/convert.h"

enum { PART = 512 };

/* A multiple of 2^-24 in [0, 1) rounded down to a 16-bit dtype, so that 1 never comes out. */
static uint16_t round_down(float x, mix_dtype dtype) {
  if (dtype == MIX_BFLOAT16) return (uint16_t)(mix_float_bits(x) >> 16);
  const uint16_t bits = mix_f32_to_f16(x);
  return mix_f16_to_f32(bits) > x ? (uint16_t)(bits - 1) : bits;
}

static void run_random_uniform(const mix_kernel_args *args, const mix_team *team, const mix_vector *vector) {
  uint32_t words[PART];
  const mix_dtype dtype = args->output_types[0].dtype;
  const int64_t *state = args->inputs[0];
  int64_t begin, end;
  mix_team_share(team, mix_shape_size(args->output_types[0].shape), PART, &begin, &end);
  for (int64_t i = begin; i < end; i += PART) {
    const int64_t n = end - i < PART ? end - i : PART;
    vector->philox_words(words, (uint64_t)state[0], (uint64_t)state[1], (uint64_t)i, n);
    if (dtype == MIX_FLOAT32)
      for (int64_t j = 0; j < n; j++) ((float *)args->outputs[0])[i + j] = (float)(words[j] >> 8) * 0x1p-24f;
    else
      for (int64_t j = 0; j < n; j++) ((uint16_t *)args->outputs[0])[i + j] = round_down((float)(words[j] >> 8) * 0x1p-24f, dtype);
  }
}
static const char *refuses(const mix_kernel_args *args) {
  return mix_tile_class_of(args->output_types[0].dtype) == MIX_TILE_FLOAT ? NULL : "float64";
}
static bool serial(const mix_kernel_args *args) { return 16 * mix_shape_size(args->output_types[0].shape) < MIX_CPU_SMALL; }
static bool share(const mix_kernel_args *args, int64_t *count, int64_t *grain) {
  *count = mix_shape_size(args->output_types[0].shape);
  *grain = PART;
  return true;
}
MIX_CPU_KERNELS(random_uniform, "random_uniform", .refuses = refuses, .serial = serial, .share = share)

const mix_kernel *const mix_cpu_random_normal_kernels[] = {NULL}; /* initial weights alone: the reference does */
