/* KerasHub's GPT-2 small and BERT base with new weights; with --quick a layer of 48 units. */
#include "tables.h"

int64_t bench_hub_words(const bench_settings *settings, bool bert) {
  return settings->quick ? 1000 : bert ? 30522 : 50257;
}

mix_model *bench_hub_model(const bench_settings *settings, bool bert, const char *policy) {
  const int layers = settings->quick ? 1 : 12, units = settings->quick ? 48 : 768;
  const char *task = bert ? "BertTextClassifier" : "GPT2CausalLM",
             *backbone = bert ? "BertBackbone" : "GPT2Backbone";
  char text[1024];
  snprintf(text, sizeof text,
           "{\"class_name\": \"%s\", \"registered_name\": \"keras_hub>%s\", \"config\": {%s\"backbone\":"
           " {\"class_name\": \"%s\", \"registered_name\": \"keras_hub>%s\", \"config\": {\"dtype\": \"%s\","
           " \"vocabulary_size\": %lld, \"num_layers\": %d, \"num_heads\": 12, \"hidden_dim\": %d,"
           " \"intermediate_dim\": %d, \"dropout\": 0.1, \"max_sequence_length\": %s}}}}",
           task, task, bert ? "\"num_classes\": 2, \"dropout\": 0.1, " : "", backbone, backbone, policy,
           (long long)bench_hub_words(settings, bert), layers, units, 4 * units,
           bert ? "512, \"num_segments\": 2" : "1024");
  mix_set_semantics("keras3");
  return mix_model_from_json(text);
}
