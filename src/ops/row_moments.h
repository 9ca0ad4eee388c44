/* The rows for which one operation for mean and variance pays: those that a first-level cache holds. */
#ifndef MIX_OPS_ROW_MOMENTS_H
#define MIX_OPS_ROW_MOMENTS_H

enum { MIX_MOMENTS_ROW = 4096 };

#endif
