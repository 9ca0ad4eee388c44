/* Bytes of an element, for plug-ins of the tests that keep buffers by themselves. */
#pragma once

#include "backend/xla/pjrt_api.h"
#include <stddef.h>

static inline size_t size_of(int type) {
  return type == PJRT_F64 || type == PJRT_S64                        ? 8
         : type == PJRT_F32 || type == PJRT_S32                      ? 4
         : type == PJRT_F16 || type == PJRT_BF16 || type == PJRT_S16 ? 2
                                                                     : 1;
}
