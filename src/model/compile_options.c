/* The copy of the compile options that a model keeps for its configs. */
#include "base/alloc.h"
#include "model/model.h"

static void intern_all(const char **texts, const char *const *given) {
  for (int i = 0; i < MIX_MODEL_MAX; i++) texts[i] = given[i] ? mix_intern(given[i]) : NULL;
}

void mix_compile_options_keep(mix_compile_options *copy, const mix_compile_options *options) {
  *copy = *options;
  copy->optimizer = NULL;
  copy->optimizer_name = NULL;
  copy->loss = options->loss ? mix_intern(options->loss) : NULL;
  intern_all(copy->losses, options->losses);
  intern_all(copy->metrics, options->metrics);
  intern_all(copy->weighted_metrics, options->weighted_metrics);
  mix_retain(copy->loss_object);
  mix_retain(copy->loss_objects);
  mix_retain(copy->metric_objects);
  mix_retain(copy->weighted_metric_objects);
}

void mix_compile_options_release(mix_compile_options *copy) {
  mix_release(copy->loss_object);
  mix_release(copy->loss_objects);
  mix_release(copy->metric_objects);
  mix_release(copy->weighted_metric_objects);
}
