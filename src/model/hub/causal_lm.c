/* CausalLM: the logits of the token that follows each, by the table of tokens of a decoder's backbone. */
#include "model/hub/hub.h"
#include "base/error.h"
#include <string.h>

typedef struct causal_lm {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *backbone;
} causal_lm;

/* OPT's stands inside the layer of tokens and positions. */
static mix_layer *token_table(const mix_layer *backbone) {
  for (int i = 0; i < mix_list_count(backbone->layers); i++) {
    const mix_layer *layer = mix_list_items(backbone->layers)[i];
    if (!strcmp(layer->name, "embeddings")) return mix_hub_layer_named(layer, "token_embedding");
  }
  return mix_hub_layer_named(backbone, "token_embedding");
}

static mix_model *build(const void *options) {
  const causal_lm *o = options;
  mix_list *inputs = mix_hub_inputs_like(o->backbone);
  mix_tensor *hidden = mix_hub_output(o->backbone, inputs, NULL);
  mix_layer *table = hidden ? token_table(o->backbone) : NULL;
  return table ? mix_hub_task(o, o->backbone, inputs, mix_call(table, hidden, .reverse = true)) : NULL;
}

static const mix_field_row fields[] = {MIX_HUB_BACKBONE(causal_lm), {0}};
#define CAUSAL_LM(member, name, module)                                                                      \
  const mix_hub_family mix_hub_##member##_causal_lm = {name, module, sizeof(causal_lm), fields, build};
CAUSAL_LM(gpt2, "GPT2CausalLM", "gpt2.gpt2_causal_lm")
CAUSAL_LM(opt, "OPTCausalLM", "opt.opt_causal_lm")
CAUSAL_LM(llama, "LlamaCausalLM", "llama.llama_causal_lm")
CAUSAL_LM(llama3, "Llama3CausalLM", "llama3.llama3_causal_lm")
CAUSAL_LM(mistral, "MistralCausalLM", "mistral.mistral_causal_lm")
CAUSAL_LM(qwen, "QwenCausalLM", "qwen.qwen_causal_lm")
CAUSAL_LM(gemma, "GemmaCausalLM", "gemma.gemma_causal_lm")
CAUSAL_LM(phi3, "Phi3CausalLM", "phi3.phi3_causal_lm")
CAUSAL_LM(bloom, "BloomCausalLM", "bloom.bloom_causal_lm")
CAUSAL_LM(falcon, "FalconCausalLM", "falcon.falcon_causal_lm")
CAUSAL_LM(gpt_neo_x, "GPTNeoXCausalLM", "gpt_neo_x.gpt_neo_x_causal_lm")
