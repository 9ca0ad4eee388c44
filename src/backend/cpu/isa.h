/* The instruction sets of this architecture, from which the tables of kernels are made. */
#pragma once

#if defined(__aarch64__)
#include "backend/cpu/isa_arm64.h"
#else
#include "backend/cpu/isa_x86.h"
#endif
