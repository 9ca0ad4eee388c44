#include <mixtape/api.h>

const char *mix_version(void) { return MIXTAPE_VERSION; }
int mix_version_number(void) { return MIX_VERSION_NUMBER; }
