/* Casts to and from float8 by a device, in one function: all 16-bit numbers, all codes, float32 and float64
 * at random and on ties, compared with the definition. Include "compile/support.h" first. */
#ifndef TESTS_BACKEND_FLOAT8_CASTS_H
#define TESTS_BACKEND_FLOAT8_CASTS_H

#include "base/philox.h"
#include "tensor/float8_reference.h"

/* An odd number, so that tails are there. */
enum { FLOAT8_NUMBERS = 65536 + 7 };
static const mix_dtype float8_sources[] = {MIX_FLOAT16, MIX_BFLOAT16, MIX_FLOAT32, MIX_FLOAT64, MIX_INT32};

/* Each argument to each format, and to it and back (which stays in a register). */
static mix_list *cast_to_float8(void *context, mix_list *arguments) {
  (void)context;
  mix_list *results = mix_list_new(0, NULL);
  for (int s = 0; s < COUNT(float8_sources); s++)
    for (int f = 0; f < FLOAT8_FORMATS; f++) {
      mix_tensor *code = mix_cast(mix_list_get(arguments, s), float8_formats[f].dtype);
      mix_list_append(results, code);
      mix_list_append(results, mix_cast(code, MIX_FLOAT32));
    }
  return results;
}

/* Numbers on both sides of a format's range, every fourth of them a tie of one of the formats. */
static double float8_sample(int64_t i) {
  const mix_philox r = mix_philox_block(49, 0, (uint64_t)i);
  const int exponent = (int)(r.v[0] % 44) - 24;
  double significand = 1 + r.v[1] * 0x1p-32;
  if (i % 4 == 0) significand = 1 + (2 * (r.v[1] % 8) + 1) * 0x1p-4;
  if (i % 4 == 1) significand = 1 + (r.v[1] % 16) * 0x1p-3 / 2;
  return ldexp(r.v[2] & 1 ? -significand : significand, exponent);
}

static void fill_float8_source(void *data, mix_dtype dtype) {
  for (int64_t i = 0; i < FLOAT8_NUMBERS; i++) {
    if (mix_dtype_size(dtype) == 2)
      ((uint16_t *)data)[i] = (uint16_t)i;
    else if (dtype == MIX_INT32)
      ((int32_t *)data)[i] = (int32_t)(i - 32768);
    else
      mix_store_double(data, dtype, i, float8_sample(i));
  }
}

static void check_float8_casts(void) {
  static uint8_t data[8 * FLOAT8_NUMBERS], codes[FLOAT8_NUMBERS];
  mix_tensor *arguments[COUNT(float8_sources)];
  for (int s = 0; s < COUNT(float8_sources); s++) {
    fill_float8_source(data, float8_sources[s]);
    arguments[s] = mix_tensor_from(data, float8_sources[s], MIX_SHAPE(FLOAT8_NUMBERS));
  }
  mix_list *results = mix_function_call(mix_function_new(cast_to_float8, NULL),
                                        mix_list_new(COUNT(arguments), (void **)arguments));
  no_error();
  for (int s = 0, r = 0; s < COUNT(float8_sources); s++) {
    fill_float8_source(data, float8_sources[s]);
    for (int f = 0; f < FLOAT8_FORMATS; f++, r += 2) {
      const float8_format *format = &float8_formats[f];
      for (int64_t i = 0; i < FLOAT8_NUMBERS; i++)
        codes[i] = (uint8_t)float8_nearest(format, mix_load_double(data, float8_sources[s], i));
      const uint8_t *is = mix_tensor_data(mix_list_get(results, r));
      const float *back = mix_tensor_data(mix_list_get(results, r + 1));
      for (int64_t i = 0; i < FLOAT8_NUMBERS; i++) {
        const double wide = float8_decode(format, codes[i]);
        const bool good = isnan(wide) ? isnan(float8_decode(format, is[i])) && isnan(back[i])
                                      : is[i] == codes[i] && (double)back[i] == wide;
        if (!good)
          fail_msg("%s: %.17g to %s is %02x and %g, not %02x", mix_dtype_name(float8_sources[s]),
                   mix_load_double(data, float8_sources[s], i), mix_dtype_name(format->dtype), is[i],
                   (double)back[i], codes[i]);
      }
    }
  }
}

/* Every code to every wider dtype. */
static mix_list *cast_from_float8(void *context, mix_list *arguments) {
  (void)context;
  mix_list *results = mix_list_new(0, NULL);
  for (int s = 0; s < COUNT(float8_sources); s++)
    for (int f = 0; f < FLOAT8_FORMATS; f++)
      mix_list_append(results, mix_cast(mix_list_get(arguments, f), float8_sources[s]));
  return results;
}

static void check_every_float8_code(void) {
  uint8_t every[256];
  for (int c = 0; c < 256; c++) every[c] = (uint8_t)c;
  mix_tensor *arguments[FLOAT8_FORMATS];
  for (int f = 0; f < FLOAT8_FORMATS; f++)
    arguments[f] = mix_tensor_from(every, float8_formats[f].dtype, MIX_SHAPE(256));
  mix_list *results = mix_function_call(mix_function_new(cast_from_float8, NULL),
                                        mix_list_new(FLOAT8_FORMATS, (void **)arguments));
  no_error();
  for (int s = 0, r = 0; s < COUNT(float8_sources); s++)
    for (int f = 0; f < FLOAT8_FORMATS; f++, r++)
      for (unsigned c = 0; c < 256; c++) {
        const double x = float8_decode(&float8_formats[f], c),
                     is = mix_load_double(mix_tensor_data(mix_list_get(results, r)), float8_sources[s], c);
        if (float8_sources[s] == MIX_INT32)
          assert_true(is == (isnan(x) || isinf(x) ? is : trunc(x) + 0.0));
        else
          assert_true(isnan(x) ? isnan(is) : is == x);
      }
}

#endif
