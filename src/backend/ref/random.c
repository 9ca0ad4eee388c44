/* Random numbers by Philox: functions of key, counter and element index alone. The operand is the state,
 * int64 (2): key, counter. */
#include "backend/ref/ref.h"
#include "base/philox.h"
#include "tensor/convert.h"
#include <math.h>

typedef struct stream {
  uint64_t key, counter;
} stream;

static stream stream_of(const mix_kernel_args *args) {
  const int64_t *state = args->inputs[0];
  return (stream){(uint64_t)state[0], (uint64_t)state[1]};
}

/* Rounds a multiple of 2^-24 in [0, 1) down to a 16-bit dtype, so that the result is never 1. */
static uint16_t round_down(float x, mix_dtype dtype) {
  uint16_t bits = dtype == MIX_FLOAT16 ? mix_f32_to_f16(x) : mix_f32_to_bf16(x);
  float rounded = dtype == MIX_FLOAT16 ? mix_f16_to_f32(bits) : mix_bf16_to_f32(bits);
  return rounded > x ? (uint16_t)(bits - 1) : bits;
}

double mix_ref_uniform(uint64_t key, uint64_t counter, uint64_t index, mix_dtype dtype) {
  const mix_philox block = mix_philox_block(key, counter, index);
  const uint64_t both = (uint64_t)block.v[0] << 32 | block.v[1];
  const float single = (float)(block.v[0] >> 8) * 0x1p-24f;
  if (dtype == MIX_FLOAT64) return (double)(both >> 11) * 0x1p-53;
  if (dtype == MIX_FLOAT32) return single;
  const uint16_t bits = round_down(single, dtype);
  return dtype == MIX_FLOAT16 ? mix_f16_to_f32(bits) : mix_bf16_to_f32(bits);
}

static void uniform_run(const mix_kernel_args *args, const mix_team *team) {
  mix_dtype dtype = args->output_types[0].dtype;
  int64_t count = mix_shape_size(args->output_types[0].shape);
  stream s = stream_of(args);
  for (int64_t i = 0; i < count; i++) /* exact in the dtype */
    mix_store_double(args->outputs[0], dtype, i, mix_ref_uniform(s.key, s.counter, (uint64_t)i, dtype));
}

/* The first number of the pair of Box and Muller, A note on the generation of random normal deviates, 1958;
 * u in (0, 1], v in [0, 1). */
static double box_muller(uint32_t first, uint32_t second) {
  double u = ((double)first + 1) * 0x1p-32, v = (double)second * 0x1p-32;
  return sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * v);
}

static void normal_run(const mix_kernel_args *args, const mix_team *team) {
  int64_t count = mix_shape_size(args->output_types[0].shape);
  stream s = stream_of(args);
  for (int64_t i = 0; i < count; i++) {
    mix_philox block = mix_philox_block(s.key, s.counter, (uint64_t)i);
    mix_store_double(args->outputs[0], args->output_types[0].dtype, i, box_muller(block.v[0], block.v[1]));
  }
}

/* Redraws until the number is within +-2: from words 0 and 1, then 2 and 3 of block i, then from those of
 * blocks i + 2^32, i + 2 * 2^32, ... */
static double truncated(stream s, uint64_t i) {
  for (;; i += UINT64_C(1) << 32) {
    mix_philox block = mix_philox_block(s.key, s.counter, i);
    for (int pair = 0; pair < 4; pair += 2) {
      double x = box_muller(block.v[pair], block.v[pair + 1]);
      if (fabs(x) < 2) return x;
    }
  }
}

static void truncated_normal_run(const mix_kernel_args *args, const mix_team *team) {
  int64_t count = mix_shape_size(args->output_types[0].shape);
  stream s = stream_of(args);
  for (int64_t i = 0; i < count; i++)
    mix_store_double(args->outputs[0], args->output_types[0].dtype, i, truncated(s, (uint64_t)i));
}

const mix_kernel mix_ref_random_uniform = {
    .name = "ref_random_uniform", .serial = mix_ref_serial, .run = uniform_run};
const mix_kernel mix_ref_random_normal = {
    .name = "ref_random_normal", .serial = mix_ref_serial, .run = normal_run};
const mix_kernel mix_ref_random_truncated_normal = {
    .name = "ref_random_truncated_normal", .serial = mix_ref_serial, .run = truncated_normal_run};
