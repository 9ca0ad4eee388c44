/* What the layers that change images at random share. */
#pragma once

#include "nn/layers/spatial/spatial.h"

/* mix_factor: a number or a pair. The row's `number` says when configs have a pair whatever was given. */
extern const mix_value_kind mix_field_factor;
/* Where its options struct has a factor of one number. */
#define MIX_ONE_FACTOR(type, member) .one = offsetof(type, member), .one_is_real = true
enum { MIX_FACTOR_AS_GIVEN, MIX_FACTOR_PAIR_IF_RESOLVED, MIX_FACTOR_PAIR };
/* Checks the numbers against bounds and makes a pair: (-number, number), but not below `least`. */
bool mix_factor_resolve(mix_factor *factor, const char *call, const char *name, double least, double most);
/* double[2]: both 0 is 0 to 255; sorted. */
extern const mix_value_kind mix_field_value_range;

/* float32 numbers of that shape between low and high. */
mix_tensor *mix_drawn_between(mix_generator *generator, mix_shape shape, double low, double high);
