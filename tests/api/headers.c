/* Compile test: each public header is a C11 and a C++17 unit of this program (CMakeLists.txt). */
#include <mixtape/api.h>
#include <string.h>

int main(void) { return strcmp(mix_version(), MIXTAPE_VERSION) == 0 ? 0 : 1; }
