/* All recorded operations of Keras through the program. */
#include "cli/reference_operations.h"

int main(void) { return run_operations(1); }
