/* The vector functions in force, and look-up of one by dtype or class. */
#include "backend/cpu/simd/vector_functions.h"
#include "base/processor.h"

#define ROW(set, features, ...) {features, &mix_vector_##set},
static const struct {
  uint32_t features;
  const mix_vector *vector;
} sets[] = {MIX_VECTOR_SETS(ROW)};

const mix_vector *mix_vector_current(void) {
  const uint32_t features = mix_cpu_features();
  size_t i = 0;
  while ((features & sets[i].features) != sets[i].features) i++; /* the last needs none */
  return sets[i].vector;
}

mix_tile_load_function mix_tile_load_of(const mix_vector *vector, mix_dtype dtype) {
  return vector->load[dtype] ? vector->load[dtype] : mix_tile_wide_functions.load[dtype];
}
mix_tile_store_function mix_tile_store_of(const mix_vector *vector, mix_dtype dtype) {
  return vector->store[dtype] ? vector->store[dtype] : mix_tile_wide_functions.store[dtype];
}
mix_tile_function mix_tile_round_of(const mix_vector *vector, mix_dtype dtype) {
  return vector->round[dtype] ? vector->round[dtype] : mix_tile_wide_functions.round[dtype];
}
mix_tile_function mix_tile_instruction_of(const mix_vector *vector, mix_opcode opcode, mix_tile_class class) {
  return class == MIX_TILE_FLOAT ? vector->instruction[opcode]
                                 : mix_tile_wide_functions.instruction[opcode][class];
}
mix_tile_function mix_tile_cast_of(const mix_vector *vector, mix_dtype from, mix_dtype to, bool *rounded) {
  const mix_tile_class a = mix_tile_class_of(from), b = mix_tile_class_of(to);
  *rounded = false;
  if (a == MIX_TILE_FLOAT && b == MIX_TILE_FLOAT) return vector->instruction[MIX_OPCODE_IDENTITY];
  if (a == MIX_TILE_FLOAT && b == MIX_TILE_BOOL) return vector->float_to_bool;
  if (a == MIX_TILE_BOOL && b == MIX_TILE_FLOAT) return vector->bool_to_float;
  const mix_tile_function narrow = mix_tile_wide_functions.cast_narrow[a][to];
  *rounded = narrow != NULL;
  return narrow ? narrow : mix_tile_wide_functions.cast[a][b];
}
