/* The builder behind mix_config. */
#ifndef MIX_NN_CONFIG_H
#define MIX_NN_CONFIG_H

#include "base/json.h"
#include <mixtape/layer.h>

struct mix_config {
  json_t *object;
};

#endif
