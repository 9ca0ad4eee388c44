/* Which activations there are. */
#ifndef MIX_NN_LAYERS_ACTIVATION_FUNCTIONS_H
#define MIX_NN_LAYERS_ACTIVATION_FUNCTIONS_H

#include "nn/policy/semantics.h"
#include <mixtape/activation.h>

/* Is it the name of an activation of that generation (NULL is: linear)? False with a ValueError that lists those there are. */
bool mix_activation_known(const char *activation, const mix_semantics *semantics, const char *call);
/* The shape that it gives to a tensor of that one: "glu" halves the last axis. */
mix_shape mix_activation_shape(const char *activation, mix_shape shape);

#endif
