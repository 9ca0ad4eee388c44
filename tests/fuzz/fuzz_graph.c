/* libFuzzer target: any bytes as the text of a graph. A valid graph is written, read again, and goes through
 * all passes. */
#include "base/error.h"
#include "compile/compile.h"
#include "compile/pass_pipeline.h"
#include "passes/passes.h"

#include <mixtape/object.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE {
    mix_ir *ir = mix_ir_read("input", (const char *)data, size, 1 << 16);
    const char *text = ir ? mix_ir_text(ir) : NULL;
    mix_ir *again = text ? mix_ir_read("again", text, strlen(text), 1 << 17) : NULL;
    if (text && (!again || strcmp(mix_ir_text(again), text) != 0))
      abort(); /* the written text must be readable */
    if (again && mix_passes_run(again)) {
      char *after = strdup(mix_ir_text(again));
      mix_ir *last = mix_ir_read("after", after, strlen(after), 1 << 20);
      if (!last) abort(); /* the graph after the passes must be readable, too */
      mix_ir_free(last);
      free(after);
    }
    mix_ir_free(again);
    mix_ir_free(ir);
  }
  mix_error_clear();
  return 0;
}
