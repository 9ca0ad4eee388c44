/* The builder behind mix_config. */
#pragma once

#include "base/json.h"
#include <mixtape/layer.h>

struct mix_config {
  json_t *object;
};
