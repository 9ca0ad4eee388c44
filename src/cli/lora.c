/* LoRA on the command line: --lora-rank, --load-lora, --save-lora, and what a training with it takes. */
#include "cli/cli.h"

#include "base/error.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "model/model.h"
#include "nn/layers/lora.h"
#include "optim/optimizer.h"
#include "saving/write_weights.h"
#include "tensor/shape.h"
#include "train/plan_step.h"

#include <string.h>

bool cli_lora_options_agree(const char *command, const cli_options *options) {
  const char *extra = options->lora_alpha ? "--lora-alpha" : options->lora_layers ? "--lora-layers" : NULL;
  if (!extra || options->lora_rank) return true;
  fprintf(stderr, "mixtape %s: %s needs --lora-rank N, the rank of a and b\n", command, extra);
  return false;
}

/* Files of Keras have merged kernels, and would set a and b to zeros (row R12), which do not train;
 * safetensors mostly are a checkpoint without a and b. */
static bool is_merged(const char *path) {
  if (path && mix_is_safetensors(path)) {
    const mix_safetensors *tensors = mix_safetensors_open(path, false);
    for (int i = 0; tensors && i < mix_safetensors_count(tensors); i++)
      if (strstr(mix_safetensors_at(tensors, i)->name, "lora")) return false;
    return tensors;
  }
  const mix_file_kind kind = path ? mix_file_kind_of(path) : MIX_FILE_UNKNOWN;
  return kind == MIX_FILE_ARCHIVE || kind == MIX_FILE_WEIGHTS || kind == MIX_FILE_SHARDS;
}

mix_status cli_load_weights(const cli_options *options, mix_model *model) {
  return mix_model_load_weights_with(
      model, &(const mix_load_weights_options){.size = sizeof(mix_load_weights_options),
                                               .path = options->init_weights,
                                               .weight_map = options->weight_map});
}

mix_model *cli_begin_weights(const cli_options *options, mix_model *model) {
  const bool first = options->lora_rank && is_merged(options->init_weights);
  if (model && first) cli_load_weights(options, model);
  if (model && options->lora_rank)
    mix_model_enable_lora(model, options->lora_rank, .alpha = options->lora_alpha,
                          .filter = options->lora_layers);
  if (model && options->init_weights && !first) cli_load_weights(options, model);
  if (model && options->load_lora) mix_model_load_lora(model, options->load_lora);
  if (model && model->state && cli_adds_lora(options) && !mix_failed()) cli_compile_again(model);
  return mix_failed() ? NULL : model;
}

/* ---- what a training takes ---- */

typedef struct weights {
  int64_t trained, frozen;  /* elements */
  size_t bytes, file_bytes; /* file_bytes: of frozen ones that stay in their file's mapping */
} weights;

static weights count_weights(mix_model *model) {
  weights sums = {0};
  mix_list *lists[] = {mix_layer_trainable_weights(model->layer),
                       mix_layer_non_trainable_weights(model->layer)};
  for (int frozen = 0; frozen < 2; frozen++)
    for (int i = 0; lists[frozen] && i < mix_list_count(lists[frozen]); i++) {
      const mix_variable *variable = mix_list_items(lists[frozen])[i];
      *(frozen ? &sums.frozen : &sums.trained) += mix_shape_size(variable->shape);
      const size_t bytes = mix_value_bytes(variable->dtype, variable->shape);
      sums.bytes += bytes;
      sums.file_bytes += frozen && variable->in_file ? bytes : 0;
    }
  return sums;
}

static size_t optimizer_bytes(mix_model *model) {
  size_t bytes = 0;
  mix_optimizer *optimizer = mix_model_optimizer(model);
  mix_optimizer_build(mix_optimizer_plain(optimizer), mix_model_trainable_variables(model));
  mix_list *slots = mix_optimizer_variables(optimizer);
  for (int i = 0; slots && i < mix_list_count(slots); i++) {
    const mix_variable *variable = mix_list_items(slots)[i];
    bytes += mix_value_bytes(variable->dtype, variable->shape);
  }
  return bytes;
}

/* The tensor's first rows; of a list, those of each item. */
static void *first_rows(void *data, int64_t rows) {
  if (!data) return NULL;
  if (mix_is(data, &mix_list_class)) {
    mix_list *parts = mix_list_like(data);
    for (int i = 0; parts && i < mix_list_count(data); i++)
      mix_list_append_like(parts, data, i, first_rows(mix_list_items(data)[i], rows));
    return parts;
  }
  mix_shape begin = mix_tensor_shape(data), size = begin;
  memset(begin.dims, 0, sizeof begin.dims);
  if (size.dims[0] > rows) size.dims[0] = rows;
  return mix_slice(data, begin, size);
}

static bool is_zero(mix_variable *variable) {
  if (!mix_shape_size(variable->shape)) return false;
  return mix_tensor_item(mix_reduce_max(mix_abs(mix_variable_true_value(variable)), MIX_ALL_AXES, false)) ==
         0;
}

/* As a file of Keras has them: neither's gradient is anything but 0. */
static void warn_of_zeros(mix_list *layers) {
  int zeros = 0;
  for (int i = 0; i < mix_list_count(layers); i++) {
    const mix_lora *lora = ((const mix_layer *)mix_list_items(layers)[i])->lora;
    zeros += is_zero(lora->a) && is_zero(lora->b);
  }
  if (zeros && !mix_failed())
    fprintf(stderr,
            "warning: a and b of %d layer%s are zeros, as in files of Keras, and do not train; begin with an "
            "adapter (--load-lora), or merge (mixtape convert --merge-lora) and give --lora-rank\n",
            zeros, zeros == 1 ? "" : "s");
}

static const char *size_text(size_t bytes, char text[32]) {
  const bool small = bytes < 1000 * 1000;
  snprintf(text, 32, "%.1f %s", (double)bytes / (small ? 1e3 : 1e6), small ? "kB" : "MB");
  return text;
}

/* A file in which LoRA cannot be is refused before anything is trained. */
static void check_file(const cli_options *options, const mix_model *model, mix_list *layers) {
  if (options->save && mix_list_count(layers) && mix_file_kind_of(options->save) == MIX_FILE_LEGACY &&
      !model->semantics->config_newer_options)
    mix_fail_unsupported("--save %s: no .h5 of %s can say that layers have LoRA; save a .keras, which is "
                         "merged, or --save-lora alone",
                         options->save, model->semantics->name);
}

/* Plans the step of fit; 0: another loop, or several ranks, whose steps are others. */
static size_t peak_of_step(const cli_options *options, mix_model *model, const cli_part *part) {
  const int64_t rows = options->batch_size ? options->batch_size : MIX_DEFAULT_BATCH;
  mix_plan_report report = {0};
  if (!strcmp(options->loop, "fit") && !cli_is_distributed(options))
    mix_model_plan_training(model,
                            &(mix_on_batch_options){.size = sizeof(mix_on_batch_options),
                                                    .x = first_rows(part->x, rows),
                                                    .y = first_rows(part->y, rows),
                                                    .sample_weight = first_rows(part->weights, rows)},
                            &report);
  return report.peak_bytes;
}

static void print_what_it_takes(const cli_options *options, mix_model *model, const cli_part *part,
                                int layers) {
  char texts[3][32];
  const weights sums = count_weights(model);
  const size_t slots = optimizer_bytes(model), peak = peak_of_step(options, model, part);
  if (mix_failed()) return;
  fprintf(stderr,
          "LoRA in %d layer%s: %lld parameters train, %lld are frozen; weights %s, optimizer %s%s%s\n",
          layers, layers == 1 ? "" : "s", (long long)sums.trained, (long long)sums.frozen,
          size_text(sums.bytes, texts[0]), size_text(slots, texts[1]),
          peak ? ", a training step with both " : "", peak ? size_text(peak, texts[2]) : "");
  if (sums.file_bytes)
    fprintf(stderr, "frozen, in the file: %s of the weights, pages that the system can take back\n",
            size_text(sums.file_bytes, texts[0]));
}

bool cli_describe_lora(const cli_options *options, mix_model *model, const cli_part *part) {
  const bool silent = options->verbose == 0 || mix_distribution_rank(mix_distribution_current());
  MIX_SCOPE {
    mix_list *layers = mix_model_lora_layers(model);
    if (layers && !mix_list_count(layers) && options->save_lora)
      mix_fail_value("--save-lora: no layer of the model has LoRA; expected --lora-rank or --load-lora too");
    if (layers) check_file(options, model, layers);
    if (layers && mix_list_count(layers) && !mix_failed() && !silent) {
      warn_of_zeros(layers);
      print_what_it_takes(options, model, part, mix_list_count(layers));
    }
  }
  return !mix_failed();
}
