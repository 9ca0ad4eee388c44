/* What the rest of the compiler knows of the function that is being captured. */
#ifndef MIX_COMPILE_FUNCTION_H
#define MIX_COMPILE_FUNCTION_H

#include <stdbool.h>

/* Variables may be made outside captures and in the first capture of a function. */
bool mix_capture_may_create(void);

#endif
