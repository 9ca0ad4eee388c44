/* Processor features of arm64: kernels are the generic ones. */
#include "base/processor_found.h"

#include <stddef.h>

void mix_processor_find(mix_processor *found) { found->features = 0; }

const mix_isa_cap mix_isa_caps[] = {{"generic", 0}, {NULL, 0}};
