/* Tile and row functions for plain x86-64. */
#include "backend/cpu/lanes_generic.h"
#include "backend/cpu/vector.h"

#include "backend/cpu/vector_math.inc.h"

#include "backend/cpu/tile_functions.inc.h"

#include "backend/cpu/tile_chains.inc.h"

#include "backend/cpu/row_functions.inc.h"

#define VECTOR_NAME mix_vector_generic
#define VECTOR_TEXT "generic"
#include "backend/cpu/vector_table.inc.h"
