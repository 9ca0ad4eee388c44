/* Commands on models of KerasHub (MIXTAPE_REFERENCE_DIR, hub), an encoder's task and a decoder's: what they
 * say is that of other models, without warnings. */
#include "cli/program.h"
#include "support/skip.h"
#include <mixtape/saving.h>

static const struct {
  const char *family, *backbone, *class_name, *kept;
} models[] = {{"bert", "bert_backbone", "BertBackbone", "bert_backbone/transformer_layer_0"},
              {"gpt2", "gpt2_backbone", "GPT2Backbone", "gpt2_backbone/transformer_layer_1"}};
enum { MODELS = sizeof models / sizeof *models };

static char model[1024], data[1024];

static bool name_files(int i) {
  const char *folder = getenv("MIXTAPE_REFERENCE_DIR");
  snprintf(model, sizeof model, "%s/hub/hub-%s-task-float32.keras", folder ? folder : "", models[i].family);
  snprintf(data, sizeof data, "%s/hub/hub-%s-task-float32.npz", folder ? folder : "", models[i].family);
  return folder;
}

static void summaries(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; i++) {
    if (!name_files(i)) SKIP("MIXTAPE_REFERENCE_DIR is unset");
    assert_code(run_program("summary", "--model", model), 0);
    assert_has(program_out, models[i].class_name);
    assert_has(program_out, "token_ids");
  }
}

/* Its keys for the backbone's layers match, so that nothing warns of them. */
static void quantized_files(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; i++) {
    if (!name_files(i)) SKIP("MIXTAPE_REFERENCE_DIR is unset");
    char out[512];
    snprintf(out, sizeof out, "%s", in_folder("small.keras"));
    assert_code(run_program("quantize", model, out, "--mode", "int8"), 0);
    assert_code(run_program("predict", "--model", out, "--data", data, "--batch-size", "4", "--output",
                            in_folder("y.npz")),
                0);
    assert_null(strstr(program_err, "matches no layer"));
  }
}

static void reports_of_numerics(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; i++) {
    if (!name_files(i)) SKIP("MIXTAPE_REFERENCE_DIR is unset");
    assert_code(run_program("numerics", "--model", model, "--data", data, "--batch-size", "4", "--steps", "2",
                            "--policy", "mixed_float16"),
                0);
    assert_has(program_out, models[i].backbone);
  }
}

/* The layers to choose from are those inside the backbone too; these models need none of them. */
static void precision_tuning(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; i++) {
    if (!name_files(i)) SKIP("MIXTAPE_REFERENCE_DIR is unset");
    assert_code(run_program("tune-precision", "--model", model, "--data", data, "--batch-size", "4",
                            "--epochs", "1", "--policy", "mixed_bfloat16", "--save",
                            in_folder("tuned.keras")),
                0);
    MIX_SCOPE { assert_non_null(mix_model_load(in_folder("tuned.keras"))); }
  }
}

static void float32_layers_of_the_backbone(void **state) {
  (void)state;
  for (int i = 0; i < MODELS; i++) {
    if (!name_files(i)) SKIP("MIXTAPE_REFERENCE_DIR is unset");
    char out[512];
    snprintf(out, sizeof out, "%s", in_folder("kept.keras"));
    assert_code(run_program("train", "--model", model, "--data", data, "--batch-size", "4", "--verbose", "0",
                            "--policy", "mixed_float16", "--float32-layers", models[i].kept, "--save", out),
                0);
    assert_null(strstr(program_err, "matches no layer"));
    assert_code(run_program("evaluate", "--model", out, "--data", data, "--batch-size", "4"), 0);
    char unknown[100];
    snprintf(unknown, sizeof unknown, "%s/transformer_layer_9", models[i].backbone);
    assert_code(run_program("evaluate", "--model", model, "--data", data, "--policy", "mixed_float16",
                            "--float32-layers", unknown),
                1);
    assert_has(program_err, "the model has no layer");
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(summaries), cmocka_unit_test(quantized_files), cmocka_unit_test(reports_of_numerics),
      cmocka_unit_test(precision_tuning), cmocka_unit_test(float32_layers_of_the_backbone)};
  return cmocka_run_group_tests_name("commands on models of KerasHub", tests, folder_begin, folder_end);
}
