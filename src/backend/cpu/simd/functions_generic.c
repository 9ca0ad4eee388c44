/* The vector functions (vector_functions.h) of plain x86-64 and other processors. */
#include "backend/cpu/simd/simd_generic.h"
#include "backend/cpu/simd/vector_functions.h"
#include "ops/block_formulas.h"

#include "backend/cpu/simd/vector_math.inc.h"

#include "backend/cpu/simd/elementwise.inc.h"

#include "backend/cpu/simd/float8.inc.h"

#include "backend/cpu/simd/fused_chains.inc.h"

#include "backend/cpu/simd/rows.inc.h"

#include "backend/cpu/simd/biased_rows.inc.h"

#include "backend/cpu/simd/normalized_rows.inc.h"

#include "backend/cpu/simd/block_rounding.inc.h"

#include "backend/cpu/simd/sum_products.inc.h"
#include "backend/cpu/simd/products.inc.h"

#define VECTOR_NAME mix_vector_generic
#define VECTOR_TEXT "generic"
#include "backend/cpu/simd/vector_table.inc.h"
