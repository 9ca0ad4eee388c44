/* Pictures of graphs: graphviz text unchanged (.dot), or drawn by graphviz's program `dot` (.svg, .png). */
#include "base/error.h"
#include "cli/cli.h"
#include "formats/file.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *ending(const char *path) {
  const char *dot = strrchr(path, '.');
  return dot ? dot + 1 : "";
}

bool cli_picture_path(const char *path) {
  return !strcmp(ending(path), "dot") || !strcmp(ending(path), "svg") || !strcmp(ending(path), "png");
}

static void write_all(int to, const char *text) {
  for (size_t left = strlen(text); left > 0;) {
    ssize_t written = write(to, text, left);
    if (written <= 0) return; /* dot ended early; its exit code reports it */
    text += written;
    left -= (size_t)written;
  }
}

enum { NOT_FOUND = 127 };

/* Runs `dot -Tsvg -o PATH` with the text on its standard input. Returns its exit code. */
static int run_dot(const char *path, const char *text) {
  int ends[2], status = 0;
  char format[8];
  snprintf(format, sizeof format, "-T%s", ending(path));
  if (pipe(ends) != 0) return -1;
  void (*previous)(int) = signal(SIGPIPE, SIG_IGN);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    close(ends[1]);
    execlp("dot", "dot", format, "-o", path, (char *)NULL);
    _exit(NOT_FOUND);
  }
  close(ends[0]);
  if (child > 0) write_all(ends[1], text);
  close(ends[1]);
  if (child > 0) waitpid(child, &status, 0);
  signal(SIGPIPE, previous);
  return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { MAX_NODES = 800 }; /* dot's time grows with the square and more: minutes from here on */

bool cli_draw(const char *command, const char *path, const char *text, int nodes) {
  if (!strcmp(ending(path), "dot"))
    return mix_file_replace(path, &(mix_bytes){text, strlen(text)}, 1, command);
  if (nodes > MAX_NODES)
    return mix_fail_value(
        "%s: --output %s: the graph has %d nodes, and dot draws at most %d in time; leave --whole-step out, "
        "take a smaller model, or name a file that ends in .dot",
        command, path, nodes, MAX_NODES);
  int code = run_dot(path, text);
  if (code == NOT_FOUND)
    mix_fail_unsupported(
        "%s: pictures are drawn by the program dot, which is not there; "
        "install the package graphviz, or name a file that ends in .dot and draw it elsewhere",
        path);
  else if (code != 0)
    mix_fail_io("%s: dot, of the package graphviz, could not draw it (exit code %d)", path, code);
  return code == 0;
}
