/* The kernels of ops that look into a step, of all host backends. */
#pragma once

#include "backend/host/kernel.h"

extern const mix_kernel mix_host_check_numerics, mix_host_print;
