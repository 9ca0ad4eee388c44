/* magnitudes: each thread counts the exponent fields of its share, thread 0 adds the counts. */
#include "ops/magnitudes.h"
#include "backend/cpu/kernel_rows.h"

enum { FIELDS = 2048, BLOCK = 4096 };

/* The counts of one thread: elements by exponent field; zeros (part of field 0); infinities (part of the last
 * field); subnormals by their own exponents. */
typedef struct share {
  int64_t fields[FIELDS], subnormals[52], zeros, infinities;
  uint64_t smallest, largest; /* bits; smallest: those of infinity if there is none */
} share;

/* Blocks stay in the first-level cache. The first loop vectorises (extremes, zeros, infinities), the second
 * counts exponents. It alternates among four tables, because increments of one counter wait for each other's
 * store. Magnitudes are compared as signed integers, which plain x86-64 has, and are never negative. `min`
 * and `below` hold (magnitude - 1) & mask, so that 0 is the largest. */
#define COUNT(name, type, signed_type)                                                                       \
  static void name##_block(share *s, int64_t(*tables)[FIELDS], const type *x, int n,                         \
                           mix_float_format format) {                                                        \
    const type mask = (type)((type) ~(type)0 >> 1);                                                          \
    const signed_type normal = (signed_type)((signed_type)1 << format.fraction_bits);                        \
    const signed_type infinity = (signed_type)((uint64_t)format.exponents << format.fraction_bits);          \
    signed_type min = (signed_type)(s->smallest - 1), largest = (signed_type)s->largest, zeros = 0,          \
                infinities = 0;                                                                              \
    for (int i = 0; i < n; i++) {                                                                            \
      const signed_type bits = (signed_type)(x[i] & mask), below = (signed_type)((type)(bits - 1) & mask);   \
      const signed_type finite = bits < infinity ? bits : 0;                                                 \
      min = below < min ? below : min;                                                                       \
      largest = finite > largest ? finite : largest;                                                         \
      zeros = (signed_type)(zeros + (bits == 0));                                                            \
      infinities = (signed_type)(infinities + (bits == infinity));                                           \
    }                                                                                                        \
    for (int i = 0; i < n; i++) tables[i & 3][(type)(x[i] & mask) >> format.fraction_bits]++;                \
    for (int i = 0; min < normal - 1 && i < n; i++) {                                                        \
      const signed_type bits = (signed_type)(x[i] & mask);                                                   \
      if (bits && bits < normal) s->subnormals[63 - __builtin_clzll((uint64_t)bits)]++;                      \
    }                                                                                                        \
    s->smallest = (uint64_t)min + 1;                                                                         \
    s->largest = (uint64_t)largest;                                                                          \
    s->zeros += (int64_t)zeros;                                                                              \
    s->infinities += (int64_t)infinities;                                                                    \
  }                                                                                                          \
  static void name(share *s, const type *x, int64_t n, mix_float_format format) {                            \
    int64_t tables[4][FIELDS];                                                                               \
    for (int t = 0; t < 4; t++) memset(tables[t], 0, sizeof *tables[t] * (size_t)(format.exponents + 1));    \
    for (int64_t i = 0; i < n; i += BLOCK)                                                                   \
      name##_block(s, tables, x + i, n - i < BLOCK ? (int)(n - i) : BLOCK, format);                          \
    for (int f = 0; f <= format.exponents; f++)                                                              \
      s->fields[f] = tables[0][f] + tables[1][f] + tables[2][f] + tables[3][f];                              \
  }
COUNT(count_16, uint16_t, int16_t)
COUNT(count_32, uint32_t, int32_t)
COUNT(count_64, uint64_t, int64_t)

static void add_share(int64_t *counts, const share *s, mix_float_format format, uint64_t *smallest,
                      uint64_t *largest) {
  int64_t *subnormal = counts + MIX_MAGNITUDE_BINS, *normal = subnormal + format.fraction_bits - 1;
  counts[MIX_MAGNITUDE_ZEROS] += s->zeros;
  counts[MIX_MAGNITUDE_SUBNORMALS] += s->fields[0] - s->zeros;
  counts[MIX_MAGNITUDE_INFINITIES] += s->infinities;
  counts[MIX_MAGNITUDE_NANS] += s->fields[format.exponents] - s->infinities;
  for (int b = 0; b < format.fraction_bits; b++) subnormal[b] += s->subnormals[b];
  for (int f = 1; f < format.exponents; f++) normal[f] += s->fields[f];
  if (s->smallest < *smallest) *smallest = s->smallest;
  if (s->largest > *largest) *largest = s->largest;
}

static bool serial(const mix_kernel_args *args) {
  return mix_shape_size(args->input_types[0].shape) < MIX_CPU_SMALL;
}
static size_t magnitudes_workspace(const mix_kernel_args *args, int threads) {
  return sizeof(share) * (size_t)(serial(args) ? 1 : threads);
}
static int barriers(const mix_kernel_args *args, int threads) { return !serial(args) && threads > 1; }

static void magnitudes_run(const mix_kernel_args *args, const mix_team *team) {
  const mix_dtype dtype = args->input_types[0].dtype;
  const mix_float_format format = mix_float_format_of(dtype);
  const uint64_t infinity = (uint64_t)format.exponents << format.fraction_bits;
  const int64_t elements = mix_shape_size(args->input_types[0].shape);
  share *shares = args->workspace, *own = &shares[team->rank];
  int64_t begin, end, *counts = args->outputs[0];
  memset(own, 0, sizeof *own);
  own->smallest = infinity;
  mix_team_share(team, elements, BLOCK, &begin, &end);
  switch (mix_dtype_size(dtype)) {
  case 2: count_16(own, (const uint16_t *)args->inputs[0] + begin, end - begin, format); break;
  case 4: count_32(own, (const uint32_t *)args->inputs[0] + begin, end - begin, format); break;
  default: count_64(own, (const uint64_t *)args->inputs[0] + begin, end - begin, format);
  }
  if (team->size > 1) mix_team_barrier(team);
  if (team->rank) return;
  uint64_t smallest = infinity, largest = 0;
  memset(counts, 0, sizeof *counts * (size_t)mix_shape_size(args->output_types[0].shape));
  for (int r = 0; r < team->size; r++) add_share(counts, &shares[r], format, &smallest, &largest);
  counts[MIX_MAGNITUDE_ELEMENTS] = elements;
  counts[MIX_MAGNITUDE_SMALLEST] = mix_magnitude_double(smallest < infinity ? smallest : 0, format);
  counts[MIX_MAGNITUDE_LARGEST] = mix_magnitude_double(largest, format);
}

static const mix_kernel kernel = {.name = "magnitudes",
                                  .run = magnitudes_run,
                                  .workspace = magnitudes_workspace,
                                  .serial = serial,
                                  .barriers = barriers};
const mix_kernel *const mix_cpu_magnitudes_kernels[] = {&kernel, NULL};
