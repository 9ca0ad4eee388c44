/* Which plug-in, and where it is. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr, secure_getenv */
#endif
#include "distribute/plugin.h"

#include "base/error.h"
#include "base/text.h"
#include "distribute/launcher.h"
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef MIXTAPE_LIBDIR
#define MIXTAPE_LIBDIR "lib"
#endif

/* ---- the MPI of the host program ---- */

static const struct { const char *says, *flavor; } versions[] = {{"Open MPI", "openmpi"}, {"MPICH", "mpich"}};
enum { VERSIONS = sizeof versions / sizeof *versions };

static const char *flavor_of_version(const char *text) {
  for (int i = 0; i < VERSIONS; i++)
    if (strstr(text, versions[i].says)) return versions[i].flavor;
  return NULL;
}

enum { VERSION_SIZE = 8192 }; /* MPI_MAX_LIBRARY_VERSION_STRING of MPICH; Open MPI's is 256 */

/* Of the MPI that the calls of a plug-in would reach. False: the process has none that others can see. */
static bool read_loaded_version(char text[VERSION_SIZE]) {
  int length, (*version)(char *, int *);
  *(void **)&version = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  *text = 0;
  if (version && version(text, &length)) *text = 0;
  return version;
}

/* NULL with the error recorded. */
static const char *loaded_flavor(void) {
  char text[VERSION_SIZE];
  if (!read_loaded_version(text))
    return mix_fail_runtime("distribution_mpi_from: this process has loaded no MPI that others can see; link "
                            "it, or name its flavour (openmpi or mpich) if it was loaded locally");
  const char *flavor = flavor_of_version(text);
  if (flavor) return flavor;
  return mix_fail_unsupported(
      "distribution_mpi_from: the MPI of this process is \"%.100s\"; expected Open MPI "
      "or MPICH; build the plug-in with its mpicc, name it in MIXTAPE_MPI_PLUGIN and "
      "give the flavour whose binary interface it has",
      text);
}

/* A plug-in of another flavour than the loaded one would call this one with its own constants. */
static const char *named_flavor(const char *flavor) {
  char text[VERSION_SIZE];
  const char *named = NULL;
  for (int i = 0; i < VERSIONS; i++)
    if (!strcmp(flavor, versions[i].flavor)) named = versions[i].flavor;
  if (!named)
    return mix_fail_value("distribution_mpi_from: there is no flavour \"%s\"; expected openmpi or mpich",
                          flavor);
  const char *loaded = read_loaded_version(text) ? flavor_of_version(text) : NULL;
  if (!loaded || loaded == named) return named;
  return mix_fail_value("distribution_mpi_from: the flavour is %s, and this process has loaded %s; name that "
                        "one, or none",
                        named, loaded);
}

/* ---- files ---- */

/* Of this flavour; NULL: of any. Two flavours in one process would call each other's functions. MPI that we
 * start has plug-ins of its own, which look for its symbols; that of a host stays as visible as it is. */
static const mix_transport *load(const char *path, const char *flavor, bool of_host) {
  void *library = dlopen(path, RTLD_NOW | (of_host ? RTLD_LOCAL : RTLD_GLOBAL));
  if (!library) {
    const char *reason = dlerror();
    return mix_fail_io("distribution_mpi: the plug-in %s cannot be loaded: %s", path,
                       reason ? reason : "no reason given");
  }
  mix_transport_plugin_function *plugin;
  *(void **)&plugin = dlsym(library, "mix_transport_plugin");
  const mix_transport *transport = plugin ? plugin() : NULL;
  const bool known = transport && transport->version == MIX_TRANSPORT_VERSION;
  const char *own = known ? flavor_of_version(transport->flavor) : NULL;
  if (known && (!flavor || (own && !strcmp(own, flavor)))) return transport;
  if (known)
    mix_fail_value("distribution_mpi_from: MIXTAPE_MPI_PLUGIN is a plug-in of %s, and the program has %s; "
                   "name one of the same flavour, or none",
                   transport->flavor, flavor);
  else
    mix_fail_format("distribution_mpi: %s is no plug-in of this version of mixtape", path);
  dlclose(library);
  return NULL;
}

/* The folder of the program or library that this code is part of. */
static bool own_folder(char *folder, size_t size) {
  Dl_info info;
  char path[PATH_MAX];
  if (!dladdr((void *)mix_mpi_plugin, &info) || !strchr(info.dli_fname, '/') ||
      !realpath(info.dli_fname, path)) {
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length < 0) return false;
    path[length] = 0;
  }
  char *end = strrchr(path, '/');
  if (!end || (size_t)(end - path) >= size) return false;
  *end = 0;
  strcpy(folder, path);
  return true;
}

static const mix_transport *plugin_of(const char *flavor, bool of_host) {
  const char *given = secure_getenv("MIXTAPE_MPI_PLUGIN");
  if (given && *given) return load(given, of_host ? flavor : NULL, of_host);
  /* of a build: beside the program, its tests and examples; of an installation: beside library and program */
  static const char *const places[] = {"plugins", "../plugins", "mixtape", "../" MIXTAPE_LIBDIR "/mixtape"};
  char folder[PATH_MAX], path[PATH_MAX + 128], searched[1024];
  mix_text list = {.text = searched, .size = sizeof searched};
  for (size_t i = 0; own_folder(folder, sizeof folder) && i < sizeof places / sizeof *places; i++) {
    snprintf(path, sizeof path, "%s/%s/mixtape_mpi_%s.so", folder, places[i], flavor);
    if (!access(path, R_OK)) return load(path, NULL, of_host);
    mix_text_put(&list, "%s%s/%s", i ? ", " : "", folder, places[i]);
  }
  return mix_fail_io(
      "distribution_mpi: there is no plug-in mixtape_mpi_%s.so; it is built where mpicc.%s, or an mpicc "
      "of this flavour, is found (Debian: %s), or name one in MIXTAPE_MPI_PLUGIN; searched were %s",
      flavor, flavor, !strcmp(flavor, "mpich") ? "libmpich-dev" : "libopenmpi-dev", searched);
}

const mix_transport *mix_mpi_plugin(void) {
  const char *flavor = mix_mpi_launched_flavor();
  if (mix_failed()) return NULL;
  return plugin_of(flavor ? flavor : "openmpi", false);
}

const mix_transport *mix_mpi_plugin_of_host(const char *flavor) {
  flavor = flavor ? named_flavor(flavor) : loaded_flavor();
  return flavor ? plugin_of(flavor, true) : NULL;
}
