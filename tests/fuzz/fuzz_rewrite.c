/* libFuzzer target: any bytes as a graph for the mixed precision rewrite. A valid graph is rewritten and
 * reported. */
#include "base/alloc.h"
#include "cli/amp/graph_json.h"

#include <mixtape/object.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  MIX_SCOPE {
    cli_rewrite_case *item = cli_rewrite_read("input", data, size, NULL);
    if (item) item->options.log_path = NULL; /* a fuzzer writes no files */
    mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
    if (result) cli_find_redundant_casts(result);
    char *texts[] = {cli_rewrite_text(item, result), cli_explain_text(item, result), mix_amp_report(result),
                     mix_amp_picture(result, false, &(int){0})};
    for (int i = 0; i < 4; i++) mix_free(texts[i]);
  }
  mix_error_clear();
  return 0;
}
