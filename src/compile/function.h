/* The part of function capture that other files of the compiler need. */
#pragma once

#include <stdbool.h>

/* Variables may be created outside captures and in the first capture of a function. */
bool mix_capture_may_create(void);
