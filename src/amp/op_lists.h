/* The built-in lists. */
#pragma once

#include "amp/active_lists.h"

enum {
  MIX_AMP_IN_CUDA = 1 << MIX_AMP_CUDA_FLOAT16,
  MIX_AMP_IN_CPU = 1 << MIX_AMP_CPU_FLOAT16,
  MIX_AMP_IN_ONEDNN16 = 1 << MIX_AMP_ONEDNN_FLOAT16,
  MIX_AMP_IN_BF16 = 1 << MIX_AMP_ONEDNN_BFLOAT16,
  MIX_AMP_IN_GPU_LISTS = MIX_AMP_IN_CUDA | MIX_AMP_IN_CPU,
  MIX_AMP_IN_FLOAT16 = MIX_AMP_IN_GPU_LISTS | MIX_AMP_IN_ONEDNN16,
  MIX_AMP_IN_ALL = MIX_AMP_IN_FLOAT16 | MIX_AMP_IN_BF16,
};

/* Ops that belong to a list in the same modes. */
typedef struct mix_amp_table {
  mix_amp_class class;
  unsigned modes;
  int cuda, cudnn;        /* in the CUDA and CPU modes: minimum version; 0: any */
  const char *const *ops; /* NULL-terminated */
} mix_amp_table;
extern const mix_amp_table mix_amp_tables[];
extern const int mix_amp_table_count;
