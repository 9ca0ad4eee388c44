/* Which calls of layers are repeated for gradients (mixtape/remat.h), by the rules of Keras 3.15. */
#pragma once

#include "graph/segment.h"
#include "nn/layer/layer.h"

/* What a new layer takes: retained for the caller; NULL: nothing is repeated. */
struct mix_remat_mode *mix_remat_mode_take(void);

/* Around the call of a layer: NULL, also where nothing is to be repeated, is no error by itself. */
mix_segment *mix_remat_begin_call(const mix_layer *layer);
/* `results` may be NULL, after an error. */
void mix_remat_end_call(const mix_layer *layer, mix_segment *segment, mix_list *results);
/* The layer's own activation function, its option `activation`. */
mix_tensor *mix_layer_activate(const mix_layer *layer, const char *activation, mix_tensor *x);
