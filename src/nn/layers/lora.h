/* LoRA of a layer: two matrices a and b that train in the place of its frozen kernel W, which is then
 * W + (alpha / rank) a . b (docs/spec/lora.md). */
#pragma once

#include "nn/fields.h"
#include "nn/layers/stored_weight.h"
#include <math.h>
#include <mixtape/lora.h>

/* What a layer and its frozen kernel share; an object. */
typedef struct mix_lora {
  mix_object object;
  mix_variable *kernel;     /* borrowed: the frozen one, or its integers */
  mix_variable *a, *b;      /* retained */
  mix_shape shape;          /* of the float kernel */
  mix_stored_weight stored; /* bits 0: the kernel is floating */
  int64_t rank;
  double alpha;
  mix_dtype compute; /* the layer's */
} mix_lora;

/* ---- in a layer's build and call ---- */

/* The last statement of `build`: adds a and b where the options ask for them. An alpha that the generation's
 * class forgets is left out. */
mix_status mix_lora_build(mix_layer *layer);
/* The value of the kernel, merged where that is cheaper than the two products below. */
mix_tensor *mix_lora_kernel(const mix_layer *layer, mix_variable *kernel);
/* The last statement of `quantize`, of a layer that stores its kernel as integers from now on: a and b stay.
 */
mix_status mix_lora_follow(mix_layer *layer);
/* Does the layer compute x . W + (alpha / rank) (x . a) . b? These are the numbers of the merged kernel but
 * for their rounding, and neither it nor its gradient is ever in memory. */
bool mix_lora_is_apart(const mix_layer *layer);
/* a, in the dtype of y. */
mix_tensor *mix_lora_a(const mix_layer *layer, mix_dtype dtype);
/* (alpha / rank) a . b in the kernel's shape and that dtype. */
mix_tensor *mix_lora_product(const mix_layer *layer, mix_dtype dtype);
/* y + (alpha / rank) xa . b, of xa (..., rank), the product of the inputs and a, in y's dtype. */
mix_tensor *mix_lora_add(const mix_layer *layer, mix_tensor *y, mix_tensor *xa);

/* ---- whole layers ---- */

/* Can the layer have LoRA now? False with the error recorded. */
bool mix_lora_check(const mix_layer *layer, int64_t rank, const char *call);
/* Adds a and b to a layer that passed; initializers NULL: he_uniform, zeros. False with the error recorded.
 */
bool mix_lora_enable(mix_layer *layer, int64_t rank, double alpha, mix_initializer *a, mix_initializer *b);
/* Makes the merged kernel the layer's, and removes a and b; false with the error recorded. */
bool mix_lora_merge(mix_layer *layer);
/* Removes a and b, and the kernel trains again as it is. */
bool mix_lora_remove(mix_layer *layer);
/* The name of a in a layer that may not have it yet: "fc/lora_kernel_a"; written to `text`. */
void mix_lora_name_a(const mix_layer *layer, char *text, size_t size);
/* The shape of the kernel or table of a built layer that can have LoRA. */
mix_shape mix_lora_shape(const mix_layer *layer);
/* Replaces the alpha of a layer that has LoRA. */
void mix_lora_set_alpha(mix_layer *layer, double alpha);
/* What files hold of a frozen kernel: merged, in the compute dtype, as Keras saves it; of one that is stored
 * as integers these, scales or zeros of the merged one. */
mix_tensor *mix_lora_saved_value(const mix_variable *variable);
/* Sets a and b to zeros, as Keras does when it loads the kernel. */
bool mix_lora_reset(const mix_lora *lora);

/* The `.lora` of a kind whose weight has that name, and its rows. */
#define MIX_LORA_OF(type, weight)                                                                            \
  .lora = offsetof(type, lora_rank), .lora_regularizer = offsetof(type, weight##_regularizer),               \
  .lora_constraint = offsetof(type, weight##_constraint)
#define MIX_LORA_FIELDS(type)                                                                                \
  {MIX_FIELD(type, lora_rank), &mix_field_integer,      .range = MIX_NOT_NEGATIVE,                           \
   .optional = true,           .omit_none = MIX_ALWAYS, .only = MIX_RULE(config_newer_options)},             \
  {                                                                                                          \
    MIX_FIELD(type, lora_alpha), &mix_field_number, .number = INFINITY, .omit_none = MIX_ALWAYS,             \
                                                    .only = MIX_RULE(config_newer_options)                   \
  }
