/* libFuzzer target: any bytes as a config in JSON or as the text of an option. The first line says of
 * what. */
#include <ctype.h>
#include <mixtape/mixtape.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static void *layer(const char *text) { return mix_layer_deserialize(text, NULL); }
static void *optimizer(const char *text) { return mix_optimizer_deserialize(text, NULL); }
static void *policy(const char *text) { return mix_policy_deserialize(text, NULL); }
static void *loss_scale(const char *text) { return mix_loss_scale_deserialize(text); }
static void *schedule(const char *text) { return mix_schedule_deserialize(text); }
#define METRIC(function, class_name)                                                                         \
  static void *function(const char *text) { return mix_metric_from_config(class_name, text, NULL); }
METRIC(auc, "AUC")
METRIC(mean_io_u, "MeanIoU")
METRIC(top_k, "TopKCategoricalAccuracy")
METRIC(precision, "Precision")
METRIC(recall_at_precision, "RecallAtPrecision")
static void *optimizer_text(const char *text) { return mix_optimizer_from_text(text, NULL); }
static void *metric_text(const char *text) { return mix_metric_from_text(text, NULL); }
static void *callback_text(const char *text) { return mix_callback_from_text(text); }
static void *loss_scale_text(const char *text) { return mix_loss_scale_get(text); }

static const struct {
  const char *name;
  void *(*read)(const char *text);
} kinds[] = {{"layer", layer},
             {"optimizer", optimizer},
             {"policy", policy},
             {"loss_scale", loss_scale},
             {"schedule", schedule},
             {"auc", auc},
             {"mean_io_u", mean_io_u},
             {"top_k", top_k},
             {"precision", precision},
             {"recall_at_precision", recall_at_precision},
             {"optimizer_text", optimizer_text},
             {"metric_text", metric_text},
             {"callback_text", callback_text},
             {"loss_scale_text", loss_scale_text}};

/* Sizes of four digits could ask for more memory than the machine has, which is no defect. */
static int asks_for_much(const char *text) {
  for (int digits = 0; *text; text++) {
    digits = isdigit((unsigned char)*text) ? digits + 1 : 0;
    if (digits > 3) return 1;
  }
  return 0;
}

static void read_as(const char *kind, const char *text) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(kind, kinds[i].name)) {
      MIX_SCOPE {
        /* NULL without an error, or an object with one, would mislead every caller. */
        if ((kinds[i].read(text) == NULL) != (mix_error() != MIX_OK)) abort();
        mix_error_clear();
      }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  char *text = malloc(size + 1);
  memcpy(text, data, size);
  text[size] = 0;
  char *end = strchr(text, '\n');
  if (end && !asks_for_much(end)) {
    *end = 0;
    read_as(text, end + 1);
  }
  mix_error_clear();
  free(text);
  return 0;
}
