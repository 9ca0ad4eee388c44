/* The rows for which one operation for mean and variance pays: those that a first-level cache holds. */
#pragma once

enum { MIX_MOMENTS_ROW = 4096 };
