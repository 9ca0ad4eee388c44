/* The instruction sets of this architecture, from which the tables of kernels are made. */
#ifndef MIX_BACKEND_CPU_ISA_H
#define MIX_BACKEND_CPU_ISA_H

#if defined(__aarch64__)
#include "backend/cpu/isa_arm64.h"
#else
#include "backend/cpu/isa_x86.h"
#endif

#endif
