/* float32_layers of KerasHub's recorded tasks (MIXTAPE_REFERENCE_DIR, hub): each layer by itself, and what a
 * file with such layers holds. */
#include "nn/layer/layer.h"
#include "saving/reference_models.h"
#include "support/folder.h"

static const char *const families[] = {"albert", "bert",      "bloom", "deberta-v3", "distil-bert", "falcon",
                                       "gemma",  "gpt-neo-x", "gpt2",  "llama",      "llama3",      "mistral",
                                       "opt",    "phi3",      "qwen",  "roberta",    "vit"};
enum { FAMILIES = sizeof families / sizeof *families };

static bool begin_recordings(void) {
  recordings = "hub";
  mix_set_semantics("keras3");
  return getenv("MIXTAPE_REFERENCE_DIR") != NULL;
}

static char *file_of(const char *family) {
  static char name[64];
  snprintf(name, sizeof name, "hub-%s-task-float32", family);
  return name;
}

static mix_layer *backbone_of(mix_model *model) {
  for (int i = 0; i < mix_list_count(mix_model_layers(model)); i++) {
    mix_layer *layer = mix_list_get(mix_model_layers(model), i);
    if (layer->is_model) return layer;
  }
  return NULL;
}

static void assert_all_float32(const char *name, const mix_layer *layer) {
  const bool has_policy = layer->map_path != NULL; /* Keras gives dropout no path, so that no key finds it */
  if (has_policy && strcmp(mix_policy_name(mix_layer_own_policy(layer)), "float32"))
    fail_msg("%s: %s has %s", name, layer->map_path, mix_policy_name(mix_layer_own_policy(layer)));
  for (int i = 0; i < mix_list_count(layer->layers); i++)
    assert_all_float32(name, mix_list_get(layer->layers, i));
}

static mix_model *load(const char *family, const char *const *kept) {
  mix_clear_names(); /* layers without a name in KerasHub get the same one each time */
  mix_model *model = mix_model_load(model_path(file_of(family), ".keras"), .policy = "mixed_bfloat16",
                                    .float32_layers = kept);
  if (mix_error()) fail_msg("%s, %s: %s", family, kept ? kept[0] : "none", mix_error_message());
  return model;
}

/* A step of training and a prediction run whichever layer has another dtype than those around it. */
static void check_layer(const char *family, const char *prefix, const mix_layer *layer, mix_npz *npz) {
  char path[256];
  snprintf(path, sizeof path, "%s%s", prefix, layer->name);
  mix_model *model = load(family, (const char *const[]){path, NULL});
  mix_layer *owner = *prefix ? backbone_of(model) : mix_model_layer(model);
  for (int i = 0; i < mix_list_count(owner->layers); i++) {
    const mix_layer *other = mix_list_get(owner->layers, i);
    if (!strcmp(other->name, layer->name)) assert_all_float32(path, other);
  }
  mix_list *x = model_arrays(npz, "x"), *y = model_arrays(npz, "y");
  mix_logs *logs = mix_model_train_on_batch(model, x, y);
  if (mix_error() || !isfinite(mix_logs_get(logs, "loss"))) fail_msg("%s: %s", path, mix_error_message());
}

/* Of Keras, without a policy; their names differ from model to model. */
static bool is_operation(const mix_layer *layer) {
  return !strcmp(layer->class.name, "GetItem") || !strcmp(layer->class.name, "Mean");
}

static void each_layer_of_each_family(void **state) {
  (void)state;
  if (!begin_recordings()) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  for (int f = 0; f < FAMILIES; f++)
    MIX_SCOPE {
      mix_model *plain = load(families[f], NULL);
      mix_npz *npz = mix_npz_open(model_path(file_of(families[f]), ".npz"));
      mix_layer *backbone = backbone_of(plain);
      char prefix[128];
      snprintf(prefix, sizeof prefix, "%s/", backbone->name);
      for (int i = 0; i < mix_list_count(backbone->layers); i++) {
        const mix_layer *layer = mix_list_get(backbone->layers, i);
        if (!layer->is_input && !strstr(layer->name, "_1") &&
            !is_operation(layer)) /* the layers of a stack are alike */
          MIX_SCOPE { check_layer(families[f], prefix, layer, npz); }
      }
      const mix_layer *last =
          mix_list_get(mix_model_layers(plain), -1 + mix_list_count(mix_model_layers(plain)));
      if (last != backbone && !last->is_input)
        MIX_SCOPE { check_layer(families[f], "", last, npz); }
    }
}

/* The whole backbone, whose policy the task's own layers have, is the float32 model. */
static void a_backbone_is_kept_whole(void **state) {
  (void)state;
  if (!begin_recordings()) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  mix_model *model = load("bert", (const char *const[]){"bert_backbone", NULL});
  mix_npz *npz = mix_npz_open(model_path(file_of("bert"), ".npz"));
  mix_list *y = mix_model_predict(model, model_arrays(npz, "x"), .batch_size = 4);
  assert_close("bert", "output", 0, mix_list_get(y, 0), mix_list_get(model_arrays(npz, "predict"), 0), 1e-5);
}

/* The file has them in the backbone's map, with the same predictions, and what is unknown is refused. */
static void files_keep_them(void **state) {
  (void)state;
  if (!begin_recordings()) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  mix_model *model = load("bert", (const char *const[]){"bert_backbone/transformer_layer_1", "logits", NULL});
  mix_npz *npz = mix_npz_open(model_path(file_of("bert"), ".npz"));
  mix_model_save(model, in_folder("kept.keras"));
  mix_model *again = mix_model_load(in_folder("kept.keras"));
  assert_no_error();
  mix_list *x = model_arrays(npz, "x"), *y = mix_model_predict(model, x, .batch_size = 4),
           *z = mix_model_predict(again, x, .batch_size = 4);
  assert_int_equal(mix_tensor_dtype(mix_list_get(z, 0)), MIX_FLOAT32);
  assert_close("bert", "output", 0, mix_list_get(z, 0), mix_list_get(y, 0), 0);
  assert_null(mix_model_load(in_folder("kept.keras"), .float32_layers = (const char *const[]){
                                                          "bert_backbone/transformer_layer_2", NULL}));
  assert_error(MIX_VALUE_ERROR, "no layer 'bert_backbone/transformer_layer_2'; did you mean");
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(each_layer_of_each_family), TEST(a_backbone_is_kept_whole),
                                     TEST(files_keep_them)};
  return cmocka_run_group_tests_name("float32_layers of KerasHub's models", tests, folder_begin, folder_end);
}
