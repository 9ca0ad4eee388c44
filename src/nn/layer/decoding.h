/* Calls of layers for the next few positions of a sequence: which layers have such calls, where the positions
 * are, and the caches of attention. */
#pragma once

#include "nn/layer/layer.h"

/* What one call of an attention layer keeps. The variables, retained, hold rows of (batch, heads, window). */
typedef struct mix_attention_cache {
  mix_shape key, value; /* (batch, heads, window, dimension) */
  mix_dtype dtype;
  bool masked; /* its keys have a mask */
  mix_variable *keys, *values, *mask;
} mix_attention_cache;

typedef struct mix_decoding {
  int64_t batch, window;
  int64_t count;               /* new positions */
  mix_tensor *position;        /* of the first: int32 (); NULL: the calls are symbolic, and note the caches */
  mix_attention_cache *caches; /* owned, in the order of the calls */
  int cache_count, cache_capacity;
  int next;                /* the cache of the next call */
  const mix_layer *inside; /* the library's layer whose call runs; NULL: none */
} mix_decoding;

/* Of this thread; NULL: it does not decode. */
mix_decoding *mix_decoding_now(void);
/* Borrowed until it is set back. Returns the former. */
mix_decoding *mix_decoding_set(mix_decoding *decoding);

/* May the call run? Else false with an error that names the layer. The next two are around it: the layers
 * that a layer of the library calls are its own affair, and results must have the new positions. */
bool mix_decoding_admits(const mix_layer *layer, const mix_call_args *args);
const mix_layer *mix_decoding_enter(const mix_layer *layer);
void mix_decoding_leave(const mix_layer *layer, const mix_layer *outer, mix_list *results);

/* The cache of the call that runs, for keys and values (batch, positions, heads, dimension). NULL with the
 * error recorded. */
mix_attention_cache *mix_decoding_cache(const mix_layer *layer, mix_tensor *keys, mix_tensor *values,
                                        bool masked);
/* Makes the variables of the caches that were noted. */
bool mix_decoding_make_caches(mix_decoding *decoding);
void mix_decoding_clear(mix_decoding *decoding);

/* ---- for the member `decodes` of a kind ---- */

/* Each position by itself, always. */
bool mix_decodes(const mix_layer *layer, const mix_call_args *args);
/* If there are features behind the positions. */
bool mix_decodes_features(const mix_layer *layer, const mix_call_args *args);
/* If none of these axes of the first input is that of the positions, or of the batch; none given: the last.
 */
bool mix_decodes_along(const mix_layer *layer, const mix_call_args *args, mix_axes axes);
