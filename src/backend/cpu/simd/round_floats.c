/* Arrays of float32 as 16 bits, by the functions of the instruction set in force. */
#include "backend/cpu/simd/round_floats.h"

#include "backend/cpu/simd/vector_functions.h"
#include "tensor/convert.h"

/* The vector functions read whole vectors. */
void mix_round_floats(uint16_t *to, const float *from, mix_dtype dtype, int64_t count) {
  enum { GROUP = MIX_TILE_PADDING / sizeof(float) };
  const int64_t whole = count - count % GROUP;
  mix_tile_store_of(mix_vector_current(), dtype)(to, from, whole);
  mix_convert(from + whole, MIX_FLOAT32, to + whole, dtype, count - whole);
}
