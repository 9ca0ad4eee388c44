/* Incremental decoding as layers see it (mixtape/generate.h). */
#include "nn/layer/decoding.h"

#include "base/alloc.h"
#include "base/error.h"
#include "tensor/shape.h"

static _Thread_local mix_decoding *now;

mix_decoding *mix_decoding_now(void) { return now; }
mix_decoding *mix_decoding_set(mix_decoding *decoding) {
  mix_decoding *former = now;
  now = decoding;
  return former;
}

/* ---- which layers ---- */

bool mix_decodes(const mix_layer *layer, const mix_call_args *args) { return true; }

bool mix_decodes_along(const mix_layer *layer, const mix_call_args *args, mix_axes axes) {
  const int rank = mix_tensor_shape(mix_call_input(args, 0)).rank;
  if (!axes.count) axes = MIX_AXES(-1);
  for (int i = 0; i < axes.count; i++) {
    const int axis = axes.axis[i] < 0 ? axes.axis[i] + rank : axes.axis[i];
    if (axis < 2) return false;
  }
  return true;
}

bool mix_decodes_features(const mix_layer *layer, const mix_call_args *args) {
  return mix_decodes_along(layer, args, MIX_AXES(-1));
}

bool mix_decoding_admits(const mix_layer *layer, const mix_call_args *args) {
  if (!now || now->inside || layer->is_model || layer->class.decodes) return true;
  if (!layer->kind)
    return mix_fail_value(
        "decode: layer '%s' is of the class %s, which does not say that it can be decoded; if each position "
        "depends on itself alone, set .decodes in its mix_layer_class",
        layer->name, layer->class.name);
  if (layer->kind->decodes && layer->kind->decodes(layer, args)) return true;
  if (mix_failed()) return false;
  return mix_fail_value(
      "decode: layer '%s' (%s) mixes positions of the sequence; expected layers that compute "
      "each position by itself, and attention with use_causal_mask",
      layer->name, layer->class.name);
}

const mix_layer *mix_decoding_enter(const mix_layer *layer) {
  const mix_layer *outer = now ? now->inside : NULL;
  if (now && !outer && layer->kind) now->inside = layer;
  return outer;
}

void mix_decoding_leave(const mix_layer *layer, const mix_layer *outer, mix_list *results) {
  if (now) now->inside = outer;
  for (int i = 0; now && !outer && results && !mix_failed() && i < mix_list_count(results); i++) {
    mix_tensor *result = mix_list_get(results, i);
    const mix_shape shape = mix_is(result, &mix_tensor_class) ? mix_tensor_shape(result) : MIX_SHAPE(0);
    if (shape.rank < 2 || shape.dims[0] != now->batch || shape.dims[1] != now->count)
      mix_fail_value("decode: layer '%s' (%s) made a result of shape %s of %lld new positions in %lld "
                     "sequences; expected (%lld, %lld, ...)",
                     layer->name, layer->class.name, MIX_SHAPE_TEXT(shape), (long long)now->count,
                     (long long)now->batch, (long long)now->batch, (long long)now->count);
  }
}

mix_tensor *mix_call_positions(const mix_call_args *args) {
  mix_tensor *x = mix_call_input(args, 0);
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (shape.rank < 2)
    return mix_fail_value("call_positions: the input has shape %s; expected (batch, positions, ...)",
                          MIX_SHAPE_TEXT(shape));
  if (shape.dims[1] == MIX_UNKNOWN) {
    mix_node *node = mix_node_placeholder(MIX_INT32, MIX_SHAPE(MIX_UNKNOWN), true);
    mix_tensor *open = node ? mix_tensor_of(node, 0) : NULL;
    mix_release(node);
    return open;
  }
  mix_tensor *places = mix_range(0, (double)shape.dims[1], 1, MIX_INT32);
  return now && now->position ? mix_add(places, now->position) : places;
}

/* ---- caches ---- */

/* The shape in the cache of (batch, positions, heads, dimension). */
static mix_shape cached_shape(mix_tensor *heads) {
  const mix_shape given = mix_tensor_shape(heads);
  return MIX_SHAPE(now->batch, given.dims[2], now->window, given.dims[3]);
}

static bool note_cache(const mix_layer *layer, mix_tensor *keys, mix_tensor *values, bool masked) {
  if (!mix_reserve(&now->caches, &now->cache_capacity, now->cache_count + 1, sizeof *now->caches))
    return false;
  mix_attention_cache *cache = &now->caches[now->cache_count];
  *cache = (mix_attention_cache){.key = cached_shape(keys),
                                 .value = cached_shape(values),
                                 .dtype = mix_tensor_dtype(keys),
                                 .masked = masked};
  const double rows = (double)now->batch * (double)cache->key.dims[1] * (double)now->window;
  if (rows > INT32_MAX)
    return mix_fail_value("decode: layer '%s' has %lld heads of keys for %lld sequences of %lld positions; "
                          "their product is above 2^31 - 1; make batch or window smaller",
                          layer->name, (long long)cache->key.dims[1], (long long)now->batch,
                          (long long)now->window);
  now->cache_count++;
  return true;
}

mix_attention_cache *mix_decoding_cache(const mix_layer *layer, mix_tensor *keys, mix_tensor *values,
                                        bool masked) {
  if (mix_failed()) return NULL;
  if (!now->position && !note_cache(layer, keys, values, masked)) return NULL;
  mix_attention_cache *cache = now->next < now->cache_count ? &now->caches[now->next] : NULL;
  if (!cache || !mix_shape_equal(cache->key, cached_shape(keys)) ||
      !mix_shape_equal(cache->value, cached_shape(values)) || cache->dtype != mix_tensor_dtype(keys) ||
      cache->masked != masked)
    return mix_fail_runtime("decode: layer '%s' calls attention in another way than when the state was made; "
                            "make a new mix_decode_state",
                            layer->name);
  now->next++;
  return cache;
}

static mix_variable *make_rows(mix_shape shape, int rank, mix_dtype dtype, const char *name) {
  mix_shape rows = MIX_SHAPE(shape.dims[0] * shape.dims[1] * shape.dims[2], shape.dims[3]);
  rows.rank = rank;
  return mix_retain(mix_variable_new(mix_fill(rows, 0, dtype), .name = name, .not_trainable = true));
}

bool mix_decoding_make_caches(mix_decoding *decoding) {
  for (int i = 0; i < decoding->cache_count && !mix_failed(); i++) {
    mix_attention_cache *cache = &decoding->caches[i];
    const mix_shape mask = MIX_SHAPE(cache->key.dims[0], 1, cache->key.dims[2], 1);
    cache->keys = make_rows(cache->key, 2, cache->dtype, "decode/keys");
    cache->values = make_rows(cache->value, 2, cache->dtype, "decode/values");
    if (cache->masked) cache->mask = make_rows(mask, 1, MIX_BOOL, "decode/mask");
  }
  return !mix_failed();
}

void mix_decoding_clear(mix_decoding *decoding) {
  for (int i = 0; i < decoding->cache_count; i++) {
    mix_release(decoding->caches[i].keys);
    mix_release(decoding->caches[i].values);
    mix_release(decoding->caches[i].mask);
  }
  mix_free(decoding->caches);
  *decoding = (mix_decoding){0};
}
