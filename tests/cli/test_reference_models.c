/* The recorded models through the program: each predicts and trains as Keras did, within the bounds; those
 * with layers that do not exist yet are refused by the layer's name, and counted. */
#include "cli/reference_models.h"

int main(void) { return run_models(false); }
