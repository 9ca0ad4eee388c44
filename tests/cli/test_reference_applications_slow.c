/* The recorded models of keras.applications through the program. */
#include "cli/reference_models.h"

static void every_application_whose_layers_exist_predicts_and_trains(void **state) {
  (void)state;
  if (!getenv("MIXTAPE_REFERENCE_DIR")) SKIP("MIXTAPE_REFERENCE_DIR is unset");
  run_models(true);
}

int main(void) {
  const struct CMUnitTest tests[] = {TEST(every_application_whose_layers_exist_predicts_and_trains)};
  return cmocka_run_group_tests_name("reference applications", tests, folder_begin, folder_end);
}
