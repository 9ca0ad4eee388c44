/* Tile and row functions for AVX-512. */
#include "backend/cpu/lanes_avx512.h"
#include "backend/cpu/vector.h"

#include "backend/cpu/vector_math.inc.h"

#include "backend/cpu/tile_functions.inc.h"

#include "backend/cpu/tile_chains.inc.h"

#include "backend/cpu/row_functions.inc.h"

#define VECTOR_NAME mix_vector_avx512
#define VECTOR_TEXT "avx512"
#include "backend/cpu/vector_table.inc.h"
