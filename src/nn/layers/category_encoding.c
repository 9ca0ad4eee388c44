/* CategoryEncoding: encodes integer ids as one-hot, multi-hot or counts. */
#include "base/error.h"
#include "nn/layers/builtin.h"

typedef struct category_encoding {
  int64_t num_tokens;
  mix_category_mode mode;
} category_encoding;

static mix_list *category_encoding_call(mix_layer *layer, const mix_call_args *args) {
  const category_encoding *e = mix_layer_data(layer);
  mix_tensor *ids = mix_call_input(args, 0), *weights = NULL;
  if (args->arguments && mix_list_count(args->arguments)) weights = mix_call_argument(args, 0);
  if (weights && e->mode != MIX_CATEGORY_COUNT)
    return mix_fail(MIX_VALUE_ERROR, "%s: weights of counts were given; the output mode is %s", layer->name,
                    mix_category_mode_name(e->mode));
  if (!mix_dtype_is_integer(mix_tensor_dtype(ids))) ids = mix_cast(ids, MIX_INT64);
  /* An identity lookup: an id out of range sets the plan's error. */
  if (layer->semantics->category_encoding_checked)
    ids = mix_gather(mix_range(0, (double)e->num_tokens, 1, MIX_INT64), ids, 0);
  mix_dtype dtype = layer->semantics->category_encoding_in_variable_dtype ? layer->variable : layer->compute;
  if (weights) weights = mix_cast(weights, layer->compute);
  return mix_one_result(mix_encode_categories(ids, e->mode, e->num_tokens, weights, dtype));
}

static mix_status category_encoding_config(mix_layer *layer, mix_config *config) {
  const category_encoding *e = mix_layer_data(layer);
  mix_config_integer(config, "num_tokens", e->num_tokens);
  return mix_config_text(config, "output_mode", mix_category_mode_name(e->mode));
}

static const mix_layer_class class = {.size = sizeof(mix_layer_class),
                                      .name = "CategoryEncoding",
                                      .instance_size = sizeof(category_encoding),
                                      .call = category_encoding_call,
                                      .get_config = category_encoding_config,
                                      .no_autocast = true};

mix_category_encoding_options mix_category_encoding_defaults(void) {
  return (mix_category_encoding_options){.size = sizeof(mix_category_encoding_options)};
}

mix_layer *mix_category_encoding_with(const mix_category_encoding_options *options) {
  if (mix_failed()) return NULL;
  MIX_OPTIONS(mix_category_encoding_options, o, options, "category_encoding");
  mix_category_mode mode;
  if (o.num_tokens <= 0)
    return mix_fail(MIX_VALUE_ERROR, "category_encoding: num_tokens is %lld; expected a positive number",
                    (long long)o.num_tokens);
  if (!mix_category_mode_named(o.output_mode ? o.output_mode : "multi_hot", MIX_CATEGORY_ONE_HOT,
                               "category_encoding", &mode))
    return NULL;
  if (!o.dtype && !o.policy) o.dtype = mix_dtype_name(mix_floatx());
  mix_layer *layer = mix_layer_make(&class, MIX_LAYER_COMMON(o), "category_encoding");
  if (layer) *(category_encoding *)layer->data = (category_encoding){o.num_tokens, mode};
  return mix_scoped(layer);
}

mix_layer *mix_category_encoding_from(const json_t *config, const mix_semantics *semantics) {
  mix_common_config c = mix_common_config_of(config, semantics);
  return mix_category_encoding(.num_tokens = mix_json_integer_or(config, "num_tokens", 0),
                               MIX_COMMON_CONFIG(c),
                               .output_mode = mix_json_string_or(config, "output_mode", NULL));
}
