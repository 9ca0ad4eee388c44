/* block_quantize: finds the scales of blocks, and rounds in float32. */
#include "ops/block_quantize.h"
#include "backend/ref/ref.h"
#include "base/philox.h"
#include "tensor/convert.h"
#include "tensor/shape.h"

#include <float.h>
#include <math.h>

/* The numbers that a scale is shared for. */
typedef struct element_format {
  int fraction_bits, min_exponent;
  float max, limit; /* limit: the midpoint above the largest number */
} element_format;
static const element_format e4m3 = {3, -6, 448, 464}, e5m2 = {2, -14, 57344, 61440}, e2m1 = {1, 0, 6, 7};

typedef struct quantizer {
  const mix_block_attributes *attributes;
  element_format format;
  mix_dtype dtype;
  int64_t block, counts[3]; /* numbers, saturated, flushed */
  uint64_t counter;         /* of Philox */
  float encode;             /* of the tensor: numbers are multiplied by it; 0: the tensor stays as it is */
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

static float power_of_two(int exponent) { return mix_bits_float((uint32_t)(exponent + 127) << 23); }
static int exponent_of(float magnitude) { return (int)(mix_float_bits(magnitude) >> 23) - 127; }

/* The magnitude in the format, and whether it is too large for it even when rounded. */
static float round_magnitude(const quantizer *q, float a, uint64_t index, bool *saturated) {
  const element_format *f = &q->format;
  const int exponent = exponent_of(a) > f->min_exponent ? exponent_of(a) : f->min_exponent;
  const float step = power_of_two(exponent - f->fraction_bits),
              steps = a * power_of_two(f->fraction_bits - exponent);
  /* At most 16: this addition leaves no bit below 1. */
  float whole = (steps + 0x1.8p23f) - 0x1.8p23f;
  if (q->attributes->stochastic) {
    const uint32_t word = mix_philox_word((uint64_t)q->attributes->seed, q->counter, index);
    whole = (float)(int)(steps + (float)(word >> 8) * 0x1p-24f);
  }
  *saturated = a > f->limit;
  return whole * step > f->max ? f->max : whole * step;
}

static void round_block(quantizer *q, const void *x, void *y, block b, float encode, float decode) {
  for (int64_t i = 0; i < b.count; i++) {
    const int64_t at = b.first + i * b.stride;
    const float from = load(q->dtype, x, at);
    bool saturated = false;
    const float size = round_magnitude(q, fabsf(from) * encode, (uint64_t)at, &saturated),
                to = copysignf(size * decode, from);
    q->counts[0] += from != 0;
    q->counts[1] += saturated;
    q->counts[2] += from != 0 && size == 0;
    ((uint16_t *)y)[at] = q->dtype == MIX_BFLOAT16 ? mix_f32_to_bf16(to) : mix_f32_to_f16(to);
  }
}

static void keep_block(const quantizer *q, const void *x, void *y, block b) {
  for (int64_t i = 0; i < b.count; i++) {
    const int64_t at = b.first + i * b.stride;
    ((uint16_t *)y)[at] = ((const uint16_t *)x)[at];
  }
}

/* The shared scale of MX is the power of two at or below the largest magnitude, over that of the largest
 * number, 2^8. It ends at 2^-126 instead of 2^-127, which float32 has as a subnormal number. */
static void quantize_block(quantizer *q, const void *x, void *y, block b) {
  const float largest = largest_of(q->dtype, x, b);
  float encode = q->encode, decode = 1 / q->encode;
  if (!isfinite(largest) || largest == 0 || q->encode == 0) {
    keep_block(q, x, y, b);
    return;
  }
  if (q->attributes->format == MIX_BLOCK_MXFP8) {
    const int exponent = exponent_of(largest) - 8;
    decode = power_of_two(exponent > -126 ? exponent : -126);
    encode = 1 / decode;
  } else if (q->attributes->format == MIX_BLOCK_NVFP4) {
    const float scale = mix_round_to(fminf(largest / 6 * q->encode, 448), MIX_FLOAT8_E4M3FN);
    encode = scale == 0 ? 0 : q->encode / scale;
    decode = scale * (1 / q->encode);
  }
  round_block(q, x, y, b, encode, decode);
}

/* A tensor's own scale moves its largest magnitude to the largest that the format and its blocks have. */
static float encode_tensor(const quantizer *q, const void *x, int64_t elements) {
  if (q->attributes->format == MIX_BLOCK_MXFP8) return 1;
  const float largest = largest_of(q->dtype, x, (block){0, 1, elements});
  if (!isfinite(largest) || largest == 0) return 0;
  const float whole = q->attributes->format == MIX_BLOCK_NVFP4 ? 448 * 6 : q->format.max;
  return fminf(whole / largest, FLT_MAX);
}

static quantizer quantizer_of(const mix_kernel_args *args) {
  const mix_block_attributes *a = args->attributes;
  quantizer q = {.attributes = a, .dtype = args->input_types[0].dtype};
  const bool whole = a->format == MIX_BLOCK_FLOAT8_CURRENT;
  q.format = a->format == MIX_BLOCK_NVFP4 ? e2m1 : whole && a->gradient ? e5m2 : e4m3;
  const int64_t elements = mix_shape_size(args->input_types[0].shape);
  q.block = whole ? INT64_MAX : a->format == MIX_BLOCK_NVFP4 ? 16 : 32;
  for (int64_t i = 0; i < elements && a->stochastic; i++) /* other numbers are rounded by other draws */
    q.counter = q.counter * 31 + ((const uint16_t *)args->inputs[0])[i];
  q.encode = encode_tensor(&q, args->inputs[0], elements);
  return q;
}

static void add_counts(mix_quantized_count *to, const quantizer *q) {
  if (!to) return;
  atomic_fetch_add_explicit(&to->numbers, q->counts[0], memory_order_relaxed);
  atomic_fetch_add_explicit(&to->saturated, q->counts[1], memory_order_relaxed);
  atomic_fetch_add_explicit(&to->flushed, q->counts[2], memory_order_relaxed);
}

static void block_quantize_run(const mix_kernel_args *args, const mix_team *team) {
  (void)team;
  quantizer q = quantizer_of(args);
  const mix_shape shape = args->input_types[0].shape;
  int64_t outer = 1, depth = 1, inner = 1;
  for (int d = 0; d < shape.rank; d++) {
    const int axis = q.attributes->axis;
    *(d < axis ? &outer : d < axis + q.attributes->count ? &depth : &inner) *= shape.dims[d];
  }
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < depth; k += depth - k < q.block ? depth - k : q.block) {
      const int64_t count = depth - k < q.block ? depth - k : q.block;
      for (int64_t i = 0; i < inner; i++)
        quantize_block(&q, args->inputs[0], args->outputs[0],
                       (block){(o * depth + k) * inner + i, inner, count});
    }
  add_counts(q.attributes->counted, &q);
}

const mix_kernel mix_ref_block_quantize = {
    .name = "ref_block_quantize", .serial = mix_ref_serial, .run = block_quantize_run};
