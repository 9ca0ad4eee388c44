# The compiler of Debian's package musl-tools and the libraries that scripts/musl_sysroot makes, for the
# preset musl: static programs.
set(CMAKE_C_COMPILER musl-gcc)
get_filename_component(sysroot ${CMAKE_CURRENT_LIST_DIR}/../build/musl-sysroot ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${sysroot})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_C_FLAGS_INIT "-isystem ${sysroot}/include")
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(ENV{PKG_CONFIG_LIBDIR} ${sysroot}/lib/pkgconfig)
