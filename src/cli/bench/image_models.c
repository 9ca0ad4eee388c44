/* The rows of image models in the table layers: ResNet-50 forward and backward, the images' gradient
 * too, and a prediction of MobileNetV2. */
#include "cli/bench/layer_pass.h"
#include <string.h>

typedef struct row {
  const char *name, *model, *pass;
  int64_t size, batch;
} row;

static const row rows[] = {{"ResNet-50", "resnet50", "both", 64, 16},
                           {"ResNet-50", "resnet50", "both", 224, 4},
                           {"MobileNetV2", "mobilenet_v2", "forward", 224, 1}};

enum { CLASSES = 1000, QUICK_SIZE = 32 };

static mix_model *named_model(const row *r, const char *policy) {
  cli_options options;
  char *arguments[] = {"bench", "--model", (char *)r->model, NULL};
  if (cli_parse("bench", CLI_BENCH, 3, arguments, &options)) return NULL;
  options.image_size = r->size;
  mix_policy_scope *scope = mix_policy_scope_begin(mix_policy_new(policy));
  mix_model *model = cli_compiled_model(&options, 0);
  mix_policy_scope_end(scope);
  return model;
}

static bool prepare(const bench_layer_pass *pass, const char *policy, mix_dtype dtype,
                    bench_layer_call *call) {
  const row *r = pass->context;
  const bool both = strcmp(pass->pass, "forward");
  mix_generator *generator = mix_generator_new(1);
  mix_model *model = named_model(r, policy);
  if (!model) return false;
  *call = (bench_layer_call){mix_function_new(both ? bench_layer_both : bench_layer_forward,
                                              mix_model_layer(model), .name = r->name),
                             mix_list_new(0, NULL)};
  return bench_layer_argument(call, generator, MIX_SHAPE(pass->batch, r->size, r->size, 3), MIX_FLOAT32) &&
         (!both || bench_layer_argument(call, generator, MIX_SHAPE(pass->batch, CLASSES), MIX_FLOAT32));
}

bool bench_image_models(const bench_settings *settings, json_t *results) {
  bool good = true;
  for (size_t i = 0; i < sizeof rows / sizeof *rows && good; i++)
    MIX_SCOPE {
      row r = rows[i];
      char name[64];
      if (settings->quick) r.size = QUICK_SIZE, r.batch = 1;
      if (settings->batch) r.batch = settings->batch;
      snprintf(name, sizeof name, "%s, %lldx%lld", r.name, (long long)r.size, (long long)r.size);
      good = bench_layer_time(
          settings,
          &(const bench_layer_pass){
              .layer = name, .pass = r.pass, .batch = r.batch, .context = &r, .prepare = prepare},
          results);
    }
  return good;
}
