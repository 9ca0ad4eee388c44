/* The recorded models of keras.applications through the program. */
#include "cli/reference_models.h"

int main(void) { return run_models(true); }
