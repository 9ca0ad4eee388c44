/* Weight maps of the library: from the names and axes that Hugging Face's transformers save to those of
 * KerasHub's classes. */
#include "saving/weight_map.h"
#include <string.h>

#define RULE(weight, tensor) "{\"weight\":\"" weight "\",\"tensor\":" tensor
#define NAMED(weight, tensor) RULE(weight, "\"" tensor "\"")
#define PLAIN(weight, tensor) NAMED(weight, tensor) "},"
#define TRANSPOSED(weight, tensor) NAMED(weight, tensor) ",\"transpose\":[1,0]},"
/* Into heads: `axes` of each axis of a row, or of the kernel of a linear layer of PyTorch. */
#define SPLIT(weight, tensor, axes) NAMED(weight, tensor) ",\"reshape\":[" axes "]},"
#define SPLIT_TRANSPOSED(weight, tensor, axes)                                                               \
  NAMED(weight, tensor) ",\"transpose\":[1,0],\"reshape\":[" axes "]},"
/* The output of a model whose logits come of its table, which some files have once more. */
#define TIED(table) "{\"tensor\":\"lm_head\\\\.weight\",\"equal\":\"" table "\"}"
#define LAYER "transformer_layer_([0-9]+)/"

/* ---- GPT-2, whose kernels are (inputs, outputs), queries, keys and values in one ---- */

#define THIRD(weight, tensor, axis, part, axes)                                                              \
  NAMED(weight, tensor) ",\"part\":[" axis "," part ",3],\"reshape\":[" axes "]},"
#define GPT2_HEADS(name, part)                                                                               \
  THIRD(LAYER "self_attention/" name "/kernel", "h.\\\\1.attn.c_attn.weight", "1", part, "1,2")              \
  THIRD(LAYER "self_attention/" name "/bias", "h.\\\\1.attn.c_attn.bias", "0", part, "2")
#define GPT2_NORM(weight, tensor)                                                                            \
  PLAIN(weight "/gamma", tensor ".weight")                                                                   \
  PLAIN(weight "/beta", tensor ".bias")
#define GPT2_DENSE(weight, tensor)                                                                           \
  PLAIN(weight "/kernel", tensor ".weight")                                                                  \
  PLAIN(weight "/bias", tensor ".bias")
/* clang-format off */
static const char gpt2[] =
    "{\"prefixes\":[\"transformer.\"],\"rules\":["
    GPT2_HEADS("query", "0")
    GPT2_HEADS("key", "1")
    GPT2_HEADS("value", "2")
    SPLIT(LAYER "self_attention/attention_output/kernel", "h.\\\\1.attn.c_proj.weight", "2,1")
    PLAIN(LAYER "self_attention/attention_output/bias", "h.\\\\1.attn.c_proj.bias")
    GPT2_NORM(LAYER "self_attention_layer_norm", "h.\\\\1.ln_1")
    GPT2_NORM(LAYER "feedforward_layer_norm", "h.\\\\1.ln_2")
    GPT2_DENSE(LAYER "feedforward_intermediate_dense", "h.\\\\1.mlp.c_fc")
    GPT2_DENSE(LAYER "feedforward_output_dense", "h.\\\\1.mlp.c_proj")
    GPT2_NORM("layer_norm", "ln_f")
    PLAIN("position_embedding/embeddings", "wpe.weight")
    NAMED("token_embedding/embeddings", "wte.weight")
    "}],"
    "\"leave\":[\"h\\\\.[0-9]+\\\\.attn\\\\.(bias|masked_bias)\","
    TIED("wte.weight") "]}";
/* clang-format on */

/* ---- Llama, and what has its names: Mistral, Qwen ---- */

#define LLAMA_HEADS(name, tensor)                                                                            \
  SPLIT_TRANSPOSED(LAYER "self_attention/" name "/kernel", "layers.\\\\1.self_attn." tensor ".weight",       \
                   "1,2")                                                                                    \
  SPLIT(LAYER "self_attention/" name "/bias", "layers.\\\\1.self_attn." tensor ".bias", "2")
/* clang-format off */
static const char llama[] =
    "{\"prefixes\":[\"model.\"],\"rules\":["
    LLAMA_HEADS("query", "q_proj")
    LLAMA_HEADS("key", "k_proj")
    LLAMA_HEADS("value", "v_proj")
    SPLIT_TRANSPOSED(LAYER "self_attention/attention_output/kernel", "layers.\\\\1.self_attn.o_proj.weight",
                     "2,1")
    PLAIN(LAYER "self_attention_layernorm/scale", "layers.\\\\1.input_layernorm.weight")
    PLAIN(LAYER "feedforward_layernorm/scale", "layers.\\\\1.post_attention_layernorm.weight")
    TRANSPOSED(LAYER "feedforward_gate_dense/kernel", "layers.\\\\1.mlp.gate_proj.weight")
    TRANSPOSED(LAYER "feedforward_intermediate_dense/kernel", "layers.\\\\1.mlp.up_proj.weight")
    TRANSPOSED(LAYER "feedforward_output_dense/kernel", "layers.\\\\1.mlp.down_proj.weight")
    PLAIN("sequence_output_layernorm/scale", "norm.weight")
    TRANSPOSED("token_embedding/reverse_embeddings", "lm_head.weight")
    NAMED("token_embedding/embeddings", "embed_tokens.weight")
    "}],"
    "\"leave\":[" TIED("embed_tokens.weight")
    ",\"layers\\\\.[0-9]+\\\\.self_attn\\\\.rotary_emb\\\\.inv_freq\"]}";
/* clang-format on */

/* ---- BERT, whose old files have norms with gamma and beta ---- */

#define BERT_NORM(weight, tensor)                                                                            \
  RULE(weight "/gamma", "[\"" tensor ".weight\",\"" tensor ".gamma\"]")                                      \
  "}," RULE(weight "/beta", "[\"" tensor ".bias\",\"" tensor ".beta\"]") "},"
#define BERT_HEADS(name)                                                                                     \
  SPLIT_TRANSPOSED(LAYER "self_attention_layer/" name "/kernel",                                             \
                   "encoder.layer.\\\\1.attention.self." name ".weight", "1,2")                              \
  SPLIT(LAYER "self_attention_layer/" name "/bias", "encoder.layer.\\\\1.attention.self." name ".bias", "2")
#define BERT_DENSE(weight, tensor)                                                                           \
  TRANSPOSED(weight "/kernel", tensor ".weight")                                                             \
  PLAIN(weight "/bias", tensor ".bias")
/* clang-format off */
static const char bert[] =
    "{\"prefixes\":[\"bert.\"],\"rules\":["
    BERT_HEADS("query")
    BERT_HEADS("key")
    BERT_HEADS("value")
    SPLIT_TRANSPOSED(LAYER "self_attention_layer/attention_output/kernel",
                     "encoder.layer.\\\\1.attention.output.dense.weight", "2,1")
    PLAIN(LAYER "self_attention_layer/attention_output/bias",
          "encoder.layer.\\\\1.attention.output.dense.bias")
    BERT_NORM(LAYER "self_attention_layer_norm", "encoder.layer.\\\\1.attention.output.LayerNorm")
    BERT_NORM(LAYER "feedforward_layer_norm", "encoder.layer.\\\\1.output.LayerNorm")
    BERT_DENSE(LAYER "feedforward_intermediate_dense", "encoder.layer.\\\\1.intermediate.dense")
    BERT_DENSE(LAYER "feedforward_output_dense", "encoder.layer.\\\\1.output.dense")
    BERT_NORM("embeddings_layer_norm", "embeddings.LayerNorm")
    BERT_DENSE("pooled_dense", "pooler.dense")
    BERT_DENSE("logits", "classifier")
    PLAIN("position_embedding/embeddings", "embeddings.position_embeddings.weight")
    PLAIN("segment_embedding/embeddings", "embeddings.token_type_embeddings.weight")
    NAMED("token_embedding/embeddings", "embeddings.word_embeddings.weight")
    "}],"
    "\"leave\":[\"embeddings\\\\.position_ids\",\"cls\\\\..*\"]}";
/* clang-format on */

const char *mix_known_weight_map(const char *name) {
  static const struct {
    const char *name, *text;
  } maps[] = {{"bert", bert}, {"gpt2", gpt2}, {"llama", llama}};
  for (size_t i = 0; name && i < sizeof maps / sizeof *maps; i++)
    if (!strcmp(maps[i].name, name)) return maps[i].text;
  return NULL;
}
