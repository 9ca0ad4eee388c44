/* The part of function capture that other files of the compiler need. */
#ifndef MIX_COMPILE_FUNCTION_H
#define MIX_COMPILE_FUNCTION_H

#include <stdbool.h>

/* Variables may be created outside captures and in the first capture of a function. */
bool mix_capture_may_create(void);

#endif
