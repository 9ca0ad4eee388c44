/* TextClassifier: classes by the first position of a backbone's result. */
#include "model/hub/hub.h"
#include "nn/layers/activation_functions.h"

typedef struct classifier {
  size_t size;
  MIX_LAYER_OPTIONS
  mix_layer *backbone;
  int64_t num_classes, hidden_dim; /* 0: of the backbone */
  const char *activation;
  double dropout;
} classifier;

static mix_tensor *drop(const classifier *o, mix_tensor *x, const char *name) {
  return mix_call(mix_hub_layer(dropout, o->backbone, name, .rate = o->dropout), x);
}

static mix_tensor *logits(const classifier *o, mix_tensor *x) {
  return mix_call(mix_hub_layer(dense, o->backbone, "logits", .units = o->num_classes,
                                .activation = o->activation,
                                .kernel_initializer_object = mix_hub_initializer(MIX_HUB_STDDEV)),
                  x);
}

/* Of a backbone with a pooled output. */
static mix_model *classify_pooled(const classifier *o, const char *dropout) {
  mix_list *inputs = mix_hub_inputs_like(o->backbone);
  mix_tensor *x = drop(o, mix_hub_output(o->backbone, inputs, "pooled_output"), dropout);
  return mix_hub_task(o, o->backbone, inputs, logits(o, x));
}
static mix_model *build_bert(const void *options) { return classify_pooled(options, "classifier_dropout"); }
static mix_model *build_albert(const void *options) { return classify_pooled(options, "output_dropout"); }

/* A dense layer of the classifier's own, between two dropouts. */
typedef struct head {
  bool drops_first;
  const char *activation;
  double stddev;          /* of the dense layer; 0: Keras's default */
  const char *dropout;    /* the name of the second dropout */
  bool has_backbone_rate; /* that one's rate is the backbone's */
} head;

static double backbone_rate(const classifier *o) {
  const mix_layer *dropout = mix_hub_layer_named(o->backbone, "embeddings_dropout");
  return dropout && dropout->kind == &mix_dropout_kind ? ((const mix_dropout_options *)dropout->data)->rate
                                                       : 0;
}

static mix_model *classify_first(const classifier *o, const head *h) {
  mix_list *inputs = mix_hub_inputs_like(o->backbone);
  mix_tensor *x = mix_hub_position(mix_hub_output(o->backbone, inputs, NULL), 0);
  if (!x) return NULL;
  const mix_shape shape = mix_tensor_shape(x);
  if (h->drops_first) x = drop(o, x, "pooled_dropout");
  x = mix_call(mix_hub_layer(
                   dense, o->backbone, "pooled_dense", .units = o->hidden_dim ? o->hidden_dim : shape.dims[1],
                   .activation = h->activation, .kernel_initializer_object = mix_hub_initializer(h->stddev)),
               x);
  classifier second = *o;
  if (h->has_backbone_rate) second.dropout = backbone_rate(o);
  return mix_hub_task(o, o->backbone, inputs, logits(o, drop(&second, x, h->dropout)));
}
static mix_model *build_roberta(const void *options) {
  return classify_first(options, &(head){true, "tanh", 0, "output_dropout", false});
}
static mix_model *build_distil_bert(const void *options) {
  return classify_first(options, &(head){false, "relu", MIX_HUB_STDDEV, "output_dropout", false});
}
static mix_model *build_deberta_v3(const void *options) {
  return classify_first(options, &(head){true, "gelu", 0, "classifier_dropout", true});
}

#define SHARED(rate)                                                                                         \
  MIX_HUB_BACKBONE(classifier), MIX_HUB_SIZE(classifier, num_classes),                                       \
      MIX_HUB_RATE(classifier, dropout, rate), {                                                             \
    MIX_FIELD(classifier, activation), &mix_field_activation                                                 \
  }
static const mix_field_row pooled[] = {SHARED(0.1), {0}};
static const mix_field_row first[] = {
    SHARED(0),
    {MIX_FIELD(classifier, hidden_dim), &mix_field_integer, .range = MIX_POSITIVE, .optional = true},
    {0}};
const mix_hub_family mix_hub_bert_text_classifier = {"BertTextClassifier", "bert.bert_text_classifier",
                                                     sizeof(classifier), pooled, build_bert};
const mix_hub_family mix_hub_albert_text_classifier = {
    "AlbertTextClassifier", "albert.albert_text_classifier", sizeof(classifier), pooled, build_albert};
const mix_hub_family mix_hub_roberta_text_classifier = {
    "RobertaTextClassifier", "roberta.roberta_text_classifier", sizeof(classifier), first, build_roberta};
const mix_hub_family mix_hub_xlm_roberta_text_classifier = {"XLMRobertaTextClassifier",
                                                            "xlm_roberta.xlm_roberta_text_classifier",
                                                            sizeof(classifier), first, build_roberta};
const mix_hub_family mix_hub_distil_bert_text_classifier = {"DistilBertTextClassifier",
                                                            "distil_bert.distil_bert_text_classifier",
                                                            sizeof(classifier), first, build_distil_bert};
const mix_hub_family mix_hub_deberta_v3_text_classifier = {"DebertaV3TextClassifier",
                                                           "deberta_v3.deberta_v3_text_classifier",
                                                           sizeof(classifier), first, build_deberta_v3};
