/* The command line's options: parsing, help, and what getopt rejects. */
#include "cli/options.h"

#include "base/did_you_mean.h"

#include <getopt.h>
#include <string.h>

/* getopt's codes, above every character, so that `optopt` distinguishes them: --help, and row i's FIRST + i.
 */
enum { HELP = 1000, FIRST };

/* Prints an option with its text next to it, or below it if the option is long. Lines end within WIDTH
 * columns. */
static void print_option(const char *option, const char *text) {
  enum { COLUMN = 34, WIDTH = 110 };
  int used = printf("  %s", option);
  if (used >= COLUMN) {
    putchar('\n');
    used = 0;
  }
  for (bool first = true; *text; first = false) {
    size_t length = strlen(text), max = WIDTH - COLUMN;
    if (length > max) {
      for (length = max; length > 0 && text[length] != ' ';) length--;
      if (!length) length = max;
    }
    printf("%*s%.*s\n", first ? COLUMN - used : COLUMN, "", (int)length, text);
    text += length + (text[length] == ' ');
  }
}

static void print_help(const char *command, int commands) {
  printf("usage: mixtape %s [OPTION...]\n\n", command);
  for (int i = 0; i < CLI_OPTION_ROWS; i++) {
    const cli_option_row *row = &cli_option_rows[i];
    if (!(row->commands & commands)) continue;
    char option[128];
    snprintf(option, sizeof option, "--%s%s%s", row->name, row->argument && row->kind != RESUME ? " " : "",
             row->argument ? row->argument : "");
    print_option(option, row->help);
  }
  print_option("-h, --help", "this text");
}

/* Finds the row of an option that the word begins, or resembles. Returns how many it begins. */
static int find_similar(int commands, const char *name, mix_did_you_mean *suggestion) {
  const char *found = NULL;
  int begins = 0;
  for (int i = 0; i <= CLI_OPTION_ROWS; i++) {
    const char *other = i < CLI_OPTION_ROWS ? cli_option_rows[i].name : "help";
    if (i < CLI_OPTION_ROWS && !(cli_option_rows[i].commands & commands)) continue;
    mix_did_you_mean_try(suggestion, other);
    if (!*name || strncmp(other, name, strlen(name))) continue;
    found = other;
    begins++;
  }
  if (begins == 1) suggestion->found = found;
  return begins;
}

static void print_ambiguous(int commands, const char *name) {
  for (int i = 0; i < CLI_OPTION_ROWS; i++)
    if (cli_option_rows[i].commands & commands && !strncmp(cli_option_rows[i].name, name, strlen(name)))
      fprintf(stderr, " --%s", cli_option_rows[i].name);
  if (!strncmp("help", name, strlen(name))) fprintf(stderr, " --help");
}

/* Reports an option that is unknown, shortened, ambiguous, without its argument, or with an unexpected one.
 */
static int reject_option(const char *command, int commands, int code, const char *given) {
  char word[128];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(given, "="), given);
  const bool letter = optopt > 0 && optopt < HELP; /* of several: `given` may be the argument before */
  if (letter) snprintf(word, sizeof word, "-%c", optopt);
  const char *name = word + strspn(word, "-");
  mix_did_you_mean suggestion = {.word = name};
  const int begins = find_similar(commands, name, &suggestion);
  bool suggested = false;
  if (code == ':')
    fprintf(stderr, "mixtape %s: an argument is missing for '%s'", command, word);
  else if (optopt >= HELP)
    fprintf(stderr, "mixtape %s: '%s': --%s takes no argument", command, given,
            optopt == HELP ? "help" : cli_option_rows[optopt - FIRST].name);
  else if (!letter && begins > 1) {
    fprintf(stderr, "mixtape %s: '%s' may mean", command, word);
    print_ambiguous(commands, name);
  } else {
    fprintf(stderr, "mixtape %s: unknown option '%s'", command, word);
    suggested = !letter && suggestion.found;
    if (suggested) fprintf(stderr, "; did you mean '--%s'?", suggestion.found);
  }
  fprintf(stderr, "%s `mixtape %s --help` lists the options\n", suggested ? "" : ";", command);
  return CLI_USAGE;
}

/* getopt takes what begins one option for it; a later option would change what such a word means. */
static bool is_whole(int code, const char *word) {
  const char *name = code == HELP ? "help" : code >= FIRST ? cli_option_rows[code - FIRST].name : NULL;
  if (!name) return true; /* a letter */
  const size_t length = strlen(name);
  return !strncmp(word + 2, name, length) && (!word[2 + length] || word[2 + length] == '=');
}

bool cli_is_option(int argc, char **argv, int *i, const char *name, const char **value) {
  const size_t length = strlen(name);
  if (strncmp(argv[*i], name, length) != 0 || (argv[*i][length] && argv[*i][length] != '=')) return false;
  if (argv[*i][length])
    *value = argv[*i] + length + 1;
  else
    *value = *i + 1 < argc ? argv[++*i] : NULL;
  return true;
}

/* Those of the command's own rows come before those of others for the same field. */
static void set_defaults(cli_options *options, int commands, bool file) {
  for (int own = 1; own >= 0; own--)
    for (int i = 0; i < CLI_OPTION_ROWS; i++) {
      const cli_option_row *row = &cli_option_rows[i];
      const char **field = (const char **)((char *)options + row->field);
      const bool applies = row->initial && (!file || row->when == ALWAYS);
      if (applies && ((row->commands & commands) != 0) == own && !*field) *field = row->initial;
    }
}

int cli_parse(const char *command, int commands, int argc, char **argv, cli_options *options) {
  *options = (cli_options){.verbose = -1};
  struct option list[CLI_OPTION_ROWS + 2];
  int count = 0;
  set_defaults(options, commands, true); /* those of the model's kind follow when it is known */
  for (int i = 0; i < CLI_OPTION_ROWS; i++) {
    const cli_option_row *row = &cli_option_rows[i];
    const int argument = row->kind == FLAG     ? no_argument
                         : row->kind == RESUME ? optional_argument
                                               : required_argument;
    if (row->commands & commands) list[count++] = (struct option){row->name, argument, NULL, FIRST + i};
  }
  list[count++] = (struct option){"help", no_argument, NULL, HELP};
  list[count] = (struct option){0};
  opterr = 0;
  optind = 0; /* also forgets the letters that an earlier command line left */
  for (int code; (code = getopt_long(argc, argv, ":h", list, NULL)) != -1;) {
    const bool apart = code >= FIRST && optarg && optarg == argv[optind - 1];
    const char *word = argv[optind - 1 - apart];
    if (code >= HELP && !is_whole(code, word)) {
      optopt = 0; /* no letter */
      return reject_option(command, commands, '?', word);
    }
    if (code == HELP || code == 'h') {
      print_help(command, commands);
      return -1;
    }
    if (code == '?' || code == ':') return reject_option(command, commands, code, argv[optind - 1]);
    if (!cli_set_option(command, &cli_option_rows[code - FIRST], optarg ? optarg : "", options)) {
      const int failure = cli_option_code();
      mix_error_clear();
      return failure;
    }
  }
  if (optind < argc) {
    fprintf(stderr, "mixtape %s: '%s' is no option; `mixtape %s --help` lists them\n", command, argv[optind],
            command);
    return CLI_USAGE;
  }
  if (!cli_take_dtype(command, options) || !cli_take_policy_map(command, options)) return CLI_USAGE;
  if (!options->data && commands & RUNS)
    options->data = cli_is_guide(options) || cli_is_model_file(options) ? "mnist" : "synthetic";
  set_defaults(options, commands, cli_is_model_file(options));
  return cli_options_agree(command, options) ? CLI_OK : CLI_USAGE;
}
