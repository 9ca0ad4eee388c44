/* block_quantize: finds the scales of blocks, and rounds in float32. */
#include "backend/ref/ref.h"
#include "ops/block_formulas.h"
#include "tensor/shape.h"

typedef struct quantizer {
  const mix_block_attributes *attributes;
  mix_block_numbers numbers;
  mix_dtype dtype;
  int64_t counts[3]; /* numbers, saturated, flushed */
  uint64_t counter;  /* of Philox */
  mix_block_scales tensor;
} quantizer;

/* Elements `stride` apart. */
typedef struct block {
  int64_t first, stride, count;
} block;

static float load(mix_dtype dtype, const void *data, int64_t i) {
  const uint16_t bits = ((const uint16_t *)data)[i];
  return dtype == MIX_BFLOAT16 ? mix_bf16_to_f32(bits) : mix_f16_to_f32(bits);
}

/* The largest magnitude of n elements; not finite if one of them is not. */
static float largest_of(mix_dtype dtype, const void *data, block b) {
  float largest = 0;
  for (int64_t i = 0; i < b.count; i++) {
    const float a = fabsf(load(dtype, data, b.first + i * b.stride));
    largest = a > largest || isnan(a) ? a : largest;
    if (!isfinite(largest)) return largest;
  }
  return largest;
}

static float round_element(quantizer *q, float from, int64_t at, mix_block_scales scales) {
  const mix_block_attributes *a = q->attributes;
  const float magnitude = fabsf(from) * scales.encode;
  uint32_t random = 0;
  if (a->stochastic) random = mix_philox_block((uint64_t)a->seed, q->counter, (uint64_t)at).v[0];
  const float size = mix_block_round(&q->numbers, magnitude, a->stochastic ? &random : NULL);
  q->counts[0] += from != 0;
  q->counts[1] += magnitude > q->numbers.limit;
  q->counts[2] += from != 0 && size == 0;
  return copysignf(size * scales.decode, from);
}

static void quantize_block(quantizer *q, const void *x, void *y, block b) {
  const mix_block_scales scales = mix_block_scales_of(q->attributes, q->tensor, largest_of(q->dtype, x, b));
  for (int64_t i = 0; i < b.count; i++) {
    const int64_t at = b.first + i * b.stride;
    uint16_t *to = (uint16_t *)y + at;
    *to = ((const uint16_t *)x)[at];
    if (scales.decode < 0) continue;
    const float rounded = round_element(q, load(q->dtype, x, at), at, scales);
    *to = q->dtype == MIX_BFLOAT16 ? mix_f32_to_bf16(rounded) : mix_f32_to_f16(rounded);
  }
}

static quantizer quantizer_of(const mix_kernel_args *args) {
  const mix_block_attributes *a = args->attributes;
  quantizer q = {.attributes = a, .numbers = mix_block_numbers_of(a), .dtype = args->input_types[0].dtype};
  const uint16_t *x = args->inputs[0];
  const int64_t elements = mix_shape_size(args->input_types[0].shape);
  for (int64_t i = 0; i < elements && a->stochastic; i++) q.counter += mix_block_counter(x[i], i);
  q.tensor = mix_block_scales_of_tensor(a, largest_of(q.dtype, x, (block){0, 1, elements}));
  return q;
}

static void block_quantize_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  quantizer q = quantizer_of(args);
  const mix_block_layout l = mix_block_layout_of(q.attributes, args->input_types[0].shape);
  const int64_t size = mix_block_size_of(q.attributes) ? mix_block_size_of(q.attributes) : l.depth;
  for (int64_t o = 0; o < l.outer; o++)
    for (int64_t k = 0; k < l.depth; k += size) {
      const int64_t count = l.depth - k < size ? l.depth - k : size;
      for (int64_t i = 0; i < l.inner; i++)
        quantize_block(&q, args->inputs[0], args->outputs[0],
                       (block){(o * l.depth + k) * l.inner + i, l.inner, count});
    }
  mix_block_count(q.attributes->counted, q.counts);
}

const mix_kernel mix_ref_block_quantize = {
    .name = "ref_block_quantize", .serial = mix_ref_serial, .run = block_quantize_run};
