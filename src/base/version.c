#include <mixtape/api.h>

const char *mix_version(void) { return MIXTAPE_VERSION; }
