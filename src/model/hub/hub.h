/* Models of KerasHub by the class and the options that their files have. A family is a file with its rows
 * (base/fields.h) and a function that makes the layers and calls them, in the order of KerasHub's own, from
 * which the order of the weights follows. Names of layers are KerasHub's too: maps of policies find them. */
#pragma once

#include "model/model.h"
#include "nn/layers/hub/hub.h"
#include "nn/layers/recurrent/recurrent.h"

typedef struct mix_hub_family {
  const char *name;   /* of the class: "BertBackbone" */
  const char *module; /* behind "keras_hub.src.models." */
  /* A struct that begins as mix_layer_common, and its rows behind name, trainable and dtype. Members of a
   * config that no row names are an error. */
  size_t options_size;
  const mix_field_row *fields;
  mix_model *(*build)(const void *options);
} mix_hub_family;

/* clang-format off */
#define MIX_HUB_ENCODERS(X)                                                                                  \
  X(bert_backbone) X(albert_backbone) X(electra_backbone) X(roberta_backbone) X(xlm_roberta_backbone)        \
  X(distil_bert_backbone) X(deberta_v3_backbone) X(bart_backbone) X(t5_backbone) X(vit_backbone)
#define MIX_HUB_CLASSIFIERS(X)                                                                               \
  X(bert_text_classifier) X(albert_text_classifier) X(roberta_text_classifier)                               \
  X(xlm_roberta_text_classifier) X(distil_bert_text_classifier) X(deberta_v3_text_classifier)              \
  X(vit_image_classifier)
#define MIX_HUB_DECODERS(X)                                                                                  \
  X(gpt2_backbone) X(opt_backbone) X(llama_backbone) X(llama3_backbone) X(mistral_backbone)                  \
  X(qwen_backbone) X(gemma_backbone) X(phi3_backbone) X(bloom_backbone) X(falcon_backbone)                   \
  X(gpt_neo_x_backbone)
#define MIX_HUB_CAUSAL_LMS(X)                                                                                \
  X(gpt2_causal_lm) X(opt_causal_lm) X(llama_causal_lm) X(llama3_causal_lm) X(mistral_causal_lm)             \
  X(qwen_causal_lm) X(gemma_causal_lm) X(phi3_causal_lm) X(bloom_causal_lm) X(falcon_causal_lm)              \
  X(gpt_neo_x_causal_lm)
#define MIX_HUB_FAMILIES(X)                                                                                  \
  MIX_HUB_ENCODERS(X) MIX_HUB_CLASSIFIERS(X) MIX_HUB_DECODERS(X) MIX_HUB_CAUSAL_LMS(X)
/* clang-format on */
#define MIX_DECLARE_FAMILY(name) extern const mix_hub_family mix_hub_##name;
MIX_HUB_FAMILIES(MIX_DECLARE_FAMILY)
#undef MIX_DECLARE_FAMILY

/* The family of that class; NULL without an error: the registered name is of another package. With an error
 * that names the nearest one where KerasHub has a class that is not here. */
const mix_hub_family *mix_hub_family_of(const char *class_name, const char *registered_name);
/* A model of the family by a config. Scoped; NULL with the error recorded. */
mix_model *mix_hub_make(const mix_hub_family *family, const json_t *config, const mix_semantics *semantics);

/* Of the truncated normal from which most kernels and tables of encoders begin. */
#define MIX_HUB_STDDEV 0.02

/* ---- rows ---- */

/* How many layers a model has, before there are weights to compare with: an integer up to MIX_HUB_MAX_LAYERS.
 */
enum { MIX_HUB_MAX_LAYERS = 1000 };
extern const mix_value_kind mix_field_layer_count;
#define MIX_HUB_SIZE(type, member)                                                                           \
  { MIX_FIELD(type, member), &mix_field_integer, .range = MIX_POSITIVE, .required = true }
#define MIX_HUB_COUNT(type, member)                                                                          \
  { MIX_FIELD(type, member), &mix_field_layer_count, .range = MIX_POSITIVE, .required = true }
/* Configs that an earlier KerasHub wrote lack newer options: these have its defaults. */
#define MIX_HUB_RATE(type, member, value)                                                                    \
  { MIX_FIELD(type, member), &mix_field_number, .number = value, .range = MIX_UNIT_INTERVAL }
#define MIX_HUB_SIZE_OR(type, member, value)                                                                 \
  { MIX_FIELD(type, member), &mix_field_integer, .number = value, .range = MIX_POSITIVE }
/* What a model has only with this value, a text of JSON. */
#define MIX_HUB_ONLY(name, json)                                                                             \
  { name, 0, &mix_field_fixed, .text = json }
/* Of a task: its backbone, a layer of one of these classes, and the preprocessor, which no model needs. */
#define MIX_HUB_BACKBONE(type)                                                                               \
  {MIX_FIELD(type, backbone), &mix_field_layer, .required = true}, {                                         \
    "preprocessor", 0, &mix_field_fixed, .text = "null", .optional = true                                    \
  }

/* ---- graphs ---- */

/* An input (batch, positions) of integers. */
mix_tensor *mix_hub_tokens(const void *options, const char *name);
/* The model of these inputs, a dict by their names or a tensor, and of outputs alike. */
mix_model *mix_hub_model(const void *options, void *inputs, void *outputs);
/* The model of a task, whose inputs are those of mix_hub_inputs_like. */
mix_model *mix_hub_task(const void *options, mix_layer *backbone, mix_list *inputs, mix_tensor *output);
/* A layer Add. */
mix_layer *mix_hub_add_layer(const void *options, const char *name);
/* x[:, place]: an operation, as Keras has it. */
mix_tensor *mix_hub_position(mix_tensor *x, int place);
/* mask[:, None, :], alike. */
mix_tensor *mix_hub_mask_of_keys(mix_tensor *mask);
/* The mean over the positions of x (batch, positions, features), alike. */
mix_tensor *mix_hub_mean_of_positions(mix_tensor *x);
/* New inputs like those of a backbone: a list in the backbone's order. */
mix_list *mix_hub_inputs_like(mix_layer *backbone);
/* The result of a backbone by the name of its output; NULL where it has one output alone. */
mix_tensor *mix_hub_output(mix_layer *backbone, mix_list *inputs, const char *name);
/* A layer of a backbone, borrowed. NULL with an error. */
mix_layer *mix_hub_layer_named(const mix_layer *backbone, const char *name);
