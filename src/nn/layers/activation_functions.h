/* The names of the activation functions and the shapes of their results. */
#pragma once

#include "base/fields.h"
#include "nn/policy/semantics.h"
#include <mixtape/activation.h>

/* The shape of the activation's result for an input of that shape: "glu" halves the last axis. */
mix_shape mix_activation_shape(const char *activation, mix_shape shape);

/* const char *: the option of a layer. */
extern const mix_value_kind mix_field_activation;
