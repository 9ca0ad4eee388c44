/* CategoryEncoding: encodes integer ids as one-hot, multi-hot or counts. */
#include "base/error.h"
#include "nn/layers/builtin.h"
#include "ops/table.h"

static mix_list *category_encoding_call(mix_layer *layer, const mix_call_args *args) {
  const mix_category_encoding_options *o = mix_layer_data(layer);
  mix_category_mode mode = mix_category_mode_named(o->output_mode);
  mix_tensor *ids = mix_call_input(args, 0), *weights = NULL;
  if (args->arguments && mix_list_count(args->arguments)) weights = mix_call_argument(args, 0);
  if (weights && mode != MIX_CATEGORY_COUNT)
    return mix_fail_value("%s: weights of counts were given; the output mode is %s", layer->name,
                          o->output_mode);
  ids = mix_index_values(ids);
  /* An identity lookup: an id out of range sets the plan's error. */
  if (layer->semantics->category_encoding_checked)
    ids = mix_gather(mix_range(0, (double)o->num_tokens, 1, MIX_INT64), ids, 0);
  mix_dtype dtype = layer->semantics->category_encoding_in_variable_dtype ? layer->variable : layer->compute;
  if (weights) weights = mix_cast(weights, layer->compute);
  return mix_one_result(mix_encode_categories(ids, mode, o->num_tokens, weights, dtype));
}

static bool category_encoding_check(void *options, const mix_layer_kind *kind) {
  mix_category_encoding_options *o = options;
  if (!o->dtype && !o->policy) o->dtype = mix_dtype_name(mix_floatx());
  return true;
}

static const mix_field_row fields[] = {
    {MIX_FIELD(mix_category_encoding_options, num_tokens), &mix_field_integer, .range = MIX_POSITIVE},
    {MIX_FIELD(mix_category_encoding_options, output_mode), &mix_field_text, .text = "multi_hot",
     .choices = "one_hot|multi_hot|count"},
    {0}};
MIX_LAYER_KIND(category_encoding, mix_category_encoding_options, .fields = fields,
               .check = category_encoding_check,
               MIX_LAYER_CLASS(.name = "CategoryEncoding", .call = category_encoding_call,
                               .no_autocast = true))
