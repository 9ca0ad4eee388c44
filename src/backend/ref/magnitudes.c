/* magnitudes: counts from the bits of each element, because arithmetic may flush subnormals. */
#include "ops/magnitudes.h"
#include "backend/ref/ref.h"

static uint64_t magnitude_bits(const void *data, mix_dtype dtype, int64_t index) {
  switch (mix_dtype_size(dtype)) {
  case 2: return ((const uint16_t *)data)[index] & 0x7fff;
  case 4: return ((const uint32_t *)data)[index] & 0x7fffffff;
  default: return ((const uint64_t *)data)[index] & 0x7fffffffffffffff;
  }
}

static void magnitudes_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_float_format format = mix_float_format_of(dtype);
  const uint64_t infinity = (uint64_t)format.exponents << format.fraction_bits,
                 normal = UINT64_C(1) << format.fraction_bits;
  int64_t *counts = args->outputs[0], elements = mix_shape_size(args->input_types[0].shape);
  uint64_t smallest = 0, largest = 0;
  memset(counts, 0, sizeof *counts * (size_t)mix_shape_size(args->output_types[0].shape));
  counts[MIX_MAGNITUDE_ELEMENTS] = elements;
  for (int64_t i = 0; i < elements; i++) {
    uint64_t bits = magnitude_bits(args->inputs[0], dtype, i);
    if (bits >= infinity || bits == 0) {
      counts[bits == 0          ? MIX_MAGNITUDE_ZEROS
             : bits == infinity ? MIX_MAGNITUDE_INFINITIES
                                : MIX_MAGNITUDE_NANS]++;
      continue;
    }
    counts[MIX_MAGNITUDE_SUBNORMALS] += bits < normal;
    counts[MIX_MAGNITUDE_BINS + mix_magnitude_exponent(bits, format) - mix_magnitude_lowest(dtype)]++;
    if (!smallest || bits < smallest) smallest = bits;
    if (bits > largest) largest = bits;
  }
  counts[MIX_MAGNITUDE_SMALLEST] = mix_magnitude_double(smallest, format);
  counts[MIX_MAGNITUDE_LARGEST] = mix_magnitude_double(largest, format);
}

const mix_kernel mix_ref_magnitudes = {
    .name = "ref_magnitudes", .serial = mix_ref_serial, .run = magnitudes_run};
