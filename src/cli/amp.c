/* amp rewrite, amp explain: what the automatic mixed precision rewrite does to recorded graphs. */
#include "base/alloc.h"
#include "cli/cli.h"
#include "io/rewrite_json.h"

#include <stdlib.h>
#include <string.h>

static const char *const usage =
    "usage: mixtape amp rewrite GRAPH.json...\n"
    "       mixtape amp explain [--json] GRAPH.json...\n"
    "\n"
    "The automatic mixed precision rewrite of TensorFlow 2.21 on graphs in the recorded format.\n"
    "\n"
    "  rewrite   one JSON line a file: name, status, nodes_added, dtypes, casts, and ops and attrs_added of renamed ops\n"
    "  explain   a table of every op: its list, dtype before and after, and why\n"
    "  --json    explain: one JSON line a file in place of the table\n"
    "\n"
    "The variables TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_... (LEVEL, ALLOWLIST_ADD, ...) count; what a file says in \"env\"\n"
    "counts more.\n";

/* One file to standard output. False with the error recorded. */
static bool show(const char *path, bool explain, bool json, bool heading, const mix_amp_options *base) {
  mix_rewrite_case *item = mix_rewrite_read(path, base);
  mix_amp_result *result = item ? mix_amp_rewrite(item->graph, &item->options) : NULL;
  if (!result) return false;
  char *text = !explain ? mix_rewrite_result_text(item, result)
               : json   ? mix_rewrite_explain_text(item, result)
                        : mix_amp_report(result);
  if (text && heading) printf("%s\n", item->name);
  if (text) printf("%s%s", text, explain && !json && !heading ? "" : "\n");
  mix_free(text);
  return text != NULL;
}

int cli_amp(int argc, char **argv) {
  bool explain = false, json = false, options_end = false;
  const char *what = NULL;
  int files = 0;
  for (int i = 1; i < argc; i++) { /* the files move to the front */
    bool option = !options_end && argv[i][0] == '-' && argv[i][1];
    if (option && !strcmp(argv[i], "--help")) {
      fputs(usage, stdout);
      return CLI_OK;
    }
    if (option && !strcmp(argv[i], "--"))
      options_end = true;
    else if (option && !strcmp(argv[i], "--json"))
      json = true;
    else if (option) {
      fprintf(stderr, "mixtape amp: unknown option '%s'; `mixtape amp --help` lists them\n", argv[i]);
      return CLI_USAGE;
    } else if (!what)
      what = argv[i];
    else
      argv[files++] = argv[i];
  }
  explain = what && !strcmp(what, "explain");
  if (!what || (!explain && strcmp(what, "rewrite") != 0) || files == 0 || (json && !explain)) {
    if (what && !explain && strcmp(what, "rewrite") != 0)
      fprintf(stderr, "mixtape amp: unknown command '%s'\n", what);
    else if (json && what && !explain)
      fprintf(stderr, "mixtape amp rewrite: its output is JSON; --json belongs to explain\n");
    else if (what)
      fprintf(stderr, "mixtape amp %s: no graph was named\n", what);
    fputs(usage, stderr);
    return CLI_USAGE;
  }
  mix_amp_options base = {0};
  if (!mix_amp_options_from_environment(&base)) return cli_fail();
  int code = CLI_OK;
  for (int i = 0; i < files; i++) {
    bool good = false;
    MIX_SCOPE { good = show(argv[i], explain, json, explain && !json && files > 1, &base); }
    if (!good) code = cli_fail();
  }
  return code;
}
