/* Recorded operations of Keras through the program, every eighth. */
#include "cli/reference_operations.h"

int main(void) { return run_operations(8); }
