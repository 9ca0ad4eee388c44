/* The layers of ViT (Dosovitskiy et al.; arXiv:2010.11929): patches of images, and encoder blocks. */
#include "base/error.h"
#include "nn/layers/hub/hub.h"
#include <mixtape/convolution.h>
#include <stdio.h>

/* ---- ViTPatchingAndEmbedding ---- */

typedef struct patches {
  mix_hub_vit_patches_options options;
  mix_variable *token;            /* NULL: no class token */
  mix_layer *convolution, *table; /* borrowed, as the token */
  int64_t positions;
} patches;

static mix_status patches_build(mix_layer *layer, int count, const mix_shape *shapes) {
  patches *p = layer->data;
  const mix_hub_vit_patches_options *o = &p->options;
  const mix_shape x = shapes[0];
  if (x.rank != 4 || x.dims[1] < o->patch_height || x.dims[2] < o->patch_width)
    return mix_fail_status(MIX_VALUE_ERROR, "%s: the input has shape %s; expected images of known sizes",
                           layer->name, MIX_SHAPE_TEXT(x));
  p->positions = (x.dims[1] / o->patch_height) * (x.dims[2] / o->patch_width) + !o->no_class_token;
  if (!o->no_class_token)
    p->token = mix_layer_add_weight(layer, "class_token", .shape = MIX_SHAPE(1, 1, o->hidden_dim),
                                    .initializer = "random_normal");
  const mix_shape patch = MIX_SHAPE(o->patch_height, o->patch_width);
  mix_layer *convolution =
      mix_conv2d_with(&(const mix_conv_layer_options){.size = sizeof(mix_conv_layer_options),
                                                      .name = "patch_embedding",
                                                      .policy = layer->policy,
                                                      .semantics = layer->semantics,
                                                      .filters = o->hidden_dim,
                                                      .kernel_size = patch,
                                                      .strides = patch,
                                                      .no_bias = o->no_patch_bias});
  p->convolution = mix_hub_add(layer, convolution, "patch_embedding", x);
  mix_layer *table = mix_hub_layer(
      embedding, layer, "position_embedding", .input_dim = p->positions, .output_dim = o->hidden_dim,
      .embeddings_initializer_object = mix_initializer_new("random_normal", .stddev = 0.02));
  p->table = mix_hub_add(layer, table, "position_embedding", MIX_SHAPE(1, p->positions));
  return mix_error();
}

static mix_list *patches_call(mix_layer *layer, const mix_call_args *args) {
  const patches *p = layer->data;
  mix_tensor *x = mix_call(p->convolution, mix_call_input(args, 0));
  if (!x) return NULL;
  mix_shape shape = mix_tensor_shape(x);
  const mix_shape rows = MIX_SHAPE(shape.dims[0], p->positions, shape.dims[3]);
  if (args->symbolic) return mix_one_result(mix_hub_symbolic(mix_tensor_dtype(x), rows));
  x = mix_reshape(x, MIX_SHAPE(shape.dims[0], -1, shape.dims[3]));
  mix_tensor *place = mix_expand_dims(mix_range(0, (double)p->positions, 1, MIX_INT32), 0);
  mix_tensor *positions = mix_call(p->table, place);
  if (p->token && x) {
    mix_tensor *token = mix_broadcast_to(mix_cast(mix_variable_value(p->token), mix_tensor_dtype(x)),
                                         MIX_SHAPE(shape.dims[0], 1, shape.dims[3]));
    x = token ? mix_concat(2, (mix_tensor *[]){token, x}, 1) : NULL;
  }
  return mix_one_result(x && positions ? mix_hub_sum(x, positions) : NULL);
}

static mix_shape patches_output_shape(mix_layer *layer, int count, const mix_shape *shapes) {
  const patches *p = layer->data;
  return MIX_SHAPE(shapes[0].dims[0], p->positions, p->options.hidden_dim);
}

#define FIELD(member) MIX_FIELD(mix_hub_vit_patches_options, member)
#define NEGATED(name, member)                                                                                \
  { name, offsetof(mix_hub_vit_patches_options, member), &mix_field_negated }
static const mix_field_row patch_fields[] = {{FIELD(hidden_dim), &mix_field_integer, .range = MIX_POSITIVE},
                                             {FIELD(patch_height), &mix_field_integer, .range = MIX_POSITIVE},
                                             {FIELD(patch_width), &mix_field_integer, .range = MIX_POSITIVE},
                                             NEGATED("use_class_token", no_class_token),
                                             NEGATED("use_patch_bias", no_patch_bias),
                                             {0}};
#undef FIELD
#undef NEGATED
MIX_LAYER_KIND_ONLY(hub_vit_patches, mix_hub_vit_patches_options, .fields = patch_fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "ViTPatchingAndEmbedding", .instance_size = sizeof(patches),
                                    .build = patches_build, .call = patches_call,
                                    .output_shape = patches_output_shape))

/* ---- ViTEncoderBlock, with its MLP ---- */

typedef struct mlp {
  mix_hub_vit_options options;
  mix_layer *up, *down, *dropout;
} mlp;

static mix_status mlp_build(mix_layer *layer, int count, const mix_shape *shapes) {
  mlp *m = layer->data;
  const mix_hub_vit_options *o = &m->options;
  mix_shape x = shapes[0], inner = x;
  inner.dims[2] = o->mlp_dim;
  mix_layer *up = mix_hub_layer(dense, layer, "dense_1", .units = o->mlp_dim, .activation = "gelu",
                                .no_bias = o->no_mlp_bias),
            *down = mix_hub_layer(dense, layer, "dense_2", .units = x.dims[2], .no_bias = o->no_mlp_bias);
  m->up = mix_hub_add(layer, up, "dense_1", x);
  m->down = mix_hub_add(layer, down, "dense_2", inner);
  m->dropout = mix_hub_dropout(layer, "dropout", o->dropout_rate, x);
  return mix_error();
}

static mix_list *mlp_call(mix_layer *layer, const mix_call_args *args) {
  const mlp *m = layer->data;
  mix_tensor *x = mix_call(m->dropout, mix_call(m->up, mix_call_input(args, 0)));
  return mix_one_result(mix_call(m->dropout, mix_call(m->down, x)));
}

#define FIELD(member) MIX_FIELD(mix_hub_vit_options, member)
#define NEGATED(name, member)                                                                                \
  { name, offsetof(mix_hub_vit_options, member), &mix_field_negated }
static const mix_field_row fields[] = {
    {FIELD(num_layers), &mix_field_integer, .range = MIX_NOT_NEGATIVE},
    {FIELD(num_heads), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(mlp_dim), &mix_field_integer, .range = MIX_POSITIVE},
    {FIELD(dropout_rate), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {FIELD(attention_dropout), &mix_field_number, .range = MIX_UNIT_INTERVAL},
    {FIELD(layer_norm_epsilon), &mix_field_number},
    NEGATED("use_mha_bias", no_mha_bias),
    NEGATED("use_mlp_bias", no_mlp_bias),
    {0}};
MIX_LAYER_KIND_ONLY(hub_vit_mlp, mix_hub_vit_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "MLP", .instance_size = sizeof(mlp), .build = mlp_build,
                                    .call = mlp_call, .output_shape = mix_layer_same_shape))

typedef struct block {
  mix_hub_vit_options options;
  mix_layer *attention, *dropout, *mlp, *norms[2];
} block;

/* What a layer hands on to those in it. */
#define MIX_VIT_OF(o)                                                                                        \
  .num_heads = (o)->num_heads, .mlp_dim = (o)->mlp_dim, .dropout_rate = (o)->dropout_rate,                   \
  .attention_dropout = (o)->attention_dropout, .layer_norm_epsilon = (o)->layer_norm_epsilon,                \
  .no_mha_bias = (o)->no_mha_bias, .no_mlp_bias = (o)->no_mlp_bias

static mix_layer *norm_of(mix_layer *layer, const char *name, const char *attribute, mix_shape x) {
  const mix_hub_vit_options *o = layer->data;
  return mix_hub_add(
      layer,
      mix_hub_layer(layer_normalization, layer, name, .epsilon = MIX_HUB_EPSILON(o->layer_norm_epsilon)),
      attribute, x);
}

static mix_status block_build(mix_layer *layer, int count, const mix_shape *shapes) {
  block *b = layer->data;
  const mix_hub_vit_options *o = &b->options;
  const mix_shape x = shapes[0];
  b->norms[0] = norm_of(layer, "ln_1", "layer_norm_1", x);
  mix_layer *attention = mix_hub_layer(multi_head_attention, layer, "mha", .num_heads = o->num_heads,
                                       .key_dim = x.dims[2] / o->num_heads, .no_bias = o->no_mha_bias,
                                       .dropout = o->attention_dropout);
  b->attention = mix_hub_add(layer, attention, "mha", x);
  b->dropout = mix_hub_dropout(layer, "dropout", o->dropout_rate, x);
  b->norms[1] = norm_of(layer, "ln_2", "layer_norm_2", x);
  b->mlp = mix_hub_add(layer, mix_hub_layer(hub_vit_mlp, layer, "mlp", MIX_VIT_OF(o)), "mlp", x);
  return mix_error();
}

static mix_list *block_call(mix_layer *layer, const mix_call_args *args) {
  const block *b = layer->data;
  mix_tensor *x = mix_call_input(args, 0), *y = mix_call(b->norms[0], x);
  if (!y) return NULL;
  y = mix_call(b->dropout, mix_call(b->attention, y, .arguments = mix_list_of(y)));
  x = mix_hub_sum(y, x);
  return mix_one_result(mix_hub_sum(x, mix_call(b->mlp, mix_call(b->norms[1], x))));
}
MIX_LAYER_KIND_ONLY(hub_vit_block, mix_hub_vit_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "ViTEncoderBlock", .instance_size = sizeof(block),
                                    .build = block_build, .call = block_call,
                                    .output_shape = mix_layer_same_shape))

/* ---- ViTEncoder ---- */

typedef struct vit_encoder {
  mix_hub_vit_options options;
  mix_layer *dropout, *norm;
} vit_encoder;

static mix_status encoder_build(mix_layer *layer, int count, const mix_shape *shapes) {
  vit_encoder *e = layer->data;
  const mix_hub_vit_options *o = &e->options;
  const mix_shape x = shapes[0];
  if (x.rank != 3 || x.dims[2] < o->num_heads)
    return mix_fail_status(MIX_VALUE_ERROR,
                           "%s: the input has shape %s; expected features for each of %lld heads",
                           layer->name, MIX_SHAPE_TEXT(x), (long long)o->num_heads);
  for (int i = 0; i < o->num_layers && !mix_failed(); i++) {
    char name[48];
    snprintf(name, sizeof name, "transformer_block_%d", i + 1);
    mix_hub_add(layer, mix_hub_layer(hub_vit_block, layer, name, MIX_VIT_OF(o)), "encoder_layers/", x);
  }
  e->dropout = mix_hub_dropout(layer, "dropout", o->dropout_rate, x);
  e->norm = norm_of(layer, "ln", "layer_norm", x);
  return mix_error();
}

static mix_list *encoder_call(mix_layer *layer, const mix_call_args *args) {
  const vit_encoder *e = layer->data;
  mix_tensor *x = mix_call(e->dropout, mix_call_input(args, 0));
  for (int i = 0; i < e->options.num_layers && x; i++) x = mix_call(mix_list_get(layer->layers, i), x);
  return mix_one_result(mix_call(e->norm, x));
}
MIX_LAYER_KIND_ONLY(hub_vit_encoder, mix_hub_vit_options, .fields = fields, .keras3_only = true,
                    MIX_LAYER_CLASS(.name = "ViTEncoder", .instance_size = sizeof(vit_encoder),
                                    .build = encoder_build, .call = encoder_call,
                                    .output_shape = mix_layer_same_shape))
