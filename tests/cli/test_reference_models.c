/* The recorded models through the program: each predicts and trains as Keras did, within the bounds; those
 * with layers that do not exist yet are refused by the layer's name, and counted. */
#include "cli/reference_models.h"

static void every_model_whose_layers_exist_predicts_and_trains(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  const int missing = run_models(false);
  print_message("%d models have layers that are missing\n", missing);
  assert_int_equal(missing, MODELS_WITH_MISSING_LAYERS);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_model_whose_layers_exist_predicts_and_trains)};
  return cmocka_run_group_tests_name("reference models", tests, folder_begin, folder_end);
}
