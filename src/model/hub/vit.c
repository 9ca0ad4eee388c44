/* ViT (Dosovitskiy et al.; arXiv:2010.11929): a backbone, and classes of images. */
#include "base/error.h"
#include "model/hub/hub.h"
#include "nn/layers/activation_functions.h"
#include <string.h>

typedef struct vit {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_shape image_shape, patch_size;
  int64_t num_layers, num_heads, hidden_dim, mlp_dim;
  double dropout_rate, attention_dropout, layer_norm_epsilon;
  bool no_mha_bias, no_mlp_bias, no_class_token, no_patch_bias;
} vit;

/* A patch of one size is square. */
static bool check(vit *o) {
  const mix_shape *image = &o->image_shape;
  if (o->patch_size.rank == 1) o->patch_size = MIX_SHAPE(o->patch_size.dims[0], o->patch_size.dims[0]);
  const mix_shape *patch = &o->patch_size;
  const int64_t longest = 1 << 24; /* so that patches can be counted */
  bool fits = image->rank == 3 && image->dims[2] > 0 && patch->rank == 2;
  for (int i = 0; i < 2 && fits; i++)
    fits = patch->dims[i] > 0 && image->dims[i] > 0 && image->dims[i] <= longest &&
           image->dims[i] % patch->dims[i] == 0;
  if (fits) return true;
  return mix_fail_value(
      "ViTBackbone: image_shape is %s and patch_size %s; expected (height, width, channels), "
      "height and width multiples of the patch's",
      MIX_SHAPE_TEXT(o->image_shape), MIX_SHAPE_TEXT(o->patch_size));
}

static mix_model *build(const void *options) {
  vit copy = *(const vit *)options;
  const vit *o = &copy;
  if (!check(&copy)) return NULL;
  mix_tensor *images = mix_input(.shape = o->image_shape, .name = "images", .semantics = o->semantics);
  mix_tensor *x =
      mix_call(mix_hub_layer(hub_vit_patches, o, "vit_patching_and_embedding", .hidden_dim = o->hidden_dim,
                             .patch_height = o->patch_size.dims[0], .patch_width = o->patch_size.dims[1],
                             .no_class_token = o->no_class_token, .no_patch_bias = o->no_patch_bias),
               images);
  x = mix_call(mix_hub_layer(hub_vit_encoder, o, "vit_encoder", .num_layers = o->num_layers,
                             .num_heads = o->num_heads, .mlp_dim = o->mlp_dim,
                             .dropout_rate = o->dropout_rate, .attention_dropout = o->attention_dropout,
                             .layer_norm_epsilon = o->layer_norm_epsilon, .no_mha_bias = o->no_mha_bias,
                             .no_mlp_bias = o->no_mlp_bias),
               x);
  return x ? mix_hub_model(o, images, x) : NULL;
}

#define NEGATED(name, member)                                                                                \
  { name, offsetof(vit, member), &mix_field_negated }
static const mix_field_row fields[] = {
    {MIX_FIELD(vit, image_shape), &mix_field_shape, .required = true},
    {MIX_FIELD(vit, patch_size), &mix_field_size_or_shape, .required = true},
    MIX_HUB_COUNT(vit, num_layers),
    MIX_HUB_SIZE(vit, num_heads),
    MIX_HUB_SIZE(vit, hidden_dim),
    MIX_HUB_SIZE(vit, mlp_dim),
    MIX_HUB_RATE(vit, dropout_rate, 0),
    MIX_HUB_RATE(vit, attention_dropout, 0),
    {MIX_FIELD(vit, layer_norm_epsilon), &mix_field_number, .number = 1e-6, .range = MIX_NOT_NEGATIVE},
    NEGATED("use_mha_bias", no_mha_bias),
    NEGATED("use_mlp_bias", no_mlp_bias),
    NEGATED("use_class_token", no_class_token),
    NEGATED("use_patch_bias", no_patch_bias),
    {0}};
const mix_hub_family mix_hub_vit_backbone = {"ViTBackbone", "vit.vit_backbone", sizeof(vit), fields, build};

/* ---- the task ---- */

typedef struct classifier {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *backbone;
  int64_t num_classes, intermediate_dim; /* 0: no layer before the last */
  const char *pooling, *activation;
  double dropout;
} classifier;

/* The layer before the last has the global policy, not the backbone's, as in KerasHub. */
static mix_model *build_classifier(const void *options) {
  const classifier *o = options;
  const mix_layer_common of = {.semantics = o->semantics}, *plain = &of;
  mix_list *inputs = mix_hub_inputs_like(o->backbone);
  mix_tensor *x = mix_hub_output(o->backbone, inputs, NULL);
  if (!x) return NULL;
  if (!strcmp(o->pooling, "token")) x = mix_hub_position(x, 0);
  if (!strcmp(o->pooling, "gap")) x = mix_hub_mean_of_positions(x);
  if (o->intermediate_dim)
    x = mix_call(
        mix_hub_layer(dense, plain, "pre_logits", .units = o->intermediate_dim, .activation = "tanh"), x);
  x = mix_call(mix_hub_layer(dropout, o->backbone, "output_dropout", .rate = o->dropout), x);
  x = mix_call(
      mix_hub_layer(dense, o->backbone, "predictions", .units = o->num_classes, .activation = o->activation),
      x);
  return mix_hub_task(o, o->backbone, inputs, x);
}

static const mix_field_row task_fields[] = {
    MIX_HUB_BACKBONE(classifier),
    MIX_HUB_SIZE(classifier, num_classes),
    {MIX_FIELD(classifier, intermediate_dim), &mix_field_integer, .range = MIX_POSITIVE, .optional = true},
    {MIX_FIELD(classifier, pooling), &mix_field_text, .text = "token", .choices = "token|gap|none",
     .optional = true}, /* none: a row of classes for each patch */
    {MIX_FIELD(classifier, activation), &mix_field_activation},
    MIX_HUB_RATE(classifier, dropout, 0),
    {0}};
const mix_hub_family mix_hub_vit_image_classifier = {"ViTImageClassifier", "vit.vit_image_classifier",
                                                     sizeof(classifier), task_fields, build_classifier};
